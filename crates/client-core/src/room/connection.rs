//! The driver's face of a room: links, packets and time; and the begin and end of a room.

use super::{Joined, RoomCore};
use crate::connection::{Broken, LinkState, Rejected};
use crate::error::misbehaved;
use crate::event::{ClosedReason, Event};
use crate::finding::Found;
use crate::inbox::{Came, LinkNews};
use crate::migration::Migration;
use crate::options::{Admission, PathMode, Wish};
use crate::paths::{Around, Heard, PathCommand, Paths};
use crate::players::Players;
use crate::replicas::Replicas;
use crate::simulation::Simulation;
use crate::state::{Checksums, SharedState, Way};
use crate::status::Follows;
use core::net::SocketAddr;
use parlor_proto::session::{self, DeliveryId, Rejection, Session};
use parlor_proto::wire::handshake::{Hello, Refusal, Resume, Welcome};
use parlor_proto::{CloseReason, Instant, LinkKind, Packet, PathId, PeerMisbehaved, RoomCode};
use parlor_sync::recording::Ended;
use std::time::Duration;

/// For a driver: the server and its links.
impl RoomCore {
    /// Names the server being tried, and whether another one remains if it does not have the room.
    pub fn found(&mut self, found: Found, has_more: bool) {
        self.finding.found(found);
        self.connection.tries(has_more);
    }

    /// Notes that the driver looks for the room to join at an address, and that the code in the options means
    /// nothing until [`code_found`](Self::code_found).
    pub fn find_code(&mut self) {
        self.finding.knows_code(false);
    }

    /// Sets the code of the room to join.
    pub fn code_found(&mut self, code: RoomCode) {
        self.options.intent = Wish::Join { code };
        self.finding.knows_code(true);
    }

    /// Reports the address at which the server is reached.
    pub fn reached_at(&mut self, remote: SocketAddr) {
        self.finding.reached_at(remote);
    }

    /// Whether the server does not have the room and the next one must be tried. Returned once.
    pub fn take_passed_over(&mut self) -> bool {
        self.connection.take_passed_over()
    }

    /// Takes the redirect to another server, if the server sent one; the present connection then ends.
    pub fn take_redirect(&mut self) -> Option<String> {
        self.connection.take_redirect()
    }

    /// The app id.
    pub fn app(&self) -> &str {
        &self.options.app
    }

    /// The game's environment.
    pub fn environment(&self) -> &str {
        &self.options.environment
    }

    /// The admission that the next connection requests; `None` if it resumes a session. A driver may have to
    /// get a token for it and pass it to [`set_token`](Self::set_token).
    pub fn next_admission(&self) -> Option<Admission> {
        self.connection.next_admission(&self.options, self.code())
    }

    /// Sets the token of the next hello.
    pub fn set_token(&mut self, token: &str) {
        self.options.token = Some(token.to_owned());
    }

    /// The code of the room that this process is in.
    fn code(&self) -> Option<RoomCode> {
        self.joined.as_ref().map(|joined| joined.welcome.code)
    }

    /// Reports a connection: the handshake begins, or the session is resumed. If the game has left meanwhile
    /// or the room is given up, neither happens, and [`is_finished`](Self::is_finished) is true.
    pub fn connected(&mut self, link: LinkKind, now: Instant) {
        if self.status.is_closed() || self.connection.is_given_up() {
            return;
        }
        let hello = self.connection.next_hello(&self.options, self.code());
        let hello = hello.map(|hello| Hello { key: self.paths.key(), ..hello });
        self.connection.greet(hello, link, now);
    }

    /// Sets the capacity of the path to the server in bytes per second, all traffic included. State is
    /// limited to it.
    pub fn path_carries(&mut self, bytes_per_second: u32) {
        self.connection.set_capacity(bytes_per_second);
    }

    /// Closes the room, because no connection could be made.
    pub fn failed(&mut self, reason: ClosedReason) {
        self.close_with(reason);
    }

    /// Reports a broken connection.
    pub fn disconnected(&mut self, detail: &str, now: Instant) {
        if !self.status.is_closed()
            && let Broken::Survived(news) = self.connection.broke(detail, self.options.reconnect, now)
        {
            self.arrive_link(news, now);
            return self.drain_session(now);
        }
        let reason = CloseReason::ConnectionLost { detail: detail.to_owned() };
        if self.connection.end(&reason, now) {
            self.drain_session(now);
        } else {
            self.arrive(now, Came::Session(session::Event::Closed(reason)));
        }
    }

    /// When the driver must dial the server again, at the address where it was admitted. `None` while
    /// connected or dialling, and once the room is over.
    pub fn next_attempt(&self) -> Option<Instant> {
        self.connection.next_attempt().filter(|_| !self.status.is_closed())
    }

