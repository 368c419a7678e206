//! Hubs of a cluster with one store in memory, and their clients on virtual time, over links that lose nothing.

#[path = "../common/named.rs"]
mod named;

use bytes::Bytes;
use named::Named;
use parlor_hub::admission_policy::{AdmitAll, GuessLimits, Guesses};
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::cluster::placement::OpenNode;
use parlor_hub::cluster::tenure::Standing;
use parlor_hub::{
    ClaimAnswer, ClaimedRoom, ClusterConfig, ClusterView, Config, Entered, EnteredRoom, Hub, Located, Origin,
    Output, RoomQuery, Unmovable,
};
use parlor_proto::session::{Event, Outgoing, Rejection, Session};
use parlor_proto::wire::control::ToMember;
use parlor_proto::wire::envelope::{Downward, Recipient, Upward};
use parlor_proto::wire::handshake::{
    self, Auth, Claim, Hello, Intent, Resume, ResumeToken, RoomKind, RoomSettings, Welcome, capability,
};
use parlor_proto::{CloseReason, ConnectionId, Instant, LinkKind, MemberId, RoomCode, channel};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) const GRACE: Duration = Duration::from_secs(30);

/// A client: its node and its connection there.
type At = (usize, ConnectionId);

/// What a client knows of its seat.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) at: At,
    pub(crate) member: MemberId,
    pub(crate) token: ResumeToken,
    pub(crate) session: parlor_proto::SessionId,
    pub(crate) told: handshake::Seat,
    name: String,
}

struct End {
    session: Session,
    welcome: Option<Welcome>,
    rejected: Option<Rejection>,
    over: Option<CloseReason>,
    moved: Option<String>,
    /// The client whose seat it claims.
    claims: Option<At>,
    is_deaf: bool,
    heard: Vec<ToMember>,
    orders: Vec<u64>,
    seat: Option<handshake::Seat>,
    token: Option<ResumeToken>,
    name: String,
    is_new: bool,
}

struct Row {
    room: EnteredRoom,
    node: usize,
    term: u64,
    roster: Bytes,
    /// Of a room that was given to its node.
    snapshot: Bytes,
    host: Option<MemberId>,
    epoch: u32,
}

pub(crate) struct Cluster {
    hubs: Vec<Option<Hub>>,
    rows: BTreeMap<RoomCode, Row>,
    ends: BTreeMap<At, End>,
    now: Instant,
    next: u64,
    /// How often the store was asked whose a claimed room is.
    pub(crate) asked: usize,
    pub(crate) banned: BTreeSet<String>,
    /// The store gives no answers to claims.
    pub(crate) holds_answers: bool,
    /// What the store answers to the next claim, whatever it has.
    pub(crate) answer_next: Option<ClaimAnswer>,
}

impl Cluster {
    pub(crate) fn new(nodes: usize) -> Self {
        Cluster::with(nodes, |_| {})
    }

    pub(crate) fn with(nodes: usize, change: impl Fn(&mut Config)) -> Self {
        let hub = |node: usize| {
            let seed = [u8::try_from(node).expect("it is small") + 1; 32];
            let pass_key = Some(PassKey::of(&[1; 32]));
            let cluster = Some(ClusterConfig { pass_key, ..ClusterConfig::default() });
            let mut config = Config { grace: GRACE, cluster, ..Config::new(seed) };
            change(&mut config);
            let guesses = Guesses::new(GuessLimits::default(), || 7);
            Some(Hub::with_policy(config, Box::new(Named(AdmitAll::new(guesses)))))
        };
        let mut cluster = Cluster {
            hubs: (0..nodes).map(hub).collect(),
            rows: BTreeMap::new(),
            ends: BTreeMap::new(),
            now: Instant::from_millis(100_000),
            next: 0,
            asked: 0,
            banned: BTreeSet::new(),
            holds_answers: false,
            answer_next: None,
        };
        cluster.show();
        cluster
    }

    pub(crate) fn hub(&mut self, node: usize) -> &mut Hub {
        self.hubs[node].as_mut().expect("it lives")
    }

