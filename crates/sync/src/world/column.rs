//! The values of one component, for all entities that have it.

use super::blocks::Blocks;
use super::memory::ALLOCATION_BYTES;
use super::ring::{Form, Ring};
use bytes::Bytes;

/// Rows of one component, by the slot of their entity. Freed rows are reused with the memory of their
/// versions.
#[derive(Clone, Debug)]
pub(super) struct Column {
    lanes: usize,
    blobs: usize,
    /// The row of each slot, if it has one.
    row_of: Vec<Option<Row>>,
    versions: Versions,
    /// The present value of each row, committed or not.
    present_lanes: Vec<i32>,
    present_blobs: Vec<Bytes>,
    /// The number of rows, including free ones.
    rows: u16,
    free: Vec<Row>,
}

/// The versions of all rows.
#[derive(Clone, Debug)]
enum Versions {
    /// For a component without blobs.
    Blocks(Blocks),
    /// For a component with blobs: one ring for each row, and the bytes of memory that they use.
    Rings(Vec<Ring>, usize),
}

/// The versions of one row.
#[derive(Clone, Copy)]
pub(super) struct RowHistory<'a> {
    versions: &'a Versions,
    row: usize,
}

impl<'a> RowHistory<'a> {
    /// Returns its version at `tick`, if it is known.
    #[inline]
    pub(super) fn at(self, tick: u32) -> Option<Form<'a>> {
        self.versions.at(self.row, tick)
    }

    /// Whether there is a version after `tick`.
    #[inline]
    pub(super) fn changed_since(self, tick: u32) -> bool {
        self.versions.newest(self.row).is_some_and(|newest| newest > tick)
    }
}

/// A version, with its label.
pub(super) type Labelled<'a> = (u32, Form<'a>);

#[derive(Clone, Copy, Debug)]
struct Row(u16);

impl Column {
    pub(super) fn new(lanes: usize, blobs: usize) -> Self {
        Column {
            lanes,
            blobs,
            row_of: Vec::new(),
            versions: Versions::new(lanes, blobs),
            present_lanes: Vec::new(),
            present_blobs: Vec::new(),
            rows: 0,
            free: Vec::new(),
        }
    }

    /// The number of lanes of a row.
    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    /// The number of blobs of a row.
    pub(super) fn blobs(&self) -> usize {
        self.blobs
    }

    fn row(&self, slot: u16) -> Option<usize> {
        self.row_of.get(usize::from(slot))?.map(|row| usize::from(row.0))
    }

    /// Whether the slot has a row.
    pub(super) fn has_row(&self, slot: u16) -> bool {
        self.row(slot).is_some()
    }

    /// The label of the newest version of a slot's row, if it has one.
    pub(super) fn newest(&self, slot: u16) -> Option<u32> {
        self.versions.newest(self.row(slot)?)
    }

    /// The label of the oldest version of a slot's row, if it has one.
    pub(super) fn oldest(&self, slot: u16) -> Option<u32> {
        let row = self.row(slot)?;
        match &self.versions {
            Versions::Blocks(blocks) => blocks.oldest(row),
            Versions::Rings(rings, _) => rings[row].oldest(),
        }
    }

