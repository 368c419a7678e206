//! The hub's clock, as this process knows it.

use parlor_proto::Instant;
use std::time::Duration;

/// Follows the hub's clock by slewing: it never runs backwards, and only an error that no slewing could mend in
/// reasonable time makes it jump, forwards or backwards, which is counted.
///
/// The first guess is behind by the time that the welcome was under way, so the first measurement is ahead of it by half a
/// round trip, however unlike the two ways are. It is taken over at once: slewing would take twenty times as long.
#[derive(Debug)]
pub(super) struct Clock {
    /// The hub's clock minus ours, in µs, as it is used.
    offset_us: i64,
    slewed_at: Instant,
    /// Whether anything was measured.
    is_measured: bool,
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
        Clock { offset_us, slewed_at: now, is_measured: false, jumps: 0 }
    }

    /// Moves towards an offset that was measured. Says whether it was the first, before which the time was a guess.
    pub(super) fn follow(&mut self, measured_us: i64, now: Instant) -> bool {
        let passed = now.saturating_since(self.slewed_at);
        self.slewed_at = self.slewed_at.max(now);
        let is_first = !std::mem::replace(&mut self.is_measured, true);
        let error = measured_us.saturating_sub(self.offset_us);
        if is_first && error >= 0 {
            self.offset_us = measured_us;
            return true;
        }
        if error.unsigned_abs() > JUMP_US {
            self.offset_us = measured_us;
            self.jumps += 1;
            return is_first;
        }
        let most = signed(u64::try_from(passed.as_micros()).unwrap_or(u64::MAX) / SLEW);
        self.offset_us += error.clamp(-most, most);
        is_first
    }

    /// How often it jumped.
    pub(super) fn jumps(&self) -> u64 {
        self.jumps
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

    /// The hub's clock is at 10 s when ours is at 0; the welcome was `down_ms` under way.
    fn welcomed(down_ms: u64) -> Clock {
        Clock::new(Instant::from_millis(10_000 - down_ms), Instant::ZERO)
    }

    #[test]
    fn it_slews_without_running_backwards() {
        let mut clock = welcomed(0);
        clock.follow(10_000_000, Instant::ZERO);
        let mut last = clock.hub_time(Instant::ZERO);
        for ms in 1..=4_000 {
            let now = Instant::from_millis(ms);
            clock.follow(10_000_000 - 100_000, now);
            let time = clock.hub_time(now);
            assert!(time > last, "{time} after {last}");
            last = time;
        }
        assert_eq!(last, Instant::from_millis(13_900));
        assert_eq!(clock.jumps(), 0);
    }

    #[test]
    fn the_first_measurement_is_taken_over_whatever_the_two_ways_take() {
        for (up_ms, down_ms) in [(5, 5), (200, 10), (10, 200), (400, 20), (20, 400), (100, 700)] {
            let mut clock = welcomed(down_ms);
            let round_ms: u64 = up_ms + down_ms;
            let now = Instant::from_millis(round_ms);
            // What the best filter cannot know is half of what one way takes more than the other.
            let measured_us = 10_000_000 + (signed(up_ms * 1_000) - signed(down_ms * 1_000)) / 2;
            let before = clock.hub_time(now);
            clock.follow(measured_us, now);
            assert!(clock.hub_time(now) >= before, "it ran backwards with {up_ms} and {down_ms} ms");
            let off = clock.hub_time(now).as_micros().abs_diff(10_000_000 + round_ms * 1_000);
            assert!(
                off <= up_ms.abs_diff(down_ms) * 500,
                "it is off by {off} µs with {up_ms} and {down_ms} ms"
            );
            assert_eq!(clock.jumps(), 0);
        }
    }

    #[test]
    fn a_large_error_is_mended_at_once_and_counted() {
        let mut clock = welcomed(0);
        clock.follow(10_000_000, Instant::ZERO);
        clock.follow(20_000_000, Instant::ZERO);
        assert_eq!((clock.hub_time(Instant::ZERO), clock.jumps()), (Instant::from_millis(20_000), 1));
    }

    #[test]
    fn threat_22_no_offset_makes_it_panic() {
        for measured in [i64::MIN, -1, 0, i64::MAX] {
            let mut clock = welcomed(0);
            clock.follow(measured, Instant::from_millis(1));
            clock.follow(0, Instant::from_millis(2));
            let _ = clock.hub_time(Instant::from_millis(3));
        }
    }
}
