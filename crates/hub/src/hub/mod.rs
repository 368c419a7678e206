//! Connections, sessions, and who sits where.

mod admission;

use crate::directory::Directory;
use crate::room::{self, Room, Setup};
use parlor_proto::session::{Event, Message, Outgoing, SendError, Session, TurnedAway};
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, PeerMisbehaved, RoomCode, RoomId,
};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::SeedableRng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

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
    /// Whether the inputs of every room come out as [`Output::Recorded`].
    pub record: bool,
}

impl Config {
    /// Any game, up to 10,000 rooms, nothing recorded.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Config { seed, apps: None, rooms_max: 10_000, record: false }
    }
}

/// What a hub wants done, and what it lets its driver know.
#[derive(Clone, Debug)]
pub enum Output {
    /// Give a packet to a connection.
    Packet {
        /// Which.
        connection: ConnectionId,
        /// What.
        packet: Packet,
    },
    /// Close a connection once it has carried what it was given. The hub has forgotten it already.
    Close {
        /// Which.
        connection: ConnectionId,
        /// Why, as [`CloseReason::as_str`] says it, or `turned_away`: for whoever was not reached by the goodbye.
        reason: &'static str,
    },
    /// Append to the log of a room.
    Recorded {
        /// Which room.
        room: RoomId,
        /// The bytes to append; see [`room::log`].
        bytes: Vec<u8>,
    },
    /// Something that an operator may like to know.
    Happened(Happening),
}

/// What an operator may like to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A room opened.
    RoomOpened(RoomSummary),
    /// A room ended.
    RoomEnded {
        /// Its code.
        code: RoomCode,
        /// Why.
        reason: CloseReason,
    },
    /// Somebody took a seat.
    Joined {
        /// In which room.
        code: RoomCode,
        /// As which member.
        member: MemberId,
        /// Under which name.
        name: String,
        /// Over which connection.
        connection: ConnectionId,
    },
    /// Somebody's seat is free again.
    Left {
        /// In which room.
        code: RoomCode,
        /// Who.
        member: MemberId,
        /// Why.
        reason: LeaveReason,
    },
    /// Somebody was not let in.
    TurnedAway {
        /// Over which connection.
        connection: ConnectionId,
        /// Why.
        answer: TurnedAway,
    },
    /// Somebody broke the protocol and was disconnected.
    Misbehaved {
        /// Over which connection.
        connection: ConnectionId,
        /// How.
        how: PeerMisbehaved,
    },
}

/// A room as an operator or a join page sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSummary {
    /// Its id.
    pub id: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// Which game it is for.
    pub app: String,
    /// Which environment of the game.
    pub environment: String,
    /// Members in it.
    pub players: usize,
    /// Members that it may have at once.
    pub max_players: u16,
    /// Whether a secret is needed beside the code.
    pub needs_secret: bool,
}

#[derive(Debug)]
struct Connection {
    session: Session,
    link: LinkKind,
    seat: Option<(RoomId, MemberId)>,
    /// Whether the connection takes packets now.
    writable: bool,
    /// What its entry among the timers is.
    timer: Option<Instant>,
    /// Why its session is over, once it is.
    over: &'static str,
}

#[derive(Debug)]
struct Seated {
    room: Room,
    connections: BTreeMap<MemberId, ConnectionId>,
    measure_at: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Connection(ConnectionId),
    Room(RoomId),
}

/// The rooms of one shard and the sessions in them. See the [crate](crate).
///
/// A driver tells it what arrived with the `handle_*` functions, calls [`flush`](Self::flush) when nothing more has,
/// and then does what [`poll_output`](Self::poll_output) gives until `None`.
#[derive(Debug)]
pub struct Hub {
    config: Config,
    random: ChaCha12Rng,
    directory: Directory,
    rooms: BTreeMap<RoomId, Seated>,
    next_room: u64,
    connections: BTreeMap<ConnectionId, Connection>,
    timers: BTreeSet<(Instant, Timer)>,
    /// Connections that may have packets to send.
    touched: BTreeSet<ConnectionId>,
    /// Rooms that were told something since the last flush.
    touched_rooms: BTreeSet<RoomId>,
    is_shutting_down: bool,
    outputs: VecDeque<Output>,
}

