//! Round trips: the path's own, and the queue that stands on it.

use core::time::Duration;
use parlor_proto::time::Instant;

/// How long a shortest round trip counts, once and a half on average: routes change.
const BASE_WINDOW: Duration = Duration::from_secs(10);
/// Finds both from round trips, by their minima: whatever delays single packets, like a tick's burst, a busy radio or an
/// acknowledgement that waits for company, only ever adds.
#[derive(Clone, Debug)]
pub(super) struct DelayFilter {
    /// Shortest of this window of time and of the one before.
    base: Option<Duration>,
    base_before: Option<Duration>,
    base_since: Instant,
    /// Shortest of this round.
    standing: Option<Duration>,
    /// The sum of all of this round, and how many they are.
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

    /// The mean of this round, with all that delays single packets; `None` before the first of it.
    pub(super) fn mean(&self) -> Option<Duration> {
        (self.count > 0).then(|| self.sum / self.count)
    }

    /// The path's own round trip; zero before the first.
    pub(super) fn base(&self) -> Duration {
        shortest(self.base, self.base_before)
    }

    /// How much longer than the path's own the shortest round trip of this round is.
    pub(super) fn queue(&self) -> Duration {
        self.standing.map_or(Duration::ZERO, |standing| standing.saturating_sub(self.base()))
    }

    /// What stands is a part of the way.
    pub(super) fn accept_queue(&mut self, now: Instant) {
        self.base = self.standing;
        self.base_before = None;
        self.base_since = now;
    }
}

fn shortest(one: Option<Duration>, other: Option<Duration>) -> Duration {
    one.into_iter().chain(other).min().unwrap_or_default()
}
