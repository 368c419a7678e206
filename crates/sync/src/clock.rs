//! The hub's clock as another process estimates it. Timestamps of all state refer to it.
//!
//! Measurements come from the session (`Session::clock_offset_us`, a filter on minimum round trips). This
//! module turns them into a clock that can be read at any moment.

use core::time::Duration;
use parlor_proto::Instant;

/// Follows the hub's clock by slewing, so it never runs backwards while slewing. Only an error too large to
/// slew makes it jump, forwards or backwards; jumps are counted.
///
/// The first guess is behind by the welcome's travel time, so the first measurement is ahead of it by half a
/// round trip, however asymmetric the path. It is adopted at once: slewing would take twenty times as long.
#[derive(Clone, Debug)]
pub struct Clock {
    /// The hub's clock minus the local clock, in µs, as currently used.
    offset_us: i64,
    slewed_at: Instant,
    /// The last measured offset; `None` before the first measurement.
    measured_us: Option<i64>,
    /// Smoothed difference between consecutive measurements, in µs.
    variance_us: u64,
    jumps: u64,
}

/// A larger error is corrected by a jump.
const JUMP_US: u64 = 250_000;
/// Largest slew rate: 1 in 20 of the elapsed time.
const SLEW: u64 = 20;
/// With an error up to this, the clock counts as synchronized.
const SYNCHRONIZED_US: u64 = 10_000;
/// Weight of the newest difference in the variance, 1 in 8.
const VARIANCE_WEIGHT: u64 = 8;

impl Clock {
    /// Starts with a guess: the hub's clock read `theirs` when it answered, and the answer arrived at `now`.
    pub fn new(theirs: Instant, now: Instant) -> Self {
        let offset_us = signed(theirs.as_micros()) - signed(now.as_micros());
        Clock { offset_us, slewed_at: now, measured_us: None, variance_us: 0, jumps: 0 }
    }

    /// Moves towards a measured offset: the hub's clock minus the local clock in µs, at local time `now`. The
    /// same measurement may be passed repeatedly; each call slews as far as the time since the last one
    /// allows.
    ///
    /// Returns whether this was the first measurement.
    pub fn follow(&mut self, measured_us: i64, now: Instant) -> bool {
        let passed = now.saturating_since(self.slewed_at);
        self.slewed_at = self.slewed_at.max(now);
        let before = self.measured_us.replace(measured_us);
        let is_first = before.is_none();
        if let Some(differs_us) = before.map(|before| before.abs_diff(measured_us)).filter(|us| *us > 0) {
            self.variance_us =
                self.variance_us - self.variance_us / VARIANCE_WEIGHT + differs_us / VARIANCE_WEIGHT;
        }
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

    /// Returns how often the clock jumped.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    /// Whether an offset was measured and the clock is within 10 ms of it.
    pub fn is_synchronized(&self) -> bool {
        self.measured_us.is_some_and(|measured| measured.abs_diff(self.offset_us) <= SYNCHRONIZED_US)
    }

    /// Returns the difference between consecutive measurements, smoothed over about eight. Zero before the
    /// second.
    pub fn variance(&self) -> Duration {
        Duration::from_micros(self.variance_us)
    }

    /// Returns the hub's time.
    pub fn hub_time(&self, now: Instant) -> Instant {
        Instant::from_micros(now.as_micros().saturating_add_signed(self.offset_us))
    }

    /// Returns the time since `opened`, an instant of the hub's clock.
    pub fn since(&self, opened: Instant, now: Instant) -> Duration {
        self.hub_time(now).saturating_since(opened)
    }

    /// Returns the room time of a room that `opened` at an instant of the hub's clock. Its origin is the
    /// opening, and ticks count from there.
    pub fn room_time(&self, opened: Instant, now: Instant) -> Instant {
        Instant::ZERO + self.since(opened, now)
    }
}

fn signed(micros: u64) -> i64 {
    i64::try_from(micros).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            // The best filter cannot detect half of the difference between the two ways.
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

    #[test]
    fn it_counts_as_synchronized_once_it_is_close_to_what_was_measured() {
        let mut clock = welcomed(0);
        assert!(!clock.is_synchronized(), "a guess is no measurement");
        clock.follow(10_000_000, Instant::ZERO);
        assert!(clock.is_synchronized());
        clock.follow(9_900_000, Instant::from_millis(1));
        assert!(!clock.is_synchronized(), "it is 100 ms ahead");
        for ms in 2..=2_000 {
            clock.follow(9_900_000, Instant::from_millis(ms));
        }
        assert!(clock.is_synchronized(), "it had two seconds to mend 100 ms");
    }

    #[test]
    fn the_variance_follows_how_much_measurements_differ() {
        let mut clock = welcomed(0);
        assert_eq!(clock.variance(), Duration::ZERO);
        for ms in 0..200 {
            clock.follow(10_000_000 + i64::from(ms % 2 == 0) * 8_000, Instant::from_millis(ms));
        }
        let millis = clock.variance().as_millis();
        assert!((7..=8).contains(&millis), "measurements differ by 8 ms, it says {millis} ms");
        for ms in 200..400 {
            clock.follow(10_000_000, Instant::from_millis(ms));
        }
        assert_eq!(
            clock.variance().as_millis(),
            millis,
            "a measurement that is given again is not a new one"
        );
    }

    proptest! {
        #[test]
        fn room_time_counts_from_the_opening(opened_ms in 0u64..10_000, now_ms in 0u64..1 << 40) {
            let (opened, now) = (Instant::from_millis(opened_ms), Instant::from_millis(now_ms));
            let room_time = welcomed(0).room_time(opened, now);
            prop_assert_eq!(room_time, Instant::from_millis(10_000 + now_ms - opened_ms));
        }

        #[test]
        fn threat_22_whatever_is_measured_it_never_runs_backwards_by_slewing(
            offsets in proptest::collection::vec((-86_400_000_000i64..86_400_000_000, 0u64..100_000), 1..50),
        ) {
            let (mut clock, mut now) = (welcomed(0), Instant::ZERO);
            for (offset_us, step_us) in offsets {
                let (before, jumps) = (clock.hub_time(now), clock.jumps());
                now += Duration::from_micros(step_us);
                clock.follow(offset_us, now);
                prop_assert!(clock.jumps() > jumps || clock.hub_time(now) >= before);
            }
        }
    }
}
