//! Resuming sessions: disconnected members keep their seat for a while and prove ownership by a token.

use super::cycle::Timer;
use super::tokens::{Family, Verdict};
use super::waiting::{LAPSED, later};
use super::{Hub, HubEvent, Output};
use crate::admission_policy::{Origin, Outcome};
use crate::room;
use parlor_proto::session::{Answer, Outgoing, Rejection, Session};
use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::wire::handshake::{Hello, Refusal, Resume, ResumeRefusal, ResumeToken, Welcome};
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, RoomId, SessionId, channel, limits};
use rand_chacha::rand_core::Rng;
use std::cmp::Reverse;
use std::time::Duration;

/// A session without a connection.
#[derive(Debug)]
pub(super) struct Away {
    pub(super) until: Instant,
    /// The reason that the others receive if it does not come back.
    pub(super) reason: LeaveReason,
    /// Whether its room knows. A room learns that its host is away once another one may be named.
    pub(super) is_told: bool,
}

/// A session whose end its member may have missed: a resume attempt is answered with the reason.
#[derive(Debug)]
pub(super) struct Ended {
    family: Family,
    reason: CloseReason,
}

/// Why a session cannot be resumed.
pub(super) enum Denied {
    Rejected(Rejection),
    /// It ended meanwhile.
    Over(CloseReason),
}

impl Denied {
    pub(super) fn resume(why: ResumeRefusal) -> Self {
        Refusal::Resume { why }.into()
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Denied::Rejected(Rejection::Refused(refusal))
    }
}

impl Hub {
    /// Creates the first token of a resumable session; `None` if no seats are kept.
    pub(super) fn begin_family(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
        grace: Duration,
    ) -> Option<ResumeToken> {
        if grace.is_zero() {
            return None;
        }
        let token = self.draw_token();
        let state = self.connections.get_mut(&connection)?;
        state.family = Some(Family::new(session, &token));
        state.session.set_resumable(true);
        self.sessions.insert(session, connection);
        Some(token)
    }

    pub(super) fn draw_token(&mut self) -> ResumeToken {
        let mut token = [0; 32];
        self.tokens.fill_bytes(&mut token);
        ResumeToken(token)
    }

    /// Keeps the seat of a lost connection's session, if it can be resumed and its room keeps seats. Returns whether
    /// it does.
    pub(super) fn keep(&mut self, connection: ConnectionId, reason: LeaveReason, now: Instant) -> bool {
        let Some(state) = self.connections.get_mut(&connection) else { return false };
        let Some((room, member)) = state.seat.filter(|_| state.family.is_some() && state.session.is_open())
        else {
            return false;
        };
        let Some(seated) = self.rooms.get(&room) else { return false };
        let (code, grace) = (seated.room.setup().code, seated.room.grace(self.config.grace));
        if grace.is_zero() {
            return false;
        }
        let until = now + grace;
        state.session.detach();
        state.away = Some(Away { until, reason: reason.clone(), is_told: false });
        self.timers.push(Reverse((until, Timer::Grace(connection))));
        let away = HubEvent::Away { code, member, reason: reason.clone() };
        self.outputs.push_back(Output::Event(away));
        self.drain_events(connection, now);
        if !self.heir_waits((room, member)) {
            self.tell_away(connection, now);
        }
        self.weigh_kept(connection);
        true
    }

    /// Tells a room that a member is away, unless it knows. Returns whether it did not.
    pub(super) fn tell_away(&mut self, connection: ConnectionId, now: Instant) -> bool {
        let Some(state) = self.connections.get_mut(&connection) else { return false };
        let away = state.away.as_mut().filter(|away| !away.is_told);
        let (Some((room, member)), Some(away)) = (state.seat, away) else { return false };
        away.is_told = true;
        let reason = away.reason.clone();
        self.tell_untaken(room, member, now);
        self.tell(room, room::Input::Away { member, reason }, now);
        true
    }

