//! Which entities changed, in the order of the changes.

use crate::limits::CHANGE_LOG_MAX;
use std::collections::VecDeque;

/// The last changes of a world, each with a serial number. Who has read up to a serial asks what came since.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangeLog {
    slots: VecDeque<u16>,
    /// Serial of the oldest change that is kept.
    start: u64,
}

impl ChangeLog {
    pub(super) fn push(&mut self, slot: u16) {
        if self.slots.len() == CHANGE_LOG_MAX {
            self.slots.pop_front();
            self.start += 1;
        }
        self.slots.push_back(slot);
    }

    /// The serial that the next change will have.
    pub(super) fn end(&self) -> u64 {
        self.start + self.slots.len() as u64
    }

    /// The slots that changed from serial `from` on, some of them more than once; `None` if not all of these changes
    /// are kept: then everything must be looked at.
    pub(super) fn since(&self, from: u64) -> Option<impl Iterator<Item = u16>> {
        let skip = usize::try_from(from.checked_sub(self.start)?).ok()?;
        Some(self.slots.iter().skip(skip).copied())
    }

    /// From here on everybody must look at everything.
    pub(super) fn reset(&mut self) {
        self.start = self.end() + 1;
        self.slots.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_too_far_behind_looks_at_everything() {
        let mut log = ChangeLog::default();
        log.push(3);
        log.push(4);
        assert_eq!(log.since(1).unwrap().collect::<Vec<_>>(), [4]);
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
