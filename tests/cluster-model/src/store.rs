//! The store: one register, with one clock.

use crate::world::Guards;
use parlor_hub::cluster::deaths::Looked;
use parlor_hub::cluster::ownership::{MoveId, Owner, RoomUid, Row, Statement, Term};
use parlor_hub::cluster::tenure::{Heartbeat, Incarnation};
use std::time::Duration;

/// The only room.
pub(crate) const ROOM: RoomUid = RoomUid([7; 16]);
/// How long a lease and a reservation last, in units of time.
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
    /// The node that the room is reserved for, and what is left of the time.
    pub(crate) reserved_for: Option<(u8, u8)>,
    nodes: Vec<NodeRow>,
}

impl Store {
    /// All nodes have decided lately; the first one has the room.
    pub(crate) fn new(nodes: u8) -> Self {
        let node = NodeRow { incarnation: Incarnation(1), is_gone: false, lease: LEASE, has_lock: true };
        let owner = Owner { node: 0, incarnation: Incarnation(1) };
        let room = Row { uid: ROOM, term: Term::FIRST, owner, reserved: None };
        Store { room, reserved_for: None, nodes: vec![node; nodes.into()] }
    }

    pub(crate) fn tick(&mut self) {
        for node in &mut self.nodes {
            node.lease = node.lease.saturating_sub(1);
        }
        if let Some((_, left)) = &mut self.reserved_for {
            *left = left.saturating_sub(1);
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

    /// Runs a statement of a node. Returns the room's term if it changed the row. `concedes` says whether the owner has
    /// no copy; `to` is the node that a reservation is for.
    pub(crate) fn run(
        &mut self,
        statement: Statement,
        me: Owner<u8>,
        (concedes, to): (bool, u8),
        guards: &Guards,
    ) -> Option<Term> {
        let is_free = self.reserved_for.is_none();
        let is_reserved = |id: MoveId| self.room.reserved == Some(id);
        let is_over = self.reserved_for.is_none_or(|(_, left)| left == 0);
        let Row { term, owner, .. } = self.room;
        let (next, owner) = match statement {
            Statement::Claim(seen) if seen == term && is_over && (concedes || !self.is_alive(owner)) => {
                let skips = u64::from(!is_free && guards.claims_skip_a_term);
                (Term(term.0 + 1 + skips), me)
            }
            Statement::Reserve(seen, id) if seen == term && owner == me && is_free => {
                self.room.reserved = Some(id);
                self.reserved_for = Some((to, LEASE));
                return Some(term);
            }
            Statement::Confirm(seen, id) if seen == term && is_reserved(id) => (Term(term.0 + 1), me),
            Statement::Cancel(seen, id) if seen == term && is_reserved(id) => (term, owner),
            Statement::TakeBack(seen, id) if seen == term && is_reserved(id) && owner == me && is_over => {
                (Term(term.0 + 2), me)
            }
            // Rows are not lost here.
            Statement::Enter(_) => unreachable!("no room is without a row"),
            _ => return None,
        };
        (self.room.term, self.room.owner) = (next, owner);
        (self.room.reserved, self.reserved_for) = (None, None);
        Some(next)
    }

    /// Whether an effect of a copy at a node with this term is written.
    pub(crate) fn takes_effect(&self, node: u8, term: Term, guards: &Guards) -> bool {
        !guards.store_is_fenced || self.room.term == term && self.room.owner.node == node
    }
}
