//! Members that were lost and may return as who they were, after their seat was freed.
//!
//! A room remembers as many of them as it has seats, and none once it has ended. They have no seat: somebody else may
//! take it, and a member that returns needs a free one. Its id and player data come back, and what it owned is still
//! under its id. Its session does not: what waited for it is gone.
//!
//! Two things prove who returns. The newest resume token of its session does: it is good once, and a used one makes
//! the token void, as for a kept seat. And the user of its admission token does, if it had one: nobody else can have
//! that user. Where only the user is known, a seat that is kept for it is taken over, too.
//!
//! What is remembered is bounded per room, per user, per address and in total (threat 45).

use super::gone::{Gone, Loss, Place};
use super::kept::KeptSeats;
use super::resume::Denied;
use super::seated::Seated;
use super::tokens::Verdict;
use super::{Hub, HubEvent, Output};
use crate::room;
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{Hello, Resume, ResumeRefusal, Welcome};
use parlor_proto::{ConnectionId, Instant, MemberId, RoomId, SessionId};

/// The memory that one takes beside its player data, which counts for its room.
const GONE_BYTES: usize = 2 * 1024;
/// They may take this fraction (1/n) of the limits for room state: per address, and in total.
const MEMORY_SHARE: usize = 16;

/// Returns the oldest of those that are remembered for the same part as `member`, if a room remembers more of them than
/// it has seats. So spectators take no player's place.
fn surplus_gone(Seated { room, gone, .. }: &Seated, member: MemberId) -> Option<MemberId> {
    let spectates = room.spectates(member);
    let most = if spectates { room.spectators_max() } else { room.setup().settings.max_players };
    let alike = || gone.iter().filter(|(id, _)| room.spectates(**id) == spectates);
    let oldest = alike().min_by_key(|(id, gone)| (gone.until, **id)).map(|(id, _)| *id);
    oldest.filter(|_| alike().count() > usize::from(most))
}

/// Whether a member that left for this reason was lost.
fn is_loss(reason: &LeaveReason) -> bool {
    matches!(reason, LeaveReason::ConnectionLost | LeaveReason::TimedOut | LeaveReason::TooSlow)
}

impl Hub {
    /// Removes a member whose session ended from its room, which remembers it if it was lost and can prove later who
    /// it is.
    pub(super) fn lose(&mut self, place: Place, reason: LeaveReason, loss: Loss, now: Instant) {
        let (room, member) = place;
        let user = self.rooms.get(&room).and_then(|seated| seated.users.get(&member).cloned());
        let may_return =
            is_loss(&reason) && !self.config.remember.is_zero() && (user.is_some() || loss.tokens.is_some());
        self.vacate(place, reason, may_return, now);
        if !may_return {
            return;
        }
        let until = now + self.config.remember;
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        for session in loss.tokens.iter().flat_map(|tokens| tokens.family.sessions()) {
            self.gone_sessions.insert(session, place);
        }
        if let Some(user) = &user {
            self.index.gone(seated, user, (until, place));
        }
        self.gone.set(loss.origin, (until, place), GONE_BYTES);
        let Loss { origin, tokens } = loss;
        seated.gone.insert(member, Gone { user, tokens, origin, until });
        self.trim_gone_of(place, now);
    }

    /// Forgets the oldest of a room and of a user until their bounds hold.
    fn trim_gone_of(&mut self, (room, member): Place, now: Instant) {
        while let Some(oldest) = self.rooms.get(&room).and_then(|seated| surplus_gone(seated, member)) {
            self.forget_gone((room, oldest), now);
        }
        let Some(seated) = self.rooms.get(&room) else { return };
        let Some(user) = seated.gone.get(&member).and_then(|gone| gone.user.clone()) else { return };
        let app = seated.room.setup().app.clone();
        while let Some(place) = self.index.surplus_gone(&app, &user) {
            self.forget_gone(place, now);
        }
    }

