//! The known state of a receiver, slot by slot.

use super::flight::FlightEntry;
use super::plan::{Cause, Shape};
use super::store::{Slot, World};
use crate::audience::Viewer;
use crate::delta::{EntryKind, pick_history};
use crate::limits::BASELINE_AGE_MAX;

/// The state of one slot at a receiver: what it has, and what was sent.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverState {
    /// The generation of the entity that this describes.
    pub(super) generation: u16,
    /// Grows while the slot waits to be sent.
    pub(super) urgency: u32,
    /// Whether the receiver's interest admits the slot.
    pub(super) entered: bool,
    /// Whether the receiver sees the entity.
    pub(super) is_present: bool,
    /// Whether the receiver may still have an entity in this slot that must be despawned.
    is_leaving: bool,
    /// Whether the despawn was sent.
    is_told: bool,
    /// Whether anything of the entity was sent.
    is_known: bool,
    /// Whether the last entry must be sent again.
    pub(super) resend: bool,
    /// Whether `acked` is valid.
    has_row: bool,
    /// Label of the newest row that the receiver has.
    acked: u32,
    /// Other rows that it has: bit *i* is label `acked − 1 − i`.
    older: u64,
    /// Label of the newest row that was sent.
    sent: u32,
    /// Label of the oldest row after `acked` that may have been sent, if there is one.
    after: Option<u32>,
    /// The first packet that counts for this entity: acknowledgements of older ones do not concern it.
    since: u64,
    /// The newest packet with an entry for it.
    pub(super) number: u64,
}

impl ReceiverState {
    /// The state of a receiver that has the newest row of a slot's entity, if there is one.
    pub(super) fn given(slot: &Slot) -> Self {
        if !slot.published {
            return ReceiverState::default();
        }
        ReceiverState {
            generation: slot.generation,
            is_present: true,
            is_known: true,
            has_row: true,
            acked: slot.label,
            sent: slot.label,
            ..ReceiverState::default()
        }
    }

    /// Resets to a receiver that has nothing.
    pub(super) fn forget(&mut self) {
        *self = ReceiverState { entered: self.entered, ..ReceiverState::default() };
    }

    /// Makes the entity of this generation visible; `next` is the number of the next packet.
    pub(super) fn appear(&mut self, generation: u16, next: u64) {
        let is_same = self.generation == generation;
        if self.is_present && is_same {
            return;
        }
        let returns = self.is_leaving && !self.is_told && is_same;
        (self.is_present, self.is_leaving, self.is_told, self.resend) = (true, false, false, true);
        if !returns {
            // All of it is sent as for a new entity: packets in flight belong to its earlier appearance.
            let (entered, is_known) = (self.entered, self.is_known);
            *self = ReceiverState {
                generation,
                entered,
                is_known,
                is_present: true,
                since: next,
                resend: true,
                ..ReceiverState::default()
            };
        }
    }

    /// Hides the entity. Returns whether a despawn must be sent.
    pub(super) fn vanish(&mut self) -> bool {
        if self.is_present {
            self.is_present = false;
            self.is_leaving = self.is_known;
            self.is_told = false;
            self.resend = false;
        }
        self.is_leaving && (!self.is_told || self.resend)
    }

    /// Whether a row of this label must be sent.
    pub(super) fn needs(&self, label: u32) -> bool {
        let has_it = self.has_row && self.acked >= self.label_of(label);
        !has_it && (self.resend || label > self.sent)
    }

    /// The label under which a row is sent: it never decreases.
    pub(super) fn label_of(&self, label: u32) -> u32 {
        label.max(self.sent)
    }

    /// The cause of a row's shape, if the receiver's rows alone determine it: the newest of them must not be
    /// too old as a baseline.
    #[inline]
    pub(super) fn cause(&self, tick: u32, label: u32, mask: u64) -> Option<Cause> {
        let is_near = self.has_row && self.acked >= tick.saturating_sub(BASELINE_AGE_MAX);
        is_near.then(|| Cause { acked: self.acked, older: self.older, label: self.label_of(label), mask })
    }

