//! The simulation loop: it advances from one event to the next.

use super::{Due, FRAME, Node, Sim, TURNS_MAX, connection, line_of};
use crate::peer::{End, Line, PeerId, Wire};
use parlor_hub::{Origin, Output};
use parlor_proto::{Carrier, Instant, Packet};
use std::time::Duration;

/// Time until a dial fails.
const DIAL_PATIENCE: Duration = Duration::from_secs(3);

impl Sim {
    /// Advances to the next event, but not beyond `until`.
    pub(super) fn step(&mut self, until: Instant) -> bool {
        let queued = self.queue.keys().next().map(|(at, _)| *at);
        let peers = self.timers.first().map(|(at, _)| *at);
        match [queued, peers, self.hub_due()].into_iter().flatten().min() {
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

    /// Handles everything that is due now. The hub handles all arrivals before it flushes, like a server that
    /// drains its receive queue.
    pub(super) fn turn(&mut self) {
        for _ in 0..TURNS_MAX {
            self.hand_over();
            self.run_hubs();
            let now = self.now;
            let due = self.timers.iter().take_while(|(at, _)| *at <= now);
            self.touched.extend(due.map(|(_, peer)| *peer));
            while let Some(peer) = self.touched.pop_first() {
                self.wake_paths(peer);
                self.wake(peer);
                self.wake_paths(peer);
                self.set_timer(peer);
            }
            let is_due = |at: Instant| at <= self.now;
            if !self.queue.keys().next().is_some_and(|(at, _)| is_due(*at))
                && !self.hub_due().is_some_and(is_due)
            {
                return;
            }
        }
        panic!("the world runs in circles\n{}", self.transcript);
    }

    pub(super) fn push(&mut self, at: Instant, due: Due) {
        self.queue.insert((at, self.queued), due);
        self.queued += 1;
    }

    /// The next run of the hub's loop: when the hub asks for it, or when it may run again and events are
    /// held.
    fn hub_due(&self) -> Option<Instant> {
        let due = |node: &Node| {
            let comes = (!node.held.is_empty()).then_some(node.runs_at);
            let wants = node.hub.poll_timeout().map(|at| at.max(node.runs_at));
            comes.into_iter().chain(wants).min()
        };
        self.nodes.iter().filter(|node| node.died_at.is_none()).filter_map(due).min()
    }

    fn run_hubs(&mut self) {
        (0..self.nodes.len()).for_each(|node| self.run_hub(node));
    }

    fn run_hub(&mut self, node: usize) {
        if self.now < self.nodes[node].runs_at || self.nodes[node].died_at.is_some() {
            return;
        }
        for due in std::mem::take(&mut self.nodes[node].held) {
            self.hand(due);
        }
        let now = self.now;
        let hub = &mut self.nodes[node].hub;
        hub.handle_timeout(now);
        hub.flush(now);
        while let Some(output) = self.nodes[node].hub.poll_output() {
            self.obey(node, output);
        }
    }

    /// The node of a connection.
    pub(super) fn node_of(&mut self, line: Line) -> &mut Node {
        &mut self.nodes[self.peers[line.peer.0].node_of(line)]
    }

    fn hand_over(&mut self) {
        while let Some(entry) = self.queue.first_entry()
            && entry.key().0 <= self.now
        {
            let due = entry.remove();
            let now = self.now;
            let (Due::Accepted(line) | Due::ToHub(line, _) | Due::HubHung(line)) = &due else {
                self.hand(due);
                continue;
            };
            let node = self.node_of(*line);
            if node.died_at.is_some() {
                continue;
            }
            if now < node.runs_at || !node.held.is_empty() {
                node.held.push(due);
            } else {
                self.hand(due);
            }
        }
    }

    fn hand(&mut self, due: Due) {
        let now = self.now;
        match due {
            Due::Accepted(line) => {
                let kind = self.peers[line.peer.0].link.kind;
                // The lower bits identify neighbours; clients here are not neighbours.
                let origin = Origin((1 + line.peer.0 as u64) << 16);
                let hub = &mut self.node_of(line).hub;
                hub.handle_connected(connection(line), kind, origin, now);
                if kind.has_datagrams() {
                    let [_, seen] = Self::addresses(line.peer);
                    hub.handle_address(connection(line), seen, now);
                }
            }
            Due::Connected(line) if self.is_present(line) => self.connected(line.peer),
            Due::Unreached(line) if self.is_present(line) => self.unreached(line.peer),
            Due::ToHub(line, packet) => self.node_of(line).hub.handle_packet(connection(line), packet, now),
            Due::ToPeer(line, packet) if self.is_present(line) => self.take_packet(line.peer, packet),
            Due::HubHung(line) => self.node_of(line).hub.handle_disconnected(connection(line), now),
            Due::PeerHung(line, reason) if self.is_present(line) => self.hang_up(line.peer, &reason),
            due @ (Due::Connected(line)
            | Due::Unreached(line)
            | Due::ToPeer(line, _)
            | Due::PeerHung(line, _))
                if self.is_claim(line) =>
            {
                self.hear_claim(line, due);
            }
            Due::Rosters => self.write_rosters(),
            Due::Undecided(claim) => self.end_early_claim(&claim),
            // Events of a connection that its client has dropped.
            Due::Connected(_) | Due::Unreached(_) | Due::ToPeer(..) | Due::PeerHung(..) => {}
            Due::Frame(peer) => self.frame(peer),
            due
            @ (Due::PathConnected(..) | Due::PathFailed(..) | Due::PathHung(..) | Due::PathPacket(..)) => {
                self.hear_between(due);
            }
        }
    }

    /// A client's present connection.
    pub(super) fn line(&self, peer: PeerId) -> Line {
        Line { peer, number: self.peers[peer.0].main }
    }

    fn is_present(&self, line: Line) -> bool {
        self.peers[line.peer.0].main == line.number
    }

    /// Begins another connection of a client.
    pub(super) fn dial(&mut self, peer: PeerId) {
        let now = self.now;
        let it = &mut self.peers[peer.0];
        it.wire = Wire::Pending;
        (it.held_up, it.held_down) = (Vec::new(), Vec::new());
        it.main = it.begin_line(it.node);
        let line = self.line(peer);
        self.reach(line, now);
    }

    /// Lets a connection stand or fail in a while.
    pub(super) fn reach(&mut self, line: Line, now: Instant) {
        let it = &self.peers[line.peer.0];
        let (latency, is_unplugged, kind) = (it.link.latency(), it.is_unplugged, it.link.kind);
        let is_dead = self.node_of(line).died_at.is_some();
        if is_unplugged || is_dead && kind.has_datagrams() {
            self.push(now + DIAL_PATIENCE, Due::Unreached(line));
        } else if is_dead {
            self.push(now + latency * 2, Due::Unreached(line));
        } else {
            self.push(now + latency, Due::Accepted(line));
            self.push(now + latency * 2, Due::Connected(line));
        }
    }

    fn unreached(&mut self, peer: PeerId) {
        self.touched.insert(peer);
        let it = &mut self.peers[peer.0];
        it.wire = Wire::Down;
        let clock = it.clock(self.now);
        if let End::Game(room) = &mut it.end {
            room.attempt_failed("a test unplugged it", clock);
        }
    }

    fn connected(&mut self, peer: PeerId) {
        self.touched.insert(peer);
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Pending {
            it.wire = Wire::Up;
            if let End::Game(room) = &mut it.end
                && room.wants_paths()
            {
                let [own, _] = Self::addresses(peer);
                let key = [u8::try_from(peer.0).expect("a world has few clients"); 32];
                room.offer_paths(key, vec![own]);
            }
            it.end.connected(it.link.kind, it.clock(self.now));
        }
    }

    fn take_packet(&mut self, peer: PeerId, packet: Packet) {
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Silent && packet.carrier != Carrier::Datagram {
            it.held_down.push(packet);
        } else if it.wire == Wire::Up {
            self.touched.insert(peer);
            self.transcript.hash(&packet.bytes);
            it.received.push(packet.clone());
            it.end.handle_packet(packet, it.clock(self.now));
        }
    }

    fn hang_up(&mut self, peer: PeerId, reason: &str) {
        self.touched.insert(peer);
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Up {
            it.wire = Wire::Down;
            it.end.disconnected(reason, it.clock(self.now));
        }
    }

    /// Breaks a client's connection and notifies the client.
    pub(super) fn reset(&mut self, peer: PeerId) {
        self.touched.insert(peer);
        let it = &mut self.peers[peer.0];
        it.wire = Wire::Down;
        it.end.disconnected("reset by a test", it.clock(self.now));
    }

    fn frame(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        if it.is_crashed {
            return;
        }
        if !it.is_stalled {
            self.touched.insert(peer);
            for event in it.frame(self.now) {
                self.transcript.event(self.now, peer, &event);
            }
        }
        self.push(self.now + FRAME, Due::Frame(peer));
    }

    /// Lets a client's driver handle what is due.
    fn wake(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        if it.is_crashed {
            return;
        }
        let clock = it.clock(self.now);
        if it.poll_timeout().is_some_and(|due| due <= self.now) {
            it.end.handle_timeout(clock);
        }
        self.wake_claim(peer, clock);
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Pending {
            return;
        }
        if it.wire == Wire::Down && self.follow_redirect(peer) {
            return self.dial(peer);
        }
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Down && it.end.next_attempt().is_some_and(|at| at <= clock) {
            if let End::Game(room) = &mut it.end {
                room.attempt_begins(clock);
            }
            return self.dial(peer);
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
        let lets_go = it.wire == Wire::Silent && it.end.next_attempt().is_some();
        if it.end.is_finished() && (it.wire == Wire::Up || lets_go) {
            // A silent wire carries nothing, not even the end of the connection.
            let (is_heard, at) = (it.wire == Wire::Up, it.up.end(self.now));
            it.wire = Wire::Down;
            let line = self.line(peer);
            if is_heard {
                self.push(at, Due::HubHung(line));
            }
        }
    }

    /// Updates a client's timer.
    fn set_timer(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        let due = it.poll_timeout();
        let older = std::mem::replace(&mut it.timer, due);
        if older != due {
            older.map(|older| self.timers.remove(&(older, peer)));
            self.timers.extend(due.map(|due| (due, peer)));
        }
    }

    pub(super) fn carry_up(&mut self, peer: PeerId, packet: Packet) {
        let it = &mut self.peers[peer.0];
        if it.wire == Wire::Silent && packet.carrier != Carrier::Datagram {
            it.held_up.push(packet);
            return;
        }
        if it.wire != Wire::Up {
            return;
        }
        let line = self.line(peer);
        self.carry_on(line, packet);
    }

    /// Carries a packet to the hub of a connection.
    pub(super) fn carry_on(&mut self, line: Line, packet: Packet) {
        self.transcript.hash(&packet.bytes);
        let arrivals = self.peers[line.peer.0].up.arrivals(packet.carrier, packet.bytes.len(), self.now);
        for at in arrivals {
            self.push(at, Due::ToHub(line, packet.clone()));
        }
    }

    /// Sends the stream packets held during a silence.
    pub(super) fn carry_held(&mut self, peer: PeerId) {
        let it = &mut self.peers[peer.0];
        let (up, down) = (std::mem::take(&mut it.held_up), std::mem::take(&mut it.held_down));
        up.into_iter().for_each(|packet| self.carry_up(peer, packet));
        down.into_iter().for_each(|packet| self.take_packet(peer, packet));
    }

    fn obey(&mut self, node: usize, output: Output) {
        match output {
            Output::Packet { connection, packet } => {
                let line = line_of(connection);
                let it = &mut self.peers[line.peer.0];
                it.traffic.down += 1;
                it.traffic.down_bytes += packet.bytes.len() as u64;
                for at in it.down.arrivals(packet.carrier, packet.bytes.len(), self.now) {
                    self.push(at, Due::ToPeer(line, packet.clone()));
                }
            }
            Output::Close { connection, reason } => {
                let line = line_of(connection);
                let at = self.peers[line.peer.0].down.end(self.now);
                self.push(at, Due::PeerHung(line, reason.to_owned()));
            }
            Output::Recorded { room, bytes } => self.disk.append(room, &bytes, self.now),
            Output::Kept { code, number, entry, .. } => self.kept.push((code, number, entry)),
            question @ (Output::Locate { .. }
            | Output::Enter { .. }
            | Output::Claim { .. }
            | Output::Left { .. }) => self.answer(node, question),
            Output::Event(hub_event) => {
                self.transcript.line(self.now, "hub", format_args!("{hub_event:?}"));
                self.hub_events.push(hub_event);
            }
        }
    }
}
