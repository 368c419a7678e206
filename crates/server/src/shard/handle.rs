//! Handle by which the rest of the server calls a shard.

use core::fmt;
use parlor_hub::{NotThere, Origin, RoomDetails, RoomPage, RoomQuery, RoomSummary, Stats};
use parlor_proto::{ConnectionId, MemberId, Packet, RoomCode};
use parlor_transport::{LinkClosed, LinkSender};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Most waiting inputs of a shard. Beyond that senders wait, which slows their peers.
pub(super) const INPUTS_MAX: usize = 512;

/// A shard's inputs.
pub(super) enum Input {
    /// A link was accepted. Its id is new.
    Connected { connection: ConnectionId, origin: Origin, sender: LinkSender },
    /// Packets came.
    Packets { connection: ConnectionId, packets: Vec<Packet> },
    /// The link is over; perhaps because the peer broke its rules.
    Disconnected { connection: ConnectionId, is_violation: bool },
    /// A request for a room's data.
    Room { code: RoomCode, answer: oneshot::Sender<Option<RoomSummary>> },
    /// An operator asks for rooms.
    Rooms { query: RoomQuery, answer: oneshot::Sender<RoomPage> },
    /// An operator's request for a room's members.
    Details { code: RoomCode, answer: oneshot::Sender<Option<RoomDetails>> },
    /// An operator ends a room.
    EndRoom { code: RoomCode, reason: String, answer: oneshot::Sender<Result<(), NotThere>> },
    /// An operator removes a member.
    RemoveMember {
        code: RoomCode,
        member: MemberId,
        reason: String,
        answer: oneshot::Sender<Result<(), NotThere>>,
    },
    /// A request for the counters.
    Stats { answer: oneshot::Sender<Stats> },
    /// Ends all rooms, says goodbye to all members, and stops.
    ShutDown,
}

/// The shard has stopped, so it takes and answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

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

/// How many rooms there are, of what kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// By game and kind.
    pub(crate) rooms: BTreeMap<(String, &'static str), Counted>,
    /// Members whose seats are kept.
    pub(crate) away: u64,
    /// Members that are connected, by how they are.
    pub(crate) links: BTreeMap<&'static str, u64>,
}

/// Rooms and their members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) rooms: u64,
    pub(crate) members: u64,
}

impl Census {
    pub(crate) fn count(&mut self, app: String, room: &RoomSummary) {
        let counted = self.rooms.entry((app, room.kind.as_str())).or_default();
        counted.rooms += 1;
        counted.members += room.members as u64;
        self.away += room.away as u64;
        for (link, count) in room.links {
            *self.links.entry(link.as_str()).or_default() += count as u64;
        }
    }
}

/// All shards of a server, as one of them sees them. Cheap to clone.
#[derive(Clone)]
pub struct Shards {
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
    pub async fn room(&self, code: RoomCode) -> Result<Option<RoomSummary>, Stopped> {
        self.home(code).room(code).await
    }

    /// Some of the rooms of all shards: those of one after those of the other. What it asks of a shard, it asks in parts, between
    /// which packets have their turns.
    pub async fn rooms(&self, query: RoomQuery) -> Result<RoomPage, Stopped> {
        let mut page = RoomPage::default();
        let mut at = query.after.map_or(0, |code| self.homes.home(code));
        let mut query = query;
        let limit = query.limit;
        while let Some(shard) = self.all.get(at) {
            query.limit = limit - page.rooms.len();
            let part = shard.ask(|answer| Input::Rooms { query: query.clone(), answer }).await?;
            page.rooms.extend(part.rooms);
            query.after = part.next;
            at += usize::from(part.next.is_none());
            if page.rooms.len() >= limit {
                // The next shard begins where this one has no more.
                let last = page.rooms.last().filter(|_| at < self.all.len()).map(|room| room.code);
                page.next = part.next.or(last);
                break;
            }
        }
        Ok(page)
    }

    /// Counts the rooms of all shards, by what `name` makes of their games.
    pub(crate) async fn census(&self, name: impl Fn(&str) -> String) -> Census {
        let mut census = Census::default();
        for shard in &*self.all {
            let mut query = RoomQuery { limit: usize::MAX, ..RoomQuery::default() };
            // A shard that has stopped has no rooms.
            while let Ok(part) = shard.ask(|answer| Input::Rooms { query: query.clone(), answer }).await {
                part.rooms.iter().for_each(|room| census.count(name(&room.app), room));
                query.after = part.next;
                if query.after.is_none() {
                    break;
                }
            }
        }
        census
    }

    /// A room and its members.
    pub async fn room_details(&self, code: RoomCode) -> Result<Option<RoomDetails>, Stopped> {
        self.home(code).ask(|answer| Input::Details { code, answer }).await
    }

    /// Ends a room; its members get the reason.
    pub async fn end_room(&self, code: RoomCode, reason: String) -> Result<Result<(), NotThere>, Stopped> {
        self.home(code).ask(|answer| Input::EndRoom { code, reason, answer }).await
    }

    /// Removes a member of a room; all members get the reason.
    pub async fn remove_member(
        &self,
        code: RoomCode,
        member: MemberId,
        reason: String,
    ) -> Result<Result<(), NotThere>, Stopped> {
        self.home(code).ask(|answer| Input::RemoveMember { code, member, reason, answer }).await
    }

    fn home(&self, code: RoomCode) -> &Shard {
        &self.all[self.homes.home(code)]
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
