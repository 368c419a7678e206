//! What must not be, and what must come about.

use crate::node::{Life, Node};
use crate::world::{Guards, World};
use parlor_hub::cluster::ownership::{RoomCopy, Row};
use parlor_hub::cluster::tenure::Incarnation;

impl World {
    /// L1. Whether two copies that serve have one term.
    pub fn shares_a_term(&self) -> bool {
        self.is_shared(|node, copy| (node.life != Life::Down).then(|| copy.term().0))
    }

    /// L2. Whether a node that runs decides under a term that is not its own.
    pub fn decides_wrongly(&self) -> bool {
        (0..).zip(&self.nodes).filter(|(_, node)| node.life == Life::Up).any(|(number, node)| {
            let decides = node.copy.as_ref().and_then(|copy| copy.decides(node.tenure.standing()));
            let Some(term) = decides else { return false };
            let Row { term: present, owner, .. } = self.store.room;
            let is_owner = owner.node == number && Some(owner.incarnation) == node.tenure.incarnation();
            !(is_owner && term == present)
        })
    }

    /// L3. Whether the store writes the effect of a node that does not own the room.
    pub fn writes_wrongly(&self, guards: &Guards) -> bool {
        let serving = (0..).zip(&self.nodes).filter_map(|(number, node)| {
            let copy = node.copy.as_ref().filter(|copy| copy.serves())?;
            Some((number, copy.term()))
        });
        let Row { term: present, owner, .. } = self.store.room;
        serving
            .filter(|(number, term)| self.store.takes_effect(*number, *term, guards))
            .any(|(number, term)| owner.node != number || term != present)
    }

    /// L4. Whether two copies go on with one session of a member.
    pub fn doubles_a_session(&self) -> bool {
        self.is_shared(|node, _| Some(node.session.into()))
    }

    /// Whether the room has moved to another node with its session.
    pub fn has_moved(&self) -> bool {
        self.nodes.iter().skip(1).any(|node| node.session == 0 && self.is_owned(node))
    }

    /// Whether the room goes on at another node with a new session.
    pub fn is_reopened(&self) -> bool {
        self.nodes.iter().skip(1).any(|node| node.session > 0 && self.is_owned(node))
    }

    /// Whether a node that was declared gone has its room again, with the session.
    pub fn is_reclaimed(&self) -> bool {
        let node = &self.nodes[0];
        node.session == 0 && node.tenure.incarnation() > Some(Incarnation(1)) && self.is_owned(node)
    }

    fn is_owned(&self, node: &Node) -> bool {
        let decides = node.copy.as_ref().and_then(|copy| copy.decides(node.tenure.standing()));
        node.life == Life::Up && decides == Some(self.store.room.term)
    }

    fn is_shared(&self, what: impl Fn(&Node, &RoomCopy) -> Option<u64>) -> bool {
        let of =
            |node: &Node| node.copy.as_ref().filter(|copy| copy.serves()).and_then(|copy| what(node, copy));
        let all: Vec<u64> = self.nodes.iter().filter_map(of).collect();
        (1..all.len()).any(|at| all[..at].contains(&all[at]))
    }
}
