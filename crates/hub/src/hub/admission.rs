//! Who is let in, into which room, and what the others are told.

use super::news::summary;
use super::turn::{MEASURE_INTERVAL, Timer};
use super::{Config, Happening, Hub, Output, RETRY_AFTER_SHUTDOWN, Seated};
use crate::door::{Admitted, Origin};
use crate::room::{self, Room, Setup};
use bytes::Bytes;
use parlor_proto::session::{Answer, TurnedAway};
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Limits, Redirect, Refusal, RetryAfter, RoomKind, RoomSettings, Welcome,
};
use parlor_proto::{CloseReason, ConnectionId, Instant, MemberId, RoomCode, RoomId, SessionId, code, limits};
use rand_chacha::rand_core::Rng;
use std::cmp::Reverse;
use std::time::Duration;

/// What somebody is told who must wait, whatever it asked for.
const TOO_MANY_GUESSES: &str = "too many wrong room codes or tokens came from your network";

impl Hub {
    /// Answers a hello.
    pub(super) fn admit(&mut self, connection: ConnectionId, hello: Hello, now: Instant) {
        if let Intent::Resume(resume) = hello.intent {
            return self.restart(connection, &hello, &resume, now);
        }
        let Some(state) = self.connections.get(&connection) else { return };
        let (link, origin) = (state.link, state.origin);
        let mut user = None;
        let seated = self.judge(&hello, origin, now).and_then(|(version, admitted)| {
            user = admitted.user;
            self.seat(connection, &hello, version, now)
        });
        let answer = match seated {
            Ok(welcome) => Answer::Welcome(Box::new(welcome)),
            Err(answer) => {
                self.stats.turned_away(&answer);
                let happened = Happening::TurnedAway { connection, answer: answer.clone() };
                self.outputs.push_back(Output::Happened(happened));
                Answer::TurnedAway(answer)
            }
        };
        if user.is_none() && is_wrong_guess(&hello, &answer) {
            self.door.guessed_wrong(origin, now);
        }
        let room = match &answer {
            Answer::Welcome(welcome) => Some((welcome.room, welcome.code, welcome.member)),
            Answer::TurnedAway(_) => None,
        };
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        state.session.answer(answer, now);
        state.key = hello.key;
        let Some((room, code, member)) = room else { return };
        if !state.session.is_open() {
            // It said goodbye, or broke the protocol, together with its hello: nobody need hear of it.
            state.seat = None;
            return self.unseat(room, member);
        }
        // Only now: what the room tells the newcomer must come after the welcome.
        self.tell(room, room::Input::Join { name: hello.name.clone(), user: user.clone(), link }, now);
        self.tell_of_link(room, member, connection, now);
        self.tell_reachable(connection, now);
        let joined = Happening::Joined { code, member, name: hello.name, connection, user };
        self.outputs.push_back(Output::Happened(joined));
    }

