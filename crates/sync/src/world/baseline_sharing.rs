//! Shared baselines: groups members so that they can get the same encoded bodies.
//!
//! Members with the same view differ in the age of the rows that they acknowledged. Each age of baselines is
//! encoded once. A baseline one tick older costs about half a byte for each entity; each further age costs
//! one encoding. So members whose age few others have use the baselines of the next higher age.

use super::publisher::Publisher;

/// Number of ages, in ticks, that can be shared: 0 to 15. Members further behind are encoded alone.
const AGES: usize = 16;

/// From this room size on, one age less is worth one tick of older baselines for each of this many members.
/// In a smaller room fewer members pay for it, so each pays less: in a room of four, on average at most a
/// quarter of a tick.
const WORTH_MEMBERS_MAX: u32 = 16;

/// The number of members with one view at each age: ticks from their newest row to the tick being sent.
type Counts = [u32; AGES];

/// The worth of one age less in a room of `members`, in quarters of a tick of one member's baseline.
fn worth(members: u32) -> u32 {
    let counted = members.min(WORTH_MEMBERS_MAX);
    4 * counted * counted / WORTH_MEMBERS_MAX
}

/// For each age, the age whose baselines its members use: itself or a higher one.
///
/// It is the best partition of a sorted list into intervals. Each interval costs a constant, plus its
/// members' distances from its upper end. Solved by dynamic programming over the end of an interval.
fn shared_ages(counts: &Counts) -> [usize; AGES] {
    let members: u32 = counts.iter().sum();
    let worth = worth(members);
    // For each number of ages from the lowest on: their total cost, and the beginning of the last interval.
    let mut best = [(0u32, 0usize); AGES + 1];
    for end in 1..=AGES {
        let last = end - 1;
        let (mut moved, mut least) = (0, (u32::MAX, last));
        if counts[last] == 0 {
            // No member has this age, so it belongs to no interval.
            best[end] = (best[last].0, last);
            continue;
        }
        for begin in (0..end).rev() {
            moved += 4 * counts[begin] * u32::try_from(last - begin).unwrap_or(0);
            let cost = best[begin].0 + worth + moved;
            // Of equal costs, the one that changes fewer members.
            if cost < least.0 {
                least = (cost, begin);
            }
        }
        best[end] = least;
    }
    let mut shared = core::array::from_fn(|age| age);
    let mut end = AGES;
    while end > 0 {
        let begin = best[end].1;
        shared[begin..end].fill(end - 1);
        end = begin;
    }
    shared
}

/// The age of a member's baselines, and its view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// Members with different views cannot share encoded bodies.
    view: u64,
    age: usize,
    /// The member's index.
    index: usize,
}

/// Computes which members of a room share baselines; reuses its buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct BaselineSharing(Vec<Standing>);

impl BaselineSharing {
    /// Sets the newest baseline that each publisher may use. All publish one world, whose tick is `tick`.
    pub(super) fn arrange<K>(&mut self, tick: u32, publishers: &mut [(K, Publisher)]) {
        self.0.clear();
        for (index, (_, publisher)) in publishers.iter_mut().enumerate() {
            publisher.rows_until = None;
            let age = publisher.all_known_until().and_then(|until| tick.checked_sub(until));
            let age = age.and_then(|age| usize::try_from(age).ok()).filter(|age| *age < AGES);
            self.0.extend(age.map(|age| Standing { view: publisher.view_digest(), age, index }));
        }
        self.0.sort_unstable();
        for alike in self.0.chunk_by(|a, b| a.view == b.view) {
            let mut counts = [0; AGES];
            alike.iter().for_each(|standing| counts[standing.age] += 1);
            let shared = shared_ages(&counts);
            for standing in alike.iter().filter(|_| alike.len() > 1) {
                let age = u32::try_from(shared[standing.age]).unwrap_or(0);
                publishers[standing.index].1.rows_until = tick.checked_sub(age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The cost, in quarters, of a sharing.
    fn cost(counts: &Counts, shared: &[usize; AGES]) -> u32 {
        let members: u32 = counts.iter().sum();
        let mut targets: Vec<usize> =
            (0..AGES).filter(|age| counts[*age] > 0).map(|age| shared[age]).collect();
        targets.dedup();
        let moved = (0..AGES).map(|age| counts[age] * u32::try_from(shared[age] - age).unwrap());
        u32::try_from(targets.len()).unwrap() * worth(members) + 4 * moved.sum::<u32>()
    }

    /// The least cost of all possible sharings: each age in use is the end of an interval or not.
    fn least(counts: &Counts) -> u32 {
        let ages: Vec<usize> = (0..AGES).filter(|age| counts[*age] > 0).collect();
        let Some(highest) = ages.last() else { return 0 };
        let ways = (0..1u32 << (ages.len() - 1)).map(|ends| {
            let is_end = |at: usize| ages[at] == *highest || ends >> at & 1 == 1;
            let mut shared = core::array::from_fn(|age| age);
            for at in 0..ages.len() {
                shared[ages[at]] = ages[(at..).find(|at| is_end(*at)).unwrap()];
            }
            cost(counts, &shared)
        });
        ways.min().unwrap()
    }

    proptest! {
        #[test]
        fn no_other_way_to_share_costs_less(ages in proptest::collection::vec(0usize..AGES, 0..40)) {
            let mut counts = [0; AGES];
            ages.iter().for_each(|age| counts[*age] += 1);
            let shared = shared_ages(&counts);
            for age in ages {
                prop_assert!(shared[age] >= age && counts[shared[age]] > 0, "{:?} share {:?}", counts, shared);
            }
            prop_assert_eq!(cost(&counts, &shared), least(&counts), "{:?} share {:?}", counts, shared);
        }
    }

    #[test]
    fn few_share_with_many_and_many_with_none() {
        let with = |ages: &[(usize, u32)]| {
            let mut counts = [0; AGES];
            ages.iter().for_each(|(age, count)| counts[*age] = *count);
            let shared = shared_ages(&counts);
            ages.iter().map(|(age, _)| shared[*age]).collect::<Vec<_>>()
        };
        assert_eq!(with(&[(1, 4), (2, 3), (3, 3), (4, 4), (5, 2)]), [2, 2, 5, 5, 5]);
        assert_eq!(with(&[(1, 8), (2, 8)]), [2, 2]);
        assert_eq!(with(&[(1, 8), (4, 8)]), [1, 4]);
        assert_eq!(with(&[(1, 20), (2, 20)]), [1, 2]);
        assert_eq!(with(&[(1, 1), (3, 15)]), [3, 3]);
        assert_eq!(with(&[(1, 1), (2, 1)]), [1, 2], "in a small room bytes count more");
    }
}
