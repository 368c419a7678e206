//! The room as a game and a driver see it.

use super::event::{ClosedReason, Event};
use super::inbox::{Arrived, Came, Inbox};
use super::info::{JoinPath, Mode, ReasonCode, Scope};
use super::inputs::Inputs;
use super::marks::Marks;
use super::migration::Migration;
use super::options::Options;
use super::overlay::Overlay;
use super::pace::Pace;
use super::paths::Paths;
use super::players::Players;
use super::reading::misbehaved;
use super::reconnect::{LinkState, Reconnect};
use super::replay::Replay;
use super::replicas::Replicas;
use super::resimulation::Resimulation;
use super::rewind::Rewinds;
use super::rollback::RollbackLane;
use super::shared::Shared;
use super::ticker::Ticker;
use super::upstream::Way;
use super::vigil::Vigil;
use parlor_proto::session::{self, Session, TurnedAway};
use parlor_proto::wire::envelope::To;
use parlor_proto::wire::handshake::{Refusal, Resume, Welcome};
use parlor_proto::{CloseReason, Instant, LinkKind, MemberId, Packet, PeerMisbehaved, SessionId, Tick};
use parlor_sync::clock::Clock;
use parlor_sync::prediction::Once;
use parlor_sync::recording::{Ended, Recorder};

/// Where a driver found the room's server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address, for a person to read.
    pub server: String,
    /// How far it is.
    pub scope: Scope,
    /// How the room was found, for whoever joins it.
    pub join_path: Option<JoinPath>,
}

/// A room without sockets. See the [module](super).
#[derive(Debug)]
pub struct RoomCore {
    pub(super) options: Options,
    pub(super) mode: Mode,
    pub(super) found: Option<Found>,
    pub(super) session: Option<Session>,
    pub(super) link: Option<LinkKind>,
    pub(super) redirect: Option<String>,
    pub(super) reconnect: Reconnect,
    pub(super) vigil: Vigil,
    /// What the session is resumed with, if it can be.
    pub(super) resume: Option<Resume>,
    /// Which session is open; `joined` may be of the one before until the game polls.
    pub(super) carries: Option<SessionId>,
    /// Bytes per second that the path to the server carries, if that is known.
    path: Option<u32>,
    /// As far as the game was told.
    pub(super) link_state: LinkState,
    pub(super) has_resumed: bool,
    pub(super) joined: Option<Joined>,
    pub(super) closed: Option<ClosedReason>,
    pub(super) last_reason: Option<ReasonCode>,
    pub(super) inbox: Inbox,
    /// Something waits to be sent that the driver was not told of.
    pub(super) wants_driver: bool,
    pub(super) messages_unreadable: u64,
    pub(super) recording: Option<Box<Recorder>>,
    pub(super) paths: Paths,
}

/// What is known once the room is open.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) welcome: Welcome,
    pub(super) clock: Clock,
    pub(super) ticker: Ticker,
    pub(super) replay: Replay,
    /// Which one-shot effects were shown.
    pub(super) once: Once,
    pub(super) players: Players,
    /// Of how many the hub has yet to say that they are there.
    pub(super) greeting_left: u16,
    pub(super) shared: Shared,
    pub(super) replicas: Replicas,
    /// Whom messages to the primary reach.
    pub(super) primary: Option<MemberId>,
    pub(super) marks: Marks,
    pub(super) inputs: Inputs,
    pub(super) pace: Pace,
    pub(super) rewinds: Rewinds,
    pub(super) rollback: Option<Box<RollbackLane>>,
    pub(super) overlay: Overlay,
    /// At a host whose game wants it.
    pub(super) resimulation: Option<Box<Resimulation>>,
    pub(super) migration: Migration,
    /// The step that writes counted for at the last commit.
    pub(super) label: Tick,
}

