//! A cluster: several hubs, the store that they share, and clients that go from one to the other.

use super::{Config, Due, Node, Sim};
use crate::link::Link;
use crate::peer::{End, Line, PeerId, Wire};
use bytes::Bytes;
use parlor_client_core::{Options, RoomCore};
use parlor_hub::cluster::pass::PassKey;
use parlor_hub::cluster::placement::OpenNode;
use parlor_hub::cluster::tenure::Standing;
use parlor_hub::{
    ClaimAnswer, ClaimedRoom, ClusterConfig, ClusterView, Entered, Located, Output, RoomQuery, RoomUid,
    Unmovable,
};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{ConnectionId, Instant, LinkKind, RoomCode};
use std::collections::BTreeMap;
use std::time::Duration;

/// When the other nodes know that a node is dead.
const DEATH_SEEN: Duration = Duration::from_millis(500);
/// How long a claim waits for a room that is about to move to its node.
const UNDECIDED_MAX: Duration = Duration::from_secs(1);
/// Interval at which nodes write who is in their rooms.
const ROSTERS_EVERY: Duration = Duration::from_secs(1);
/// Rooms of a node at most.
const ROOMS_MAX: usize = 64;

/// A room's row in the store.
#[derive(Clone, Debug)]
struct Row {
    uid: RoomUid,
    term: u64,
    node: usize,
    kind: RoomKind,
    setup: Bytes,
    roster: Bytes,
    /// Of a room that was given to its node, until that has it.
    snapshot: Bytes,
}

/// The store of a cluster: it answers at once, and forgets nothing.
#[derive(Debug, Default)]
pub(super) struct Store {
    rows: BTreeMap<RoomCode, Row>,
    /// Each owner that a room has had: code, uid, term, node.
    owners: Vec<(RoomCode, RoomUid, u64, usize)>,
    /// Claims of rooms whose owners live: they wait for a move.
    early: Vec<EarlyClaim>,
}

/// A claim that came before its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EarlyClaim {
    node: usize,
    connection: ConnectionId,
    room: ClaimedRoom,
}

fn address(node: usize) -> String {
    format!("node{node}:1")
}

/// Clusters.
impl Sim {
    /// A world with this many nodes, which keep seats for `grace`.
    pub fn cluster(seed: u64, nodes: usize, grace: Duration) -> Self {
        let mut drawn = [0; 32];
        drawn[..8].copy_from_slice(&seed.to_le_bytes());
        let pass_key = Some(PassKey::of(b"a cluster of the simulator"));
        let cluster = Some(ClusterConfig { pass_key, ..ClusterConfig::default() });
        let config = Config { grace, cluster, ..Config::new(drawn) };
        let mut sim = Sim::with_hub(seed, config.clone());
        for node in 1..nodes {
            drawn[31] = u8::try_from(node).expect("they are few");
            sim.nodes.push(Node::new(Config { seed: drawn, ..config.clone() }));
        }
        sim.tell_views();
        sim.push(sim.now + ROSTERS_EVERY, Due::Rosters);
        sim
    }

    /// As [`enter`](Self::enter), at a node.
    pub fn enter_node(&mut self, options: Options, link: Link, node: usize) -> PeerId {
        self.enter_at(options, link, node)
    }

    /// Kills a node's process: its rooms and connections are gone. WebSockets break, other links fall silent.
    pub fn kill(&mut self, node: usize) {
        self.transcript.line(self.now, "hub", format_args!("node {node} is killed"));
        self.nodes[node] = Node { died_at: Some(self.now), ..Node::new(self.config.clone()) };
        self.store.early.retain(|early| early.node != node);
        for peer in (0..self.peers.len()).map(PeerId) {
            let it = &self.peers[peer.0];
            if it.link.kind == LinkKind::WebSocket && it.wire == Wire::Up && it.node == node {
                self.reset(peer);
            }
        }
        self.tell_views();
        self.turn();
    }

