//! The simulated world: a hub, clients, a network, and one event queue.

use crate::disk::{Disk, LogFile};
use crate::link::{Link, Way};
use crate::peer::{End, Hear, Line, Peer, PeerId, Play, Tamper, Traffic, Wire};
use crate::transcript::Transcript;
use cluster::{EarlyClaim, Store};
use parlor_client_core::{ClosedReason, Event, Options, PathId, RoomCore};
use parlor_hub::room::KeptEntry;
use parlor_hub::{Config, Hub, HubEvent};
use parlor_impair::{Direction, Rng};
use parlor_proto::session::{self, Session};
use parlor_proto::wire::handshake::{Hello, Intent};
use parlor_proto::{ConnectionId, Instant, LinkKind, MemberId, Packet, RoomCode, RoomId};
use paths::Between;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

mod cluster;
mod paths;
mod run;

/// The game that [`Sim::join`] joins.
pub const APP: &str = "tanks";

/// A hello of a client without a game, for [`Sim::intrude`].
pub fn hello(intent: Intent) -> Hello {
    Hello { name: "mallory".into(), ..Hello::new(APP, intent) }
}

/// Interval of a game's frames.
const FRAME: Duration = Duration::from_micros(16_667);
/// Turns at one instant after which the world counts as stuck in a loop.
const TURNS_MAX: u32 = 1_000;

/// An event that is due at its time.
#[derive(Debug)]
enum Due {
    /// The hub accepts a connection.
    Accepted(Line),
    /// The client sees the connection, too.
    Connected(Line),
    ToHub(Line, Packet),
    ToPeer(Line, Packet),
    /// The other end has closed.
    HubHung(Line),
    PeerHung(Line, String),
    /// The client's dial fails.
    Unreached(Line),
    Frame(PeerId),
    PathConnected(PeerId, PathId),
    PathFailed(PeerId, PathId),
    PathHung(PeerId, PathId),
    PathPacket(PeerId, PathId, Packet),
    /// Nodes write who is in their rooms into the store.
    Rosters,
    /// A claim has waited long enough for its room.
    Undecided(EarlyClaim),
}

/// A process with a hub.
struct Node {
    hub: Hub,
    /// The earliest next run of the hub's loop, and the events held until then.
    runs_at: Instant,
    held: Vec<Due>,
    died_at: Option<Instant>,
}

impl Node {
    fn new(config: Config) -> Self {
        Node { hub: Hub::new(config), runs_at: Instant::ZERO, held: Vec::new(), died_at: None }
    }
}

/// A simulation. See the [crate](crate).
pub struct Sim {
    now: Instant,
    /// Seed of the network and the clients' clocks.
    rng: Rng,
    config: Config,
    /// One hub; more of them in a cluster.
    nodes: Vec<Node>,
    store: Store,
    disk: Disk,
    peers: Vec<Peer>,
    /// Clients with events since they last handled what is due.
    touched: BTreeSet<PeerId>,
    timers: BTreeSet<(Instant, PeerId)>,
    queue: BTreeMap<(Instant, u64), Due>,
    queued: u64,
    transcript: Transcript,
    hub_events: Vec<HubEvent>,
    kept: Vec<(RoomCode, u64, KeptEntry)>,
    between: Between,
}

/// A failure of a single seed shows how it came about.
impl Drop for Sim {
    #[allow(clippy::print_stderr)] // it speaks to whoever runs the test
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("PARLOR_SEED").is_some() {
            eprintln!("{}", self.transcript);
        }
    }
}

/// Construction, and the passage of time.
impl Sim {
    /// A world without clients. Its hub records its rooms and keeps no seats: a lost connection loses the
    /// seat.
    pub fn new(seed: u64) -> Self {
        Sim::keeping_seats(seed, Duration::ZERO)
    }

    /// A world whose hub keeps seats for `grace`.
    pub fn keeping_seats(seed: u64, grace: Duration) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        Sim::with_hub(seed, Config { record: true, grace, ..Config::new(drawn) })
    }

    /// A world with this hub.
    pub fn with_hub(seed: u64, config: Config) -> Self {
        Sim {
            now: Instant::from_millis(1_000_000),
            rng: Rng::new(seed),
            nodes: vec![Node::new(config.clone())],
            store: Store::default(),
            config,
            disk: Disk::new(seed),
            peers: Vec::new(),
            touched: BTreeSet::new(),
            timers: BTreeSet::new(),
            queue: BTreeMap::new(),
            queued: 0,
            transcript: Transcript::new(),
            hub_events: Vec::new(),
            kept: Vec::new(),
            between: Between::default(),
        }
    }

    /// Lets `ms` milliseconds pass.
    pub fn run_for(&mut self, ms: u64) {
        self.pass(Duration::from_millis(ms));
    }

    /// Lets this much time pass, in whole microseconds.
    pub fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Lets time pass until the condition holds, checked every millisecond.
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
    pub fn now(&self) -> Instant {
        self.now
    }
}