    /// Handles a session that timed out and released its connection.
    pub(super) fn silent(&mut self, connection: ConnectionId, now: Instant) {
        if !self.keep(connection, LeaveReason::TimedOut, now) {
            self.forget(connection, LeaveReason::TimedOut, now);
        }
        let reason = CloseReason::TimedOut.as_str();
        self.outputs.push_back(Output::Close { connection, reason });
    }

    /// Frees a kept seat whose grace period is over.
    pub(super) fn grace_over(&mut self, connection: ConnectionId, now: Instant) {
        let away = self.connections.get(&connection).and_then(|state| state.away.as_ref());
        if let Some(reason) = away.filter(|away| away.until <= now).map(|away| away.reason.clone()) {
            self.forget(connection, reason, now);
        }
    }

    /// Makes a closed session unresumable. Keeps the reason for a member that missed it.
    pub(super) fn close_family(&mut self, connection: ConnectionId, reason: &CloseReason, now: Instant) {
        let Some(family) = self.connections.get_mut(&connection).and_then(|state| state.family.take()) else {
            return;
        };
        self.drop_names(&family);
        let is_of_hub = matches!(
            reason,
            CloseReason::Kicked { .. }
                | CloseReason::HostLeft
                | CloseReason::HostGone
                | CloseReason::RoomEnded { .. }
                | CloseReason::ServerShutdown
                | CloseReason::TooSlow
                | CloseReason::Moved { .. }
        );
        if is_of_hub && let Some(session) = family.sessions().last() {
            // Its member may detect the loss as late as this, and then retries for as long as a seat is kept.
            let until = now + limits::SILENCE_TIMEOUT + self.config.grace;
            self.timers.push(Reverse((until, Timer::Ended(session))));
            self.ended.insert(session, Ended { family, reason: reason.clone() });
        }
    }

    pub(super) fn drop_names(&mut self, family: &Family) {
        family.sessions().for_each(|session| {
            self.sessions.remove(&session);
        });
    }

    /// Handles an attempt to resume a session whose process still has it.
    pub(super) fn resume(&mut self, connection: ConnectionId, resume: Resume, now: Instant) {
        match self.claim(connection, &resume, now) {
            Ok(older) => self.go_on(connection, older, &resume.token, now),
            Err(denied) => self.deny(connection, denied, now),
        }
    }

    pub(super) fn deny(&mut self, connection: ConnectionId, denied: Denied, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        match denied {
            Denied::Rejected(answer) => {
                state.session.answer(Answer::Rejected(answer.clone()), now);
                self.stats.rejected(&answer);
                let happened = HubEvent::Rejected { connection, answer };
                self.outputs.push_back(Output::Event(happened));
            }
            Denied::Over(reason) => state.session.close(reason, now),
        }
    }

    /// Verifies a resume request. Returns the connection that carries, or last carried, the session.
    fn claim(
        &mut self,
        connection: ConnectionId,
        resume: &Resume,
        now: Instant,
    ) -> Result<ConnectionId, Denied> {
        if let Some(place) = self.gone_with(resume.session) {
            self.prove_gone(connection, place, resume, now)?;
            return Err(self.grace_is_over(place));
        }
        let gone = || Denied::resume(ResumeRefusal::Gone);
        let older = self.sessions.get(&resume.session).copied();
        let found = older.and_then(|older| Some((older, self.connections.get(&older)?)));
        let verdict = match found {
            Some((_, state)) => {
                let family = state.family.as_ref().ok_or_else(gone)?;
                family.judge(&resume.token, state.session.has_heard_peer())
            }
            None => {
                let ended = self.ended.get(&resume.session).ok_or_else(gone)?;
                if ended.family.judge(&resume.token, false) == Verdict::Good {
                    return Err(Denied::Over(ended.reason.clone()));
                }
                Verdict::Unknown
            }
        };
        match (verdict, found.map(|(older, _)| older)) {
            (Verdict::Good, Some(older)) => return Ok(older),
            (Verdict::Reused, Some(older)) => self.revoke(older, now),
            _ => self.charge_wrong_token(connection, now),
        }
        Err(Denied::resume(ResumeRefusal::Token))
    }

