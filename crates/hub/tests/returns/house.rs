//! A hub with its clients on virtual time, over links that lose nothing.

#[path = "../common/named.rs"]
mod named;

use named::Named;
use parlor_hub::admission_policy::{AdmitAll, GuessLimits, Guesses};
use parlor_hub::{Config, Hub, HubEvent, Origin, Output};
use parlor_proto::session::{Event, Outgoing, Rejection, Session};
use parlor_proto::wire::control::{PlayerData, ToHub, ToMember};
use parlor_proto::wire::cursor::Reader;
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::{
    Auth, Hello, Intent, Refusal, Resume, ResumeRefusal, RoomKind, RoomSettings, Welcome, capability,
};
use parlor_proto::wire::header::Header;
use parlor_proto::{
    Carrier, CloseReason, ConnectionId, Instant, LinkKind, MemberId, Packet, RoomCode, channel,
};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) const GRACE: Duration = Duration::from_secs(30);
pub(crate) const REMEMBER: Duration = Duration::from_secs(600);

/// One end: a process of a player, over one connection.
pub(crate) struct End {
    pub(crate) session: Session,
    pub(crate) welcome: Option<Welcome>,
    pub(crate) rejected: Option<Rejection>,
    pub(crate) over: Option<CloseReason>,
    pub(crate) heard: Vec<ToMember>,
}

pub(crate) struct House {
    pub(crate) hub: Hub,
    pub(crate) now: Instant,
    pub(crate) next: u64,
    pub(crate) ends: BTreeMap<ConnectionId, End>,
    /// The first packet to each connection that has no end.
    came: BTreeMap<ConnectionId, Packet>,
    pub(crate) happened: Vec<HubEvent>,
    /// What a hub of a cluster asks its store, and tells it.
    pub(crate) asked: Vec<Output>,
}

