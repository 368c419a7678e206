//! Connections, sessions and seats.

mod admin;
mod admission;
mod arrivals;
mod claim;
mod cycle;
mod delayed;
mod events;
mod expected;
mod gone;
mod host_timeout;
mod index;
mod kept;
mod locate;
mod memory;
mod moving;
mod part;
mod resume;
mod returns;
mod seated;
mod seats;
mod tokens;
mod waiting;

pub use admin::{
    MatchFilter, NotThere, ROOMS_LOOKED_AT_MAX, RoomDetails, RoomPage, RoomQuery, RoomRoster, USER_SEATS_MAX,
    UserSeats,
};
pub use events::{HubEvent, Output, RoomSummary, Stats};
pub use kept::KeptSeats;
pub use memory::StateMemory;
pub use moving::Unmovable;
pub use waiting::{ClaimAnswer, ClaimedRoom, ClusterConfig, ClusterView, Entered, EnteredRoom, Located};

use crate::admission_policy::{AdmissionPolicy, AdmitAll, GuessLimits, Guesses, Origin};
use crate::directory::Directory;
use crate::room;
use crate::shards::Shards;
use core::net::SocketAddr;
use cycle::Timer;
use gone::{Loss, Place, Tokens};
use host_timeout::Rhythm;
use index::Index;
use kept::Kept;
use memory::Ledger;
use parlor_proto::session::{Event, Session};
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, RoomCode, RoomId, SessionId,
};
use parlor_sync::lateness::Lateness;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use resume::{Away, Ended};
use rustc_hash::FxHashMap;
use seated::Seated;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;
use tokens::Family;
use waiting::Cluster;

/// Configuration of a hub.
#[derive(Clone, Debug)]
pub struct Config {
    /// The seed for room codes and session ids. Secret: it reveals the codes. A server draws it from the
    /// operating system at its start.
    pub seed: [u8; 32],
    /// The games that it serves; `None` for any.
    pub apps: Option<Vec<String>>,
    /// The maximum number of live rooms.
    pub rooms_max: usize,
    /// Whether it accepts rooms of dedicated hosts, which have many more members than player-hosted rooms.
    pub dedicated: bool,
    /// Whether match logs are kept. Entries of matches that ask for it are emitted as [`Output::Kept`].
    pub keeps: bool,
    /// Maximum average bytes of state sent to one member per second.
    pub state_bytes_per_second: u32,
    /// Whether the inputs of every room come out as [`Output::Recorded`].
    pub record: bool,
    /// Maximum time that a room holds back output, from the first message on, so that later messages share
    /// the packets. Zero flushes at the end of every turn.
    pub flush_quantum: Duration,
    /// How long a disconnected or silent member's seat is kept for its return. Zero keeps no seats.
    pub grace: Duration,
    /// How long the id and the player data of a lost member are remembered once its seat is free, for its return.
    /// Its room remembers as many as it has seats. Zero remembers none.
    pub remember: Duration,
    /// Whether it runs in the process of a host and ends with it. Its silence then means host loss.
    pub is_of_host: bool,
    /// The hubs of the same server.
    pub shards: Shards,
    /// Memory limits for the state of rooms, and for sessions without a connection.
    pub memory: StateMemory,
    /// How many seats are kept for lost connections, and how many lost members are remembered.
    pub kept: KeptSeats,
    /// Set for the hub of a node: other nodes have rooms, too.
    pub cluster: Option<ClusterConfig>,
}

impl Config {
    /// Returns the defaults: any game, 10,000 rooms, no dedicated rooms, no match logs, 192 KiB of state per
    /// second, no recording, no flush delay, seats kept for 30 s, lost members remembered for 10 minutes, not in a host's process, the only hub of
    /// its server, and the default limits.
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
            remember: Duration::from_secs(600),
            is_of_host: false,
            shards: Shards::alone(),
            memory: StateMemory::default(),
            kept: KeptSeats::default(),
            cluster: None,
        }
    }
}

