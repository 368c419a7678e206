use super::*;
use crate::store::{NodeFacts, NodeName, NodeSession, Options};
use core::time::Duration;
use parlor_testing::{Scratch, postgres, within};

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
        let line = "127.0.0.1:1".to_owned();
        let facts = NodeFacts { address: "127.0.0.1:7700".into(), shards: 1, line, build: "1".into() };
        let incarnation = self.session.enter(&self.a, &facts, Duration::from_secs(60)).await.unwrap();
        Owner { node: self.a.as_str().to_owned(), incarnation }
    }

    async fn row(&self) -> Option<OwnedRow> {
        self.store.live_rooms_at(&["HELLO7".to_owned()]).await.unwrap().pop()
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
