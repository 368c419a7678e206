//! The world: a hub, clients, a network, and one queue of what is to happen.

use crate::disk::{Disk, LogFile};
use crate::link::{Link, Way};
use crate::peer::{End, Hear, Line, Peer, PeerId, Play, Tamper, Traffic, Wire};
use crate::transcript::Transcript;
use parlor::core::{ClosedReason, Options, PathId, RoomCore};
use parlor::{Event, RoomCode};
use parlor_hub::room::KeptEntry;
use parlor_hub::{Config, Happening, Hub};
use parlor_impair::{Direction, Rng};
use parlor_proto::session::{self, Session};
use parlor_proto::wire::handshake::{Hello, Intent};
use parlor_proto::{ConnectionId, Instant, LinkKind, Packet, RoomId};
use paths::Between;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

mod paths;
mod run;

/// The game that [`Sim::join`] joins.
pub const APP: &str = "tanks";

/// A hello of a client without a game, for [`Sim::intrude`].
#[must_use]
pub fn hello(intent: Intent) -> Hello {
    Hello { name: "mallory".into(), ..Hello::new(APP, intent) }
}

/// How often a game draws a frame.
const FRAME: Duration = Duration::from_micros(16_667);
/// Turns at one instant after which the world is held to run in circles.
const TURNS_MAX: u32 = 1_000;

/// What is to happen at its time.
#[derive(Debug)]
enum Due {
    /// The hub accepts a connection.
    Accepted(Line),
    /// The client has it, too.
    Connected(Line),
    ToHub(Line, Packet),
    ToPeer(Line, Packet),
    /// The other end has closed.
    HubHung(Line),
    PeerHung(Line, String),
    /// The network does not let the client reach the hub.
    Unreached(Line),
    Frame(PeerId),
    PathConnected(PeerId, PathId),
    PathFailed(PeerId, PathId),
    PathHung(PeerId, PathId),
    PathPacket(PeerId, PathId, Packet),
}

/// A simulation. See the [crate](crate).
pub struct Sim {
    now: Instant,
    /// What the network and the clients' clocks are drawn from.
    rng: Rng,
    config: Config,
    hub: Hub,
    disk: Disk,
    peers: Vec<Peer>,
    /// Clients that something befell since they did last what is due.
    touched: BTreeSet<PeerId>,
    timers: BTreeSet<(Instant, PeerId)>,
    queue: BTreeMap<(Instant, u64), Due>,
    queued: u64,
    transcript: Transcript,
    happenings: Vec<Happening>,
    kept: Vec<(RoomCode, u64, KeptEntry)>,
    between: Between,
}

/// Making it, and letting time pass.
impl Sim {
    /// A world without clients, with a hub that records its rooms and keeps no seats: whose connection is lost is gone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Sim::keeping_seats(seed, Duration::ZERO)
    }

    /// The same, with a hub that keeps seats for so long.
    #[must_use]
    pub fn keeping_seats(seed: u64, grace: Duration) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        Sim::with_hub(seed, Config { record: true, grace, ..Config::new(drawn) })
    }

    /// The same with another hub.
    #[must_use]
    pub fn with_hub(seed: u64, config: Config) -> Self {
        Sim {
            now: Instant::from_millis(1_000_000),
            rng: Rng::new(seed),
            hub: Hub::new(config.clone()),
            config,
            disk: Disk::new(seed),
            peers: Vec::new(),
            touched: BTreeSet::new(),
            timers: BTreeSet::new(),
            queue: BTreeMap::new(),
            queued: 0,
            transcript: Transcript::new(),
            happenings: Vec::new(),
            kept: Vec::new(),
            between: Between::default(),
        }
    }

    /// Lets so many milliseconds pass.
    pub fn run_for(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }

    /// Lets this much time pass, in whole microseconds.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Lets time pass until something holds, looking every millisecond.
    ///
    /// # Panics
    /// If it does not hold within `ms`.
    pub fn run_until(&mut self, ms: u64, what: &str, holds: impl Fn(&Sim) -> bool) {
        for _ in 0..ms {
            if holds(self) {
                return;
            }
            self.run_for(1);
        }
        assert!(holds(self), "not within {ms} ms: {what}\n{}", self.transcript);
    }

    /// The time of the hub's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }
}

/// Clients, and what befalls them.
impl Sim {
    /// A game with a room of its own; it runs until the room is open, or refused.
    pub fn host(&mut self, options: Options, link: Link) -> PeerId {
        self.enter_and_wait(options, link)
    }