    /// The shape for the row of `label`: its baselines, and whether it is an update.
    pub(super) fn shape(
        &self,
        world: &World,
        viewer: Viewer,
        tick: u32,
        slot: u16,
        (label, mask): (u32, u64),
    ) -> Shape {
        let label = self.label_of(label);
        if !self.has_row || !self.can_build_on(world, viewer, tick, (slot, label)) {
            return Shape { kind: EntryKind::Spawn, label, mask, ..Shape::FAREWELL };
        }
        let cause = Cause { acked: self.acked, older: self.older, label, mask };
        let mut shape = cause.update(tick);
        let from = shape.oldest().unwrap_or(label);
        shape.view = (!world.is_same_since(slot, from)).then_some(viewer);
        shape
    }

    fn can_build_on(&self, world: &World, viewer: Viewer, tick: u32, (slot, label): (u16, u32)) -> bool {
        let oldest = tick.saturating_sub(BASELINE_AGE_MAX);
        if self.acked >= oldest {
            return true;
        }
        // The receiver keeps one row older than its history limit. It is this one, as long as all rows sent
        // after it are within the limit.
        let after = self.after.unwrap_or(label).min(label);
        after >= oldest && world.remembers(slot, viewer, self.acked)
    }

    /// Records that packet `number` sends a row of `label`, or a despawn.
    pub(super) fn handle_sent(&mut self, label: u32, number: u64) {
        (self.number, self.urgency, self.resend) = (number, 0, false);
        if !self.is_present {
            if !self.is_told {
                (self.is_told, self.since) = (true, number);
            }
            return;
        }
        self.is_known = true;
        self.sent = self.sent.max(label);
        if self.has_row && label > self.acked {
            self.after.get_or_insert(label);
        }
    }

    /// Records that packet `number` with `entry` was delivered.
    pub(super) fn handle_delivered(&mut self, entry: &FlightEntry, number: u64) {
        if entry.generation != self.generation || number < self.since {
            return;
        }
        if entry.is_despawn {
            if self.is_leaving {
                (self.is_leaving, self.is_told, self.is_known, self.resend) = (false, false, false, false);
            }
        } else if self.is_present {
            self.note_row(entry.label);
        }
    }

    fn note_row(&mut self, label: u32) {
        if !self.has_row {
            (self.has_row, self.acked, self.older) = (true, label, 0);
        } else if label > self.acked {
            let on = label - self.acked;
            self.older = self.older.checked_shl(on).unwrap_or(0) | 1u64.checked_shl(on - 1).unwrap_or(0);
            self.acked = label;
        } else if let Some(back) = (self.acked - label).checked_sub(1) {
            self.older |= 1u64.checked_shl(back).unwrap_or(0);
        }
        // The rows sent in between are not recorded: perhaps the very next one.
        self.after = (self.sent > self.acked).then(|| self.acked + 1);
    }

    /// Ticks from the receiver's newest row to `label`.
    pub(super) fn staleness(&self, label: u32) -> Option<u32> {
        self.has_row.then(|| label.saturating_sub(self.acked))
    }
}

impl Cause {
    /// The label of the oldest row that an update may build on.
    pub(super) fn oldest(&self) -> u32 {
        self.acked.saturating_sub(u64::BITS - self.older.leading_zeros())
    }

    /// Removes the rows newer than `until`, if there are others that are not too old as baselines.
    pub(super) fn without_newer(self, tick: u32, until: Option<u32>) -> Cause {
        let oldest = tick.saturating_sub(BASELINE_AGE_MAX);
        let until = until.filter(|until| *until < self.acked);
        let earlier = until.and_then(|until| self.until(until)).filter(|cause| cause.acked >= oldest);
        earlier.unwrap_or(self)
    }

