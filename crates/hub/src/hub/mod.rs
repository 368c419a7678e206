//! Connections, sessions, and who sits where.

mod admission;
mod lease;
mod news;
mod operate;
mod resume;
mod seats;
mod tokens;
mod turn;

pub use news::{Happening, Output, RoomSummary, Stats};
pub use operate::{
    MatchFilter, MemberSummary, NotThere, ROOMS_LOOKED_AT_MAX, RoomDetails, RoomPage, RoomQuery,
};

use crate::directory::Directory;
use crate::door::{Doorkeeper, GuessLimits, Guesses, OpenDoor, Origin};
use crate::room::{self, Room};
use crate::shards::Shards;
use core::net::SocketAddr;
use lease::Rhythm;
use parlor_proto::session::{Event, Outgoing, Session};
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, RoomCode, RoomId, SessionId,
};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use resume::{Away, Ended};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::time::Duration;
use tokens::Family;
use turn::Timer;

/// What a hub may be told about itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where room codes and session ids are drawn from. A server draws it from the operating system at its start;
    /// whoever knows it knows the codes.
    pub seed: [u8; 32],
    /// The games that it serves; `None` for any.
    pub apps: Option<Vec<String>>,
    /// How many rooms may live at once.
    pub rooms_max: usize,
    /// Whether it takes rooms of dedicated hosts, which have many more members than those that a player hosts.
    pub dedicated: bool,
    /// Whether logs of matches are kept: then what happens in a match that asks for it comes out as [`Output::Kept`].
    pub keeps: bool,
    /// Bytes of state that one member is sent in a second on the long run, at most.
    pub state_bytes_per_second: u32,
    /// Whether the inputs of every room come out as [`Output::Recorded`].
    pub record: bool,
    /// How long a room may hold back what it has to send, from the first message on, so that what comes meanwhile goes in
    /// the same packets. Zero sends at the end of every turn.
    pub flush_quantum: Duration,
    /// How long the seat of a member is kept whose connection broke or is silent, so that it can come back. Zero keeps none.
    pub grace: Duration,
    /// Whether it lives in the process of a host and ends with it: its guests take its silence for the host being gone.
    pub is_of_host: bool,
    /// The hubs of the same server.
    pub shards: Shards,
}

impl Config {
    /// Any game, up to 10,000 rooms, none of them dedicated, no log of a match kept, 192 KiB of state in a second, nothing recorded, nothing held back, seats
    /// kept for 30 s, in the process of no host, the only hub of its server.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Config {
            seed,
            apps: None,
            rooms_max: 10_000,
            dedicated: false,
            keeps: false,
            state_bytes_per_second: 192 * 1024,
            record: false,
            flush_quantum: Duration::ZERO,
            grace: Duration::from_secs(30),
            is_of_host: false,
            shards: Shards::alone(),
        }
    }
}

#[derive(Debug)]
struct Connection {
    session: Session,
    link: LinkKind,
    origin: Origin,
    /// The SHA-256 of the certificate that its peer shows to other members, if it wants to reach them itself.
    key: Option<[u8; 32]>,
    /// Where its peer is seen, if others may reach it there.
    observed: Option<SocketAddr>,
    seat: Option<(RoomId, MemberId)>,
    /// How regularly it is heard.
    rhythm: Rhythm,
    /// What its session can be resumed with, as long as it can.
    family: Option<Family>,
    /// It has no link: its session waits for another one, and its id is but a name for that.
    away: Option<Away>,
    /// Whether the connection takes packets now.
    writable: bool,
    /// Bytes per second that its path carries, if that is known.
    carries: Option<u32>,
    /// Whether it took none at some time since it was last measured.
    was_blocked: bool,
    /// Messages that were replaced or dropped when it was last measured.
    lagged: u64,
    /// Whether it took nothing and something waited for it when it was last measured.
    had_waiting: bool,
    /// Whether it stands in a list of connections to pack.
    is_touched: bool,
    /// Its earliest entry among the timers that is still meant.
    timer: Option<Instant>,
    /// Why its session is over, once it is.
    over: &'static str,
}

