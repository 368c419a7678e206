//! Applies the entries of a packet to a replica: the rows that spawns and updates bring, and despawns.

use super::{Applied, Place, Replica};
use crate::delta::{EntryHead, EntryKind, HISTORY_MAX, Past, Reader};
use crate::schema::{ComponentId, Schema};
use crate::world::meta::Meta;
use crate::world::packet::PacketHead;
use crate::world::ring::Form;
use crate::world::{EntityId, StreamError};
use bytes::Bytes;
use std::sync::Arc;

/// A row being applied.
struct Incoming {
    slot: u16,
    /// Whether the row is neither shown nor usable as a baseline.
    is_void: bool,
    /// Whether a row with its label is remembered, which counts in its place.
    is_known: bool,
    /// Whether the row becomes the present state.
    is_news: bool,
    /// Whether the entity is new.
    is_new: bool,
    label: u32,
    /// Its components.
    mask: u64,
    /// The meta of the entity, if it differs from the baseline's.
    meta: Option<Meta>,
}

impl Replica {
    pub(super) fn take_body(
        &mut self,
        body: &[u8],
        number: u64,
        &PacketHead { tick, plain, .. }: &PacketHead,
        applied: &mut Applied,
    ) -> Result<(), StreamError> {
        let (tables, schema) = (Arc::clone(self.world.make_tables()), Arc::clone(&self.world.schema));
        let mut reader = match plain {
            true => Reader::plain(&tables, body),
            false => Reader::new(&tables, body, self.everything),
        };
        while let Some(head) = reader.head()? {
            self.counters.entries += 1;
            self.make_place(head.slot);
            if head.kind == EntryKind::Despawn {
                self.take_despawn(head.slot, number, tick, applied);
                continue;
            }
            let label =
                tick.checked_sub(head.row_age).ok_or(StreamError::Head("a row is older than the world"))?;
            let incoming = self.incoming(&head, number, label, applied)?;
            let changed = self.take_components((&mut reader, plain), &schema, &head, &incoming)?;
            self.take_row(incoming, &head, changed, applied);
        }
        Ok(())
    }

    fn make_place(&mut self, slot: u16) {
        self.world.make_slot(slot);
        if self.places.len() < self.world.slots.len() {
            self.places.resize(self.world.slots.len(), Place::default());
        }
    }

    fn take_despawn(&mut self, slot: u16, number: u64, tick: u32, applied: &mut Applied) {
        let place = &mut self.places[usize::from(slot)];
        if place.life.is_some_and(|life| life >= number) {
            return;
        }
        place.life = Some(number);
        self.stale -= usize::from(core::mem::take(&mut place.is_stale));
        if let Some(entity) = self.world.despawn_slot(slot) {
            self.tombstones.push_back((slot, number, tick));
            applied.despawned.push(entity);
        }
    }

    /// Interprets the head of a row.
    fn incoming(
        &mut self,
        head: &EntryHead,
        number: u64,
        label: u32,
        applied: &mut Applied,
    ) -> Result<Incoming, StreamError> {
        let slot = head.slot;
        let place = &mut self.places[usize::from(slot)];
        let is_newer = place.life.is_none_or(|life| number > life);
        let mut is_void = false;
        let mut mask_before = None;
        if head.kind == EntryKind::Spawn {
            let is_other = self.world.slot(slot).generation != head.generation;
            if is_newer {
                place.life = Some(number);
                if is_other {
                    place.rows.clear();
                    self.stale -= usize::from(core::mem::take(&mut place.is_stale));
                    applied.despawned.extend(self.world.despawn_slot(slot));
                    self.world.replace(slot, head.generation);
                }
            } else {
                is_void = is_other;
            }
        } else {
            let gone = |label| StreamError::BaselineGone { slot, label };
            let baseline = label.saturating_sub(head.ages[0]);
            if head.history == 0 {
                return Err(gone(baseline));
            }
            for age in &head.ages[..usize::from(head.history)] {
                let label = label.saturating_sub(*age);
                if !place.rows.has(label) {
                    return Err(gone(label));
                }
            }
            mask_before = Some(self.world.mask_at(slot, baseline).ok_or_else(|| gone(baseline))?);
            if is_newer && !self.world.slot(slot).live {
                return Err(StreamError::UnknownEntity { slot });
            }
            self.counters.note_update(head.ages[0]);
        }
        let mask = self.incoming_mask(head, mask_before)?;
        let meta = self.incoming_meta(head, label, mask)?;
        let is_new = !self.world.slot(slot).live && !is_void && is_newer;
        let rows = &self.places[usize::from(slot)].rows;
        let is_news = !is_void && is_newer && (is_new || rows.newest().is_none_or(|newest| label > newest));
        // Of two rows with the same label the first one counts.
        let is_known = !is_void && rows.has(label);
        let is_void = is_void || is_known && !is_new;
        if is_known && is_new {
            let gone = StreamError::BaselineGone { slot, label };
            let meta = self.world.meta_at(slot, label).ok_or(gone)?;
            let (mask, meta) = (meta.mask, Some(Meta { label, ..meta.clone() }));
            return Ok(Incoming { slot, is_void, is_known, is_news, is_new, label, mask, meta });
        }
        Ok(Incoming { slot, is_void, is_known, is_news, is_new, label, mask, meta })
    }

