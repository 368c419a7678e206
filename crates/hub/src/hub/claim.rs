//! Seats that outlive their node: gives members of a cluster's hub their seats, takes claims of other hubs' seats, and
//! reopens rooms of nodes that are gone.
//!
//! A seat is claimed with its pass and the resume token that the pass names. If the room is not here, the driver asks
//! the store: whose it is, and whether this node may have it. A room is reopened for its host, which has the world, or
//! for the first member of a match. Its other members are away until they claim their own seats, for the grace.
//!
//! Kept matches and rooms with a delayed copy end with their node: the log of the one and the past of the other are
//! lost with it.

use super::admission::{fits, full, welcome};
use super::arrivals::Moved;
use super::cycle::Timer;
use super::expected::Expected;
use super::resume::welcome_to;
use super::tokens::{Family, Verdict};
use super::waiting::{ClaimAnswer, ClaimedRoom, Concluded, LAPSED, Received, WAITING, Waiting, later, soon};
use super::{Hub, HubEvent, Output, Seated};
use crate::admission_policy::Outcome;
use crate::cluster::ownership::Term;
use crate::cluster::pass::{Pass, PassKey, TokenHash};
use crate::cluster::tenure::Decision;
use crate::room::roster::{Claimed, ClaimedSeat, Reopening, Roster, RosterMember};
use crate::room::{self, Setup};
use bytes::Bytes;
use parlor_proto::session::{Answer, Rejection};
use parlor_proto::wire::control::LeaveReason;
use parlor_proto::wire::handshake::{
    Claim, Hello, Intent, Redirect, Refusal, ResumeRefusal, ResumeToken, Seat, Welcome,
};
use parlor_proto::{ConnectionId, Instant, RoomId, limits};
use rand_chacha::rand_core::Rng;
use std::cmp::Reverse;
use std::time::Duration;

/// How long a room may have been open when it is reopened. Its host's word for more is not taken.
const ROOM_TIME_MAX: Duration = Duration::from_secs(30 * 24 * 3_600);
/// How often the store is asked for one claim of a room that it says is here.
const ASKED_MAX: u32 = 3;
const LOOKED_FOR: &str = "this room is being looked for";

/// What a claim leads to.
enum Verified {
    /// A new session in the place of one here; whether its token proved that.
    Anew(ConnectionId, bool),
    /// The seat waits. `is_known` says whether the roster had it.
    Waits { is_known: bool },
}

fn gone() -> Rejection {
    Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Gone })
}

fn not_accepted() -> Rejection {
    Rejection::Refused(Refusal::Resume { why: ResumeRefusal::Token })
}

impl Hub {
    fn pass_key(&self) -> Option<&PassKey> {
        self.cluster.as_ref()?.pass_key()
    }

    /// Whether the seats of a room outlive this node.
    pub(super) fn is_claimable(&self, seated: &Seated) -> bool {
        let settings = &seated.room.setup().settings;
        self.pass_key().is_some()
            && seated.uid.is_some()
            && !settings.keep
            && settings.spectator_delay_ms == 0
            && !seated.room.grace(self.config.grace).is_zero()
    }

    /// Tells a member how to claim its seat elsewhere.
    pub(super) fn tell_seat(&mut self, connection: ConnectionId) {
        let Some((seat, state)) = self.seat_of(connection).zip(self.connections.get_mut(&connection)) else {
            return;
        };
        state.session.tell_seat(seat);
    }

    fn seat_of(&mut self, connection: ConnectionId) -> Option<Seat> {
        let (pass, term) = self.pass_of(connection)?;
        let moves_to = self.claimed_room(&pass).and_then(|room| self.announced_address(room));
        let others = self.cluster.as_ref()?.view.others.clone();
        let mut elsewhere: Vec<&str> = others.iter().map(|node| node.address.as_str()).collect();
        // Shuffled for each member, so that those of a dead node do not all go to the same one.
        for at in 0..elsewhere.len().min(limits::ELSEWHERE_MAX) {
            let left = elsewhere.len() - at;
            elsewhere.swap(at, at + self.random.next_u32() as usize % left);
        }
        elsewhere.truncate(limits::ELSEWHERE_MAX);
        let elsewhere = elsewhere.into_iter().map(str::to_owned).collect();
        let pass_bytes = pass.issue(self.pass_key()?);
        Some(Seat { term, uid: pass.uid.0, pass: pass_bytes, hedge_ms: 0, elsewhere, moves_to })
    }

