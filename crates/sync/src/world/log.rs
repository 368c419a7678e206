//! Which entities changed, in the order of the changes.

use crate::limits::CHANGE_LOG_MAX;
use std::collections::VecDeque;

/// A slot of which something changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) slot: u16,
    /// Whether nothing changed but values of its entity's components, and every receiver that sees the entity
    /// sees them.
    pub(super) is_of_values: bool,
}

/// The last changes of a world, each with a serial number. Who has read up to a serial asks what came since.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    changes: VecDeque<Change>,
    /// Serial of the oldest change that is kept.
    start: u64,
}

impl ChangeLog {
    /// Anything of a slot may have changed.
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

    /// The serial that the next change will have.
    pub(super) fn end(&self) -> u64 {
        self.start + self.changes.len() as u64
    }

    /// What changed from serial `from` on, some slots more than once; `None` if not all of these changes
    /// are kept: then everything must be looked at.
    pub(super) fn since(&self, from: u64) -> Option<impl Iterator<Item = Change>> {
        let skip = usize::try_from(from.checked_sub(self.start)?).ok()?;
        Some(self.changes.range(skip.min(self.changes.len())..).copied())
    }

    /// Bytes of memory that it has.
    pub(super) fn memory_bytes(&self) -> usize {
        self.changes.capacity() * size_of::<Change>()
    }

    /// From here on everybody must look at everything.
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
