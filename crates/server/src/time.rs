//! The clock of the services.
//!
//! The time of day can be wrong at a server's start, and can jump. A jump must not reach a deadline, and a
//! ticket of this server must not come from its future. So the services' clock counts from the time of day at
//! the start, only forward. It corrects a difference by a hundredth of the elapsed time. Only tokens that
//! others sign are checked against the time of day itself.

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
    base: Mutex<Base>,
    /// The newest returned time: times never decrease.
    told_us: AtomicU64,
    moved: Notify,
}

/// A moment on both clocks.
#[derive(Clone, Copy, Debug)]
struct Base {
    steady_us: u64,
    now_us: u64,
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
            base: Mutex::new(Base { steady_us: 0, now_us }),
            told_us: AtomicU64::new(0),
            moved: Notify::new(),
        }))
    }

    /// The time since this clock's start. It never leaps.
    pub fn steady(&self) -> Duration {
        let passed = Duration::from_micros(self.0.passed_us.load(Ordering::Relaxed));
        self.0.started.elapsed().saturating_add(passed)
    }

    /// The time of day by the machine's clock, in milliseconds since 1970. It may leap.
    pub fn wall_ms(&self) -> u64 {
        let passed_ms = self.0.passed_us.load(Ordering::Relaxed) / 1_000;
        unix_ms().saturating_add(passed_ms).saturating_add_signed(self.0.leapt_ms.load(Ordering::Relaxed))
    }

    /// The same in seconds.
    pub fn wall_s(&self) -> u64 {
        self.wall_ms() / 1_000
    }

    /// The services' time, in milliseconds since 1970. It never leaps and never goes back.
    pub fn now_ms(&self) -> u64 {
        let steady_us = u64::try_from(self.steady().as_micros()).unwrap_or(u64::MAX);
        let wall_us = self.wall_ms().saturating_mul(1_000);
        let mut base = lock(&self.0.base);
        let passed_us = steady_us.saturating_sub(base.steady_us);
        let straight_us = base.now_us.saturating_add(passed_us);
        let slew_us = passed_us / SLEW;
        let now_us = wall_us.clamp(straight_us.saturating_sub(slew_us), straight_us.saturating_add(slew_us));
        if passed_us >= REBASE_US {
            *base = Base { steady_us, now_us };
        }
        drop(base);
        self.0.told_us.fetch_max(now_us, Ordering::Relaxed).max(now_us) / 1_000
    }

    /// The same in seconds.
    pub fn now_s(&self) -> u64 {
        self.now_ms() / 1_000
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