    /// Tells each node of the others.
    fn show(&mut self) {
        let lives: Vec<usize> = (0..self.hubs.len()).filter(|node| self.hubs[*node].is_some()).collect();
        for node in &lives {
            let others = lives.iter().filter(|other| *other != node);
            let others = others.map(|other| OpenNode { address: address(*other), load_permille: 999 });
            let view = ClusterView {
                standing: Standing::Held,
                load_permille: 0,
                others: others.collect(),
                rooms_elsewhere: 0,
            };
            let now = self.now;
            self.hub(*node).handle_view(view, now);
        }
        self.settle();
    }

    pub(crate) fn kill(&mut self, node: usize) {
        self.hubs[node] = None;
        self.show();
    }

    pub(crate) fn settings(kind: RoomKind) -> RoomSettings {
        RoomSettings::new(kind, 4)
    }

    pub(crate) fn room_of(&mut self, kind: RoomKind, names: &[&str]) -> Vec<Seat> {
        self.room_with(kind, names, |_| {})
    }

    /// Opens a room at the first node. The first member is its opener; the others have users.
    pub(crate) fn room_with(
        &mut self,
        kind: RoomKind,
        names: &[&str],
        change: impl FnOnce(&mut RoomSettings),
    ) -> Vec<Seat> {
        let mut settings = Cluster::settings(kind);
        change(&mut settings);
        let host = self.greet(0, hello(names[0], Intent::Create(settings)));
        let code = self.welcome(host).code;
        let others = names[1..].iter().map(|name| {
            let token = if kind == RoomKind::Match {
                Auth::Token((*name).to_owned().into())
            } else {
                Auth::Anonymous
            };
            Hello { auth: token, ..hello(name, Intent::Join { code, secret: None }) }
        });
        let others: Vec<At> = others.map(|hello| self.greet(0, hello)).collect();
        std::iter::once(host).chain(others).map(|at| self.seat(at)).collect()
    }

    pub(crate) fn join(&mut self, node: usize, code: RoomCode, name: &str) -> At {
        self.greet(node, hello(name, Intent::Join { code, secret: None }))
    }

    pub(crate) fn greet(&mut self, node: usize, hello: Hello) -> At {
        self.greet_with(node, hello, |_| {})
    }

    fn greet_with(&mut self, node: usize, hello: Hello, change: impl FnOnce(&mut End)) -> At {
        let at = self.connect(node);
        let name = hello.name.clone();
        let mut end = end(Session::client(hello, LinkKind::WebSocket, self.now), name);
        change(&mut end);
        self.ends.insert(at, end);
        self.settle();
        at
    }

    fn connect(&mut self, node: usize) -> At {
        let connection = ConnectionId(self.next);
        self.next += 1;
        let now = self.now;
        self.hub(node).handle_connected(connection, LinkKind::WebSocket, Origin(1 << 16), now);
        (node, connection)
    }

    pub(crate) fn claim(&mut self, node: usize, seat: &Seat) -> At {
        self.claim_with(node, seat, |_| {})
    }

    pub(crate) fn claim_with(&mut self, node: usize, seat: &Seat, change: impl FnOnce(&mut Claim)) -> At {
        let (pass, term) = (seat.told.pass.clone(), seat.told.term);
        let mut claim = Claim { pass, token: seat.token, term, room_time_us: Some(1_000_000), order: 0 };
        change(&mut claim);
        self.greet_with(node, hello(&seat.name, Intent::Claim(Box::new(claim))), |end| {
            end.claims = Some(seat.at);
        })
    }

    /// The same, but its client hears no answer.
    pub(crate) fn claim_unheard(&mut self, node: usize, seat: &Seat) {
        let (pass, term) = (seat.told.pass.clone(), seat.told.term);
        let claim = Claim { pass, token: seat.token, term, room_time_us: Some(1_000_000), order: 0 };
        let hello = hello(&seat.name, Intent::Claim(Box::new(claim)));
        let claimed = self.greet_with(node, hello, |end| end.is_deaf = true);
        self.hang_up(claimed);
    }

