//! A replica of everything goes back to the newest tick of which it has all.
//!
//! Packets are lost, so when an authority dies its hub may have some entities as of its last ticks and others
//! as of earlier ones. Mostly that is as good as any state; but what a message did may then be there in part.
//! A packet that says that it was the last of its tick, with all from its floor on, shows that the replica
//! had that tick as it was; what entities were at that tick is in their histories. Each that became something
//! else since becomes that again, as a row of a tick of its own, so whoever builds on what it was meanwhile
//! is told of it like of any other change.

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

/// A packet that said that it was the last of its tick.
#[derive(Clone, Copy, Debug)]
struct Last {
    number: u64,
    floor: u64,
    tick: u32,
}

/// Ticks of which a replica had everything, or will have once what is late has come.
#[derive(Clone, Debug, Default)]
pub(super) struct Wholes {
    /// By ascending number, of the last [`RETREAT_TICKS_MAX`] ticks.
    last: VecDeque<Last>,
    /// The tick at which it was made the truth.
    truth: Option<u32>,
}

impl Wholes {
    /// A packet was the last of `tick`.
    pub(super) fn note(&mut self, number: u64, floor: u64, tick: u32, newest: u32) {
        let at = self.last.partition_point(|last| last.number < number);
        self.last.insert(at, Last { number, floor, tick });
        while self.last.front().is_some_and(|last| last.tick + RETREAT_TICKS_MAX < newest) {
            self.last.pop_front();
        }
    }

    /// Bytes of memory that it has.
    pub(super) fn memory_bytes(&self) -> usize {
        self.last.capacity() * size_of::<Last>()
    }

    /// What is held at `tick` is the truth; packets of older numbers do not matter any more.
    pub(super) fn begin(&mut self, truth: Option<u32>) {
        self.last.clear();
        self.truth = truth;
    }

    /// The newest tick of which nothing is missing, if it is not too old.
    fn newest(&self, window: &Window, now: u32) -> Option<u32> {
        let has_all = |last: &&Last| window.has_all(last.floor, last.number);
        let told = self.last.iter().rev().find(has_all).map(|last| last.tick);
        told.or(self.truth).filter(|tick| tick + RETREAT_TICKS_MAX >= now)
    }
}

/// What an entity was.
struct Was {
    meta: Meta,
    components: Vec<(ComponentId, Vec<i32>, Vec<Bytes>)>,
}

impl Replica {
    /// The newest tick of which nothing is missing, whatever is missing since; `None` if that is more than
    /// [`RETREAT_TICKS_MAX`] ago. For a replica of everything.
    pub fn whole(&self) -> Option<Tick> {
        self.wholes.newest(&self.window, self.world.newest_tick()).map(Tick)
    }

    /// A component of an entity at a tick of its history; `None` if it had none then, as far as is known.
    pub fn read_row_at(&self, entity: EntityId, component: ComponentId, at: Tick) -> Option<Row<'_>> {
        self.world.entity_at(entity.slot).filter(|there| *there == entity)?;
        let meta = self.world.meta_at(entity.slot, at.0).filter(|meta| meta.mask & component.bit() != 0)?;
        let form = self.world.columns[component.index()].at(entity.slot, at.0.max(meta.label))?;
        Some((form.lanes, form.blobs))
    }

    /// Goes back to a tick that was [whole](Self::whole): whatever became something else since is what it was
    /// then, under one tick more than the newest. An entity of which that is not known, because its history
    /// takes too much, stays as it is.
    pub fn go_back(&mut self, to: Tick) {
        let label = self.world.newest_tick() + 1;
        let slots = u16::try_from(self.world.slots.len()).unwrap_or(u16::MAX);
        let changed: Vec<u16> = (0..slots).filter(|slot| self.has_changed_since(*slot, to.0)).collect();
        self.advance(label);
        for slot in changed {
            match self.was_at(slot, to.0) {
                Some(was) => {
                    // It fitted then, and what else there is since fits beside it or stays.
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

    /// Whether an entity came, went or changed after a tick.
    fn has_changed_since(&self, slot: u16, tick: u32) -> bool {
        let place = self.world.slot(slot);
        if place.live {
            return place.label > tick;
        }
        self.tombstones.iter().any(|(tombstone, number, since)| {
            *tombstone == slot && *since > tick && self.places[usize::from(slot)].life == Some(*number)
        })
    }

    /// What the entity of a slot was at a tick; `None` if there was none, or not all of it is known.
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
