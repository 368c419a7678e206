//! The directory of live rooms: every node finds a room by its code, at whatever node it is.
//!
//! A room is a row from its opening on, so no two nodes open rooms under one code. Its row has its node's name,
//! incarnation and term; what changes it names all three. This node keeps what it entered, compares it with the rows
//! once a second, and enters again what the store lost.

mod arrivals;
mod claims;
mod listing;
mod moves;
mod reconcile;
mod sweep;
mod taking;

use super::line::Line;
use super::nodes::{Nodes, NodesView};
use super::standing::StandingView;
use crate::store::{
    EnteredRow, FoundRoom, LivePage, LiveQuery, NewLiveRoom, NodeName, NodeState, Owner, RoomKey, Store,
    StoreError,
};
use arrivals::Arrivals;
use claims::ClaimCounts;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use data_encoding::HEXLOWER;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use listing::Listed;
use moves::MoveCounts;
pub(crate) use moves::MoveError;
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::cluster::placement::OpenNode;
use parlor_hub::{ClaimAnswer, ClaimedRoom, ClusterView, Entered, EnteredRoom, Located, RoomUid};
use parlor_proto::RoomCode;
use parlor_proto::wire::handshake::RoomKind;
use parlor_server::embed::{ElsewhereRoom, FoundElsewhere, Node, Shards, Wanted, lock};
use parlor_server::realm::ENVIRONMENT;
use parlor_transport::discovery::ServerAddress;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock};
use taking::Taking;
use tokio::runtime::Handle;
use tokio::sync::Notify;

/// Pause after the store failed to delete rows.
const AGAIN: Duration = Duration::from_millis(500);

/// The directory, seen from this node. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Directory(Arc<Inner>);

struct Inner {
    store: Store,
    node: NodeName,
    build: String,
    standing: StandingView,
    nodes: NodesView,
    /// Those of the shards, in their order.
    addresses: Vec<ServerAddress>,
    /// What this node entered and has.
    rooms: Mutex<HashMap<RoomCode, OwnRoom>>,
    /// Rows to delete, by the rooms' names.
    leaving: Mutex<BTreeMap<String, RoomKey>>,
    leaves: Notify,
    others: Mutex<Others>,
    located: [AtomicU64; 4],
    fenced: [AtomicU64; 3],
    claims: ClaimCounts,
    pass_key: PassKey,
    taking: Taking,
    arrivals: Arrivals,
    moves: MoveCounts,
    /// Once it is served.
    served: OnceLock<(Shards, Line)>,
}

/// A room of this node.
struct OwnRoom {
    new: NewLiveRoom,
    listed: Listed,
    /// Whether the store has another room under its code: it is found at this node alone.
    is_homeless: bool,
}

impl OwnRoom {
    fn new(new: NewLiveRoom) -> Self {
        OwnRoom { new, listed: Listed::default(), is_homeless: false }
    }
}

/// What the hubs know of the other nodes.
struct Others {
    of: Arc<Nodes>,
    open: Arc<[OpenNode]>,
    rooms_elsewhere: usize,
    load_permille: u16,
}

/// What a lookup found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Here,
    Elsewhere,
    Nowhere,
    Later,
}

/// What another node's rows kept this one from doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fenced {
    Enter,
    List,
    Keep,
}

impl Directory {
    pub(super) fn new(
        store: Store,
        node: NodeName,
        build: &str,
        standing: StandingView,
        nodes: NodesView,
        (addresses, pass_key): (Vec<ServerAddress>, PassKey),
    ) -> Self {
        let others = Others { of: nodes.get(), open: Arc::default(), rooms_elsewhere: 0, load_permille: 0 };
        Directory(Arc::new(Inner {
            store,
            node,
            build: build.to_owned(),
            standing,
            nodes,
            addresses,
            rooms: Mutex::default(),
            leaving: Mutex::default(),
            leaves: Notify::new(),
            others: Mutex::new(others),
            located: Default::default(),
            fenced: Default::default(),
            claims: ClaimCounts::default(),
            pass_key,
            taking: Taking::default(),
            arrivals: Arrivals::default(),
            moves: MoveCounts::default(),
            served: OnceLock::new(),
        }))
    }

    /// Runs what it does by itself.
    pub(super) fn serve(&self, shards: Shards, line: Line, runtime: &Handle) {
        let _ = self.0.served.set((shards.clone(), line));
        runtime.spawn(self.clone().leave_all());
        runtime.spawn(self.clone().list_all(shards));
        runtime.spawn(self.clone().sweep());
        runtime.spawn(self.clone().move_all());
    }

    /// Where the room with a code is.
    pub(crate) async fn find(&self, code: RoomCode) -> Result<Option<FoundRoom>, StoreError> {
        self.0.store.find_live_room(code.as_str()).await
    }