    pub(crate) fn announce(&mut self, node: usize, code: RoomCode, to: &str) -> Result<(), Unmovable> {
        let now = self.now;
        let announced = self.hub(node).announce_move(code, to, now);
        self.settle();
        announced
    }

    pub(crate) fn call_off(&mut self, node: usize, code: RoomCode) {
        let now = self.now;
        self.hub(node).call_move_off(code, now);
        self.settle();
    }

    pub(crate) fn seal(&mut self, node: usize, code: RoomCode) -> Result<Bytes, Unmovable> {
        let now = self.now;
        let sealed = self.hub(node).seal(code, now);
        self.settle();
        sealed
    }

    pub(crate) fn unseal(&mut self, node: usize, code: RoomCode, term: u64) {
        let now = self.now;
        self.hub(node).unseal(code, term, now);
        self.settle();
    }

    pub(crate) fn move_room(&mut self, node: usize, code: RoomCode, to: &str) {
        let now = self.now;
        self.hub(node).move_room(code, to.to_owned(), now).expect("it is there");
        self.settle();
    }

    /// Gives a room to another node, as the store does.
    pub(crate) fn give(&mut self, from: usize, to: usize, code: RoomCode) {
        self.announce(from, code, &address(to)).expect("it can move");
        let snapshot = self.seal(from, code).expect("it was announced");
        let row = self.rows.get_mut(&code).expect("it is open");
        (row.node, row.term, row.snapshot) = (to, row.term + 1, snapshot);
        self.move_room(from, code, &address(to));
    }

    /// What the store has of a room.
    pub(crate) fn stored(&self, code: RoomCode) -> (Bytes, Bytes) {
        let row = &self.rows[&code];
        (row.room.setup.clone(), row.roster.clone())
    }

    pub(crate) fn moved(&self, at: At) -> Option<&str> {
        self.ends[&at].moved.as_deref()
    }

    /// Resumes a session over another connection.
    pub(crate) fn resume(&mut self, seat: &Seat) -> At {
        let at = self.connect(seat.at.0);
        let mut end = self.ends.remove(&seat.at).expect("it is there");
        let resume = Resume { session: seat.session, token: seat.token };
        end.session.resume(resume, LinkKind::WebSocket, self.now);
        self.ends.insert(at, end);
        self.settle();
        at
    }

    pub(crate) fn hang_up(&mut self, at: At) {
        self.ends.remove(&at);
        let now = self.now;
        self.hub(at.0).handle_disconnected(at.1, now);
        self.settle();
    }

    pub(crate) fn welcome(&self, at: At) -> &Welcome {
        let end = &self.ends[&at];
        end.welcome.as_ref().unwrap_or_else(|| panic!("not let in: {:?}, {:?}", end.rejected, end.over))
    }

    pub(crate) fn rejected(&self, at: At) -> Option<&Rejection> {
        self.ends[&at].rejected.as_ref()
    }

    pub(crate) fn over(&self, at: At) -> Option<&CloseReason> {
        self.ends[&at].over.as_ref()
    }

    pub(crate) fn heard(&self, at: At) -> &[ToMember] {
        &self.ends[&at].heard
    }

    pub(crate) fn orders(&self, at: At) -> Vec<u64> {
        self.ends[&at].orders.clone()
    }

    pub(crate) fn told_seat(&self, at: At) -> Option<&handshake::Seat> {
        self.ends[&at].seat.as_ref()
    }

    pub(crate) fn seat(&self, at: At) -> Seat {
        let end = &self.ends[&at];
        let welcome = self.welcome(at);
        Seat {
            at,
            member: welcome.member,
            session: welcome.session,
            token: end.token.expect("seats are kept"),
            told: end.seat.clone().expect("it was told its seat"),
            name: end.name.clone(),
        }
    }