/// Clients and their trouble.
impl Sim {
    /// Adds a game with a room of its own; runs until the room is open or refused.
    pub fn host(&mut self, options: Options, link: Link) -> PeerId {
        self.enter_and_wait(options, link)
    }

    /// Adds a game that joins a room of [`APP`]; runs until it is in or refused.
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

    /// Adds a game that begins to host or join, without running.
    pub fn enter(&mut self, options: Options, link: Link) -> PeerId {
        self.enter_at(options, link, 0)
    }

    fn enter_at(&mut self, mut options: Options, link: Link, node: usize) -> PeerId {
        if options.name.is_empty() {
            options.name = format!("player {}", self.peers.len());
        }
        let room = RoomCore::new(options, parlor_client_core::Mode::Auto);
        let peer = self.connect(End::Game(Box::new(room)), link, node);
        let phase = self.rng.below(u64::try_from(FRAME.as_micros()).expect("a frame is short"));
        self.push(self.now + Duration::from_micros(phase), Due::Frame(peer));
        peer
    }

    /// Adds a session without a game, which a test can make send anything.
    pub fn intrude(&mut self, hello: Hello, link: Link) -> PeerId {
        self.connect(End::Bare { hello: Box::new(hello), session: None, events: Vec::new() }, link, 0)
    }

    fn connect(&mut self, end: End, link: Link, node: usize) -> PeerId {
        let peer = PeerId(self.peers.len());
        let ahead = Duration::from_micros(self.rng.below(3_600_000_000));
        let ways = [Direction::There, Direction::Back];
        let (seed, flow) = (self.rng.draw(), peer.0 as u64);
        let ways = ways.map(|direction| Way::new(&link, seed, flow, direction, self.now));
        self.peers.push(Peer::new(end, link, ways, ahead, node));
        self.dial(peer);
        peer
    }

    /// Sets a game's actions in each step from here on.
    pub fn play(&mut self, peer: PeerId, play: impl FnMut(&mut RoomCore, Instant) + 'static) {
        let play: Play = Box::new(play);
        self.peers[peer.0].play = Some(play);
    }

    /// Sets a game's reaction to each event from here on.
    pub fn hear(&mut self, peer: PeerId, hear: impl FnMut(&mut RoomCore, Instant, &Event) + 'static) {
        let hear: Hear = Box::new(hear);
        self.peers[peer.0].hear = Some(hear);
    }

    /// Lets a game act now, between two frames.
    ///
    /// # Panics
    /// If the client is not a game.
    pub fn act<R>(&mut self, peer: PeerId, act: impl FnOnce(&mut RoomCore, Instant) -> R) -> R {
        let result = self.act_quietly(peer, act);
        self.turn();
        result
    }

    /// Like [`act`](Self::act), but nothing is sent before the next turn: clients that act so do it at the
    /// same moment.
    ///
    /// # Panics
    /// If the client is not a game.
    pub fn act_quietly<R>(&mut self, peer: PeerId, act: impl FnOnce(&mut RoomCore, Instant) -> R) -> R {
        self.touched.insert(peer);
        let peer = &mut self.peers[peer.0];
        let clock = peer.clock(self.now);
        match &mut peer.end {
            End::Game(room) => act(room, clock),
            End::Bare { .. } => panic!("it is no game"),
        }
    }

    /// Lets a bare session act now.
    ///
    /// # Panics
    /// If the client is a game, or not connected yet.
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

    /// Kills the process: it neither sends nor receives, and the other end is not notified.
    pub fn crash(&mut self, peer: PeerId) {
        self.note(peer, "crashes");
        self.touched.insert(peer);
        let peer = &mut self.peers[peer.0];
        (peer.is_crashed, peer.wire) = (true, Wire::Silent);
    }

    /// Starts or ends a silence between a client and the hub. Both go on. Datagrams are lost; streams hold
    /// their packets until the end of the silence. A closed connection stays closed.
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

    /// Breaks the connection and notifies both ends.
    pub fn cut(&mut self, peer: PeerId) {
        self.note(peer, "loses its connection");
        self.reset(peer);
        let (at, line) = (self.peers[peer.0].up.end(self.now), self.line(peer));
        self.push(at, Due::HubHung(line));
        self.turn();
    }

