//! Admits clients to rooms and announces them.

use super::cycle::{MEASURE_INTERVAL, Timer};
use super::resume::welcome_to;
use super::waiting::{Concluded, Entry, Judged, Opening, Received};
use super::{Config, Hub, HubEvent, Output, RETRY_AFTER_SHUTDOWN, Seated};
use crate::admission_policy::{Admitted, Origin, Outcome};
use crate::cluster::tenure::Decision;
use crate::room::{self, Room, Setup};
use bytes::Bytes;
use parlor_proto::session::{Answer, Rejection};
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Limits, Redirect, Refusal, ResumeRefusal, RetryAfter, RoomKind, RoomSettings,
    Welcome, capability,
};
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, RoomCode, RoomId, SessionId, code, limits};
use rand_chacha::rand_core::Rng;
use std::cmp::Reverse;
use std::time::Duration;

/// The detail sent to a client that must wait, whatever it asked for.
const TOO_MANY_GUESSES: &str = "too many wrong room codes or tokens came from your network";

impl Hub {
    /// Answers a hello.
    pub(super) fn admit(&mut self, connection: ConnectionId, hello: Hello, now: Instant) {
        let Some(state) = self.connections.get_mut(&connection) else { return };
        state.returns = hello.capabilities & capability::RETURNS != 0;
        state.moves = hello.capabilities & capability::MOVES != 0;
        if let Intent::Resume(resume) = hello.intent {
            return self.restart(connection, &hello, &resume, now);
        }
        if let Intent::Claim(claim) = &hello.intent {
            let claim = claim.clone();
            return self.claim_seat(connection, hello, &claim, now);
        }
        let origin = state.origin;
        match self.receive(&hello, origin, now) {
            Ok(received) if self.is_unknown(&hello.intent) => self.locate(connection, hello, received, now),
            Ok(received) => self.admit_here(connection, hello, received, now),
            Err(answer) => self.conclude(connection, &hello, Concluded::reject(answer, None), now),
        }
    }

    /// Answers a hello whose room, if it is anywhere, is here.
    pub(super) fn admit_here(
        &mut self,
        connection: ConnectionId,
        hello: Hello,
        received: Received,
        now: Instant,
    ) {
        let Judged { version, admitted, guess } = match self.judge(&hello, received, now) {
            Ok(judged) => judged,
            Err(answer) => {
                return self.conclude(connection, &hello, Concluded::reject(answer, None), now);
            }
        };
        if let Intent::Create(settings) = &hello.intent
            && self.cluster.is_some()
        {
            let settings = settings.clone();
            let opening = Opening { hello, settings, judged: Judged { version, admitted, guess } };
            return self.begin_entering(connection, opening, now);
        }
        let seated = self.seat(connection, &hello, &admitted, version, now);
        self.conclude(connection, &hello, Concluded { seated, user: admitted.user, guess }, now);
    }

    /// Sends the answer to a hello, and settles its guess.
    pub(super) fn conclude(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        concluded: Concluded,
        now: Instant,
    ) {
        let Concluded { seated, user, guess } = concluded;
        let (answer, entry) = match seated {
            Ok((welcome, entry)) => (Answer::Welcome(Box::new(welcome)), entry),
            Err(answer) => {
                self.stats.rejected(&answer);
                let happened = HubEvent::Rejected { connection, answer: answer.clone() };
                self.outputs.push_back(Output::Event(happened));
                (Answer::Rejected(answer), Entry::New)
            }
        };
        if let Some(guess) = guess {
            self.policy.settle_guess(guess, outcome(hello, &answer), now);
        }
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        state.key = hello.key;
        match (answer, entry) {
            (Answer::Welcome(welcome), Entry::Anew(older, next)) => {
                self.begin_anew(connection, older, None, *welcome, next, now);
            }
            (Answer::Welcome(welcome), entry) => {
                self.enter(connection, hello, *welcome, user, matches!(entry, Entry::Returned), now);
            }
            (answer, _) => state.session.answer(answer, now),
        }
    }