/// How often a room hears what was measured of its members.
const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// What a hub that shuts down tells those who would come in.
const RETRY_AFTER_SHUTDOWN: Duration = Duration::from_secs(5);

impl Hub {
    /// A hub without rooms.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Hub {
            random: ChaCha12Rng::from_seed(config.seed),
            config,
            directory: Directory::default(),
            rooms: BTreeMap::new(),
            next_room: 0,
            connections: BTreeMap::new(),
            timers: BTreeSet::new(),
            touched: BTreeSet::new(),
            touched_rooms: BTreeSet::new(),
            is_shutting_down: false,
            outputs: VecDeque::new(),
        }
    }

    /// A connection was accepted. Its id must be new.
    pub fn handle_connected(&mut self, connection: ConnectionId, link: LinkKind, now: Instant) {
        let session = Session::server(link, now);
        let state =
            Connection { session, link, seat: None, writable: true, timer: None, over: "turned_away" };
        let older = self.connections.insert(connection, state);
        debug_assert!(older.is_none(), "{connection} is in use");
        self.touched.insert(connection);
    }

    /// A packet came.
    pub fn handle_packet(&mut self, connection: ConnectionId, packet: Packet, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if let Err(how) = state.session.handle_packet(packet, now) {
            self.outputs.push_back(Output::Happened(Happening::Misbehaved { connection, how }));
        }
        self.drain_events(connection, now);
    }

    /// A connection broke or was closed by its other end.
    pub fn handle_disconnected(&mut self, connection: ConnectionId, now: Instant) {
        self.forget(connection, LeaveReason::ConnectionLost, now);
    }

    /// A connection takes packets again, or takes none for now. Meanwhile what waits is combined and replaced by
    /// newer state.
    pub fn handle_writable(&mut self, connection: ConnectionId, writable: bool) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.writable = writable;
            self.touched.insert(connection);
        }
    }

    /// Lets time pass. Call it when [`poll_timeout`](Self::poll_timeout) is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some((due, timer)) = self.timers.first().copied().filter(|(due, _)| *due <= now) {
            self.timers.remove(&(due, timer));
            match timer {
                Timer::Connection(connection) => {
                    let Some(state) = self.connections.get_mut(&connection) else { continue };
                    state.timer = None;
                    state.session.handle_timeout(now);
                    self.drain_events(connection, now);
                }
                Timer::Room(room) => self.measure(room, now),
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.first().map(|(due, _)| *due)
    }

    /// Ends every room and lets nobody in any more. What has to be said is said with the next flush.
    pub fn shut_down(&mut self, now: Instant) {
        self.is_shutting_down = true;
        let rooms: Vec<RoomId> = self.rooms.keys().copied().collect();
        for room in rooms {
            self.tell(room, room::Input::End { reason: CloseReason::ServerShutdown }, now);
        }
    }

    /// Lets rooms say what they have to, and packs what waits: at most one packet of each kind for each receiver,
    /// however many messages there are.
    pub fn flush(&mut self, now: Instant) {
        // Packing may end a session, or give up an update, of which its room then has something to say.
        while !self.touched_rooms.is_empty() || !self.touched.is_empty() {
            while let Some(room) = self.touched_rooms.pop_first() {
                self.tell(room, room::Input::Flush, now);
                self.touched_rooms.remove(&room);
            }
            while let Some(connection) = self.touched.pop_first() {
                self.pack(connection, now);
            }
        }
    }

    /// What must be done, oldest first.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The room that a code leads to.
    #[must_use]
    pub fn room(&self, code: RoomCode) -> Option<RoomSummary> {
        self.directory.find(code).and_then(|id| self.rooms.get(&id)).map(|seated| summary(&seated.room))
    }

    /// Rooms that live.
    #[must_use]
    pub fn room_count(&self) -> usize {
        self.rooms.len()
    }

    /// Connections that are known, in a room or not yet.
    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    fn pack(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if let Some((room, _)) = state.seat
            && let Some(seated) = self.rooms.get(&room)
        {
            state.session.set_tick(seated.room.tick_at(now));
        }
        while state.writable
            && let Some(packet) = state.session.poll_packet(now)
        {
            self.outputs.push_back(Output::Packet { connection, packet });
        }
        self.drain_events(connection, now);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if state.session.is_finished() {
            let reason = state.over;
            self.forget(connection, LeaveReason::Left, now);
            self.outputs.push_back(Output::Close { connection, reason });
            return;
        }
        let due = state.session.poll_timeout();
        if due != state.timer {
            let older = std::mem::replace(&mut state.timer, due);
            older.map(|older| self.timers.remove(&(older, Timer::Connection(connection))));
            self.timers.extend(due.map(|due| (due, Timer::Connection(connection))));
        }
        self.touched.remove(&connection);
    }

    fn forget(&mut self, connection: ConnectionId, reason: LeaveReason, now: Instant) {
        let Some(state) = self.connections.remove(&connection) else { return };
        if let Some(due) = state.timer {
            self.timers.remove(&(due, Timer::Connection(connection)));
        }
        if let Some((room, member)) = state.seat {
            self.vacate(room, member, reason, now);
        }
    }

    fn drain_events(&mut self, connection: ConnectionId, now: Instant) {
        self.touched.insert(connection);
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
                    if let Some((room, member)) = seat {
                        self.vacate(room, member, leave_reason_of_member(&reason), now);
                    }
                }
                // A server's session has no answers to its own hello.
                Event::Welcome(_) | Event::TurnedAway(_) => {}
            }
        }
    }

    fn heard(&mut self, connection: ConnectionId, message: Message, now: Instant) {
        let Some((room, from)) = self.connections.get(&connection).and_then(|state| state.seat) else {
            return;
        };
        let Message { channel, key, payload, epoch, .. } = message;
        self.tell(room, room::Input::Message { from, channel, key, payload, epoch }, now);
    }

    fn fate(&mut self, seat: Option<(RoomId, MemberId)>, tag: u64, delivered: bool, now: Instant) {
        if let Some((room, member)) = seat {
            self.tell(room, room::Input::Fate { member, tag, delivered }, now);
        }
    }

    fn vacate(&mut self, room: RoomId, member: MemberId, reason: LeaveReason, now: Instant) {
        if let Some(seated) = self.rooms.get_mut(&room) {
            let code = seated.room.setup().code;
            if seated.connections.remove(&member).is_some() {
                let left = Happening::Left { code, member, reason: reason.clone() };
                self.outputs.push_back(Output::Happened(left));
            }
        }
        self.tell(room, room::Input::Leave { member, reason }, now);
    }

    fn measure(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        seated.measure_at = now + MEASURE_INTERVAL;
        self.timers.insert((seated.measure_at, Timer::Room(room)));
        let measured: Vec<Presence> = seated
            .connections
            .iter()
            .filter_map(|(member, connection)| {
                let rtt = self.connections.get(connection)?.session.rtt()?;
                let rtt_ms = u32::try_from(rtt.as_millis()).ok();
                Some(Presence { member: *member, connected: true, rtt_ms })
            })
            .collect();
        for presence in measured {
            self.tell(room, room::Input::Measured(presence), now);
        }
    }

    /// Tells a room something and does what it wants done.
    fn tell(&mut self, id: RoomId, input: room::Input, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        if self.config.record {
            let bytes = room::log::entry(now, &input);
            self.outputs.push_back(Output::Recorded { room: id, bytes });
        }
        self.touched_rooms.insert(id);
        if let Err((member, how)) = seated.room.handle(input) {
            return self.expel(id, member, how, now);
        }
        while let Some(seated) = self.rooms.get_mut(&id)
            && let Some(output) = seated.room.poll_output()
        {
            match output {
                room::Output::Send { to, message } => {
                    let to: Vec<ConnectionId> =
                        to.iter().filter_map(|member| seated.connections.get(member).copied()).collect();
                    to.into_iter().for_each(|connection| self.send(connection, message.clone(), now));
                }
                room::Output::Remove { member, reason } => {
                    if let Some(connection) = seated.connections.remove(&member) {
                        self.remove(connection, reason, now);
                    }
                }
                room::Output::Ended { reason } => self.end(id, reason),
            }
        }
        if self.rooms.get(&id).is_some_and(|seated| seated.room.is_empty()) {
            self.end(id, CloseReason::Left);
        }
    }

    /// Ends the session of a member that did what it must not, and takes its seat at once: what else came with it must
    /// not be heard.
    fn expel(&mut self, room: RoomId, member: MemberId, how: PeerMisbehaved, now: Instant) {
        let connection = self.rooms.get(&room).and_then(|seated| seated.connections.get(&member)).copied();
        let Some(connection) = connection else { return };
        if let Some(state) = self.connections.get_mut(&connection) {
            state.seat = None;
            state.session.close(CloseReason::Misbehaved { detail: how.to_string() }, now);
            self.touched.insert(connection);
        }
        self.outputs.push_back(Output::Happened(Happening::Misbehaved { connection, how }));
        self.vacate(room, member, LeaveReason::Misbehaved, now);
    }

    fn send(&mut self, connection: ConnectionId, message: Outgoing, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        self.touched.insert(connection);
        match state.session.send(message) {
            Ok(()) => {}
            Err(SendError::Full) => state.session.close(CloseReason::TooSlow, now),
            // The session is over and its events, which wait to be read, say so. Nothing else can be wrong: a room
            // refuses what would not fit with its envelope around it, and what the sender's session took on a channel
            // is in the table of every member.
            Err(SendError::Misuse(_)) => {
                debug_assert!(!state.session.is_open(), "a room sends what its members' sessions take");
            }
        }
    }

    /// Ends a session whose member its room has forgotten already.
    fn remove(&mut self, connection: ConnectionId, reason: CloseReason, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        let seat = state.seat.take();
        state.session.close(reason.clone(), now);
        self.touched.insert(connection);
        if let Some((room, member)) = seat
            && let Some(seated) = self.rooms.get(&room)
        {
            let (code, reason) = (seated.room.setup().code, leave_reason(&reason));
            self.outputs.push_back(Output::Happened(Happening::Left { code, member, reason }));
        }
    }

    fn end(&mut self, id: RoomId, reason: CloseReason) {
        let Some(seated) = self.rooms.remove(&id) else { return };
        self.timers.remove(&(seated.measure_at, Timer::Room(id)));
        let code = seated.room.setup().code;
        self.directory.remove(code);
        self.outputs.push_back(Output::Happened(Happening::RoomEnded { code, reason }));
    }
}