    fn pass_of(&self, connection: ConnectionId) -> Option<(Pass, u64)> {
        let state = self.connections.get(&connection).filter(|state| state.moves)?;
        let ((room, member), family) = (state.seat?, state.family.as_ref()?);
        let seated = self.rooms.get(&room).filter(|seated| self.is_claimable(seated))?;
        let setup = seated.room.setup();
        let hosts = seated.room.authority().member() == Some(member);
        let pass = Pass {
            uid: seated.uid?,
            code: setup.code,
            app: setup.app.clone(),
            environment: setup.environment.clone(),
            term: Term(seated.term),
            member,
            generation: family.generation(),
            hosts: hosts.then(|| seated.room.epoch()),
            spectates: seated.room.spectates(member),
            name: seated.room.name_of(member)?.to_owned(),
            user: seated.users.get(&member).map(|user| user.to_string()),
            token: TokenHash::of_digest(family.newest()),
        };
        Some((pass, seated.term))
    }

    /// Tells all members of a room, or of all rooms, how to claim their seats: that has changed.
    pub(super) fn tell_seats(&mut self, of: Option<RoomId>, now: Instant) {
        if self.pass_key().is_none() {
            return;
        }
        let mut connections = match of {
            Some(room) => self.members_of(room),
            None => {
                self.connections.iter().filter(|(_, state)| state.seat.is_some()).map(|(id, _)| *id).collect()
            }
        };
        connections.sort_unstable();
        for connection in connections {
            self.tell_seat(connection);
            self.touch(connection, now);
        }
    }

    /// Returns who is in a room, for its row in the store. `None` if it ends with this node.
    pub(super) fn roster(&self, seated: &Seated) -> Option<Roster> {
        if !self.is_claimable(seated) {
            return None;
        }
        let generation = |member| {
            let of_connection = seated.connections.get(&member).and_then(|it| self.connections.get(it));
            let family = of_connection.and_then(|state| state.family.as_ref());
            let expected = seated.expected.as_ref().and_then(|expected| expected.seats.get(&member));
            family.map(Family::generation).or(expected.copied()).unwrap_or(0)
        };
        Some(seated.room.roster(generation))
    }

    /// Answers a claim.
    pub(super) fn claim_seat(&mut self, connection: ConnectionId, hello: Hello, claim: &Claim, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.key = hello.key;
        let origin = state.origin;
        if self.pass_key().is_none() {
            return self.conclude(connection, &hello, Concluded::reject(gone(), None), now);
        }
        let received = match self.receive(&hello, origin, now) {
            Ok(received) => received,
            Err(answer) => {
                return self.conclude(connection, &hello, Concluded::reject(answer, None), now);
            }
        };
        let verified = self.pass_key().and_then(|key| Pass::verify(key, &claim.pass, &claim.token));
        let is_meant = |pass: &Pass| {
            (pass.term.0, &pass.app, &pass.environment) == (claim.term, &hello.app, &hello.environment)
        };
        let Some(pass) = verified.filter(is_meant) else {
            return self.conclude(connection, &hello, Concluded::reject(not_accepted(), received.guess), now);
        };
        if let Some(address) = self.config.shards.elsewhere(pass.code) {
            let answer = Rejection::Redirect(Redirect { address: address.to_owned() });
            return self.conclude(connection, &hello, Concluded::reject(answer, received.guess), now);
        }
        match self.claimed_room(&pass) {
            // The store knows who is banned.
            Some(room) if pass.user.is_none() => {
                self.take_claimed(connection, &hello, &pass, received, room, now);
            }
            _ => self.ask_claimed(connection, hello, pass, (received, 1), now),
        }
    }

    /// Returns the room of a pass, if it is here.
    fn claimed_room(&self, pass: &Pass) -> Option<RoomId> {
        let id = self.directory.find(pass.code)?;
        self.rooms.get(&id).filter(|seated| seated.uid == Some(pass.uid)).map(|_| id)
    }

