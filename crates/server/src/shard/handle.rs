//! The handle by which the rest of the server talks to a shard.

use bytes::Bytes;
use core::fmt;
use parlor_hub::{
    NotThere, Origin, ROOMS_LOOKED_AT_MAX, RoomDetails, RoomPage, RoomQuery, RoomSummary, Stats,
    USER_SEATS_MAX, Unmovable, UserSeats,
};
use parlor_proto::{ConnectionId, MemberId, Packet, RoomCode};
use parlor_transport::lan::Listing;
use parlor_transport::{LinkClosed, LinkSender};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of queued inputs of a shard. A full queue makes the sender wait.
pub(super) const INPUTS_MAX: usize = 512;

/// Rooms that one request to list rooms examines, in parts of [`ROOMS_LOOKED_AT_MAX`] (threat 50). The next
/// request continues there.
const ROOMS_PER_REQUEST_MAX: usize = 4 * ROOMS_LOOKED_AT_MAX;

/// An input of a shard.
pub(super) enum Input {
    /// A link was accepted. Its id is new.
    Connected { connection: ConnectionId, origin: Origin, sender: LinkSender },
    /// Packets arrived.
    Packets { connection: ConnectionId, packets: Vec<Packet> },
    /// The link ended, perhaps because the peer violated the protocol.
    Disconnected { connection: ConnectionId, is_violation: bool },
    /// Asks for a room.
    Room { code: RoomCode, answer: oneshot::Sender<Option<RoomSummary>> },
    /// Asks for a part of the rooms.
    Rooms { query: RoomQuery, answer: oneshot::Sender<RoomPage> },
    /// Asks for a room and its members.
    Details { code: RoomCode, answer: oneshot::Sender<Option<RoomDetails>> },
    /// Tells the members of a room where it is about to move.
    AnnounceMove { code: RoomCode, address: String, answer: oneshot::Sender<Result<(), Unmovable>> },
    /// Takes that back.
    CallMoveOff { code: RoomCode },
    /// Seals an announced room.
    Seal { code: RoomCode, answer: oneshot::Sender<Result<Bytes, Unmovable>> },
    /// Goes on with a sealed room, under this term.
    Unseal { code: RoomCode, term: u64 },
    /// Ends a room that another node has.
    MoveRoom { code: RoomCode, address: String, answer: oneshot::Sender<Result<(), NotThere>> },
    /// Ends a room.
    EndRoom { code: RoomCode, reason: String, answer: oneshot::Sender<Result<(), NotThere>> },
    /// Removes a member.
    RemoveMember {
        code: RoomCode,
        member: MemberId,
        reason: String,
        answer: oneshot::Sender<Result<(), NotThere>>,
    },
    /// Removes a user from some of its rooms. Answers how many seats it had there.
    RemoveUser { seats: UserSeats, reason: String, answer: oneshot::Sender<usize> },
    /// Announces a room on the local network under this listing, or takes its announcement back.
    Announce { code: RoomCode, listing: Option<Listing> },
    /// Asks for sizes and counters.
    Stats { answer: oneshot::Sender<Stats> },
    /// Ends all rooms, sends the goodbyes, and stops the shard.
    ShutDown,
}

/// The shard has stopped and answers nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped;

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server is going down")
    }
}

/// The handle of a shard. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Shard {
    inputs: mpsc::Sender<Input>,
    numbers: Numbers,
}