    /// Welcomes a client to the seat that is reserved for it. `returns` says whether it is the member that was lost.
    pub(super) fn enter(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        welcome: Welcome,
        user: Option<String>,
        returns: bool,
        now: Instant,
    ) {
        let (room, code, member) = (welcome.room, welcome.code, welcome.member);
        let spectates = welcome.spectates();
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        let link = state.link;
        state.session.answer(Answer::Welcome(Box::new(welcome)), now);
        if !state.session.is_open() {
            // It left or violated the protocol together with its hello: the room need not learn of it.
            state.seat = None;
            return self.unseat(room, member, now);
        }
        let gone = if returns { self.take_gone((room, member)) } else { None };
        let generation = gone.and_then(|gone| gone.tokens).map(|tokens| tokens.family.generation());
        let family = self.connections.get_mut(&connection).and_then(|state| state.family.as_mut());
        if let Some((family, generation)) = family.zip(generation) {
            family.follows(generation);
        }
        if let (Some(user), Some(seated)) = (&user, self.rooms.get_mut(&room)) {
            self.index.joined(seated, member, user);
        }
        // Only after the welcome: the room's messages to the newcomer must follow it.
        let name = hello.name.clone();
        let joined = HubEvent::Joined { code, member, name: name.clone(), connection, user: user.clone() };
        let enters = match returns {
            true => room::Input::Returned { member, name, user, link },
            false => room::Input::Join { name, user, link, spectates },
        };
        self.tell(room, enters, now);
        self.tell_of_link(room, member, connection, now);
        self.outputs.push_back(Output::Event(joined));
    }

