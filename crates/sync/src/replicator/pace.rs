//! Send rate for distant receivers.

use crate::interest::NEARNESS_MAX;
use parlor_proto::TickRate;

/// Priority at which a near state is sent with each step.
const PRIORITY_NORMAL: u32 = 256;
/// The longest interval between two updates of a changing state, as a fraction of a second: 4 is 250 ms.
const LONGEST_PART: u32 = 4;

/// Returns the interval in steps between two updates of a state that changes all the time: 1 at an eye, more
/// with distance, up to 250 ms. Twice the priority halves it.
///
/// `nearness` is from [`Interest::nearness`](crate::interest::Interest::nearness), or from
/// [`nearness_at`](crate::interest::nearness_at) for a distance. `priority` is the component's (256 is
/// normal). The longest interval applies beyond the radius and below a sixteenth of the normal priority.
pub fn interval_ticks(nearness: u16, priority: u16, rate: TickRate) -> u32 {
    let longest = u32::from(rate.hz()).div_ceil(LONGEST_PART).max(1);
    let urgency = (u32::from(nearness) * u32::from(priority)).max(1);
    (u32::from(NEARNESS_MAX) * PRIORITY_NORMAL).div_ceil(urgency).min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interest::{NEARNESS_MIN, nearness_at};
    use proptest::prelude::*;

    #[test]
    fn t6_t7_the_interval_grows_with_distance_and_shrinks_with_priority() {
        let at =
            |distance, priority| interval_ticks(nearness_at(distance, 100.0), priority, TickRate::DEFAULT);
        assert_eq!([0.0, 25.0, 50.0, 75.0, 100.0, 1e9].map(|distance| at(distance, 256)), [1, 2, 2, 4, 8, 8]);
        assert_eq!([0.0, 50.0, 75.0, 100.0].map(|distance| at(distance, 512)), [1, 1, 2, 8]);
        assert_eq!([0.0, 50.0].map(|distance| at(distance, 128)), [2, 4]);
    }

    proptest! {
        #[test]
        fn it_is_at_least_a_step_and_at_most_a_quarter_of_a_second(
            near in NEARNESS_MIN..=NEARNESS_MAX, priority in 1u16.., hz in 1u16..=240,
        ) {
            let rate = TickRate::new(hz).unwrap();
            let steps = interval_ticks(near, priority, rate);
            prop_assert!(steps >= 1);
            prop_assert!(steps == 1 || steps <= u32::from(hz).div_ceil(4));
            prop_assert!(interval_ticks(near, priority.saturating_mul(2), rate) <= steps);
            prop_assert!(interval_ticks(near / 2, priority, rate) >= steps);
        }
    }
}