    /// A game that joins a room of [`APP`]; it runs until it is in, or refused.
    pub fn join(&mut self, code: RoomCode, link: Link) -> PeerId {
        self.enter_and_wait(Options::join(APP, code), link)
    }

    fn enter_and_wait(&mut self, options: Options, link: Link) -> PeerId {
        let peer = self.enter(options, link);
        self.run_until(30_000, "the room answers", |sim| {
            let room = sim.room(peer);
            room.closed().is_some() || room.is_connected() && room.player_count() > 0
        });
        peer
    }

    /// A game that begins to host or join; nothing has happened yet.
    pub fn enter(&mut self, mut options: Options, link: Link) -> PeerId {
        if options.name.is_empty() {
            options.name = format!("player {}", self.peers.len());
        }
        let room = RoomCore::new(options, parlor::Mode::Auto);
        let peer = self.connect(End::Game(Box::new(room)), link);
        let phase = self.rng.below(u64::try_from(FRAME.as_micros()).expect("a frame is short"));
        self.push(self.now + Duration::from_micros(phase), Due::Frame(peer));
        peer
    }

    /// A session without a game, which a test can make say anything.
    pub fn intrude(&mut self, hello: Hello, link: Link) -> PeerId {
        self.connect(End::Bare { hello: Box::new(hello), session: None, events: Vec::new() }, link)
    }

    fn connect(&mut self, end: End, link: Link) -> PeerId {
        let peer = PeerId(self.peers.len());
        let ahead = Duration::from_micros(self.rng.below(3_600_000_000));
        let ways = [Direction::There, Direction::Back];
        let (seed, flow) = (self.rng.draw(), peer.0 as u64);
        let ways = ways.map(|direction| Way::new(&link, seed, flow, direction, self.now));
        self.peers.push(Peer::new(end, link, ways, ahead));
        self.dial(peer);
        peer
    }

    /// What a game does in each step from here on.
    pub fn play(&mut self, peer: PeerId, play: impl FnMut(&mut RoomCore, Instant) + 'static) {
        let play: Play = Box::new(play);
        self.peers[peer.0].play = Some(play);
    }

    /// What a game does with each event from here on.
    pub fn hear(&mut self, peer: PeerId, hear: impl FnMut(&mut RoomCore, Instant, &Event) + 'static) {
        let hear: Hear = Box::new(hear);
        self.peers[peer.0].hear = Some(hear);
    }

    /// Lets a game do something now, between two frames.
    ///
    /// # Panics
    /// If it is not a game.
    pub fn act<R>(&mut self, peer: PeerId, act: impl FnOnce(&mut RoomCore, Instant) -> R) -> R {
        let result = self.act_quietly(peer, act);
        self.turn();
        result
    }

    /// The same, but nothing leaves before the next turn: what several clients do so, they do at the same moment.
    ///
    /// # Panics
    /// If it is not a game.
    pub fn act_quietly<R>(&mut self, peer: PeerId, act: impl FnOnce(&mut RoomCore, Instant) -> R) -> R {
        self.touched.insert(peer);
        let peer = &mut self.peers[peer.0];
        let clock = peer.clock(self.now);
        match &mut peer.end {
            End::Game(room) => act(room, clock),
            End::Bare { .. } => panic!("it is no game"),
        }
    }

    /// Lets a session say something now.
    ///
    /// # Panics
    /// If it is a game, or not connected yet.
    pub fn say<R>(&mut self, peer: PeerId, say: impl FnOnce(&mut Session, Instant) -> R) -> R {
        let it = &mut self.peers[peer.0];
        let clock = it.clock(self.now);
        let End::Bare { session: Some(session), .. } = &mut it.end else {
            panic!("it has no session of its own");
        };
        let result = say(session, clock);
        self.touched.insert(peer);
        self.turn();
        result
    }

    /// The process dies: it says nothing more and hears nothing, and nobody is told.
    pub fn crash(&mut self, peer: PeerId) {
        self.note(peer, "crashes");
        self.touched.insert(peer);
        let peer = &mut self.peers[peer.0];
        (peer.is_crashed, peer.wire) = (true, Wire::Silent);
    }

    /// Nothing gets through between a client and the hub, or everything again. Both go on. Datagrams are lost; streams
    /// keep what they were given until they can carry it. A connection that is no more stays so.
    pub fn silence(&mut self, peer: PeerId, is_silent: bool) {
        self.note(peer, if is_silent { "is cut off" } else { "is reached again" });
        let wire = &mut self.peers[peer.0].wire;
        match (*wire, is_silent) {
            (Wire::Up, true) => *wire = Wire::Silent,
            (Wire::Silent, false) => {
                *wire = Wire::Up;
                self.carry_held(peer);
                self.turn();
            }
            _ => {}
        }
    }

