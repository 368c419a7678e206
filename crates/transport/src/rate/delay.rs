//! Round trips: the path's base round trip, and the queueing delay on top.

use core::time::Duration;
use parlor_proto::time::Instant;

/// How long a minimum counts, 1.5 times that on average: routes change.
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// Separates the two by minima of round trips. All other delays of single packets, such as a tick's burst, a
/// busy radio or a delayed acknowledgement, only ever add.
#[derive(Clone, Debug)]
pub(super) struct DelayFilter {
    /// The minima of the current and the previous time window.
    base: Option<Duration>,
    base_before: Option<Duration>,
    base_since: Instant,
    /// The minimum of this round.
    standing: Option<Duration>,
    /// The sum of all round trips in this round, and their count.
    sum: Duration,
    count: u32,
}

impl DelayFilter {
    pub(super) fn new(now: Instant) -> Self {
        DelayFilter {
            base: None,
            base_before: None,
            base_since: now,
            standing: None,
            sum: Duration::ZERO,
            count: 0,
        }
    }

    pub(super) fn start_round(&mut self) {
        (self.standing, self.sum, self.count) = (None, Duration::ZERO, 0);
    }

    pub(super) fn handle_round_trip(&mut self, now: Instant, round_trip: Duration) {
        if now.saturating_since(self.base_since) > BASE_WINDOW {
            (self.base_before, self.base, self.base_since) = (self.base, None, now);
        }
        let shorter = |known: Option<Duration>| Some(known.map_or(round_trip, |known| known.min(round_trip)));
        self.base = shorter(self.base);
        self.standing = shorter(self.standing);
        self.sum += round_trip;
        self.count += 1;
    }

    /// The mean of this round, including all delays; `None` before its first round trip.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / self.count)
    }

    /// The base round trip; zero before the first.
    pub(super) fn base(&self) -> Duration {
        shortest(self.base, self.base_before)
    }

    /// How much this round's minimum exceeds the base.
    pub(super) fn queue(&self) -> Duration {
        self.standing.map_or(Duration::ZERO, |standing| standing.saturating_sub(self.base()))
    }

    /// Accepts the standing queue as a part of the base.
    pub(super) fn accept_queue(&mut self, now: Instant) {
        self.base = self.standing;
        self.base_before = None;
        self.base_since = now;
    }
}

fn shortest(one: Option<Duration>, other: Option<Duration>) -> Duration {
    one.into_iter().chain(other).min().unwrap_or_default()
}
