//! Rate limits: for one subject, and for many in constant memory.
//!
//! A budget keeps for each key the instant at which all spending is paid back. Spending moves that instant
//! on. A key whose instant is too far ahead must wait. This is the generic cell rate algorithm (GCRA), a
//! token bucket.
//!
//! [`Budgets`] keeps them in a table of fixed size, a count-min sketch. Each key has one cell in each of
//! [`ROWS`] rows, and its debt is the minimum of its cells. Cells are shared, so a key may seem to owe more
//! than it does, never less: using many names clears no debt. A map with eviction would let a flooding
//! attacker influence which key is evicted.

use core::time::Duration;
use parlor_proto::Instant;

/// A rate limit: `burst` at once, then one more per `interval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many at once, at least one.
    pub burst: u32,
    /// How long until one more.
    pub interval: Duration,
}

impl Rate {
    /// Returns a rate of `per_second` on average, with a burst of `seconds` times that.
    pub fn per_second(per_second: u32, seconds: u32) -> Self {
        let per_second = per_second.max(1);
        Rate { burst: per_second.saturating_mul(seconds), interval: Duration::from_secs(1) / per_second }
    }

    /// Returns how long a subject that is paid up at `paid_at` must wait; zero if it need not wait.
    fn wait(self, paid_at: Instant, now: Instant) -> Duration {
        let most = self.interval * self.burst.max(1).saturating_sub(1);
        paid_at.saturating_since(now).saturating_sub(most)
    }

    /// Returns the instant at which all is paid back after one more is spent. The debt never exceeds a whole
    /// burst, so that waiting for the reported time always suffices.
    fn spend(self, paid_at: Instant, now: Instant) -> Instant {
        (paid_at.max(now) + self.interval).min((now + self.interval * self.burst.max(1)).max(paid_at))
    }
}

/// The budget of one subject.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    paid_at: Instant,
}

impl Budget {
    /// Returns how long until one more may be spent; zero if it may be at once.
    pub fn wait(&self, rate: Rate, now: Instant) -> Duration {
        rate.wait(self.paid_at, now)
    }

    /// Returns how long until all spending is paid back.
    pub fn owes(&self, now: Instant) -> Duration {
        self.paid_at.saturating_since(now)
    }

    /// Spends one, whether or not the budget allows it.
    pub fn spend(&mut self, rate: Rate, now: Instant) {
        self.paid_at = rate.spend(self.paid_at, now);
    }
}

/// Cells of each key.
pub const ROWS: usize = 4;
/// Cells in each row. With this many keys in debt at once, one in six keys without debt seems to be in debt.
pub const CELLS: usize = 1 << 14;

/// The budgets of many keys. See the [module](self).
#[derive(Debug)]
pub struct Budgets {
    /// When the spending on a cell is paid back.
    cells: Vec<Instant>,
    /// The hash parameters of each row. Secret, so that attackers cannot choose colliding keys.
    spread: [(u64, u64); ROWS],
}

impl Budgets {
    /// Creates an empty table. `random` returns unpredictable numbers, uniform over 64 bits.
    pub fn new(mut random: impl FnMut() -> u64) -> Self {
        Budgets {
            cells: vec![Instant::ZERO; ROWS * CELLS],
            spread: [(); ROWS].map(|()| (random() | 1, random())),
        }
    }

    /// Returns how long `key` must wait before it may spend one more; zero if it need not wait.
    pub fn wait(&self, key: u64, rate: Rate, now: Instant) -> Duration {
        rate.wait(self.paid_at(key), now)
    }

    /// Returns how long `key` must wait before it may spend one more, as if it had spent `more` first.
    pub fn wait_after(&self, key: u64, more: u32, rate: Rate, now: Instant) -> Duration {
        rate.wait(self.paid_at(key).max(now) + rate.interval * more, now)
    }

    /// Spends one of `key`'s, whether or not its budget allows it.
    pub fn spend(&mut self, key: u64, rate: Rate, now: Instant) {
        let paid_at = rate.spend(self.paid_at(key), now);
        for cell in self.cells_of(key) {
            self.cells[cell] = self.cells[cell].max(paid_at);
        }
    }

    fn paid_at(&self, key: u64) -> Instant {
        self.cells_of(key).map(|cell| self.cells[cell]).into_iter().min().expect("a key has cells")
    }