impl Connection {
    /// What its member's room is to hear of it. It is slow if something had to give way because it took nothing, or if it took
    /// nothing and something waited at two measures in a row: state that does not leave holds back the newer.
    fn measure(&mut self, member: MemberId) -> Presence {
        let stats = self.session.stats();
        let lagged = stats.messages_replaced + stats.messages_dropped;
        let has_waiting = !self.writable && self.session.unreliable_waiting_bytes() > 0;
        let slow = self.was_blocked && (lagged > self.lagged || has_waiting && self.had_waiting);
        (self.was_blocked, self.lagged, self.had_waiting) = (!self.writable, lagged, has_waiting);
        let rtt_ms = self.session.rtt().and_then(|rtt| u32::try_from(rtt.as_millis()).ok());
        Presence { member, connected: self.away.is_none(), slow, rtt_ms }
    }
}

#[derive(Debug)]
struct Seated {
    room: Room,
    connections: BTreeMap<MemberId, ConnectionId>,
    /// What was for the authority and is of its session, which is over, by the numbers that it had there.
    undelivered: Vec<(u64, Outgoing)>,
    /// Its members' connections that may have packets to send; they are packed with the room's next flush.
    touched: Vec<ConnectionId>,
    /// When it flushes next, once there is something to flush.
    flush_at: Option<Instant>,
    /// Whether it was told something since its last flush.
    is_told: bool,
    /// When it is flushed at the latest, though nothing happens in it meanwhile.
    release_at: Option<Instant>,
    held: Held,
}

impl Seated {
    fn new(room: Room) -> Self {
        Seated {
            room,
            connections: BTreeMap::new(),
            undelivered: Vec::new(),
            touched: Vec::new(),
            flush_at: None,
            is_told: false,
            release_at: None,
            held: Held::default(),
        }
    }
}

/// How long messages were held back for a flush, so far.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    messages: u64,
    /// The sum of the instants at which they came.
    came_us: u64,
}

/// The rooms of one shard and the sessions in them. See the [crate](crate).
///
/// A driver tells it what arrived with the `handle_*` functions, calls [`flush`](Self::flush) when nothing more has,
/// and then does what [`poll_output`](Self::poll_output) gives until `None`.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    random: ChaCha12Rng,
    /// What resume tokens are drawn from.
    tokens: ChaCha12Rng,
    door: Box<dyn Doorkeeper>,
    directory: Directory,
    rooms: FxHashMap<RoomId, Seated>,
    next_room: u64,
    connections: FxHashMap<ConnectionId, Connection>,
    /// How many of them have no link.
    away: usize,
    /// Whose sessions can be resumed, by all names that each has had.
    sessions: FxHashMap<SessionId, ConnectionId>,
    /// Sessions that ended and whose members may not know why, for a while.
    ended: FxHashMap<SessionId, Ended>,
    /// Earliest first. An entry that its owner does not stand by any more is passed over when its time comes: moving it each
    /// time that something later becomes due would cost more.
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// Connections without a seat that may have packets to send.
    touched: Vec<ConnectionId>,
    /// Rooms whose flush is due.
    due_rooms: Vec<RoomId>,
    is_shutting_down: bool,
    stats: Stats,
    outputs: VecDeque<Output>,
}

/// What a hub that shuts down tells those who would come in.
const RETRY_AFTER_SHUTDOWN: Duration = Duration::from_secs(5);

impl Hub {
    /// A hub without rooms, whose door is open: nobody has a token, and guesses are counted.
    #[must_use]
    pub fn new(config: Config) -> Self {
        // Another stream than the one that codes are drawn from.
        let mut random = ChaCha12Rng::from_seed(config.seed);
        random.set_stream(1);
        let guesses = Guesses::new(GuessLimits::default(), || random.next_u64());
        Hub::with_door(config, Box::new(OpenDoor::new(guesses)))
    }

