//! The versions of one component of one entity: what it was at which tick.

use crate::limits::HISTORY_TICKS;
use bytes::Bytes;

/// Versions by ascending label, in a ring that grows to what [`HISTORY_TICKS`](crate::limits::HISTORY_TICKS) need.
///
/// What it was at tick `t` is the newest version whose label is not beyond `t`. Everything from the cutoff on is kept,
/// and the newest version before it, so that every tick from the cutoff on has its answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    labels: Vec<u32>,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
    /// Where the oldest version is.
    first: usize,
    len: usize,
    /// Label of the newest version, if there is one.
    newest: u32,
    /// Lanes and blobs of one version.
    each: (usize, usize),
}

/// The quantized form of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Form<'a> {
    pub(super) lanes: &'a [i32],
    pub(super) blobs: &'a [Bytes],
}

/// Most components that do not change have one version only.
const FIRST_CAPACITY: usize = 1;
/// What a component needs that changes at every tick: one version each, the one before them, and the one that comes.
const FULL_CAPACITY: usize = HISTORY_TICKS as usize + 3;

impl Ring {
    /// Label of the newest version.
    pub(super) fn newest(&self) -> Option<u32> {
        (self.len > 0).then_some(self.newest)
    }

    /// Label of the oldest version that is kept.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.len > 0).then(|| self.labels[self.first])
    }

    /// Forgets all versions and keeps their room.
    pub(super) fn clear(&mut self) {
        (self.first, self.len, self.newest) = (0, 0, 0);
        self.blobs.fill(Bytes::new());
    }

    /// What it was at `tick`; `None` if that is not known.
    pub(super) fn at(&self, tick: u32) -> Option<Form<'_>> {
        let place = self.place(self.logical_at(tick)?);
        Some(self.form(place))
    }

    /// The version that it was at `tick` and the one after that, each with its label; `None` unless both are kept.
    pub(super) fn around(&self, tick: u32) -> Option<[(u32, Form<'_>); 2]> {
        let at = self.logical_at(tick).filter(|at| at + 1 < self.len)?;
        Some([at, at + 1].map(|at| (self.label(at), self.form(self.place(at)))))
    }

    /// Adds a version, wherever its label belongs, unless that label is there or nobody can ask for it; says whether it did.
    /// What `cutoff` does not need any more goes.
    pub(super) fn insert(&mut self, label: u32, form: Form, cutoff: u32) -> bool {
        if self.len > 0 && label <= self.newest {
            return self.insert_late(label, form, cutoff);
        }
        self.retire(cutoff);
        self.make_room(form);
        let place = self.place(self.len);
        self.put(place, label, form);
        self.len += 1;
        self.newest = label;
        true
    }

    #[cold]
    fn insert_late(&mut self, label: u32, form: Form, cutoff: u32) -> bool {
        let at = match self.logical_at(label) {
            Some(at) if self.label(at) == label => return false,
            Some(at) => at + 1,
            None => 0,
        };
        // Older than everything that is kept for its age alone: nobody will ask for it.
        if at == 0 && self.len > 0 && label < cutoff && self.label(0) <= cutoff {
            return false;
        }
        let dropped = self.retire(cutoff);
        let at = at.saturating_sub(dropped);
        self.make_room(form);
        for from in (at..self.len).rev() {
            self.copy(from, from + 1);
        }
        let place = self.place(at);
        self.put(place, label, form);
        self.len += 1;
        self.newest = self.label(self.len - 1);
        true
    }

    /// Drops versions until at most one is older than `cutoff`; says how many.
    fn retire(&mut self, cutoff: u32) -> usize {
        let mut dropped = 0;
        while self.len > 1 && self.label(1) < cutoff {
            let blobs = self.each.1;
            self.blobs[self.first * blobs..(self.first + 1) * blobs].fill(Bytes::new());
            self.first = self.place(1);
            self.len -= 1;
            dropped += 1;
        }
        dropped
    }

    fn place(&self, logical: usize) -> usize {
        let place = self.first + logical;
        if place < self.labels.len() { place } else { place - self.labels.len() }
    }

    fn label(&self, logical: usize) -> u32 {
        self.labels[self.place(logical)]
    }

    fn form(&self, place: usize) -> Form<'_> {
        let (lanes, blobs) = self.each;
        Form {
            lanes: &self.lanes[place * lanes..(place + 1) * lanes],
            blobs: &self.blobs[place * blobs..(place + 1) * blobs],
        }
    }

    /// Counts from the oldest: the newest version whose label is not beyond `tick`.
    fn logical_at(&self, tick: u32) -> Option<usize> {
        let last = self.len.checked_sub(1)?;
        if tick >= self.newest {
            return Some(last);
        }
        // Labels ascend by at least one, so the answer is not before this place; of what changes at every tick it is
        // exactly this one.
        let back = (self.newest - tick) as usize;
        let (mut low, mut high) = (last.saturating_sub(back), last);
        if self.label(low) == tick {
            return Some(low);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.label(middle) <= tick { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1)
    }

    /// Room for one more version, in the order of their labels from the start on if it has to grow.
    fn make_room(&mut self, form: Form) {
        let capacity = self.labels.len();
        if self.len < capacity {
            return;
        }
        let grown = if capacity < FULL_CAPACITY {
            (capacity * 4).clamp(FIRST_CAPACITY, FULL_CAPACITY)
        } else {
            capacity * 2
        };
        self.each = (form.lanes.len(), form.blobs.len());
        let (lanes, blobs) = self.each;
        self.labels.rotate_left(self.first);
        self.labels.resize(grown, 0);
        self.lanes.rotate_left(self.first * lanes);
        self.lanes.resize(grown * lanes, 0);
        self.blobs.rotate_left(self.first * blobs);
        self.blobs.resize(grown * blobs, Bytes::new());
        self.first = 0;
    }

    fn copy(&mut self, from: usize, to: usize) {
        let (from, to) = (self.place(from), self.place(to));
        self.labels[to] = self.labels[from];
        let (lanes, blobs) = self.each;
        self.lanes.copy_within(from * lanes..(from + 1) * lanes, to * lanes);
        for blob in 0..blobs {
            self.blobs[to * blobs + blob] = self.blobs[from * blobs + blob].clone();
        }
    }

    fn put(&mut self, place: usize, label: u32, form: Form) {
        self.labels[place] = label;
        let (lanes, blobs) = self.each;
        self.lanes[place * lanes..(place + 1) * lanes].copy_from_slice(form.lanes);
        self.blobs[place * blobs..(place + 1) * blobs].clone_from_slice(form.blobs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Versions come mostly in order and sometimes late; whatever is asked from the cutoff on has the answer that
        /// a map of all of them gives.
        #[test]
        fn what_it_was_from_the_cutoff_on_is_known(steps in proptest::collection::vec((1u32..20, 0u32..60), 1..200)) {
            let (mut ring, mut model) = (Ring::default(), BTreeMap::new());
            let mut now = 1_000;
            for (on, back) in steps {
                now += on;
                let label = if back < 40 { now } else { now - back.min(now) };
                let cutoff = now - 64;
                let lanes = [i32::try_from(label).unwrap(), -1];
                ring.insert(label, Form { lanes: &lanes, blobs: &[Bytes::copy_from_slice(&label.to_le_bytes())] }, cutoff);
                model.insert(label, lanes);
                for tick in cutoff..=now {
                    let expected = model.range(..=tick).next_back();
                    prop_assert_eq!(ring.at(tick).map(|form| form.lanes), expected.map(|(_, lanes)| &lanes[..]));
                }
                prop_assert_eq!(ring.newest(), model.keys().next_back().copied());
                prop_assert!(ring.len <= 66, "{} versions are kept", ring.len);
            }
        }
    }
}
