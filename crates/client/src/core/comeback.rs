//! Losing the server and reaching it again, as a driver brings it about and as a game is told of it.

use super::event::{ClosedReason, Event};
use super::inbox::Came;
use super::info::ReasonCode;
use super::options::{Admission, Wish};
use super::reconnect::{LinkState, Tier};
use super::room::{Joined, RoomCore};
use super::vigil::Vigil;
use parlor_proto::session::{Outgoing, SendError, Session, TurnedAway};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{Hello, Intent, Refusal, Resume, ResumeToken, Welcome};
use parlor_proto::{ApiMisuse, CloseReason, Instant, LinkKind};
use std::time::Duration;

/// What became of the connection.
#[derive(Debug)]
pub(super) enum LinkNews {
    Lost {
        detail: String,
        /// Nothing was heard, though nothing broke.
        is_silent: bool,
    },
    Attempt(u32),
    /// The session goes on.
    Resumed,
    /// It does not, and the server will be reached as a newcomer.
    Gone,
    GivenUp {
        detail: String,
    },
    /// The player is not let in again.
    Refused(ClosedReason),
    /// The hub is silent, and the host was in one process with it.
    HostGone,
}

/// A hub is given this long whatever it says of itself.
const GONE_MIN: Duration = Duration::from_secs(1);

/// Says something to the hub on the session of a room that is not over. What is said while this process comes back as a
/// newcomer, and [is away](super::reconnect::Reconnect::is_away), is dropped like all that its old session had not got through:
/// the new one is another player's.
pub(super) fn say(session: &mut Session, is_away: bool, message: Outgoing) -> Result<(), SendError> {
    match session.send(message) {
        Err(SendError::Misuse(ApiMisuse::Closed(_) | ApiMisuse::NotOpen { .. })) if is_away => Ok(()),
        said => said,
    }
}

const SILENT: &str = "nothing was heard from the server";

/// For a driver: when to dial again, and what came of it.
impl RoomCore {
    /// When the driver shall dial the server again, at the address where it was let in. `None` while it is connected or
    /// dialling, and once the room is over.
    #[must_use]
    pub fn next_attempt(&self) -> Option<Instant> {
        self.reconnect.next_attempt().filter(|_| self.closed.is_none())
    }

    /// Whether the driver shall dial the server again, or goes on doing so: not when the room is over or given up.
    #[must_use]
    pub fn is_coming_back(&self) -> bool {
        let is_tried = self.reconnect.next_attempt().is_some() || self.reconnect.trying().is_some();
        is_tried && self.closed.is_none()
    }

    /// The driver dials again. What comes of it is told by [`connected`](Self::connected) or
    /// [`attempt_failed`](Self::attempt_failed).
    pub fn attempt_begins(&mut self, now: Instant) {
        if let Some(attempt) = self.reconnect.begin() {
            self.arrive(now, Came::Link(LinkNews::Attempt(attempt)));
        }
    }

    /// No connection could be made.
    pub fn attempt_failed(&mut self, detail: &str, now: Instant) {
        self.try_again(detail, Duration::ZERO, now);
    }

    /// An attempt was not made, because the server asks for time.
    pub fn attempt_put_off(&mut self, detail: &str, after: Duration, now: Instant) {
        self.try_again(detail, after, now);
    }

    /// No further attempt is made, because the player would not be let in.
    pub fn attempt_refused(&mut self, why: ClosedReason, now: Instant) {
        self.reconnect.give_up();
        self.arrive(now, Came::Link(LinkNews::Refused(why)));
    }

    /// What the next connection asks the server for, if it asks to be let in; `None` if a session goes on over it. For a driver that has to
    /// get a token for it, which [`set_token`](Self::set_token) takes.
    #[must_use]
    pub fn next_admission(&self) -> Option<Admission> {
        match self.next_hello()?.intent {
            Intent::Create(settings) => Some(Admission::Create(settings.code)),
            Intent::Join { code, .. } => Some(Admission::Join(code)),
            Intent::Resume(_) | Intent::Path(_) => None,
        }
    }

    /// What the next hello says who this is by.
    pub fn set_token(&mut self, token: &str) {
        self.options.token = Some(token.to_owned());
    }

    /// The hello that the next connection begins with; `None` if a session goes on over it.
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

    /// A connection stands: what is said on it depends on what is to be reached.
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