    /// Finds or opens the room and reserves the seat.
    pub(super) fn seat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        admitted: &Admitted,
        version: u16,
        now: Instant,
    ) -> Result<(Welcome, Entry), Rejection> {
        let origin = self.connections.get(&connection).map_or(Origin::LOCAL, |state| state.origin);
        let (id, user) = match &hello.intent {
            Intent::Create(settings) => {
                self.has_memory(origin)?;
                (self.open(hello, admitted, settings, origin, now), None)
            }
            Intent::Join { code, secret } => {
                (self.find(hello, *code, secret.as_deref()), admitted.user.as_deref())
            }
            Intent::Resume(_) | Intent::Path(_) | Intent::Claim(_) => unreachable!("it was answered before"),
        };
        let id = id.map_err(Rejection::Refused)?;
        self.take_seat(connection, hello, (version, user), id, now)
    }

    /// Reserves the seat in a room. `user` is a user that may have had one there.
    pub(super) fn take_seat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        (version, user): (u16, Option<&str>),
        id: RoomId,
        now: Instant,
    ) -> Result<(Welcome, Entry), Rejection> {
        let spectates = hello.spectates();
        let id = self.joined_room(id, spectates).map_err(Rejection::Refused)?;
        let session = self.draw_session();
        if let Some((older, member)) = user.and_then(|user| self.away_user(id, user, spectates)) {
            let next = self.draw_token();
            let seated = self.rooms.get(&id).expect("the room was just found");
            let welcome = welcome(&self.config, &seated.room, hello, (version, session), spectates, now);
            return Ok((welcome_to(member, welcome, next), Entry::Anew(older, next)));
        }
        let returning = user.and_then(|user| self.gone_user(id, user, spectates, now));
        let seated = self.rooms.get(&id).expect("the room was just found or opened");
        let is_free = match returning {
            Some(_) => seated.room.has_free_seat(spectates),
            None => seated.room.has_seat(spectates),
        };
        if !is_free {
            return Err(Rejection::Refused(full(&seated.room, spectates)));
        }
        let resume = self.begin_family(connection, session, seated.room.grace(self.config.grace));
        let seated = self.rooms.get_mut(&id).expect("the room was just found or opened");
        let member = returning.unwrap_or_else(|| seated.room.next_member());
        seated.connections.insert(member, connection);
        let welcome = welcome(&self.config, &seated.room, hello, (version, session), spectates, now);
        let welcome = Welcome { member, resume, ..welcome };
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        state.seat = Some((id, member));
        Ok((welcome, if returning.is_some() { Entry::Returned } else { Entry::New }))
    }

    pub(super) fn draw_session(&mut self) -> SessionId {
        SessionId(u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64()))
    }

    /// Returns the address of the hub that is responsible, if it is another one of the same server.
    fn elsewhere(&mut self, Hello { intent, auth, .. }: &Hello) -> Option<String> {
        if let (Some(cluster), Intent::Create(settings)) = (&self.cluster, intent) {
            // A token to open is good once, at the node that it is for.
            let is_free = settings.code.is_none() && *auth == Auth::Anonymous;
            let is_first = self.config.shards.own() == 0 && is_free;
            if let Some(address) = cluster.opens_at(is_first, || self.random.next_u32()) {
                return Some(address);
            }
        }
        let shards = &mut self.config.shards;
        let address = match intent {
            Intent::Create(RoomSettings { code: None, .. }) => shards.spread(),
            // A hub of a cluster asks where the room is: perhaps at another node.
            Intent::Join { .. } if self.cluster.is_some() => None,
            Intent::Create(RoomSettings { code: Some(code), .. }) | Intent::Join { code, .. } => {
                shards.elsewhere(*code)
            }
            Intent::Resume(_) | Intent::Path(_) | Intent::Claim(_) => None,
        };
        address.map(str::to_owned)
    }

    /// Frees a seat that was reserved and not taken.
    fn unseat(&mut self, id: RoomId, member: MemberId, now: Instant) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        seated.connections.remove(&member);
        if seated.is_abandoned() {
            self.end(id, CloseReason::Left, now);
        }
    }

    /// Checks whether the hello may be answered at all, and here. Independent of which rooms exist, and of its token.
    pub(super) fn receive(
        &mut self,
        hello: &Hello,
        origin: Origin,
        now: Instant,
    ) -> Result<Received, Rejection> {
        let version = self.understand(hello).map_err(Rejection::Refused)?;
        if let Some(answer) = self.put_off(Decision::Join) {
            return Err(answer);
        }
        if let Some(address) = self.elsewhere(hello) {
            return Err(Rejection::Redirect(Redirect { address }));
        }
        if let Intent::Create(_) = hello.intent
            && let Some(answer) = self.put_off(Decision::Open)
        {
            return Err(answer);
        }
        let has_token = hello.auth != Auth::Anonymous;
        let mut guess = None;
        if is_guess(hello) {
            guess = Some(self.policy.begin_guess(origin, has_token, now).map_err(wait)?);
        }
        Ok(Received { version, guess })
    }

    /// Returns the answer to a client if the hub may not decide this, or not any more.
    pub(super) fn put_off(&self, decision: Decision) -> Option<Rejection> {
        if self.is_shutting_down {
            let detail = CloseReason::ServerShutdown.to_string();
            return Some(Rejection::RetryAfter(RetryAfter { after: RETRY_AFTER_SHUTDOWN, detail }));
        }
        self.cluster.as_ref().and_then(|cluster| cluster.put_off(decision))
    }

    /// Verifies the hello's token.
    fn judge(&mut self, hello: &Hello, received: Received, now: Instant) -> Result<Judged, Rejection> {
        let Received { version, mut guess } = received;
        let has_token = hello.auth != Auth::Anonymous;
        let admitted = self.policy.admit(hello, now).map_err(Rejection::Refused);
        let judged = admitted.and_then(|admitted| {
            if let (Some(guess), Some(user)) = (&mut guess, &admitted.user)
                && depends_on_codes(hello)
            {
                self.policy.charge_user(guess, hello, user, now).map_err(wait)?;
            }
            Ok(admitted)
        });
        match judged {
            Ok(admitted) => Ok(Judged { version, admitted, guess }),
            Err(answer) => {
                if let Some(guess) = guess {
                    let is_wrong_token = has_token && answer == Rejection::Refused(Refusal::Unauthorized);
                    let outcome = if is_wrong_token { Outcome::Wrong } else { Outcome::Right };
                    self.policy.settle_guess(guess, outcome, now);
                }
                Err(answer)
            }
        }
    }

    /// Checks the hello's format and version; returns the protocol version to use.
    pub(super) fn understand(&self, hello: &Hello) -> Result<u16, Refusal> {
        let version = hello.version_max.min(limits::VERSION_MAX);
        if version < hello.version_min.max(limits::VERSION_MIN) {
            return Err(Refusal::Version { min: limits::VERSION_MIN, max: limits::VERSION_MAX });
        }
        hello.check().map_err(|detail| Refusal::BadRequest { detail })?;
        if let Intent::Path(path) = &hello.intent {
            let detail = format!("{path} leads to a member of a room, and this is a hub");
            return Err(Refusal::BadRequest { detail });
        }
        match &self.config.apps {
            Some(apps) if !apps.contains(&hello.app) => Err(Refusal::App { expected: apps.join(", ") }),
            _ => Ok(version),
        }
    }

    fn open(
        &mut self,
        hello: &Hello,
        admitted: &Admitted,
        settings: &RoomSettings,
        origin: Origin,
        now: Instant,
    ) -> Result<RoomId, Refusal> {
        self.count_opening(hello, admitted, settings)?;
        let opened = self.open_counted(hello, settings, origin, now);
        match &opened {
            Ok(id) => self.set_keeper(*id, settings, admitted),
            Err(_) => self.uncount_opening(hello, settings, admitted),
        }
        opened
    }

    /// Checks whether the client may open one more room, and counts it against its quota.
    pub(super) fn count_opening(
        &mut self,
        hello: &Hello,
        admitted: &Admitted,
        settings: &RoomSettings,
    ) -> Result<(), Refusal> {
        let kind = settings.kind;
        if kind == RoomKind::Dedicated && !self.config.dedicated {
            return Err(Refusal::RoomKind { kind });
        }
        if settings.keep && !self.config.keeps {
            return Err(Refusal::NotKept);
        }
        let opens = 1 + usize::from(settings.spectator_delay_ms > 0);
        let entering = self.cluster.as_ref().map_or(0, |cluster| cluster.entering());
        if self.rooms.len() + entering + opens > self.config.rooms_max {
            return Err(Refusal::ServerFull);
        }
        if settings.keep {
            self.policy.keep(hello, admitted)?;
        }
        Ok(())
    }

    /// Lets a new room count against its opener's quota until it ends.
    pub(super) fn set_keeper(&mut self, id: RoomId, settings: &RoomSettings, admitted: &Admitted) {
        if let Some(user) = admitted.user.as_deref().filter(|_| settings.keep) {
            let seated = self.rooms.get_mut(&id).expect("the room was just opened");
            seated.keeper = Some(user.to_owned());
        }
    }

    /// Uncounts a room that was counted and not opened.
    pub(super) fn uncount_opening(&mut self, hello: &Hello, settings: &RoomSettings, admitted: &Admitted) {
        if let Some(user) = admitted.user.as_deref().filter(|_| settings.keep) {
            self.policy.keep_ended(&hello.app, &hello.environment, user);
        }
    }

    /// Opens a room whose quotas are checked and counted.
    fn open_counted(
        &mut self,
        hello: &Hello,
        settings: &RoomSettings,
        origin: Origin,
        now: Instant,
    ) -> Result<RoomId, Refusal> {
        let id = RoomId(self.next_room);
        let code = self.take_code(id, settings, now)?;
        self.make_room(hello, settings, origin, (id, code), now)
    }

    /// Registers a room under its chosen code, or under a drawn one.
    pub(super) fn take_code(
        &mut self,
        id: RoomId,
        settings: &RoomSettings,
        now: Instant,
    ) -> Result<RoomCode, Refusal> {
        if let Some(code) = settings.code {
            self.directory.choose(code, id).map_err(|_| Refusal::CodeTaken)?;
            return Ok(code);
        }
        let (random, shards) = (&mut self.random, &self.config.shards);
        let extra = self.policy.code_letters_extra(now);
        // Without a cluster a guess goes to the hub that owns the code, so only the density of its share counts.
        let elsewhere = self.cluster.as_ref().map_or(0, |cluster| cluster.rooms_elsewhere());
        let rooms = ((self.directory.len() + 1) * shards.count()).saturating_add(elsewhere);
        let len = match settings.kind {
            RoomKind::Match => code::MATCH_ID_LEN,
            RoomKind::PlayerHosted | RoomKind::Dedicated => {
                (code::len_for(rooms) + extra).min(code::CODE_LEN_MAX)
            }
        };
        Ok(self.directory.draw(id, len, || random.next_u32(), |code| shards.is_home(code)))
    }

    /// Opens a room that is registered under its code.
    pub(super) fn make_room(
        &mut self,
        hello: &Hello,
        settings: &RoomSettings,
        origin: Origin,
        (id, code): (RoomId, RoomCode),
        now: Instant,
    ) -> Result<RoomId, Refusal> {
        self.open_setup(self.setup(hello, settings, (id, code), now), origin, now)
    }

    /// Opens a room of this setup, that is registered under its code.
    pub(super) fn open_setup(
        &mut self,
        setup: Setup,
        origin: Origin,
        now: Instant,
    ) -> Result<RoomId, Refusal> {
        let (id, code) = (setup.id, setup.code);
        let head = self.config.record.then(|| room::log::head(&setup));
        let shards = self.config.shards.count() as u64;
        let copy = RoomId(id.0 + shards);
        let opened = self.open_copy(&setup, copy, origin).and_then(|part| Ok((part, Room::new(setup)?)));
        let (part, room) = opened.map_err(|error| {
            self.directory.remove(code);
            Refusal::BadRequest { detail: error.to_string() }
        })?;
        let seated = Seated { part, ..Seated::new(room, origin) };
        self.next_room = self.next_room.max(seated.copy().unwrap_or(id).0 + shards);
        self.outputs.extend(head.map(|bytes| Output::Recorded { room: id, bytes }));
        self.outputs.push_back(Output::Event(HubEvent::RoomOpened(self.summary(&seated))));
        for room in [id].into_iter().chain(seated.copy()) {
            self.timers.push(Reverse((now + MEASURE_INTERVAL, Timer::Measure(room))));
        }
        self.index.opened(seated.room.setup());
        self.begin_host_timeout(id, &seated, now);
        self.rooms.insert(id, Box::new(seated));
        Ok(id)
    }

    /// Finds the room with this code, if it admits the client; it may be full. Its existence is revealed only to clients with
    /// its secret and environment. Both are compared whether or not the room exists (threat 10).
    fn find(&self, hello: &Hello, code: RoomCode, secret: Option<&str>) -> Result<RoomId, Refusal> {
        let found =
            self.directory.find(code).and_then(|id| self.rooms.get(&id).map(|seated| (id, &seated.room)));
        let (environment, wanted) = found.map_or(("", None), |(_, room)| {
            let Setup { environment, settings, .. } = room.setup();
            (environment.as_str(), settings.secret.as_deref())
        });
        let is_allowed = same(environment, &hello.environment)
            & (wanted.is_none() | same(wanted.unwrap_or_default(), secret.unwrap_or_default()));
        let (id, room) = found.filter(|_| is_allowed).ok_or(Refusal::NoSuchRoom)?;
        fits(room, hello)?;
        Ok(id)
    }
}

