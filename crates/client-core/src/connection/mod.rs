//! The connection to the server: its session with the hub, the link beneath it, and when to reconnect.

mod claim;
mod elsewhere;
mod hub_watchdog;
mod policy;
mod reconnect;

pub(crate) use elsewhere::ClaimNews;
pub use policy::ReconnectPolicy;
pub use reconnect::LinkState;

use crate::error::RoomError;
use crate::inbox::LinkNews;
use crate::options::{Admission, Options};
use claim::Claims;
use hub_watchdog::HubWatchdog;
use parlor_proto::session::{Outgoing, Rejection, SendError, Session};
use parlor_proto::wire::control::{RoomTerms, ToHub};
use parlor_proto::wire::handshake::{
    Hello, Intent, Limits, Refusal, Resume, ResumeRefusal, ResumeToken, Welcome,
};
use parlor_proto::{ApiMisuse, CloseReason, Instant, LinkKind, RoomCode, SessionId, channel};
use reconnect::{Reconnect, Tier};
use std::time::Duration;

/// Lower bound of the silence after which the hub counts as gone, whatever the hub says.
const GONE_MIN: Duration = Duration::from_secs(1);

/// Keep-alives per silence of a room with its own.
const SIGNS_OF_LIFE: u32 = 4;

const SILENT: &str = "nothing was heard from the server";

/// The connection of a room to its hub.
#[derive(Debug)]
pub(crate) struct Connection {
    session: Option<Session>,
    /// The kind of the present or last link.
    link: Option<LinkKind>,
    reconnect: Reconnect,
    claims: Claims,
    /// Links so far that were the room's because of a claim.
    line: u64,
    /// The highest number in the room's order that was seen.
    order: u64,
    /// When the room moved away, while the game has not been told that the connection is lost.
    moved_at: Option<Instant>,
    /// Whether this process rejoins once its seat is given up.
    accepts_resync: bool,
    watchdog: HubWatchdog,
    /// What the session is resumed with, if possible.
    resume: Option<Resume>,
    /// The open session. The room that the game sees may belong to the previous one until it polls.
    opened: Option<SessionId>,
    /// Capacity of the link in bytes per second, if known.
    capacity: Option<u32>,
    redirect: Option<String>,
    /// Whether another server remains to be tried, and whether to try it.
    has_more: bool,
    is_passed_over: bool,
}

/// What happens to the room when its link breaks.
pub(crate) enum Broken {
    /// The session, or an attempt to reconnect, goes on.
    Survived(Option<LinkNews>),
    /// The session ends.
    Ended,
}

/// What happens to the room when the server rejects an attempt.
pub(crate) enum Rejected {
    /// It goes on: another attempt or another server follows.
    GoesOn(Option<LinkNews>),
    /// It ends.
    Ended(Rejection),
}

/// The session, for those that send on it.
impl Connection {
    pub(crate) fn new(policy: ReconnectPolicy) -> Self {
        Connection {
            session: None,
            link: None,
            reconnect: Reconnect::new(policy),
            claims: Claims::new(policy),
            line: 0,
            order: 0,
            moved_at: None,
            accepts_resync: policy.accept_state_resync,
            watchdog: HubWatchdog::default(),
            resume: None,
            opened: None,
            capacity: None,
            redirect: None,
            has_more: false,
            is_passed_over: false,
        }
    }

    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    pub(crate) fn session_mut(&mut self) -> Option<&mut Session> {
        self.session.as_mut()
    }

    /// The session, if it is `id` and has a link: what is published belongs to the room of that session.
    pub(crate) fn attached(&mut self, id: SessionId) -> Option<&mut Session> {
        let is_open = self.is_session(id);
        self.session.as_mut().filter(|session| is_open && session.is_attached())
    }

    /// Whether the open session is `id`.
    pub(crate) fn is_session(&self, id: SessionId) -> bool {
        self.opened == Some(id)
    }