    /// The connection breaks, and both ends are told.
    pub fn cut(&mut self, peer: PeerId) {
        self.note(peer, "loses its connection");
        self.reset(peer);
        let (at, line) = (self.peers[peer.0].up.end(self.now), self.line(peer));
        self.push(at, Due::HubHung(line));
        self.turn();
    }

    /// Whether a client reaches the hub when it dials. What it has goes on: see [`silence`](Self::silence) and
    /// [`cut`](Self::cut).
    pub fn unplug(&mut self, peer: PeerId, is_unplugged: bool) {
        self.note(peer, if is_unplugged { "reaches nobody" } else { "reaches the hub" });
        self.peers[peer.0].is_unplugged = is_unplugged;
    }

    /// The process of a game dies, and another begins in its place: it has nothing but these options.
    ///
    /// # Panics
    /// If it is not a game.
    pub fn restart(&mut self, peer: PeerId, options: Options) {
        self.note(peer, "dies, and another process begins");
        let wire = self.peers[peer.0].wire;
        let (at, line) = (self.peers[peer.0].up.end(self.now), self.line(peer));
        if wire == Wire::Up {
            self.push(at, Due::HubHung(line));
        }
        let room = RoomCore::new(options, parlor::Mode::Auto);
        let it = &mut self.peers[peer.0];
        assert!(matches!(it.end, End::Game(_)), "it is no game");
        it.end = End::Game(Box::new(room));
        if std::mem::take(&mut it.is_crashed) {
            self.push(self.now, Due::Frame(peer));
        }
        self.dial(peer);
        self.turn();
    }

    /// The network between a client and the hub becomes another one.
    ///
    /// # Panics
    /// If it is of another kind.
    pub fn relink(&mut self, peer: PeerId, link: Link) {
        self.note(peer, "has another link");
        let seed = self.rng.draw();
        let end = &mut self.peers[peer.0];
        assert_eq!(end.link.kind, link.kind, "a connection stays what it is");
        end.link = link;
        [&mut end.up, &mut end.down].into_iter().for_each(|way| way.change(&end.link, seed, self.now));
    }

    /// The game stops drawing frames, or goes on; its driver does not stop.
    pub fn stall(&mut self, peer: PeerId, is_stalled: bool) {
        self.note(peer, if is_stalled { "stalls" } else { "draws again" });
        self.peers[peer.0].is_stalled = is_stalled;
    }

    /// The link takes nothing more from the hub, or takes it again.
    pub fn block(&mut self, peer: PeerId, is_blocked: bool) {
        self.note(peer, if is_blocked { "takes nothing" } else { "takes packets" });
        self.hub.handle_writable(connection(self.line(peer)), !is_blocked, self.now);
        self.turn();
    }

    /// A client's own clock leaps: it is so far ahead of the hub's from here on. No clock that a driver reads does that; it is
    /// what a client can do to others that is of interest.
    pub fn leap(&mut self, peer: PeerId, ahead: Duration) {
        self.note(peer, "has another time");
        self.peers[peer.0].ahead = ahead;
        self.touched.insert(peer);
    }

    /// What becomes of each packet that a client sends.
    pub fn tamper(&mut self, peer: PeerId, tamper: impl FnMut(&mut Rng, Packet) -> Vec<Packet> + 'static) {
        let tamper: Tamper = Box::new(tamper);
        self.peers[peer.0].tamper = Some(tamper);
    }

    /// Sends a packet as if the client had.
    pub fn inject(&mut self, peer: PeerId, packet: Packet) {
        self.carry_up(peer, packet);
    }

    /// The hub's process dies with all its rooms, and another begins in its place. WebSockets break; on other links
    /// nothing more is heard.
    pub fn crash_hub(&mut self) {
        self.transcript.line(self.now, "hub", format_args!("dies, and another begins"));
        self.disk.process_dies(self.now);
        self.config.seed[8..16].copy_from_slice(&self.rng.draw().to_le_bytes());
        self.hub = Hub::new(self.config.clone());
        for peer in (0..self.peers.len()).map(PeerId) {
            let it = &self.peers[peer.0];
            if it.link.kind == LinkKind::WebSocket && it.wire == Wire::Up {
                self.reset(peer);
            }
        }
        self.turn();
    }

