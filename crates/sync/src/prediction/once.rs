//! One-shot effects: shown once, however often their step is run.

use crate::limits::{EFFECT_TICKS, EFFECTS_MAX};
use parlor_proto::OrderedSet;
use parlor_proto::Tick;
use std::collections::VecDeque;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Remembers which one-shot effects were shown in the last [`EFFECT_TICKS`] ticks, at most [`EFFECTS_MAX`] of
/// them.
#[derive(Clone, Debug, Default)]
pub struct Once {
    /// Oldest first, with the tick at which each was shown.
    shown: VecDeque<(Tick, u64)>,
    marks: OrderedSet<u64>,
    forgotten: u64,
}

impl Once {
    /// Whether this effect must be shown: true for the first call with this number. An effect that appears
    /// only in a replay was not shown before, and is. `newest` is the newest step that was run.
    ///
    /// Effects are identified by 64 bits of xxh3 of name and number.
    pub fn is_first(&mut self, effect: &str, number: u64, newest: Tick) -> bool {
        while let Some((shown, mark)) = self.shown.front().copied()
            && (newest.since(shown).unsigned_abs() > EFFECT_TICKS || self.shown.len() >= EFFECTS_MAX)
        {
            self.forgotten += u64::from(newest.since(shown).unsigned_abs() <= EFFECT_TICKS);
            self.marks.remove(&mark);
            self.shown.pop_front();
        }
        let mark = xxh3_64_with_seed(effect.as_bytes(), number);
        let is_first = self.marks.insert(mark);
        if is_first {
            self.shown.push_back((newest, mark));
        }
        is_first
    }

    /// Effects that were forgotten early, because there were too many. They may be shown twice.
    pub const fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_is_shown_once_and_may_come_again_much_later() {
        let mut once = Once::default();
        assert!(once.is_first("shot", 7, Tick(100)));
        assert!(!once.is_first("shot", 7, Tick(101)));
        assert!(once.is_first("shot", 8, Tick(101)) && once.is_first("step", 7, Tick(101)));
        assert!(!once.is_first("shot", 7, Tick(100 + EFFECT_TICKS)));
        assert!(once.is_first("shot", 7, Tick(101 + EFFECT_TICKS)));
        assert_eq!(once.forgotten(), 0);
    }

    #[test]
    fn too_many_effects_take_no_more_room() {
        let mut once = Once::default();
        let many = EFFECTS_MAX as u64 + 10;
        assert!((0..many).all(|number| once.is_first("spark", number, Tick(5))));
        assert_eq!((once.shown.len(), once.marks.len(), once.forgotten()), (EFFECTS_MAX, EFFECTS_MAX, 10));
        assert!(!once.is_first("spark", many - 1, Tick(5)), "the newest are remembered");
    }
}
