//! When a lost connection is tried again, and for how long.

use parlor_proto::random::SplitMix64;
use parlor_proto::text::Millis;
use std::ops::RangeInclusive;
use std::time::Duration;

/// How a room reconnects. Every field is an option of the game; the defaults suit most.
///
/// The first attempt comes [`delay_first`](Self::delay_first) after the loss, and each wait is
/// [`delay_factor`](Self::delay_factor) times the one before, up to [`delay_max`](Self::delay_max). The room closes
/// after [`attempts`](Self::attempts) attempts, or when the next one would come later than [`total`](Self::total) after
/// the loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReconnectPolicy {
    /// Attempts at most: 1 to 1,000. Default: 8. In a cluster, while other servers may have the room,
    /// [`total`](Self::total) alone bounds them.
    pub attempts: u32,
    /// Wait before the first attempt: 10 ms to 60 s. Default: 200 ms.
    pub delay_first: Duration,
    /// How many times longer each wait is than the one before: 1 to 10. Default: 2.
    pub delay_factor: f64,
    /// The longest wait: 10 ms to 10 minutes. Default: 5 s.
    pub delay_max: Duration,
    /// Time after the loss in which attempts begin: 100 ms to a day. Default: 60 s.
    pub total: Duration,
    /// How much each wait is longer or shorter by chance, as a part of it: 0 to 0.5. It differs between processes, so
    /// that clients that lost the same server do not return at the same moment. Default: 0.25.
    pub jitter: f64,
    /// Whether the room goes on once the server has given the seat up. Then this process rejoins: as the player that it
    /// was where the server still knows it, and otherwise as a newcomer. If false, the room closes with
    /// [`Refusal::Resume`](parlor_proto::wire::handshake::Refusal::Resume), which says why. Default: true.
    pub accept_state_resync: bool,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        ReconnectPolicy {
            attempts: 8,
            delay_first: Duration::from_millis(200),
            delay_factor: 2.0,
            delay_max: Duration::from_secs(5),
            total: Duration::from_secs(60),
            jitter: 0.25,
            accept_state_resync: true,
        }
    }
}

/// The jitter is drawn in steps of this fraction (1/n) of a wait.
const JITTER_STEPS: u32 = 1_024;

impl ReconnectPolicy {
    /// Returns the wait before the next attempt, given the number of attempts made. `seed` differs between processes.
    pub fn delay(&self, seed: u64, attempts: u32) -> Duration {
        let mut even = self.delay_first.min(self.delay_max);
        for _ in 0..attempts {
            if even >= self.delay_max {
                break;
            }
            even = even.mul_f64(self.delay_factor).min(self.delay_max);
        }
        // A checked policy has a jitter of at most a half.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let spread = (self.jitter * f64::from(JITTER_STEPS)) as u32;
        let drawn = (SplitMix64::nth(seed, attempts.into()) >> 32) % u64::from(2 * spread + 1);
        even * (JITTER_STEPS - spread + u32::try_from(drawn).unwrap_or(0)) / JITTER_STEPS
    }

    /// Checks that every field is within its bounds.
    ///
    /// # Errors
    /// A message that names the field and its bounds.
    pub fn check(&self) -> Result<(), String> {
        let time = |name: &str, value: Duration, bounds: RangeInclusive<Duration>| {
            let [shown, min, max] = [value, *bounds.start(), *bounds.end()].map(Millis);
            let text = || format!("reconnect: {name} is {shown}; it may be {min} to {max}");
            if bounds.contains(&value) { Ok(()) } else { Err(text()) }
        };
        let part = |name: &str, value: f64, bounds: RangeInclusive<f64>| {
            let (min, max) = (bounds.start(), bounds.end());
            let text = || format!("reconnect: {name} is {value}; it may be {min} to {max}");
            if bounds.contains(&value) { Ok(()) } else { Err(text()) }
        };
        const MS: Duration = Duration::from_millis(1);
        const SECOND: Duration = Duration::from_secs(1);
        if !(1..=1_000).contains(&self.attempts) {
            return Err(format!("reconnect: attempts is {}; it may be 1 to 1000", self.attempts));
        }
        time("delay_first", self.delay_first, MS * 10..=SECOND * 60)?;
        part("delay_factor", self.delay_factor, 1.0..=10.0)?;
        time("delay_max", self.delay_max, MS * 10..=SECOND * 600)?;
        time("total", self.total, MS * 100..=SECOND * 86_400)?;
        part("jitter", self.jitter, 0.0..=0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m10_every_field_has_its_bounds_and_its_effect() {
        let policy = ReconnectPolicy::default();
        assert_eq!(policy.check(), Ok(()));
        let even = ReconnectPolicy { jitter: 0.0, delay_factor: 3.0, ..policy };
        let waits: Vec<u128> = (0..5).map(|attempt| even.delay(7, attempt).as_millis()).collect();
        assert_eq!(waits, [200, 600, 1_800, 5_000, 5_000]);
        let short = ReconnectPolicy { delay_max: Duration::from_millis(50), ..even };
        assert_eq!(short.delay(7, 0), Duration::from_millis(50), "no wait is longer than the longest");
        let wrong = |policy: ReconnectPolicy, name: &str| {
            let error = policy.check().expect_err(name);
            assert!(error.contains(name) && error.contains("may be"), "{error}");
        };
        wrong(ReconnectPolicy { attempts: 0, ..policy }, "attempts");
        wrong(ReconnectPolicy { attempts: 1_001, ..policy }, "attempts");
        wrong(ReconnectPolicy { delay_first: Duration::ZERO, ..policy }, "delay_first");
        wrong(ReconnectPolicy { delay_factor: 0.5, ..policy }, "delay_factor");
        wrong(ReconnectPolicy { delay_factor: f64::NAN, ..policy }, "delay_factor");
        wrong(ReconnectPolicy { delay_max: Duration::from_secs(601), ..policy }, "delay_max");
        wrong(ReconnectPolicy { total: Duration::from_millis(99), ..policy }, "total");
        wrong(ReconnectPolicy { jitter: 0.51, ..policy }, "jitter");
    }
}
