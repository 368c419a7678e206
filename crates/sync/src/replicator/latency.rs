//! Latency of a member's states.

use core::time::Duration;
use parlor_proto::Instant;
use std::collections::VecDeque;

/// Arrivals over which latency is measured.
const ARRIVALS_MAX: usize = 64;

/// Measures the latency of states: from their step to their arrival, both in room time. With synchronized
/// clocks that is the one-way delay, including all queues.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    arrivals_us: VecDeque<u64>,
}

/// The latency of a member's last states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The mean.
    pub mean: Duration,
    /// The minimum.
    pub best: Duration,
    /// The maximum.
    pub worst: Duration,
    /// The mean deviation from the mean.
    pub variance: Duration,
}

impl Latencies {
    /// Records that a state of the step that began at `step` arrived at `arrived`, both in room time. Clock
    /// errors can make it arrive before its step: that counts as zero.
    pub fn arrived(&mut self, step: Instant, arrived: Instant) {
        if self.arrivals_us.len() == ARRIVALS_MAX {
            self.arrivals_us.pop_front();
        }
        let late = arrived.saturating_since(step).as_micros();
        self.arrivals_us.push_back(u64::try_from(late).unwrap_or(u64::MAX));
    }

    /// Returns the latency over the last 64 arrivals; `None` before the first.
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