    /// A hub without rooms, before which `door` stands.
    #[must_use]
    pub fn with_door(config: Config, door: Box<dyn Doorkeeper>) -> Self {
        let mut tokens = ChaCha12Rng::from_seed(config.seed);
        tokens.set_stream(2);
        Hub {
            random: ChaCha12Rng::from_seed(config.seed),
            tokens,
            door,
            next_room: config.shards.own() as u64,
            config,
            directory: Directory::default(),
            rooms: FxHashMap::default(),
            connections: FxHashMap::default(),
            away: 0,
            sessions: FxHashMap::default(),
            ended: FxHashMap::default(),
            timers: BinaryHeap::new(),
            touched: Vec::new(),
            due_rooms: Vec::new(),
            is_shutting_down: false,
            stats: Stats::default(),
            outputs: VecDeque::new(),
        }
    }

    /// A connection was accepted. Its id must be new.
    pub fn handle_connected(
        &mut self,
        connection: ConnectionId,
        link: LinkKind,
        origin: Origin,
        now: Instant,
    ) {
        let session = Session::server(link, now);
        let state = Connection {
            session,
            link,
            origin,
            key: None,
            observed: None,
            seat: None,
            rhythm: Rhythm::new(now),
            family: None,
            away: None,
            writable: true,
            carries: None,
            was_blocked: false,
            lagged: 0,
            had_waiting: false,
            is_touched: false,
            timer: None,
            over: "turned_away",
        };
        let older = self.connections.insert(connection, state);
        debug_assert!(older.is_none(), "{connection} is in use");
        self.touch(connection, now);
    }

    /// From which address a connection comes, as far as others may reach its peer there: that of a QUIC connection, each time that
    /// it is another one. It is told to nobody unless both ends of a path want one.
    pub fn handle_address(&mut self, connection: ConnectionId, address: SocketAddr, now: Instant) {
        let Some(state) = self.linked(connection) else { return };
        if state.observed.replace(address) != Some(address) {
            self.tell_reachable(connection, now);
        }
    }

    /// Tells a room how one of its members may be reached beside the hub, if it wants to be.
    fn tell_reachable(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get(&connection) else { return };
        if let Some(((room, member), key)) = state.seat.zip(state.key) {
            let (observed, seed) = (state.observed, self.random.next_u64());
            self.tell(room, room::Input::Reachable { member, key, observed, seed }, now);
        }
    }

    /// A packet came.
    pub fn handle_packet(&mut self, connection: ConnectionId, packet: Packet, now: Instant) {
        self.stats.packets_received += 1;
        self.stats.bytes_received += packet.bytes.len() as u64;
        let Some(state) = self.linked(connection) else { return };
        let pause = now.saturating_since(state.session.last_heard());
        state.rhythm.heard(pause, now);
        if let Err(how) = state.session.handle_packet(packet, now) {
            self.outputs.push_back(Output::Happened(Happening::Misbehaved { connection, how }));
        }
        self.drain_events(connection, now);
        self.touch(connection, now);
    }

    /// A connection was closed because its other end sent what no member sends: its seat is not kept.
    pub fn handle_violation(&mut self, connection: ConnectionId, now: Instant) {
        if self.linked(connection).is_some() {
            self.forget(connection, LeaveReason::ConnectionLost, now);
        }
    }

    /// A connection broke or was closed by its other end.
    pub fn handle_disconnected(&mut self, connection: ConnectionId, now: Instant) {
        if self.linked(connection).is_some() && !self.keep(connection, LeaveReason::ConnectionLost, now) {
            self.forget(connection, LeaveReason::ConnectionLost, now);
        }
    }

    /// A connection takes packets again, or takes none for now. Meanwhile what waits is combined and replaced by
    /// newer state.
    pub fn handle_writable(&mut self, connection: ConnectionId, writable: bool, now: Instant) {
        if let Some(state) = self.linked(connection) {
            let is_news = std::mem::replace(&mut state.writable, writable) != writable;
            state.was_blocked |= !writable;
            let seat = state.seat.filter(|_| is_news);
            self.touch(connection, now);
            if let Some((room, member)) = seat {
                self.tell(room, room::Input::Writable { member, writable }, now);
            }
        }
    }

