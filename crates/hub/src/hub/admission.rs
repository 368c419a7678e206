//! Who is let in, into which room, and what the others are told.

use super::{Happening, Hub, MEASURE_INTERVAL, Output, RETRY_AFTER_SHUTDOWN, Seated, Timer, summary};
use crate::room::{self, Room, Setup};
use parlor_proto::session::{Answer, TurnedAway};
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Limits, Refusal, RetryAfter, RoomSettings, Welcome,
};
use parlor_proto::{
    CloseReason, ConnectionId, Instant, LinkKind, MemberId, RoomCode, RoomId, SessionId, limits,
};
use rand_chacha::rand_core::Rng;
use std::collections::BTreeMap;

impl Hub {
    /// Answers a hello.
    pub(super) fn admit(&mut self, connection: ConnectionId, hello: Hello, now: Instant) {
        let Some(state) = self.connections.get(&connection) else { return };
        let link = state.link;
        let answer = match self.seat(connection, &hello, link, now) {
            Ok(welcome) => Answer::Welcome(Box::new(welcome)),
            Err(answer) => {
                let happened = Happening::TurnedAway { connection, answer: answer.clone() };
                self.outputs.push_back(Output::Happened(happened));
                Answer::TurnedAway(answer)
            }
        };
        let room = match &answer {
            Answer::Welcome(welcome) => Some((welcome.room, welcome.code, welcome.member)),
            Answer::TurnedAway(_) => None,
        };
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        state.session.answer(answer, now);
        let Some((room, code, member)) = room else { return };
        if !state.session.is_open() {
            // It said goodbye, or broke the protocol, together with its hello: nobody need hear of it.
            state.seat = None;
            return self.unseat(room, member);
        }
        // Only now: what the room tells the newcomer must come after the welcome.
        self.tell(room, room::Input::Join { name: hello.name.clone(), link }, now);
        let joined = Happening::Joined { code, member, name: hello.name, connection };
        self.outputs.push_back(Output::Happened(joined));
    }

    /// Finds or opens the room and reserves the seat.
    fn seat(
        &mut self,
        connection: ConnectionId,
        hello: &Hello,
        link: LinkKind,
        now: Instant,
    ) -> Result<Welcome, TurnedAway> {
        let version = self.judge(hello).map_err(TurnedAway::Refused)?;
        if self.is_shutting_down {
            let detail = "the server is going down".into();
            return Err(TurnedAway::RetryAfter(RetryAfter { after: RETRY_AFTER_SHUTDOWN, detail }));
        }
        let id = match &hello.intent {
            Intent::Create(settings) => self.open(hello, settings, now),
            Intent::Join { code, secret } => self.find(hello, *code, secret.as_deref()),
        }
        .map_err(TurnedAway::Refused)?;
        let session =
            SessionId(u128::from(self.random.next_u64()) << 64 | u128::from(self.random.next_u64()));
        let seated = self.rooms.get_mut(&id).expect("the room was just found or opened");
        let member = seated.room.next_member();
        seated.connections.insert(member, connection);
        let welcome = welcome(&seated.room, version, session, now);
        let state = self.connections.get_mut(&connection).expect("a connection that says hello is known");
        debug_assert_eq!(state.link, link);
        state.seat = Some((id, member));
        Ok(welcome)
    }

    /// Gives back a seat that was reserved and not taken.
    fn unseat(&mut self, id: RoomId, member: MemberId) {
        let Some(seated) = self.rooms.get_mut(&id) else { return };
        seated.connections.remove(&member);
        if seated.room.is_empty() {
            self.end(id, CloseReason::Left);
        }
    }

    /// Whether the hello may be answered at all; gives the version that both speak.
    fn judge(&self, hello: &Hello) -> Result<u16, Refusal> {
        let version = hello.version_max.min(limits::VERSION_MAX);
        if version < hello.version_min.max(limits::VERSION_MIN) {
            return Err(Refusal::Version { min: limits::VERSION_MIN, max: limits::VERSION_MAX });
        }
        hello.check().map_err(|detail| Refusal::BadRequest { detail })?;
        if hello.auth != Auth::Anonymous {
            // This hub issues no tokens, so none can be its own.
            return Err(Refusal::Unauthorized);
        }
        match &self.config.apps {
            Some(apps) if !apps.contains(&hello.app) => Err(Refusal::App { expected: apps.join(", ") }),
            _ => Ok(version),
        }
    }

    fn open(&mut self, hello: &Hello, settings: &RoomSettings, now: Instant) -> Result<RoomId, Refusal> {
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
                let random = &mut self.random;
                self.directory.draw(id, || random.next_u32())
            }
        };
        self.next_room += 1;
        let setup = Setup {
            id,
            code,
            app: hello.app.clone(),
            environment: hello.environment.clone(),
            settings: settings.clone(),
            channels: hello.channels.clone(),
            opened: now,
        };
        if self.config.record {
            self.outputs.push_back(Output::Recorded { room: id, bytes: room::log::head(&setup) });
        }
        let room = Room::new(setup);
        self.outputs.push_back(Output::Happened(Happening::RoomOpened(summary(&room))));
        let measure_at = now + MEASURE_INTERVAL;
        self.timers.insert((measure_at, Timer::Room(id)));
        self.rooms.insert(id, Seated { room, connections: BTreeMap::new(), measure_at });
        Ok(id)
    }

    fn find(&self, hello: &Hello, code: RoomCode, secret: Option<&str>) -> Result<RoomId, Refusal> {
        let found =
            self.directory.find(code).and_then(|id| self.rooms.get(&id).map(|seated| (id, &seated.room)));
        let (id, room) = found.ok_or(Refusal::NoSuchRoom)?;
        let setup = room.setup();
        let knows_secret = match &setup.settings.secret {
            Some(wanted) => same(wanted.as_bytes(), secret.unwrap_or_default().as_bytes()),
            None => true,
        };
        if setup.environment != hello.environment || !knows_secret {
            return Err(Refusal::NoSuchRoom);
        }
        if setup.app != hello.app {
            return Err(Refusal::App { expected: setup.app.clone() });
        }
        setup
            .channels
            .agree(&hello.channels)
            .map_err(|differs| Refusal::Channels { channel: differs.channel })?;
        if !room.has_seat() {
            return Err(Refusal::RoomFull { max: setup.settings.max_players });
        }
        Ok(id)
    }
}

/// Whether two texts are the same, in a time that does not depend on where they differ.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differing = a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b));
    a.len() == b.len() && differing == 0
}

fn welcome(room: &Room, version: u16, session: SessionId, now: Instant) -> Welcome {
    let setup = room.setup();
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
        limits: Limits::of_this_build(),
    }
}
