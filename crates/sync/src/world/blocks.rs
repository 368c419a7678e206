//! The history of one component without blobs, for all entities: the versions of each tick are stored side by
//! side.
//!
//! ```text
//!              block n - 2            block n - 1              block n
//!        ┌──────────────────┐  ┌──────────────────┐  ┌──────────────────┐
//!  tick  │ 0  1  2  …    63 │  │ 64  …        127 │  │ 128 …            │
//!        └──────────────────┘  └──────────────────┘  └──────────────────┘
//!  row 0   ●     ●                  ●                   ●   a bit each, in `rows`; lanes in the tick's frame
//!  row 1   ●
//! ```
//!
//! The versions of one tick are adjacent in memory, when written and when read as baselines. With a separate
//! allocation for each entity, as in a [`Ring`](super::ring::Ring), cache misses cost a receiver of thousands
//! more than decoding. When a block begins, the oldest one is dropped. The last version of each row in it is
//! kept separately, so that the value at every tick from the oldest block on is known.

use super::memory::ALLOCATION_BYTES;
use crate::limits::HISTORY_TICKS;

/// Ticks in a block: one bit each.
const BLOCK_TICKS: u32 = u64::BITS;
/// Number of blocks: enough for the last [`HISTORY_TICKS`], wherever in its block the newest tick is.
const BLOCKS: u32 = HISTORY_TICKS / BLOCK_TICKS + 1;
const FRAMES: usize = (BLOCKS * BLOCK_TICKS) as usize;
/// Lanes in one allocation; at least one row. Isolated changes use little memory.
const CHUNK_LANES: usize = 64;

const _: () = assert!(HISTORY_TICKS.is_multiple_of(BLOCK_TICKS), "blocks cover the history");

/// Versions by row and label.
#[derive(Clone, Debug)]
pub(super) struct Blocks {
    lanes: usize,
    /// Rows in a chunk, as a power of two.
    chunk_rows_log2: u32,
    /// The number of the newest block, if there is one. The block of a label is its quotient by
    /// [`BLOCK_TICKS`].
    newest: Option<u32>,
    rows: Vec<Row>,
    /// For each row its version before the oldest block.
    before: Vec<i32>,
    /// By tick. The frames of a block are adjacent, at the remainder of its number by [`BLOCKS`].
    frames: Vec<Frame>,
    /// Chunk slots in all frames.
    places: usize,
    /// Unused chunks.
    pool: Vec<Chunk>,
    /// All chunks, used or not.
    chunks: usize,
}

/// The versions of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// For each block, at the remainder of its number by [`BLOCKS`], the ticks with a version.
    bits: [u64; BLOCKS as usize],
    newest: Option<u32>,
    /// The label of its version before the oldest block.
    before: Option<u32>,
}

/// The versions of one tick, in chunks of rows. Only chunks in use are allocated.
#[derive(Clone, Debug, Default)]
struct Frame {
    chunks: Vec<Option<Chunk>>,
}

type Chunk = Box<[i32]>;

impl Row {
    /// The newest label at or before `tick`, if the newest block is `block`.
    fn label_at(&self, tick: u32, block: u32) -> Option<u32> {
        if let Some(newest) = self.newest.filter(|newest| *newest <= tick) {
            return Some(newest);
        }
        let from = block.min(tick / BLOCK_TICKS);
        for number in (block.saturating_sub(BLOCKS - 1)..=from).rev() {
            let mut bits = self.bits[(number % BLOCKS) as usize];
            if number == tick / BLOCK_TICKS {
                bits &= u64::MAX >> (BLOCK_TICKS - 1 - tick % BLOCK_TICKS);
            }
            if bits != 0 {
                return Some(number * BLOCK_TICKS + bits.ilog2());
            }
        }
        self.before.filter(|before| *before <= tick)
    }

    /// The oldest label after `label`, if the newest block is `block`.
    fn label_after(&self, label: u32, block: u32) -> Option<u32> {
        let oldest = block.saturating_sub(BLOCKS - 1);
        for number in oldest.max(label / BLOCK_TICKS)..=block {
            let mut bits = self.bits[(number % BLOCKS) as usize];
            if number == label / BLOCK_TICKS {
                bits &= u64::MAX.checked_shl(label % BLOCK_TICKS + 1).unwrap_or(0);
            }
            if bits != 0 {
                return Some(number * BLOCK_TICKS + bits.trailing_zeros());
            }
        }
        None
    }
}

impl Blocks {
    /// Creates an empty history of rows with this many lanes.
    pub(super) fn new(lanes: usize) -> Self {
        Blocks {
            lanes,
            chunk_rows_log2: (CHUNK_LANES / lanes.max(1)).max(1).ilog2(),
            newest: None,
            rows: Vec::new(),
            before: Vec::new(),
            frames: Vec::new(),
            places: 0,
            pool: Vec::new(),
            chunks: 0,
        }
    }