    /// The connection is gone. Says whether the session, or an attempt to have one again, lives on without it.
    pub(super) fn outlives(&mut self, detail: &str, now: Instant) -> bool {
        if self.closed.is_some() {
            return false;
        }
        if self.reconnect.next_attempt().is_some() {
            // It was let go of before.
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
        // Half of what names the session: nobody else has the same.
        #[allow(clippy::cast_possible_truncation)]
        let seed = self.resume.map_or(0, |resume| resume.session.0 as u64);
        self.reconnect.lost(seed, now);
        self.arrive(now, Came::Link(LinkNews::Lost { detail: detail.to_owned(), is_silent }));
    }

    /// An attempt failed.
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

    /// The session goes on over the present connection; with the token it does so the next time.
    pub(super) fn go_on(&mut self, token: ResumeToken, now: Instant) {
        if let Some(resume) = &mut self.resume {
            resume.token = token;
        }
        self.reconnect.connected();
        self.addresses_changed(now);
        self.arrive(now, Came::Link(LinkNews::Resumed));
    }

    /// Nothing was heard from the server for so long that the session has let go of its connection.
    pub(super) fn silent(&mut self, now: Instant) {
        match self.reconnect.trying() {
            Some(_) => self.try_again(SILENT, Duration::ZERO, now),
            None => self.link_lost(SILENT, true, now),
        }
    }

    /// The server lets this process in.
    pub(super) fn let_in(&mut self, welcome: &Welcome, now: Instant) {
        let gone = welcome.gone_ms.map(|ms| Duration::from_millis(ms.into()).max(GONE_MIN));
        // The hub is in the process of whoever opened the room, and that process knows that it lives.
        let gone = gone.filter(|_| !matches!(self.options.intent, Wish::Host { .. }));
        self.vigil = gone.map_or_else(Vigil::default, |gone| Vigil::over(gone, now));
        self.resume = welcome.resume.map(|token| Resume { session: welcome.session, token });
        self.carries = Some(welcome.session);
        self.reconnect.connected();
        if let Some(session) = &mut self.session {
            session.set_resumable(self.resume.is_some() && self.options.reconnect);
        }
    }

    /// Nothing is heard of a hub that lives in the process of a host.
    pub(super) fn host_gone(&mut self, now: Instant) {
        self.reconnect.give_up();
        if let Some(session) = &mut self.session {
            session.close(CloseReason::HostGone, now);
        }
        self.arrive(now, Came::Link(LinkNews::HostGone));
    }

    /// The server does not do what an attempt asked; gives the answer back if that is the end of it.
    pub(super) fn not_let_back(&mut self, away: TurnedAway, now: Instant) -> Option<TurnedAway> {
        let Some(tier) = self.reconnect.trying() else { return Some(away) };
        match away {
            TurnedAway::Refused(refusal @ Refusal::Resume { .. }) if tier == Tier::Resume => {
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
            TurnedAway::RetryAfter(retry) => {
                self.try_again(&retry.detail, retry.after, now);
                None
            }
            TurnedAway::Redirect(redirect) => {
                self.redirect = Some(redirect.address);
                self.reconnect.resync(now);
                None
            }
            away @ TurnedAway::Refused(_) => Some(away),
        }
    }

    /// Whether the end of a session is but the end of an attempt.
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
    /// How this process stands with its room's server.
    #[must_use]
    pub fn link_state(&self) -> LinkState {
        self.link_state
    }

    /// What proves whose seat this is, while it can be resumed: see [`Wish::Resume`](super::Wish::Resume). It changes
    /// each time that it was used.
    #[must_use]
    pub fn resume_proof(&self) -> Option<Resume> {
        self.resume.filter(|_| self.joined.is_some() && self.closed.is_none())
    }

    /// Tells the game what became of the connection.
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
                self.link_state = LinkState::Lost;
                self.last_reason = Some(ReasonCode::RelayAttachFailed);
                self.close_with(ClosedReason::Session(CloseReason::ConnectionLost { detail }));
            }
            LinkNews::Refused(why) => {
                self.link_state = LinkState::Lost;
                self.close_with(why);
            }
            LinkNews::HostGone => {
                self.link_state = LinkState::Lost;
                self.close_with(ClosedReason::Session(CloseReason::HostGone));
            }
        }
    }

    /// This process is in the room as a newcomer again: what it knew is nobody's any more, and is told as gone.
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
        self.has_resumed = true;
        self.inbox.tell_bounded(Event::Reconnected { state_resynced: true }, 0)
    }
}
