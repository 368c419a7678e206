//! The room as a game and a driver see it.

mod connection;
mod game;
mod inputs;
mod matches;
mod migration;
mod own_states;
mod paths;
mod reading;
mod recording;
mod rollback;
mod steps;
mod world;

pub use paths::PathCommand;
pub use world::WorldAccess;

use crate::connection::{HubWatchdog, LinkState, Reconnect};
use crate::error::misbehaved;
use crate::event::{ClosedReason, Event};
use crate::inbox::{Arrived, Came, Inbox};
use crate::info::{JoinPath, Mode, ReasonCode, Scope};
use crate::migration::Migration;
use crate::options::Options;
use crate::players::Players;
use crate::replicas::Replicas;
use crate::rollback::RollbackLane;
use crate::simulation::{Inputs, Overlay, Pace, Replay, Resimulation, Rewinds, Ticker};
use crate::state::{Checksums, SharedState, Way};
use parlor_proto::session::{self, Rejection, Session};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::wire::handshake::{Refusal, Resume, Welcome};
use parlor_proto::{CloseReason, Instant, LinkKind, MemberId, Packet, PeerMisbehaved, SessionId, Tick};
use parlor_sync::clock::Clock;
use parlor_sync::prediction::Once;
use parlor_sync::recording::{Ended, Recorder};
use paths::Paths;

/// Where a driver found the room's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address, for a person to read.
    pub server: String,
    /// Where it runs.
    pub scope: Scope,
    /// How a joining process found the room.
    pub join_path: Option<JoinPath>,
}

/// A room without sockets. See the [module](super).
#[derive(Debug)]
pub struct RoomCore {
    options: Options,
    mode: Mode,
    found: Option<Found>,
    session: Option<Session>,
    link: Option<LinkKind>,
    redirect: Option<String>,
    /// Whether another server remains to be tried, and whether to try it.
    has_more: bool,
    is_passed_over: bool,
    reconnect: Reconnect,
    watchdog: HubWatchdog,
    /// What the session is resumed with, if possible.
    resume: Option<Resume>,
    /// The open session; `joined` may belong to the previous one until the game polls.
    carries: Option<SessionId>,
    /// Capacity of the path to the server in bytes per second, if known.
    path: Option<u32>,
    /// The state that the game was told.
    link_state: LinkState,
    has_resumed: bool,
    joined: Option<Joined>,
    closed: Option<ClosedReason>,
    last_reason: Option<ReasonCode>,
    inbox: Inbox,
    /// Whether data to send is queued that the driver does not know of.
    wants_driver: bool,
    messages_unreadable: u64,
    recording: Option<Box<Recorder>>,
    paths: Paths,
}

/// State that exists once the room is open.
#[derive(Debug)]
struct Joined {
    welcome: Welcome,
    clock: Clock,
    ticker: Ticker,
    replay: Replay,
    /// The one-shot effects already shown.
    once: Once,
    players: Players,
    /// Members that the hub has yet to announce.
    greeting_left: u16,
    shared: SharedState,
    replicas: Replicas,
    /// The recipient of messages to the primary.
    primary: Option<MemberId>,
    checksums: Checksums,
    inputs: Inputs,
    pace: Pace,
    rewinds: Rewinds,
    rollback: Option<Box<RollbackLane>>,
    overlay: Overlay,
    /// At a host whose game enables it.
    resimulation: Option<Box<Resimulation>>,
    migration: Migration,
    /// The step that the last commit's writes counted for.
    label: Tick,
}

impl RoomCore {
    /// Creates a room that is not connected yet.
    pub fn new(options: Options, mode: Mode) -> Self {
        RoomCore {
            options,
            mode,
            found: None,
            has_more: false,
            is_passed_over: false,
            session: None,
            link: None,
            redirect: None,
            reconnect: Reconnect::new(),
            watchdog: HubWatchdog::default(),
            resume: None,
            carries: None,
            path: None,
            link_state: LinkState::default(),
            has_resumed: false,
            joined: None,
            closed: None,
            last_reason: None,
            inbox: Inbox::default(),
            wants_driver: false,
            messages_unreadable: 0,
            recording: None,
            paths: Paths::default(),
        }
    }
}