#[derive(Debug)]
struct Connection {
    session: Session,
    link: LinkKind,
    origin: Origin,
    /// The SHA-256 of the certificate that its peer shows on direct paths; `None` if it wants none.
    key: Option<[u8; 32]>,
    /// The observed address of its peer, if others may reach it there.
    observed: Option<SocketAddr>,
    seat: Option<(RoomId, MemberId)>,
    /// How regularly packets arrive.
    rhythm: Rhythm,
    /// Whether its client knows that a lost member may return.
    returns: bool,
    /// Whether its client can claim its seat at another node.
    moves: bool,
    /// Whether its session's messages go on in a session that claims its seat.
    continues: bool,
    /// Whether its room is sealed: it takes nothing and sends nothing.
    is_sealed: bool,
    /// The resume tokens of its session, while it can be resumed.
    family: Option<Family>,
    /// Set while it has no link: its session waits for another one, and its id only names that session.
    away: Option<Away>,
    /// Whether the connection takes packets now.
    writable: bool,
    /// The measured capacity of its path, in bytes per second.
    carries: Option<u32>,
    /// Whether it was not writable at some time since the last measurement.
    was_blocked: bool,
    /// Messages that had been replaced or dropped at the last measurement.
    lagged: u64,
    /// Whether it was not writable and had data waiting at the last measurement.
    had_waiting: bool,
    /// Whether it is in a list of connections to pack.
    is_touched: bool,
    /// Its earliest timer entry that is still valid.
    timer: Option<Instant>,
    /// Why its session ended, once it has.
    over: &'static str,
}

impl Connection {
    fn new(session: Session, (link, origin): (LinkKind, Origin), now: Instant) -> Self {
        Connection {
            session,
            link,
            origin,
            key: None,
            observed: None,
            seat: None,
            rhythm: Rhythm::new(now),
            returns: false,
            moves: false,
            continues: false,
            is_sealed: false,
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
        }
    }

    /// Returns the presence for its room. It is slow if messages were replaced or dropped while it was not
    /// writable, or if state waited while it was not writable at two measurements in a row: unsent state
    /// holds back newer state.
    fn measure(&mut self, member: MemberId) -> Presence {
        let stats = self.session.stats();
        let lagged = stats.messages_replaced + stats.messages_dropped;
        let has_waiting = !self.writable && self.session.unreliable_waiting_bytes() > 0;
        let slow = self.was_blocked && (lagged > self.lagged || has_waiting && self.had_waiting);
        (self.was_blocked, self.lagged, self.had_waiting) = (!self.writable, lagged, has_waiting);
        let rtt_ms = self.session.rtt().and_then(|rtt| u32::try_from(rtt.as_millis()).ok());
        let connected = self.away.as_ref().is_none_or(|away| !away.is_told);
        Presence { member, connected, slow, rtt_ms }
    }
}

/// The rooms of one shard and the sessions in them. See the [crate](crate).
///
/// A driver passes in arrivals with the `handle_*` functions, calls [`flush`](Self::flush) when no more are
/// pending, and then executes [`poll_output`](Self::poll_output) until `None`.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    random: ChaCha12Rng,
    /// The generator of resume tokens.
    tokens: ChaCha12Rng,
    policy: Box<dyn AdmissionPolicy>,
    /// Its part in its cluster.
    cluster: Option<Cluster>,
    directory: Directory,
    /// Its values are boxed, as those of `connections` are: about half of a map's places are empty.
    rooms: FxHashMap<RoomId, Box<Seated>>,
    index: Index,
    /// The memory that the rooms use.
    ledger: Ledger,
    /// Delayed copies whose memory is to be counted again.
    grown_copies: Vec<RoomId>,
    next_room: u64,
    /// The next id of a session without a connection, counted down from the highest.
    next_nameless: u64,
    connections: FxHashMap<ConnectionId, Box<Connection>>,
    /// Those of them that have no link.
    kept: Kept<ConnectionId>,
    /// Members that were lost and may return, and the sessions that they had.
    gone: Kept<Place>,
    gone_sessions: FxHashMap<SessionId, Place>,
    /// Resumable sessions, by every id that each has had.
    sessions: FxHashMap<SessionId, ConnectionId>,
    /// Sessions that ended recently for a reason that their members may not know.
    ended: FxHashMap<SessionId, Ended>,
    /// Earliest first. Stale entries are skipped when due: moving them at each postponement costs more.
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    /// How late its timers ran recently.
    lateness: Lateness,
    /// Connections without a seat that may have packets to send.
    touched: Vec<ConnectionId>,
    /// Rooms whose flush is due.
    due_rooms: Vec<RoomId>,
    is_shutting_down: bool,
    stats: Stats,
    outputs: VecDeque<Output>,
}

/// The retry time that a hub sends to new clients while it shuts down.
const RETRY_AFTER_SHUTDOWN: Duration = Duration::from_secs(5);

