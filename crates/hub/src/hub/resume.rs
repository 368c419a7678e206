//! Sessions whose connection is lost and whose seat is kept: who may go on with them, and until when.

use super::tokens::{Family, Verdict};
use super::turn::Timer;
use super::{Happening, Hub, Output};
use crate::room;
use parlor_proto::session::{Answer, Outgoing, Session, TurnedAway};
use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::wire::handshake::{Hello, Refusal, Resume, ResumeRefusal, ResumeToken, Welcome};
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, RoomId, SessionId, channel, limits};
use rand_chacha::rand_core::Rng;
use std::cmp::Reverse;

/// A session that has no connection.
#[derive(Debug)]
pub(super) struct Away {
    until: Instant,
    /// What the others are told if it does not come back.
    reason: LeaveReason,
}

/// A session that ended in a way that its member may not have heard of: it is told when it wants to go on.
#[derive(Debug)]
pub(super) struct Ended {
    family: Family,
    reason: CloseReason,
}

/// Why nobody goes on with a session.
enum Denied {
    TurnedAway(TurnedAway),
    /// It ended meanwhile.
    Over(CloseReason),
}

impl Denied {
    fn resume(why: ResumeRefusal) -> Self {
        Refusal::Resume { why }.into()
    }
}

impl From<Refusal> for Denied {
    fn from(refusal: Refusal) -> Self {
        Denied::TurnedAway(TurnedAway::Refused(refusal))
    }
}

impl Hub {
    /// A session that can be resumed gets its first token; `None` if no seats are kept.
    pub(super) fn begin_family(
        &mut self,
        connection: ConnectionId,
        session: SessionId,
    ) -> Option<ResumeToken> {
        if self.config.grace.is_zero() {
            return None;
        }
        let token = self.draw_token();
        let state = self.connections.get_mut(&connection)?;
        state.family = Some(Family::new(session, &token));
        state.session.set_resumable(true);
        self.sessions.insert(session, connection);
        Some(token)
    }

    fn draw_token(&mut self) -> ResumeToken {
        let mut token = [0; 32];
        self.tokens.fill_bytes(&mut token);
        ResumeToken(token)
    }

    /// A connection is lost: keeps its session's seat, if it has one and can go on. Says whether it does.
    pub(super) fn keep(&mut self, connection: ConnectionId, reason: LeaveReason, now: Instant) -> bool {
        let until = now + self.config.grace;
        let Some(state) = self.connections.get_mut(&connection) else { return false };
        let Some((room, member)) = state.seat.filter(|_| state.family.is_some() && state.session.is_open())
        else {
            return false;
        };
        state.session.detach();
        state.away = Some(Away { until, reason: reason.clone() });
        self.away += 1;
        self.timers.push(Reverse((until, Timer::Grace(connection))));
        let code = self.rooms.get(&room).map(|seated| seated.room.setup().code);
        if let Some(code) = code {
            self.outputs.push_back(Output::Happened(Happening::Away { code, member, reason }));
        }
        self.drain_events(connection, now);
        self.tell_untaken(room, member, now);
        self.tell(room, room::Input::Away { member }, now);
        true
    }

    /// A session has let go of a connection on which nothing was heard.
    pub(super) fn silent(&mut self, connection: ConnectionId, now: Instant) {
        if self.keep(connection, LeaveReason::TimedOut, now) {
            let reason = CloseReason::TimedOut.as_str();
            self.outputs.push_back(Output::Close { connection, reason });
        }
    }

    /// A seat was kept for as long as it is.
    pub(super) fn grace_over(&mut self, connection: ConnectionId, now: Instant) {
        let away = self.connections.get(&connection).and_then(|state| state.away.as_ref());
        if let Some(reason) = away.filter(|away| away.until <= now).map(|away| away.reason.clone()) {
            self.forget(connection, reason, now);
        }
    }