    /// Tells the members of a room that it is about to move to a node.
    ///
    /// # Errors
    /// Why it is not.
    pub fn announce_move(&mut self, code: RoomCode, to: usize) -> Result<(), Unmovable> {
        let owner = self.owner(code);
        let announced = self.nodes[owner].hub.announce_move(code, &address(to), self.now);
        self.transcript.line(self.now, "store", format_args!("{code} moves to node {to}: {announced:?}"));
        self.turn();
        announced
    }

    /// Seals a room whose move was announced, and gives it to the node. If the store does not take it, the room goes on
    /// where it is.
    ///
    /// # Errors
    /// Why it is not sealed.
    pub fn give(
        &mut self,
        code: RoomCode,
        to: usize,
        (is_taken, takes_ms): (bool, u64),
    ) -> Result<(), Unmovable> {
        let owner = self.owner(code);
        let snapshot = self.nodes[owner].hub.seal(code, self.now)?;
        // The store takes a while.
        self.run_for(takes_ms);
        let now = self.now;
        let row = self.store.rows.get_mut(&code).expect("it is open");
        row.term += 1;
        if is_taken {
            (row.node, row.snapshot) = (to, snapshot);
            self.store.owners.push((code, row.uid, row.term, to));
            self.nodes[owner].hub.move_room(code, address(to), now).expect("it is there");
        } else {
            self.nodes[owner].hub.unseal(code, row.term, now);
        }
        self.transcript.line(now, "store", format_args!("{code} is given to node {to}: {is_taken}"));
        let given = |early: &EarlyClaim| is_taken && (early.node, early.room.code) == (to, code);
        let early: Vec<EarlyClaim> = self.store.early.extract_if(.., |early| given(early)).collect();
        early.into_iter().for_each(|early| self.answer_claim(early, true));
        self.turn();
        Ok(())
    }

    fn owner(&self, code: RoomCode) -> usize {
        self.store.rows.get(&code).expect("it is open").node
    }

    /// The node that a client is connected to or dials.
    pub fn node(&self, peer: PeerId) -> usize {
        self.peers[peer.0].node
    }

    /// Whether a node lives.
    pub fn is_alive(&self, node: usize) -> bool {
        self.nodes[node].died_at.is_none()
    }

    /// The owners that rooms have had, in the order of the store: code, term, node.
    pub fn owners(&self) -> impl Iterator<Item = (RoomCode, u64, usize)> {
        self.store.owners.iter().map(|(code, _, term, node)| (*code, *term, *node))
    }

    /// Tells the nodes of each other.
    fn tell_views(&mut self) {
        let alive: Vec<bool> = self.nodes.iter().map(|node| node.died_at.is_none()).collect();
        for (me, node) in self.nodes.iter_mut().enumerate() {
            let others = alive.iter().enumerate().filter(|(other, is_alive)| **is_alive && *other != me);
            // Busier than this one, which keeps the rooms that it opens.
            let others = others.map(|(other, _)| OpenNode { address: address(other), load_permille: 1_000 });
            let view = ClusterView {
                standing: Standing::Held,
                load_permille: 0,
                others: others.collect(),
                rooms_elsewhere: 0,
            };
            node.hub.handle_view(view, self.now);
        }
    }

