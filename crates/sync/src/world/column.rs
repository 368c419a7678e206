//! One component of all entities that have it.

use super::ring::{Form, Ring};
use bytes::Bytes;
use core::num::NonZeroU32;

/// Rows of one component, found by the slot of their entity. Rows that are given back are used again, with the room
/// that their versions took.
#[derive(Clone, Debug)]
pub(super) struct Column {
    lanes: usize,
    blobs: usize,
    /// For each slot its row, if it has one.
    row_of: Vec<Option<Row>>,
    rings: Vec<Ring>,
    /// For each row what it is at this moment, committed or not.
    present_lanes: Vec<i32>,
    present_blobs: Vec<Bytes>,
    free: Vec<Row>,
    /// The versions of the last ticks once more, if they have no blobs: all rows of a tick side by side, because that is how
    /// publishers ask for them. A version with label *t* stands in frame *t* modulo their number.
    recent: Vec<Frame>,
    /// Bytes of memory that the versions take in `rings`.
    rings_bytes: usize,
}

/// The versions of one row.
#[derive(Clone, Copy)]
pub(super) struct Versions<'a> {
    column: &'a Column,
    row: usize,
}

impl<'a> Versions<'a> {
    /// What it was at `tick`, if that is remembered.
    #[inline]
    pub(super) fn at(self, tick: u32) -> Option<Form<'a>> {
        let Versions { column, row } = self;
        if let Some(frame) = column.frame(tick)
            && frame.has(row, tick)
        {
            let lanes = column.lanes;
            return Some(Form { lanes: &frame.lanes[row * lanes..(row + 1) * lanes], blobs: &[] });
        }
        column.rings[row].at(tick)
    }

    /// Whether there is a version that is newer than `tick`; `label` is newer, and perhaps there is one of it.
    #[inline]
    pub(super) fn changed_since(self, tick: u32, label: u32) -> bool {
        let Versions { column, row } = self;
        let is_there = column.frame(label).is_some_and(|frame| frame.has(row, label));
        (is_there && label > tick) || column.rings[row].newest().is_some_and(|newest| newest > tick)
    }
}

/// Versions of one tick.
#[derive(Clone, Debug, Default)]
struct Frame {
    /// For each row the tick after its label.
    after: Vec<Option<NonZeroU32>>,
    lanes: Vec<i32>,
}

impl Frame {
    /// Whether the version of a row that is here has this label.
    fn has(&self, row: usize, label: u32) -> bool {
        matches!(self.after.get(row), Some(Some(found)) if Some(*found) == after(label))
    }
}

/// Ticks whose versions stand side by side: those of most baselines, and of the rows before them that say how it
/// moved.
const RECENT_TICKS: usize = 32;

#[derive(Clone, Copy, Debug)]
struct Row(u16);

impl Column {
    pub(super) fn new(lanes: usize, blobs: usize) -> Self {
        Column {
            lanes,
            blobs,
            row_of: Vec::new(),
            rings: Vec::new(),
            present_lanes: Vec::new(),
            present_blobs: Vec::new(),
            free: Vec::new(),
            recent: if blobs == 0 { vec![Frame::default(); RECENT_TICKS] } else { Vec::new() },
            rings_bytes: 0,
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

    /// The versions of a slot, if it has a row.
    pub(super) fn ring(&self, slot: u16) -> Option<&Ring> {
        self.row(slot).map(|row| &self.rings[row])
    }

    /// The versions of a slot, wherever they stand, if it has a row.
    #[inline]
    pub(super) fn versions(&self, slot: u16) -> Option<Versions<'_>> {
        self.row(slot).map(|row| Versions { column: self, row })
    }

    /// What the row of a slot was at `tick`, if that is remembered.
    pub(super) fn at(&self, slot: u16, tick: u32) -> Option<Form<'_>> {
        self.versions(slot)?.at(tick)
    }

    fn frame(&self, label: u32) -> Option<&Frame> {
        self.recent.get(label as usize % RECENT_TICKS)
    }