impl Hub {
    /// Creates a hub without rooms that admits every client without a token and counts guesses.
    pub fn new(config: Config) -> Self {
        // A separate stream from the one that draws codes.
        let mut random = ChaCha12Rng::from_seed(config.seed);
        random.set_stream(1);
        let guesses = Guesses::new(GuessLimits::default(), || random.next_u64());
        Hub::with_policy(config, Box::new(AdmitAll::new(guesses)))
    }

    /// Creates a hub without rooms, guarded by `policy`.
    pub fn with_policy(config: Config, policy: Box<dyn AdmissionPolicy>) -> Self {
        let mut tokens = ChaCha12Rng::from_seed(config.seed);
        tokens.set_stream(2);
        Hub {
            random: ChaCha12Rng::from_seed(config.seed),
            tokens,
            policy,
            cluster: config.cluster.clone().map(Cluster::new),
            next_room: config.shards.own() as u64,
            next_nameless: u64::MAX,
            config,
            directory: Directory::default(),
            rooms: FxHashMap::default(),
            index: Index::default(),
            ledger: Ledger::default(),
            grown_copies: Vec::new(),
            connections: FxHashMap::default(),
            kept: Kept::default(),
            gone: Kept::default(),
            gone_sessions: FxHashMap::default(),
            sessions: FxHashMap::default(),
            ended: FxHashMap::default(),
            timers: BinaryHeap::new(),
            lateness: Lateness::default(),
            touched: Vec::new(),
            due_rooms: Vec::new(),
            is_shutting_down: false,
            stats: Stats::default(),
            outputs: VecDeque::new(),
        }
    }

    /// Adds an accepted connection. Its id must be new.
    pub fn handle_connected(
        &mut self,
        connection: ConnectionId,
        link: LinkKind,
        origin: Origin,
        now: Instant,
    ) {
        let state = Connection::new(Session::server(link, now), (link, origin), now);
        let older = self.connections.insert(connection, Box::new(state));
        debug_assert!(older.is_none(), "{connection} is in use");
        self.touch(connection, now);
    }

    /// Sets the remote address of a QUIC connection, at first and at each change. Other members learn it only
    /// if both ends of a path want a direct path.
    pub fn handle_address(&mut self, connection: ConnectionId, address: SocketAddr, now: Instant) {
        let Some(state) = self.linked(connection) else { return };
        if state.observed.replace(address) != Some(address) {
            self.tell_reachable(connection, now);
        }
    }

    /// Tells a room the direct addresses of a member that wants direct paths.
    fn tell_reachable(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get(&connection) else { return };
        if let Some(((room, member), key)) = state.seat.zip(state.key)
            && self.rooms.get(&room).is_some_and(|seated| seated.may_have_paths())
        {
            let (observed, seed) = (state.observed, self.random.next_u64());
            self.tell(room, room::Input::Reachable { member, key, observed, seed }, now);
        }
    }

    /// Handles a received packet.
    pub fn handle_packet(&mut self, connection: ConnectionId, packet: Packet, now: Instant) {
        self.stats.packets_received += 1;
        self.stats.bytes_received += packet.bytes.len() as u64;
        let Some(state) = self.linked(connection) else { return };
        let pause = now.saturating_since(state.session.last_heard());
        state.rhythm.heard(pause, now);
        if let Err(how) = state.session.handle_packet(packet, now) {
            self.outputs.push_back(Output::Event(HubEvent::Misbehaved { connection, how }));
        }
        self.drain_events(connection, now);
        self.touch(connection, now);
    }

    /// Handles a connection that was closed because its peer violated the protocol: its seat is not kept.
    pub fn handle_violation(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.linked(connection) else { return };
        if let Some(place) = state.seat {
            self.save_undelivered(place.0, place.1, connection);
            self.connections.entry(connection).and_modify(|state| state.seat = None);
            self.vacate(place, LeaveReason::ConnectionLost, false, now);
        }
        self.forget(connection, LeaveReason::ConnectionLost, now);
    }

    /// Handles a connection that broke or that its peer closed.
    pub fn handle_disconnected(&mut self, connection: ConnectionId, now: Instant) {
        if self.linked(connection).is_some() && !self.keep(connection, LeaveReason::ConnectionLost, now) {
            self.forget(connection, LeaveReason::ConnectionLost, now);
        }
    }

    /// Sets whether a connection accepts packets. Otherwise newer state replaces waiting data.
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

