//! Direct paths between clients: their network and its trouble.

use super::{Due, Sim};
use crate::link::{Link, Way};
use crate::peer::{End, PeerId};
use core::net::SocketAddr;
use parlor_client_core::{PathCommand, PathId};
use parlor_impair::Direction;
use parlor_proto::{Carrier, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// The network between clients that try to reach each other.
#[derive(Default)]
pub(super) struct Between {
    /// Its link; `None` if clients cannot reach each other.
    link: Option<Link>,
    tries: BTreeMap<PathId, PeerId>,
    lines: BTreeMap<PathId, Line>,
    /// Packets are lost, unnoticed by both ends.
    is_silent: bool,
    /// Clients reach each other at the addresses of one local network.
    is_near: bool,
    /// Pairs of clients that do not reach each other.
    walls: BTreeSet<(PeerId, PeerId)>,
    /// Paths made so far.
    made: u64,
    /// Every packet between clients: sender, receiver, packet.
    received: Vec<(PeerId, PeerId, Packet)>,
    /// Stream packets that wait for the end of a silence.
    held: Vec<(PeerId, PathId, Packet)>,
}

/// One connection between two clients.
struct Line {
    ends: [PeerId; 2],
    ways: [Way; 2],
}

/// Paths between clients.
impl Sim {
    /// Sets the link between clients; `None` if they cannot reach each other.
    pub fn direct(&mut self, link: Option<Link>) {
        self.between.link = link;
    }

    /// Puts all clients into one local network.
    pub fn near(&mut self) {
        self.between.is_near = true;
    }

    /// Lets no path come up between two clients.
    pub fn wall(&mut self, a: PeerId, b: PeerId) {
        self.between.walls.extend([(a, b), (b, a)]);
    }

    /// Starts or ends a silence between clients.
    pub fn silence_paths(&mut self, is_silent: bool) {
        self.transcript.line(self.now, "paths", format_args!("silent: {is_silent}"));
        self.between.is_silent = is_silent;
        if !is_silent {
            let held = std::mem::take(&mut self.between.held);
            held.into_iter().for_each(|(from, id, packet)| self.carry_between(from, id, packet));
        }
    }

    /// Breaks every connection between clients and notifies both ends.
    pub fn break_paths(&mut self) {
        let ids: Vec<PathId> = self.between.lines.keys().copied().collect();
        for id in ids {
            if let Some(line) = self.between.lines.remove(&id) {
                line.ends.into_iter().for_each(|end| self.push(self.now, Due::PathHung(end, id)));
            }
        }
        self.turn();
    }

    /// Paths made so far.
    pub fn paths_made(&self) -> u64 {
        self.between.made
    }

    /// The present paths.
    pub fn paths(&self) -> impl Iterator<Item = PathId> {
        self.between.lines.keys().copied()
    }

    /// Every packet between clients: sender, receiver, packet.
    pub fn path_received(&self) -> &[(PeerId, PeerId, Packet)] {
        &self.between.received
    }

    /// A client's addresses: its own candidate, and the one that the hub sees.
    pub(super) fn addresses(peer: PeerId) -> [SocketAddr; 2] {
        let number = u8::try_from(peer.0 + 1).expect("a world has few clients");
        [SocketAddr::from(([10, 0, 0, number], 4_000)), SocketAddr::from(([203, 0, 113, number], 40_000))]
    }

    /// Lets a client's driver handle its paths.
    pub(super) fn wake_paths(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        let clock = it.clock(self.now);
        let End::Game(room) = &mut it.end else { return };
        if it.is_crashed {
            return;
        }
        if room.poll_path_timeout().is_some_and(|due| due <= clock) {
            room.handle_path_timeout(clock);
        }
        while let Some(command) = self.game(peer).and_then(|room| room.poll_path_command()) {
            self.obey_path(peer, command);
        }
        let ids: Vec<PathId> = self.between.lines.keys().copied().collect();
        for id in ids {
            while self.between.lines.get(&id).is_some_and(|line| line.ends.contains(&peer))
                && let Some(packet) = self.game(peer).and_then(|room| room.poll_path_packet(id, clock))
            {
                self.carry_between(peer, id, packet);
            }
        }
    }

    fn game(&mut self, peer: PeerId) -> Option<&mut parlor_client_core::RoomCore> {
        match &mut self.peers[peer.0].end {
            End::Game(room) => Some(room),
            End::Bare { .. } => None,
        }
    }

    fn obey_path(&mut self, peer: PeerId, command: PathCommand) {
        match command {
            PathCommand::Try { id, deadline, candidates, .. } => {
                assert!(!candidates.is_empty(), "somebody is to be reached nowhere");
                self.push(self.now + deadline, Due::PathFailed(peer, id));
                let Some(link) = self.between.link else { return };
                let Some(other) = self.between.tries.insert(id, peer) else { return };
                if self.between.walls.contains(&(peer, other)) {
                    return;
                }
                let (seed, flow) = (self.rng.draw(), 1 << 20 | id.0 & 0xffff);
                let ways = [Direction::There, Direction::Back]
                    .map(|direction| Way::new(&link, seed, flow, direction, self.now));
                self.between.lines.insert(id, Line { ends: [other, peer], ways });
                self.between.made += 1;
                for end in [other, peer] {
                    self.push(self.now + link.latency() * 2, Due::PathConnected(end, id));
                }
            }
            PathCommand::Close { id } => {
                if let Some(line) = self.between.lines.remove(&id) {
                    let from = usize::from(line.ends[0] != peer);
                    let at = line.ways[from].end(self.now);
                    if !self.between.is_silent {
                        self.push(at, Due::PathHung(line.ends[1 - from], id));
                    }
                }
            }
        }
    }

    fn carry_between(&mut self, from: PeerId, id: PathId, packet: Packet) {
        if self.between.is_silent {
            if packet.carrier != Carrier::Datagram {
                self.between.held.push((from, id, packet));
            }
            return;
        }
        self.transcript.hash(&packet.bytes);
        let Some(line) = self.between.lines.get_mut(&id) else { return };
        let at = usize::from(line.ends[0] != from);
        let to = line.ends[1 - at];
        let arrivals: Vec<_> = line.ways[at].arrivals(packet.carrier, packet.bytes.len(), self.now).collect();
        for at in arrivals {
            self.push(at, Due::PathPacket(to, id, packet.clone()));
        }
    }

    /// Delivers an event of a path to a client.
    pub(super) fn hear_between(&mut self, due: Due) {
        let (Due::PathConnected(peer, id)
        | Due::PathFailed(peer, id)
        | Due::PathHung(peer, id)
        | Due::PathPacket(peer, id, _)) = due
        else {
            return;
        };
        self.touched.insert(peer);
        if self.peers[peer.0].is_crashed {
            return;
        }
        let clock = self.peers[peer.0].clock(self.now);
        let kind = self.between.link.map(|link| link.kind);
        let line = self.between.lines.get(&id);
        let other = line.map(|line| line.ends[usize::from(line.ends[0] == peer)]);
        let (stands, is_near) = (other.is_some(), self.between.is_near);
        if let (Due::PathPacket(_, _, packet), Some(other)) = (&due, other) {
            self.between.received.push((other, peer, packet.clone()));
        }
        let Some(room) = self.game(peer) else { return };
        match due {
            Due::PathConnected(..) if stands => {
                let kind = kind.unwrap_or(parlor_proto::LinkKind::Quic);
                let [private, public] = Self::addresses(other.unwrap_or(peer));
                let remote = if is_near { private } else { public };
                room.path_connected(id, kind, remote, clock);
            }
            Due::PathFailed(..) if !stands => room.path_failed(id, "not reached", clock),
            Due::PathHung(..) => room.path_lost(id, "closed there", clock),
            Due::PathPacket(_, _, packet) if stands => room.handle_path_packet(id, packet, clock),
            _ => {}
        }
    }
}