    /// Finds or opens the room and reserves the seat.
    fn seat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        version: u16,
        now: Instant,
    ) -> Result<Welcome, TurnedAway> {
        let id = match &hello.intent {
            Intent::Create(settings) => self.open(hello, settings, now),
            Intent::Join { code, secret } => self.find(hello, *code, secret.as_deref()),
            Intent::Resume(_) | Intent::Path(_) => unreachable!("it was answered before"),
        }
        .map_err(TurnedAway::Refused)?;
        let session = self.draw_session();
        let resume = self.begin_family(connection, session);
        let seated = self.rooms.get_mut(&id).expect("the room was just found or opened");
        let member = seated.room.next_member();
        seated.connections.insert(member, connection);
        let welcome = welcome(&self.config, &seated.room, hello, version, session, now);
        let welcome = Welcome { resume, ..welcome };
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        state.seat = Some((id, member));
        Ok(welcome)
    }

    pub(super) fn draw_session(&mut self) -> SessionId {
        SessionId(u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64()))
    }

    /// The address of the hub that serves this instead, if it is another one of the same server.
    fn elsewhere(&mut self, intent: &Intent) -> Option<String> {
        let shards = &mut self.config.shards;
        let address = match intent {
            Intent::Create(RoomSettings { code: None, .. }) => shards.spread(),
            Intent::Create(RoomSettings { code: Some(code), .. }) | Intent::Join { code, .. } => {
                shards.elsewhere(*code)
            }
            Intent::Resume(_) | Intent::Path(_) => None,
        };
        address.map(str::to_owned)
    }

    /// Gives back a seat that was reserved and not taken.
    fn unseat(&mut self, id: RoomId, member: MemberId) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        seated.connections.remove(&member);
        if seated.room.is_empty() {
            self.end(id, CloseReason::Left);
        }
    }

    /// Whether the hello may be answered at all, and here; gives the version that both speak, and who asks. Nothing in here
    /// depends on which rooms there are.
    fn judge(&mut self, hello: &Hello, origin: Origin, now: Instant) -> Result<(u16, Admitted), TurnedAway> {
        let version = self.understand(hello).map_err(TurnedAway::Refused)?;
        if self.is_shutting_down {
            let detail = "the server is going down".into();
            return Err(TurnedAway::RetryAfter(RetryAfter { after: RETRY_AFTER_SHUTDOWN, detail }));
        }
        if let Some(address) = self.elsewhere(&hello.intent) {
            return Err(TurnedAway::Redirect(Redirect { address }));
        }
        if is_guess(hello) {
            self.door.may_guess(origin, now).map_err(|after| {
                let after = Duration::from_secs(after.as_secs() + 1);
                TurnedAway::RetryAfter(RetryAfter { after, detail: TOO_MANY_GUESSES.into() })
            })?;
        }
        let admitted = self.door.admit(hello, now).map_err(TurnedAway::Refused)?;
        Ok((version, admitted))
    }

    /// Whether the hello can be understood; gives the version that both speak.
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

    fn open(&mut self, hello: &Hello, settings: &RoomSettings, now: Instant) -> Result<RoomId, Refusal> {
        let kind = settings.kind;
        if kind == RoomKind::Dedicated && !self.config.dedicated {
            return Err(Refusal::RoomKind { kind });
        }
        if settings.keep && !self.config.keeps {
            return Err(Refusal::NotKept);
        }
        if self.rooms.len() >= self.config.rooms_max {
            return Err(Refusal::ServerFull);
        }
        let id = RoomId(self.next_room);
        let code = match settings.code {
            Some(code) => {
                self.directory.choose(code, id).map_err(|_| Refusal::CodeTaken)?;
                code
            }
            None => {
                let (random, shards) = (&mut self.random, &self.config.shards);
                let extra = self.door.code_letters_extra(now);
                // A guess goes to the hub whose share of all codes it is in, so that what counts is how full that share is.
                let of_rooms = code::len_for((self.directory.len() + 1) * shards.count()) + extra;
                let len = match kind {
                    RoomKind::Match => code::MATCH_ID_LEN,
                    RoomKind::PlayerHosted | RoomKind::Dedicated => of_rooms.min(code::CODE_LEN_MAX),
                };
                self.directory.draw(id, len, || random.next_u32(), |code| shards.is_home(code))
            }
        };
        let setup = Setup {
            id,
            code,
            app: hello.app.clone(),
            environment: hello.environment.clone(),
            settings: settings.clone(),
            channels: hello.channels.clone(),
            opened: now,
            state_bytes_per_second: self.config.state_bytes_per_second,
        };
        let head = self.config.record.then(|| room::log::head(&setup));
        let room = Room::new(setup).map_err(|error| {
            self.directory.remove(code);
            Refusal::BadRequest { detail: error.to_string() }
        })?;
        self.next_room += self.config.shards.count() as u64;
        self.outputs.extend(head.map(|bytes| Output::Recorded { room: id, bytes }));
        self.outputs.push_back(Output::Happened(Happening::RoomOpened(summary(&room))));
        self.timers.push(Reverse((now + MEASURE_INTERVAL, Timer::Measure(id))));
        let seated = Seated::new(room);
        self.begin_lease(id, &seated, now);
        self.rooms.insert(id, seated);
        Ok(id)
    }

    /// The room with this code, if it takes whoever asks. Whether there is one is told only to those who know its secret
    /// and are of its environment, and all that they say is compared whether there is one or not (threat 10).
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
        let setup = room.setup();
        fits(room, hello)?;
        if !room.has_seat() {
            return Err(Refusal::RoomFull { max: setup.settings.max_players });
        }
        Ok(id)
    }
}

/// Whether the game that says hello is the room's.
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

/// Whether the answer to the hello depends on which codes there are, or on a token: then it is a guess at one.
fn is_guess(hello: &Hello) -> bool {
    let is_for_any_room = matches!(hello.intent, Intent::Create(RoomSettings { code: None, .. }));
    !is_for_any_room || hello.auth != Auth::Anonymous
}

/// Whether the answer to somebody anonymous shows that a guess was wrong. A new room under a chosen code always counts: that
/// the code was free says that no room had it.
fn is_wrong_guess(hello: &Hello, answer: &Answer) -> bool {
    let chooses_code = matches!(hello.intent, Intent::Create(RoomSettings { code: Some(_), .. }));
    match answer {
        Answer::Welcome(_) => chooses_code,
        Answer::TurnedAway(TurnedAway::Refused(refusal)) => match refusal {
            Refusal::NoSuchRoom | Refusal::CodeTaken => true,
            Refusal::Unauthorized => hello.auth != Auth::Anonymous,
            _ => false,
        },
        Answer::TurnedAway(_) => false,
    }
}

/// Whether two texts of at most [`limits::LABEL_BYTES_MAX`] bytes are the same, in a time that depends on neither.
fn same(a: &str, b: &str) -> bool {
    let byte = |text: &str, at| text.as_bytes().get(at).copied().unwrap_or_default();
    let differing =
        (0..limits::LABEL_BYTES_MAX).fold(0, |differing, at| differing | (byte(a, at) ^ byte(b, at)));
    (a.len() == b.len()) & (differing == 0)
}

pub(super) fn welcome(
    config: &Config,
    room: &Room,
    hello: &Hello,
    version: u16,
    session: SessionId,
    now: Instant,
) -> Welcome {
    let setup = room.setup();
    let ms = |time: Duration| u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    let mut limits = Limits::of_this_build();
    let of_host = config.is_of_host.then(|| ms(limits::KEEP_ALIVE_INTERVAL_OF_HOST));
    for wanted in super::lease::keep_alive_ms(room).into_iter().chain(of_host) {
        limits.keep_alive_ms = limits.keep_alive_ms.min(wanted);
    }
    Welcome {
        version,
        session,
        capabilities: 0,
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
        grace_ms: ms(config.grace),
        gone_ms: config.is_of_host.then(|| ms(limits::HOST_GONE_TIMEOUT)),
        schema: if hello.schema.is_none() { setup.settings.schema.clone() } else { Bytes::new() },
        members: u16::try_from(room.len() + 1).unwrap_or(u16::MAX),
    }
}