    pub(super) fn write_rosters(&mut self) {
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.died_at.is_none()) {
            let page = node.hub.rooms(&RoomQuery { limit: ROOMS_MAX, rosters: true, ..RoomQuery::default() });
            for (room, roster) in page.rooms.iter().zip(page.rosters) {
                let row = self.store.rows.get_mut(&room.code).filter(|row| row.node == number);
                if let Some((row, roster)) = row.zip(roster) {
                    row.roster = roster.bytes;
                }
            }
        }
        self.push(self.now + ROSTERS_EVERY, Due::Rosters);
    }

    /// Answers a hub as its server does, from the store.
    pub(super) fn answer(&mut self, node: usize, question: Output) {
        let now = self.now;
        match question {
            Output::Locate { connection, code, .. } => {
                let located = match self.store.rows.get(&code) {
                    None => Located::Nowhere,
                    Some(row) if row.node == node => Located::Here,
                    Some(row) if self.nodes[row.node].died_at.is_none() => Located::At(address(row.node)),
                    Some(_) => Located::Later,
                };
                self.nodes[node].hub.handle_located(connection, located, now);
            }
            Output::Enter { connection, room } => {
                let entered =
                    if self.store.rows.contains_key(&room.code) { Entered::Taken } else { Entered::Done };
                if entered == Entered::Done {
                    let (uid, setup) = (room.uid, room.setup);
                    let row = Row {
                        uid,
                        term: 1,
                        node,
                        kind: room.kind,
                        setup,
                        roster: Bytes::new(),
                        snapshot: Bytes::new(),
                    };
                    self.store.rows.insert(room.code, row);
                    self.store.owners.push((room.code, uid, 1, node));
                }
                self.nodes[node].hub.handle_entered(connection, entered, now);
            }
            Output::Claim { connection, room } => {
                self.answer_claim(EarlyClaim { node, connection, room }, false);
            }
            Output::Left { code, uid } => {
                let is_own = self.store.rows.get(&code).is_some_and(|row| (row.uid, row.node) == (uid, node));
                if is_own {
                    self.store.rows.remove(&code);
                }
            }
            other => unreachable!("it is no question to the store: {other:?}"),
        }
    }

    /// Gives a room to a node that asks for it.
    fn take(&mut self, code: RoomCode, node: usize) -> ClaimAnswer {
        let Some(row) = self.store.rows.get_mut(&code) else { return ClaimAnswer::Gone };
        (row.node, row.term) = (node, row.term + 1);
        self.store.owners.push((code, row.uid, row.term, node));
        let (setup, roster) = (row.setup.clone(), row.roster.clone());
        ClaimAnswer::Reopened { term: row.term, setup, roster, snapshot: std::mem::take(&mut row.snapshot) }
    }

    /// Answers a claim that has waited long enough.
    pub(super) fn end_early_claim(&mut self, early: &EarlyClaim) {
        let late = self.store.early.extract_if(.., |other| other == early).next();
        late.into_iter().for_each(|late| self.answer_claim(late, true));
    }

    fn answer_claim(&mut self, claim: EarlyClaim, has_waited: bool) {
        let now = self.now;
        let EarlyClaim { node, connection, room } = &claim;
        let (node, connection) = (*node, *connection);
        let is_dead = |died_at: Option<Instant>| died_at.is_some_and(|at| at + DEATH_SEEN <= now);
        let row = self.store.rows.get_mut(&room.code).filter(|row| row.uid == room.uid);
        let answer = match row {
            None => ClaimAnswer::Gone,
            Some(row) if row.node == node && !row.snapshot.is_empty() => self.take(room.code, node),
            Some(row) if row.node == node => ClaimAnswer::Here,
            Some(row) if self.nodes[row.node].died_at.is_none() && row.term > room.term => {
                ClaimAnswer::At(address(row.node))
            }
            Some(row) if self.nodes[row.node].died_at.is_none() && !has_waited => {
                self.push(now + UNDECIDED_MAX, Due::Undecided(claim.clone()));
                self.store.early.push(claim);
                return;
            }
            Some(row)
                if is_dead(self.nodes[row.node].died_at)
                    && (row.kind == RoomKind::Match || room.hosts.is_some() || !row.snapshot.is_empty()) =>
            {
                self.take(room.code, node)
            }
            Some(_) => ClaimAnswer::Later,
        };
        self.transcript.line(now, "store", format_args!("node {node}, claim of {}: {answer:?}", room.member));
        self.nodes[node].hub.handle_claimed(connection, answer, now);
    }
}