    /// Whether the driver must keep trying to reconnect; false once the room is over or given up.
    pub fn is_coming_back(&self) -> bool {
        self.connection.is_reconnecting() && !self.status.is_closed()
    }

    /// Begins an attempt to dial. Its result is reported to [`connected`](Self::connected) or
    /// [`attempt_failed`](Self::attempt_failed).
    pub fn attempt_begins(&mut self, now: Instant) {
        let news = self.connection.attempt_begins();
        self.arrive_link(news, now);
    }

    /// Reports that the connection failed.
    pub fn attempt_failed(&mut self, detail: &str, now: Instant) {
        self.attempt_put_off(detail, Duration::ZERO, now);
    }

    /// Reports that an attempt was not made, because the server asks for a delay of `after`.
    pub fn attempt_put_off(&mut self, detail: &str, after: Duration, now: Instant) {
        let news = self.connection.attempt_failed(detail, after, now);
        self.arrive_link(news, now);
    }

    /// Ends all attempts, because the player would not be admitted.
    pub fn attempt_refused(&mut self, why: ClosedReason, now: Instant) {
        self.connection.give_up();
        self.arrive_link(Some(LinkNews::Refused(why)), now);
    }

    /// Whether nothing is left to send and the connection can be closed. There may be
    /// [another attempt](Self::next_attempt).
    pub fn is_finished(&self) -> bool {
        self.connection.is_finished()
    }

    /// Whether data to send is queued that the driver does not know of; reading clears the flag.
    pub fn take_wants_driver(&mut self) -> bool {
        std::mem::take(&mut self.wants_driver)
    }
}

/// For a driver: packets and time.
impl RoomCore {
    /// Takes in a packet. A protocol violation of the peer ends the session and raises [`Event::Closed`].
    pub fn handle_packet(&mut self, packet: Packet, now: Instant) {
        // Of a link that the session has let go of, because the room has moved.
        if self.connection.session().is_some_and(|session| !session.has_link()) {
            return;
        }
        self.connection.heard(now);
        if let Some(session) = self.connection.session_mut() {
            // The session closes itself and gives the reason in its events.
            let _: Result<(), PeerMisbehaved> = session.handle_packet(packet, now);
        }
        self.drain_session(now);
    }