    /// Removes the rows newer than a tick before the newest row, if any remain.
    fn until(self, tick: u32) -> Option<Cause> {
        // Bit 0 is `tick`.
        let rows = self.older.checked_shr(self.acked - 1 - tick)?;
        let back = rows.trailing_zeros();
        (rows != 0).then(|| Cause { acked: tick - back, older: rows >> back >> 1, ..self })
    }

    /// An update that builds on the receiver's newest row, and on older ones within the age limit.
    pub(super) fn update(&self, tick: u32) -> Shape {
        let oldest = tick.saturating_sub(BASELINE_AGE_MAX);
        let (backs, count) = pick_history(self.older << 1 | 1, self.label - self.acked);
        let mut shape =
            Shape { kind: EntryKind::Update, label: self.label, mask: self.mask, ..Shape::FAREWELL };
        shape.history[0] = self.acked;
        shape.rows = 1;
        for back in &backs[1..count] {
            let Some(label) = self.acked.checked_sub(*back).filter(|label| *label >= oldest) else { break };
            shape.history[usize::from(shape.rows)] = label;
            shape.rows += 1;
        }
        shape
    }
}

/// A set of slots.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotSet {
    words: Vec<u64>,
    len: usize,
}

impl SlotSet {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    #[inline]
    pub(super) fn insert(&mut self, slot: u16) {
        let (word, bit) = (usize::from(slot) / 64, 1u64 << (slot % 64));
        let Some(word) = self.words.get_mut(word) else { return self.grow(slot) };
        self.len += usize::from(*word & bit == 0);
        *word |= bit;
    }

    #[cold]
    fn grow(&mut self, slot: u16) {
        self.words.resize(usize::from(slot) / 64 + 1, 0);
        self.insert(slot);
    }

    #[inline]
    pub(super) fn remove(&mut self, slot: u16) {
        let (word, bit) = (usize::from(slot) / 64, 1u64 << (slot % 64));
        if let Some(word) = self.words.get_mut(word).filter(|word| **word & bit != 0) {
            *word &= !bit;
            self.len -= 1;
        }
    }

    #[inline]
    pub(super) fn set(&mut self, slot: u16, is_in: bool) {
        if is_in { self.insert(slot) } else { self.remove(slot) }
    }

    #[inline]
    pub(super) fn contains(&self, slot: u16) -> bool {
        self.words.get(usize::from(slot) / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// The number of its words, of 64 slots each.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// A snapshot of the slots in one word.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "slots are 16 bits wide, and there are words for no others"
    )]
    pub(super) fn slots_of(&self, at: usize) -> impl Iterator<Item = u16> + use<> {
        let mut word = self.words[at];
        core::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some((at * 64 + bit) as u16)
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..self.words.len()).flat_map(|at| self.slots_of(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// An update that ignores newer rows is the same as if they had not been acknowledged.
        #[test]
        fn rows_that_do_not_count_leave_no_trace(
            steps in proptest::collection::vec(1u32..9, 1..40), until_back in 0u32..80
        ) {
            let mut labels: BTreeSet<u32> =
                steps.iter().scan(1_000, |at, step| { *at += step; Some(*at) }).collect();
            let newest = *labels.last().unwrap();
            // With newer rows, those too old as baselines are dropped earlier.
            labels.retain(|label| label + BASELINE_AGE_MAX > newest);
            let (tick, until) = (newest + 1, newest - until_back);
            let has = |labels: &mut dyn Iterator<Item = &u32>| {
                let mut known = ReceiverState::default();
                labels.for_each(|label| known.note_row(*label));
                known
            };
            let cause = has(&mut labels.iter()).cause(tick, tick, 1).unwrap().without_newer(tick, Some(until));
            let from = labels.range(..=until).next_back().map_or(newest, |_| until);
            let expected = has(&mut labels.range(..=from)).cause(tick, tick, 1).unwrap();
            prop_assert_eq!(cause.acked, expected.acked);
            prop_assert_eq!(cause.update(tick), expected.update(tick));
        }
    }
}