    /// The versions of a slot's row, if it has one.
    #[inline]
    pub(super) fn versions(&self, slot: u16) -> Option<RowHistory<'_>> {
        self.row(slot).map(|row| RowHistory { versions: &self.versions, row })
    }

    /// Returns the version of a slot's row at `tick`, if it is known.
    pub(super) fn at(&self, slot: u16, tick: u32) -> Option<Form<'_>> {
        self.versions(slot)?.at(tick)
    }

    /// Returns the versions of a slot's row at `tick` and after it; `None` unless both are there.
    pub(super) fn around(&self, slot: u16, tick: u32) -> Option<[Labelled<'_>; 2]> {
        let row = self.row(slot)?;
        match &self.versions {
            Versions::Blocks(blocks) => {
                let around = blocks.around(row, tick)?;
                Some(around.map(|(label, lanes)| (label, Form { lanes, blobs: &[] })))
            }
            Versions::Rings(rings, _) => rings[row].around(tick),
        }
    }

    /// Returns the present value of a slot's row.
    pub(super) fn present(&self, slot: u16) -> Option<Form<'_>> {
        let row = self.row(slot)?;
        Some(Form {
            lanes: &self.present_lanes[row * self.lanes..(row + 1) * self.lanes],
            blobs: &self.present_blobs[row * self.blobs..(row + 1) * self.blobs],
        })
    }

    /// Creates a row for a slot that has none.
    pub(super) fn make_row(&mut self, slot: u16) {
        let index = usize::from(slot);
        if self.row_of.len() <= index {
            self.row_of.resize(index + 1, None);
        }
        if self.row_of[index].is_some() {
            return;
        }
        let row = self.free.pop().unwrap_or_else(|| {
            let row = self.rows;
            self.rows = row.checked_add(1).expect("there are not more rows than slots");
            self.versions.push_row();
            self.present_lanes.resize(self.present_lanes.len() + self.lanes, 0);
            self.present_blobs.resize(self.present_blobs.len() + self.blobs, Bytes::new());
            Row(row)
        });
        self.row_of[index] = Some(row);
    }

    /// Frees a slot's row. Returns whether it had one.
    pub(super) fn free_row(&mut self, slot: u16) -> bool {
        let Some(row) = self.row_of.get_mut(usize::from(slot)).and_then(Option::take) else { return false };
        let at = usize::from(row.0);
        self.versions.clear(at);
        self.present_blobs[at * self.blobs..(at + 1) * self.blobs].fill(Bytes::new());
        self.free.push(row);
        true
    }

    /// Sets the present value of a slot's row, which must exist.
    pub(super) fn set_present(&mut self, slot: u16, form: Form) {
        let Some(row) = self.row(slot) else { return };
        self.present_lanes[row * self.lanes..(row + 1) * self.lanes].copy_from_slice(form.lanes);
        self.present_blobs[row * self.blobs..(row + 1) * self.blobs].clone_from_slice(form.blobs);
    }

    /// Clears the blobs of a slot's present value, if it has a row. Returns their size in bytes.
    pub(super) fn empty_present(&mut self, slot: u16) -> usize {
        let Some(row) = self.row(slot) else { return 0 };
        let blobs = &mut self.present_blobs[row * self.blobs..(row + 1) * self.blobs];
        blobs.iter_mut().map(|blob| core::mem::take(blob).len()).sum()
    }

    /// Inserts a version of a slot's row.
    pub(super) fn insert(&mut self, slot: u16, label: u32, form: Form, cutoff: u32) {
        if let Some(row) = self.row(slot) {
            self.versions.insert(row, label, form, cutoff);
        }
    }

    /// Commits the present value as version `label`, if it differs from the newest version, or if `always`.
    /// Returns whether it did.
    pub(super) fn commit(&mut self, slot: u16, label: u32, always: bool, cutoff: u32) -> bool {
        let Some(row) = self.row(slot) else { return false };
        let form = Form {
            lanes: &self.present_lanes[row * self.lanes..(row + 1) * self.lanes],
            blobs: &self.present_blobs[row * self.blobs..(row + 1) * self.blobs],
        };
        let newest = self.versions.newest(row).filter(|_| !always);
        if newest.is_some_and(|newest| self.versions.at(row, newest) == Some(form)) {
            return false;
        }
        self.versions.insert(row, label, form, cutoff);
        true
    }

    /// Bytes of memory of the versions, including spare capacity.
    pub(super) fn history_bytes(&self) -> usize {
        match &self.versions {
            Versions::Blocks(blocks) => blocks.bytes(),
            Versions::Rings(_, bytes) => *bytes,
        }
    }

    /// Bytes of memory, without the blobs of present values.
    pub(super) fn memory_bytes(&self) -> usize {
        let versions = match &self.versions {
            Versions::Blocks(blocks) => blocks.memory_bytes(),
            // The overhead of a blob is less than twice the memory of its ring.
            Versions::Rings(rings, bytes) => rings.capacity() * size_of::<Ring>() + 3 * bytes,
        };
        versions
            + self.row_of.capacity() * size_of::<Option<Row>>()
            + self.present_lanes.capacity() * size_of::<i32>()
            + self.present_blobs.capacity() * (size_of::<Bytes>() + 2 * ALLOCATION_BYTES)
            + self.free.capacity() * size_of::<Row>()
    }

    /// Drops versions that are needed only before `cutoff`, and spare memory.
    pub(super) fn shrink(&mut self, cutoff: u32) {
        match &mut self.versions {
            Versions::Blocks(blocks) => blocks.shrink(cutoff),
            Versions::Rings(rings, bytes) => {
                rings.iter_mut().for_each(|ring| ring.shrink(cutoff));
                *bytes = rings.iter().map(Ring::bytes).sum();
            }
        }
    }

    /// Drops all versions; keeps the present values. The next version may be older than they were.
    pub(super) fn forget(&mut self) {
        match &mut self.versions {
            Versions::Blocks(blocks) => blocks.clear_all(),
            Versions::Rings(rings, bytes) => {
                rings.iter_mut().for_each(Ring::clear);
                *bytes = rings.iter().map(Ring::bytes).sum();
            }
        }
    }
}

impl Versions {
    fn new(lanes: usize, blobs: usize) -> Self {
        if blobs == 0 { Versions::Blocks(Blocks::new(lanes)) } else { Versions::Rings(Vec::new(), 0) }
    }

    fn push_row(&mut self) {
        match self {
            Versions::Blocks(blocks) => blocks.push_row(),
            Versions::Rings(rings, _) => rings.push(Ring::default()),
        }
    }

    fn newest(&self, row: usize) -> Option<u32> {
        match self {
            Versions::Blocks(blocks) => blocks.newest(row),
            Versions::Rings(rings, _) => rings[row].newest(),
        }
    }

    fn at(&self, row: usize, tick: u32) -> Option<Form<'_>> {
        match self {
            Versions::Blocks(blocks) => blocks.at(row, tick).map(|lanes| Form { lanes, blobs: &[] }),
            Versions::Rings(rings, _) => rings[row].at(tick),
        }
    }

    fn insert(&mut self, row: usize, label: u32, form: Form, cutoff: u32) {
        match self {
            Versions::Blocks(blocks) => blocks.insert(row, label, form.lanes),
            Versions::Rings(rings, bytes) => {
                let ring = &mut rings[row];
                let before = ring.bytes();
                ring.insert(label, form, cutoff);
                *bytes = *bytes + ring.bytes() - before;
            }
        }
    }

    fn clear(&mut self, row: usize) {
        match self {
            Versions::Blocks(blocks) => blocks.clear(row),
            Versions::Rings(rings, bytes) => {
                let before = rings[row].bytes();
                rings[row].clear();
                *bytes = *bytes + rings[row].bytes() - before;
            }
        }
    }
}