    /// Asks the store for a room.
    fn ask_claimed(
        &mut self,
        connection: ConnectionId,
        hello: Hello,
        pass: Pass,
        (received, asked): (Received, u32),
        now: Instant,
    ) {
        let Some(cluster) = &self.cluster else { return };
        let has_place = self.rooms.len() + cluster.entering() < self.config.rooms_max;
        let refusal = match self.has_memory(self.origin_of(connection)) {
            Ok(()) if cluster.is_full() || !has_place => Some(later(WAITING)),
            Ok(()) => None,
            Err(refusal) => Some(refusal),
        };
        if let Some(answer) = refusal {
            return self.conclude(connection, &hello, Concluded::reject(answer, received.guess), now);
        }
        let room = ClaimedRoom {
            code: pass.code,
            uid: pass.uid,
            term: pass.term.0,
            is_here: self.claimed_room(&pass).is_some(),
            member: pass.member,
            hosts: pass.hosts,
            user: pass.user.clone(),
            app: pass.app.clone(),
            environment: pass.environment.clone(),
        };
        if let Some(cluster) = &mut self.cluster {
            // Its room needs a place as soon as the store has said so.
            cluster.entering += 1;
            cluster.waiting.insert(connection, Box::new(Waiting::Claim { hello, pass, received, asked }));
        }
        self.outputs.push_back(Output::Claim { connection, room });
    }

    /// Handles the answer to [`Output::Claim`].
    pub fn handle_claimed(&mut self, connection: ConnectionId, answer: ClaimAnswer, now: Instant) {
        let Some(Waiting::Claim { hello, pass, received, asked }) = self.no_longer_waits(connection) else {
            return;
        };
        if let Some(cluster) = &mut self.cluster {
            cluster.entering -= 1;
        }
        let is_on_its_way = answer == ClaimAnswer::Here && self.claimed_room(&pass).is_none();
        if is_on_its_way && asked < ASKED_MAX && self.is_deciding(connection) {
            // Another member has brought it, and the answer to that one is not here yet.
            return self.ask_claimed(connection, hello, pass, (received, asked + 1), now);
        }
        let found = match answer {
            ClaimAnswer::Reopened { term, setup, roster, snapshot } => {
                // Even without its client: from here on the room is this node's.
                let parts = (setup, roster, snapshot);
                let reopened = self.reopen(connection, &hello, &pass, (term, parts), now);
                if reopened.is_none() {
                    self.outputs.push_back(Output::Left { code: pass.code, uid: pass.uid });
                }
                reopened.ok_or_else(gone)
            }
            ClaimAnswer::Here => self.claimed_room(&pass).ok_or_else(|| soon(LOOKED_FOR)),
            ClaimAnswer::At(address) => Err(Rejection::Redirect(Redirect { address })),
            ClaimAnswer::Later => Err(soon(LOOKED_FOR)),
            ClaimAnswer::Gone => Err(gone()),
            ClaimAnswer::Barred => Err(Rejection::Refused(Refusal::Unauthorized)),
        };
        if !self.is_deciding(connection) {
            if let Some(guess) = received.guess {
                self.policy.settle_guess(guess, Outcome::Right, now);
            }
            return;
        }
        let may = self.cluster.as_ref().is_some_and(|cluster| cluster.may(Decision::Join));
        match found {
            Ok(room) if may => self.take_claimed(connection, &hello, &pass, received, room, now),
            Ok(_) => {
                self.conclude(connection, &hello, Concluded::reject(later(LAPSED), received.guess), now);
            }
            Err(answer) => {
                self.conclude(connection, &hello, Concluded::reject(answer, received.guess), now);
            }
        }
        self.touch(connection, now);
    }

