//! Shards of several nodes, which find each other's rooms in one store.

use super::{Beside, Directory, Shard, channel, run};
use crate::clock::Clock;
use crate::connection;
use crate::mutex::lock;
use crate::node::{FoundElsewhere, Node, NodeShard, Wanted};
use core::time::Duration;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::cluster::placement::OpenNode;
use parlor_hub::cluster::tenure::Standing;
use parlor_hub::{
    ClaimAnswer, ClaimedRoom, ClusterConfig, ClusterView, Config, Entered, EnteredRoom, Hub, Located, Origin,
    RoomUid,
};
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Hello, Refusal};
use parlor_proto::{MemberId, RoomCode};
use parlor_testing::{Client, creating, joining, within};
use parlor_transport::memory;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};

/// A stranger's address, which has a budget of guesses.
const STRANGER: Origin = Origin(7 << 16);

/// A store in memory, and what each node knows of the cluster.
struct Store {
    rooms: Mutex<BTreeMap<RoomCode, (EnteredRoom, usize)>>,
    views: Mutex<Vec<ClusterView>>,
    is_cut: Mutex<bool>,
}

impl Store {
    fn set(&self, node: usize, change: impl FnOnce(&mut ClusterView)) {
        change(&mut lock(&self.views)[node]);
    }

    fn codes(&self) -> Vec<RoomCode> {
        lock(&self.rooms).keys().copied().collect()
    }
}

/// One of its nodes, which has one shard.
struct InMemory {
    store: Arc<Store>,
    own: usize,
}

fn address(node: usize) -> String {
    format!("node-{node}.example:7700")
}

impl Node for InMemory {
    fn view(&self) -> ClusterView {
        lock(&self.store.views)[self.own].clone()
    }

    fn drains(&self) -> bool {
        self.view().standing == Standing::Draining
    }

    fn drain(&self) -> BoxFuture<'static, ()> {
        unreachable!("shards drain nothing")
    }

    fn pass_key(&self) -> PassKey {
        unreachable!("these hubs give no passes")
    }

    fn claim(&self, _: usize, _: ClaimedRoom) -> BoxFuture<'static, ClaimAnswer> {
        unreachable!("a hub without a key asks for no seat")
    }

    fn locate(&self, wanted: Wanted) -> BoxFuture<'static, Located> {
        let located = if *lock(&self.store.is_cut) {
            Located::Later
        } else {
            match lock(&self.store.rooms).get(&wanted.code) {
                Some((room, _)) if (&room.app, &room.environment) != (&wanted.app, &wanted.environment) => {
                    Located::Nowhere
                }
                Some((_, node)) if *node == self.own => Located::Here,
                Some((_, node)) => Located::At(address(*node)),
                None => Located::Nowhere,
            }
        };
        ready(located).boxed()
    }

    fn enter(&self, _: usize, room: EnteredRoom) -> BoxFuture<'static, Entered> {
        let mut rooms = lock(&self.store.rooms);
        let entered = if *lock(&self.store.is_cut) {
            Entered::Later
        } else if let Entry::Vacant(free) = rooms.entry(room.code) {
            free.insert((room, self.own));
            Entered::Done
        } else {
            Entered::Taken
        };
        ready(entered).boxed()
    }

    fn left(&self, code: RoomCode, uid: RoomUid) {
        let mut rooms = lock(&self.store.rooms);
        if rooms.get(&code).is_some_and(|(room, _)| room.uid == uid) {
            rooms.remove(&code);
        }
    }

    fn find_elsewhere(&self, _: RoomCode) -> BoxFuture<'static, FoundElsewhere> {
        unreachable!("shards show no pages")
    }
}

fn nodes() -> (Arc<Store>, [Shard; 2]) {
    let view = ClusterView {
        standing: Standing::Held,
        load_permille: 0,
        others: Arc::default(),
        rooms_elsewhere: 0,
    };
    let store = Arc::new(Store {
        rooms: Mutex::default(),
        views: Mutex::new(vec![view; 2]),
        is_cut: Mutex::new(false),
    });
    let shards = [0, 1].map(|own| {
        let (shard, inputs) = channel();
        let seed = [u8::try_from(own).unwrap(); 32];
        let hub = Hub::new(Config { cluster: Some(ClusterConfig::default()), ..Config::new(seed) });
        let node = InMemory { store: Arc::clone(&store), own };
        let beside = Beside { node: Some(NodeShard::new(Arc::new(node), 0)), ..Beside::default() };
        tokio::spawn(run(hub, Clock::start(), inputs, None, Directory::default(), beside));
        shard
    });
    (store, shards)
}

fn connect(shard: &Shard, hello: Hello) -> Client {
    let (ours, theirs) = memory::pair();
    let shard = shard.clone();
    tokio::spawn(async move { connection::serve(theirs, STRANGER, &shard).await });
    Client::new(ours, hello)
}

async fn rejection(shard: &Shard, hello: Hello) -> Rejection {
    match connect(shard, hello).event().await {
        Event::Rejected(rejection) => rejection,
        event => panic!("{event:?} instead of a rejection"),
    }
}

