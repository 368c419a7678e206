use super::*;
use crate::store::{ClaimedRow, NodeFacts, NodeName, NodeSession, Options, RoomClaim, TakenRoom};
use core::time::Duration;
use parlor_testing::{Scratch, postgres, within};

const HOUR_US: u64 = 3_600_000_000;

/// A store with the node `a`, if there is a PostgreSQL.
struct Rig {
    scratch: Scratch,
    store: Store,
    session: NodeSession,
    a: NodeName,
}

impl Rig {
    async fn new() -> Option<Self> {
        let scratch = postgres().await?;
        let options = Options { node: Some("a".parse().unwrap()), ..Options::default() };
        let store = Store::open_with(&scratch.address, options).await.unwrap();
        let session = store.node_session().await.unwrap();
        Some(Rig { scratch, store, session, a: "a".parse().unwrap() })
    }

    /// Enters the node anew: its earlier incarnation is over.
    async fn owner(&self) -> Owner {
        self.enter(&self.a).await
    }

    async fn enter(&self, node: &NodeName) -> Owner {
        let line = "127.0.0.1:1".to_owned();
        let facts = NodeFacts { address: "127.0.0.1:7700".into(), shards: 1, line, build: "1".into() };
        let incarnation = self.session.enter(node, &facts, Duration::from_secs(60)).await.unwrap();
        Owner { node: node.as_str().to_owned(), incarnation }
    }

    async fn claimed(&self, claim: &RoomClaim) -> ClaimedRow {
        self.store.claimed_room(claim).await.unwrap().unwrap()
    }

    async fn claim(&self, claim: &RoomClaim, seen: &RoomKey, owner: &Owner) -> Option<TakenRoom> {
        self.store.claim_live_room(claim, seen, owner, "127.0.0.1:7701").await.unwrap()
    }

    async fn row(&self) -> Option<OwnedRow> {
        self.store.live_rooms_at(&["HELLO7".to_owned()]).await.unwrap().pop()
    }

    /// Lets all rooms have opened so long ago.
    async fn open_for(&self, us: u64) {
        let opened = self.store.write_sparing(move |sql| {
            sql.change("UPDATE live_rooms SET opened_us = opened_us - $1", params![us])
        });
        opened.await.unwrap();
    }

    async fn end(self) {
        drop(self.session);
        within(tokio::task::spawn_blocking(move || self.store.close())).await.unwrap();
        self.scratch.remove().await;
    }
}

fn new(owner: &Owner) -> NewLiveRoom {
    NewLiveRoom {
        code: "HELLO7".into(),
        uid: "0102030405060708090a0b0c0d0e0f10".into(),
        term: 1,
        owner: owner.clone(),
        address: "127.0.0.1:7700".into(),
        app: "tanks".into(),
        environment: "production".into(),
        kind: "match",
        label: String::new(),
        has_secret: false,
        max_players: 4,
        setup: None,
        host: None,
        token: None,
    }
}

/// A node that stood still while it was declared gone, and goes on as if nothing had been.
#[tokio::test]
async fn threat_34_what_an_earlier_incarnation_writes_changes_nothing() {
    let Some(rig) = Rig::new().await else { return };
    let zombie = rig.owner().await;
    assert_eq!(rig.store.enter_live_room(new(&zombie)).await, Ok(EnteredRow::Done));
    let key = rig.row().await.unwrap().key;
    assert_eq!(key.term, 1);
    // The room is of the node's next incarnation, under the next term.
    let present = rig.owner().await;
    assert_eq!(rig.store.retake_live_rooms(&present, core::slice::from_ref(&key)).await, Ok(1));
    let row = rig.row().await.unwrap();
    assert_eq!((row.key.term, &row.owner), (2, &present));
    let counts = Counts { members: 9, ..Counts::default() };
    let listed = rig.store.list_live_rooms_as(&zombie, &[(key.clone(), counts, None)]).await;
    assert_eq!(listed, Ok(0), "what is listed");
    let listed = rig.store.list_live_rooms_as(&zombie, &[(row.key.clone(), counts, None)]).await;
    assert_eq!(listed, Ok(0), "what is listed under the present term");
    // By the term alone, too.
    let listed = rig.store.list_live_rooms_as(&present, &[(key.clone(), counts, None)]).await;
    assert_eq!(listed, Ok(0), "what is listed under an earlier term");
    assert_eq!(rig.store.leave_live_rooms("a", core::slice::from_ref(&key)).await, Ok(0), "the end");
    assert_eq!(rig.store.retake_live_rooms(&zombie, core::slice::from_ref(&row.key)).await, Ok(0));
    assert_eq!(rig.store.retake_live_rooms(&present, &[key]).await, Ok(0));
    assert_eq!(rig.store.forget_live_rooms(&present).await, Ok(0), "a node that serves keeps its rooms");
    let other = NewLiveRoom { code: "HELLO8".into(), ..new(&zombie) };
    assert_eq!(rig.store.enter_live_room(other).await, Ok(EnteredRow::Fenced));
    let found = rig.store.find_live_room("HELLO7").await.unwrap().unwrap();
    assert_eq!((found.key, found.owner, found.listing.counts), (row.key, present, Counts::default()));
    rig.end().await;
}

