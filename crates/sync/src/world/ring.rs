//! The versions of one component of one entity.

use crate::limits::HISTORY_TICKS;
use bytes::Bytes;

/// Versions by ascending label, in a ring that grows up to the needs of
/// [`HISTORY_TICKS`](crate::limits::HISTORY_TICKS).
///
/// The version at tick `t` is the newest one with a label at or before `t`. All versions from the cutoff on
/// are kept, and the newest one before it, so that the version at every tick from the cutoff on is known.
/// Older versions are dropped only when there is no room: checking for them at each insertion would cost a
/// memory access that is not needed otherwise. With blobs they are dropped at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    /// For each version its label and its lanes, so that both are adjacent in memory.
    versions: Vec<i32>,
    blobs: Vec<Bytes>,
    /// Capacity in versions.
    capacity: usize,
    /// Index of the oldest version.
    first: usize,
    len: usize,
    /// Label of the newest version; only valid if there is one.
    newest: u32,
    /// Lanes and blobs of one version.
    each: (usize, usize),
    /// Bytes of memory: the capacity, and all blobs. A blob shared by consecutive versions is counted once.
    bytes: usize,
}

/// The quantized form of a component.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Form<'a> {
    pub(super) lanes: &'a [i32],
    pub(super) blobs: &'a [Bytes],
}

/// A component that never changes has one version only.
const FIRST_CAPACITY: usize = 1;
/// Capacity for a component that changes at every tick: one version for each, the one before them, the next
/// one, and spare ones, so that it is full only once in a while.
const FULL_CAPACITY: usize = HISTORY_TICKS as usize + 16;

/// Below this, capacity grows fourfold; above it by half, so that a world grows only a little if all
/// components need more in one tick.
const STEEP_BELOW: usize = 16;

impl Ring {
    /// Label of the newest version.
    pub(super) fn newest(&self) -> Option<u32> {
        (self.len > 0).then_some(self.newest)
    }

