//! Histogram of millions of times in little memory: buckets of 1.6%, so half an hour needs no more than a
//! second.

use std::time::Duration;

/// Each power of two has so many steps.
const STEPS: u64 = 64;
/// The powers that 64 bits have beyond the first.
const STEPS_ALL: usize = 64 * 59;

/// How many times there were of each length.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    pub(crate) fn new() -> Self {
        Histogram { counts: vec![0; STEPS_ALL], total: 0 }
    }

    /// Counts a time.
    pub(crate) fn note(&mut self, span: Duration) {
        let step = step_of(u64::try_from(span.as_micros()).unwrap_or(u64::MAX));
        self.counts[step] += 1;
        self.total += 1;
    }

    /// How many were counted.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The time in ms that so many of 100 did not exceed, rounded up to the end of its step.
    pub(crate) fn ms(&self, percent: u64) -> Option<f64> {
        let rank = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let step = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        })?;
        #[expect(clippy::cast_precision_loss, reason = "times of hours are below 2⁵³ µs")]
        let ms = end_of(step) as f64 / 1e3;
        Some(ms)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        *self = Histogram::new();
    }
}

/// The step that a number of µs is in: up to 64 µs each is its own, beyond that a 64th of its power of two.
fn step_of(us: u64) -> usize {
    let power = u64::from((us | 1).ilog2()).saturating_sub(u64::from(STEPS.ilog2()));
    let step = power * STEPS + (us >> power);
    usize::try_from(step).expect("there are few steps")
}

/// The largest number of µs in a step.
fn end_of(step: usize) -> u64 {
    let step = step as u64;
    let power = (step / STEPS).saturating_sub(1);
    ((step - power * STEPS + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_the_step_that_ends_at_or_just_above_it() {
        let powers = (0..63).map(|power| 1_u64 << power);
        for us in powers.flat_map(|us| [us - 1, us, us + 1, us + us / 3]) {
            let end = end_of(step_of(us));
            assert!(us <= end && end - us <= us / STEPS, "{us} is in the step up to {end}");
        }
        assert!(step_of(u64::MAX) < STEPS_ALL);
    }

    #[test]
    fn a_percentile_is_the_one_of_what_was_noted() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.ms(99), None);
        (1..=1_000).for_each(|ms| histogram.note(Duration::from_millis(ms)));
        let near = |ms: Option<f64>, wanted: f64| {
            ms.is_some_and(|ms| (wanted..wanted * 1.016 + 0.001).contains(&ms))
        };
        assert!(near(histogram.ms(50), 500.0) && near(histogram.ms(99), 990.0), "{:?}", histogram.ms(99));
        assert_eq!(histogram.total(), 1_000);
        histogram.clear();
        assert_eq!((histogram.total(), histogram.ms(50)), (0, None));
    }
}
