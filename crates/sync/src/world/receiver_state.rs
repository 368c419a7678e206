//! What a receiver is known to have, slot by slot.

use super::flight::FlightEntry;
use super::plan::{Cause, Shape};
use super::store::{Slot, World};
use crate::audience::Viewer;
use crate::delta::{EntryKind, pick_history};
use crate::limits::BASELINE_AGE_MAX;

/// What a receiver has, and was sent, of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct ReceiverState {
    /// Of the entity that this is about.
    pub(super) generation: u16,
    /// Grows while something waits to be sent.
    pub(super) urgency: u32,
    /// Whether the receiver's interest admits the slot.
    pub(super) entered: bool,
    /// Whether the receiver sees the entity.
    pub(super) is_present: bool,
    /// Whether the receiver may have an entity in this slot that it should not have.
    is_leaving: bool,
    /// Whether the receiver was told that the entity is gone.
    is_told: bool,
    /// Whether something of the entity was sent.
    is_known: bool,
    /// Whether what was sent last must be sent again.
    pub(super) resend: bool,
    /// Whether `acked` is something.
    has_row: bool,
    /// Label of the newest row that the receiver has.
    acked: u32,
    /// Rows that it has beside: bit *i* is label `acked − 1 − i`.
    older: u64,
    /// Label of the newest row that was sent.
    sent: u32,
    /// Label of the oldest row newer than `acked` that may have been sent, if there is one.
    after: Option<u32>,
    /// The first packet that counts for this entity: acknowledgements of older ones say nothing of it.
    since: u64,
    /// The newest packet that said something of it.
    pub(super) number: u64,
}

impl ReceiverState {
    /// The receiver has the newest row of what is in a slot, if there is something.
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

    /// The receiver has nothing.
    pub(super) fn forget(&mut self) {
        *self = ReceiverState { entered: self.entered, ..ReceiverState::default() };
    }

    /// The entity of this generation is seen; `next` is the number of the next packet.
    pub(super) fn appear(&mut self, generation: u16, next: u64) {
        let is_same = self.generation == generation;
        if self.is_present && is_same {
            return;
        }
        let returns = self.is_leaving && !self.is_told && is_same;
        (self.is_present, self.is_leaving, self.is_told, self.resend) = (true, false, false, true);
        if !returns {
            // All of it is sent as if it had never been there: what is on its way belongs to another time.
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

    /// The entity is not seen; says whether the receiver must be told.
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

    /// The label under which a row is sent: it never goes back.
    pub(super) fn label_of(&self, label: u32) -> u32 {
        label.max(self.sent)
    }

    /// What the shape of a row with this label and these components follows from, if that is the rows alone
    /// that the receiver has: if the newest of them is not too old to build on.
    #[inline]
    pub(super) fn cause(&self, tick: u32, label: u32, mask: u64) -> Option<Cause> {
        let is_near = self.has_row && self.acked >= tick.saturating_sub(BASELINE_AGE_MAX);
        is_near.then(|| Cause { acked: self.acked, older: self.older, label: self.label_of(label), mask })
    }

    /// What shall be said of the row of `label`: what it builds on, and so whether it is an update.
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
        // The receiver remembers one row that is older than those that it remembers for their age. This is
        // the one as long as all rows that were or are sent after it are of that age.
        let after = self.after.unwrap_or(label).min(label);
        after >= oldest && world.remembers(slot, viewer, self.acked)
    }

    /// Packet `number` brings a row of `label`, or the news that the entity is gone.
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

    /// Packet `number` arrived, which said `entry`.
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
        // Which rows between were sent is not known: perhaps the very next one.
        self.after = (self.sent > self.acked).then(|| self.acked + 1);
    }

    /// Ticks from the newest row that the receiver has to `label`.
    pub(super) fn staleness(&self, label: u32) -> Option<u32> {
        self.has_row.then(|| label.saturating_sub(self.acked))
    }
}

impl Cause {
    /// No row that the receiver has, and that an update builds on, is older.
    pub(super) fn oldest(&self) -> u32 {
        self.acked.saturating_sub(u64::BITS - self.older.leading_zeros())
    }

    /// This as if rows that are newer than `until` had not come, if there are others that are not too old to
    /// build on.
    pub(super) fn without_newer(self, tick: u32, until: Option<u32>) -> Cause {
        let oldest = tick.saturating_sub(BASELINE_AGE_MAX);
        let until = until.filter(|until| *until < self.acked);
        let earlier = until.and_then(|until| self.until(until)).filter(|cause| cause.acked >= oldest);
        earlier.unwrap_or(self)
    }

    /// This up to a tick before the newest row, if there is a row.
    fn until(self, tick: u32) -> Option<Cause> {
        // Bit 0 is `tick`.
        let rows = self.older.checked_shr(self.acked - 1 - tick)?;
        let back = rows.trailing_zeros();
        (rows != 0).then(|| Cause { acked: tick - back, older: rows >> back >> 1, ..self })
    }

    /// An update that builds on the newest row that the receiver has, and on others that are not too old.
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

    /// Bytes of memory that it has.
    pub(super) fn memory_bytes(&self) -> usize {
        self.words.capacity() * size_of::<u64>()
    }

    /// How many words of 64 slots it has.
    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    /// The slots of one word, as they are at this moment.
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
        /// What an update builds on if newer rows do not count is what it would build on if they had not
        /// come.
        #[test]
        fn rows_that_do_not_count_leave_no_trace(
            steps in proptest::collection::vec(1u32..9, 1..40), until_back in 0u32..80
        ) {
            let mut labels: BTreeSet<u32> =
                steps.iter().scan(1_000, |at, step| { *at += step; Some(*at) }).collect();
            let newest = *labels.last().unwrap();
            // What is too old to build on is forgotten sooner by who has newer rows.
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
