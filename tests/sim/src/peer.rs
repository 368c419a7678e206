//! A client: a game with its room, or a bare session that can send anything.

use crate::link::{Link, Way};
use parlor_client_core::{Event, RoomCore};
use parlor_impair::Rng;
use parlor_proto::session::{self, Session};
use parlor_proto::wire::handshake::Hello;
use parlor_proto::{Instant, LinkKind, Packet};
use std::fmt;
use std::time::Duration;

/// Id of a client in its simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub(crate) usize);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("peer {}", self.0))
    }
}

/// One connection of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) peer: PeerId,
    /// Its number among the client's connections, from 0.
    pub(crate) number: u64,
}

/// A game's actions in each of its steps.
pub type Play = Box<dyn FnMut(&mut RoomCore, Instant)>;

/// A game's reaction to each event.
pub type Hear = Box<dyn FnMut(&mut RoomCore, Instant, &Event)>;

/// Replaces each packet that a client sends by any number of packets.
pub type Tamper = Box<dyn FnMut(&mut Rng, Packet) -> Vec<Packet>>;

/// Traffic between the hub and a client, counted when sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets to the hub.
    pub up: u64,
    /// Packets from the hub.
    pub down: u64,
    /// Bytes from the hub.
    pub down_bytes: u64,
}

/// Either kind of client.
pub(crate) enum End {
    /// A game.
    Game(Box<RoomCore>),
    /// A session without a game, once its connection stands.
    Bare { hello: Box<Hello>, session: Option<Box<Session>>, events: Vec<session::Event> },
}

/// State of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    /// The connection is being made.
    Pending,
    /// Packets pass.
    Up,
    /// Packets are lost, unnoticed by both ends.
    Silent,
    /// There is no connection.
    Down,
}

pub(crate) struct Peer {
    pub(crate) end: End,
    pub(crate) link: Link,
    pub(crate) up: Way,
    pub(crate) down: Way,
    pub(crate) wire: Wire,
    /// Its clock minus the hub's.
    pub(crate) ahead: Duration,
    pub(crate) is_crashed: bool,
    pub(crate) is_stalled: bool,
    /// Its dials time out.
    pub(crate) is_unplugged: bool,
    /// The nodes of the connections that it has begun, and the present one's number.
    pub(crate) lines: Vec<usize>,
    pub(crate) main: u64,
    /// The node that it connects to.
    pub(crate) node: usize,
    /// The number of the connection of its claim at another node.
    pub(crate) claim: Option<u64>,
    /// Its entry among the timers.
    pub(crate) timer: Option<Instant>,
    pub(crate) play: Option<Play>,
    pub(crate) hear: Option<Hear>,
    pub(crate) tamper: Option<Tamper>,
    pub(crate) events: Vec<Event>,
    /// Stream packets that wait for the end of a silence: a stream loses nothing.
    pub(crate) held_up: Vec<Packet>,
    pub(crate) held_down: Vec<Packet>,
    pub(crate) traffic: Traffic,
    pub(crate) received: Vec<Packet>,
}

impl Peer {
    pub(crate) fn new(end: End, link: Link, ways: [Way; 2], ahead: Duration, node: usize) -> Self {
        let [up, down] = ways;
        Peer {
            end,
            link,
            up,
            down,
            wire: Wire::Pending,
            ahead,
            is_crashed: false,
            is_stalled: false,
            is_unplugged: false,
            lines: Vec::new(),
            main: 0,
            node,
            claim: None,
            timer: None,
            play: None,
            hear: None,
            tamper: None,
            events: Vec::new(),
            held_up: Vec::new(),
            held_down: Vec::new(),
            traffic: Traffic::default(),
            received: Vec::new(),
        }
    }

    /// Begins a connection to a node. Returns its number.
    pub(crate) fn begin_line(&mut self, node: usize) -> u64 {
        self.lines.push(node);
        self.lines.len() as u64 - 1
    }

    /// The node of one of its connections.
    pub(crate) fn node_of(&self, line: Line) -> usize {
        self.lines[usize::try_from(line.number).expect("it was made from an index")]
    }

    /// The time of its own clock.
    pub(crate) fn clock(&self, now: Instant) -> Instant {
        now + self.ahead
    }

    /// When it must be woken, on the hub's clock.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_crashed {
            return None;
        }
        let due = match &self.end {
            End::Game(room) => room.poll_timeout(),
            End::Bare { session, .. } => session.as_ref().and_then(|session| session.poll_timeout()),
        };
        let dials = self.end.next_attempt().into_iter().chain(self.end.next_claim());
        let hub = due.into_iter().chain(dials).min().map(|due| due - self.ahead);
        hub.into_iter().chain(self.path_timeout()).min()
    }

    /// When it must be woken for its paths, on the hub's clock.
    pub(crate) fn path_timeout(&self) -> Option<Instant> {
        match &self.end {
            End::Game(room) if !self.is_crashed => room.poll_path_timeout().map(|due| due - self.ahead),
            End::Game(_) | End::Bare { .. } => None,
        }
    }

    /// One frame of its game: takes all events and runs the due steps.
    pub(crate) fn frame(&mut self, now: Instant) -> Vec<Event> {
        let clock = self.clock(now);
        let End::Game(room) = &mut self.end else { return Vec::new() };
        let mut events = Vec::new();
        while let Some(event) = room.poll(clock) {
            if let Some(hear) = &mut self.hear {
                hear(room, clock, &event);
            }
            events.push(event);
        }
        while room.tick(clock) {
            if let Some(play) = &mut self.play {
                play(room, clock);
            }
        }
        self.events.extend(events.iter().cloned());
        events
    }
}

/// The driver of either kind of client. Times are the client's own.
impl End {
    pub(crate) fn connected(&mut self, link: LinkKind, now: Instant) {
        match self {
            End::Game(room) => room.connected(link, now),
            End::Bare { hello, session, .. } => {
                *session = Some(Box::new(Session::client((**hello).clone(), link, now)));
            }
        }
    }

    pub(crate) fn disconnected(&mut self, detail: &str, now: Instant) {
        match self {
            End::Game(room) => room.disconnected(detail, now),
            End::Bare { session, .. } => {
                if let Some(session) = session {
                    session.detach();
                }
            }
        }
    }

    pub(crate) fn handle_packet(&mut self, packet: Packet, now: Instant) {
        match self {
            End::Game(room) => room.handle_packet(packet, now),
            End::Bare { session: Some(session), events, .. } => {
                // Faults of the hub are checked by tests with a game.
                let _ = session.handle_packet(packet, now);
                events.extend(std::iter::from_fn(|| session.poll_event()));
            }
            End::Bare { .. } => {}
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match self {
            End::Game(room) => room.handle_timeout(now),
            End::Bare { session: Some(session), events, .. } => {
                session.handle_timeout(now);
                events.extend(std::iter::from_fn(|| session.poll_event()));
            }
            End::Bare { .. } => {}
        }
    }

    pub(crate) fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        match self {
            End::Game(room) => room.poll_packet(now),
            End::Bare { session, .. } => session.as_mut()?.poll_packet(now),
        }
    }

    /// When it dials again.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        match self {
            End::Game(room) => room.next_attempt(),
            End::Bare { .. } => None,
        }
    }

    /// When it dials another node.
    pub(crate) fn next_claim(&self) -> Option<Instant> {
        match self {
            End::Game(room) => room.next_claim(),
            End::Bare { .. } => None,
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        match self {
            End::Game(room) => room.is_finished(),
            End::Bare { session, .. } => session.as_ref().is_none_or(|session| session.is_finished()),
        }
    }
}