/// Numbers the connections of a shard. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    /// Returns the next number.
    pub(crate) fn next(&self) -> ConnectionId {
        ConnectionId(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

impl Shard {
    pub(super) fn new(inputs: mpsc::Sender<Input>) -> Self {
        Shard { inputs, numbers: Numbers::default() }
    }

    /// Returns the source of its connections' numbers, for all ports.
    pub(crate) fn numbers(&self) -> Numbers {
        self.numbers.clone()
    }

    /// Passes in an accepted link.
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

/// The number of rooms by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Census {
    /// By game and kind.
    pub(crate) rooms: BTreeMap<(String, &'static str), Counted>,
    /// Disconnected members with a kept seat.
    pub(crate) away: u64,
    /// Connected members, by kind of link.
    pub(crate) links: BTreeMap<&'static str, u64>,
}

/// Numbers of rooms and of members in them.
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

/// All shards of a server, seen from one of them. Cheap to clone.
#[derive(Clone)]
pub struct Shards {
    all: Arc<[Shard]>,
    own: usize,
    homes: Arc<parlor_hub::Shards>,
}

impl Shards {
    /// Returns the view of the first shard.
    pub(crate) fn new(all: Vec<Shard>, homes: parlor_hub::Shards) -> Self {
        debug_assert_eq!(all.len(), homes.count());
        Shards { all: all.into(), own: 0, homes: Arc::new(homes) }
    }

    /// Returns the view of shard number `own`.
    pub(crate) fn seen_from(&self, own: usize) -> Self {
        Shards { own, ..self.clone() }
    }

    /// Returns the shard that this view belongs to.
    pub(crate) fn own(&self) -> &Shard {
        &self.all[self.own]
    }

    /// Returns the number of the shard that this view belongs to.
    pub(crate) fn own_number(&self) -> usize {
        self.own
    }

    /// Returns the number of shards.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the room with a code, from the shard that owns the code.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn room(&self, code: RoomCode) -> Result<Option<RoomSummary>, Stopped> {
        self.home(code).room(code).await
    }

    /// Lists rooms of all shards, one shard after another. Between the parts that it asks for, shards handle
    /// packets. Examines about 1,000 rooms: a page may have fewer than `limit`, or none, although more
    /// follow.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn rooms(&self, query: RoomQuery) -> Result<RoomPage, Stopped> {
        let mut page = RoomPage::default();
        let mut at = query.after.map_or(0, |code| self.homes.home(code));
        let mut query = query;
        let limit = query.limit;
        while let Some(shard) = self.all.get(at) {
            query.limit = limit - page.rooms.len();
            let part = shard.ask(|answer| Input::Rooms { query: query.clone(), answer }).await?;
            page.rooms.extend(part.rooms);
            page.rosters.extend(part.rosters);
            page.looked_at += part.looked_at;
            page.last = part.last.or(page.last);
            query.after = part.next;
            at += usize::from(part.next.is_none());
            if page.rooms.len() >= limit || page.looked_at >= ROOMS_PER_REQUEST_MAX {
                // After the last room of a shard the next request begins with the next shard.
                page.next = part.next.or_else(|| page.last.filter(|_| at < self.all.len()));
                break;
            }
        }
        Ok(page)
    }

    /// Counts the rooms of all shards, by the label that `name` gives to their games.
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

    /// Returns a room and its members.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn room_details(&self, code: RoomCode) -> Result<Option<RoomDetails>, Stopped> {
        self.home(code).ask(|answer| Input::Details { code, answer }).await
    }

    /// Ends a room and sends its members the reason.
    ///
    /// # Errors
    /// [`Stopped`], and [`NotThere`] within.
    pub async fn end_room(&self, code: RoomCode, reason: String) -> Result<Result<(), NotThere>, Stopped> {
        self.home(code).ask(|answer| Input::EndRoom { code, reason, answer }).await
    }

    /// Tells the members of a room that it is about to move to this address. Then they connect there, too.
    ///
    /// # Errors
    /// [`Stopped`], and [`Unmovable`] within.
    pub async fn announce_move(
        &self,
        code: RoomCode,
        address: String,
    ) -> Result<Result<(), Unmovable>, Stopped> {
        self.home(code).ask(|answer| Input::AnnounceMove { code, address, answer }).await
    }

    /// Takes the announcement of a move back.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn call_move_off(&self, code: RoomCode) -> Result<(), Stopped> {
        self.home(code).tell(Input::CallMoveOff { code }).await
    }

    /// Seals an announced room: it serves nobody from here on. Returns its snapshot.
    ///
    /// # Errors
    /// [`Stopped`], and [`Unmovable`] within: then the announcement is taken back.
    pub async fn seal(&self, code: RoomCode) -> Result<Result<Bytes, Unmovable>, Stopped> {
        self.home(code).ask(|answer| Input::Seal { code, answer }).await
    }

    /// Goes on with a sealed room, under this term.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn unseal(&self, code: RoomCode, term: u64) -> Result<(), Stopped> {
        self.home(code).tell(Input::Unseal { code, term }).await
    }

    /// Ends a room that another node has, at this address: its members claim their seats there.
    ///
    /// # Errors
    /// [`Stopped`], and [`NotThere`] within.
    pub async fn move_room(&self, code: RoomCode, address: String) -> Result<Result<(), NotThere>, Stopped> {
        self.home(code).ask(|answer| Input::MoveRoom { code, address, answer }).await
    }

    /// Removes a member of a room and sends all members the reason.
    ///
    /// # Errors
    /// [`Stopped`], and [`NotThere`] within.
    pub async fn remove_member(
        &self,
        code: RoomCode,
        member: MemberId,
        reason: String,
    ) -> Result<Result<(), NotThere>, Stopped> {
        self.home(code).ask(|answer| Input::RemoveMember { code, member, reason, answer }).await
    }

    /// Removes a user from all rooms, as [`remove_member`](Self::remove_member) does; returns how many seats
    /// it had. The cost depends on the number of these seats, not on the number of rooms. Ban the user first,
    /// or it may join again meanwhile.
    ///
    /// # Errors
    /// [`Stopped`].
    pub async fn remove_user(&self, seats: UserSeats, reason: String) -> Result<usize, Stopped> {
        let mut removed = 0;
        for shard in &*self.all {
            loop {
                let (seats, reason) = (seats.clone(), reason.clone());
                let found = shard.ask(|answer| Input::RemoveUser { seats, reason, answer }).await?;
                removed += found;
                if found < USER_SEATS_MAX {
                    break;
                }
            }
        }
        Ok(removed)
    }

    /// Announces a room on the local network under this listing, or takes its announcement back.
    ///
    /// # Errors
    /// [`Stopped`].
    pub(crate) async fn announce(&self, code: RoomCode, listing: Option<Listing>) -> Result<(), Stopped> {
        self.home(code).tell(Input::Announce { code, listing }).await
    }

    fn home(&self, code: RoomCode) -> &Shard {
        &self.all[self.homes.home(code)]
    }

    /// Returns the sum of sizes and counters. A shard that has stopped counts nothing.
    pub async fn stats(&self) -> Stats {
        let mut sum = Stats::default();
        for shard in &*self.all {
            sum += shard.stats().await.unwrap_or_default();
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::wire::handshake::RoomKind;
    use parlor_proto::{Instant, RoomId};
    use std::sync::atomic::AtomicUsize;

    const ROOMS: u32 = 10_000;

    fn summary(code: RoomCode) -> RoomSummary {
        RoomSummary {
            id: RoomId(1),
            code,
            kind: RoomKind::Match,
            label: String::new(),
            opened: Instant::ZERO,
            app: "tanks".into(),
            environment: String::new(),
            members: 1,
            away: 0,
            links: parlor_proto::LinkKind::ALL.map(|kind| (kind, 0)),
            players: 1,
            max_players: 2,
            spectators: 0,
            needs_secret: false,
        }
    }

    /// Answers like a hub with these rooms, one of which is wanted.
    async fn answer(
        mut inputs: mpsc::Receiver<Input>,
        codes: Vec<RoomCode>,
        wanted: RoomCode,
        parts: Arc<AtomicUsize>,
    ) {
        while let Some(Input::Rooms { query, answer }) = inputs.recv().await {
            parts.fetch_add(1, Ordering::Relaxed);
            let from = query.after.map_or(0, |after| codes.partition_point(|code| *code <= after));
            let part = &codes[from..codes.len().min(from + ROOMS_LOOKED_AT_MAX)];
            let last = part.last().copied();
            let page = RoomPage {
                rooms: part.iter().filter(|code| **code == wanted).map(|code| summary(*code)).collect(),
                rosters: Vec::new(),
                next: last.filter(|last| codes.last() != Some(last)),
                looked_at: part.len(),
                last,
            };
            let _ = answer.send(page);
        }
    }

    #[tokio::test]
    async fn threat_50_a_list_looks_at_so_many_rooms_and_the_next_one_goes_on() {
        let mut state = 7_u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.rotate_left(13)
        };
        let addresses = || vec![":1".to_owned(), ":2".to_owned(), ":3".to_owned()];
        let homes = parlor_hub::Shards::new(0, addresses());
        let mut of_shards = vec![Vec::new(); 3];
        for _ in 0..ROOMS {
            let code = RoomCode::draw(8, &mut random);
            of_shards[homes.home(code)].push(code);
        }
        of_shards.iter_mut().for_each(|codes| {
            codes.sort_unstable();
            codes.dedup();
        });
        let all: usize = of_shards.iter().map(Vec::len).sum();
        // The last room, so that no part may be skipped.
        let wanted = *of_shards[2].last().unwrap();
        let parts = Arc::new(AtomicUsize::new(0));
        let handles = of_shards.into_iter().map(|codes| {
            let (sender, inputs) = mpsc::channel(8);
            tokio::spawn(answer(inputs, codes, wanted, Arc::clone(&parts)));
            Shard::new(sender)
        });
        let shards = Shards::new(handles.collect(), parlor_hub::Shards::new(0, addresses()));
        let mut query = RoomQuery { limit: 100, ..RoomQuery::default() };
        let (mut looked_at, mut requests) = (0, 0);
        loop {
            let before = parts.load(Ordering::Relaxed);
            let page = shards.rooms(query.clone()).await.unwrap();
            let asked = parts.load(Ordering::Relaxed) - before;
            // One part more where a shard has no more rooms, and one where the next shard begins.
            assert!(asked <= 6, "{asked} parts for one request");
            assert!(page.looked_at < ROOMS_PER_REQUEST_MAX + ROOMS_LOOKED_AT_MAX, "{}", page.looked_at);
            (looked_at, requests) = (looked_at + page.looked_at, requests + 1);
            query.after = page.next;
            if page.next.is_none() {
                assert_eq!(page.rooms.iter().map(|room| room.code).collect::<Vec<_>>(), [wanted]);
                break;
            }
            assert!(page.rooms.is_empty());
        }
        assert_eq!(looked_at, all, "each room once");
        assert!(requests >= 8, "{requests}");
    }
}
