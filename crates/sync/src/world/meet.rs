//! Baselines on which members meet.
//!
//! Members with the same view differ in how fresh the rows are that they are known to have: one acknowledges at once, another 100 ms
//! later. Each age of baselines is coded once. Older baselines than the freshest cost some bytes, about half a byte for each
//! entity and tick; coding costs time, for each age the same. So where few members have an age of their own, they build on the
//! rows that the members with the next higher age have.

use super::publisher::Publisher;

/// Ages, in ticks, of members who may meet. Whoever is farther behind stays alone: 15 is the highest.
const AGES: usize = 16;

/// In a room of so many members or more, one age less is worth one tick by which the baselines of each of so many get older. In a
/// smaller one fewer have to pay for it, so each pays that much less: no member of a room of four gives more than a quarter of a
/// tick, on average.
const WORTH_MEMBERS_MAX: u32 = 16;

/// How many members with one view have each age: ticks from the newest row that they have to the tick that is sent.
type Counts = [u32; AGES];

/// What one age less is worth in a room of so many members: by how many quarters of a tick the baseline of one gets older.
fn worth(members: u32) -> u32 {
    let counted = members.min(WORTH_MEMBERS_MAX);
    4 * counted * counted / WORTH_MEMBERS_MAX
}

/// For each age the one that members with it take on: itself or a higher one that others have.
///
/// The best partition of a sorted list into intervals, each of which costs the same and besides what its members are away from its
/// upper end; by dynamic programming over where an interval ends.
fn meet(counts: &Counts) -> [usize; AGES] {
    let members: u32 = counts.iter().sum();
    let worth = worth(members);
    // For each number of ages from the lowest on: what they cost together, and where the last interval begins.
    let mut best = [(0u32, 0usize); AGES + 1];
    for end in 1..=AGES {
        let last = end - 1;
        let (mut moved, mut least) = (0, (u32::MAX, last));
        if counts[last] == 0 {
            // Nobody is here to be met. It belongs to no interval.
            best[end] = (best[last].0, last);
            continue;
        }
        for begin in (0..end).rev() {
            moved += 4 * counts[begin] * u32::try_from(last - begin).unwrap_or(0);
            let cost = best[begin].0 + worth + moved;
            // Of equal ones the one that leaves more as they are.
            if cost < least.0 {
                least = (cost, begin);
            }
        }
        best[end] = least;
    }
    let mut met = core::array::from_fn(|age| age);
    let mut end = AGES;
    while end > 0 {
        let begin = best[end].1;
        met[begin..end].fill(end - 1);
        end = begin;
    }
    met
}

/// How fresh the rows are that a member has, and what it sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Standing {
    /// Members with another one see something else, so nothing that is coded for one serves the other.
    view: u64,
    age: usize,
    /// Where the member is.
    index: usize,
}

/// Where the members of a room meet; what it takes to find out.
#[derive(Clone, Debug, Default)]
pub(super) struct Meeting(Vec<Standing>);

impl Meeting {
    /// Tells publishers, all of one world whose tick is `tick`, which rows to build on.
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
            let met = meet(&counts);
            for standing in alike.iter().filter(|_| alike.len() > 1) {
                let age = u32::try_from(met[standing.age]).unwrap_or(0);
                publishers[standing.index].1.rows_until = tick.checked_sub(age);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What it costs, in quarters, that members with these ages meet so.
    fn cost(counts: &Counts, met: &[usize; AGES]) -> u32 {
        let members: u32 = counts.iter().sum();
        let mut targets: Vec<usize> = (0..AGES).filter(|age| counts[*age] > 0).map(|age| met[age]).collect();
        targets.dedup();
        let moved = (0..AGES).map(|age| counts[age] * u32::try_from(met[age] - age).unwrap());
        u32::try_from(targets.len()).unwrap() * worth(members) + 4 * moved.sum::<u32>()
    }

    /// The least that any way to meet costs: each age that somebody has is the end of an interval or not.
    fn least(counts: &Counts) -> u32 {
        let ages: Vec<usize> = (0..AGES).filter(|age| counts[*age] > 0).collect();
        let Some(highest) = ages.last() else { return 0 };
        let ways = (0..1u32 << (ages.len() - 1)).map(|ends| {
            let is_end = |at: usize| ages[at] == *highest || ends >> at & 1 == 1;
            let mut met = core::array::from_fn(|age| age);
            for at in 0..ages.len() {
                met[ages[at]] = ages[(at..).find(|at| is_end(*at)).unwrap()];
            }
            cost(counts, &met)
        });
        ways.min().unwrap()
    }

    proptest! {
        #[test]
        fn no_other_way_to_meet_costs_less(ages in proptest::collection::vec(0usize..AGES, 0..40)) {
            let mut counts = [0; AGES];
            ages.iter().for_each(|age| counts[*age] += 1);
            let met = meet(&counts);
            for age in ages {
                prop_assert!(met[age] >= age && counts[met[age]] > 0, "{:?} meet at {:?}", counts, met);
            }
            prop_assert_eq!(cost(&counts, &met), least(&counts), "{:?} meet at {:?}", counts, met);
        }
    }

    #[test]
    fn few_meet_with_many_and_many_with_none() {
        let with = |ages: &[(usize, u32)]| {
            let mut counts = [0; AGES];
            ages.iter().for_each(|(age, count)| counts[*age] = *count);
            let met = meet(&counts);
            ages.iter().map(|(age, _)| met[*age]).collect::<Vec<_>>()
        };
        assert_eq!(with(&[(1, 4), (2, 3), (3, 3), (4, 4), (5, 2)]), [2, 2, 5, 5, 5]);
        assert_eq!(with(&[(1, 8), (2, 8)]), [2, 2]);
        assert_eq!(with(&[(1, 8), (4, 8)]), [1, 4]);
        assert_eq!(with(&[(1, 20), (2, 20)]), [1, 2]);
        assert_eq!(with(&[(1, 1), (3, 15)]), [3, 3]);
        assert_eq!(with(&[(1, 1), (2, 1)]), [1, 2], "in a small room bytes count more");
    }
}
