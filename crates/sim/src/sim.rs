//! The world: a hub, clients, a network, and one queue of what is to happen.

use crate::link::Link;
use crate::peer::{End, Peer, PeerId, Play, Tamper, Traffic, Wire};
use crate::rng::Rng;
use crate::transcript::Transcript;
use parlor::core::{ClosedReason, Options, RoomCore};
use parlor::{Event, RoomCode};
use parlor_hub::{Config, Happening, Hub, Output};
use parlor_proto::session::{self, Session};
use parlor_proto::wire::handshake::{Hello, Intent};
use parlor_proto::{ConnectionId, Instant, Packet, RoomId};
use std::collections::BTreeMap;
use std::time::Duration;

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
enum Due {
    /// The hub accepts a connection.
    Accepted(PeerId),
    /// The client has it, too.
    Connected(PeerId),
    ToHub(PeerId, Packet),
    ToPeer(PeerId, Packet),
    /// The other end has closed.
    HubHung(PeerId),
    PeerHung(PeerId, String),
    Frame(PeerId),
}

/// A simulation. See the [crate](crate).
pub struct Sim {
    now: Instant,
    /// What the network and the clients' clocks are drawn from.
    rng: Rng,
    hub: Hub,
    peers: Vec<Peer>,
    queue: BTreeMap<(Instant, u64), Due>,
    queued: u64,
    transcript: Transcript,
    happenings: Vec<Happening>,
    logs: BTreeMap<RoomId, Vec<u8>>,
}

/// Making it, and letting time pass.
impl Sim {
    /// A world without clients, with a hub that records its rooms.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        Sim::with_hub(seed, Config { record: true, ..Config::new(drawn) })
    }

    /// The same with another hub.
    #[must_use]
    pub fn with_hub(seed: u64, config: Config) -> Self {
        Sim {
            now: Instant::from_millis(1_000_000),
            rng: Rng::new(seed),
            hub: Hub::new(config),
            peers: Vec::new(),
            queue: BTreeMap::new(),
            queued: 0,
            transcript: Transcript::new(),
            happenings: Vec::new(),
            logs: BTreeMap::new(),
        }
    }

    /// Lets so many milliseconds pass.
    pub fn run_for(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
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
        self.peers.push(Peer::new(end, link, ahead));
        self.push(self.now + link.latency(), Due::Accepted(peer));
        self.push(self.now + link.latency() * 2, Due::Connected(peer));
        peer
    }

    /// What a game does in each step from here on.
    pub fn play(&mut self, peer: PeerId, play: impl FnMut(&mut RoomCore, Instant) + 'static) {
        let play: Play = Box::new(play);
        self.peers[peer.0].play = Some(play);
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
        self.turn();
        result
    }

    /// The process dies: it says nothing more and hears nothing, and nobody is told.
    pub fn crash(&mut self, peer: PeerId) {
        self.note(peer, "crashes");
        let peer = &mut self.peers[peer.0];
        (peer.is_crashed, peer.wire) = (true, Wire::Silent);
    }

    /// The network swallows everything between a client and the hub, or carries it again. Both go on.
    pub fn silence(&mut self, peer: PeerId, is_silent: bool) {
        self.note(peer, if is_silent { "is cut off" } else { "is reached again" });
        self.peers[peer.0].wire = if is_silent { Wire::Silent } else { Wire::Up };
    }

    /// The connection breaks, and both ends are told.
    pub fn cut(&mut self, peer: PeerId) {
        self.note(peer, "loses its connection");
        let end = &mut self.peers[peer.0];
        end.wire = Wire::Down;
        end.end.disconnected("reset by a test", end.clock(self.now));
        let at = end.up.end(&end.link, self.now);
        self.push(at, Due::HubHung(peer));
        self.turn();
    }

    /// The game stops drawing frames, or goes on; its driver does not stop.
    pub fn stall(&mut self, peer: PeerId, is_stalled: bool) {
        self.note(peer, if is_stalled { "stalls" } else { "draws again" });
        self.peers[peer.0].is_stalled = is_stalled;
    }

    /// The link takes nothing more from the hub, or takes it again.
    pub fn block(&mut self, peer: PeerId, is_blocked: bool) {
        self.note(peer, if is_blocked { "takes nothing" } else { "takes packets" });
        self.hub.handle_writable(connection(peer), !is_blocked);
        self.turn();
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

    /// The logs of all rooms.
    #[must_use]
    pub fn logs(&self) -> &BTreeMap<RoomId, Vec<u8>> {
        &self.logs
    }

    /// What happened, for a person.
    #[must_use]
    pub fn transcript(&self) -> String {
        self.transcript.to_string()
    }

    /// A number for all that happened, packets included: two runs that have the same were the same.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.transcript.trace_hash()
    }
}

/// How it runs.
impl Sim {
    /// Goes to the next moment at which something happens, but not beyond `until`.
    fn step(&mut self, until: Instant) -> bool {
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let peers = self.peers.iter().filter_map(Peer::poll_timeout).min();
        match [queued, peers, self.hub.poll_timeout()].into_iter().flatten().min() {
            Some(next) if next <= until => {
                self.now = self.now.max(next);
                self.turn();
                true
            }
            _ => {
                self.now = until;
                false
            }
        }
    }