fn summary(room: &Room) -> RoomSummary {
    let Setup { id, code, app, environment, settings, .. } = room.setup().clone();
    RoomSummary {
        id,
        code,
        app,
        environment,
        players: room.len(),
        max_players: settings.max_players,
        needs_secret: settings.secret.is_some(),
    }
}

/// What the others are told when a session ends that the room did not end: by its member's goodbye, or by itself. A goodbye
/// can say anything, but only the authority removes members.
fn leave_reason_of_member(reason: &CloseReason) -> LeaveReason {
    match leave_reason(reason) {
        LeaveReason::Kicked { .. } => LeaveReason::Left,
        reason => reason,
    }
}

fn leave_reason(reason: &CloseReason) -> LeaveReason {
    match reason {
        CloseReason::Left => LeaveReason::Left,
        CloseReason::Kicked { reason } => LeaveReason::Kicked { reason: reason.clone() },
        CloseReason::TimedOut => LeaveReason::TimedOut,
        CloseReason::Misbehaved { .. } => LeaveReason::Misbehaved,
        CloseReason::TooSlow | CloseReason::NotPolled => LeaveReason::TooSlow,
        CloseReason::HostLeft
        | CloseReason::HostGone
        | CloseReason::RoomEnded { .. }
        | CloseReason::ServerShutdown => LeaveReason::Left,
        CloseReason::ConnectionLost { .. } | CloseReason::Unknown { .. } => LeaveReason::ConnectionLost,
    }
}