    pub(crate) fn names(&mut self, node: usize, code: RoomCode) -> Vec<String> {
        let details = self.hub(node).room_details(code);
        details.into_iter().flat_map(|room| room.members).map(|member| member.name).collect()
    }

    pub(crate) fn say_ordered(&mut self, at: At) {
        let upward = Upward { to: Recipient::Others, stamp: true, payload: Bytes::from_static(b"hi") };
        let message = Outgoing::new(channel::MESSAGE_ORDERED, upward.encode());
        self.ends.get_mut(&at).expect("it is there").session.send(message).expect("it is open");
        self.settle();
    }

    /// Lets a member leave.
    pub(crate) fn leave(&mut self, at: At) {
        self.ends.get_mut(&at).expect("it is there").session.close(CloseReason::Left, self.now);
        self.settle();
    }

    /// Writes who is in each room, as a node does once a second.
    pub(crate) fn write_rosters(&mut self) {
        let query = RoomQuery { limit: usize::MAX, rosters: true, ..RoomQuery::default() };
        for hub in self.hubs.iter().flatten() {
            let page = hub.rooms(&query);
            for (room, roster) in page.rooms.iter().zip(page.rosters) {
                let (Some(row), Some(roster)) = (self.rows.get_mut(&room.code), roster) else { continue };
                (row.roster, row.host, row.epoch) = (roster.bytes, roster.host, roster.epoch.0);
            }
        }
    }

    /// Lets time pass. The clients of `heard` stay.
    pub(crate) fn pass(&mut self, time: Duration, heard: &[At]) {
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_millis(500);
            let now = self.now;
            for at in heard {
                self.ends.get_mut(at).expect("it is there").session.handle_timeout(now);
            }
            for hub in self.hubs.iter_mut().flatten() {
                hub.handle_timeout(now);
            }
            self.settle();
        }
    }

    /// Carries packets and answers until nothing moves.
    pub(crate) fn settle(&mut self) {
        while self.carry_up() | self.carry_down() {}
    }

    fn carry_up(&mut self) -> bool {
        let mut moved = false;
        for (at, end) in &mut self.ends {
            while let Some(packet) = end.session.poll_packet(self.now) {
                moved = true;
                if let Some(hub) = &mut self.hubs[at.0] {
                    hub.handle_packet(at.1, packet, self.now);
                }
            }
        }
        moved
    }

    fn carry_down(&mut self) -> bool {
        let mut moved = false;
        for node in 0..self.hubs.len() {
            let Some(hub) = &mut self.hubs[node] else { continue };
            hub.flush(self.now);
            let outputs: Vec<Output> = std::iter::from_fn(|| hub.poll_output()).collect();
            for output in outputs {
                moved = true;
                self.carry_out(node, output);
            }
        }
        moved
    }

    /// Goes on with the session whose seat was claimed, if the hub has it.
    fn go_on(&mut self, at: At) {
        let end = self.ends.get_mut(&at).expect("it is there");
        let continues = end.welcome.as_ref().is_some_and(|it| it.capabilities & capability::CONTINUES != 0);
        let Some(older) = end.claims.take_if(|_| continues) else { return };
        let carried = self.ends.get_mut(&older).expect("it is there").session.take_carried();
        self.ends.get_mut(&at).expect("it is there").session.go_on_with(carried);
    }

    fn carry_out(&mut self, node: usize, output: Output) {
        let now = self.now;
        match output {
            Output::Packet { connection, packet } => {
                let at = (node, connection);
                let Some(end) = self.ends.get_mut(&at).filter(|end| !end.is_deaf) else { return };
                end.session.handle_packet(packet, now).expect("a hub is honest");
                end.take_events();
                self.go_on(at);
            }
            Output::Locate { connection, code, .. } => {
                let located = match self.rows.get(&code) {
                    Some(row) if row.node == node => Located::Here,
                    Some(row) => Located::At(address(row.node)),
                    None => Located::Nowhere,
                };
                self.hub(node).handle_located(connection, located, now);
            }
            Output::Enter { connection, room } => {
                let host = (room.kind != RoomKind::Match).then_some(MemberId(0));
                let row = Row {
                    room: room.clone(),
                    node,
                    term: 1,
                    roster: Bytes::new(),
                    snapshot: Bytes::new(),
                    host,
                    epoch: 0,
                };
                self.rows.insert(room.code, row);
                self.hub(node).handle_entered(connection, Entered::Done, now);
            }
            Output::Claim { connection, room } => {
                self.asked += 1;
                if !self.holds_answers {
                    let answer = self.answer_next.take();
                    let answer = answer.unwrap_or_else(|| self.answer(node, &room));
                    self.hub(node).handle_claimed(connection, answer, now);
                }
            }
            Output::Left { code, uid } => {
                if self.rows.get(&code).is_some_and(|row| row.room.uid == uid && row.node == node) {
                    self.rows.remove(&code);
                }
            }
            Output::Close { .. } | Output::Recorded { .. } | Output::Kept { .. } | Output::Event(_) => {}
        }
    }

    /// Whose a claimed room is, as the store says.
    fn answer(&mut self, node: usize, claimed: &ClaimedRoom) -> ClaimAnswer {
        if claimed.user.as_ref().is_some_and(|user| self.banned.contains(user)) {
            return ClaimAnswer::Barred;
        }
        let Some(row) = self.rows.get_mut(&claimed.code).filter(|row| row.room.uid == claimed.uid) else {
            return ClaimAnswer::Gone;
        };
        if row.node == node && claimed.is_here {
            return ClaimAnswer::Here;
        }
        if row.node != node && self.hubs[row.node].is_some() {
            // The member comes from there.
            let is_news = row.term > claimed.term;
            return if is_news { ClaimAnswer::At(address(row.node)) } else { ClaimAnswer::Later };
        }
        let is_host = row.host.is_none()
            || !row.snapshot.is_empty()
            || row.host == Some(claimed.member)
            || claimed.hosts.is_some_and(|epoch| epoch.0 > row.epoch);
        if !is_host {
            return ClaimAnswer::Later;
        }
        (row.node, row.term) = (node, row.term + 1);
        ClaimAnswer::Reopened {
            term: row.term,
            setup: row.room.setup.clone(),
            roster: row.roster.clone(),
            snapshot: std::mem::take(&mut row.snapshot),
        }
    }
}

