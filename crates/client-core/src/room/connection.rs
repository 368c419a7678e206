//! Loss of the connection and reconnect: the driver's calls, and the events for the game.

use super::{Joined, RoomCore};
use crate::connection::{HubWatchdog, LinkState, Tier};
use crate::event::{ClosedReason, Event};
use crate::inbox::{Came, LinkNews};
use crate::info::ReasonCode;
use crate::options::{Admission, Wish};
use parlor_proto::session::{Rejection, Session};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, Resume, ResumeToken, Welcome};
use parlor_proto::{CloseReason, Instant, LinkKind};
use std::time::Duration;

/// Lower bound of the silence after which the hub counts as gone, whatever the hub says.
const GONE_MIN: Duration = Duration::from_secs(1);

const SILENT: &str = "nothing was heard from the server";

/// For a driver: when to dial again, and the result of each attempt.
impl RoomCore {
    /// When the driver must dial the server again, at the address where it was admitted. `None` while
    /// connected or dialling, and once the room is over.
    pub fn next_attempt(&self) -> Option<Instant> {
        self.reconnect.next_attempt().filter(|_| self.closed.is_none())
    }

    /// Whether the driver must keep trying to reconnect; false once the room is over or given up.
    pub fn is_coming_back(&self) -> bool {
        let is_tried = self.reconnect.next_attempt().is_some() || self.reconnect.trying().is_some();
        is_tried && self.closed.is_none()
    }

    /// Begins an attempt to dial. Its result is reported to [`connected`](Self::connected) or
    /// [`attempt_failed`](Self::attempt_failed).
    pub fn attempt_begins(&mut self, now: Instant) {
        if let Some(attempt) = self.reconnect.begin() {
            self.arrive(now, Came::Link(LinkNews::Attempt(attempt)));
        }
    }

    /// Reports that the connection failed.
    pub fn attempt_failed(&mut self, detail: &str, now: Instant) {
        self.try_again(detail, Duration::ZERO, now);
    }

    /// Reports that an attempt was not made, because the server asks for a delay of `after`.
    pub fn attempt_put_off(&mut self, detail: &str, after: Duration, now: Instant) {
        self.try_again(detail, after, now);
    }

    /// Ends all attempts, because the player would not be admitted.
    pub fn attempt_refused(&mut self, why: ClosedReason, now: Instant) {
        self.reconnect.give_up();
        self.arrive(now, Came::Link(LinkNews::Refused(why)));
    }

    /// The admission that the next connection requests; `None` if it resumes a session. A driver may have to
    /// get a token for it and pass it to [`set_token`](Self::set_token).
    pub fn next_admission(&self) -> Option<Admission> {
        match self.next_hello()?.intent {
            Intent::Create(settings) => Some(Admission::Create(settings.code)),
            Intent::Join { code, .. } => Some(Admission::Join(code)),
            Intent::Resume(_) | Intent::Path(_) => None,
        }
    }

    /// Sets the token of the next hello.
    pub fn set_token(&mut self, token: &str) {
        self.options.token = Some(token.to_owned());
    }

    /// The hello of the next connection; `None` if it resumes a session.
    fn next_hello(&self) -> Option<Hello> {
        match (self.reconnect.trying(), &self.session, self.resume) {
            (Some(Tier::Resume), Some(_), Some(_)) => None,
            (Some(_), _, _) => {
                let code = self.joined.as_ref().map(|joined| joined.welcome.code);
                Some(self.options.hello_again(code))
            }
            (None, _, _) => Some(self.options.hello()),
        }
    }

    /// Greets the server on a new connection: with a hello, or by resuming the session.
    pub(super) fn greet(&mut self, link: LinkKind, now: Instant) {
        self.link = Some(link);
        match (self.next_hello(), &mut self.session, self.resume) {
            (Some(hello), _, _) => {
                let hello = Hello { key: self.paths.key(), ..hello };
                self.session = Some(Session::client(hello, link, now));
            }
            (None, Some(session), Some(resume)) => session.resume(resume, link, now),
            (None, _, _) => {}
        }
    }