    fn cells_of(&self, key: u64) -> [usize; ROWS] {
        let mut row = 0;
        self.spread.map(|(factor, term)| {
            // The upper bits of a product depend on all bits of the key.
            let hash = key.wrapping_mul(factor).wrapping_add(term) >> (u64::BITS - CELLS.ilog2());
            row += CELLS;
            row - CELLS + usize::try_from(hash).expect("it is below the length of a row")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_proto::random::SplitMix64;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut random = SplitMix64::new(seed);
        move || random.draw()
    }

    /// A straightforward token bucket as the model.
    struct Bucket {
        tokens: f64,
        at: Instant,
    }

    impl Bucket {
        fn take(&mut self, rate: Rate, now: Instant) -> bool {
            let earned = now.saturating_since(self.at).as_secs_f64() / rate.interval.as_secs_f64();
            (self.tokens, self.at) = ((self.tokens + earned).min(rate.burst.into()), now);
            let has = self.tokens >= 1.0 - 1e-6;
            self.tokens -= if has { 1.0 } else { 0.0 };
            has
        }
    }

    proptest! {
        #[test]
        fn one_budget_is_a_bucket_of_tokens(
            burst in 1u32..8,
            interval_ms in 1u64..2_000,
            steps in prop::collection::vec(0u64..1_000, 1..200),
        ) {
            let rate = Rate { burst, interval: Duration::from_millis(interval_ms) };
            let mut bucket = Bucket { tokens: burst.into(), at: Instant::ZERO };
            let (mut budget, mut now) = (Budget::default(), Instant::ZERO);
            for step in steps {
                now += Duration::from_millis(step);
                let may = budget.wait(rate, now).is_zero();
                prop_assert_eq!(may, bucket.take(rate, now), "at {}", now);
                if may {
                    budget.spend(rate, now);
                }
            }
        }

        #[test]
        fn nobody_in_a_table_gets_more_than_alone(seed: u64, steps in prop::collection::vec((0u64..40, 0u64..300), 1..400)) {
            let rate = Rate { burst: 3, interval: Duration::from_millis(500) };
            let mut table = Budgets::new(numbers(seed));
            let mut alone: BTreeMap<u64, Budget> = BTreeMap::new();
            let mut now = Instant::ZERO;
            for (key, step) in steps {
                now += Duration::from_millis(step);
                let model = alone.entry(key).or_default();
                if table.wait(key, rate, now).is_zero() {
                    prop_assert!(model.wait(rate, now).is_zero(), "{} at {}", key, now);
                    table.spend(key, rate, now);
                    model.spend(rate, now);
                }
            }
        }

        #[test]
        fn whoever_waits_as_told_is_let_in(spent in 1u32..50, burst in 1u32..10) {
            let rate = Rate { burst, interval: Duration::from_secs(2) };
            let (mut budget, now) = (Budget::default(), Instant::from_millis(7));
            for _ in 0..spent {
                budget.spend(rate, now);
            }
            let wait = budget.wait(rate, now);
            prop_assert!(wait <= rate.interval);
            prop_assert_eq!(wait.is_zero(), spent < burst);
            prop_assert!(budget.wait(rate, now + wait).is_zero());
        }
    }

    #[test]
    fn a_thousand_in_debt_hold_up_hardly_anybody_else() {
        let rate = Rate { burst: 2, interval: Duration::from_secs(60) };
        let mut table = Budgets::new(numbers(1));
        let now = Instant::from_millis(1);
        let mut random = numbers(2);
        for _ in 0..1_000 {
            let key = random();
            table.spend(key, rate, now);
            table.spend(key, rate, now);
        }
        let held_up = (0..10_000).filter(|_| !table.wait(random(), rate, now).is_zero()).count();
        assert!(held_up <= 5, "{held_up} of 10,000");
    }

    #[test]
    fn threat_10_nobody_gets_rid_of_a_debt_under_other_names() {
        let rate = Rate { burst: 2, interval: Duration::from_secs(60) };
        let mut table = Budgets::new(numbers(1));
        let now = Instant::from_millis(1);
        table.spend(7, rate, now);
        table.spend(7, rate, now);
        let wait = table.wait(7, rate, now);
        assert_eq!(wait, rate.interval);
        // Enough keys to share every cell, each with a smaller debt.
        let small = Rate { burst: 2, interval: Duration::from_secs(1) };
        let mut random = numbers(5);
        (0..4 * CELLS).for_each(|_| table.spend(random(), small, now));
        assert!(table.wait(7, rate, now) >= wait);
    }

    #[test]
    fn the_table_does_not_grow() {
        let rate = Rate { burst: 2, interval: Duration::from_secs(60) };
        let mut table = Budgets::new(numbers(1));
        let capacity = table.cells.capacity();
        let mut random = numbers(3);
        for _ in 0..100_000 {
            table.spend(random(), rate, Instant::ZERO);
        }
        assert_eq!(table.cells.capacity(), capacity);
        assert!(capacity * size_of::<Instant>() <= 1024 * 1024);
    }
}