    /// Keeps a version where those of its tick are.
    fn keep(recent: &mut [Frame], row: usize, label: u32, lanes: &[i32]) {
        if let Some(frame) = recent.get_mut(label as usize % RECENT_TICKS) {
            // It grows when there is something to put in: what comes at one tick shall not take the room of all ticks.
            if frame.after.len() <= row {
                frame.after.resize(row + 1, None);
                frame.lanes.resize((row + 1) * lanes.len(), 0);
            }
            frame.after[row] = after(label);
            frame.lanes[row * lanes.len()..(row + 1) * lanes.len()].copy_from_slice(lanes);
        }
    }

    /// Forgets the versions of a row.
    fn clear(&mut self, row: usize) {
        self.change(row, Ring::clear);
        let places = self.recent.iter_mut().filter_map(|frame| frame.after.get_mut(row));
        places.for_each(|after| *after = None);
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
            let row = u16::try_from(self.rings.len()).expect("there are not more rows than slots");
            self.rings.push(Ring::default());
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
        self.clear(at);
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

    /// Takes the blobs from what the row of a slot is at this moment, if it has one; says how many bytes they were.
    pub(super) fn empty_present(&mut self, slot: u16) -> usize {
        let Some(row) = self.row(slot) else { return 0 };
        let blobs = &mut self.present_blobs[row * self.blobs..(row + 1) * self.blobs];
        blobs.iter_mut().map(|blob| core::mem::take(blob).len()).sum()
    }

    /// Adds a version of the row of a slot.
    pub(super) fn insert(&mut self, slot: u16, label: u32, form: Form, cutoff: u32) {
        if let Some(row) = self.row(slot)
            && self.change(row, |ring| ring.insert(label, form, cutoff))
        {
            Self::keep(&mut self.recent, row, label, form.lanes);
        }
    }

    /// Makes what the row is at this moment its version `label`, if that differs from the newest one or `always`; says
    /// whether it did.
    pub(super) fn commit(&mut self, slot: u16, label: u32, always: bool, cutoff: u32) -> bool {
        let Some(row) = self.row(slot) else { return false };
        let form = Form {
            lanes: &self.present_lanes[row * self.lanes..(row + 1) * self.lanes],
            blobs: &self.present_blobs[row * self.blobs..(row + 1) * self.blobs],
        };
        // The version is asked for where those of its tick are: they come one after another.
        let newest = self.rings[row].newest().filter(|_| !always);
        if newest.is_some_and(|newest| self.at(slot, newest) == Some(form)) {
            return false;
        }
        let ring = &mut self.rings[row];
        let before = ring.bytes();
        let is_new = ring.insert(label, form, cutoff);
        self.rings_bytes = self.rings_bytes + ring.bytes() - before;
        if is_new {
            Self::keep(&mut self.recent, row, label, form.lanes);
        }
        true
    }

    /// Does something with the versions of a row, and counts what they take then.
    fn change<T>(&mut self, row: usize, change: impl FnOnce(&mut Ring) -> T) -> T {
        let ring = &mut self.rings[row];
        let before = ring.bytes();
        let result = change(ring);
        self.rings_bytes = self.rings_bytes + ring.bytes() - before;
        result
    }

    /// Bytes of memory that versions take, with the room that is kept for more.
    pub(super) fn history_bytes(&self) -> usize {
        let frames =
            self.recent.iter().map(|frame| size_of::<i32>() * (frame.after.len() + frame.lanes.len()));
        self.rings_bytes + frames.sum::<usize>()
    }

    /// Drops what `cutoff` does not need, the room that is kept for more, and what stands side by side: it stands in its row too.
    pub(super) fn shrink(&mut self, cutoff: u32) {
        (0..self.rings.len()).for_each(|row| self.change(row, |ring| ring.shrink(cutoff)));
        self.recent.iter_mut().for_each(|frame| *frame = Frame::default());
    }

    /// Forgets all versions of the row of a slot; what it is at this moment stays.
    pub(super) fn forget(&mut self, slot: u16) {
        if let Some(row) = self.row(slot) {
            self.clear(row);
        }
    }
}

/// What stands for a label in a [`Frame`]; none for the last tick that there is, which no frame has then.
fn after(label: u32) -> Option<NonZeroU32> {
    label.checked_add(1).and_then(NonZeroU32::new)
}