    /// Lets time pass. Call it when [`poll_timeout`](Self::poll_timeout) is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(session) = self.connection.session_mut() {
            session.handle_timeout(now);
        }
        if let Some(joined) = &mut self.joined {
            joined.replicas.handle_timeout(now);
            if let Some(host) = joined.shared.host_mut() {
                host.handle_timeout(now);
            }
        }
        if self.connection.is_hub_gone(now) {
            self.arrive_link(Some(LinkNews::HostGone), now);
        }
        self.connection.handle_claim_timeout(now);
        let late = self.connection.late_move(now);
        self.arrive_link(late, now);
        self.drain_claim(now);
        self.request_hand_over(now);
        self.drain_session(now);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let session = self.connection.session().and_then(Session::poll_timeout);
        let streams = self.joined.iter().flat_map(|joined| {
            let hand_over = joined.migration.hand_over().poll_timeout();
            joined.shared.poll_timeout().into_iter().chain(joined.replicas.poll_timeout()).chain(hand_over)
        });
        let watchdog = self.connection.watchdog_timeout().into_iter().chain(self.connection.claim_timeout());
        let watchdog = watchdog.filter(|_| !self.status.is_closed());
        session.into_iter().chain(streams).chain(watchdog).min()
    }

    /// The next packet for the connection. Call it only while the connection takes packets, until it returns
    /// `None`.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        self.with_paths(|paths, _, around| paths.go_on(around, now));
        let way = Way {
            carries: self.connection.capacity(),
            is_inside: self.connection.link() == Some(LinkKind::Memory),
        };
        if let Some(joined) = &mut self.joined
            && let Some(session) = self.connection.attached(joined.welcome.session)
        {
            joined.shared.publish(session, way, now);
            // Hubs accept own states at the same rate over any link.
            joined.replicas.publish(session, Way { is_inside: false, ..way }, now);
        }
        let packet = self.connection.session_mut()?.poll_packet(now);
        if packet.is_none() {
            // Handles what was replaced or given up while packing.
            self.drain_session(now);
        }
        packet
    }

    pub(super) fn drain_session(&mut self, now: Instant) {
        while let Some(event) = self.connection.session_mut().and_then(Session::poll_event) {
            match event {
                session::Event::Delivered(delivery_id) => self.fate(delivery_id, true, now),
                session::Event::Lost(delivery_id) => self.fate(delivery_id, false, now),
                session::Event::Rejected(away) => {
                    let is_last_host = self.is_host() && !self.migrates();
                    match self.connection.rejected(away, is_last_host, now) {
                        Rejected::GoesOn(news) => self.arrive_link(news, now),
                        Rejected::Ended(away) => {
                            self.arrive(now, Came::Session(session::Event::Rejected(away)));
                        }
                    }
                }
                session::Event::Silent => {
                    let news = self.connection.silent(now);
                    self.arrive_link(news, now);
                }
                session::Event::Resumed(token) => {
                    self.connection.resumed(token);
                    self.paths.addresses_changed(now);
                    self.arrive_link(Some(LinkNews::Resumed), now);
                }
                session::Event::Closed(reason)
                    if !self.status.is_closed() && self.connection.is_end_of_attempt(&reason) =>
                {
                    self.attempt_failed(&reason.to_string(), now);
                }
                session::Event::Message(message) => {
                    match self.with_paths(|paths, _, around| paths.hear(message, around, now)) {
                        Heard::Game(message) => {
                            self.arrive(now, Came::Session(session::Event::Message(message)));
                        }
                        Heard::Paths(came) => came.into_iter().for_each(|came| self.arrive(now, came)),
                    }
                }
                session::Event::Seat(seat) if self.options.reconnect => {
                    let news = self.connection.seated(seat, now);
                    self.arrive_link(news, now);
                }
                session::Event::Moved(address) => {
                    if self.status.is_closed() || !self.connection.moved(address.clone(), now) {
                        self.connection.close(CloseReason::Moved { address }, now);
                    }
                }
                event => {
                    if let session::Event::Welcome(welcome) = &event {
                        let is_opened = self.connection.is_new();
                        self.admitted(welcome, is_opened, now);
                    }
                    self.arrive(now, Came::Session(event));
                }
            }
        }
    }

    /// Queues an arrival for the next poll, or processes it now if the queue is too full.
    pub(super) fn arrive(&mut self, now: Instant, came: Came) {
        if let Came::Session(session::Event::Message(message)) = &came {
            self.note_deferred(message);
        }
        if self.inbox.arrive(now, came) {
            self.read_arrived(now);
        }
    }

    pub(super) fn arrive_link(&mut self, news: Option<LinkNews>, now: Instant) {
        news.into_iter().for_each(|news| self.arrive(now, Came::Link(news)));
    }

    fn fate(&mut self, delivery_id: DeliveryId, delivered: bool, now: Instant) {
        if let Some(joined) = &mut self.joined
            && self.connection.is_session(joined.welcome.session)
        {
            match delivery_id.stream() {
                (None, number) => joined.shared.fate(number, delivered),
                (Some(_), number) => joined.replicas.fate(number, delivered),
            }
        }
        self.acknowledge_handled();
        self.request_hand_over(now);
    }
}

/// For a driver: paths to other members.
impl RoomCore {
    /// Whether the game wants paths; only then [`offer_paths`](Self::offer_paths) is needed.
    pub fn wants_paths(&self) -> bool {
        self.options.paths != PathMode::Relay
    }

    /// Sets the SHA-256 of this process's certificate and its candidate addresses, before each
    /// [`connected`](Self::connected). They are not disclosed if the game wants no paths.
    pub fn offer_paths(&mut self, key: [u8; 32], addresses: Vec<SocketAddr>) {
        if self.wants_paths() {
            self.paths.set_own(key, addresses, self.options.paths);
        }
    }

    /// Why the last path ended or failed, for a person; `None` if none did.
    pub fn path_ended(&self) -> Option<&str> {
        self.paths.ended()
    }

    /// The next task for a path, oldest first.
    pub fn poll_path_command(&mut self) -> Option<PathCommand> {
        self.paths.poll_command()
    }

    /// Reports a connection to the other end of a path, with its identity verified. `remote` is its address.
    pub fn path_connected(&mut self, id: PathId, kind: LinkKind, remote: SocketAddr, now: Instant) {
        self.with_paths(|paths, _, around| paths.connected(id, (kind, remote), around, now));
        self.drain_path(id, now);
    }

    /// Reports that the other end was not reached.
    pub fn path_failed(&mut self, id: PathId, why: &str, now: Instant) {
        self.with_paths(|paths, _, around| paths.failed(id, why, around, now));
    }

    /// Reports that the connection of a path broke.
    pub fn path_lost(&mut self, id: PathId, detail: &str, now: Instant) {
        self.with_paths(|paths, _, around| paths.lost(id, detail, around, now));
    }

