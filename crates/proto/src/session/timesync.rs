//! Measures round trips and the peer's clock, from [`Time`] frames.

use crate::time::Instant;
use crate::wire::frame::{Echo, Time};
use core::time::Duration;
use std::collections::VecDeque;

/// The number of samples in the filter.
const SAMPLES: usize = 16;

/// Longer round trips are invalid: no session survives them.
const RTT_US_MAX: u64 = 60_000_000;

/// Measures round trips, and the offset of the peer's clock from ours. Like NTP's clock filter (RFC 5905 §10)
/// it uses the sample with the shortest round trip: every delay of a packet makes the round trip longer.
#[derive(Debug, Default)]
pub(super) struct TimeSync {
    last_heard: Option<(u64, Instant)>,
    samples: VecDeque<Sample>,
    smoothed_us: Option<u64>,
    deviation_us: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    rtt_us: u64,
    /// The peer's clock minus ours.
    offset_us: i64,
}

impl TimeSync {
    /// Returns the frame to send now.
    pub(super) fn frame(&self, now: Instant) -> Time {
        let echo = self.last_heard.map(|(sent_us, heard)| Echo {
            sent_us,
            held_us: u64::try_from(now.saturating_since(heard).as_micros()).unwrap_or(u64::MAX >> 2),
        });
        Time { sent_us: now.as_micros(), echo }
    }

    /// Takes in the peer's frame.
    pub(super) fn heard(&mut self, time: Time, now: Instant) {
        // A repeated or reordered frame must not be echoed: its holding time would be wrong.
        if self.last_heard.is_none_or(|(sent_us, _)| time.sent_us > sent_us) {
            self.last_heard = Some((time.sent_us, now));
        }
        let Some(echo) = time.echo else { return };
        // A frame that claims to have been held longer than its round trip, or before it was sent, is not a
        // measurement.
        let Some(away_us) = now.as_micros().checked_sub(echo.sent_us) else { return };
        let Some(rtt_us) = away_us.checked_sub(echo.held_us).filter(|rtt_us| *rtt_us <= RTT_US_MAX) else {
            return;
        };
        let ours = i128::from(now.as_micros()) - i128::from(rtt_us / 2);
        let Ok(offset_us) = i64::try_from(i128::from(time.sent_us) - ours) else { return };
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(Sample { rtt_us, offset_us });
        // RFC 6298 §2, with its gains of 1/8 and 1/4.
        match self.smoothed_us {
            None => (self.smoothed_us, self.deviation_us) = (Some(rtt_us), rtt_us / 2),
            Some(smoothed) => {
                self.deviation_us = (self.deviation_us * 3 + smoothed.abs_diff(rtt_us)) / 4;
                self.smoothed_us = Some((smoothed * 7 + rtt_us) / 8);
            }
        }
    }

    /// The number of samples taken, up to the filter's size.
    pub(super) fn samples(&self) -> usize {
        self.samples.len()
    }

    /// The smoothed round trip.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.smoothed_us.map(Duration::from_micros)
    }

    /// Mean deviation of the round trip.
    pub(super) fn jitter(&self) -> Duration {
        Duration::from_micros(self.deviation_us)
    }

    /// The peer's clock minus ours, in µs.
    pub(super) fn offset_us(&self) -> Option<i64> {
        self.samples.iter().min_by_key(|sample| sample.rtt_us).map(|sample| sample.offset_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_offset_is_within_half_the_asymmetry_of_the_best_sample(
            ahead in -1_000_000_000i64..1_000_000_000,
            delays in proptest::collection::vec((1_000u64..200_000, 1_000u64..200_000), 1..16),
        ) {
            let base = 10_000_000_000i64;
            let (mut ours, mut theirs) = (TimeSync::default(), TimeSync::default());
            let clock = |at: u64, ahead: i64| Instant::from_micros(u64::try_from(base + ahead + i64::try_from(at).unwrap()).unwrap());
            let (mut at, mut best) = (0u64, (u64::MAX, 0u64));
            for (up, down) in delays {
                let sent = ours.frame(clock(at, 0));
                at += up;
                theirs.heard(sent, clock(at, ahead));
                let back = theirs.frame(clock(at, ahead));
                at += down;
                ours.heard(back, clock(at, 0));
                best = best.min((up + down, up.abs_diff(down)));
                at += 1_000;
            }
            let error = (ours.offset_us().unwrap() - ahead).unsigned_abs();
            prop_assert!(error <= best.1 / 2 + 1, "error {} with a best sample of {:?}", error, best);
        }

        #[test]
        fn no_peer_can_make_it_panic(frames in proptest::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 0..50)) {
            let mut sync = TimeSync::default();
            for (sent_us, echoed, held_us, now) in frames {
                sync.heard(Time { sent_us, echo: Some(Echo { sent_us: echoed, held_us }) }, Instant::from_micros(now));
                let _ = sync.frame(Instant::from_micros(now));
            }
        }
    }
}