    /// Lists rooms of all nodes.
    pub(crate) async fn list(&self, query: LiveQuery) -> Result<LivePage, StoreError> {
        self.0.store.listed_live_rooms(query).await
    }

    /// Deletes the rows of rooms that have ended, until there are none left.
    pub(super) async fn flush(&self) {
        while !lock(&self.0.leaving).is_empty() {
            if !self.leave().await {
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Counts of lookups, by their answers.
    pub(crate) fn located(&self) -> [(&'static str, u64); 4] {
        let count = |answer: Answer| self.0.located[answer as usize].load(Ordering::Relaxed);
        [
            ("here", count(Answer::Here)),
            ("elsewhere", count(Answer::Elsewhere)),
            ("nowhere", count(Answer::Nowhere)),
            ("later", count(Answer::Later)),
        ]
    }

    /// Counts of what the rows of other nodes kept this one from doing.
    pub(crate) fn fenced(&self) -> [(&'static str, u64); 3] {
        let count = |what: Fenced| self.0.fenced[what as usize].load(Ordering::Relaxed);
        [("enter", count(Fenced::Enter)), ("list", count(Fenced::List)), ("keep", count(Fenced::Keep))]
    }

    fn count_fenced(&self, what: Fenced, rooms: u64) {
        self.0.fenced[what as usize].fetch_add(rooms, Ordering::Relaxed);
    }

    /// The present incarnation of this node.
    fn owner(&self) -> Option<Owner> {
        let incarnation = self.0.standing.incarnation()?;
        Some(Owner { node: self.0.node.as_str().to_owned(), incarnation })
    }

    async fn leave_all(self) {
        loop {
            self.0.leaves.notified().await;
            self.flush().await;
        }
    }

    /// Deletes the rows of rooms that have ended. Returns whether the store did it.
    async fn leave(&self) -> bool {
        let leaving: Vec<RoomKey> = lock(&self.0.leaving).values().cloned().collect();
        match self.0.store.leave_live_rooms(self.0.node.as_str(), &leaving).await {
            Ok(_) => {
                let mut left = lock(&self.0.leaving);
                leaving.iter().for_each(|key| drop(left.remove(&key.uid)));
                true
            }
            Err(error) => {
                tracing::debug!(%error, "rooms that have ended are still found");
                false
            }
        }
    }

    async fn answer(&self, wanted: &Wanted) -> (Answer, Located) {
        let found = match self.find(wanted.code).await {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(%error, "a room could not be looked for");
                return (Answer::Later, Located::Later);
            }
        };
        let environment = environment(&wanted.environment);
        let is_wanted =
            |found: &FoundRoom| found.listing.app == wanted.app && found.listing.environment == environment;
        let Some(found) = found.filter(is_wanted) else { return (Answer::Nowhere, Located::Nowhere) };
        if found.owner.node != self.0.node.as_str() {
            if !found.is_served {
                return (Answer::Later, Located::Later);
            }
            return (Answer::Elsewhere, Located::At(found.address));
        }
        let shard = self.0.addresses.iter().position(|address| address.to_string() == found.address);
        match shard {
            // A port alone: the client keeps the name by which it came.
            Some(shard) if shard != wanted.shard => {
                (Answer::Elsewhere, Located::At(format!(":{}", self.0.addresses[shard].port)))
            }
            _ => (Answer::Here, Located::Here),
        }
    }

    async fn enter_row(&self, new: NewLiveRoom) -> Entered {
        let code = new.code.clone();
        match self.0.store.enter_live_room(new).await {
            Ok(EnteredRow::Done) => Entered::Done,
            Ok(EnteredRow::Taken) => Entered::Taken,
            Ok(EnteredRow::Used) => Entered::Used,
            Ok(EnteredRow::Fenced) => {
                self.count_fenced(Fenced::Enter, 1);
                Entered::Later
            }
            Err(error) => {
                tracing::debug!(%code, %error, "a room could not be entered");
                Entered::Later
            }
        }
    }
}

impl Node for Directory {
    fn view(&self) -> ClusterView {
        let nodes = self.0.nodes.get();
        let mut others = lock(&self.0.others);
        if !Arc::ptr_eq(&others.of, &nodes) {
            *others = of_others(nodes, &self.0.node, &self.0.build);
        }
        ClusterView {
            standing: self.0.standing.get(),
            load_permille: others.load_permille,
            others: Arc::clone(&others.open),
            rooms_elsewhere: others.rooms_elsewhere,
        }
    }

    fn drains(&self) -> bool {
        let nodes = self.0.nodes.get();
        nodes.serving_as(self.0.node.as_str()).is_some_and(|node| node.state == NodeState::Draining)
    }

    fn drain(&self) -> BoxFuture<'static, ()> {
        let directory = self.clone();
        async move {
            while let Err(error) = directory.0.store.drain_node(&directory.0.node, true).await {
                tracing::debug!(%error, "the other nodes do not know yet that this one drains");
                tokio::time::sleep(AGAIN).await;
            }
        }
        .boxed()
    }

    fn locate(&self, wanted: Wanted) -> BoxFuture<'static, Located> {
        let directory = self.clone();
        async move {
            let (answer, located) = directory.answer(&wanted).await;
            directory.0.located[answer as usize].fetch_add(1, Ordering::Relaxed);
            located
        }
        .boxed()
    }

    fn enter(&self, shard: usize, room: EnteredRoom) -> BoxFuture<'static, Entered> {
        let directory = self.clone();
        let Some((owner, address)) = self.owner().zip(self.0.addresses.get(shard)) else {
            return core::future::ready(Entered::Later).boxed();
        };
        let new = NewLiveRoom {
            code: room.code.as_str().to_owned(),
            uid: HEXLOWER.encode(&room.uid.0),
            term: 1,
            owner,
            address: address.to_string(),
            app: room.app,
            environment: environment(&room.environment).to_owned(),
            kind: room.kind.as_str(),
            label: room.label,
            has_secret: room.needs_secret,
            max_players: room.max_players.into(),
            token: room.token,
            setup: (!room.setup.is_empty()).then(|| room.setup.to_vec()),
            // Whoever opens a room is its first member.
            host: (room.kind != RoomKind::Match).then_some(0),
        };
        // Before the row is there: a row of this node that it does not know is deleted.
        lock(&self.0.rooms).insert(room.code, OwnRoom::new(new.clone()));
        async move {
            let (code, uid) = (room.code, new.uid.clone());
            let entered = directory.enter_row(new).await;
            if matches!(entered, Entered::Taken | Entered::Used) {
                directory.forget(code, &uid);
            }
            entered
        }
        .boxed()
    }

    fn pass_key(&self) -> PassKey {
        self.0.pass_key.clone()
    }

    fn claim(&self, shard: usize, room: ClaimedRoom) -> BoxFuture<'static, ClaimAnswer> {
        let directory = self.clone();
        async move { directory.claim_room(shard, room).await }.boxed()
    }

