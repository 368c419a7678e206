//! Selects the rows that an entity is coded against.

use super::HISTORY_MAX;

/// Selects the rows to code an entity against, of those that its receiver is known to have. Returns how many
/// ticks each is before the newest one, and their count. The newest is the baseline and comes first with 0.
///
/// Bit `i` of `acked` is set if the receiver has the row `i` ticks before the newest one; bit 0 is the newest
/// itself. `age` is how many ticks the newest is before the row to be coded.
///
/// Adjacent rows predict motion badly, because each is rounded. Rows far apart describe outdated motion. The
/// best distance grows slowly with the age. The choice is the sender's alone: a receiver accepts any rows.
pub fn pick_history(acked: u64, age: u32) -> ([u32; HISTORY_MAX], usize) {
    let wanted = (2 + age.min(12) / 2).max(3);
    let Some(second) = nearest(acked, wanted, 1) else { return ([0; HISTORY_MAX], 1) };
    let Some(third) = nearest(acked, 2 * second + 1, second + 1) else { return ([0, second, 0], 2) };
    ([0, second, third], 3)
}

/// Returns the set bit that is nearest to `wanted` and not below `least`.
fn nearest(acked: u64, wanted: u32, least: u32) -> Option<u32> {
    let from = acked.checked_shr(least)?.checked_shl(least)?;
    let below = from & (u64::MAX >> (63 - wanted.min(63)));
    let above = from & !(u64::MAX >> (63 - wanted.min(63)));
    let below = below.checked_ilog2();
    let above = (above != 0).then(|| above.trailing_zeros());
    match (below, above) {
        (Some(below), Some(above)) if above - wanted < wanted - below => Some(above),
        (Some(below), _) => Some(below),
        (None, above) => above,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_picked_is_known_and_ever_older(acked in any::<u64>(), age in 1u32..400) {
            let acked = acked | 1;
            let (offsets, count) = pick_history(acked, age);
            prop_assert_eq!(count, (acked.count_ones() as usize).min(count.max(1)));
            prop_assert_eq!(offsets[0], 0);
            for i in 1..count {
                prop_assert!(offsets[i] > offsets[i - 1]);
                prop_assert!(acked >> offsets[i] & 1 == 1);
            }
            if acked.count_ones() == 2 {
                prop_assert_eq!(count, 2);
            }
        }
    }

    #[test]
    fn of_all_rows_those_at_the_best_distance_are_picked() {
        assert_eq!(pick_history(u64::MAX, 2), ([0, 3, 7], 3));
        assert_eq!(pick_history(0b1_0000_0011, 2), ([0, 1, 8], 3));
        assert_eq!(pick_history(1, 2), ([0, 0, 0], 1));
    }
}