    /// Frees memory until all limits hold. Must not be called while a room's outputs are being executed. Returns
    /// whether there was one too many.
    pub(super) fn trim_gone(&mut self, now: Instant) -> bool {
        if !self.gone.take_has_grown() {
            return false;
        }
        let memory = self.config.memory;
        let bytes = KeptSeats { origin: memory.origin / MEMORY_SHARE, all: memory.all / MEMORY_SHARE };
        let mut was_over = false;
        while let Some(place) = self.gone.surplus(self.config.kept, bytes) {
            self.forget_gone(place, now);
            was_over = true;
        }
        was_over
    }

    /// Forgets those of a room whose time is over.
    pub(super) fn expire_gone(&mut self, room: RoomId, now: Instant) {
        let Some(seated) = self.rooms.get(&room).filter(|seated| !seated.gone.is_empty()) else { return };
        let over = seated.gone.iter().filter(|(_, gone)| gone.until <= now);
        let over: Vec<MemberId> = over.map(|(member, _)| *member).collect();
        over.into_iter().for_each(|member| self.forget_gone((room, member), now));
    }

    /// Forgets one, here and in its room.
    pub(super) fn forget_gone(&mut self, place: Place, now: Instant) {
        if self.take_gone(place).is_some() {
            self.tell(place.0, room::Input::Forget { member: place.1 }, now);
        }
    }

    /// Takes one from the hub's books. Its room still knows it.
    pub(super) fn take_gone(&mut self, place: Place) -> Option<Gone> {
        let seated = self.rooms.get_mut(&place.0)?;
        let gone = seated.gone.remove(&place.1)?;
        if let Some(user) = &gone.user {
            self.index.not_gone(seated, user, (gone.until, place));
        }
        self.uncount_gone(place, &gone);
        Some(gone)
    }

    /// Uncounts all of a room that ended.
    pub(super) fn end_gone(&mut self, id: RoomId, seated: &mut Seated) {
        for (member, gone) in std::mem::take(&mut seated.gone) {
            if let Some(user) = &gone.user {
                self.index.not_gone(seated, user, (gone.until, (id, member)));
            }
            self.uncount_gone((id, member), &gone);
        }
    }

    fn uncount_gone(&mut self, place: Place, gone: &Gone) {
        self.gone.remove(gone.origin, (gone.until, place));
        for session in gone.tokens.iter().flat_map(|tokens| tokens.family.sessions()) {
            self.gone_sessions.remove(&session);
        }
    }

    /// Returns the member that had this session, if it may return.
    pub(super) fn gone_with(&self, session: SessionId) -> Option<Place> {
        self.gone_sessions.get(&session).copied()
    }

    /// Checks a resume token of a member that is gone. A used one makes its tokens void: two clients have them.
    pub(super) fn prove_gone(
        &mut self,
        connection: ConnectionId,
        place: Place,
        resume: &Resume,
        now: Instant,
    ) -> Result<(), Denied> {
        let seated = self.rooms.get(&place.0).ok_or(Denied::resume(ResumeRefusal::Gone))?;
        let code = seated.room.setup().code;
        let gone = seated.gone.get(&place.1).filter(|gone| gone.until > now);
        let tokens = gone.and_then(|gone| gone.tokens.as_ref()).ok_or(Denied::resume(ResumeRefusal::Gone))?;
        match tokens.family.judge(&resume.token, tokens.is_shown) {
            Verdict::Good => return Ok(()),
            Verdict::Reused => {
                self.stats.tokens_reused += 1;
                let reused = HubEvent::TokenReused { code, member: place.1 };
                self.outputs.push_back(Output::Event(reused));
                self.void_tokens(place, now);
            }
            Verdict::Unknown => self.charge_wrong_token(connection, now),
        }
        Err(Denied::resume(ResumeRefusal::Token))
    }

