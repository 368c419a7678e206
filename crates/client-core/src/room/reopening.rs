//! A room that another server reopens: claims at other servers, for a driver, and what goes on in the room. Also
//! what is forgotten where nothing goes on, because this process rejoined.

use super::{Joined, RoomCore};
use crate::connection::ClaimNews;
use crate::event::Event;
use crate::inbox::{Came, LinkNews};
use crate::rollback::RollbackLane;
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::handshake::{Hello, Welcome, capability};
use parlor_proto::{CloseReason, Epoch, Instant, LinkKind, Packet};

/// For a driver: a second link, to a server that may reopen the room of a silent or lost one.
///
/// Its packets pass by [`handle_claim_packet`](Self::handle_claim_packet) and
/// [`poll_claim_packet`](Self::poll_claim_packet) until the claim [is over](Self::is_claiming). If
/// [`line`](Self::line) has grown then, that link is the room's, and the one before is to be closed.
impl RoomCore {
    /// When the driver must dial another server, beside the room's. `None` while there is no reason to.
    pub fn next_claim(&self) -> Option<Instant> {
        self.connection.next_claim().filter(|_| !self.status.is_closed())
    }

    /// Begins a claim: returns the address to dial, as a [redirect](Self::take_redirect) has it. Empty for the address
    /// where the room was. Any other name of that address is not dialled but fails, unless
    /// [it may be asked](Self::claims_own): the room's server lives, and the session is resumed there. The result is
    /// reported to [`claim_connected`](Self::claim_connected) or [`claim_failed`](Self::claim_failed).
    pub fn claim_begins(&mut self) -> Option<String> {
        self.connection.claim_begins()
    }

    /// Whether a claim may be made at the address where the room was.
    pub fn claims_own(&self) -> bool {
        self.connection.claims_own()
    }

    /// Whether a claim is dialled or waits for its answer. If not, its link is no longer needed, except as the room's.
    pub fn is_claiming(&self) -> bool {
        self.connection.is_claiming() && !self.status.is_closed()
    }

    /// How many claims have brought the room another link.
    pub fn line(&self) -> u64 {
        self.connection.line()
    }

    /// Reports the connection of a claim.
    pub fn claim_connected(&mut self, link: LinkKind, now: Instant) {
        let Some(joined) = self.joined.as_ref().filter(|_| !self.status.is_closed()) else { return };
        let (code, room_time) = (joined.welcome.code, joined.simulation.room_time(now));
        let hello = Hello { key: self.paths.key(), ..self.options.hello_again(Some(code)) };
        self.connection.claim_connected(hello, room_time, link, now);
    }

    /// Reports that a claim's server was not reached, or that its connection broke.
    pub fn claim_failed(&mut self, detail: &str, now: Instant) {
        let news = self.connection.claim_failed(detail, now);
        self.arrive_link(news, now);
    }

    /// Takes in a packet of a claim.
    pub fn handle_claim_packet(&mut self, packet: Packet, now: Instant) {
        self.connection.handle_claim_packet(packet, now);
        self.drain_claim(now);
    }

    /// The next packet of a claim.
    pub fn poll_claim_packet(&mut self, now: Instant) -> Option<Packet> {
        self.connection.poll_claim_packet(now)
    }

    pub(super) fn drain_claim(&mut self, now: Instant) {
        let is_last_host = self.is_host() && !self.migrates();
        match self.connection.poll_claim(is_last_host, now) {
            None => {}
            Some(ClaimNews::Link(news)) => self.arrive_link(news, now),
            Some(ClaimNews::Granted { welcome, was_away }) => {
                self.admitted(&welcome, true, now);
                self.arrive_link(was_away.then_some(LinkNews::Resumed), now);
                self.arrive(now, Came::Reopened(welcome));
                self.wants_driver = true;
                self.drain_session(now);
            }
        }
    }
}

