//! Passes a world from one authority to the next.
//!
//! When an authority is gone, the hub's replica is the only copy of its state.
//! [`Replica::hand_over`](super::Replica::hand_over) declares it authoritative. A
//! [`Publisher`](super::Publisher) for [`Viewer::Everything`](super::Viewer::Everything) sends it to the
//! successor. There, a replica that is settled becomes the successor's world
//! ([`Replica::into_successor`](super::Replica::into_successor)). The successor's packets build on the rows
//! that the hub has ([`Publisher::of_successor`](super::Publisher::of_successor)). So nothing is sent again,
//! and the hub's views continue without a break.

use super::{Replica, World};

/// The entity ids that an authority may have used. Its successor must not reuse them: a receiver would take
/// the new entity for the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdsUsed {
    /// The number of slots, up to [`ENTITIES_MAX`](crate::limits::ENTITIES_MAX).
    pub slots: u16,
    /// The highest generation in a slot without an entity.
    pub generation: u16,
}

impl Replica {
    /// Declares the present state authoritative, as of [`World::tick`], because its sender is gone for good.
    /// Nothing is applied until the first packet of a successor, which has this state and continues from it
    /// ([`into_successor`](Self::into_successor)). Its packets build on the present rows, whatever their
    /// numbers. Returns the ids that the successor must not reuse. For a replica of everything.
    pub fn hand_over(&mut self) -> IdsUsed {
        self.despawn_stale();
        while let Some((slot, ..)) = self.tombstones.pop_front() {
            if !self.world.slot(slot).live {
                self.clear_place(slot);
            }
        }
        (self.is_waiting, self.continues, self.last) = (true, true, None);
        self.wholes.begin(self.world.tick);
        self.settled = self.world.tick;
        self.was_settled = self.settled.or(self.was_settled);
        self.world.complete = true;
        self.world.ids_used()
    }

    /// Converts the replica to a world for its new authority, whose next commit must be newer than the
    /// world's tick. `used` is from the replica that was [handed over](Self::hand_over). This one must be a
    /// replica of everything, settled with that one. Publish the world with
    /// [`Publisher::of_successor`](super::Publisher::of_successor).
    pub fn into_successor(self, used: IdsUsed) -> World {
        let mut world = self.world;
        world.succeed(used);
        world
    }
}

impl World {
    /// The ids used so far, as far as this world knows.
    pub(super) fn ids_used(&self) -> IdsUsed {
        let gone = self.slots.iter().filter(|slot| !slot.live);
        IdsUsed {
            slots: u16::try_from(self.slots.len()).unwrap_or(u16::MAX),
            generation: gone.map(|slot| slot.generation).max().unwrap_or(0),
        }
    }

    /// Makes a replica's world writable. Its rows stay unchanged: others build on them.
    pub(super) fn succeed(&mut self, used: IdsUsed) {
        if let Some(last) = used.slots.checked_sub(1) {
            self.make_slot(last);
        }
        self.complete = true;
        self.free.clear();
        let now = self.newest_tick();
        for slot in 0..u16::try_from(self.slots.len()).unwrap_or(u16::MAX) {
            if !self.slots[usize::from(slot)].live {
                self.clear_slot(slot);
                self.slots[usize::from(slot)].generation = used.generation;
                // Members may still receive updates for the last entity of any slot.
                self.free.push_back((slot, now));
            }
        }
    }
}