/// For a driver.
impl RoomCore {
    /// Names the server being tried, and whether another one remains if it does not have the room.
    pub fn found(&mut self, found: Found, has_more: bool) {
        (self.found, self.has_more) = (Some(found), has_more);
    }

    /// Whether the server does not have the room and the next one must be tried. Returned once.
    pub fn take_passed_over(&mut self) -> bool {
        std::mem::take(&mut self.is_passed_over)
    }

    /// The app id.
    pub fn app(&self) -> &str {
        &self.options.app
    }

    /// Reports a connection: the handshake begins, or the session is resumed. If the game has left meanwhile
    /// or the room is given up, neither happens, and [`is_finished`](Self::is_finished) is true.
    pub fn connected(&mut self, link: LinkKind, now: Instant) {
        if self.closed.is_some() || self.reconnect.is_given_up() {
            return;
        }
        self.watchdog.heard(now);
        self.path = None;
        self.greet(link, now);
    }

    /// Sets the capacity of the path to the server in bytes per second, all traffic included. State is
    /// limited to it.
    pub fn path_carries(&mut self, bytes_per_second: u32) {
        self.path = Some(bytes_per_second);
    }

    /// Closes the room, because no connection could be made.
    pub fn failed(&mut self, reason: ClosedReason) {
        self.close_with(reason);
    }

    /// Reports a broken connection.
    pub fn disconnected(&mut self, detail: &str, now: Instant) {
        let reason = CloseReason::ConnectionLost { detail: detail.to_owned() };
        if self.outlives(detail, now) {
            return self.drain_session(now);
        }
        let Some(session) = &mut self.session else {
            return self.arrive(now, Came::Session(session::Event::Closed(reason)));
        };
        // The order matters: a session that said or heard goodbye keeps its own reason; any other has nothing
        // left to send.
        session.close(reason, now);
        session.detach();
        self.drain_session(now);
    }

    /// Takes in a packet. A protocol violation of the peer ends the session and raises [`Event::Closed`].
    pub fn handle_packet(&mut self, packet: Packet, now: Instant) {
        self.watchdog.heard(now);
        if let Some(session) = &mut self.session {
            // The session closes itself and gives the reason in its events.
            let _: Result<(), PeerMisbehaved> = session.handle_packet(packet, now);
        }
        self.drain_session(now);
    }