    /// The components of an entity after the row, given those at the baseline.
    fn incoming_mask(&self, head: &EntryHead, before: Option<u64>) -> Result<u64, StreamError> {
        let before = before.unwrap_or(0);
        let mask = if head.mask_changed { head.mask } else { before };
        let unknown =
            (mask & !self.world.masks.all()) | (head.changed & !mask) | (mask & !before & !head.changed);
        if unknown == 0 {
            Ok(mask)
        } else {
            Err(StreamError::UnknownComponents { slot: head.slot, mask: unknown })
        }
    }

    /// The meta of an entity after the row, if it differs from the baseline's.
    fn incoming_meta(&self, head: &EntryHead, label: u32, mask: u64) -> Result<Option<Meta>, StreamError> {
        match &head.meta {
            Some(meta) => Ok(Some(Meta {
                label,
                mask,
                owner: meta.owner,
                zone: meta.zone,
                audience: Arc::new(meta.audience.clone()),
            })),
            None if head.kind == EntryKind::Spawn => {
                Err(StreamError::Head("an entity comes without an owner or none"))
            }
            None if head.mask_changed => Ok(self.baseline_meta(head, label, mask)),
            None => Ok(None),
        }
    }

    /// The meta of an entity at the baseline, with this label and these components.
    fn baseline_meta(&self, head: &EntryHead, label: u32, mask: u64) -> Option<Meta> {
        let before = self.world.meta_at(head.slot, label.saturating_sub(head.ages[0]))?;
        Some(Meta { label, mask, ..before.clone() })
    }

    /// Applies the components of a row. Returns those that differ from the present state.
    fn take_components(
        &mut self,
        (reader, is_plain): (&mut Reader, bool),
        schema: &Schema,
        head: &EntryHead,
        row: &Incoming,
    ) -> Result<u64, StreamError> {
        let Incoming { slot, label, is_void, is_known, is_news, is_new, .. } = *row;
        // Another entity may be in the slot by now; only the bits' order matters here.
        let old_mask = if is_new || is_void { 0 } else { self.world.slot(slot).mask };
        let mut changed = if is_news { old_mask ^ row.mask } else { 0 };
        let (mut lanes, mut blobs) = (core::mem::take(&mut self.lanes), core::mem::take(&mut self.blobs));
        for id in ComponentId::in_mask(head.changed) {
            let kind = &schema.components()[id.index()];
            lanes.clear();
            lanes.resize(kind.lanes(), 0);
            blobs.clear();
            blobs.resize(kind.blobs(), Bytes::new());
            if is_plain {
                reader.component(id, &[], &mut lanes, &mut blobs)?;
                kind.check_row(&lanes, &blobs)?;
            } else {
                let (pasts, count) = self.pasts(head, label, id.bit(), id.index())?;
                reader.component(id, &pasts[..count], &mut lanes, &mut blobs)?;
                // The reader has rejected values beyond their span.
                kind.check_row_in_span(&lanes, &blobs)?;
            }
            let form = Form { lanes: &lanes, blobs: &blobs };
            if is_void || is_known {
                continue;
            }
            self.world.adopt_version(slot, id, label, form)?;
            if is_news && self.world.adopt_present(slot, id, form)? {
                changed |= id.bit();
            }
        }
        blobs.clear();
        (self.lanes, self.blobs) = (lanes, blobs);
        if is_void {
            return Ok(0);
        }
        // What was left out is as at the baseline; of two rows with one label the first counts.
        let (kept, from) = match is_known {
            true => (row.mask, label),
            false => (row.mask & !head.changed, label.saturating_sub(head.ages[0])),
        };
        for id in ComponentId::in_mask(kept) {
            let versions = self.world.columns[id.index()].versions(slot);
            let is_shown = !is_news || old_mask & id.bit() != 0;
            if !is_shown || versions.is_none_or(|versions| versions.changed_since(from)) {
                changed |= self.keep(slot, id, (from, label), is_news)?;
            }
        }
        Ok(changed)
    }