/// Returns the refusal of a room without a free seat.
pub(super) fn full(room: &Room, spectates: bool) -> Refusal {
    match spectates {
        true => Refusal::SpectatorsFull { max: room.spectators_max() },
        false => Refusal::RoomFull { max: room.setup().settings.max_players },
    }
}

/// Checks whether the hello's game matches the room's.
pub(super) fn fits(room: &Room, hello: &Hello) -> Result<(), Refusal> {
    let setup = room.setup();
    if setup.app != hello.app {
        return Err(Refusal::App { expected: setup.app.clone() });
    }
    let agreed = setup.channels.agree(&hello.channels);
    agreed.map_err(|differs| Refusal::Channels { channel: differs.channel })?;
    match hello.schema {
        Some(hash) if hash.get() != room.schema_hash() => Err(Refusal::Schema { hash: room.schema_hash() }),
        _ => Ok(()),
    }
}

/// Whether the answer to the hello reveals existing codes or a token's validity: then it counts as a guess.
fn is_guess(hello: &Hello) -> bool {
    depends_on_codes(hello) || hello.auth != Auth::Anonymous
}

fn depends_on_codes(hello: &Hello) -> bool {
    !matches!(hello.intent, Intent::Create(RoomSettings { code: None, .. }))
}

/// Returns what the answer reveals. Opening a room under a chosen code always counts as wrong: success shows
/// that no room had that code.
fn outcome(hello: &Hello, answer: &Answer) -> Outcome {
    let chooses_code = matches!(hello.intent, Intent::Create(RoomSettings { code: Some(_), .. }));
    let is_wrong = match answer {
        Answer::Welcome(_) => chooses_code,
        Answer::Rejected(Rejection::Refused(refusal)) => {
            let wrong_pass = Refusal::Resume { why: ResumeRefusal::Token };
            matches!(refusal, Refusal::NoSuchRoom | Refusal::CodeTaken) || *refusal == wrong_pass
        }
        Answer::Rejected(_) => false,
    };
    if is_wrong { Outcome::Wrong } else { Outcome::Right }
}

