//! The due times of connections: one entry each, so that memory does not depend on how often a time changes.

use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Debug, Default)]
pub(super) struct Timers {
    entries: BTreeSet<(Instant, u32)>,
}

impl Timers {
    /// The earliest time.
    pub(super) fn next(&self) -> Option<Instant> {
        self.entries.first().map(|(at, _)| *at)
    }

    /// The earliest time, and its connection.
    pub(super) fn first(&self) -> Option<(Instant, u32)> {
        self.entries.first().copied()
    }

    /// Takes out a connection that is due at `now`.
    pub(super) fn expire(&mut self, now: Instant) -> Option<u32> {
        let (at, slot) = *self.entries.first()?;
        if at > now {
            return None;
        }
        self.entries.pop_first();
        Some(slot)
    }

    /// Moves the entry of a connection from `entry` to `due`, if that is earlier. An early wake-up costs
    /// less, and is rarer, than moving the entry with each packet.
    pub(super) fn advance(&mut self, slot: u32, entry: &mut Option<Instant>, due: Option<Instant>) {
        let Some(due) = due else { return };
        if entry.is_none_or(|entry| due < entry) {
            self.remove(slot, entry);
            self.entries.insert((due, slot));
            *entry = Some(due);
        }
    }

    /// Removes the entry of a connection.
    pub(super) fn remove(&mut self, slot: u32, entry: &mut Option<Instant>) {
        if let Some(entry) = entry.take() {
            self.entries.remove(&(entry, slot));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    #[test]
    fn an_entry_moves_to_the_earlier_time_only_and_goes_off_once() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timers = Timers::default();
        let (mut first, mut second) = (None, None);
        timers.advance(1, &mut first, Some(at(20)));
        timers.advance(2, &mut second, Some(at(30)));
        timers.advance(1, &mut first, Some(at(40)));
        assert_eq!(timers.next(), Some(at(20)), "it is not moved back");
        timers.advance(2, &mut second, Some(at(10)));
        timers.advance(2, &mut second, None);
        assert_eq!((timers.next(), second), (Some(at(10)), Some(at(10))));
        assert_eq!(timers.expire(at(9)), None);
        assert_eq!(timers.expire(at(20)), Some(2));
        assert_eq!(timers.expire(at(20)), Some(1));
        assert_eq!(timers.expire(at(100)), None, "each has one entry");
    }
}