    /// Whether the hub can be told something about this end's link.
    pub(crate) fn is_attached(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_attached)
    }

    /// Whether nothing is left to send.
    pub(crate) fn is_finished(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.is_finished() || !session.has_link())
    }

    pub(crate) fn link(&self) -> Option<LinkKind> {
        self.link
    }

    /// Capacity of the link in bytes per second, if known.
    pub(crate) fn capacity(&self) -> Option<u32> {
        self.capacity
    }

    pub(crate) fn set_capacity(&mut self, bytes_per_second: u32) {
        self.capacity = Some(bytes_per_second);
    }

    /// Sends a message of an open room. While this process rejoins, the message is dropped, like all that its old
    /// session had not delivered: the new session may belong to another player.
    pub(crate) fn say(&mut self, message: Outgoing) -> Result<(), RoomError> {
        let is_away = self.reconnect.is_away();
        match self.session.as_mut().map_or(Ok(()), |session| session.send(message)) {
            Err(SendError::Misuse(ApiMisuse::Closed(_) | ApiMisuse::NotOpen { .. })) if is_away => Ok(()),
            said => Ok(said?),
        }
    }

    /// Sends a control message. If the queue is too full for it, the session is about to end as too slow.
    pub(crate) fn tell_hub(&mut self, message: &ToHub) {
        if let Some(session) = &mut self.session {
            let _: Result<(), SendError> = session.send(Outgoing::new(channel::CONTROL, message.encode()));
        }
    }

    /// What an earlier process of this player can be succeeded with.
    pub(crate) fn resume_proof(&self) -> Option<Resume> {
        self.resume
    }
}

/// Greeting the server, and the first attempts.
impl Connection {
    /// Whether no server has let this process in yet.
    pub(crate) fn is_new(&self) -> bool {
        self.opened.is_none()
    }

    /// Notes whether this process has or gets the part of the authority, which passes to another member after a
    /// short silence.
    pub(crate) fn set_watched(&mut self, is_watched: bool, now: Instant) {
        if let Some(session) = &mut self.session {
            session.set_watched(is_watched, now);
        }
    }

    /// Tells the hub the terms of the room that this process has opened, and keeps to them.
    pub(crate) fn want_terms(&mut self, terms: RoomTerms, limits: Limits) {
        if terms == RoomTerms::default() {
            return;
        }
        self.tell_hub(&ToHub::Terms(terms));
        if let (Some(silence_ms), Some(session)) = (terms.presence_ms, &mut self.session) {
            let keep_alive_ms = limits.keep_alive_ms.min(silence_ms / SIGNS_OF_LIFE);
            session.set_terms(keep_alive_ms, limits.silence_ms.min(silence_ms));
        }
    }

    /// Notes whether another server remains if this one does not have the room.
    pub(crate) fn tries(&mut self, has_more: bool) {
        self.has_more = has_more;
    }

    /// Whether the next server must be tried. Returned once.
    pub(crate) fn take_passed_over(&mut self) -> bool {
        std::mem::take(&mut self.is_passed_over)
    }

    pub(crate) fn take_redirect(&mut self) -> Option<String> {
        self.redirect.take()
    }

    pub(crate) fn is_given_up(&self) -> bool {
        self.reconnect.is_given_up()
    }

    /// The hello of the next connection; `None` if it resumes a session. `code` is the code of the room that
    /// this process is in.
    pub(crate) fn next_hello(&self, options: &Options, code: Option<RoomCode>) -> Option<Hello> {
        match (self.reconnect.trying(), &self.session, self.resume) {
            (Some(Tier::Resume), Some(_), Some(_)) => None,
            (Some(Tier::Return), _, Some(resume)) => Some(options.hello_of_lost(resume)),
            (Some(_), _, _) => Some(options.hello_again(code)),
            (None, _, _) => Some(options.hello()),
        }
    }

    /// The admission that the next connection requests; `None` if it resumes a session.
    pub(crate) fn next_admission(&self, options: &Options, code: Option<RoomCode>) -> Option<Admission> {
        match self.next_hello(options, code)?.intent {
            Intent::Create(settings) => Some(Admission::Create(settings.code)),
            Intent::Join { code, .. } => Some(Admission::Join(code)),
            Intent::Resume(_) | Intent::Path(_) | Intent::Claim(_) => None,
        }
    }