    /// Takes in a packet from a path.
    pub fn handle_path_packet(&mut self, id: PathId, packet: Packet, now: Instant) {
        self.paths.handle_packet(id, packet, now);
        self.drain_path(id, now);
    }

    /// Sets the capacity of a path in bytes per second, all traffic included. State is limited to it.
    pub fn path_to_peer_carries(&mut self, id: PathId, bytes_per_second: u32) {
        if let Some(joined) = &mut self.joined {
            self.paths.set_capacity(id, bytes_per_second, &mut joined.shared);
        }
    }

    /// The next packet for a path. Call it only while its connection takes packets, until it returns `None`.
    pub fn poll_path_packet(&mut self, id: PathId, now: Instant) -> Option<Packet> {
        let packet = self.with_paths(|paths, _, around| paths.poll_packet(id, around, now));
        if packet.is_none() {
            self.drain_path(id, now);
        }
        packet
    }

    /// When [`handle_path_timeout`](Self::handle_path_timeout) is due.
    pub fn poll_path_timeout(&self) -> Option<Instant> {
        let of_paths = self.paths.poll_timeout(self.can_tell_addresses());
        let joined = self.joined.as_ref();
        let views = joined.and_then(|joined| joined.shared.direct_due());
        let own = joined.and_then(|joined| joined.replicas.direct_due());
        of_paths.into_iter().chain(self.paths_serve_until()).chain(views).chain(own).min()
    }

    /// Lets time pass for all paths.
    pub fn handle_path_timeout(&mut self, now: Instant) {
        if self.paths_serve_until().is_some_and(|until| until <= now) {
            self.end_paths("the hub was not heard for too long", now);
        }
        for id in self.paths.ids() {
            self.with_paths(|paths, _, around| paths.pass_time(id, around, now));
            self.drain_path(id, now);
        }
        if let Some(joined) = &mut self.joined {
            joined.shared.direct_timeout(now);
            joined.replicas.direct_timeout(now);
        }
        self.tell_addresses(now);
    }

    fn paths_serve_until(&self) -> Option<Instant> {
        self.paths.serves_until(&self.connection, &self.joined.as_ref()?.welcome)
    }

    /// Processes the arrivals of a path, up to the game's inbox.
    fn drain_path(&mut self, id: PathId, now: Instant) {
        while let Some(came) = self.with_paths(|paths, _, around| paths.next_arrived(id, around, now)) {
            self.arrive(now, came);
        }
    }

    /// Ends all paths; unacknowledged messages go through the hub.
    pub(super) fn end_paths(&mut self, why: &str, now: Instant) {
        self.with_paths(|paths, _, around| paths.end_all(why, around, now));
    }

    fn can_tell_addresses(&self) -> bool {
        let is_apart = self.connection.link() == Some(LinkKind::Quic);
        is_apart && self.connection.is_attached() && self.is_connected()
    }

    /// Tells the hub this process's addresses, if due.
    pub(super) fn tell_addresses(&mut self, now: Instant) {
        if self.can_tell_addresses() {
            let mode = self.options.paths;
            self.with_paths(|paths, _, around| paths.tell_addresses(mode, around.hub, now));
        }
    }

    /// Calls the paths with what they act on, and notes what follows.
    pub(super) fn with_paths<R>(
        &mut self,
        act: impl FnOnce(&mut Paths, Option<&Players>, &mut Around<'_>) -> R,
    ) -> R {
        let (open, players) = match &mut self.joined {
            Some(Joined { welcome, shared, players, replicas, .. }) => {
                (Some((&*welcome, (shared, replicas))), Some(&*players))
            }
            None => (None, None),
        };
        let (welcome, states) = open.unzip();
        let (shared, replicas) = states.unzip();
        let mut around = Around {
            options: &self.options,
            hub: &mut self.connection,
            welcome,
            shared,
            replicas,
            is_closed: self.status.is_closed(),
        };
        let result = act(&mut self.paths, players, &mut around);
        self.paths.take_reason().into_iter().for_each(|reason| self.status.report(reason));
        self.wants_driver |= self.paths.take_wants_driver();
        result
    }
}

/// The begin and the end of a room.
impl RoomCore {
    /// State of the connection to the room's server.
    pub fn link_state(&self) -> LinkState {
        self.status.link()
    }

    /// The proof with which this seat can be resumed: see [`Wish::Resume`](crate::Wish::Resume). It changes
    /// with each use.
    pub fn resume_proof(&self) -> Option<Resume> {
        self.connection.resume_proof().filter(|_| self.is_connected())
    }