    /// Charges a wrong resume token to the place that it came from.
    pub(super) fn charge_wrong_token(&mut self, connection: ConnectionId, now: Instant) {
        let origin = self.connections.get(&connection).map(|state| state.origin);
        origin.into_iter().for_each(|origin| self.guessed_a_resume_token(origin, now));
    }

    /// Charges a wrong resume token. An exhausted budget refuses no resume: 32 bytes cannot be guessed, and a
    /// network in debt may have lost its connections.
    fn guessed_a_resume_token(&mut self, origin: Origin, now: Instant) {
        if let Ok(guess) = self.policy.begin_guess(origin, false, now) {
            self.policy.settle_guess(guess, Outcome::Wrong, now);
        }
    }

    /// Ends a session that two clients claim: the hub cannot tell which one owns it.
    pub(super) fn revoke(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.session.close(CloseReason::TokenReused, now);
        self.stats.tokens_reused += 1;
        if let Some((room, member)) = state.seat
            && let Some(seated) = self.rooms.get(&room)
        {
            let code = seated.room.setup().code;
            self.outputs.push_back(Output::Event(HubEvent::TokenReused { code, member }));
        }
        self.drain_events(connection, now);
        self.touch(connection, now);
    }

    /// Moves the session of `older` to `connection`, replacing its own.
    fn go_on(&mut self, connection: ConnectionId, older: ConnectionId, used: &ResumeToken, now: Instant) {
        let is_deciding = self.connections.get(&connection).is_some_and(|state| state.session.is_deciding());
        if !is_deciding {
            // It left, or violated the protocol, in the same packet as its request.
            return;
        }
        let next = self.draw_token();
        let Some((room, member, mut session)) = self.take_over(connection, older, Some(used), &next) else {
            return;
        };
        let Some(state) = self.connections.get_mut(&connection) else { return };
        session.go_on(next, state.link, now);
        let link = state.link;
        state.session = session;
        self.stats.resumed += 1;
        self.drain_events(connection, now);
        self.tell(room, room::Input::Back { member, link }, now);
        self.tell_of_link(room, member, connection, now);
        self.touch(connection, now);
        self.told_back(room, member, connection, false);
    }

    pub(super) fn told_back(
        &mut self,
        room: RoomId,
        member: MemberId,
        connection: ConnectionId,
        is_restarted: bool,
    ) {
        if let Some(seated) = self.rooms.get(&room) {
            let code = seated.room.setup().code;
            let happened = HubEvent::Resumed { code, member, connection, is_restarted };
            self.outputs.push_back(Output::Event(happened));
        }
    }

    /// Moves the seat and tokens of `older` to `connection` and closes `older`. Returns seat and session.
    pub(super) fn take_over(
        &mut self,
        connection: ConnectionId,
        older: ConnectionId,
        used: Option<&ResumeToken>,
        next: &ResumeToken,
    ) -> Option<(RoomId, MemberId, Session)> {
        let state = self.connections.remove(&older)?;
        self.uncount_kept(older, state.origin, state.away.as_ref());
        if state.away.is_none() {
            self.outputs.push_back(Output::Close { connection: older, reason: "resumed_elsewhere" });
        }
        let (room, member) = state.seat.expect("a session that can be resumed has a seat");
        let mut family = state.family.expect("a session that can be resumed has tokens");
        if let Some(used) = used {
            family.rotate(used, next);
        }
        family.sessions().for_each(|session| {
            self.sessions.insert(session, connection);
        });
        if let Some(seated) = self.rooms.get_mut(&room) {
            seated.connections.insert(member, connection);
        }
        let newer = self.connections.get_mut(&connection)?;
        newer.key = newer.key.or(state.key);
        newer.returns |= state.returns;
        newer.moves |= state.moves;
        (newer.seat, newer.family, newer.lagged) = (Some((room, member)), Some(family), state.lagged);
        Some((room, member, state.session))
    }