    /// Greets the server over a new link: with a hello, or by resuming the session.
    pub(crate) fn greet(&mut self, hello: Option<Hello>, link: LinkKind, now: Instant) {
        self.watchdog.heard(now);
        (self.link, self.capacity) = (Some(link), None);
        match (hello, &mut self.session, self.resume) {
            (Some(hello), _, _) => self.session = Some(Session::client(hello, link, now)),
            (None, Some(session), Some(resume)) => session.resume(resume, link, now),
            (None, _, _) => {}
        }
    }

    /// Handles the server's welcome. `is_hub_host` says that the process that opened the room runs the hub
    /// itself, and knows that it lives.
    pub(crate) fn welcomed(&mut self, welcome: &Welcome, is_hub_host: bool, reconnects: bool, now: Instant) {
        let gone = welcome.gone_ms.map(|ms| Duration::from_millis(ms.into()).max(GONE_MIN));
        let gone = gone.filter(|_| !is_hub_host);
        self.watchdog = gone.map_or_else(HubWatchdog::default, |gone| HubWatchdog::over(gone, now));
        self.resume = welcome.resume.map(|token| Resume { session: welcome.session, token });
        self.opened = Some(welcome.session);
        self.reconnect.connected();
        self.claims.stop();
        if let Some(session) = &mut self.session {
            session.set_resumable(self.resume.is_some() && reconnects);
        }
    }

    /// Handles a rejection. `is_last_host` says that a lost seat ends the room: this process is its host, and
    /// no other takes over.
    pub(crate) fn rejected(&mut self, away: Rejection, is_last_host: bool, now: Instant) -> Rejected {
        if self.has_more && is_elsewhere(&away) {
            self.is_passed_over = true;
            return Rejected::GoesOn(None);
        }
        let tier = self.reconnect.trying();
        match away {
            Rejection::Redirect(redirect) => {
                self.redirect = Some(redirect.address);
                self.reconnect.resync(Tier::Rejoin, now);
                Rejected::GoesOn(None)
            }
            Rejection::Refused(Refusal::Resume { .. }) if tier == Some(Tier::Return) => {
                self.reconnect.resync(Tier::Rejoin, now);
                Rejected::GoesOn(None)
            }
            Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone })
                if tier == Some(Tier::Resume) && self.claims.seat().is_some() =>
            {
                // Perhaps another process of the same node. It may reopen the room as well as any other.
                self.reconnect.claim(now);
                self.claims.ask_own(None, now);
                Rejected::GoesOn(None)
            }
            Rejection::Refused(refusal @ Refusal::Resume { why }) if tier == Some(Tier::Resume) => {
                if !self.accepts_resync {
                    self.reconnect.give_up();
                    Rejected::Ended(Rejection::Refused(refusal))
                } else if is_last_host {
                    self.reconnect.give_up();
                    Rejected::GoesOn(Some(LinkNews::GivenUp { detail: refusal.to_string() }))
                } else {
                    let may_return = why == ResumeRefusal::GraceOver;
                    self.reconnect.resync(if may_return { Tier::Return } else { Tier::Rejoin }, now);
                    Rejected::GoesOn(Some(LinkNews::Gone))
                }
            }
            Rejection::RetryAfter(retry) if tier.is_some() => {
                Rejected::GoesOn(self.attempt_failed(&retry.detail, retry.after, now))
            }
            away => Rejected::Ended(away),
        }
    }

    /// Closes the session, after a fault of the other end or at the game's wish.
    pub(crate) fn close(&mut self, reason: CloseReason, now: Instant) {
        if let Some(session) = &mut self.session {
            session.close(reason, now);
        }
    }
}

