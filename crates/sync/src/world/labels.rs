//! Labels of the rows received of an entity.

use crate::limits::HISTORY_TICKS;

/// Labels of received rows: the newest, those at most [`HISTORY_TICKS`] older, and the newest one before
/// them. A packet may build on no others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Labels {
    newest: Option<u32>,
    /// Bit *i* is label `newest − 1 − i`.
    older: u128,
    /// The newest of all older ones.
    before: Option<u32>,
}

const _: () = assert!(HISTORY_TICKS == u128::BITS, "one bit for each label");

impl Labels {
    pub(super) fn newest(&self) -> Option<u32> {
        self.newest
    }

    pub(super) fn clear(&mut self) {
        *self = Labels::default();
    }

    pub(super) fn has(&self, label: u32) -> bool {
        let Some(newest) = self.newest else { return false };
        match newest.checked_sub(label) {
            None => false,
            Some(0) => true,
            Some(back) => {
                self.older.checked_shr(back - 1).is_some_and(|bits| bits & 1 == 1)
                    || self.before == Some(label)
            }
        }
    }

    pub(super) fn insert(&mut self, label: u32) {
        let Some(newest) = self.newest.replace(self.newest.map_or(label, |newest| newest.max(label))) else {
            return;
        };
        if label > newest {
            let on = label - newest;
            // Including the newest one so far, which is bit 0 of this: the bits shifted out at the upper end.
            let falls = if on < u128::BITS { self.older >> (u128::BITS - on) } else { self.older };
            let fallen = match (falls != 0, on > u128::BITS) {
                (_, true) => Some(newest),
                (true, _) => {
                    let lowest = (u128::BITS - on.min(u128::BITS)) + falls.trailing_zeros();
                    Some(newest - 1 - lowest)
                }
                _ => None,
            };
            self.before = fallen.or(self.before);
            self.older = self.older.checked_shl(on).unwrap_or(0) | 1u128.checked_shl(on - 1).unwrap_or(0);
        } else if let Some(back) = (newest - label).checked_sub(1) {
            match 1u128.checked_shl(back) {
                Some(bit) => self.older |= bit,
                None => self.before = self.before.max(Some(label)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_knows_the_last_ones_and_the_one_before(
            steps in proptest::collection::vec((0u32..160, 0u32..300, any::<bool>()), 1..120),
        ) {
            let (mut labels, mut model, mut newest) = (Labels::default(), BTreeSet::new(), 1_000);
            for (on, back, is_late) in steps {
                let label = if is_late { newest - back.min(newest) } else { newest + on };
                newest = newest.max(label);
                labels.insert(label);
                model.insert(label);
                let last = *model.last().unwrap();
                let edge = last.saturating_sub(HISTORY_TICKS);
                let before = model.range(..edge).next_back().copied();
                prop_assert_eq!(labels.newest(), Some(last));
                for tick in 0..newest + 5 {
                    let expected = (tick >= edge || Some(tick) == before) && model.contains(&tick);
                    prop_assert_eq!(labels.has(tick), expected, "{}", tick);
                }
            }
        }
    }
}