    /// Sets whether a client's dials fail. An existing connection goes on: see [`silence`](Self::silence) and
    /// [`cut`](Self::cut).
    pub fn unplug(&mut self, peer: PeerId, is_unplugged: bool) {
        self.note(peer, if is_unplugged { "reaches nobody" } else { "reaches the hub" });
        self.peers[peer.0].is_unplugged = is_unplugged;
    }

    /// Restarts the process of a game. The new one has only these options.
    ///
    /// # Panics
    /// If the client is not a game.
    pub fn restart(&mut self, peer: PeerId, options: Options) {
        self.note(peer, "dies, and another process begins");
        let wire = self.peers[peer.0].wire;
        let (at, line) = (self.peers[peer.0].up.end(self.now), self.line(peer));
        if wire == Wire::Up {
            self.push(at, Due::HubHung(line));
        }
        let room = RoomCore::new(options, parlor_client_core::Mode::Auto);
        let it = &mut self.peers[peer.0];
        assert!(matches!(it.end, End::Game(_)), "it is no game");
        it.end = End::Game(Box::new(room));
        if std::mem::take(&mut it.is_crashed) {
            self.push(self.now, Due::Frame(peer));
        }
        self.dial(peer);
        self.turn();
    }

    /// Replaces the network between a client and the hub.
    ///
    /// # Panics
    /// If the link is of another kind.
    pub fn relink(&mut self, peer: PeerId, link: Link) {
        self.note(peer, "has another link");
        let seed = self.rng.draw();
        let end = &mut self.peers[peer.0];
        assert_eq!(end.link.kind, link.kind, "a connection stays what it is");
        end.link = link;
        [&mut end.up, &mut end.down].into_iter().for_each(|way| way.change(&end.link, seed, self.now));
    }

    /// Stalls the game or lets it go on; its driver keeps running.
    pub fn stall(&mut self, peer: PeerId, is_stalled: bool) {
        self.note(peer, if is_stalled { "stalls" } else { "draws again" });
        self.peers[peer.0].is_stalled = is_stalled;
    }

    /// Blocks or unblocks the link's packets from the hub.
    pub fn block(&mut self, peer: PeerId, is_blocked: bool) {
        self.note(peer, if is_blocked { "takes nothing" } else { "takes packets" });
        let (now, line) = (self.now, self.line(peer));
        self.node_of(line).hub.handle_writable(connection(line), !is_blocked, now);
        self.turn();
    }

    /// Sets a client's clock ahead of the hub's. No driver's clock jumps like that; it simulates a hostile
    /// client.
    pub fn leap(&mut self, peer: PeerId, ahead: Duration) {
        self.note(peer, "has another time");
        self.peers[peer.0].ahead = ahead;
        self.touched.insert(peer);
    }

    /// Sets how each packet that a client sends is replaced.
    pub fn tamper(&mut self, peer: PeerId, tamper: impl FnMut(&mut Rng, Packet) -> Vec<Packet> + 'static) {
        let tamper: Tamper = Box::new(tamper);
        self.peers[peer.0].tamper = Some(tamper);
    }

    /// Sends a packet as if the client had.
    pub fn inject(&mut self, peer: PeerId, packet: Packet) {
        self.carry_up(peer, packet);
    }

    /// Restarts the hub's process; its rooms are lost. WebSockets break; other links fall silent.
    pub fn crash_hub(&mut self) {
        self.transcript.line(self.now, "hub", format_args!("dies, and another begins"));
        self.disk.process_dies(self.now);
        self.config.seed[8..16].copy_from_slice(&self.rng.draw().to_le_bytes());
        let runs_at = self.nodes[0].runs_at;
        self.nodes[0] = Node { runs_at, ..Node::new(self.config.clone()) };
        for peer in (0..self.peers.len()).map(PeerId) {
            let it = &self.peers[peer.0];
            if it.link.kind == LinkKind::WebSocket && it.wire == Wire::Up {
                self.reset(peer);
            }
        }
        self.turn();
    }

    /// Stalls the hub's loop for `time`, as on an overloaded machine: arrivals wait, and timers are late.
    pub fn stall_hub(&mut self, time: Duration) {
        self.transcript.line(self.now, "hub", format_args!("is not run for {time:?}"));
        self.nodes[0].runs_at = self.now + time;
    }

    /// Removes a member, as an operator does.
    ///
    /// # Panics
    /// If there is no such member.
    pub fn remove_member(&mut self, code: RoomCode, member: MemberId, reason: &str) {
        self.nodes[0].hub.remove_member(code, member, reason.to_owned(), self.now).expect("it is there");
        self.turn();
    }

