//! Memory use of a world, its readers and its writers. It is computed from the capacities of their lists, so
//! that the bound on what a peer can make an end hold is true. The time depends only on the number of
//! members.

use super::brief::Brief;
use super::meta::Metas;
use super::receiver_state::ReceiverState;
use super::replica::Place;
use super::store::Slot;
use super::{Publisher, Replica, Views, World};
use parlor_proto::MemberId;

/// Overhead of an allocation.
pub(super) const ALLOCATION_BYTES: usize = 16;

impl World {
    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(super::column::Column::memory_bytes).sum();
        let slots = self.slots.capacity() * size_of::<Slot>()
            + self.metas.capacity() * size_of::<Metas>()
            + self.briefs.capacity() * size_of::<Brief>();
        let lists = self.log.memory_bytes()
            + self.dirty.capacity() * size_of::<u16>()
            + self.free.capacity() * size_of::<(u16, u32)>();
        columns + slots + lists + self.blob_bytes + self.meta_bytes + self.tables_bytes()
    }
}

impl Replica {
    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        self.world.memory_bytes()
            + self.places.capacity() * size_of::<Place>()
            + self.tombstones.capacity() * size_of::<(u16, u64, u32)>()
            + self.wholes.memory_bytes()
    }
}

impl Publisher {
    /// Bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Publisher>()
            + self.known.capacity() * size_of::<ReceiverState>()
            + self.present.memory_bytes()
            + self.pending.memory_bytes()
            + self.flights.memory_bytes()
            + self.plan.memory_bytes()
            + self.own.memory_bytes()
            + self.chosen.capacity() * size_of::<(u32, u16)>()
    }
}

impl Views {
    /// Bytes of memory in use.
    pub fn memory_bytes(&self, world: &World) -> usize {
        let publishers: usize = self.members.iter().map(|(_, publisher)| publisher.memory_bytes()).sum();
        let members = self.members.capacity() * size_of::<(MemberId, Publisher)>();
        let interest = self.interest.memory_bytes() + world.meta_bytes;
        publishers + members + interest + self.encodings.memory_bytes(world)
    }
}