    /// Makes the tokens of one void. Without a user it cannot return then.
    fn void_tokens(&mut self, place: Place, now: Instant) {
        let gone = self.rooms.get_mut(&place.0).and_then(|seated| seated.gone.get_mut(&place.1));
        let Some(gone) = gone else { return };
        let Some(tokens) = gone.tokens.take() else { return };
        let has_user = gone.user.is_some();
        for session in tokens.family.sessions() {
            self.gone_sessions.remove(&session);
        }
        if !has_user {
            self.forget_gone(place, now);
        }
    }

    /// Refuses a client that has the session of a member that is gone, and its token.
    pub(super) fn grace_is_over(&self, place: Place) -> Denied {
        let gone = self.rooms.get(&place.0).and_then(|seated| seated.gone.get(&place.1));
        let returns = gone.and_then(|gone| gone.tokens.as_ref()).is_some_and(|tokens| tokens.returns);
        Denied::resume(if returns { ResumeRefusal::GraceOver } else { ResumeRefusal::Gone })
    }

    /// Admits a member that returns with its newest resume token.
    pub(super) fn return_by_token(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        resume: &Resume,
        place: Place,
        now: Instant,
    ) -> Result<(), Denied> {
        let version = self.understand(hello)?;
        self.prove_gone(connection, place, resume, now)?;
        let (session, next) = (self.draw_session(), self.draw_token());
        let seated = self.rooms.get(&place.0).ok_or(Denied::resume(ResumeRefusal::Gone))?;
        super::admission::fits(&seated.room, hello)?;
        let spectates = seated.room.spectates(place.1);
        if !seated.room.has_free_seat(spectates) {
            return Err(super::admission::full(&seated.room, spectates).into());
        }
        if !self.connections.get(&connection).is_some_and(|state| state.session.is_deciding()) {
            return Ok(());
        }
        let ids = (version, session);
        let welcome = super::admission::welcome(&self.config, &seated.room, hello, ids, spectates, now);
        let keeps_seats = !seated.room.grace(self.config.grace).is_zero();
        let Some(Gone { user, tokens: Some(tokens), .. }) = self.take_gone(place) else { return Ok(()) };
        let mut family = tokens.family;
        family.rotate(&resume.token, &next);
        family.renamed(session);
        let Some(state) = self.connections.get_mut(&connection) else { return Ok(()) };
        state.seat = Some(place);
        if keeps_seats {
            state.session.set_resumable(true);
            for session in family.sessions() {
                self.sessions.insert(session, connection);
            }
            state.family = Some(family);
        }
        if let Some(seated) = self.rooms.get_mut(&place.0) {
            seated.connections.insert(place.1, connection);
        }
        let welcome = Welcome { member: place.1, resume: keeps_seats.then_some(next), ..welcome };
        self.enter(connection, hello, welcome, user.map(String::from), true, now);
        Ok(())
    }

    /// Returns the member as which a user returns to a room, if it was lost, in the part that it wants.
    pub(super) fn gone_user(
        &self,
        room: RoomId,
        user: &str,
        spectates: bool,
        now: Instant,
    ) -> Option<MemberId> {
        let Seated { gone, room, .. } = &**self.rooms.get(&room)?;
        let of_user = gone.iter().filter(|(_, it)| it.until > now && it.user.as_deref() == Some(user));
        let mut of_user = of_user.map(|(member, _)| *member);
        of_user.find(|member| room.spectates(*member) == spectates)
    }

    /// Returns the kept seat that a user takes over, in the part that it wants, and the connection that it was lost
    /// with.
    pub(super) fn away_user(
        &self,
        room: RoomId,
        user: &str,
        spectates: bool,
    ) -> Option<(ConnectionId, MemberId)> {
        let seated = self.rooms.get(&room)?;
        let of_user = seated.users.iter().filter(|(id, it)| ***it == *user && seated.room.may_restart(**id));
        let of_user = of_user.filter(|(id, _)| seated.room.spectates(**id) == spectates);
        let mut seats = of_user.filter_map(|(id, _)| Some((*seated.connections.get(id)?, *id)));
        seats.find(|(id, _)| self.connections.get(id).is_some_and(|it| it.away.is_some()))
    }
}
