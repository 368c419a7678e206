//! How late a member's states arrive.

use core::time::Duration;
use parlor_proto::Instant;
use std::collections::VecDeque;

/// Arrivals over which latency is taken.
const ARRIVALS_MAX: usize = 64;

/// Measures how late states arrive: from the step that they are of to their arrival, both in room time.
/// Synchronized clocks make that the way of one direction, with all that waits on it.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    arrivals_us: VecDeque<u64>,
}

/// How late the last states of a member arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// On the average.
    pub mean: Duration,
    /// The least.
    pub best: Duration,
    /// The most.
    pub worst: Duration,
    /// How much the arrivals differ from the mean, on the average.
    pub variance: Duration,
}

impl Latencies {
    /// A state of the step that began at `step` arrived at `arrived`, both in room time. Clocks that are off
    /// can make it arrive before it was made: that counts as no time.
    pub fn arrived(&mut self, step: Instant, arrived: Instant) {
        if self.arrivals_us.len() == ARRIVALS_MAX {
            self.arrivals_us.pop_front();
        }
        let late = arrived.saturating_since(step).as_micros();
        self.arrivals_us.push_back(u64::try_from(late).unwrap_or(u64::MAX));
    }

    /// Over the last 64 arrivals; none before the first.
    pub fn latency(&self) -> Option<Latency> {
        let (best, worst) = (*self.arrivals_us.iter().min()?, *self.arrivals_us.iter().max()?);
        let mean = self.mean_of(|late| late);
        let variance = self.mean_of(|late| late.abs_diff(mean));
        let [mean, best, worst, variance] = [mean, best, worst, variance].map(Duration::from_micros);
        Some(Latency { mean, best, worst, variance })
    }

    fn mean_of(&self, number: impl Fn(u64) -> u64) -> u64 {
        let count = self.arrivals_us.len().max(1) as u128;
        let sum: u128 = self.arrivals_us.iter().map(|late| u128::from(number(*late))).sum();
        u64::try_from(sum / count).unwrap_or(u64::MAX)
    }
}

impl Latency {
    /// How late our states arrive there, given the round trip from here to there and back: what is left of
    /// it. Two members that are relayed have the sum of their round trips to the hub.
    pub fn reverse(&self, round_trip: Duration) -> Duration {
        round_trip.saturating_sub(self.mean)
    }
}