    /// Handles the loss of the connection. Returns whether the session, or an attempt to reconnect, survives
    /// it.
    pub(super) fn outlives(&mut self, detail: &str, now: Instant) -> bool {
        if self.closed.is_some() {
            return false;
        }
        if self.reconnect.next_attempt().is_some() {
            // The session has let go of it before.
            return true;
        }
        match self.reconnect.trying() {
            Some(_) => {
                self.try_again(detail, Duration::ZERO, now);
                true
            }
            None => {
                let is_wanted = self.options.reconnect && self.resume.is_some();
                let can_resume = is_wanted && self.session.as_ref().is_some_and(Session::is_open);
                if can_resume {
                    self.link_lost(detail, false, now);
                }
                can_resume
            }
        }
    }

    fn link_lost(&mut self, detail: &str, is_silent: bool, now: Instant) {
        if let Some(session) = &mut self.session {
            session.detach();
        }
        // Half of the session id: unique to this process.
        #[allow(clippy::cast_possible_truncation)]
        let seed = self.resume.map_or(0, |resume| resume.session.0 as u64);
        self.reconnect.lost(seed, now);
        self.arrive(now, Came::Link(LinkNews::Lost { detail: detail.to_owned(), is_silent }));
    }

    /// Schedules the next attempt after a failed one.
    fn try_again(&mut self, detail: &str, after: Duration, now: Instant) {
        if let Some(session) = &mut self.session
            && session.is_open()
        {
            session.detach();
        }
        if self.reconnect.trying().is_some() && !self.reconnect.failed(now, after) {
            self.arrive(now, Came::Link(LinkNews::GivenUp { detail: detail.to_owned() }));
        }
    }

    /// Notes that the session goes on over the present connection. `token` resumes it the next time.
    pub(super) fn go_on(&mut self, token: ResumeToken, now: Instant) {
        if let Some(resume) = &mut self.resume {
            resume.token = token;
        }
        self.reconnect.connected();
        self.addresses_changed(now);
        self.arrive(now, Came::Link(LinkNews::Resumed));
    }

    /// Handles the silence timeout after which the session let go of its connection.
    pub(super) fn silent(&mut self, now: Instant) {
        match self.reconnect.trying() {
            Some(_) => self.try_again(SILENT, Duration::ZERO, now),
            None => self.link_lost(SILENT, true, now),
        }
    }

    /// Handles the server's welcome.
    pub(super) fn let_in(&mut self, welcome: &Welcome, now: Instant) {
        let gone = welcome.gone_ms.map(|ms| Duration::from_millis(ms.into()).max(GONE_MIN));
        // The process that opened the room runs the hub itself, and knows that it lives.
        let gone = gone.filter(|_| !matches!(self.options.intent, Wish::Host { .. }));
        self.watchdog = gone.map_or_else(HubWatchdog::default, |gone| HubWatchdog::over(gone, now));
        self.resume = welcome.resume.map(|token| Resume { session: welcome.session, token });
        self.carries = Some(welcome.session);
        self.reconnect.connected();
        if let Some(session) = &mut self.session {
            session.set_resumable(self.resume.is_some() && self.options.reconnect);
        }
    }

    /// Ends the room, because a hub in the host's process is silent.
    pub(super) fn host_gone(&mut self, now: Instant) {
        self.reconnect.give_up();
        if let Some(session) = &mut self.session {
            session.close(CloseReason::HostGone, now);
        }
        self.arrive(now, Came::Link(LinkNews::HostGone));
    }