    /// Lets time pass. Call it when [`poll_timeout`](Self::poll_timeout) is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(session) = &mut self.session {
            session.handle_timeout(now);
        }
        if let Some(joined) = &mut self.joined {
            joined.replicas.handle_timeout(now);
            if let Some(host) = joined.shared.host_mut() {
                host.handle_timeout(now);
            }
        }
        if self.watchdog.look(now) {
            self.host_gone(now);
        }
        self.drain_session(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().and_then(Session::poll_timeout);
        let streams = self.joined.iter().flat_map(|joined| {
            joined.shared.poll_timeout().into_iter().chain(joined.replicas.poll_timeout())
        });
        let watchdog = self.watchdog.poll_timeout().filter(|_| self.closed.is_none());
        session.into_iter().chain(streams).chain(watchdog).min()
    }

    /// The next packet for the connection. Call it only while the connection takes packets, until it returns
    /// `None`.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        self.drain_queues();
        let session = self.session.as_mut()?;
        if let Some(joined) = &mut self.joined
            && session.is_attached()
            && self.carries == Some(joined.welcome.session)
        {
            let way = Way { carries: self.path, is_inside: self.link == Some(LinkKind::Memory) };
            joined.shared.publish(session, way, now);
            // Hubs accept own states at the same rate over any link.
            joined.replicas.publish(session, Way { is_inside: false, ..way }, now);
        }
        let packet = session.poll_packet(now);
        if packet.is_none() {
            // Handles what was replaced or given up while packing.
            self.drain_session(now);
        }
        packet
    }

    /// Takes the redirect to another server, if the server sent one; the present connection then ends.
    pub fn take_redirect(&mut self) -> Option<String> {
        self.redirect.take()
    }

    /// Whether nothing is left to send and the connection can be closed. There may be
    /// [another attempt](Self::next_attempt).
    pub fn is_finished(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_finished() || !session.has_link())
    }

    fn drain_session(&mut self, now: Instant) {
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            match event {
                session::Event::Delivered(delivery_id) => self.fate(delivery_id, true),
                session::Event::Lost(delivery_id) => self.fate(delivery_id, false),
                session::Event::Rejected(away) if self.has_more && is_elsewhere(&away) => {
                    self.is_passed_over = true;
                }
                session::Event::Rejected(away) => match self.not_let_back(away, now) {
                    Some(Rejection::Redirect(redirect)) => self.redirect = Some(redirect.address),
                    Some(away) => self.arrive(now, Came::Session(session::Event::Rejected(away))),
                    None => {}
                },
                session::Event::Silent => self.silent(now),
                session::Event::Resumed(token) => self.go_on(token, now),
                session::Event::Closed(reason) if self.is_end_of_attempt(&reason) => {
                    self.end_of_attempt(&reason, now);
                }
                session::Event::Message(message) => {
                    if let Some(message) = self.hear_of_paths(message, now) {
                        self.arrive(now, Came::Session(session::Event::Message(message)));
                    }
                }
                event => {
                    if let session::Event::Welcome(welcome) = &event {
                        self.let_in(welcome, now);
                    }
                    self.arrive(now, Came::Session(event));
                }
            }
        }
    }

    /// Queues an arrival for the next poll, or processes it now if the queue is too full.
    fn arrive(&mut self, now: Instant, came: Came) {
        if let Came::Session(session::Event::Message(message)) = &came {
            self.note_deferred(message);
        }
        if self.inbox.arrive(now, came) {
            self.read_arrived(now);
        }
    }

    fn fate(&mut self, delivery_id: session::DeliveryId, delivered: bool) {
        let carries = self.carries;
        if let Some(joined) = self.joined.as_mut().filter(|joined| carries == Some(joined.welcome.session)) {
            match delivery_id.stream() {
                (None, number) => joined.shared.fate(number, delivered),
                (Some(_), number) => joined.replicas.fate(number, delivered),
            }
        }
        self.acknowledge_handled();
    }
}

/// Whether the rejection means that the room is not on this server; the next one may have it.
fn is_elsewhere(away: &Rejection) -> bool {
    matches!(away, Rejection::Refused(Refusal::NoSuchRoom | Refusal::App { .. }))
}

/// For a game: events and steps.
impl RoomCore {
    /// The next event. Everything that a game can read changes only in here: after a poll that returns
    /// `None`, state, players and inputs stand still until the next poll.
    pub fn poll(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        self.commit(now);
        self.read_arrived(now);
        if let Some(joined) = &mut self.joined {
            joined.players.set_reached(|player| self.paths.is_open_to(player));
        }
        self.next_event()
    }

    fn next_event(&mut self) -> Option<Event> {
        if self.awaits_greeting() { None } else { self.inbox.next_event() }
    }