    /// Shuts the hub down.
    pub fn shut_down(&mut self) {
        self.nodes[0].hub.shut_down(self.now);
        self.turn();
    }
}

/// Inspection.
impl Sim {
    /// The hub.
    pub fn hub(&self) -> &Hub {
        &self.nodes[0].hub
    }

    /// A game's room.
    ///
    /// # Panics
    /// If the client is not a game.
    pub fn room(&self, peer: PeerId) -> &RoomCore {
        match &self.peers[peer.0].end {
            End::Game(room) => room,
            End::Bare { .. } => panic!("it is no game"),
        }
    }

    /// The code of a game's room.
    ///
    /// # Panics
    /// If the room is not open.
    pub fn code(&self, peer: PeerId) -> RoomCode {
        let room = self.room(peer);
        assert!(room.is_connected(), "the room is not open: {:?}\n{}", room.closed(), self.transcript);
        room.info().code.expect("an open room has a code")
    }

    /// All events of a game so far.
    pub fn events(&self, peer: PeerId) -> &[Event] {
        &self.peers[peer.0].events
    }

    /// Takes a game's events since the last call.
    pub fn take_events(&mut self, peer: PeerId) -> Vec<Event> {
        std::mem::take(&mut self.peers[peer.0].events)
    }

    /// Why a game's room is over for it, if it is.
    pub fn closed(&self, peer: PeerId) -> Option<ClosedReason> {
        self.room(peer).closed().cloned()
    }

    /// The events of a session without a game.
    pub fn session_events(&self, peer: PeerId) -> &[session::Event] {
        match &self.peers[peer.0].end {
            End::Game(_) => &[],
            End::Bare { events, .. } => events,
        }
    }

    /// The traffic between the hub and a client.
    pub fn traffic(&self, peer: PeerId) -> Traffic {
        self.peers[peer.0].traffic
    }

    /// Every packet that reached a client.
    pub fn received(&self, peer: PeerId) -> &[Packet] {
        &self.peers[peer.0].received
    }

    /// The hub's events for its operator.
    pub fn hub_events(&self) -> &[HubEvent] {
        &self.hub_events
    }

    /// The hub's entries for kept matches: the match, the entry's number, and the entry.
    pub fn kept(&self) -> &[(RoomCode, u64, KeptEntry)] {
        &self.kept
    }

    /// Takes the hub's events for its operator since the last call.
    pub fn take_hub_events(&mut self) -> Vec<HubEvent> {
        std::mem::take(&mut self.hub_events)
    }

    /// The logs of all rooms of the living hub, by the hub's number.
    pub fn logs(&self) -> BTreeMap<RoomId, Vec<u8>> {
        self.disk.open().map(|(room, bytes)| (room, bytes.to_vec())).collect()
    }

    /// The logs of all rooms of all hubs so far, in the order of their opening.
    pub fn log_files(&self) -> &[LogFile] {
        self.disk.files()
    }

    /// Number of clients so far.
    pub fn peer_count(&self) -> usize {
        self.peers.len()
    }

    /// The link between a client and the hub.
    pub fn link(&self, peer: PeerId) -> Link {
        self.peers[peer.0].link
    }

    /// Whether a client's process has died.
    pub fn is_crashed(&self, peer: PeerId) -> bool {
        self.peers[peer.0].is_crashed
    }

    /// The transcript, for a person.
    pub fn transcript(&self) -> String {
        self.transcript.to_string()
    }

    /// The end of the transcript.
    pub fn excerpt(&self, lines: usize) -> String {
        self.transcript.excerpt(lines)
    }

    /// A hash of the whole run, packets included: runs with equal hashes were equal.
    pub fn trace_hash(&self) -> u64 {
        self.transcript.trace_hash()
    }
}

impl Sim {
    fn note(&mut self, peer: PeerId, what: &str) {
        self.transcript.line(self.now, peer, format_args!("{what}"));
    }
}

/// Connections of one client at most.
const LINES_MAX: u64 = 1 << 32;

fn connection(line: Line) -> ConnectionId {
    ConnectionId(line.peer.0 as u64 + line.number * LINES_MAX)
}

fn line_of(connection: ConnectionId) -> Line {
    let peer = usize::try_from(connection.0 % LINES_MAX).expect("it was made from an index");
    Line { peer: PeerId(peer), number: connection.0 / LINES_MAX }
}

/// The client of a connection.
pub(crate) fn peer_of(connection: ConnectionId) -> PeerId {
    line_of(connection).peer
}
