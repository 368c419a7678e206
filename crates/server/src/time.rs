//! The clock of the services.
//!
//! The time of day can be wrong at a server's start, and can jump. A jump must not reach a deadline, and a
//! ticket of this server must not come from its future. So the services' clock counts from the time of day at
//! the start, only forward. It corrects a difference by a hundredth of the elapsed time. Only tokens that
//! others sign are checked against the time of day itself.
//!
//! In a cluster all of this follows the store's clock instead of the machine's ([`Time::follow`]).

use crate::mutex::lock;
use crate::system::unix_ms;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

/// A hundredth: while a wrong time is corrected, a turn of a minute is 0.6 s shorter or longer.
const SLEW: u64 = 100;
/// How often the clock sets a new base.
const REBASE_US: u64 = 1_000_000;

/// The clock of a server's services. Clones are the same clock. Only tests move it.
#[derive(Clone, Debug)]
pub struct Time(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    started: Instant,
    /// Moved by [`Time::pass`].
    passed_us: AtomicU64,
    /// Moved by [`Time::leap`].
    leapt_ms: AtomicI64,
    clocks: Mutex<Clocks>,
    /// The newest returned time: times never decrease.
    told_us: AtomicU64,
    moved: Notify,
}

#[derive(Debug)]
struct Clocks {
    /// When the services' time was set last.
    base: Base,
    /// A reading of the clock that the time of day is taken from; `None` for the machine's.
    followed: Option<Base>,
}

/// A moment on the steady clock and on another one.
#[derive(Clone, Copy, Debug)]
struct Base {
    steady_us: u64,
    now_us: u64,
}

impl Base {
    /// What the other clock reads at a steady moment, if both run alike.
    fn at(self, steady_us: u64) -> u64 {
        self.now_us.saturating_add(steady_us).saturating_sub(self.steady_us)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::wrong_by(0)
    }
}

impl Time {
    /// For tests: a clock with a wrong time of day from the start.
    pub fn wrong_by(ms: i64) -> Self {
        let now_us = unix_ms().saturating_add_signed(ms).saturating_mul(1_000);
        Time(Arc::new(Inner {
            started: Instant::now(),
            passed_us: AtomicU64::new(0),
            leapt_ms: AtomicI64::new(ms),
            clocks: Mutex::new(Clocks { base: Base { steady_us: 0, now_us }, followed: None }),
            told_us: AtomicU64::new(0),
            moved: Notify::new(),
        }))
    }

    /// The time since this clock's start. It never leaps.
    pub fn steady(&self) -> Duration {
        let passed = Duration::from_micros(self.0.passed_us.load(Ordering::Relaxed));
        self.0.started.elapsed().saturating_add(passed)
    }

    /// The time of day, in milliseconds since 1970: by the followed clock, or by the machine's. It may leap.
    pub fn wall_ms(&self) -> u64 {
        let followed = lock(&self.0.clocks).followed;
        followed.map_or_else(|| self.machine_ms(), |followed| followed.at(self.steady_us()) / 1_000)
    }

    /// The time of day by the machine's clock, in milliseconds since 1970. It may leap.
    pub fn machine_ms(&self) -> u64 {
        let passed_ms = self.0.passed_us.load(Ordering::Relaxed) / 1_000;
        unix_ms().saturating_add(passed_ms).saturating_add_signed(self.0.leapt_ms.load(Ordering::Relaxed))
    }

    /// The same in seconds.
    pub fn wall_s(&self) -> u64 {
        self.wall_ms() / 1_000
    }

    /// The services' time, in milliseconds since 1970. It never leaps and never goes back.
    pub fn now_ms(&self) -> u64 {
        let steady_us = self.steady_us();
        let mut clocks = lock(&self.0.clocks);
        let followed = clocks.followed.map(|followed| followed.at(steady_us));
        let wall_us = followed.unwrap_or_else(|| self.machine_ms().saturating_mul(1_000));
        let base = &mut clocks.base;
        let passed_us = steady_us.saturating_sub(base.steady_us);
        let straight_us = base.now_us.saturating_add(passed_us);
        let slew_us = passed_us / SLEW;
        let now_us = wall_us.clamp(straight_us.saturating_sub(slew_us), straight_us.saturating_add(slew_us));
        if passed_us >= REBASE_US {
            *base = Base { steady_us, now_us };
        }
        drop(clocks);
        self.0.told_us.fetch_max(now_us, Ordering::Relaxed).max(now_us) / 1_000
    }