/// Returns the answer to a client whose guess budget is used up.
fn wait(after: Duration) -> Rejection {
    let after = Duration::from_secs(after.as_secs() + 1);
    Rejection::RetryAfter(RetryAfter { after, detail: TOO_MANY_GUESSES.into() })
}

/// Compares two texts of at most [`limits::LABEL_BYTES_MAX`] bytes in constant time.
fn same(a: &str, b: &str) -> bool {
    let byte = |text: &str, at| text.as_bytes().get(at).copied().unwrap_or_default();
    let differing =
        (0..limits::LABEL_BYTES_MAX).fold(0, |differing, at| differing | (byte(a, at) ^ byte(b, at)));
    (a.len() == b.len()) & (differing == 0)
}

fn ms(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// Keep-alives per silence of a room with its own.
const SIGNS_OF_LIFE: u32 = 4;
/// The shortest silence that a session can have.
const PRESENCE_MIN: Duration = Duration::from_secs(1);

/// Returns the terms of a session: the default ones, or shorter ones that its room or its host wants.
pub(super) fn limits(config: &Config, presence: Option<Duration>, keep_alive_ms: Option<u32>) -> Limits {
    let mut limits = Limits::of_this_build();
    let of_host = config.is_of_host.then(|| ms(limits::KEEP_ALIVE_INTERVAL_OF_HOST));
    let silence_ms = presence.map(|presence| ms(presence.max(PRESENCE_MIN)));
    let of_presence = silence_ms.map(|silence_ms| silence_ms / SIGNS_OF_LIFE);
    for wanted in keep_alive_ms.into_iter().chain(of_host).chain(of_presence) {
        limits.keep_alive_ms = limits.keep_alive_ms.min(wanted);
    }
    limits.silence_ms = limits.silence_ms.min(silence_ms.unwrap_or(u32::MAX));
    limits
}

pub(super) fn welcome(
    config: &Config,
    room: &Room,
    hello: &Hello,
    (version, session): (u16, SessionId),
    spectates: bool,
    now: Instant,
) -> Welcome {
    let setup = room.setup();
    let limits = limits(config, room.presence(), super::host_timeout::keep_alive_ms(room));
    let gives_seats = config.cluster.as_ref().is_some_and(|cluster| cluster.pass_key.is_some());
    Welcome {
        version,
        session,
        capabilities: capability::RETURNS
            | capability::HANDS_OVER
            | if spectates { capability::SPECTATES } else { 0 }
            | if gives_seats { hello.capabilities & capability::MOVES } else { 0 },
        room: setup.id,
        code: setup.code,
        kind: setup.settings.kind,
        member: room.next_member(),
        authority: room.authority(),
        epoch: room.epoch(),
        tick_rate: setup.settings.tick_rate,
        opened: setup.opened,
        now,
        max_players: setup.settings.max_players,
        limits,
        resume: None,
        grace_ms: ms(room.grace(config.grace)),
        gone_ms: config.is_of_host.then(|| ms(limits::HOST_GONE_TIMEOUT)),
        schema: if hello.schema.is_none() { setup.settings.schema.clone() } else { Bytes::new() },
        members: u16::try_from(room.len() + 1).unwrap_or(u16::MAX),
    }
}
