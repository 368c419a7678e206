//! Rolls a full replica back to its newest complete tick.
//!
//! Packets are lost, so when an authority dies, its hub may have some entities as of its last ticks and
//! others as of earlier ones. Usually that is acceptable, but the effect of a message may then be there only
//! in part. A tick is complete if its last packet arrived, with all packets from that one's floor on. The
//! entities' state at that tick is in their histories. Each entity that changed since is set back to that
//! state, as a row of a new tick. Receivers that have the discarded state get it like any other change.

use super::meta::Meta;
use super::ring::Form;
use super::store::Row;
use super::window::Window;
use super::{EntityId, Replica, StreamError};
use crate::limits::RETREAT_TICKS_MAX;
use crate::schema::ComponentId;
use bytes::Bytes;
use parlor_proto::Tick;
use std::collections::VecDeque;

/// A packet marked as the last of its tick.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    floor: u64,
    tick: u32,
}

/// Ticks that are complete at a replica, or will be once late packets arrive.
#[derive(Clone, Debug, Default)]
pub(super) struct Wholes {
    /// By ascending number, for the last [`RETREAT_TICKS_MAX`] ticks.
    last: VecDeque<Last>,
    /// The tick at which its state was declared complete.
    truth: Option<u32>,
}

impl Wholes {
    /// Records that a packet was the last of `tick`.
    pub(super) fn note(&mut self, number: u64, floor: u64, tick: u32, newest: u32) {
        let at = self.last.partition_point(|last| last.number < number);
        self.last.insert(at, Last { number, floor, tick });
        while self.last.front().is_some_and(|last| last.tick.saturating_add(RETREAT_TICKS_MAX) < newest) {
            self.last.pop_front();
        }
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.last.capacity() * size_of::<Last>()
    }

    /// Declares the state at `truth` complete; packets with older numbers no longer matter.
    pub(super) fn begin(&mut self, truth: Option<u32>) {
        self.last.clear();
        self.truth = truth;
    }

    /// The newest complete tick, if it is not too old.
    fn newest(&self, window: &Window, now: u32) -> Option<u32> {
        let has_all = |last: &&Last| window.has_all(last.floor, last.number);
        let told = self.last.iter().rev().find(has_all).map(|last| last.tick);
        told.or(self.truth).filter(|tick| tick.saturating_add(RETREAT_TICKS_MAX) >= now)
    }
}

/// The state of an entity at a tick.
struct Was {
    meta: Meta,
    components: Vec<(ComponentId, Vec<i32>, Vec<Bytes>)>,
}

impl Replica {
    /// The newest complete tick, even if packets are missing since; `None` if it is more than
    /// [`RETREAT_TICKS_MAX`] ago. For a replica of everything.
    pub fn whole(&self) -> Option<Tick> {
        self.wholes.newest(&self.window, self.world.newest_tick()).map(Tick)
    }

    /// Returns a component of an entity at a tick of its history; `None` if it had none then, or it is
    /// unknown.
    pub fn read_row_at(&self, entity: EntityId, component: ComponentId, at: Tick) -> Option<Row<'_>> {
        self.world.entity_at(entity.slot).filter(|there| *there == entity)?;
        let meta = self.world.meta_at(entity.slot, at.0).filter(|meta| meta.mask & component.bit() != 0)?;
        let form = self.world.columns[component.index()].at(entity.slot, at.0.max(meta.label))?;
        Some((form.lanes, form.blobs))
    }

    /// Rolls back to a [whole](Self::whole) tick: restores each entity that changed since, under a label one
    /// above the newest tick. An entity whose state at that tick is unknown, because its history was too
    /// large, stays as it is.
    pub fn go_back(&mut self, to: Tick) {
        let label = self.world.newest_tick().saturating_add(1);
        let slots = u16::try_from(self.world.slots.len()).unwrap_or(u16::MAX);
        let changed: Vec<u16> = (0..slots).filter(|slot| self.has_changed_since(*slot, to.0)).collect();
        self.advance(label);
        for slot in changed {
            match self.was_at(slot, to.0) {
                Some(was) => {
                    // It was within the limits then; if it does not fit beside what was added since, the
                    // entity stays as it is.
                    let _: Result<(), StreamError> = self.become_again(slot, was, label);
                }
                None if self.world.meta_at(slot, to.0).is_none() => {
                    self.world.despawn_slot(slot);
                    self.clear_place(slot);
                }
                None => {}
            }
        }
    }

    /// Whether an entity was spawned, despawned or changed after a tick.
    fn has_changed_since(&self, slot: u16, tick: u32) -> bool {
        let place = self.world.slot(slot);
        if place.live {
            return place.label > tick;
        }
        self.tombstones.iter().any(|(tombstone, number, since)| {
            *tombstone == slot && *since > tick && self.places[usize::from(slot)].life == Some(*number)
        })
    }

    /// Returns the state of a slot's entity at a tick; `None` if there was none, or it is not completely
    /// known.
    fn was_at(&self, slot: u16, tick: u32) -> Option<Was> {
        let meta = self.world.meta_at(slot, tick)?.clone();
        let components = ComponentId::in_mask(meta.mask).map(|id| {
            let form = self.world.columns[id.index()].at(slot, tick)?;
            Some((id, form.lanes.to_vec(), form.blobs.to_vec()))
        });
        Some(Was { components: components.collect::<Option<_>>()?, meta })
    }

    fn become_again(&mut self, slot: u16, was: Was, label: u32) -> Result<(), StreamError> {
        let Was { meta, components } = was;
        for (id, lanes, blobs) in &components {
            let form = Form { lanes, blobs };
            self.world.adopt_version(slot, *id, label, form)?;
            self.world.adopt_present(slot, *id, form)?;
        }
        let meta = Meta { label, ..meta };
        self.world.adopt_meta(slot, meta.clone());
        self.world.adopt_entity(slot, &meta);
        self.world.log.push(slot);
        self.places[usize::from(slot)].rows.insert(label);
        Ok(())
    }
}
