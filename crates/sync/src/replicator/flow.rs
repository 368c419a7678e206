//! How the packets of a member's state arrive: loss and bandwidth.

use super::latency::Latency;
use core::time::Duration;
use parlor_proto::Instant;

/// Packets over which loss is measured.
const PACKETS_MAX: u32 = u128::BITS;
/// Time constant of the measured bandwidth.
const BANDWIDTH_OVER: Duration = Duration::from_secs(1);

/// How a member's states travel, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// From the step of a state to its arrival.
    pub latency: Latency,
    /// The lost part of the last 128 packets, from 0 to 1. Packets are sent until the states in them have arrived, so
    /// a lost one costs time only.
    pub loss: f64,
    /// Bytes of the states' packets in the last seconds, per second.
    pub bytes_per_second: f64,
}

/// How two members' states travel between them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Flows {
    /// The other's states, on their way here. `None` until one has come.
    pub down: Option<Flow>,
    /// Own states on their way there (reverse latency), as the other measured them. `None` until it has answered.
    pub up: Option<Flow>,
}

/// Measures the packets of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowMeter {
    /// The newest number that came.
    newest: Option<u64>,
    /// A bit for each number up to the newest, which is the lowest bit: whether it came.
    came: u128,
    /// The numbers that count, up to [`PACKETS_MAX`].
    numbers: u32,
    bytes_per_second: f64,
    /// When that was.
    at: Instant,
}

impl FlowMeter {
    /// Counts the bytes of any packet.
    pub(super) fn arrived(&mut self, bytes: usize, at: Instant) {
        self.bytes_per_second = self.bytes_per_second(at) + bytes as f64 / BANDWIDTH_OVER.as_secs_f64();
        self.at = self.at.max(at);
    }

    /// Notes the number of a packet that was not there before.
    pub(super) fn taken(&mut self, number: u64) {
        let Some(newest) = self.newest else {
            (self.newest, self.came, self.numbers) = (Some(number), 1, 1);
            return;
        };
        if number > newest {
            let ahead = u32::try_from(number - newest).unwrap_or(u32::MAX);
            self.came = self.came.checked_shl(ahead).unwrap_or(0) | 1;
            self.numbers = self.numbers.saturating_add(ahead).min(PACKETS_MAX);
            self.newest = Some(number);
        } else if newest - number < u64::from(self.numbers) {
            self.came |= 1 << (newest - number);
        }
    }

    /// The numbers of another stream follow.
    pub(super) fn restart(&mut self) {
        (self.newest, self.came, self.numbers) = (None, 0, 0);
    }

    pub(super) fn loss(&self) -> f64 {
        f64::from(self.numbers - self.came.count_ones()) / f64::from(self.numbers.max(1))
    }

    pub(super) fn bytes_per_second(&self, now: Instant) -> f64 {
        let ago = now.saturating_since(self.at).as_secs_f64();
        self.bytes_per_second * (-ago / BANDWIDTH_OVER.as_secs_f64()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Whatever the order of arrival: of the last 128 numbers since the first, those that never came are lost.
        #[test]
        fn t9_loss_is_what_never_came(
            first in 0u64..1_000_000, offsets in proptest::collection::vec(0u64..400, 1..300),
        ) {
            let mut meter = FlowMeter::default();
            let (mut came, mut newest) = (BTreeSet::new(), first);
            meter.taken(first);
            came.insert(first);
            for offset in offsets {
                let number = first + offset;
                // What is 128 behind the newest when it comes is forgotten.
                let is_counted = number + u64::from(PACKETS_MAX) > newest;
                if is_counted {
                    came.insert(number);
                }
                newest = newest.max(number);
                meter.taken(number);
                let oldest = first.max((newest + 1).saturating_sub(PACKETS_MAX.into()));
                let lost = (oldest..=newest).filter(|number| !came.contains(number)).count();
                let expected = lost as f64 / (newest + 1 - oldest) as f64;
                prop_assert!((meter.loss() - expected).abs() < 1e-9, "{} is not {expected}", meter.loss());
            }
        }
    }

    #[test]
    fn t9_bandwidth_is_that_of_the_last_seconds() {
        let mut meter = FlowMeter::default();
        let at = |ms: u64| Instant::from_millis(ms);
        for step in 0..300 {
            meter.arrived(20, at(step * 33));
        }
        let steady = meter.bytes_per_second(at(299 * 33));
        assert!((570.0..640.0).contains(&steady), "20 bytes 30 times a second are {steady}");
        let later = meter.bytes_per_second(at(299 * 33 + 10_000));
        assert!(later < 1.0, "{later} after ten seconds of nothing");
        // A clock that is set back divides by nothing.
        meter.arrived(20, at(0));
        assert!(meter.bytes_per_second(at(0)).is_finite());
    }
}