impl RoomCore {
    /// A room that is not connected yet.
    #[must_use]
    pub fn new(options: Options, mode: Mode) -> Self {
        RoomCore {
            options,
            mode,
            found: None,
            session: None,
            link: None,
            redirect: None,
            reconnect: Reconnect::new(),
            vigil: Vigil::default(),
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
    /// Says which server is being reached.
    pub fn found(&mut self, found: Found) {
        self.found = Some(found);
    }

    /// A connection stands: the handshake begins, or the session goes on. If the game has left meanwhile, or the room is given
    /// up, it does not, and [`is_finished`](Self::is_finished) says so.
    pub fn connected(&mut self, link: LinkKind, now: Instant) {
        if self.closed.is_some() || self.reconnect.is_given_up() {
            return;
        }
        self.vigil.heard(now);
        self.path = None;
        self.greet(link, now);
    }

    /// The path to the server carries so many bytes per second, all that goes over it included: no more state than that is made.
    pub fn path_carries(&mut self, bytes_per_second: u32) {
        self.path = Some(bytes_per_second);
    }

    /// No connection could be made: the room is closed.
    pub fn failed(&mut self, reason: ClosedReason) {
        self.close_with(reason);
    }

    /// The connection broke.
    pub fn disconnected(&mut self, detail: &str, now: Instant) {
        let reason = CloseReason::ConnectionLost { detail: detail.to_owned() };
        if self.outlives(detail, now) {
            return self.drain_session(now);
        }
        let Some(session) = &mut self.session else {
            return self.arrive(now, Came::Session(session::Event::Closed(reason)));
        };
        // In this order: a session that said or heard goodbye keeps its own reason, and one that did not has nothing
        // left to send.
        session.close(reason, now);
        session.detach();
        self.drain_session(now);
    }

    /// Takes a packet in. What a peer did against the protocol ends the session, and [`Event::Closed`] says so.
    pub fn handle_packet(&mut self, packet: Packet, now: Instant) {
        self.vigil.heard(now);
        if let Some(session) = &mut self.session {
            // The session closes itself and says why in its events.
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
        if self.vigil.look(now) {
            self.host_gone(now);
        }
        self.drain_session(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let session = self.session.as_ref().and_then(Session::poll_timeout);
        let streams = self.joined.iter().flat_map(|joined| {
            joined.shared.poll_timeout().into_iter().chain(joined.replicas.poll_timeout())
        });
        let vigil = self.vigil.poll_timeout().filter(|_| self.closed.is_none());
        session.into_iter().chain(streams).chain(vigil).min()
    }

    /// The next packet for the connection. Call it only while the connection takes packets, until it gives `None`.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        self.drain_queues();
        let session = self.session.as_mut()?;
        if let Some(joined) = &mut self.joined
            && session.is_attached()
            && self.carries == Some(joined.welcome.session)
        {
            let way = Way { carries: self.path, is_inside: self.link == Some(LinkKind::Memory) };
            joined.shared.publish(session, way, now);
            // Hubs take own states as they come over any link.
            joined.replicas.publish(session, Way { is_inside: false, ..way }, now);
        }
        let packet = session.poll_packet(now);
        if packet.is_none() {
            // What was replaced or given up while packing.
            self.drain_session(now);
        }
        packet
    }

    /// Where the server said the room is, if it said so; the connection to it ends with this one.
    pub fn take_redirect(&mut self) -> Option<String> {
        self.redirect.take()
    }

    /// Whether nothing is left to be sent over the connection, which can be closed; there may be
    /// [another one](Self::next_attempt).
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_finished() || !session.has_link())
    }

    fn drain_session(&mut self, now: Instant) {
        while let Some(event) = self.session.as_mut().and_then(Session::poll_event) {
            match event {
                session::Event::Delivered(tag) => self.fate(tag, true),
                session::Event::Lost(tag) => self.fate(tag, false),
                session::Event::TurnedAway(away) => match self.not_let_back(away, now) {
                    Some(TurnedAway::Redirect(redirect)) => self.redirect = Some(redirect.address),
                    Some(away) => self.arrive(now, Came::Session(session::Event::TurnedAway(away))),
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

    /// Something came that the game is told of when it polls, or now if too much waits.
    pub(super) fn arrive(&mut self, now: Instant, came: Came) {
        if let Came::Session(session::Event::Message(message)) = &came {
            self.note_unhandled(message);
        }
        if self.inbox.arrive(now, came) {
            self.read_arrived(now);
        }
    }

    fn fate(&mut self, tag: session::Tag, delivered: bool) {
        let carries = self.carries;
        if let Some(joined) = self.joined.as_mut().filter(|joined| carries == Some(joined.welcome.session)) {
            match tag.stream() {
                (None, number) => joined.shared.fate(number, delivered),
                (Some(_), number) => joined.replicas.fate(number, delivered),
            }
        }
        self.acknowledge_handled();
    }
}

/// For a game: what happens.
impl RoomCore {
    /// The next event. Everything that a game can read changes only in here: between two polls that give `None` the
    /// state, the players and the inputs stand still.
    pub fn poll(&mut self, now: Instant) -> Option<Event> {
        if let Some(event) = self.next_event() {
            return Some(event);
        }
        self.commit(now);
        self.read_arrived(now);
        self.next_event()
    }

    fn next_event(&mut self) -> Option<Event> {
        if self.awaits_greeting() { None } else { self.inbox.next_event() }
    }

    /// Whether a step of the room is due; if so it counts as run, and [`tick_number`](Self::tick_number) is its
    /// number. What was set since the step before is published. Steps that have to be run again come first, and
    /// [`is_replay`](Self::is_replay) tells them: so call this in a loop until it says no.
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

    /// Whether something waits to be sent that the driver was not told of; asking clears it.
    pub fn take_wants_driver(&mut self) -> bool {
        std::mem::take(&mut self.wants_driver)
    }

    /// Reads what came, as of when it came. What ends the session ends it `now`: what came may have waited for longer than a
    /// goodbye lingers.
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
                // Nothing comes after `Event::Closed`, though more may have arrived before the game left.
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
                session::Event::TurnedAway(away) => self.turned_away(away),
                session::Event::Closed(reason) => self.close_with(ClosedReason::Session(reason)),
                session::Event::Message(message) => {
                    if let Err(reason) = self.read_message(message, at) {
                        self.break_off(reason, now);
                    }
                }
                // These never wait: see `drain_session`; and a client has no peer that says hello.
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
        let mut shared = Shared::new(is_host, welcome.member, schema, welcome.tick_rate);
        shared.predict(&self.options, welcome.member);
        if self.joined.is_some() {
            self.forget_room()?;
        } else {
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
            marks: Marks::new(self.options.hash_every),
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

    fn turned_away(&mut self, away: TurnedAway) {
        match away {
            TurnedAway::Refused(refusal) => self.close_with(ClosedReason::Refused(refusal)),
            TurnedAway::RetryAfter(retry) => self.close_with(ClosedReason::RetryAfter(retry)),
            // A redirect goes to the driver: see `drain_session`.
            TurnedAway::Redirect(_) => {}
        }
    }

    pub(super) fn close_with(&mut self, reason: ClosedReason) {
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
        self.closed = Some(reason.clone());
        self.inbox.tell(Event::Closed(reason));
    }

    /// Ends the session from this side, for something that the other end or the game did.
    pub(super) fn break_off(&mut self, reason: CloseReason, now: Instant) {
        self.end_paths("the room is over for this player", now);
        if let Some(session) = &mut self.session {
            session.close(reason.clone(), now);
        }
        self.wants_driver = true;
        self.close_with(ClosedReason::Session(reason));
    }

    /// Commits what was written since the last commit, under the step that was run.
    pub(super) fn commit(&mut self, now: Instant) {
        let taken = self.handled();
        let Some(joined) = &mut self.joined else { return };
        joined.leave_step();
        let label = joined.ticker.label(joined.simulation_time(now));
        joined.label = label;
        self.wants_driver |= joined.replicas.commit(joined.room_tick(now));
        // What comes of steps that are run again belongs to the next step that is not.
        if joined.step().is_replay || joined.replay.is_waiting() {
            return;
        }
        let room_time = joined.room_time(now);
        let Some(host) = joined.shared.host_mut() else { return };
        if host.commit(label, taken, || joined.inputs.reports(room_time)) {
            joined.marks.note(&joined.shared);
            self.wants_driver = true;
        }
        self.record(now);
        self.note_recorded();
    }
}

impl Joined {
    pub(super) fn room_time(&self, now: Instant) -> Instant {
        self.clock.room_time(self.welcome.opened, now)
    }

    /// The first of those whom a message is to reach by name that is not in the room.
    pub(super) fn unknown_addressee(&self, to: &To) -> Option<MemberId> {
        let is_unknown = |member: &MemberId| self.players.get(*member).is_none();
        match to {
            To::Member(member) => Some(*member).filter(is_unknown),
            To::Members(members) => members.iter().copied().find(is_unknown),
            To::Authority | To::Others | To::Everyone | To::Primary | To::Except(_) => None,
        }
    }

    /// Whether this process writes the world. Who is named to and has not all of it yet does not.
    pub(super) fn is_host(&self) -> bool {
        matches!(self.shared, Shared::Host(_))
    }
}