    /// Gives a component of a row the value that it had at its baseline, as if the sender had not left out a
    /// change since then. Returns its bit if it differs from the present state.
    fn keep(
        &mut self,
        slot: u16,
        id: ComponentId,
        (baseline, label): (u32, u32),
        is_news: bool,
    ) -> Result<u64, StreamError> {
        let column = &self.world.columns[id.index()];
        let gone = StreamError::BaselineGone { slot, label: baseline };
        let Form { lanes, blobs } = column.at(slot, baseline).ok_or(gone)?;
        let (lanes, blobs) = (lanes.to_vec(), blobs.to_vec());
        let form = Form { lanes: &lanes, blobs: &blobs };
        if column.at(slot, label) != Some(form) {
            self.world.adopt_version(slot, id, label, form)?;
        }
        let differs = is_news && self.world.adopt_present(slot, id, form)?;
        Ok(if differs { id.bit() } else { 0 })
    }

    fn take_row(&mut self, row: Incoming, head: &EntryHead, changed: u64, applied: &mut Applied) {
        let Incoming { slot, is_void, is_news, is_new, label, mask, meta, .. } = row;
        if is_void {
            return;
        }
        self.places[usize::from(slot)].rows.insert(label);
        if !is_news {
            self.counters.late_entries += 1;
        }
        // An entity of an earlier epoch is readable, but not published.
        let was_published = self.world.slot(slot).published;
        let differs = match meta {
            Some(meta) => {
                self.world.adopt_meta(slot, meta.clone());
                is_news && self.world.adopt_entity(slot, &meta)
            }
            None if !is_news || self.world.adopt_label(slot, label, mask) => false,
            None => {
                self.baseline_meta(head, label, mask).is_some_and(|meta| self.world.adopt_entity(slot, &meta))
            }
        };
        if is_news {
            self.world.note_change(slot, was_published && !differs && !is_new);
            self.show(slot, changed, differs, is_new, applied);
        }
    }

    /// Makes a row the present state.
    fn show(&mut self, slot: u16, changed: u64, differs: bool, is_new: bool, applied: &mut Applied) {
        let place = &mut self.places[usize::from(slot)];
        self.stale -= usize::from(core::mem::take(&mut place.is_stale));
        let entity = EntityId { slot, generation: self.world.slot(slot).generation };
        if is_new {
            applied.spawned.push(entity);
        }
        if differs || changed != 0 {
            applied.changed.push((entity, changed));
        }
    }

    /// Returns the versions of a component at an entry's baselines, as far as they exist.
    fn pasts(
        &self,
        head: &EntryHead,
        label: u32,
        bit: u64,
        index: usize,
    ) -> Result<([Past<'_>; HISTORY_MAX], usize), StreamError> {
        let slot = head.slot;
        let mut pasts = [Past { age: 1, lanes: &[], blobs: &[] }; HISTORY_MAX];
        let mut count = 0;
        for age in &head.ages[..usize::from(head.history)] {
            let then = label.saturating_sub(*age);
            let gone = || StreamError::BaselineGone { slot, label: then };
            let mask = self.world.mask_at(slot, then).ok_or_else(gone)?;
            if mask & bit != 0 {
                let Form { lanes, blobs } = self.world.columns[index].at(slot, then).ok_or_else(gone)?;
                pasts[count] = Past { age: *age, lanes, blobs };
                count += 1;
            }
        }
        Ok((pasts, count))
    }
}