    /// Label of the oldest version.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.len > 0).then(|| self.label(0))
    }

    /// Drops all versions and keeps the memory.
    pub(super) fn clear(&mut self) {
        (self.first, self.len, self.newest) = (0, 0, 0);
        self.bytes = self.room_bytes();
        self.blobs.fill(Bytes::new());
    }

    /// Returns the version at `tick`; `None` if it is unknown.
    pub(super) fn at(&self, tick: u32) -> Option<Form<'_>> {
        let place = self.place(self.logical_at(tick)?);
        Some(self.form(place))
    }

    /// Returns the versions at `tick` and after it, with their labels; `None` unless both are there.
    pub(super) fn around(&self, tick: u32) -> Option<[(u32, Form<'_>); 2]> {
        let at = self.logical_at(tick).filter(|at| at + 1 < self.len)?;
        Some([at, at + 1].map(|at| (self.label(at), self.form(self.place(at)))))
    }

    /// Inserts a version in label order. Returns false if its label exists, or is too old to be read. Drops
    /// versions that `cutoff` no longer needs.
    pub(super) fn insert(&mut self, label: u32, form: Form, cutoff: u32) -> bool {
        if self.len > 0 && label <= self.newest {
            return self.insert_late(label, form, cutoff);
        }
        self.make_room(form, cutoff);
        let place = self.put(self.len, label, form);
        self.len += 1;
        self.newest = label;
        if self.each.1 > 0 {
            self.bytes += self.own_blob_bytes(place, self.len.checked_sub(2));
        }
        true
    }

    #[cold]
    fn insert_late(&mut self, label: u32, form: Form, cutoff: u32) -> bool {
        let at = match self.logical_at(label) {
            Some(at) if self.label(at) == label => return false,
            Some(at) => at + 1,
            None => 0,
        };
        // Older than all versions that are kept for their age alone: it is never read.
        if at == 0 && self.len > 0 && label < cutoff && self.label(0) <= cutoff {
            return false;
        }
        let dropped = self.make_room(form, cutoff);
        let at = at.saturating_sub(dropped);
        for from in (at..self.len).rev() {
            self.copy(from, from + 1);
        }
        self.put(at, label, form);
        self.len += 1;
        self.newest = self.label(self.len - 1);
        if self.each.1 > 0 {
            let places = (0..self.len).map(|at| self.own_blob_bytes(self.place(at), at.checked_sub(1)));
            self.bytes = self.room_bytes() + places.sum::<usize>();
        }
        true
    }

    /// Drops versions until at most one is older than `cutoff`. Returns their count.
    fn retire(&mut self, cutoff: u32) -> usize {
        let newest_before = cutoff.checked_sub(1).and_then(|before| self.logical_at(before));
        let dropped = newest_before.unwrap_or(0);
        let blobs = self.each.1;
        if blobs > 0 {
            for logical in 0..dropped {
                let at = self.place(logical);
                self.bytes -= self.own_blob_bytes(at, Some(logical + 1));
                self.blobs[at * blobs..(at + 1) * blobs].fill(Bytes::new());
            }
        }
        self.first = self.place(dropped);
        self.len -= dropped;
        dropped
    }

    fn place(&self, logical: usize) -> usize {
        let place = self.first + logical;
        if place < self.capacity { place } else { place - self.capacity }
    }

    fn label(&self, logical: usize) -> u32 {
        self.versions[self.place(logical) * self.stride()].cast_unsigned()
    }

    /// Numbers of one version: its label and its lanes.
    fn stride(&self) -> usize {
        self.each.0 + 1
    }

    fn form(&self, place: usize) -> Form<'_> {
        let (stride, blobs) = (self.stride(), self.each.1);
        Form {
            lanes: &self.versions[place * stride + 1..(place + 1) * stride],
            blobs: &self.blobs[place * blobs..(place + 1) * blobs],
        }
    }

    /// The index, from the oldest on, of the newest version with a label at or before `tick`.
    fn logical_at(&self, tick: u32) -> Option<usize> {
        let last = self.len.checked_sub(1)?;
        if tick >= self.newest {
            return Some(last);
        }
        // Labels ascend by at least one, so the result is not before this index. For a component that changes
        // at every tick it is exactly this one.
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

    /// Makes room for one more version. Returns how many of the oldest were dropped for it.
    fn make_room(&mut self, form: Form, cutoff: u32) -> usize {
        let is_full = self.len == self.capacity;
        let dropped = if is_full || self.each.1 > 0 { self.retire(cutoff) } else { 0 };
        if self.len == self.capacity {
            self.grow(form);
        }
        dropped
    }

    /// Increases the capacity, and stores the versions from the start on in label order.
    fn grow(&mut self, form: Form) {
        let grown = match self.capacity {
            0 => FIRST_CAPACITY,
            few if few < STEEP_BELOW => few * 4,
            many if many < FULL_CAPACITY => (many + many / 2).min(FULL_CAPACITY),
            full => full * 2,
        };
        self.bytes -= self.room_bytes();
        self.each = (form.lanes.len(), form.blobs.len());
        let (stride, blobs) = (self.stride(), self.each.1);
        self.versions.rotate_left(self.first * stride);
        // Exactly: a vector that grows by itself doubles.
        self.versions.reserve_exact(grown * stride - self.versions.len());
        self.versions.resize(grown * stride, 0);
        self.blobs.rotate_left(self.first * blobs);
        self.blobs.reserve_exact(grown * blobs - self.blobs.len());
        self.blobs.resize(grown * blobs, Bytes::new());
        (self.first, self.capacity) = (0, grown);
        self.bytes += self.room_bytes();
    }

    fn copy(&mut self, from: usize, to: usize) {
        let (from, to) = (self.place(from), self.place(to));
        let (stride, blobs) = (self.stride(), self.each.1);
        self.versions.copy_within(from * stride..(from + 1) * stride, to * stride);
        for blob in 0..blobs {
            self.blobs[to * blobs + blob] = self.blobs[from * blobs + blob].clone();
        }
    }

    /// Bytes of memory, including spare capacity.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes of the capacity, without the blobs' content.
    fn room_bytes(&self) -> usize {
        self.capacity * (size_of::<i32>() * self.stride() + size_of::<Bytes>() * self.each.1)
    }

    /// Drops versions that `cutoff` does not need, and frees capacity that is mostly unused then.
    pub(super) fn shrink(&mut self, cutoff: u32) {
        self.retire(cutoff);
        if self.len > self.capacity / 2 {
            return;
        }
        let (stride, blobs) = (self.stride(), self.each.1);
        self.versions.rotate_left(self.first * stride);
        self.versions.truncate(self.len * stride);
        self.versions.shrink_to_fit();
        self.blobs.rotate_left(self.first * blobs);
        self.blobs.truncate(self.len * blobs);
        self.blobs.shrink_to_fit();
        self.bytes -= self.room_bytes();
        (self.first, self.capacity) = (0, self.len);
        self.bytes += self.room_bytes();
    }

    /// Bytes of a version's blobs that it does not share with an adjacent version.
    fn own_blob_bytes(&self, place: usize, neighbour: Option<usize>) -> usize {
        let blobs = self.form(place).blobs;
        let others = neighbour.map_or(&[][..], |at| self.form(self.place(at)).blobs);
        let is_shared = |at: usize, blob: &Bytes| {
            others.get(at).is_some_and(|it| (it.as_ptr(), it.len()) == (blob.as_ptr(), blob.len()))
        };
        let own = blobs.iter().enumerate().filter(|(at, blob)| !is_shared(*at, blob));
        own.map(|(_, blob)| blob.len()).sum()
    }

    /// Stores a version, which shares equal blobs with the one before it. Returns its index.
    fn put(&mut self, logical: usize, label: u32, form: Form) -> usize {
        let place = self.place(logical);
        let (stride, blobs) = (self.stride(), self.each.1);
        let version = &mut self.versions[place * stride..(place + 1) * stride];
        version[0] = label.cast_signed();
        version[1..].copy_from_slice(form.lanes);
        let before = logical.checked_sub(1).map(|before| self.place(before));
        for (at, blob) in form.blobs.iter().enumerate() {
            let same = before.map(|before| &self.blobs[before * blobs + at]).filter(|same| *same == blob);
            self.blobs[place * blobs + at] = same.unwrap_or(blob).clone();
        }
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Checks insertions of versions, mostly in order and sometimes late.
    fn check(steps: &[(u32, u32)], has_blobs: bool) -> Result<(), TestCaseError> {
        let (mut ring, mut model) = (Ring::default(), BTreeMap::new());
        let mut now = 1_000;
        for (on, back) in steps {
            now += on;
            let label = if *back < 40 { now } else { now - back };
            let cutoff = now - 64;
            let lanes = [i32::try_from(label).unwrap(), -1];
            let blobs = [Bytes::copy_from_slice(&label.to_le_bytes())];
            let blobs = if has_blobs { &blobs[..] } else { &[] };
            ring.insert(label, Form { lanes: &lanes, blobs }, cutoff);
            model.insert(label, lanes);
            for tick in cutoff..=now {
                let expected = model.range(..=tick).next_back();
                let form = ring.at(tick);
                prop_assert_eq!(form.map(|form| form.lanes), expected.map(|(_, lanes)| &lanes[..]));
                let label = expected.filter(|_| has_blobs).map(|(label, _)| label.to_le_bytes());
                prop_assert_eq!(
                    form.and_then(|form| form.blobs.first()).map(|blob| &blob[..]),
                    label.as_ref().map(|it| &it[..])
                );
            }
            // No version is missing between those that exist.
            let oldest = ring.oldest().unwrap();
            for (label, lanes) in model.range(oldest..).filter(|_| oldest < cutoff) {
                prop_assert_eq!(ring.at(*label).map(|form| form.lanes), Some(&lanes[..]));
            }
            prop_assert_eq!(ring.newest(), model.keys().next_back().copied());
            let held = if has_blobs { ring.len * size_of::<u32>() } else { 0 };
            prop_assert_eq!(ring.bytes(), ring.room_bytes() + held);
            prop_assert!(
                ring.len <= if has_blobs { 66 } else { FULL_CAPACITY },
                "{} versions are kept",
                ring.len
            );
        }
        Ok(())
    }

    #[test]
    fn what_versions_share_counts_once_and_room_is_given_back() {
        let (mut ring, mut most) = (Ring::default(), 0);
        let text = |label: u32| Bytes::from(vec![u8::from(label >= 50); 1_000]);
        for label in 0..100 {
            // A copy of each, in memory of its own.
            ring.insert(label, Form { lanes: &[], blobs: &[text(label)] }, 0);
            let texts = 1 + usize::from(label >= 50);
            assert_eq!(ring.bytes(), ring.room_bytes() + 1_000 * texts, "at {label}");
            most = most.max(ring.bytes());
        }
        ring.shrink(60);
        assert_eq!(ring.at(59).map(|form| form.blobs[0].clone()), Some(text(59)));
        assert_eq!((ring.len, ring.at(58)), (41, None));
        assert!(
            ring.bytes() == ring.room_bytes() + 1_000 && ring.bytes() < most / 2,
            "{} of {most}",
            ring.bytes()
        );
        ring.clear();
        assert_eq!(ring.bytes(), ring.room_bytes());
    }

    proptest! {
        /// Versions arrive mostly in order and sometimes late. Every version from the cutoff on equals that
        /// in a map of all of them.
        #[test]
        fn what_it_was_from_the_cutoff_on_is_known(
            steps in proptest::collection::vec((1u32..20, 0u32..60), 1..200), has_blobs: bool
        ) {
            check(&steps, has_blobs)?;
        }

        /// The same for changes at nearly every tick, which leave no spare capacity.
        #[test]
        fn what_changes_at_every_tick_takes_bounded_room(
            steps in proptest::collection::vec((1u32..3, 0u32..45), 300..400), has_blobs: bool
        ) {
            check(&steps, has_blobs)?;
        }
    }
}
