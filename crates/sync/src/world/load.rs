//! Memory limit of histories.

use super::store::{World, cutoff};

impl World {
    /// Bytes of memory of the versions, including spare capacity.
    pub(super) fn history_bytes(&self) -> usize {
        self.columns.iter().map(super::column::Column::history_bytes).sum()
    }

    /// Whether histories use at most this many bytes once unreadable versions are dropped. These are dropped
    /// only if the limit is exceeded. Normally a new version replaces an old one, and versions of unchanged
    /// entities stay.
    pub(super) fn keeps_history_within(&mut self, bytes_max: usize) -> bool {
        if self.history_bytes() <= bytes_max {
            return true;
        }
        let cutoff = cutoff(self.newest_tick());
        self.columns.iter_mut().for_each(|column| column.shrink(cutoff));
        self.history_bytes() <= bytes_max
    }
}