/// What goes on, and what is forgotten.
impl RoomCore {
    /// Goes on in the room that another hub has reopened, as the same member. That hub has nothing of it but its
    /// members: the host sends the world from nothing, the streams of members begin anew beside what they read, and
    /// all that was under way is dropped.
    ///
    /// A process whose part is another one, or that does not know the host, is treated like one that rejoined.
    pub(super) fn reopened(&mut self, welcome: Welcome, at: Instant) -> Result<(), CloseReason> {
        if welcome.capabilities & capability::CONTINUES != 0 && self.joined.is_some() {
            self.moved(welcome, at);
            return Ok(());
        }
        let goes_on = |joined: &Joined| {
            let is_same = welcome.member == joined.welcome.member && welcome.kind == joined.welcome.kind;
            is_same && welcome.is_of_authority() == joined.is_host() && !joined.migration.is_under_way()
        };
        let Some(joined) = self.joined.as_mut().filter(|joined| goes_on(joined)) else {
            return self.welcomed(welcome, at);
        };
        self.paths.forget();
        self.lane = RollbackLane::default();
        joined.simulation.reopened(&welcome, at);
        for refused in joined.simulation.abandon_actions() {
            self.inbox.tell_bounded(refused, 0)?;
        }
        joined.players.reopened(welcome.members);
        joined.replicas.reopened();
        joined.migration.reopened();
        if let Some(session) = self.connection.session_mut() {
            // What came since the welcome was taken for news of another authority.
            session.hold_acks_from(None);
        }
        joined.shared.reopened();
        joined.welcome = welcome;
        for data in joined.players.own_data() {
            self.connection.tell_hub(&ToHub::SetData(data));
        }
        self.paths.addresses_changed(at);
        self.tell_addresses(at);
        Ok(())
    }

    /// Goes on in the room that has moved with its sessions. No message is lost, so who is there, who hosts and what was
    /// asked is as before. Streams begin anew.
    fn moved(&mut self, welcome: Welcome, at: Instant) {
        let Some(joined) = &mut self.joined else { return };
        self.paths.forget();
        joined.simulation.reopened(&welcome, at);
        joined.replicas.reopened();
        joined.shared.reopened();
        // Messages that are on their way may tell of another host.
        let Welcome { authority, epoch, .. } = joined.welcome;
        joined.welcome = Welcome { authority, epoch, ..welcome };
        self.paths.addresses_changed(at);
        self.tell_addresses(at);
    }

    /// Handles the welcome of the room's session. `is_opened` says whether its hub knows no terms of this process.
    pub(super) fn admitted(&mut self, welcome: &Welcome, is_opened: bool, now: Instant) {
        let (is_hub_host, reconnects) = (self.options.is_of_host(), self.options.reconnect);
        self.connection.welcomed(welcome, is_hub_host, reconnects, now);
        let is_passed_on = self.options.host_timeout.is_some() || welcome.epoch > Epoch(0);
        self.connection.set_watched(welcome.is_of_authority() && is_passed_on, now);
        if is_opened {
            self.connection.want_terms(self.options.terms(), welcome.limits);
            let most = self.options.spectators_to_say();
            most.into_iter().for_each(|most| self.tell_hub(&ToHub::Spectators { most }));
        }
    }

    /// Forgets the room, because this process rejoined. All known players and entities are
    /// reported as gone.
    pub(super) fn forget_room(&mut self) -> Result<(), CloseReason> {
        let Some(joined) = self.joined.take() else { return Ok(()) };
        self.paths.forget();
        self.lane = RollbackLane::default();
        self.inbox.tell_entities(joined.shared.entities(), [])?;
        joined.players.tell_gone(&mut self.inbox)?;
        self.status.rejoined();
        self.inbox.tell_bounded(Event::Reconnected { state_resynced: true }, 0)
    }

    /// Handles room control about members. The last announcement of a reopened room says who is gone.
    pub(super) fn hear_members(&mut self, control: ToMember) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let left = match &control {
            ToMember::Left { member, .. } => vec![*member],
            ToMember::Joined(_) => joined.players.left_by(&control),
            _ => Vec::new(),
        };
        for member in &left {
            joined.simulation.left(*member);
            joined.replicas.left(*member);
            self.lane.left(*member);
        }
        joined.players.hear(control, joined.welcome.authority.member(), &mut self.inbox)?;
        left.into_iter().for_each(|member| self.paths.left(member));
        Ok(())
    }
}