    /// Leaves the room. If the host leaves, the room ends, unless another player takes the host role
    /// ([`Options::host_timeout`](crate::Options::host_timeout)). Messages sent before still arrive.
    pub fn leave(&mut self, now: Instant) {
        self.break_off(CloseReason::Left, now);
    }

    pub(super) fn welcomed(&mut self, welcome: Welcome, at: Instant) -> Result<(), CloseReason> {
        if self.options.spectate && !welcome.spectates() {
            // The server is older: it has seated a player.
            let why = ClosedReason::Refused(Refusal::SpectatorsFull { max: 0 });
            self.part(CloseReason::Left, why, at);
            return Ok(());
        }
        // Also where a ticket or a session brought it back.
        self.options.spectate = welcome.spectates();
        let schema = self.options.room_schema(&welcome).map_err(|error| misbehaved("the schema", &error))?;
        let (me, rate) = (welcome.member, welcome.tick_rate);
        let is_authority = welcome.authority.member() == Some(me);
        let is_host = is_authority && self.joined.is_none() && self.options.is_of_host();
        let pauses = self.options.migration_pause.unwrap_or(!schema.has_game_components());
        let mut shared = SharedState::new(is_host, me, schema, rate);
        shared.configure(&self.options);
        if self.joined.is_some() {
            self.forget_room()?;
        } else {
            self.status.opened();
            self.inbox.tell(Event::Open { code: welcome.code });
        }
        // A spectator has no state of its own.
        let template = self.options.template.clone().filter(|_| !welcome.spectates());
        self.joined = Some(Joined {
            players: Players::new(me, welcome.members),
            shared,
            checksums: Checksums::new(self.options.hash_every),
            replicas: Replicas::new(me, template, rate),
            simulation: Simulation::new(&welcome, &self.options, is_host, at),
            migration: match is_authority && !is_host {
                true => Migration::of_own_heir(pauses, at),
                false => Migration::new(pauses),
            },
            welcome,
        });
        self.paths.addresses_changed(at);
        self.tell_addresses(at);
        Ok(())
    }

    pub(super) fn rejected(&mut self, away: Rejection) {
        match away {
            Rejection::Refused(refusal) => self.close_with(ClosedReason::Refused(refusal)),
            Rejection::RetryAfter(retry) => self.close_with(ClosedReason::RetryAfter(retry)),
            // A redirect goes to the driver: see `take_redirect`.
            Rejection::Redirect(_) => {}
        }
    }

    /// Raises the events of a change of the connection.
    pub(super) fn read_link(&mut self, news: LinkNews, at: Instant) {
        if let (LinkNews::Resumed, Some(joined)) = (&news, &mut self.joined) {
            joined.migration.await_anew(at);
        }
        match self.status.apply(news) {
            Follows::Event(event) => self.inbox.tell(event),
            Follows::End(reason) => self.close_with(reason),
            Follows::Nothing => {}
        }
    }

    pub(super) fn close_with(&mut self, reason: ClosedReason) {
        if self.status.is_closed() {
            return;
        }
        self.paths.forget();
        self.recording.end(Ended::Closed);
        self.status.close(reason.clone(), self.joined.is_some());
        self.inbox.tell(Event::Closed(reason));
    }

    /// Ends the session from this side, after a fault of the other end or at the game's wish.
    pub(super) fn break_off(&mut self, reason: CloseReason, now: Instant) {
        self.part(reason.clone(), ClosedReason::Session(reason), now);
    }

    /// Ends the session from this side. The hub gets the reason `goodbye`, the game another one.
    fn part(&mut self, goodbye: CloseReason, reason: ClosedReason, now: Instant) {
        self.end_paths("the room is over for this player", now);
        self.connection.close(goodbye, now);
        self.wants_driver = true;
        self.close_with(reason);
    }

    /// Ends the room for this process if what it waits for did not come in time: the new host, or the direct
    /// path without which its game does not play.
    pub(super) fn check_patience(&mut self, now: Instant) {
        let Some(joined) = self.joined.as_ref().filter(|_| self.status.link() == LinkState::Connected) else {
            return self.paths.excuse();
        };
        if joined.migration.is_overdue(self.options.migration_grace, now) {
            return self.break_off(CloseReason::HostGone, now);
        }
        // A spectator is relayed to.
        let has_path = !joined.is_host() && !joined.is_match() && !joined.welcome.spectates();
        let is_needed = self.options.paths == PathMode::P2p && has_path;
        if !is_needed {
            return self.paths.excuse();
        }
        if let Some(missing) = self.paths.missing(joined.welcome.authority.member(), now) {
            self.part(CloseReason::Left, ClosedReason::NoDirectPath(missing), now);
        }
    }
}