    /// Sets the measured capacity of a connection's path, in bytes per second including all overhead. No more
    /// state than that is sent to its member.
    pub fn handle_path(&mut self, connection: ConnectionId, bytes_per_second: u32, now: Instant) {
        // Values beyond every budget make no difference.
        let carries = bytes_per_second.min(self.config.state_bytes_per_second.saturating_mul(2));
        let Some(state) = self.linked(connection) else { return };
        let is_news = state.carries.replace(carries) != Some(carries);
        if let Some((room, member)) = state.seat.filter(|_| is_news) {
            self.tell(room, room::Input::Path { member, bytes_per_second: carries }, now);
        }
    }

    /// Handles a new link of a member: tells the room what is known of it, and the member how to claim its seat.
    fn tell_of_link(&mut self, room: RoomId, member: MemberId, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get(&connection) else { return };
        let (writable, carries) = (state.writable, state.carries);
        if !writable {
            self.tell(room, room::Input::Writable { member, writable }, now);
        }
        if let Some(bytes_per_second) = carries {
            self.tell(room, room::Input::Path { member, bytes_per_second }, now);
        }
        self.tell_reachable(connection, now);
        self.tell_seat(connection);
    }

    /// Ends every room and admits no more clients. The goodbyes are sent with the next flush.
    pub fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        // A hub in a host's process goes down because the host does.
        let reason = if self.config.is_of_host { CloseReason::HostLeft } else { CloseReason::ServerShutdown };
        let mut rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        rooms.sort_unstable();
        for room in rooms {
            self.tell(room, room::Input::End { reason: reason.clone() }, now);
        }
    }

    /// Returns the next action for the driver, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Returns the room with this code.
    pub fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        self.seated(code).map(|(_, seated)| self.summary(seated))
    }

    /// Returns the number of live rooms. Delayed copies do not count.
    pub fn room_count(&self) -> usize {
        self.directory.len()
    }

    /// Returns the number of connections, in a room or not yet.
    pub fn connection_count(&self) -> usize {
        self.connections.len() - self.kept.seats()
    }

    /// Returns counters and current sizes.
    pub fn stats(&self) -> Stats {
        Stats {
            rooms: self.room_count(),
            rooms_free: self.rooms_free(),
            connections: self.connection_count(),
            state_bytes: self.ledger.bytes() + self.kept_bytes(),
            seats_freed_early: self.kept.freed(),
            rooms_ended_for_memory: self.ledger.ended(),
            ..self.stats
        }
    }

    /// Returns a connection, if it has a link.
    fn linked(&mut self, connection: ConnectionId) -> Option<&mut Connection> {
        let state = self.connections.get_mut(&connection).map(|state| &mut **state);
        state.filter(|state| state.away.is_none() && !state.is_sealed)
    }

    fn forget(&mut self, connection: ConnectionId, reason: LeaveReason, now: Instant) {
        let Some(state) = self.connections.remove(&connection) else { return };
        self.uncount_kept(connection, state.origin, state.away.as_ref());
        if let Some(family) = &state.family {
            self.drop_names(family);
        }
        if let Some(place) = state.seat {
            if let Some(seated) = self.rooms.get_mut(&place.0) {
                drop(seated.save_undelivered(place.1, state.session.unacknowledged()));
            }
            let (is_shown, returns) = (state.session.has_heard_peer(), state.returns);
            let tokens = state.family.map(|family| Tokens { family, is_shown, returns });
            self.lose(place, reason, Loss { origin: state.origin, tokens }, now);
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
                Event::Delivered(delivery_id) => self.fate(seat, delivery_id.0, true, now),
                Event::Lost(delivery_id) => self.fate(seat, delivery_id.0, false, now),
                Event::Closed(reason) => {
                    (state.seat, state.over) = (None, reason.as_str());
                    let origin = state.origin;
                    self.close_family(connection, &reason, now);
                    if let Some((room, member)) = seat {
                        self.save_undelivered(room, member, connection);
                        if self.ends_room(room, member, &reason) {
                            self.tell(room, room::Input::End { reason: reason.clone() }, now);
                        }
                        let (place, loss) = ((room, member), Loss { origin, tokens: None });
                        self.lose(place, seats::leave_reason_of_member(&reason), loss, now);
                    }
                }
                Event::Resume(resume) => self.resume(connection, resume, now),
                Event::Silent => self.silent(connection, now),
                // A server's session never sends a hello, so it gets no answers to one.
                Event::Welcome(_)
                | Event::Resumed(_)
                | Event::Seat(_)
                | Event::Moved(_)
                | Event::Rejected(_) => {}
            }
        }
    }
}