/// Clients.
impl Sim {
    pub(super) fn is_claim(&self, line: Line) -> bool {
        self.peers[line.peer.0].claim == Some(line.number)
    }

    /// Follows a redirect of the hub. Returns whether the client must dial at once.
    pub(super) fn follow_redirect(&mut self, peer: PeerId) -> bool {
        let it = &mut self.peers[peer.0];
        let End::Game(room) = &mut it.end else { return false };
        let Some(address) = room.take_redirect() else { return false };
        it.node = Self::node_at(&address, it.node);
        room.next_attempt().is_none() && room.closed().is_none()
    }

    fn node_at(address: &str, own: usize) -> usize {
        let number = address.strip_prefix("node").and_then(|rest| rest.split(':').next());
        number.and_then(|number| number.parse().ok()).unwrap_or(own)
    }

    /// Begins, carries and ends a client's claim.
    pub(super) fn wake_claim(&mut self, peer: PeerId, clock: Instant) {
        let now = self.now;
        let it = &mut self.peers[peer.0];
        let End::Game(room) = &mut it.end else { return };
        if let Some(number) = it.claim.filter(|_| !room.is_claiming()) {
            it.claim = None;
            self.push(now, Due::HubHung(Line { peer, number }));
        }
        let it = &mut self.peers[peer.0];
        let End::Game(room) = &mut it.end else { return };
        if room.next_claim().is_some_and(|at| at <= clock)
            && let Some(address) = room.claim_begins()
        {
            let node = Self::node_at(&address, it.node);
            if node == it.node && !room.claims_own() {
                room.claim_failed("the room's server has the room", clock);
            } else {
                let number = it.begin_line(node);
                it.claim = Some(number);
                self.reach(Line { peer, number }, now);
            }
        }
        while let Some((number, packet)) = self.next_claim_packet(peer, clock) {
            self.carry_on(Line { peer, number }, packet);
        }
    }

    fn next_claim_packet(&mut self, peer: PeerId, clock: Instant) -> Option<(u64, parlor_proto::Packet)> {
        let it = &mut self.peers[peer.0];
        let End::Game(room) = &mut it.end else { return None };
        let number = it.claim?;
        let packet = room.poll_claim_packet(clock)?;
        // A client that is cut off is so for all servers.
        (it.wire != Wire::Silent).then_some((number, packet))
    }

    /// Lets a client hear of the connection of its claim.
    pub(super) fn hear_claim(&mut self, line: Line, due: Due) {
        let peer = line.peer;
        self.touched.insert(peer);
        let (now, it) = (self.now, &mut self.peers[peer.0]);
        let clock = it.clock(now);
        let End::Game(room) = &mut it.end else { return };
        let before = room.line();
        match due {
            Due::Connected(_) => room.claim_connected(it.link.kind, clock),
            Due::ToPeer(_, packet) if it.wire != Wire::Silent => {
                self.transcript.hash(&packet.bytes);
                room.handle_claim_packet(packet, clock);
            }
            Due::Unreached(_) => claim_fails(room, &mut it.claim, "it is not reached", clock),
            Due::PeerHung(_, reason) => claim_fails(room, &mut it.claim, &reason, clock),
            _ => {}
        }
        if room.line() != before {
            let (older, was_up) = (it.main, it.wire == Wire::Up);
            (it.main, it.claim, it.wire, it.node) = (line.number, None, Wire::Up, it.node_of(line));
            (it.held_up, it.held_down) = (Vec::new(), Vec::new());
            let at = it.up.end(now);
            if was_up {
                self.push(at, Due::HubHung(Line { peer, number: older }));
            }
        }
    }
}

fn claim_fails(room: &mut RoomCore, claim: &mut Option<u64>, detail: &str, clock: Instant) {
    *claim = None;
    room.claim_failed(detail, clock);
}
