//! How a world passes from one authority to the next.
//!
//! The hub's replica is all that is left of an authority that is gone.
//! [`Replica::hand_over`](super::Replica::hand_over) makes it the truth; a [`Publisher`](super::Publisher)
//! for [`Viewer::Everything`](super::Viewer::Everything) gives it to the successor, and a replica that is
//! settled with it becomes the world that the successor writes
//! ([`Replica::into_successor`](super::Replica::into_successor)). What the successor publishes builds on the
//! rows that the hub has ([`Publisher::of_successor`](super::Publisher::of_successor)), so nothing is sent
//! again and the hub's views go on as they were.

use super::{Replica, World};

/// Which ids of entities an authority may have given, for its successor, who must not give one of them again:
/// a receiver would take the new entity for the old one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdsUsed {
    /// How many slots there were, up to [`ENTITIES_MAX`](crate::limits::ENTITIES_MAX).
    pub slots: u16,
    /// The highest generation in a slot whose entity is gone.
    pub generation: u16,
}

impl Replica {
    /// The sender is gone for good, and what is held is all that is left: it is the truth from here on, as of
    /// [`World::tick`]. Nothing is taken in until the first packet of a successor comes, who has all of this
    /// and goes on from it ([`into_successor`](Self::into_successor)): rows stay what its packets build on,
    /// whatever their numbers. Says which ids the successor must not give again. For a replica of everything.
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

    /// The world, to go on with as its authority: its next commit must be newer than its tick. `used` is what
    /// the replica that was [handed over](Self::hand_over) said. For a replica of everything that is settled
    /// with that one; who publishes it is [`Publisher::of_successor`](super::Publisher::of_successor).
    pub fn into_successor(self, used: IdsUsed) -> World {
        let mut world = self.world;
        world.succeed(used);
        world
    }
}

impl World {
    /// Which ids were given so far, as far as this world knows.
    pub(super) fn ids_used(&self) -> IdsUsed {
        let gone = self.slots.iter().filter(|slot| !slot.live);
        IdsUsed {
            slots: u16::try_from(self.slots.len()).unwrap_or(u16::MAX),
            generation: gone.map(|slot| slot.generation).max().unwrap_or(0),
        }
    }

    /// A world that a replica held is one that is written from here on. Its rows stay what they are: others
    /// build on them.
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
                // Members may be told late of what was here last, wherever that was.
                self.free.push_back((slot, now));
            }
        }
    }
}