impl House {
    pub(crate) fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { grace: GRACE, remember: REMEMBER, ..Config::new([5; 32]) };
        change(&mut config);
        let policy = Named(AdmitAll::new(Guesses::new(GuessLimits::default(), || 7)));
        let hub = Hub::with_policy(config, Box::new(policy));
        let now = Instant::from_millis(1_000);
        let (ends, came) = (BTreeMap::new(), BTreeMap::new());
        House { hub, now, next: 0, ends, happened: Vec::new(), came, asked: Vec::new() }
    }

    pub(crate) fn new() -> Self {
        House::with(|_| {})
    }

    /// Says hello over a new connection of a place; the result is in its end.
    pub(crate) fn greet_from(&mut self, origin: Origin, intent: Intent, user: Option<&str>) -> ConnectionId {
        let hello = Hello { capabilities: capability::RETURNS, ..Hello::new("tanks", intent) };
        self.say_hello(origin, hello, user)
    }

    pub(crate) fn greet_as(&mut self, hello: Hello, user: Option<&str>) -> ConnectionId {
        let origin = Origin((1 + self.next) << 16);
        self.say_hello(origin, hello, user)
    }

    fn say_hello(&mut self, origin: Origin, hello: Hello, user: Option<&str>) -> ConnectionId {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let auth = user.map_or(Auth::Anonymous, |user| Auth::Token(user.to_owned().into()));
        let hello = Hello { auth, ..hello };
        self.hub.handle_connected(connection, LinkKind::WebSocket, origin, self.now);
        let session = Session::client(hello, LinkKind::WebSocket, self.now);
        let end = End { session, welcome: None, rejected: None, over: None, heard: Vec::new() };
        self.ends.insert(connection, end);
        self.settle();
        connection
    }

    pub(crate) fn greet(&mut self, intent: Intent, user: Option<&str>) -> ConnectionId {
        let origin = Origin((1 + self.next) << 16);
        self.greet_from(origin, intent, user)
    }

    pub(crate) fn open(&mut self, max_players: u16) -> (ConnectionId, RoomCode) {
        let settings = RoomSettings::new(RoomKind::PlayerHosted, max_players);
        let host = self.greet(Intent::Create(settings), None);
        (host, self.welcome(host).code)
    }

    pub(crate) fn join(&mut self, code: RoomCode, user: Option<&str>) -> ConnectionId {
        self.greet(Intent::Join { code, secret: None }, user)
    }

    /// A process that has only the ticket.
    pub(crate) fn resume(&mut self, ticket: Resume) -> ConnectionId {
        self.greet(Intent::Resume(ticket), None)
    }

    /// A process that still has its session: returns what it is refused with.
    pub(crate) fn go_on(&mut self, ticket: Resume) -> Option<Refusal> {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let origin = Origin((1 + connection.0) << 16);
        self.hub.handle_connected(connection, LinkKind::WebSocket, origin, self.now);
        let mut bytes = Vec::new();
        Header::default().write(&mut bytes);
        Frame::Resume(ticket).write(&mut bytes);
        self.hub.handle_packet(
            connection,
            Packet { carrier: Carrier::Stream, bytes: bytes.into() },
            self.now,
        );
        self.settle();
        let packet = self.came.remove(&connection)?;
        let mut reader = Reader::new(packet.bytes);
        Header::read(&mut reader).unwrap();
        match Frame::read(&mut reader).unwrap() {
            Some(Frame::Refused(refusal)) => Some(refusal),
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn welcome(&self, connection: ConnectionId) -> &Welcome {
        let end = &self.ends[&connection];
        end.welcome.as_ref().unwrap_or_else(|| panic!("not let in: {:?}, {:?}", end.rejected, end.over))
    }

    pub(crate) fn member(&self, connection: ConnectionId) -> MemberId {
        self.welcome(connection).member
    }

    pub(crate) fn ticket(&self, connection: ConnectionId) -> Resume {
        let welcome = self.welcome(connection);
        Resume { session: welcome.session, token: welcome.resume.unwrap() }
    }

    pub(crate) fn tell(&mut self, connection: ConnectionId, message: &ToHub) {
        let end = self.ends.get_mut(&connection).unwrap();
        end.session.send(Outgoing::new(channel::CONTROL, message.encode())).unwrap();
        self.settle();
    }

    pub(crate) fn set_data(&mut self, connection: ConnectionId, value: &'static str) {
        let data =
            PlayerData { member: self.member(connection), key: "team".into(), value: Some(value.into()) };
        self.tell(connection, &ToHub::SetData(data));
    }

    /// The value of the player data with which an end was told that a member joined, last.
    pub(crate) fn joined_with(&self, connection: ConnectionId, member: MemberId) -> Option<Option<String>> {
        let infos = self.ends[&connection].heard.iter().rev().filter_map(|message| match message {
            ToMember::Joined(info) if info.id == member => Some(info),
            _ => None,
        });
        let value = |(_, value): &(String, bytes::Bytes)| String::from_utf8(value.to_vec()).unwrap();
        infos.map(|info| info.data.first().map(value)).next()
    }

    /// Says goodbye.
    pub(crate) fn leave(&mut self, connection: ConnectionId) {
        self.ends.get_mut(&connection).unwrap().session.close(CloseReason::Left, self.now);
        self.settle();
        self.pass(Duration::from_secs(2));
    }

    pub(crate) fn hang_up(&mut self, connection: ConnectionId) {
        self.ends.remove(&connection);
        self.hub.handle_disconnected(connection, self.now);
        self.settle();
    }

    /// The connection is lost, and the grace passes.
    pub(crate) fn lose(&mut self, connection: ConnectionId) {
        self.hang_up(connection);
        self.pass(GRACE + Duration::from_secs(1));
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now = (self.now + Duration::from_millis(900)).min(until);
            self.settle();
        }
    }

    /// Lets everything arrive that is under way.
    pub(crate) fn settle(&mut self) {
        loop {
            let mut is_quiet = true;
            for (connection, end) in &mut self.ends {
                if end.session.poll_timeout().is_some_and(|at| at <= self.now) {
                    end.session.handle_timeout(self.now);
                }
                while let Some(packet) = end.session.poll_packet(self.now) {
                    is_quiet = false;
                    self.hub.handle_packet(*connection, packet, self.now);
                }
            }
            self.hub.handle_timeout(self.now);
            self.hub.flush(self.now);
            while let Some(output) = self.hub.poll_output() {
                match output {
                    Output::Packet { connection, packet } => {
                        is_quiet = false;
                        match self.ends.get_mut(&connection) {
                            Some(end) => end.session.handle_packet(packet, self.now).unwrap(),
                            None => drop(self.came.entry(connection).or_insert(packet)),
                        }
                    }
                    Output::Event(event) => self.happened.push(event),
                    asked @ (Output::Locate { .. } | Output::Enter { .. } | Output::Left { .. }) => {
                        self.asked.push(asked);
                    }
                    _ => {}
                }
            }
            self.ends.values_mut().for_each(End::hear);
            if is_quiet {
                return;
            }
        }
    }

    pub(crate) fn members(&self, code: RoomCode) -> Vec<u32> {
        let details = self.hub.room_details(code);
        details.map_or(Vec::new(), |details| details.members.iter().map(|member| member.id.0).collect())
    }

    pub(crate) fn is_refused(&self, connection: ConnectionId, why: ResumeRefusal) -> bool {
        self.ends[&connection].rejected == Some(Rejection::Refused(Refusal::Resume { why }))
    }
}

impl End {
    fn hear(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Welcome(welcome) => {
                    self.session.set_resumable(true);
                    self.welcome = Some(*welcome);
                }
                Event::Rejected(rejected) => self.rejected = Some(rejected),
                Event::Closed(reason) => self.over = Some(reason),
                Event::Message(message) if message.channel == channel::CONTROL => {
                    self.heard.extend(ToMember::decode(message.payload).unwrap());
                }
                _ => {}
            }
        }
    }
}
