//! Applies received rows to a world that another process writes.

use super::brief::Brief;
use super::column::Column;
use super::meta::Meta;
use super::ring::Form;
use super::store::{Slot, World, blob_len, cutoff, row_cost};
use super::{EntityId, StreamError};
use crate::limits::{REPLICA_WORLDS_MAX, WORLD_BLOB_BYTES_MAX, WORLD_LANES_MAX};
use crate::schema::ComponentId;

impl World {
    /// The number of the newest tick, 0 before the first.
    pub(super) fn newest_tick(&self) -> u32 {
        self.tick.unwrap_or(0)
    }

    /// Replaces the entity in a slot by another one, without any known state.
    pub(super) fn replace(&mut self, slot: u16, generation: u16) {
        self.clear_slot(slot);
        self.slots[usize::from(slot)].generation = generation;
    }

    /// Adds a version of the meta of a slot's entity.
    pub(super) fn adopt_meta(&mut self, slot: u16, meta: Meta) {
        let cutoff = cutoff(self.newest_tick());
        self.metas[usize::from(slot)].insert(meta, cutoff, &mut self.meta_bytes);
        if self.slots[usize::from(slot)].published {
            self.refresh(slot);
        }
    }

    /// Adds a version of a component of a slot's entity.
    pub(super) fn adopt_version(
        &mut self,
        slot: u16,
        id: ComponentId,
        label: u32,
        form: Form,
    ) -> Result<(), StreamError> {
        let cutoff = cutoff(self.newest_tick());
        let column = &mut self.columns[id.index()];
        if !column.has_row(slot) {
            let lanes = self.lanes + row_cost(column.lanes(), column.blobs());
            if lanes > REPLICA_WORLDS_MAX * WORLD_LANES_MAX {
                return Err(StreamError::TooLarge);
            }
            self.lanes = lanes;
            column.make_row(slot);
        }
        column.insert(slot, label, form, cutoff);
        Ok(())
    }

    /// Sets the present value of a component of a slot's entity. Returns whether it changed.
    pub(super) fn adopt_present(
        &mut self,
        slot: u16,
        id: ComponentId,
        form: Form,
    ) -> Result<bool, StreamError> {
        let had = self.slots[usize::from(slot)].mask & id.bit() != 0;
        let column = &mut self.columns[id.index()];
        let before = column.present(slot);
        let is_same = had && before == Some(form);
        if !is_same {
            let in_all =
                self.blob_bytes - before.map_or(0, |form| blob_len(form.blobs)) + blob_len(form.blobs);
            if in_all > REPLICA_WORLDS_MAX * WORLD_BLOB_BYTES_MAX {
                return Err(StreamError::TooLarge);
            }
            self.blob_bytes = in_all;
            column.set_present(slot, form);
        }
        Ok(!is_same)
    }

    /// Sets the present meta of a slot's entity. Returns whether anything but values changed.
    pub(super) fn adopt_entity(&mut self, slot: u16, meta: &Meta) -> bool {
        let place = &mut self.slots[usize::from(slot)];
        self.live += usize::from(!place.live);
        let before = (place.live, place.owner, place.zone, place.mask);
        let changed = before != (true, meta.owner, meta.zone, meta.mask) || place.audience != meta.audience;
        (place.live, place.published, place.label) = (true, true, meta.label);
        (place.owner, place.zone, place.mask) = (meta.owner, meta.zone, meta.mask);
        place.audience = meta.audience.clone();
        let cutoff = cutoff(self.newest_tick());
        self.metas[usize::from(slot)].retire(cutoff, &mut self.meta_bytes);
        self.refresh(slot);
        changed
    }

    /// Sets the label of a slot's entity, for a row that changed values only. Does so only if the entity has
    /// these components and its meta never changed; else returns false.
    pub(super) fn adopt_label(&mut self, slot: u16, label: u32, mask: u64) -> bool {
        let is_so = self.brief(slot, false).is_some_and(|brief| brief.mask == mask);
        let place = &mut self.slots[usize::from(slot)];
        let is_so = is_so && place.live && place.mask == mask;
        if is_so {
            place.label = label;
            self.refresh_label(slot, label);
        }
        is_so
    }

    /// Despawns a slot's entity. Its history is kept: late packets may build on it.
    pub(super) fn despawn_slot(&mut self, slot: u16) -> Option<EntityId> {
        let entity = self.entity_at(slot)?;
        // The present value is no longer read. Its versions count as history.
        for column in &mut self.columns {
            self.blob_bytes -= column.empty_present(slot);
        }
        let place = &mut self.slots[usize::from(slot)];
        (place.live, place.published) = (false, false);
        self.briefs[usize::from(slot)] = Brief::default();
        self.live -= 1;
        self.log.push(slot);
        Some(entity)
    }

    /// Restarts history at `tick`. The present state stays readable, and is not published until it is
    /// received again.
    pub(super) fn begin_epoch(&mut self, tick: u32) {
        self.lineage += 1;
        self.log.reset();
        self.set_tick(tick);
        self.columns.iter_mut().for_each(Column::forget);
        for slot in 0..u16::try_from(self.slots.len()).unwrap_or(u16::MAX) {
            self.metas[usize::from(slot)].clear(&mut self.meta_bytes);
            let place = &mut self.slots[usize::from(slot)];
            place.published = false;
            self.briefs[usize::from(slot)] = Brief::default();
            if !place.live {
                self.clear_slot(slot);
            }
        }
    }

    /// Returns the slot with this number.
    pub(super) fn slot(&self, slot: u16) -> &Slot {
        &self.slots[usize::from(slot)]
    }
}