    /// Answers the hello of a restarted process that wants its old seat.
    pub(super) fn restart(&mut self, connection: ConnectionId, hello: &Hello, resume: &Resume, now: Instant) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.key = hello.key;
        }
        let answered = match self.gone_with(resume.session) {
            Some(place) => self.return_by_token(connection, hello, resume, place, now),
            None => self.reseat(connection, hello, resume, now),
        };
        if let Err(denied) = answered {
            self.deny(connection, denied, now);
        }
    }

    /// Gives a restarted process its old seat.
    fn reseat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        resume: &Resume,
        now: Instant,
    ) -> Result<(), Denied> {
        let version = self.understand(hello)?;
        let older = self.claim(connection, resume, now)?;
        let gone = || Denied::resume(ResumeRefusal::Gone);
        let seat = self.connections.get(&older).and_then(|state| state.seat).ok_or_else(gone)?;
        let (session, next) = (self.draw_session(), self.draw_token());
        let seated = self.rooms.get(&seat.0).ok_or_else(gone)?;
        if !seated.room.may_restart(seat.1) {
            return Err(gone());
        }
        if self.heir_waits(seat) {
            // It would become its own heir.
            return Err(Denied::Rejected(later(LAPSED)));
        }
        super::admission::fits(&seated.room, hello)?;
        if self.connections.get(&connection).is_some_and(|state| state.session.is_deciding()) {
            let (room, ids) = (&seated.room, (version, session));
            let spectates = room.spectates(seat.1);
            let welcome = super::admission::welcome(&self.config, room, hello, ids, spectates, now);
            let welcome = welcome_to(seat.1, welcome, next);
            self.begin_anew(connection, older, Some(&resume.token), welcome, next, now);
        }
        Ok(())
    }

    /// Begins a new session in a seat whose process is gone. `used` is the token that proved whose it is; without one
    /// its user did, and the older tokens are void.
    pub(super) fn begin_anew(
        &mut self,
        connection: ConnectionId,
        older: ConnectionId,
        used: Option<&ResumeToken>,
        welcome: Welcome,
        next: ResumeToken,
        now: Instant,
    ) {
        let seat = self.connections.get(&older).and_then(|state| state.seat);
        if let Some((room, member)) = seat {
            self.tell_untaken(room, member, now);
        }
        let Some((room, member, mut session)) = self.take_over(connection, older, used, &next) else {
            return;
        };
        let mut missed = session.take_unacknowledged();
        if let Some(seated) = self.rooms.get_mut(&room) {
            missed = seated.save_undelivered(member, missed.into_iter());
        }
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if let Some(family) = &mut state.family {
            let forgotten: Vec<SessionId> = match used {
                Some(_) => family.renamed(welcome.session).into_iter().collect(),
                None => {
                    let mut anew = Family::new(welcome.session, &next);
                    anew.follows(family.generation());
                    std::mem::replace(family, anew).sessions().collect()
                }
            };
            for session in forgotten {
                self.sessions.remove(&session);
            }
        }
        self.sessions.insert(welcome.session, connection);
        let link = state.link;
        state.lagged = 0;
        state.session.set_resumable(true);
        state.session.answer(Answer::Welcome(Box::new(welcome)), now);
        self.stats.resumed += 1;
        self.tell(room, room::Input::Restarted { member, link }, now);
        self.tell_of_link(room, member, connection, now);
        for (_, message) in missed.into_iter().filter(|(_, message)| is_news_still(message)) {
            self.send(connection, message, now);
        }
        self.told_back(room, member, connection, true);
    }
}

/// Returns the welcome to a seat that is taken already: the count of members includes it.
pub(super) fn welcome_to(member: MemberId, welcome: Welcome, next: ResumeToken) -> Welcome {
    Welcome { member, resume: Some(next), members: welcome.members - 1, ..welcome }
}

/// Whether a message from before a greeting is still useful after it: greetings list all members.
fn is_news_still(message: &Outgoing) -> bool {
    message.channel != channel::CONTROL
        || matches!(
            ToMember::decode(message.payload.clone()),
            Ok(Some(ToMember::Throttled | ToMember::ActionRefused(_) | ToMember::ActionsDecided(_)))
        )
}
