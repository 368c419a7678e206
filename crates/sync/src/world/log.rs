//! The log of changed entities.

use crate::limits::CHANGE_LOG_MAX;
use std::collections::VecDeque;

/// A changed slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) slot: u16,
    /// Whether only component values changed, and every receiver that sees the entity sees them.
    pub(super) is_of_values: bool,
}

/// The last changes of a world, each with a serial number. A reader asks for the changes since its last
/// serial.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    changes: VecDeque<Change>,
    /// Serial of the oldest logged change.
    start: u64,
}

impl ChangeLog {
    /// Logs any change of a slot.
    pub(super) fn push(&mut self, slot: u16) {
        self.push_change(Change { slot, is_of_values: false });
    }

    pub(super) fn push_change(&mut self, change: Change) {
        if self.changes.len() == CHANGE_LOG_MAX {
            self.changes.pop_front();
            self.start += 1;
        }
        self.changes.push_back(change);
    }

    /// The serial of the next change.
    pub(super) fn end(&self) -> u64 {
        self.start + self.changes.len() as u64
    }

    /// Returns the changes from serial `from` on, possibly with repeated slots. `None` if some of them are no
    /// longer logged: then all slots must be scanned.
    pub(super) fn since(&self, from: u64) -> Option<impl Iterator<Item = Change>> {
        let skip = usize::try_from(from.checked_sub(self.start)?).ok()?;
        Some(self.changes.range(skip.min(self.changes.len())..).copied())
    }

    /// Bytes of memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        self.changes.capacity() * size_of::<Change>()
    }

    /// Forces all readers to scan all slots.
    pub(super) fn reset(&mut self) {
        self.start = self.end() + 1;
        self.changes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_far_behind_looks_at_everything() {
        let mut log = ChangeLog::default();
        log.push(3);
        log.push_change(Change { slot: 4, is_of_values: true });
        let last = Change { slot: 4, is_of_values: true };
        assert_eq!(log.since(1).unwrap().collect::<Vec<_>>(), [last]);
        assert_eq!(log.since(log.end()).unwrap().count(), 0);
        for _ in 0..CHANGE_LOG_MAX {
            log.push(5);
        }
        assert!(log.since(1).is_none());
        assert_eq!(log.since(2).unwrap().count(), CHANGE_LOG_MAX);
        log.reset();
        assert!(log.since(log.end() - 1).is_none());
        assert_eq!(log.since(log.end()).unwrap().count(), 0);
    }
}
