//! Briefs: the few fields of each slot that publishers check first, stored side by side.

use super::log::Change;
use super::plan::{ENTRY_BYTES_BAD, LANE_BYTES_BAD};
use super::store::{World, blob_len};
use crate::audience::Audience;
use crate::schema::ComponentId;

/// The fields of a slot that publishers need, if all receivers see the same of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brief {
    /// The label of its last change.
    pub(super) label: u32,
    /// The label of its last change beside component values.
    pub(super) meta_label: u32,
    pub(super) mask: u64,
    pub(super) generation: u16,
    /// Whether there is an entity to publish.
    published: bool,
    /// Whether all members see the same of it, and have throughout its history.
    is_plain: bool,
    /// Its worst-case size in a packet, in bytes.
    pub(super) bytes_bad: u32,
}

impl World {
    /// Returns the brief of a slot, if the receiver sees the same as all others.
    #[inline]
    pub(super) fn brief(&self, slot: u16, sees_everything: bool) -> Option<&Brief> {
        let brief = self.briefs.get(usize::from(slot))?;
        (brief.published && (brief.is_plain || sees_everything)).then_some(brief)
    }

    /// Updates the brief after a change of values only.
    pub(super) fn refresh_label(&mut self, slot: u16, label: u32) {
        let brief = &mut self.briefs[usize::from(slot)];
        brief.label = label;
        if brief.mask & self.blob_columns != 0 {
            let bytes_bad = self.bytes_bad(slot, self.briefs[usize::from(slot)].mask);
            self.briefs[usize::from(slot)].bytes_bad = bytes_bad;
        }
    }

    /// Logs a change of a slot, possibly of component values only; its brief is up to date.
    pub(super) fn note_change(&mut self, slot: u16, is_of_values: bool) {
        let is_of_values = is_of_values && self.brief(slot, false).is_some();
        self.log.push_change(Change { slot, is_of_values });
    }

    /// Recomputes the brief of a slot after any change.
    pub(super) fn refresh(&mut self, slot: u16) {
        let place = &self.slots[usize::from(slot)];
        let metas = &self.metas[usize::from(slot)];
        let newest = metas.newest().zip(metas.same_since()).filter(|_| place.published);
        let brief = newest.map(|(meta, (meta_label, is_all))| Brief {
            label: place.label,
            meta_label,
            mask: meta.mask,
            generation: place.generation,
            published: true,
            is_plain: is_all
                && !self.masks.are_conditional(meta.mask)
                && matches!(*meta.audience, Audience::All),
            bytes_bad: self.bytes_bad(slot, meta.mask),
        });
        self.briefs[usize::from(slot)] = brief.unwrap_or_default();
    }

    /// The worst-case size in bytes of these components of a slot's entity in a packet.
    pub(super) fn bytes_bad(&self, slot: u16, mask: u64) -> u32 {
        let worst = ComponentId::in_mask(mask).map(|id| {
            let column = &self.columns[id.index()];
            let blobs = if column.blobs() > 0 {
                column.present(slot).map_or(0, |form| blob_len(form.blobs))
            } else {
                0
            };
            column.lanes() * LANE_BYTES_BAD + blobs + blobs / 8 + column.blobs() * LANE_BYTES_BAD
        });
        u32::try_from(ENTRY_BYTES_BAD + worst.sum::<usize>()).unwrap_or(u32::MAX)
    }
}
