//! How the rest of the server talks to a shard.

use core::fmt;
use parlor_hub::{Origin, RoomSummary, Stats};
use parlor_proto::{ConnectionId, Packet, RoomCode};
use parlor_transport::{LinkClosed, LinkSender};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Inputs that may wait for the shard. Whoever brings more waits, and with it whoever sends to it.
pub(super) const INPUTS_MAX: usize = 512;

/// What a shard is told.
pub(super) enum Input {
    /// A link was accepted. Its id is new.
    Connected { connection: ConnectionId, origin: Origin, sender: LinkSender },
    /// Packets came.
    Packets { connection: ConnectionId, packets: Vec<Packet> },
    /// The link is over; perhaps because the peer broke its rules.
    Disconnected { connection: ConnectionId, is_violation: bool },
    /// Somebody asks about a room.
    Room { code: RoomCode, answer: oneshot::Sender<Option<RoomSummary>> },
    /// Somebody asks how much there is.
    Stats { answer: oneshot::Sender<Stats> },
    /// End all rooms, say goodbye to everybody, and stop.
    ShutDown,
}

/// The shard has stopped, so it takes and answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server is going down")
    }
}

/// Talks to a shard. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shard {
    inputs: mpsc::Sender<Input>,
    numbers: Numbers,
}

/// Numbers the connections of a shard. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    /// The next.
    pub(crate) fn next(&self) -> ConnectionId {
        ConnectionId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Shard {
    pub(super) fn new(inputs: mpsc::Sender<Input>) -> Self {
        Shard { inputs, numbers: Numbers::default() }
    }

    /// What numbers its connections, whichever port they came to.
    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Hands over the sending half of a link that was accepted.
    pub(crate) async fn connected(
        &self,
        sender: LinkSender,
        origin: Origin,
    ) -> Result<ConnectionId, Stopped> {
        let connection = self.numbers.next();
        self.tell(Input::Connected { connection, origin, sender }).await?;
        Ok(connection)
    }

    pub(crate) async fn packets(
        &self,
        connection: ConnectionId,
        packets: Vec<Packet>,
    ) -> Result<(), Stopped> {
        self.tell(Input::Packets { connection, packets }).await
    }

    pub(crate) async fn disconnected(
        &self,
        connection: ConnectionId,
        end: &LinkClosed,
    ) -> Result<(), Stopped> {
        let is_violation = matches!(end, LinkClosed::NotParlor(_));
        self.tell(Input::Disconnected { connection, is_violation }).await
    }

    pub(crate) async fn room(&self, code: RoomCode) -> Result<Option<RoomSummary>, Stopped> {
        self.ask(|answer| Input::Room { code, answer }).await
    }

    pub(crate) async fn stats(&self) -> Result<Stats, Stopped> {
        self.ask(|answer| Input::Stats { answer }).await
    }

    pub(crate) async fn shut_down(&self) -> Result<(), Stopped> {
        self.tell(Input::ShutDown).await
    }

    async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> Input) -> Result<T, Stopped> {
        let (answer, answered) = oneshot::channel();
        self.tell(question(answer)).await?;
        answered.await.map_err(|_| Stopped)
    }

    async fn tell(&self, input: Input) -> Result<(), Stopped> {
        self.inputs.send(input).await.map_err(|_| Stopped)
    }
}

/// All shards of a server, as one of them sees them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shards {
    all: Arc<[Shard]>,
    own: usize,
    homes: Arc<parlor_hub::Shards>,
}

impl Shards {
    /// As the first sees them.
    pub(crate) fn new(all: Vec<Shard>, homes: parlor_hub::Shards) -> Self {
        debug_assert_eq!(all.len(), homes.count());
        Shards { all: all.into(), own: 0, homes: Arc::new(homes) }
    }

    /// As number `own` sees them.
    pub(crate) fn seen_from(&self, own: usize) -> Self {
        Shards { own, ..self.clone() }
    }

    /// The one that serves what comes in here.
    pub(crate) fn own(&self) -> &Shard {
        &self.all[self.own]
    }

    /// The room that a code leads to, on whichever shard it lives.
    pub(crate) async fn room(&self, code: RoomCode) -> Result<Option<RoomSummary>, Stopped> {
        self.all[self.homes.home(code)].room(code).await
    }

    /// What all of them have and counted. A shard that has stopped counts nothing.
    pub(crate) async fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for shard in &*self.all {
            sum += shard.stats().await.unwrap_or_default();
        }
        sum
    }
}