/// The host of the room, as its pass of the first term has it.
fn host() -> RoomClaim {
    let room = new(&Owner { node: String::new(), incarnation: 0 });
    RoomClaim { code: room.code, uid: room.uid, term: 1, member: 3, hosts: Some(7), user: None }
}

#[tokio::test]
async fn threat_39_a_room_is_taken_once_and_only_from_a_dead_owner() {
    let Some(rig) = Rig::new().await else { return };
    let b: NodeName = "b".parse().unwrap();
    let (first, taker) = (rig.owner().await, rig.enter(&b).await);
    let room = NewLiveRoom { setup: Some(b"setup".to_vec()), host: Some(3), ..new(&first) };
    assert_eq!(rig.store.enter_live_room(room).await, Ok(EnteredRow::Done));
    let key = rig.row().await.unwrap().key;
    let roster = StoredRoster { bytes: b"roster".to_vec(), host: Some(3), epoch: 7 };
    let listed =
        rig.store.list_live_rooms_as(&first, &[(key.clone(), Counts::default(), Some(roster))]).await;
    assert_eq!(listed, Ok(1));

    let row = rig.claimed(&host()).await;
    assert_eq!((row.is_dead, row.outlives, row.may_reopen), (false, true, true));
    assert_eq!(rig.claim(&host(), &key, &taker).await, None, "its owner lives");

    let again = rig.owner().await;
    assert!(rig.claimed(&host()).await.is_dead, "its owner's incarnation is over");
    let guest = RoomClaim { member: 4, hosts: None, ..host() };
    assert!(!rig.claimed(&guest).await.may_reopen);
    assert_eq!(rig.claim(&guest, &key, &taker).await, None, "another member than its host");
    let early = RoomClaim { member: 4, hosts: Some(6), ..host() };
    assert_eq!(rig.claim(&early, &key, &taker).await, None, "the host of an earlier epoch");
    let other = RoomKey { term: 2, ..key.clone() };
    assert_eq!(rig.claim(&host(), &other, &taker).await, None, "another term");
    let late = Owner { incarnation: taker.incarnation + 1, ..taker.clone() };
    assert_eq!(rig.claim(&host(), &key, &late).await, None, "an incarnation that is not there");
    assert_eq!(rig.claim(&host(), &key, &first).await, None, "one that is over");

    let taken =
        TakenRoom { term: 2, setup: b"setup".to_vec(), roster: b"roster".to_vec(), snapshot: Vec::new() };
    rig.open_for(HOUR_US).await;
    assert_eq!(rig.claim(&host(), &key, &taker).await, Some(taken));
    assert_eq!(rig.claim(&host(), &key, &again).await, None, "it was taken");
    // Its node compares rows with rooms, and may not have this room yet.
    assert!(rig.row().await.unwrap().age_us < HOUR_US, "it is new there");
    let row = rig.claimed(&host()).await;
    assert_eq!((row.key.term, &row.owner, row.address.as_str()), (2, &taker, "127.0.0.1:7701"));
    assert_eq!(rig.store.leave_live_rooms("a", &[key]).await, Ok(0), "its first owner's end of it");
    rig.end().await;
}

#[tokio::test]
async fn a_room_without_a_setup_ends_with_its_node() {
    let Some(rig) = Rig::new().await else { return };
    let first = rig.owner().await;
    assert_eq!(rig.store.enter_live_room(new(&first)).await, Ok(EnteredRow::Done));
    let key = rig.row().await.unwrap().key;
    let again = rig.owner().await;
    let row = rig.claimed(&host()).await;
    assert_eq!((row.is_dead, row.outlives), (true, false));
    assert_eq!(rig.claim(&host(), &key, &again).await, None);
    rig.end().await;
}