    /// Adds a row without versions.
    pub(super) fn push_row(&mut self) {
        self.rows.push(Row::default());
        self.before.resize(self.before.len() + self.lanes, 0);
    }

    /// The label of a row's newest version.
    pub(super) fn newest(&self, row: usize) -> Option<u32> {
        self.rows[row].newest
    }

    /// The label of a row's oldest version.
    pub(super) fn oldest(&self, row: usize) -> Option<u32> {
        let found = &self.rows[row];
        found.before.or_else(|| {
            let block = self.newest?;
            let from = block.saturating_sub(BLOCKS - 1) * BLOCK_TICKS;
            found.label_at(from, block).or_else(|| found.label_after(from, block))
        })
    }

    /// Returns a row's version at `tick`; `None` if it is unknown.
    #[inline]
    pub(super) fn at(&self, row: usize, tick: u32) -> Option<&[i32]> {
        let (newest, found) = (self.newest?, self.rows.get(row)?);
        let (number, at) = (tick / BLOCK_TICKS, tick % BLOCK_TICKS);
        // Nearly always there is a version of exactly this tick.
        if newest.wrapping_sub(number) < BLOCKS {
            let block = (number % BLOCKS) as usize;
            if found.bits[block] >> at & 1 == 1 {
                return self.lanes_in(block * BLOCK_TICKS as usize + at as usize, row);
            }
        }
        let label = found.label_at(tick, newest)?;
        self.version(row, label)
    }

    /// Returns a row's versions at `tick` and after it, with their labels; `None` unless both are there.
    pub(super) fn around(&self, row: usize, tick: u32) -> Option<[(u32, &[i32]); 2]> {
        let (found, block) = (&self.rows[row], self.newest?);
        let first = found.label_at(tick, block)?;
        let second = found.label_after(first, block)?;
        Some([(first, self.version(row, first)?), (second, self.version(row, second)?)])
    }

    /// Inserts a version in label order. Ignores it if its label exists, or is too old to be read.
    pub(super) fn insert(&mut self, row: usize, label: u32, lanes: &[i32]) {
        let number = label / BLOCK_TICKS;
        if self.newest.is_none_or(|newest| number > newest) {
            self.begin(number);
        }
        // Labels older than the kept earlier version are never read.
        if self.rows[row].before.is_some_and(|before| label <= before) {
            return;
        }
        if self.is_before(number) {
            self.before[row * self.lanes..(row + 1) * self.lanes].copy_from_slice(lanes);
            self.rows[row].before = Some(label);
        } else if self.has(row, label) {
            return;
        } else {
            self.rows[row].bits[(number % BLOCKS) as usize] |= 1 << (label % BLOCK_TICKS);
            self.put(row, label, lanes);
        }
        let newest = &mut self.rows[row].newest;
        *newest = (*newest).max(Some(label));
    }

    /// Drops the versions of a row.
    pub(super) fn clear(&mut self, row: usize) {
        self.rows[row] = Row::default();
    }

    /// Drops all versions. The next one may be older than they were.
    pub(super) fn clear_all(&mut self) {
        self.rows.fill(Row::default());
        self.newest = None;
        self.frames.iter_mut().for_each(|frame| frame.empty(&mut self.pool));
    }

    /// Drops versions that are needed only before `cutoff`, and frees spare memory.
    pub(super) fn shrink(&mut self, cutoff: u32) {
        if let Some(newest) = self.newest {
            let kept = cutoff / BLOCK_TICKS;
            (newest.saturating_sub(BLOCKS - 1)..=newest)
                .take_while(|gone| *gone < kept)
                .for_each(|gone| self.end(gone));
        }
        self.chunks -= self.pool.len();
        self.pool = Vec::new();
        for frame in &mut self.frames {
            if frame.chunks.iter().all(Option::is_none) {
                self.places -= frame.chunks.len();
                *frame = Frame::default();
            }
        }
    }

    /// Bytes of memory of the versions, including spare capacity.
    pub(super) fn bytes(&self) -> usize {
        let rows = self.rows.len() * (size_of::<Row>() + size_of::<i32>() * self.lanes);
        let chunk = size_of::<i32>() * (self.lanes << self.chunk_rows_log2);
        rows + self.places * size_of::<Option<Chunk>>() + self.chunks * chunk
    }

