//! How much memory histories take, and what happens when it is too much.

use super::store::{World, cutoff};

impl World {
    /// Bytes of memory that versions take, with the room that is kept for more.
    pub(super) fn history_bytes(&self) -> usize {
        self.columns.iter().map(super::column::Column::history_bytes).sum()
    }

    /// Whether histories take so many bytes at most, once everything is gone that nobody can ask for. That is
    /// looked for only when they take more: versions go when others come in their place, and those of an
    /// entity that does not change any more stay.
    pub(super) fn keeps_history_within(&mut self, bytes_max: usize) -> bool {
        if self.history_bytes() <= bytes_max {
            return true;
        }
        let cutoff = cutoff(self.newest_tick());
        self.columns.iter_mut().for_each(|column| column.shrink(cutoff));
        self.history_bytes() <= bytes_max
    }
}
