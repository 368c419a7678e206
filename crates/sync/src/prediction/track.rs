//! One predicted component of one entity: its current row, and those after the last steps.

use super::shown::Eye;
use crate::limits::PREDICTED_TICKS;
use crate::schema::{Component, ComponentId, RowError, RowWriter};
use crate::world::Row;
use bytes::Bytes;
use parlor_proto::Tick;

/// The index of a tick in the rings.
pub(super) fn place(tick: Tick) -> usize {
    (tick.0 % PREDICTED_TICKS) as usize
}

/// The rows of one component. The rings have their full size from the start, so that steps allocate nothing.
#[derive(Clone, Debug)]
pub(super) struct Track {
    pub(super) id: ComponentId,
    is_there: bool,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
    /// One bit for each index: whether the entity had the component.
    were_there: u128,
    past_lanes: Vec<i32>,
    past_blobs: Vec<Bytes>,
    /// The row being written, until it is known to be valid.
    draft: (Vec<i32>, Vec<Bytes>),
    pub(super) eye: Eye,
}

impl Track {
    pub(super) fn new(id: ComponentId, kind: &Component) -> Self {
        let (lanes, blobs, ticks) = (kind.lanes(), kind.blobs(), PREDICTED_TICKS as usize);
        Track {
            id,
            is_there: false,
            lanes: vec![0; lanes],
            blobs: vec![Bytes::new(); blobs],
            were_there: 0,
            past_lanes: vec![0; lanes * ticks],
            past_blobs: vec![Bytes::new(); blobs * ticks],
            draft: (vec![0; lanes], vec![Bytes::new(); blobs]),
            eye: Eye::default(),
        }
    }

    /// The current row; `None` if the entity lacks the component.
    pub(super) fn row(&self) -> Option<Row<'_>> {
        self.is_there.then_some((&self.lanes, &self.blobs))
    }

    /// Sets the current row.
    pub(super) fn set(&mut self, row: Option<Row<'_>>) {
        self.is_there = row.is_some();
        match row {
            Some((lanes, blobs)) => {
                self.lanes.copy_from_slice(lanes);
                self.blobs.clone_from_slice(blobs);
            }
            None => {
                self.lanes.fill(0);
                self.blobs.fill(Bytes::new());
            }
        }
    }

    /// Sets fields of the current row, quantized. Leaves it unless that is a [change](Component::is_change),
    /// as a world does. Returns whether it was one.
    pub(super) fn write(
        &mut self,
        kind: &Component,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Result<bool, RowError> {
        let (lanes, blobs) = &mut self.draft;
        lanes.copy_from_slice(&self.lanes);
        blobs.clone_from_slice(&self.blobs);
        let mut row = RowWriter::new(kind, lanes, blobs);
        write(&mut row);
        row.finish()?;
        if self.is_there && !kind.is_change(&self.lanes, lanes) && self.blobs == *blobs {
            return Ok(false);
        }
        self.is_there = true;
        std::mem::swap(&mut self.lanes, lanes);
        std::mem::swap(&mut self.blobs, blobs);
        Ok(true)
    }

    /// Removes the component. Returns whether it existed.
    pub(super) fn remove(&mut self) -> bool {
        let was_there = self.is_there;
        self.set(None);
        was_there
    }

    /// Stores the current row at an index.
    pub(super) fn keep(&mut self, place: usize) {
        let (lanes, blobs, bit) = (self.lanes.len(), self.blobs.len(), 1 << place);
        self.past_lanes[place * lanes..(place + 1) * lanes].copy_from_slice(&self.lanes);
        self.past_blobs[place * blobs..(place + 1) * blobs].clone_from_slice(&self.blobs);
        self.were_there = if self.is_there { self.were_there | bit } else { self.were_there & !bit };
    }

    /// Replaces the row at an index.
    pub(super) fn put(&mut self, place: usize, row: Option<Row<'_>>) {
        let (lanes, blobs, bit) = (self.lanes.len(), self.blobs.len(), 1 << place);
        if let Some((row_lanes, row_blobs)) = row {
            self.past_lanes[place * lanes..(place + 1) * lanes].copy_from_slice(row_lanes);
            self.past_blobs[place * blobs..(place + 1) * blobs].clone_from_slice(row_blobs);
            self.were_there |= bit;
        } else {
            self.past_lanes[place * lanes..(place + 1) * lanes].fill(0);
            self.past_blobs[place * blobs..(place + 1) * blobs].fill(Bytes::new());
            self.were_there &= !bit;
        }
    }

    /// Returns the row at an index.
    pub(super) fn past(&self, place: usize) -> Option<Row<'_>> {
        let (lanes, blobs) = (self.lanes.len(), self.blobs.len());
        (self.were_there & 1 << place != 0).then(|| {
            (
                &self.past_lanes[place * lanes..(place + 1) * lanes],
                &self.past_blobs[place * blobs..(place + 1) * blobs],
            )
        })
    }

    /// Restores the current row from an index.
    pub(super) fn restore(&mut self, place: usize) {
        let (lanes, blobs) = (self.lanes.len(), self.blobs.len());
        self.lanes.copy_from_slice(&self.past_lanes[place * lanes..(place + 1) * lanes]);
        self.blobs.clone_from_slice(&self.past_blobs[place * blobs..(place + 1) * blobs]);
        self.is_there = self.were_there & 1 << place != 0;
    }
}