    /// A session is over: it cannot be resumed. If its member may not know why, that is kept for it.
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
        );
        if is_of_hub && let Some(session) = family.sessions().last() {
            // Its member may find out that it is cut off as late as that, and then tries for as long as a seat is kept.
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

    /// Somebody wants to go on with a session that it has still.
    pub(super) fn resume(&mut self, connection: ConnectionId, resume: Resume, now: Instant) {
        match self.claim(connection, &resume, now) {
            Ok(older) => self.go_on(connection, older, &resume.token, now),
            Err(denied) => self.deny(connection, denied, now),
        }
    }

    fn deny(&mut self, connection: ConnectionId, denied: Denied, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        match denied {
            Denied::TurnedAway(answer) => {
                state.session.answer(Answer::TurnedAway(answer.clone()), now);
                self.stats.turned_away(&answer);
                let happened = Happening::TurnedAway { connection, answer };
                self.outputs.push_back(Output::Happened(happened));
            }
            Denied::Over(reason) => state.session.close(reason, now),
        }
    }

    /// The connection that carries, or carried last, the session that somebody proves to have.
    fn claim(
        &mut self,
        connection: ConnectionId,
        resume: &Resume,
        now: Instant,
    ) -> Result<ConnectionId, Denied> {
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
            _ => {
                let origin = self.connections.get(&connection).map(|state| state.origin);
                origin.into_iter().for_each(|origin| self.door.guessed_wrong(origin, now));
            }
        }
        Err(Denied::resume(ResumeRefusal::Token))
    }

    /// Two ends have a session, and nobody can tell which of them it belongs to: neither keeps it.
    fn revoke(&mut self, connection: ConnectionId, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.session.close(CloseReason::TokenReused, now);
        self.stats.tokens_reused += 1;
        if let Some((room, member)) = state.seat
            && let Some(seated) = self.rooms.get(&room)
        {
            let code = seated.room.setup().code;
            self.outputs.push_back(Output::Happened(Happening::TokenReused { code, member }));
        }
        self.drain_events(connection, now);
        self.touch(connection, now);
    }

    /// The session of `older` goes on over `connection`, which has one of its own until now.
    fn go_on(&mut self, connection: ConnectionId, older: ConnectionId, used: &ResumeToken, now: Instant) {
        let is_deciding = self.connections.get(&connection).is_some_and(|state| state.session.is_deciding());
        if !is_deciding {
            // It left, or broke the protocol, together with what it asked.
            return;
        }
        let next = self.draw_token();
        let Some((room, member, mut session)) = self.take_over(connection, older, used, &next) else {
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
        self.tell_reachable(connection, now);
        self.touch(connection, now);
        self.told_back(room, member, connection, false);
    }

    fn told_back(&mut self, room: RoomId, member: MemberId, connection: ConnectionId, is_restarted: bool) {
        if let Some(seated) = self.rooms.get(&room) {
            let code = seated.room.setup().code;
            let happened = Happening::Resumed { code, member, connection, is_restarted };
            self.outputs.push_back(Output::Happened(happened));
        }
    }

    /// Gives the seat of `older`, and what resumes it, to `connection`, and closes the other. Gives the seat and the session
    /// that had it.
    fn take_over(
        &mut self,
        connection: ConnectionId,
        older: ConnectionId,
        used: &ResumeToken,
        next: &ResumeToken,
    ) -> Option<(RoomId, MemberId, Session)> {
        let state = self.connections.remove(&older)?;
        if state.away.is_some() {
            self.away -= 1;
        } else {
            self.outputs.push_back(Output::Close { connection: older, reason: "resumed_elsewhere" });
        }
        let (room, member) = state.seat.expect("a session that can be resumed has a seat");
        let mut family = state.family.expect("a session that can be resumed has tokens");
        family.rotate(used, next);
        family.sessions().for_each(|session| {
            self.sessions.insert(session, connection);
        });
        if let Some(seated) = self.rooms.get_mut(&room) {
            seated.connections.insert(member, connection);
        }
        let newer = self.connections.get_mut(&connection)?;
        newer.key = newer.key.or(state.key);
        (newer.seat, newer.family, newer.lagged) = (Some((room, member)), Some(family), state.lagged);
        Some((room, member, state.session))
    }

    /// Answers a hello of a process that has lost its session and wants its seat.
    pub(super) fn restart(&mut self, connection: ConnectionId, hello: &Hello, resume: &Resume, now: Instant) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.key = hello.key;
        }
        match self.reseat(connection, hello, resume, now) {
            Ok(None) => {}
            Ok(Some((welcome, older, next))) => {
                self.begin_anew(connection, older, resume, welcome, next, now)
            }
            Err(denied) => self.deny(connection, denied, now),
        }
    }

    /// The welcome to the seat, whose it was, and the next token; `None` if nobody waits for it any more.
    fn reseat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        resume: &Resume,
        now: Instant,
    ) -> Result<Option<(Welcome, ConnectionId, ResumeToken)>, Denied> {
        let version = self.understand(hello)?;
        let older = self.claim(connection, resume, now)?;
        let gone = || Denied::resume(ResumeRefusal::Gone);
        let seat = self.connections.get(&older).and_then(|state| state.seat).ok_or_else(gone)?;
        let (session, next) = (self.draw_session(), self.draw_token());
        let seated = self.rooms.get(&seat.0).ok_or_else(gone)?;
        // Its world was lost with its process, and nobody else has the right to go on with it.
        if seated.room.authority().member() == Some(seat.1) {
            return Err(gone());
        }
        super::admission::fits(&seated.room, hello)?;
        let state = self.connections.get(&connection).filter(|state| state.session.is_deciding());
        Ok(state.map(|_| {
            let welcome = super::admission::welcome(&self.config, &seated.room, hello, version, session, now);
            // Its seat is one of them.
            let members = welcome.members - 1;
            let welcome = Welcome { member: seat.1, resume: Some(next), members, ..welcome };
            (welcome, older, next)
        }))
    }

    fn begin_anew(
        &mut self,
        connection: ConnectionId,
        older: ConnectionId,
        resume: &Resume,
        welcome: Welcome,
        next: ResumeToken,
        now: Instant,
    ) {
        let Some((room, member, mut session)) = self.take_over(connection, older, &resume.token, &next)
        else {
            return;
        };
        let missed = session.take_unacknowledged();
        let Some(state) = self.connections.get_mut(&connection) else { return };
        if let Some(family) = &mut state.family
            && let Some(forgotten) = family.renamed(welcome.session)
        {
            self.sessions.remove(&forgotten);
        }
        self.sessions.insert(welcome.session, connection);
        let link = state.link;
        state.lagged = 0;
        state.session.set_resumable(true);
        state.session.answer(Answer::Welcome(Box::new(welcome)), now);
        self.stats.resumed += 1;
        self.tell(room, room::Input::Restarted { member, link }, now);
        self.tell_of_link(room, member, connection, now);
        self.tell_reachable(connection, now);
        for (_, message) in missed.into_iter().filter(|(_, message)| is_news_still(message)) {
            self.send(connection, message, now);
        }
        self.told_back(room, member, connection, true);
    }
}

/// Whether what was said before a greeting is worth saying after it: a greeting tells who is in the room and how they are.
fn is_news_still(message: &Outgoing) -> bool {
    message.channel != channel::CONTROL
        || matches!(
            ToMember::decode(message.payload.clone()),
            Ok(Some(ToMember::Throttled | ToMember::ActionRefused(_)))
        )
}