    /// Does everything that is due now. The hub hears all that has come before it flushes, as a server does that drains
    /// its receive queue.
    fn turn(&mut self) {
        for _ in 0..TURNS_MAX {
            self.hand_over();
            self.hub.handle_timeout(self.now);
            self.hub.flush(self.now);
            while let Some(output) = self.hub.poll_output() {
                self.obey(output);
            }
            for index in 0..self.peers.len() {
                self.wake(PeerId(index));
            }
            let is_due = |at: Instant| at <= self.now;
            if !self.queue.keys().next().is_some_and(|(at, _)| is_due(*at))
                && !self.hub.poll_timeout().is_some_and(is_due)
            {
                return;
            }
        }
        panic!("the world runs in circles\n{}", self.transcript);
    }

    fn push(&mut self, at: Instant, due: Due) {
        self.queue.insert((at, self.queued), due);
        self.queued += 1;
    }

    fn hand_over(&mut self) {
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= self.now
        {
            match entry.remove() {
                Due::Accepted(peer) => {
                    let kind = self.peers[peer.0].link.kind;
                    self.hub.handle_connected(connection(peer), kind, self.now);
                }
                Due::Connected(peer) => self.connected(peer),
                Due::ToHub(peer, packet) => self.hub.handle_packet(connection(peer), packet, self.now),
                Due::ToPeer(peer, packet) => self.take_packet(peer, packet),
                Due::HubHung(peer) => self.hub.handle_disconnected(connection(peer), self.now),
                Due::PeerHung(peer, reason) => self.hang_up(peer, &reason),
                Due::Frame(peer) => self.frame(peer),
            }
        }
    }

    fn connected(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Pending {
            it.wire = Wire::Up;
            it.end.connected(it.link.kind, it.clock(self.now));
        }
    }

    fn take_packet(&mut self, peer: PeerId, packet: Packet) {
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Up {
            self.transcript.hash(&packet.bytes);
            it.received.push(packet.clone());
            it.end.handle_packet(packet, it.clock(self.now));
        }
    }

    fn hang_up(&mut self, peer: PeerId, reason: &str) {
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Up {
            it.wire = Wire::Down;
            it.end.disconnected(reason, it.clock(self.now));
        }
    }

    fn frame(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        if it.is_crashed {
            return;
        }
        if !it.is_stalled {
            for event in it.frame(self.now) {
                self.transcript.event(self.now, peer, &event);
            }
        }
        self.push(self.now + FRAME, Due::Frame(peer));
    }

    /// Lets a client's driver do what is due.
    fn wake(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        if it.is_crashed || it.wire == Wire::Pending {
            return;
        }
        let clock = it.clock(self.now);
        if it.poll_timeout().is_some_and(|due| due <= self.now) {
            it.end.handle_timeout(clock);
        }
        while let Some(packet) = self.peers[peer.0].end.poll_packet(clock) {
            let it = &mut self.peers[peer.0];
            it.traffic.up += 1;
            let packets = match &mut it.tamper {
                Some(tamper) => tamper(&mut self.rng, packet),
                None => vec![packet],
            };
            packets.into_iter().for_each(|packet| self.carry_up(peer, packet));
        }
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Up && it.end.is_finished() {
            it.wire = Wire::Down;
            let at = it.up.end(&it.link, self.now);
            self.push(at, Due::HubHung(peer));
        }
    }

    fn carry_up(&mut self, peer: PeerId, packet: Packet) {
        let it = &mut self.peers[peer.0];
        if it.wire != Wire::Up {
            return;
        }
        self.transcript.hash(&packet.bytes);
        for at in it.up.arrivals(&it.link, packet.carrier, self.now, &mut self.rng) {
            self.push(at, Due::ToHub(peer, packet.clone()));
        }
    }

    fn obey(&mut self, output: Output) {
        match output {
            Output::Packet { connection, packet } => {
                let peer = peer_of(connection);
                let it = &mut self.peers[peer.0];
                it.traffic.down += 1;
                it.traffic.down_bytes += packet.bytes.len() as u64;
                for at in it.down.arrivals(&it.link, packet.carrier, self.now, &mut self.rng) {
                    self.push(at, Due::ToPeer(peer, packet.clone()));
                }
            }
            Output::Close { connection, reason } => {
                let peer = peer_of(connection);
                let it = &self.peers[peer.0];
                let at = it.down.end(&it.link, self.now);
                self.push(at, Due::PeerHung(peer, reason.to_owned()));
            }
            Output::Recorded { room, bytes } => self.logs.entry(room).or_default().extend(bytes),
            Output::Happened(happening) => {
                self.transcript.line(self.now, "hub", format_args!("{happening:?}"));
                self.happenings.push(happening);
            }
        }
    }

    fn note(&mut self, peer: PeerId, what: &str) {
        self.transcript.line(self.now, peer, format_args!("{what}"));
    }
}

/// A client has one connection in its life.
fn connection(peer: PeerId) -> ConnectionId {
    ConnectionId(peer.0 as u64)
}

fn peer_of(connection: ConnectionId) -> PeerId {
    PeerId(usize::try_from(connection.0).expect("it was made from an index"))
}