    /// The hub goes down.
    pub fn shut_down(&mut self) {
        self.hub.shut_down(self.now);
        self.turn();
    }
}

/// Looking at it.
impl Sim {
    /// The hub.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// A game's room.
    ///
    /// # Panics
    /// If it is not a game.
    #[must_use]
    pub fn room(&self, peer: PeerId) -> &RoomCore {
        match &self.peers[peer.0].end {
            End::Game(room) => room,
            End::Bare { .. } => panic!("it is no game"),
        }
    }

    /// The code of a game's room.
    ///
    /// # Panics
    /// If it is not open.
    #[must_use]
    pub fn code(&self, peer: PeerId) -> RoomCode {
        let room = self.room(peer);
        assert!(room.is_connected(), "the room is not open: {:?}\n{}", room.closed(), self.transcript);
        room.info().code.expect("an open room has a code")
    }

    /// All that a game was told so far.
    #[must_use]
    pub fn events(&self, peer: PeerId) -> &[Event] {
        &self.peers[peer.0].events
    }

    /// What a game was told since it was last asked for.
    pub fn take_events(&mut self, peer: PeerId) -> Vec<Event> {
        std::mem::take(&mut self.peers[peer.0].events)
    }

    /// Why a game's room is over for it, if its game was told.
    #[must_use]
    pub fn closed(&self, peer: PeerId) -> Option<ClosedReason> {
        self.room(peer).closed().cloned()
    }

    /// What a session without a game was told.
    #[must_use]
    pub fn session_events(&self, peer: PeerId) -> &[session::Event] {
        match &self.peers[peer.0].end {
            End::Game(_) => &[],
            End::Bare { events, .. } => events,
        }
    }

    /// What went between the hub and a client.
    #[must_use]
    pub fn traffic(&self, peer: PeerId) -> Traffic {
        self.peers[peer.0].traffic
    }

    /// Every packet that reached a client.
    #[must_use]
    pub fn received(&self, peer: PeerId) -> &[Packet] {
        &self.peers[peer.0].received
    }

    /// What the hub let its operator know.
    #[must_use]
    pub fn happenings(&self) -> &[Happening] {
        &self.happenings
    }

    /// What the hub wants kept of matches: which match, the number of the entry, and what happened.
    #[must_use]
    pub fn kept(&self) -> &[(RoomCode, u64, KeptEntry)] {
        &self.kept
    }

    /// What the hub let its operator know since it was last asked for.
    pub fn take_happenings(&mut self) -> Vec<Happening> {
        std::mem::take(&mut self.happenings)
    }

    /// The logs of all rooms of the hub that lives, by the hub's number.
    #[must_use]
    pub fn logs(&self) -> BTreeMap<RoomId, Vec<u8>> {
        self.disk.open().map(|(room, bytes)| (room, bytes.to_vec())).collect()
    }

    /// The logs of all rooms of all hubs that there were, in the order in which they opened.
    #[must_use]
    pub fn log_files(&self) -> &[LogFile] {
        self.disk.files()
    }

    /// Clients that there are or were.
    #[must_use]
    pub fn peer_count(&self) -> usize {
        self.peers.len()
    }

    /// What lies between a client and the hub.
    #[must_use]
    pub fn link(&self, peer: PeerId) -> Link {
        self.peers[peer.0].link
    }

    /// Whether a client's process has died.
    #[must_use]
    pub fn is_crashed(&self, peer: PeerId) -> bool {
        self.peers[peer.0].is_crashed
    }

    /// What happened, for a person.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.transcript.to_string()
    }

    /// The end of it.
    #[must_use]
    pub fn excerpt(&self, lines: usize) -> String {
        self.transcript.excerpt(lines)
    }

    /// A number for all that happened, packets included: two runs that have the same were the same.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.transcript.trace_hash()
    }
}

impl Sim {
    fn note(&mut self, peer: PeerId, what: &str) {
        self.transcript.line(self.now, peer, format_args!("{what}"));
    }
}

/// Connections of one client, at most.
const LINES_MAX: u64 = 1 << 32;

fn connection(line: Line) -> ConnectionId {
    ConnectionId(line.peer.0 as u64 + line.number * LINES_MAX)
}

fn line_of(connection: ConnectionId) -> Line {
    let peer = usize::try_from(connection.0 % LINES_MAX).expect("it was made from an index");
    Line { peer: PeerId(peer), number: connection.0 / LINES_MAX }
}

/// The client that a connection is of.
pub(crate) fn peer_of(connection: ConnectionId) -> PeerId {
    line_of(connection).peer
}