    /// The same in seconds.
    pub fn now_s(&self) -> u64 {
        self.now_ms() / 1_000
    }

    fn steady_us(&self) -> u64 {
        u64::try_from(self.steady().as_micros()).unwrap_or(u64::MAX)
    }

    /// Follows another clock than the machine's, which read `unix_us` at this [steady](Self::steady) moment. The first
    /// call sets the time, so it comes before anybody reads it. A later difference is a leap.
    pub fn follow(&self, unix_us: u64, at: Duration) {
        let steady_us = u64::try_from(at.as_micros()).unwrap_or(u64::MAX);
        let read = Base { steady_us, now_us: unix_us };
        let mut clocks = lock(&self.0.clocks);
        if clocks.followed.replace(read).is_none() {
            clocks.base = read;
            self.0.told_us.store(0, Ordering::Relaxed);
        }
    }

    /// Tells that the machine slept, so that the steady clock stood still while the followed one went on.
    pub fn has_slept(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let mut clocks = lock(&self.0.clocks);
        if let Clocks { base, followed: Some(followed) } = &mut *clocks {
            followed.now_us = followed.now_us.saturating_add(time_us);
            base.now_us = base.now_us.saturating_add(time_us);
        }
    }

    /// For tests: lets this time pass at once, on all clocks.
    pub fn pass(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.passed_us.fetch_add(time_us, Ordering::Relaxed);
        self.0.moved.notify_waiters();
        self.0.moved.notify_one();
    }

    /// For tests: the time of day leaps, and no time passes.
    pub fn leap(&self, by_ms: i64) {
        self.0.leapt_ms.fetch_add(by_ms, Ordering::Relaxed);
        self.0.moved.notify_waiters();
        self.0.moved.notify_one();
    }

    /// Waits until a test moves the clock, counted from this call. May be cancelled.
    pub fn moved(&self) -> Notified<'_> {
        self.0.moved.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 60 * 60 * 1_000;

    #[test]
    fn threat_55_a_leap_of_the_time_of_day_moves_the_services_by_a_hundredth_of_what_passes() {
        for leap_ms in [11_000_i64, 3_600_000, -3_600_000] {
            let time = Time::default();
            let before = time.now_ms();
            time.leap(leap_ms);
            // The real time that passes meanwhile is unknown, and short.
            assert!(time.now_ms() - before < HOUR_MS / 100, "{leap_ms}");
            assert!((time.wall_ms().abs_diff(before)).abs_diff(leap_ms.unsigned_abs()) < HOUR_MS / 100);
        }
    }

    #[test]
    fn threat_55_a_followed_clock_is_right_at_once_and_its_leaps_are_those_of_the_time_of_day() {
        let time = Time::wrong_by(3_600_000);
        let right_us = unix_ms() * 1_000;
        time.follow(right_us, time.steady());
        let is_right = |now_ms: u64| now_ms.abs_diff(right_us / 1_000) < HOUR_MS / 100;
        assert!(is_right(time.now_ms()) && is_right(time.wall_ms()));
        assert!(time.machine_ms().abs_diff(right_us / 1_000) > HOUR_MS / 2);
        // The machine's clock is nobody's any more.
        time.leap(-7_200_000);
        assert!(is_right(time.now_ms()) && is_right(time.wall_ms()));
        time.follow(right_us + HOUR_MS * 1_000, time.steady());
        assert!(is_right(time.now_ms()) && !is_right(time.wall_ms()));
    }

    #[test]
    fn time_in_which_the_machine_slept_has_passed() {
        let time = Time::default();
        let before = time.now_ms();
        time.has_slept(Duration::from_secs(600));
        assert!(time.now_ms() - before < 60_000, "the machine's clock tells by itself");
        time.follow(before * 1_000, time.steady());
        time.has_slept(Duration::from_secs(600));
        let slept = [time.now_ms() - before, time.wall_ms() - before];
        assert!(slept.iter().all(|slept| (600_000..660_000).contains(slept)), "{slept:?}");
    }

    #[test]
    fn a_wrong_time_comes_closer_to_the_right_one_and_stays_there() {
        for leap_ms in [600_000_i64, -600_000] {
            let time = Time::default();
            time.leap(leap_ms);
            let mut last = time.now_ms();
            for _ in 0..20 {
                time.pass(Duration::from_secs(3_600));
                let now = time.now_ms();
                assert!(now > last);
                last = now;
            }
            assert!(last.abs_diff(time.wall_ms()) < 1_000, "20 hours are enough for ten minutes");
        }
    }
}