    /// Reopens a room that is this node's from now on.
    fn reopen(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        pass: &Pass,
        (term, (setup, roster, snapshot)): (u64, (Bytes, Bytes, Bytes)),
        now: Instant,
    ) -> Option<RoomId> {
        let Intent::Claim(claim) = &hello.intent else { return None };
        if let Some(id) = self.claimed_room(pass) {
            // Two members asked at once.
            self.rooms.get_mut(&id)?.term = term;
            return Some(id);
        }
        let setup = room::log::setup_of(setup).ok().filter(|setup| setup.code == pass.code)?;
        // What cannot be read of a room that moved is lost, as after a death.
        let moved = Moved::read(snapshot);
        let reopening = match &moved {
            Some(moved) => Reopening::moved(moved.snapshot()),
            None => self.reopening(connection, pass, &setup, (term, roster))?,
        };
        if reopening.roster.members.is_empty() {
            return None;
        }
        let id = RoomId(self.next_room);
        self.directory.choose(pass.code, id).ok()?;
        self.next_room += 2 * self.config.shards.count() as u64;
        let told = Duration::from_micros(claim.room_time_us.unwrap_or(0));
        let room_time = moved.as_ref().map_or(told.min(ROOM_TIME_MAX), |moved| moved.room_time(told));
        let room_time_us = u64::try_from(room_time.as_micros()).unwrap_or(0);
        let opened = Instant::from_micros(now.as_micros().saturating_sub(room_time_us));
        let state_bytes_per_second = self.config.state_bytes_per_second;
        let origin = self.origin_of(connection);
        self.open_setup(Setup { id, opened, state_bytes_per_second, ..setup }, origin, now).ok()?;
        let seated = self.rooms.get_mut(&id)?;
        (seated.uid, seated.term) = (Some(pass.uid), term);
        if moved.is_none() {
            let until = now + seated.room.grace(self.config.grace);
            seated.expected = Some(Expected::of(&reopening));
            self.timers.push(Reverse((until, Timer::Expected(id))));
        }
        self.tell(id, room::Input::Reopened(reopening), now);
        if let Some(moved) = moved {
            self.expect_sessions(id, moved, now);
        }
        Some(id)
    }

    /// Returns how a room begins whose node is gone.
    fn reopening(
        &self,
        connection: ConnectionId,
        pass: &Pass,
        setup: &Setup,
        (term, roster): (u64, Bytes),
    ) -> Option<Reopening> {
        let roster = if roster.is_empty() { Roster::default() } else { Roster::decode(roster).ok()? };
        let hosts = pass.hosts.map(|epoch| (pass.member, epoch));
        let mut reopening = Reopening::new(roster, setup, term, hosts)?;
        let link = self.connections.get(&connection).map_or(parlor_proto::LinkKind::Quic, |state| state.link);
        // It joined after the roster was written.
        if pass.member.0 >= reopening.late_from() {
            reopening.roster.members.entry(pass.member).or_insert_with(|| RosterMember {
                generation: pass.generation,
                spectates: pass.spectates,
                link,
                name: pass.name.clone(),
                user: pass.user.clone(),
            });
        }
        Some(reopening)
    }

    /// Frees the seats of a reopened room whose members did not come.
    pub(super) fn expected_over(&mut self, id: RoomId, now: Instant) {
        let expected = self.rooms.get_mut(&id).and_then(|seated| seated.expected.take());
        for member in expected.into_iter().flat_map(|expected| expected.seats.into_keys()) {
            self.tell(id, room::Input::Leave { member, reason: LeaveReason::TimedOut }, now);
        }
    }

    /// Gives a member its seat in a room that is here.
    fn take_claimed(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        pass: &Pass,
        received: Received,
        room: RoomId,
        now: Instant,
    ) {
        let Intent::Claim(claim) = &hello.intent else { return };
        let Received { version, guess } = received;
        let verified = self.verify_claim(hello, pass, &claim.token, room, now);
        let verified = match verified {
            Ok(verified) => verified,
            Err(answer) => return self.conclude(connection, hello, Concluded::reject(answer, guess), now),
        };
        if let Some(guess) = guess {
            self.policy.settle_guess(guess, Outcome::Right, now);
        }
        let (session, next) = (self.draw_session(), self.draw_token());
        let Some(seated) = self.rooms.get(&room) else { return };
        let member = pass.member;
        let welcome = welcome(&self.config, &seated.room, hello, (version, session), pass.spectates, now);
        match verified {
            Verified::Anew(older, true) if self.continues(older) => {
                self.go_on_claimed(connection, older, pass, (&claim.token, next), welcome, now);
            }
            Verified::Anew(older, is_proved) => {
                let used = is_proved.then_some(&claim.token);
                let welcome = welcome_to(member, welcome, next);
                self.begin_anew(connection, older, used, welcome, next, now);
                if let Some(family) =
                    self.connections.get_mut(&connection).and_then(|state| state.family.as_mut())
                {
                    family.follows(pass.generation);
                }
                self.tell_seat(connection);
            }
            Verified::Waits { is_known } => {
                let welcome = match is_known {
                    true => welcome_to(member, welcome, next),
                    false => Welcome { member, resume: Some(next), ..welcome },
                };
                let family = Family::claimed(session, &claim.token, &next, pass.generation);
                self.enter_claimed(connection, pass, welcome, family, now);
            }
        }
    }

