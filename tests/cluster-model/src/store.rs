//! The store: one register, with one clock.

use crate::world::Guards;
use parlor_hub::cluster::deaths::Looked;
use parlor_hub::cluster::ownership::{Owner, RoomUid, Row, Statement, Term};
use parlor_hub::cluster::tenure::{Heartbeat, Incarnation};
use std::time::Duration;

/// The only room.
pub(crate) const ROOM: RoomUid = RoomUid([7; 16]);
/// How long a lease lasts, in units of time.
pub(crate) const LEASE: u8 = 3;

/// A node's row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NodeRow {
    incarnation: Incarnation,
    is_gone: bool,
    /// What is left of the lease.
    lease: u8,
    has_lock: bool,
}

/// The rows of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub(crate) room: Row<u8>,
    /// The session of the member, in a room that was given to its owner and not taken yet.
    pub(crate) snapshot: Option<u8>,
    nodes: Vec<NodeRow>,
}

impl Store {
    /// All nodes have decided lately; the first one has the room.
    pub(crate) fn new(nodes: u8) -> Self {
        let node = NodeRow { incarnation: Incarnation(1), is_gone: false, lease: LEASE, has_lock: true };
        let owner = Owner { node: 0, incarnation: Incarnation(1) };
        let room = Row { uid: ROOM, term: Term::FIRST, owner };
        Store { room, snapshot: None, nodes: vec![node; nodes.into()] }
    }

    pub(crate) fn tick(&mut self) {
        for node in &mut self.nodes {
            node.lease = node.lease.saturating_sub(1);
        }
    }

    pub(crate) fn set_lock(&mut self, node: u8, has_lock: bool) {
        self.nodes[usize::from(node)].has_lock = has_lock;
    }

    pub(crate) fn has_lock(&self, node: u8) -> bool {
        self.nodes[usize::from(node)].has_lock
    }

    pub(crate) fn join(&mut self, node: u8) -> Incarnation {
        let row = &mut self.nodes[usize::from(node)];
        row.incarnation.0 += 1;
        (row.is_gone, row.lease) = (false, LEASE);
        row.incarnation
    }

    pub(crate) fn heartbeat(&mut self, me: Owner<u8>) -> Heartbeat {
        let row = &mut self.nodes[usize::from(me.node)];
        if row.is_gone || row.incarnation != me.incarnation {
            return Heartbeat::Gone;
        }
        row.lease = LEASE;
        Heartbeat::Renewed { drains: false, quarantine: Duration::ZERO }
    }

    /// What one node sees of the others.
    pub(crate) fn look(&self, by: u8) -> Vec<Looked<u8>> {
        let others = (0..).zip(&self.nodes).filter(|(node, row)| *node != by && !row.is_gone);
        others
            .map(|(node, row)| Looked {
                node,
                incarnation: row.incarnation,
                has_lock: row.has_lock,
                is_over: row.lease == 0,
            })
            .collect()
    }

    pub(crate) fn declare_gone(&mut self, node: u8, incarnation: Incarnation) {
        let row = &mut self.nodes[usize::from(node)];
        if row.incarnation == incarnation {
            row.is_gone = true;
            row.incarnation.0 += 1;
        }
    }

    fn is_alive(&self, owner: Owner<u8>) -> bool {
        let row = &self.nodes[usize::from(owner.node)];
        row.incarnation == owner.incarnation && !row.is_gone && row.lease > 0
    }

    /// The node in its present incarnation, if it is not gone.
    pub(crate) fn present(&self, node: u8) -> Option<Owner<u8>> {
        let row = &self.nodes[usize::from(node)];
        (!row.is_gone).then_some(Owner { node, incarnation: row.incarnation })
    }

    /// Whether a node may claim the room now.
    pub(crate) fn is_claimable(&self, me: Owner<u8>) -> bool {
        self.room.owner == me || !self.is_alive(self.room.owner)
    }

    /// Runs a statement of a node. Returns the room's term if it changed the row, and the snapshot that it took out.
    pub(crate) fn run(
        &mut self,
        statement: Statement,
        me: Owner<u8>,
        given: Option<(u8, u8)>,
        guards: &Guards,
    ) -> Option<(Term, Option<u8>)> {
        let Row { term, owner, .. } = self.room;
        let mut taken = None;
        match statement {
            Statement::Claim(seen) if seen == term && self.is_claimable(me) => {
                taken = if guards.snapshots_are_taken_once { self.snapshot.take() } else { self.snapshot };
                self.room.owner = me;
            }
            Statement::Give(seen) if seen == term && owner == me => {
                let (to, session) = given?;
                self.room.owner = self.present(to)?;
                self.snapshot = Some(session);
            }
            Statement::Keep(seen) if seen == term && owner.node == me.node => {
                self.room.owner = me;
                if !guards.keeping_raises_the_term {
                    return Some((term, None));
                }
            }
            // Rows are not lost here.
            Statement::Enter(_) => unreachable!("no room is without a row"),
            _ => return None,
        }
        self.room.term = Term(term.0 + 1);
        Some((self.room.term, taken))
    }

    /// Whether an effect of a copy at a node with this term is written.
    pub(crate) fn takes_effect(&self, node: u8, term: Term, guards: &Guards) -> bool {
        !guards.store_is_fenced || self.room.term == term && self.room.owner.node == node
    }
}