impl Rig {
    async fn give(&self, key: &RoomKey, from: &Owner, to: &Owner) -> Option<u64> {
        self.store.give_live_room(key, (from, to), "127.0.0.1:7701", b"snapshot").await.unwrap()
    }

    async fn keep(&self, key: &RoomKey, owner: &Owner) -> Option<u64> {
        self.store.keep_live_room(key, owner).await.unwrap()
    }
}

#[tokio::test]
async fn threat_34_a_room_is_given_to_a_node_that_serves_and_its_snapshot_is_taken_once() {
    let Some(rig) = Rig::new().await else { return };
    let b: NodeName = "b".parse().unwrap();
    let (earlier, a, to) = (rig.owner().await, rig.owner().await, rig.enter(&b).await);
    let room = NewLiveRoom { setup: Some(b"setup".to_vec()), host: Some(3), ..new(&a) };
    assert_eq!(rig.store.enter_live_room(room).await, Ok(EnteredRow::Done));
    let key = rig.row().await.unwrap().key;
    assert_eq!(rig.give(&RoomKey { term: 2, ..key.clone() }, &a, &to).await, None, "another term");
    assert_eq!(rig.give(&key, &earlier, &to).await, None, "an earlier incarnation");
    let late = Owner { incarnation: to.incarnation + 1, ..to.clone() };
    assert_eq!(rig.give(&key, &a, &late).await, None, "a node that is not there");
    rig.store.drain_node(&b, true).await.unwrap();
    assert_eq!(rig.give(&key, &a, &to).await, None, "a node that takes no rooms");
    rig.store.drain_node(&b, false).await.unwrap();

    assert_eq!(rig.give(&key, &a, &to).await, Some(2));
    assert_eq!(rig.give(&key, &a, &to).await, None, "twice");
    assert_eq!(rig.keep(&key, &a).await, None, "it is the other node's");
    // Any member may bring it to its node, which takes it once.
    let guest = RoomClaim { member: 4, hosts: None, ..host() };
    let row = rig.claimed(&guest).await;
    assert_eq!((&row.owner, row.key.term, row.may_reopen), (&to, 2, true));
    let taken = rig.claim(&guest, &row.key, &to).await.unwrap();
    assert_eq!((taken.term, taken.snapshot.as_slice()), (3, b"snapshot".as_slice()));
    let row = rig.claimed(&host()).await;
    assert_eq!(row.host, Some(3), "the guest that came first is not its host");
    assert_eq!(rig.claim(&host(), &row.key, &to).await.unwrap().snapshot, b"");
    rig.end().await;
}

#[tokio::test]
async fn threat_34_a_room_that_is_kept_cannot_be_given_by_a_statement_that_comes_late() {
    let Some(rig) = Rig::new().await else { return };
    let b: NodeName = "b".parse().unwrap();
    let (earlier, to) = (rig.owner().await, rig.enter(&b).await);
    let room = NewLiveRoom { setup: Some(b"setup".to_vec()), host: Some(3), ..new(&earlier) };
    assert_eq!(rig.store.enter_live_room(room).await, Ok(EnteredRow::Done));
    let key = rig.row().await.unwrap().key;
    // It is for the node's present incarnation that the room is kept.
    let a = rig.owner().await;
    assert_eq!(rig.keep(&key, &earlier).await, None);
    assert_eq!(rig.keep(&key, &a).await, Some(2));
    assert_eq!(rig.give(&key, &earlier, &to).await, None);
    assert_eq!(rig.row().await.unwrap().owner, a);
    // A room that was given and not taken yet goes on at a third node, if its own dies.
    let key = rig.row().await.unwrap().key;
    assert_eq!(rig.give(&key, &a, &to).await, Some(3));
    rig.enter(&b).await;
    let row = rig.claimed(&RoomClaim { term: 2, ..host() }).await;
    assert!(row.is_dead);
    let again = rig.owner().await;
    let taken = rig.claim(&host(), &row.key, &again).await.unwrap();
    assert_eq!((taken.term, taken.snapshot.as_slice()), (4, b"snapshot".as_slice()));
    rig.end().await;
}