impl End {
    fn take_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Welcome(welcome) => {
                    self.session.set_resumable(welcome.resume.is_some());
                    self.token = welcome.resume;
                    self.welcome = Some(*welcome);
                }
                Event::Resumed(token) => self.token = Some(token),
                Event::Seat(seat) => {
                    assert!(self.heard.is_empty() || !self.is_new, "a seat comes before the room's messages");
                    self.is_new = false;
                    self.seat = Some(*seat);
                }
                Event::Rejected(rejection) => self.rejected = Some(rejection),
                Event::Closed(reason) => self.over = Some(reason),
                Event::Message(message) if message.channel == channel::CONTROL => {
                    self.heard.extend(ToMember::decode(message.payload).expect("a hub is honest"));
                }
                Event::Message(message) => {
                    let downward = Downward::decode(message.payload).expect("a hub is honest");
                    self.orders.extend(downward.order);
                }
                Event::Moved(address) => self.moved = Some(address),
                Event::Hello(_) | Event::Resume(_) | Event::Silent | Event::Delivered(_) | Event::Lost(_) => {
                }
            }
        }
    }
}

fn end(session: Session, name: String) -> End {
    End {
        session,
        welcome: None,
        rejected: None,
        over: None,
        moved: None,
        claims: None,
        is_deaf: false,
        heard: Vec::new(),
        orders: Vec::new(),
        seat: None,
        token: None,
        name,
        is_new: true,
    }
}

fn hello(name: &str, intent: Intent) -> Hello {
    let capabilities = capability::RETURNS | capability::MOVES;
    Hello { name: name.into(), capabilities, ..Hello::new("tanks", intent) }
}

fn address(node: usize) -> String {
    format!("node-{node}:7700")
}