    /// Judges a claim of a seat in a room that is here.
    fn verify_claim(
        &mut self,
        hello: &Hello,
        pass: &Pass,
        token: &ResumeToken,
        room: RoomId,
        now: Instant,
    ) -> Result<Verified, Rejection> {
        let member = pass.member;
        let seated = self.rooms.get(&room).ok_or_else(gone)?;
        fits(&seated.room, hello).map_err(Rejection::Refused)?;
        if let Some(older) = seated.connections.get(&member).copied() {
            let state = self.connections.get(&older).ok_or_else(gone)?;
            let family = state.family.as_ref().ok_or_else(gone)?;
            let is_newer = pass.generation > family.generation();
            let may = seated.room.may_claim(member);
            // The node was merely slow. Its session goes on when the member resumes it, and loses nothing.
            let is_its_own = pass.term.0 == seated.term;
            return match family.judge(token, state.session.has_heard_peer()) {
                // Its world is here: its session goes on.
                Verdict::Good if !may || is_its_own => Err(soon(LOOKED_FOR)),
                Verdict::Good => Ok(Verified::Anew(older, true)),
                Verdict::Unknown if is_newer && may => Ok(Verified::Anew(older, false)),
                Verdict::Reused => {
                    self.revoke(older, now);
                    Err(not_accepted())
                }
                Verdict::Unknown => Err(not_accepted()),
            };
        }
        let expected = seated.expected.as_ref().ok_or_else(gone)?;
        if let Some(generation) = expected.seats.get(&member) {
            // The answer with the newest token may have been lost with the node.
            let is_present = pass.generation.saturating_add(1) >= *generation;
            return if is_present { Ok(Verified::Waits { is_known: true }) } else { Err(not_accepted()) };
        }
        if !expected.is_late(member) {
            return Err(gone());
        }
        match seated.room.has_free_seat(pass.spectates) {
            true => Ok(Verified::Waits { is_known: false }),
            false => Err(Rejection::Refused(full(&seated.room, pass.spectates))),
        }
    }

    /// Welcomes a member to the seat that waited for it.
    fn enter_claimed(
        &mut self,
        connection: ConnectionId,
        pass: &Pass,
        welcome: Welcome,
        family: Family,
        now: Instant,
    ) {
        let (room, member, session) = (welcome.room, pass.member, welcome.session);
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.session.answer(Answer::Welcome(Box::new(welcome)), now);
        if !state.session.is_open() {
            // It left together with its hello: the seat waits on.
            return;
        }
        state.session.set_resumable(true);
        (state.seat, state.family) = (Some((room, member)), Some(family));
        let link = state.link;
        self.sessions.insert(session, connection);
        let Some(seated) = self.rooms.get_mut(&room) else { return };
        seated.connections.insert(member, connection);
        if let Some(expected) = &mut seated.expected
            && expected.seats.remove(&member).is_none()
        {
            expected.came_late.insert(member);
        }
        if let Some(user) = &pass.user {
            self.index.joined(seated, member, user);
        }
        let code = seated.room.setup().code;
        let (name, user) = (pass.name.clone(), pass.user.clone());
        let seat =
            ClaimedSeat { member, name: name.clone(), user: user.clone(), link, spectates: pass.spectates };
        // A node cannot know what the one before it had acknowledged and not passed on.
        self.tell(room, room::Input::Claimed { seat, how: Claimed::Anew { gap: true } }, now);
        self.tell_of_link(room, member, connection, now);
        self.outputs.push_back(Output::Event(HubEvent::Joined { code, member, name, connection, user }));
    }
}
