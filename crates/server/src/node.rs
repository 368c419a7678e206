//! A server as a node of a cluster: what its shards ask the services beside it.

use core::time::Duration;
use futures_util::future::BoxFuture;
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::{ClaimAnswer, ClaimedRoom, ClusterView, Entered, EnteredRoom, Located, Output, RoomUid};
use parlor_proto::{ConnectionId, RoomCode};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a shard waits for the store. Its client waits longer, so it gets an answer.
const ANSWER_TIME: Duration = Duration::from_secs(3);

/// A server's connection to its cluster. Shards call it between packets: no method waits, and the futures run beside
/// the packets.
pub trait Node: Send + Sync {
    /// What the node knows of its cluster. Called in each cycle of each shard, before it decides anything: a lease
    /// that is over by the present time is none.
    fn view(&self) -> ClusterView;

    /// Whether the node is ordered to take no more rooms.
    fn drains(&self) -> bool;

    /// Orders the node to take no more rooms. Repeats it until the store has the order.
    fn drain(&self) -> BoxFuture<'static, ()>;

    /// The key of the cluster's passes, which all its nodes have.
    fn pass_key(&self) -> PassKey;

    /// Finds a room that the asking shard does not have.
    fn locate(&self, wanted: Wanted) -> BoxFuture<'static, Located>;

    /// Enters a room of shard number `shard` under its code, if no room has that.
    fn enter(&self, shard: usize, room: EnteredRoom) -> BoxFuture<'static, Entered>;

    /// Finds out whose a room is of which a member claims its seat at shard number `shard`. If it is to be reopened
    /// there, the room is this node's from now on.
    fn claim(&self, shard: usize, room: ClaimedRoom) -> BoxFuture<'static, ClaimAnswer>;

    /// Deletes a room's entry, if there is one with this uid. Repeats it until the store has done it.
    fn left(&self, code: RoomCode, uid: RoomUid);

    /// Finds a room of another node, for pages.
    fn find_elsewhere(&self, code: RoomCode) -> BoxFuture<'static, FoundElsewhere>;
}

/// What is found of a room at other nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundElsewhere {
    /// Another node has it.
    Room(ElsewhereRoom),
    /// No other node has it.
    Nowhere,
    /// It is not known: the store does not answer.
    Later,
}

/// A room of another node, as of at most a second ago.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElsewhereRoom {
    /// Its code.
    pub code: RoomCode,
    /// Its game.
    pub app: String,
    /// Where its hub is: `HOST:PORT[#FINGERPRINT]`.
    pub address: String,
    /// Its players.
    pub players: u64,
    /// Players that it may have at once.
    pub max_players: u64,
    /// Whether joining needs a secret beside the code.
    pub needs_secret: bool,
}

/// A room that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its code.
    pub code: RoomCode,
    /// The client's game. A room of another one is [`Located::Nowhere`].
    pub app: String,
    /// The client's environment, as it names it: none means the default one.
    pub environment: String,
    /// The number of the shard that asks.
    pub shard: usize,
}

/// The part of one shard.
pub(crate) struct NodeShard {
    node: Arc<dyn Node>,
    shard: usize,
    /// Questions to the store. As many as hellos wait for at the hub.
    asked: JoinSet<Answer>,
}

/// An answer of the store.
pub(crate) enum Answer {
    Located(ConnectionId, Located),
    Entered(ConnectionId, Entered),
    Claimed(ConnectionId, ClaimAnswer),
}

impl NodeShard {
    pub(crate) fn new(node: Arc<dyn Node>, shard: usize) -> Self {
        NodeShard { node, shard, asked: JoinSet::new() }
    }

    pub(crate) fn view(&self) -> ClusterView {
        self.node.view()
    }

    /// Asks what the hub wants to know.
    pub(crate) fn ask(&mut self, output: Output) {
        match output {
            Output::Locate { connection, code, app, environment } => {
                let answer = self.node.locate(Wanted { code, app, environment, shard: self.shard });
                self.asked.spawn(async move {
                    let located = timeout(ANSWER_TIME, answer).await.unwrap_or(Located::Later);
                    Answer::Located(connection, located)
                });
            }
            Output::Enter { connection, room } => {
                let answer = self.node.enter(self.shard, room);
                self.asked.spawn(async move {
                    let entered = timeout(ANSWER_TIME, answer).await.unwrap_or(Entered::Later);
                    Answer::Entered(connection, entered)
                });
            }
            Output::Claim { connection, room } => {
                let answer = self.node.claim(self.shard, room);
                self.asked.spawn(async move {
                    let claimed = timeout(ANSWER_TIME, answer).await.unwrap_or(ClaimAnswer::Later);
                    Answer::Claimed(connection, claimed)
                });
            }
            Output::Left { code, uid } => self.node.left(code, uid),
            Output::Packet { .. }
            | Output::Close { .. }
            | Output::Recorded { .. }
            | Output::Kept { .. }
            | Output::Event(_) => unreachable!("the shard carries these out itself"),
        }
    }

    /// Waits for the next answer. May be cancelled.
    pub(crate) async fn answered(&mut self) -> Answer {
        loop {
            match self.asked.join_next().await {
                Some(Ok(answer)) => return answer,
                Some(Err(error)) => {
                    tracing::error!(%error, "a question to the store failed; please report this");
                }
                None => core::future::pending().await,
            }
        }
    }
}
