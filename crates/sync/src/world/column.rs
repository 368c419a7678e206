//! One component of all entities that have it.

use super::blocks::Blocks;
use super::memory::ALLOCATION_BYTES;
use super::ring::{Form, Ring};
use bytes::Bytes;

/// Rows of one component, found by the slot of their entity. Rows that are given back are used again, with
/// the room that their versions took.
#[derive(Clone, Debug)]
pub(super) struct Column {
    lanes: usize,
    blobs: usize,
    /// For each slot its row, if it has one.
    row_of: Vec<Option<Row>>,
    versions: Versions,
    /// For each row what it is at this moment, committed or not.
    present_lanes: Vec<i32>,
    present_blobs: Vec<Bytes>,
    /// How many rows there are, those that are free included.
    rows: u16,
    free: Vec<Row>,
}

/// What each row was at which tick.
#[derive(Clone, Debug)]
enum Versions {
    /// Of a component without blobs.
    Blocks(Blocks),
    /// Of one with blobs: for each row its own, and the bytes of memory that they take.
    Rings(Vec<Ring>, usize),
}

/// The versions of one row.
#[derive(Clone, Copy)]
pub(super) struct RowHistory<'a> {
    versions: &'a Versions,
    row: usize,
}

impl<'a> RowHistory<'a> {
    /// What it was at `tick`, if that is remembered.
    #[inline]
    pub(super) fn at(self, tick: u32) -> Option<Form<'a>> {
        self.versions.at(self.row, tick)
    }

    /// Whether there is a version that is newer than `tick`.
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

    /// Lanes of one row.
    pub(super) fn lanes(&self) -> usize {
        self.lanes
    }

    /// Blobs of one row.
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

    /// Label of the newest version of the row of a slot, if it has one.
    pub(super) fn newest(&self, slot: u16) -> Option<u32> {
        self.versions.newest(self.row(slot)?)
    }

    /// Label of the oldest version of the row of a slot that is kept, if it has one.
    pub(super) fn oldest(&self, slot: u16) -> Option<u32> {
        let row = self.row(slot)?;
        match &self.versions {
            Versions::Blocks(blocks) => blocks.oldest(row),
            Versions::Rings(rings, _) => rings[row].oldest(),
        }
    }

    /// The versions of a slot, if it has a row.
    #[inline]
    pub(super) fn versions(&self, slot: u16) -> Option<RowHistory<'_>> {
        self.row(slot).map(|row| RowHistory { versions: &self.versions, row })
    }

    /// What the row of a slot was at `tick`, if that is remembered.
    pub(super) fn at(&self, slot: u16, tick: u32) -> Option<Form<'_>> {
        self.versions(slot)?.at(tick)
    }

    /// The version that the row of a slot was at `tick` and the one after that; `None` unless both are kept.
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

    /// What the row of a slot is at this moment.
    pub(super) fn present(&self, slot: u16) -> Option<Form<'_>> {
        let row = self.row(slot)?;
        Some(Form {
            lanes: &self.present_lanes[row * self.lanes..(row + 1) * self.lanes],
            blobs: &self.present_blobs[row * self.blobs..(row + 1) * self.blobs],
        })
    }

    /// Gives the slot a row if it has none.
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

    /// Takes the slot's row away; says whether it had one.
    pub(super) fn free_row(&mut self, slot: u16) -> bool {
        let Some(row) = self.row_of.get_mut(usize::from(slot)).and_then(Option::take) else { return false };
        let at = usize::from(row.0);
        self.versions.clear(at);
        self.present_blobs[at * self.blobs..(at + 1) * self.blobs].fill(Bytes::new());
        self.free.push(row);
        true
    }

    /// Sets what the row of a slot is at this moment; the slot has one.
    pub(super) fn set_present(&mut self, slot: u16, form: Form) {
        let Some(row) = self.row(slot) else { return };
        self.present_lanes[row * self.lanes..(row + 1) * self.lanes].copy_from_slice(form.lanes);
        self.present_blobs[row * self.blobs..(row + 1) * self.blobs].clone_from_slice(form.blobs);
    }

    /// Takes the blobs from what the row of a slot is at this moment, if it has one; says how many bytes they
    /// were.
    pub(super) fn empty_present(&mut self, slot: u16) -> usize {
        let Some(row) = self.row(slot) else { return 0 };
        let blobs = &mut self.present_blobs[row * self.blobs..(row + 1) * self.blobs];
        blobs.iter_mut().map(|blob| core::mem::take(blob).len()).sum()
    }

    /// Adds a version of the row of a slot.
    pub(super) fn insert(&mut self, slot: u16, label: u32, form: Form, cutoff: u32) {
        if let Some(row) = self.row(slot) {
            self.versions.insert(row, label, form, cutoff);
        }
    }

    /// Makes what the row is at this moment its version `label`, if that differs from the newest one or
    /// `always`; says whether it did.
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

    /// Bytes of memory that versions take, with the room that is kept for more.
    pub(super) fn history_bytes(&self) -> usize {
        match &self.versions {
            Versions::Blocks(blocks) => blocks.bytes(),
            Versions::Rings(_, bytes) => *bytes,
        }
    }

    /// Bytes of memory that it has, without the blobs of what rows are at this moment.
    pub(super) fn memory_bytes(&self) -> usize {
        let versions = match &self.versions {
            Versions::Blocks(blocks) => blocks.memory_bytes(),
            // What a blob takes beside its bytes is less than twice the room that it has in its ring.
            Versions::Rings(rings, bytes) => rings.capacity() * size_of::<Ring>() + 3 * bytes,
        };
        versions
            + self.row_of.capacity() * size_of::<Option<Row>>()
            + self.present_lanes.capacity() * size_of::<i32>()
            + self.present_blobs.capacity() * (size_of::<Bytes>() + 2 * ALLOCATION_BYTES)
            + self.free.capacity() * size_of::<Row>()
    }

    /// Drops what `cutoff` does not need, and the room that is kept for more.
    pub(super) fn shrink(&mut self, cutoff: u32) {
        match &mut self.versions {
            Versions::Blocks(blocks) => blocks.shrink(cutoff),
            Versions::Rings(rings, bytes) => {
                rings.iter_mut().for_each(|ring| ring.shrink(cutoff));
                *bytes = rings.iter().map(Ring::bytes).sum();
            }
        }
    }

    /// Forgets all versions; what rows are at this moment stays. What comes next may be older than what there
    /// was.
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
