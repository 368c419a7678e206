//! The hub's clock, as this process knows it.

use parlor_proto::Instant;
use std::time::Duration;

/// Follows the hub's clock by slewing: it never runs backwards, and only an error that no slewing could mend in
/// reasonable time makes it jump, forwards or backwards, which is counted.
#[derive(Debug)]
pub(super) struct Clock {
    /// The hub's clock minus ours, in µs, as it is used.
    offset_us: i64,
    slewed_at: Instant,
    jumps: u64,
}

/// An error beyond this is mended at once.
const JUMP_US: u64 = 250_000;
/// Of the time that passes, at most this part (1 in 20) goes into mending a smaller one.
const SLEW: u64 = 20;

impl Clock {
    /// A first guess: the hub's clock said `theirs` when it answered, and the answer came at `now`.
    pub(super) fn new(theirs: Instant, now: Instant) -> Self {
        let offset_us = signed(theirs.as_micros()) - signed(now.as_micros());
        Clock { offset_us, slewed_at: now, jumps: 0 }
    }

    /// Moves towards an offset that was measured.
    pub(super) fn follow(&mut self, measured_us: i64, now: Instant) {
        let passed = now.saturating_since(self.slewed_at);
        self.slewed_at = self.slewed_at.max(now);
        let error = measured_us - self.offset_us;
        if error.unsigned_abs() > JUMP_US {
            self.offset_us = measured_us;
            self.jumps += 1;
            return;
        }
        let most = signed(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX) / SLEW);
        self.offset_us += error.clamp(-most, most);
    }

    /// What the hub's clock says.
    pub(super) fn hub_time(&self, now: Instant) -> Instant {
        Instant::from_micros(now.as_micros().saturating_add_signed(self.offset_us))
    }

    /// Time since `opened`, an instant of the hub's clock.
    pub(super) fn since(&self, opened: Instant, now: Instant) -> Duration {
        self.hub_time(now).saturating_since(opened)
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_slews_without_running_backwards() {
        let mut clock = Clock::new(Instant::from_millis(10_000), Instant::ZERO);
        let mut last = clock.hub_time(Instant::ZERO);
        for ms in 1..=4_000 {
            let now = Instant::from_millis(ms);
            clock.follow(10_000_000 - 100_000, now);
            let time = clock.hub_time(now);
            assert!(time > last, "{time} after {last}");
            last = time;
        }
        assert_eq!(last, Instant::from_millis(13_900));
        assert_eq!(clock.jumps, 0);
    }

    #[test]
    fn a_large_error_is_mended_at_once() {
        let mut clock = Clock::new(Instant::from_millis(10_000), Instant::ZERO);
        clock.follow(20_000_000, Instant::ZERO);
        assert_eq!((clock.hub_time(Instant::ZERO), clock.jumps), (Instant::from_millis(20_000), 1));
    }
}