    /// The path of a connection carries so many bytes per second, all that goes over it included: its member is made no more
    /// packets of state than that.
    pub fn handle_path(&mut self, connection: ConnectionId, bytes_per_second: u32, now: Instant) {
        // What is beyond every budget makes no difference.
        let carries = bytes_per_second.min(self.config.state_bytes_per_second.saturating_mul(2));
        let Some(state) = self.linked(connection) else { return };
        let is_news = state.carries.replace(carries) != Some(carries);
        if let Some((room, member)) = state.seat.filter(|_| is_news) {
            self.tell(room, room::Input::Path { member, bytes_per_second: carries }, now);
        }
    }

    /// Tells a room what is known of the link over which a member has come.
    fn tell_of_link(&mut self, room: RoomId, member: MemberId, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get(&connection) else { return };
        let (writable, carries) = (state.writable, state.carries);
        if !writable {
            self.tell(room, room::Input::Writable { member, writable }, now);
        }
        if let Some(bytes_per_second) = carries {
            self.tell(room, room::Input::Path { member, bytes_per_second }, now);
        }
    }

    /// Ends every room and lets nobody in any more. What has to be said is said with the next flush.
    pub fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        let mut rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        rooms.sort_unstable();
        for room in rooms {
            self.tell(room, room::Input::End { reason: CloseReason::ServerShutdown }, now);
        }
    }

    /// What must be done, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The room that a code leads to.
    #[must_use]
    pub fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        self.seated(code).map(|(_, seated)| news::summary(&seated.room))
    }

    /// Rooms that live.
    #[must_use]
    pub fn room_count(&self) -> usize {
        self.rooms.len()
    }

    /// Connections that are known, in a room or not yet.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len() - self.away
    }

    /// What it has, and what it counted.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats { rooms: self.room_count(), connections: self.connection_count(), ..self.stats }
    }

    /// A connection, if it has a link.
    fn linked(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&connection).filter(|state| state.away.is_none())
    }

    fn forget(&mut self, connection: ConnectionId, reason: LeaveReason, now: Instant) {
        let Some(state) = self.connections.remove(&connection) else { return };
        self.away -= usize::from(state.away.is_some());
        if let Some(family) = &state.family {
            self.drop_names(family);
        }
        if let Some((room, member)) = state.seat {
            if let Some(seated) = self.rooms.get_mut(&room) {
                seated.save_undelivered(member, state.session.unacknowledged());
            }
            self.vacate(room, member, reason, now);
        }
    }

    fn drain_events(&mut self, connection: ConnectionId, now: Instant) {
        while let Some(state) = self.connections.get_mut(&connection)
            && let Some(event) = state.session.poll_event()
        {
            let seat = state.seat;
            match event {
                Event::Hello(hello) => self.admit(connection, *hello, now),
                Event::Message(message) => self.heard(connection, message, now),
                Event::Delivered(tag) => self.fate(seat, tag.0, true, now),
                Event::Lost(tag) => self.fate(seat, tag.0, false, now),
                Event::Closed(reason) => {
                    (state.seat, state.over) = (None, reason.as_str());
                    self.close_family(connection, &reason, now);
                    if let Some((room, member)) = seat {
                        self.save_undelivered(room, member, connection);
                        if self.ends_room(room, member, &reason) {
                            self.tell(room, room::Input::End { reason: reason.clone() }, now);
                        }
                        self.vacate(room, member, seats::leave_reason_of_member(&reason), now);
                    }
                }
                Event::Resume(resume) => self.resume(connection, resume, now),
                Event::Silent => self.silent(connection, now),
                // A server's session has no answers to a hello of its own.
                Event::Welcome(_) | Event::Resumed(_) | Event::TurnedAway(_) => {}
            }
        }
    }
}