/// Loss of the link, and reconnecting.
impl Connection {
    /// When the next attempt is due.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        self.reconnect.next_attempt()
    }

    /// Whether an attempt is due or under way.
    pub(crate) fn is_reconnecting(&self) -> bool {
        self.reconnect.is_away()
    }

    /// Begins an attempt.
    pub(crate) fn attempt_begins(&mut self) -> Option<LinkNews> {
        self.reconnect.begin().map(LinkNews::Attempt)
    }

    /// Schedules the next attempt after a failed one, no earlier than `after`.
    pub(crate) fn attempt_failed(&mut self, detail: &str, after: Duration, now: Instant) -> Option<LinkNews> {
        if let Some(session) = &mut self.session
            && session.is_open()
        {
            session.detach();
        }
        self.claims.lost(None, now);
        let has_others = self.claims.can_ask();
        let is_last = self.reconnect.trying().is_some() && !self.reconnect.failed(now, after, has_others);
        is_last.then(|| LinkNews::GivenUp { detail: detail.to_owned() })
    }

    /// Ends all attempts.
    pub(crate) fn give_up(&mut self) {
        self.reconnect.give_up();
    }

    /// Handles a broken link. `reconnects` says whether the game wants to come back.
    pub(crate) fn broke(&mut self, detail: &str, reconnects: bool, now: Instant) -> Broken {
        if self.reconnect.next_attempt().is_some() || self.reconnect.is_claiming() {
            // The session has let go of it before.
            return Broken::Survived(None);
        }
        if self.reconnect.trying().is_some() {
            return Broken::Survived(self.attempt_failed(detail, Duration::ZERO, now));
        }
        let can_resume = reconnects && self.resume.is_some();
        if can_resume && self.session.as_ref().is_some_and(Session::is_open) {
            Broken::Survived(Some(self.lost(detail, false, now)))
        } else {
            Broken::Ended
        }
    }

    /// Ends the session with its broken link. A session that said or heard goodbye keeps its own reason; any
    /// other has nothing left to send. Returns false if there is no session.
    pub(crate) fn end(&mut self, reason: &CloseReason, now: Instant) -> bool {
        let Some(session) = &mut self.session else { return false };
        session.close(reason.clone(), now);
        session.detach();
        true
    }

    fn lost(&mut self, detail: &str, is_silent: bool, now: Instant) -> LinkNews {
        if let Some(session) = &mut self.session {
            session.detach();
        }
        let seed = self.seed();
        self.reconnect.lost(seed, now);
        self.claims.lost(None, now);
        LinkNews::Lost { detail: detail.to_owned(), is_silent }
    }

    /// Handles the silence timeout after which the session let go of its link.
    pub(crate) fn silent(&mut self, now: Instant) -> Option<LinkNews> {
        match self.reconnect.trying() {
            Some(_) => self.attempt_failed(SILENT, Duration::ZERO, now),
            None => Some(self.lost(SILENT, true, now)),
        }
    }

    /// Notes that the session goes on over the present link. `token` resumes it the next time.
    pub(crate) fn resumed(&mut self, token: ResumeToken) {
        if let Some(resume) = &mut self.resume {
            resume.token = token;
        }
        self.reconnect.connected();
        self.claims.stop();
    }

    /// Differs between processes: half of the session id.
    #[allow(clippy::cast_possible_truncation)]
    fn seed(&self) -> u64 {
        self.resume.map_or(0, |resume| resume.session.0 as u64)
    }

    /// Whether the end of a session only ends an attempt.
    pub(crate) fn is_end_of_attempt(&self, reason: &CloseReason) -> bool {
        let is_failure = matches!(reason, CloseReason::ConnectionLost { .. } | CloseReason::TimedOut);
        is_failure && self.reconnect.trying().is_some()
    }

    /// Notes a sign of life of the hub.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.watchdog.heard(now);
        self.claims.heard(now);
    }

    /// Whether the hub, which runs in the host's process, is silent for too long. Then the session is closed.
    pub(crate) fn is_hub_gone(&mut self, now: Instant) -> bool {
        let is_gone = self.watchdog.look(now);
        if is_gone {
            self.reconnect.give_up();
            self.close(CloseReason::HostGone, now);
        }
        is_gone
    }

    /// When [`is_hub_gone`](Self::is_hub_gone) is due.
    pub(crate) fn watchdog_timeout(&self) -> Option<Instant> {
        self.watchdog.poll_timeout()
    }
}

/// Whether the rejection means that the room is not on this server; the next one may have it.
fn is_elsewhere(away: &Rejection) -> bool {
    matches!(away, Rejection::Refused(Refusal::NoSuchRoom | Refusal::App { .. }))
}