    /// Bytes of memory in total.
    pub(super) fn memory_bytes(&self) -> usize {
        let rows = self.rows.capacity() * size_of::<Row>() + self.before.capacity() * size_of::<i32>();
        // A list of chunk slots may have twice the capacity.
        let places =
            self.frames.capacity() * size_of::<Frame>() + 2 * self.places * size_of::<Option<Chunk>>();
        let chunk = size_of::<i32>() * (self.lanes << self.chunk_rows_log2) + ALLOCATION_BYTES;
        rows + places + self.chunks * chunk + self.pool.capacity() * size_of::<Chunk>()
    }

    /// Whether a block is before the oldest one.
    fn is_before(&self, number: u32) -> bool {
        self.newest.is_some_and(|newest| number + BLOCKS <= newest)
    }

    /// Whether there is a version of exactly this label, not older than the oldest block.
    fn has(&self, row: usize, label: u32) -> bool {
        let number = label / BLOCK_TICKS;
        let is_kept = self.newest.is_some_and(|newest| number <= newest) && !self.is_before(number);
        is_kept && self.rows[row].bits[(number % BLOCKS) as usize] >> (label % BLOCK_TICKS) & 1 == 1
    }

    /// Returns the version of an existing label.
    fn version(&self, row: usize, label: u32) -> Option<&[i32]> {
        if self.rows[row].before == Some(label) {
            return Some(&self.before[row * self.lanes..(row + 1) * self.lanes]);
        }
        self.lanes_at(row, label)
    }

    fn lanes_at(&self, row: usize, label: u32) -> Option<&[i32]> {
        self.lanes_in(frame_of(label), row)
    }

    #[inline]
    fn lanes_in(&self, frame: usize, row: usize) -> Option<&[i32]> {
        let (chunk, place) = self.place(row);
        let chunk = self.frames.get(frame)?.chunks.get(chunk)?.as_ref()?;
        chunk.get(place..place + self.lanes)
    }

    /// The index of a row's chunk in a frame, and the offset of its lanes in it.
    fn place(&self, row: usize) -> (usize, usize) {
        let chunk = row >> self.chunk_rows_log2;
        (chunk, (row - (chunk << self.chunk_rows_log2)) * self.lanes)
    }

    fn put(&mut self, row: usize, label: u32, lanes: &[i32]) {
        let (chunk, place) = self.place(row);
        if self.frames.is_empty() {
            self.frames.resize_with(FRAMES, Frame::default);
        }
        let places = &mut self.frames[frame_of(label)].chunks;
        if places.len() <= chunk {
            self.places += chunk + 1 - places.len();
            places.resize_with(chunk + 1, || None);
        }
        let chunk = places[chunk].get_or_insert_with(|| {
            self.pool.pop().unwrap_or_else(|| {
                self.chunks += 1;
                vec![0; self.lanes << self.chunk_rows_log2].into()
            })
        });
        chunk[place..place + lanes.len()].copy_from_slice(lanes);
    }

    /// Begins a block that is newer than all others.
    fn begin(&mut self, number: u32) {
        if let Some(newest) = self.newest {
            let oldest = newest.saturating_sub(BLOCKS - 1);
            let kept = (number + 1).saturating_sub(BLOCKS);
            (oldest..=newest).take_while(|gone| *gone < kept).for_each(|gone| self.end(gone));
        }
        self.newest = Some(number);
    }

    /// Drops the oldest block; keeps the last version of each row in it.
    fn end(&mut self, number: u32) {
        let place = (number % BLOCKS) as usize;
        for row in 0..self.rows.len() {
            let bits = core::mem::take(&mut self.rows[row].bits[place]);
            if bits != 0 {
                let label = number * BLOCK_TICKS + bits.ilog2();
                let (lanes, (chunk, from)) = (self.lanes, self.place(row));
                let Some(Some(chunk)) =
                    self.frames.get(frame_of(label)).and_then(|frame| frame.chunks.get(chunk))
                else {
                    continue;
                };
                self.before[row * lanes..(row + 1) * lanes].copy_from_slice(&chunk[from..from + lanes]);
                self.rows[row].before = Some(label);
            }
        }
        let frames = self.frames.iter_mut().skip(place * BLOCK_TICKS as usize).take(BLOCK_TICKS as usize);
        frames.for_each(|frame| frame.empty(&mut self.pool));
    }
}

impl Frame {
    /// Frees all chunks.
    fn empty(&mut self, pool: &mut Vec<Chunk>) {
        pool.extend(self.chunks.iter_mut().filter_map(Option::take));
    }
}