    fn left(&self, code: RoomCode, uid: RoomUid) {
        let uid = HEXLOWER.encode(&uid.0);
        let term = self.forget(code, &uid).unwrap_or(1);
        let key = RoomKey { code: code.as_str().to_owned(), uid: uid.clone(), term };
        lock(&self.0.leaving).insert(uid, key);
        self.0.leaves.notify_one();
    }

    fn find_elsewhere(&self, code: RoomCode) -> BoxFuture<'static, FoundElsewhere> {
        let directory = self.clone();
        async move {
            match directory.find(code).await {
                Ok(Some(found)) if found.is_served && found.owner.node != directory.0.node.as_str() => {
                    let listing = found.listing;
                    FoundElsewhere::Room(ElsewhereRoom {
                        code,
                        app: listing.app,
                        address: found.address,
                        players: listing.counts.players,
                        max_players: listing.max_players,
                        needs_secret: listing.has_secret,
                    })
                }
                Ok(_) => FoundElsewhere::Nowhere,
                Err(_) => FoundElsewhere::Later,
            }
        }
        .boxed()
    }
}

impl Directory {
    /// Works on a room of this node, if it still has that one under the code.
    fn with_own<T>(&self, code: RoomCode, uid: &str, work: impl FnOnce(&mut OwnRoom) -> T) -> Option<T> {
        lock(&self.0.rooms).get_mut(&code).filter(|own| own.new.uid == uid).map(work)
    }

    /// Forgets a room of this node, and returns its term.
    fn forget(&self, code: RoomCode, uid: &str) -> Option<u64> {
        let mut rooms = lock(&self.0.rooms);
        let term = rooms.get(&code).filter(|own| own.new.uid == uid)?.new.term;
        rooms.remove(&code);
        Some(term)
    }
}

/// What a node's hubs know of the others.
fn of_others(nodes: Arc<Nodes>, own: &NodeName, build: &str) -> Others {
    let permille = |load: u64| u16::try_from(load).unwrap_or(u16::MAX);
    let load_permille = nodes.serving_as(own.as_str()).map_or(0, |node| permille(node.load.permille));
    let others = || nodes.serving().filter(|node| node.id != *own);
    let open = nodes.open().filter(|node| node.id != *own && node.build == build);
    let open = open
        .map(|node| OpenNode { address: node.address.clone(), load_permille: permille(node.load.permille) })
        .collect();
    let rooms = others().fold(0_u64, |sum, node| sum.saturating_add(node.load.rooms));
    let rooms_elsewhere = usize::try_from(rooms).unwrap_or(usize::MAX);
    Others { of: nodes, open, rooms_elsewhere, load_permille }
}

/// The environment as the store names it: none is the default one.
fn environment(named: &str) -> &str {
    if named.is_empty() { ENVIRONMENT } else { named }
}