    /// Whether a step of the room is due; if so it counts as run, and [`tick_number`](Self::tick_number) is
    /// its number. Publishes the writes since the previous step. Replayed steps come first, marked by
    /// [`is_replay`](Self::is_replay): call this in a loop until it returns false.
    ///
    /// At most eight steps come in a row; the rest of a backlog is dropped and counted.
    pub fn tick(&mut self, now: Instant) -> bool {
        self.commit(now);
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return false };
        joined.keep_pace(&self.options, session, now);
        if self.closed.is_some() || joined.migration.is_heir() {
            return false;
        }
        joined.resimulate(now);
        joined.reconcile(now);
        if joined.replay.advance().is_some() {
            joined.enter_step();
            return true;
        }
        let is_due = joined.ticker.step(joined.simulation_time(now));
        if is_due {
            session.set_tick(joined.room_tick(now));
            joined.began(joined.ticker.tick(), now);
            joined.enter_step();
        }
        is_due
    }

    /// Whether data to send is queued that the driver does not know of; reading clears the flag.
    pub fn take_wants_driver(&mut self) -> bool {
        std::mem::take(&mut self.wants_driver)
    }

    /// Processes arrivals as of their arrival. A failure ends the session as of `now`, because arrivals may
    /// have waited longer than a goodbye lingers.
    fn read_arrived(&mut self, now: Instant) {
        if self.closed.is_none()
            && let Err(reason) = self.give_held(now)
        {
            self.break_off(reason, now);
        }
        self.read_all(now);
        self.has_read();
    }

    fn read_all(&mut self, now: Instant) {
        while let Some(Arrived { at, came }) = self.inbox.next_arrived() {
            if self.closed.is_some() {
                // No event follows `Event::Closed`, even if more had arrived before the game left.
                continue;
            }
            let event = match came {
                Came::Session(event) => event,
                Came::Path(from, id, message) => {
                    if let Err(reason) = self.read_path(from, id, message, at) {
                        self.break_off(reason, now);
                    }
                    continue;
                }
                Came::Link(news) => {
                    self.read_link(news);
                    continue;
                }
            };
            match event {
                session::Event::Welcome(welcome) => {
                    if let Err(reason) = self.welcomed(*welcome, at) {
                        self.break_off(reason, now);
                    }
                }
                session::Event::Rejected(away) => self.rejected(away),
                session::Event::Closed(reason) => self.close_with(ClosedReason::Session(reason)),
                session::Event::Message(message) => {
                    if let Err(reason) = self.read_message(message, at) {
                        self.break_off(reason, now);
                    }
                }
                // These never wait (see `drain_session`), and a client has no peer that sends a hello.
                session::Event::Delivered(_)
                | session::Event::Lost(_)
                | session::Event::Hello(_)
                | session::Event::Resume(_)
                | session::Event::Resumed(_)
                | session::Event::Silent => {}
            }
        }
    }

    fn welcomed(&mut self, welcome: Welcome, at: Instant) -> Result<(), CloseReason> {
        let schema = self.options.room_schema(&welcome).map_err(|error| misbehaved("the schema", &error))?;
        let clock = Clock::new(welcome.now, at);
        let is_host = welcome.authority.member() == Some(welcome.member);
        let room_time = clock.room_time(welcome.opened, at);
        let mut shared = SharedState::new(is_host, welcome.member, schema, welcome.tick_rate);
        shared.predict(&self.options, welcome.member);
        if self.joined.is_some() {
            self.forget_room()?;
        } else {
            self.link_state = LinkState::Connected;
            self.inbox.tell(Event::Open { code: welcome.code });
        }
        self.joined = Some(Joined {
            clock,
            ticker: Ticker::new(welcome.tick_rate, room_time),
            replay: Replay::default(),
            once: Once::default(),
            players: Players::default(),
            greeting_left: welcome.members,
            shared,
            replicas: Replicas::new(welcome.member, self.options.template.clone(), welcome.tick_rate),
            primary: None,
            checksums: Checksums::new(self.options.hash_every),
            inputs: Inputs::new(welcome.tick_rate),
            pace: if is_host { Pace::of_host(&self.options, welcome.tick_rate) } else { Pace::default() },
            rewinds: Rewinds::default(),
            rollback: None,
            overlay: Overlay::default(),
            resimulation: Resimulation::new(&self.options).filter(|_| is_host),
            migration: Migration::default(),
            label: welcome.tick_rate.tick_at(room_time),
            welcome,
        });
        self.addresses_changed(at);
        self.tell_addresses(at);
        Ok(())
    }

    fn rejected(&mut self, away: Rejection) {
        match away {
            Rejection::Refused(refusal) => self.close_with(ClosedReason::Refused(refusal)),
            Rejection::RetryAfter(retry) => self.close_with(ClosedReason::RetryAfter(retry)),
            // A redirect goes to the driver: see `drain_session`.
            Rejection::Redirect(_) => {}
        }
    }

    fn close_with(&mut self, reason: ClosedReason) {
        if self.closed.is_some() {
            return;
        }
        self.forget_paths();
        self.last_reason = match &reason {
            ClosedReason::Session(CloseReason::TimedOut) if self.joined.is_some() => {
                Some(ReasonCode::ControlHeartbeatTimeout)
            }
            ClosedReason::Session(CloseReason::HostLeft | CloseReason::HostGone) => {
                Some(ReasonCode::PeerLeft)
            }
            ClosedReason::Session(CloseReason::ConnectionLost { .. } | CloseReason::TimedOut)
                if self.joined.is_none() =>
            {
                Some(ReasonCode::RelayAttachFailed)
            }
            ClosedReason::Refused(Refusal::NoSuchRoom) => Some(ReasonCode::RoomExpired),
            ClosedReason::Refused(_) | ClosedReason::Connect(_) | ClosedReason::RetryAfter(_) => {
                Some(ReasonCode::RelayAttachFailed)
            }
            _ => self.last_reason,
        };
        self.end_recording(Ended::Closed);
        self.link_state = LinkState::Lost;
        self.closed = Some(reason.clone());
        self.inbox.tell(Event::Closed(reason));
    }

    /// Ends the session from this side, after a fault of the other end or at the game's wish.
    fn break_off(&mut self, reason: CloseReason, now: Instant) {
        self.end_paths("the room is over for this player", now);
        if let Some(session) = &mut self.session {
            session.close(reason.clone(), now);
        }
        self.wants_driver = true;
        self.close_with(ClosedReason::Session(reason));
    }

    /// Commits the writes since the last commit, under the step that was run.
    fn commit(&mut self, now: Instant) {
        let taken = self.handled();
        let Some(joined) = &mut self.joined else { return };
        joined.shared.end_step();
        let label = joined.ticker.label(joined.simulation_time(now));
        joined.label = label;
        self.wants_driver |= joined.replicas.commit(joined.room_tick(now));
        // Results of replayed steps belong to the next new step.
        if joined.step().is_replay || joined.replay.is_waiting() {
            return;
        }
        let room_time = joined.room_time(now);
        let Some(host) = joined.shared.host_mut() else { return };
        if host.commit(label, taken, || joined.inputs.reports(room_time)) {
            joined.checksums.note(&joined.shared);
            self.wants_driver = true;
        }
        self.record(now);
        self.note_recorded();
    }
}

impl Joined {
    fn room_time(&self, now: Instant) -> Instant {
        self.clock.room_time(self.welcome.opened, now)
    }

    /// The first named recipient that is not in the room.
    fn unknown_addressee(&self, to: &Recipient) -> Option<MemberId> {
        let is_unknown = |member: &MemberId| self.players.get(*member).is_none();
        match to {
            Recipient::Member(member) => Some(*member).filter(is_unknown),
            Recipient::Members(members) => members.iter().copied().find(is_unknown),
            Recipient::Authority
            | Recipient::Others
            | Recipient::Everyone
            | Recipient::Primary
            | Recipient::Except(_) => None,
        }
    }

    /// Whether this process writes the world. An heir without the whole checkpoint does not.
    fn is_host(&self) -> bool {
        matches!(self.shared, SharedState::Host(_))
    }
}