/// The index of a label's frame.
fn frame_of(label: u32) -> usize {
    let number = label / BLOCK_TICKS;
    (number % BLOCKS * BLOCK_TICKS + label % BLOCK_TICKS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const ROWS: usize = 40;

    fn value(row: usize, label: u32) -> [i32; 3] {
        [i32::try_from(row).unwrap(), label.cast_signed(), -1]
    }

    /// Compares a row with a map of all its versions, for all readable ticks.
    fn check(
        blocks: &Blocks,
        row: usize,
        model: &BTreeMap<u32, [i32; 3]>,
        now: u32,
    ) -> Result<(), TestCaseError> {
        prop_assert_eq!(blocks.newest(row), model.keys().next_back().copied());
        for tick in now.saturating_sub(HISTORY_TICKS)..now + 3 {
            let expected = model.range(..=tick).next_back();
            prop_assert_eq!(
                blocks.at(row, tick),
                expected.map(|(_, lanes)| &lanes[..]),
                "row {} at {}",
                row,
                tick
            );
            let next = model.range(tick + 1..).next();
            let expected = expected.zip(next).map(|(a, b)| [a, b].map(|(label, lanes)| (*label, &lanes[..])));
            prop_assert_eq!(blocks.around(row, tick), expected, "around {}", tick);
        }
        if let Some(oldest) = blocks.oldest(row) {
            // No newer version is missing.
            prop_assert_eq!(blocks.at(row, oldest), model.get(&oldest).map(|lanes| &lanes[..]));
            for (label, lanes) in model.range(oldest..) {
                prop_assert_eq!(blocks.at(row, *label), Some(&lanes[..]));
            }
        }
        Ok(())
    }

    proptest! {
        /// Versions arrive mostly in order and sometimes late; some rows change at every tick and some hardly
        /// ever. Every version of the last ticks equals that in a map of all of them.
        #[test]
        fn what_rows_were_at_the_last_ticks_is_known(
            steps in proptest::collection::vec((0u32..300, 0u32..12, 0usize..ROWS, 1usize..ROWS, 0u32..70), 1..120),
            clear_at in 0usize..200,
        ) {
            let (mut blocks, mut models) = (Blocks::new(3), vec![BTreeMap::new(); ROWS]);
            (0..ROWS).for_each(|_| blocks.push_row());
            let mut now = 1_000;
            for (index, (leap, on, first, count, back)) in steps.into_iter().enumerate() {
                now += if leap == 0 { 400 } else { on };
                for (row, model) in models.iter_mut().enumerate().skip(first).take(count) {
                    let label = if row % 5 == 4 { now - back } else { now };
                    blocks.insert(row, label, &value(row, label));
                    model.insert(label, value(row, label));
                }
                if index == clear_at {
                    blocks.clear(first);
                    models[first].clear();
                }
                check(&blocks, first, &models[first], now)?;
            }
            for (row, model) in models.iter().enumerate() {
                check(&blocks, row, model, now)?;
            }
            blocks.shrink(now - HISTORY_TICKS);
            for (row, model) in models.iter_mut().enumerate() {
                // A version older than all readable ones changes nothing.
                if let Some(newest) = blocks.newest(row) {
                    let late = (now - HISTORY_TICKS - 1).min(newest.saturating_sub(1));
                    if blocks.at(row, late).is_some() && !model.contains_key(&late) {
                        blocks.insert(row, late, &value(row, late));
                        model.insert(late, value(row, late));
                    }
                }
                check(&blocks, row, model, now)?;
            }
            blocks.clear_all();
            prop_assert!((0..ROWS).all(|row| blocks.newest(row).is_none() && blocks.at(row, now).is_none()));
            blocks.insert(0, 3, &value(0, 3));
            prop_assert_eq!(blocks.at(0, 5), Some(&value(0, 3)[..]));
        }
    }

    #[test]
    fn what_changes_at_every_tick_takes_bounded_room_and_what_rests_hardly_any() {
        let mut blocks = Blocks::new(7);
        (0..1_000).for_each(|_| blocks.push_row());
        let (lanes, frames) = ([1; 7], BLOCKS * BLOCK_TICKS);
        (0..1_000).for_each(|row| blocks.insert(row, 0, &lanes));
        let resting = blocks.bytes();
        assert!(resting < 1_000 * 120, "{resting} bytes for a thousand rows");
        let mut full = 0;
        for label in 1..1_000 {
            (0..1_000).for_each(|row| blocks.insert(row, label, &lanes));
            if label == frames {
                full = blocks.bytes();
            }
        }
        assert_eq!(blocks.bytes(), full, "it grows no more");
        assert!(full < 1_000 * (FRAMES * 32 + 120), "{full} bytes");
        // One row continues; when the others' versions are too old, their memory can be freed.
        for label in 1_000..1_000 + frames {
            blocks.insert(7, label, &lanes);
        }
        blocks.shrink(1_000 + frames - HISTORY_TICKS);
        assert!(blocks.bytes() < full / 10, "{} bytes of {full}", blocks.bytes());
        assert_eq!(blocks.at(8, 2_000), Some(&lanes[..]));
    }
}