    /// Handles the rejection of an attempt. Returns it if the room ends with it.
    pub(super) fn not_let_back(&mut self, away: Rejection, now: Instant) -> Option<Rejection> {
        let Some(tier) = self.reconnect.trying() else { return Some(away) };
        match away {
            Rejection::Refused(refusal @ Refusal::Resume { .. }) if tier == Tier::Resume => {
                if self.joined.as_ref().is_some_and(Joined::is_host) && !self.migrates() {
                    // Its room is over.
                    self.reconnect.give_up();
                    let detail = refusal.to_string();
                    self.arrive(now, Came::Link(LinkNews::GivenUp { detail }));
                } else {
                    self.reconnect.resync(now);
                    self.arrive(now, Came::Link(LinkNews::Gone));
                }
                None
            }
            Rejection::RetryAfter(retry) => {
                self.try_again(&retry.detail, retry.after, now);
                None
            }
            Rejection::Redirect(redirect) => {
                self.redirect = Some(redirect.address);
                self.reconnect.resync(now);
                None
            }
            away @ Rejection::Refused(_) => Some(away),
        }
    }

    /// Whether the end of a session only ends an attempt.
    pub(super) fn is_end_of_attempt(&self, reason: &CloseReason) -> bool {
        let is_failure = matches!(reason, CloseReason::ConnectionLost { .. } | CloseReason::TimedOut);
        is_failure && self.closed.is_none() && self.reconnect.trying().is_some()
    }

    pub(super) fn end_of_attempt(&mut self, reason: &CloseReason, now: Instant) {
        self.try_again(&reason.to_string(), Duration::ZERO, now);
    }
}

/// For a game.
impl RoomCore {
    /// State of the connection to the room's server.
    pub fn link_state(&self) -> LinkState {
        self.link_state
    }

    /// The proof with which this seat can be resumed: see [`Wish::Resume`](crate::Wish::Resume). It changes
    /// with each use.
    pub fn resume_proof(&self) -> Option<Resume> {
        self.resume.filter(|_| self.joined.is_some() && self.closed.is_none())
    }

    /// Raises the events of a change of the connection.
    pub(super) fn read_link(&mut self, news: LinkNews) {
        match news {
            LinkNews::Lost { detail, is_silent } => {
                self.link_state = LinkState::Reconnecting;
                if is_silent {
                    self.last_reason = Some(ReasonCode::ControlHeartbeatTimeout);
                }
                self.inbox.tell(Event::ConnectionLost { detail });
            }
            LinkNews::Attempt(attempt) => self.inbox.tell(Event::Reconnecting { attempt }),
            LinkNews::Resumed => {
                self.link_state = LinkState::Connected;
                self.has_resumed = true;
                self.inbox.tell(Event::Reconnected { state_resynced: false });
            }
            LinkNews::Gone => {
                self.link_state = LinkState::Resyncing;
                self.last_reason = Some(ReasonCode::RoomExpired);
            }
            LinkNews::GivenUp { detail } => {
                self.last_reason = Some(ReasonCode::RelayAttachFailed);
                self.close_with(ClosedReason::Session(CloseReason::ConnectionLost { detail }));
            }
            LinkNews::Refused(why) => self.close_with(why),
            LinkNews::HostGone => self.close_with(ClosedReason::Session(CloseReason::HostGone)),
        }
    }

    /// Forgets the room, because this process rejoined as a newcomer. All known players and entities are
    /// reported as gone.
    pub(super) fn forget_room(&mut self) -> Result<(), CloseReason> {
        let Some(joined) = self.joined.take() else { return Ok(()) };
        self.forget_paths();
        for entity in joined.shared.world().entities().filter(|entity| joined.shared.is_of_game(*entity)) {
            self.inbox.tell_bounded(Event::Despawned { entity }, 0)?;
        }
        for player in joined.players.iter() {
            let (id, name) = (player.id, player.name.clone());
            self.inbox
                .tell_bounded(Event::PlayerLeft { id, name, reason: LeaveReason::ConnectionLost }, 0)?;
        }
        self.link_state = LinkState::Connected;
        // The room exists after all.
        self.last_reason = self.last_reason.filter(|reason| *reason != ReasonCode::RoomExpired);
        self.has_resumed = true;
        self.inbox.tell_bounded(Event::Reconnected { state_resynced: true }, 0)
    }
}