async fn redirect(shard: &Shard, hello: Hello) -> String {
    match rejection(shard, hello).await {
        Rejection::Redirect(redirect) => redirect.address,
        answer => panic!("{answer:?} instead of a redirect"),
    }
}

async fn is_put_off(shard: &Shard, hello: Hello) -> bool {
    matches!(rejection(shard, hello).await, Rejection::RetryAfter(after) if after.after == Duration::from_secs(1))
}

#[tokio::test]
async fn a_code_that_was_opened_at_one_node_is_found_from_the_other() {
    let (store, [a, b]) = nodes();
    let mut host = connect(&a, creating(None, None, 4));
    let code = host.welcome().await.code;
    assert_eq!(store.codes(), [code]);
    assert_eq!(redirect(&b, joining(code, None)).await, address(0));
    let mut guest = connect(&a, joining(code, None));
    assert_eq!(guest.welcome().await.member, MemberId(1));
    host.leave().await;
    guest.leave().await;
    // The entry goes with the room.
    within(async {
        while !store.codes().is_empty() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(matches!(rejection(&b, joining(code, None)).await, Rejection::Refused(Refusal::NoSuchRoom)));
}

#[tokio::test]
async fn a_chosen_code_is_taken_in_the_whole_cluster() {
    let (_, [a, b]) = nodes();
    let code = "MYROOM".parse().unwrap();
    let mut host = connect(&a, creating(Some(code), None, 4));
    host.welcome().await;
    let refused = rejection(&b, creating(Some(code), None, 4)).await;
    assert_eq!(refused, Rejection::Refused(Refusal::CodeTaken));
}

#[tokio::test]
async fn threat_10_a_wrong_code_costs_a_guess_at_the_node_that_is_asked() {
    let (_, [a, b]) = nodes();
    let mut host = connect(&a, creating(None, None, 4));
    let code = host.welcome().await.code;
    for number in 0..20 {
        let wrong = format!("WRNG{}", char::from(b'A' + number)).parse().unwrap();
        let refused = rejection(&b, joining(wrong, None)).await;
        assert_eq!(refused, Rejection::Refused(Refusal::NoSuchRoom), "{wrong}");
    }
    // The budget is used up: the answer is the same for right codes and wrong ones.
    for code in [code, "WRONG".parse().unwrap()] {
        let answer = rejection(&b, joining(code, None)).await;
        assert!(matches!(answer, Rejection::RetryAfter(_)), "{answer:?}");
    }
}

#[tokio::test]
async fn threat_10_a_room_of_another_environment_is_nowhere() {
    let (_, [a, b]) = nodes();
    let mut host = connect(&a, Hello { environment: "secret".into(), ..creating(None, None, 4) });
    let code = host.welcome().await.code;
    assert_eq!(rejection(&b, joining(code, None)).await, Rejection::Refused(Refusal::NoSuchRoom));
}

#[tokio::test]
async fn a_lapsed_node_puts_newcomers_off_while_the_members_of_its_rooms_go_on() {
    let (store, [a, _]) = nodes();
    let mut host = connect(&a, creating(None, None, 4));
    let code = host.welcome().await.code;
    let mut guest = connect(&a, joining(code, None));
    guest.welcome().await;
    host.joined(2).await;
    guest.joined(2).await;
    store.set(0, |view| view.standing = Standing::Lapsed);
    assert!(is_put_off(&a, joining(code, None)).await);
    assert!(is_put_off(&a, creating(None, None, 4)).await);
    host.say("still here").await;
    assert_eq!(guest.heard().await.1, "still here");
    store.set(0, |view| view.standing = Standing::Held);
    connect(&a, joining(code, None)).welcome().await;
}

#[tokio::test]
async fn without_the_store_nothing_is_opened_and_nothing_is_found() {
    let (store, [a, b]) = nodes();
    let mut host = connect(&a, creating(None, None, 4));
    let code = host.welcome().await.code;
    *lock(&store.is_cut) = true;
    assert!(is_put_off(&b, joining(code, None)).await);
    assert!(is_put_off(&b, creating(None, None, 4)).await);
    // A room that is here needs no store.
    connect(&a, joining(code, None)).welcome().await;
}

#[tokio::test]
async fn a_new_room_goes_to_a_node_that_is_less_busy_and_a_draining_node_takes_none() {
    let (store, [a, b]) = nodes();
    let other = OpenNode { address: address(1), load_permille: 300 };
    store.set(0, |view| (view.load_permille, view.others) = (900, [other].into()));
    assert_eq!(redirect(&a, creating(None, None, 4)).await, address(1));
    store.set(0, |view| view.load_permille = 300);
    let mut host = connect(&a, creating(None, None, 4));
    let code = host.welcome().await.code;
    store.set(0, |view| view.standing = Standing::Draining);
    assert_eq!(redirect(&a, creating(None, None, 4)).await, address(1));
    assert_eq!(redirect(&a, creating(Some("MYROOM".parse().unwrap()), None, 4)).await, address(1));
    // Its rooms take members until they have gone.
    connect(&a, joining(code, None)).welcome().await;
    connect(&b, creating(None, None, 4)).welcome().await;
}
