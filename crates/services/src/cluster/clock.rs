//! The store's clock, by which all nodes agree on what is due.
//!
//! Each answered heartbeat tells it, up to half of the time that the answer took. The services' time follows it, so
//! no node's own time of day ends a turn or an access token. Between two heartbeats, and while the store is away, the
//! node's steady clock goes on at its rate.

use super::lease::Heard;
use super::uptime::uptime;
use crate::store::{Store, StoreError};
use core::sync::atomic::{AtomicI64, Ordering};
use core::time::Duration;
use parlor_server::Time;
use parlor_server::embed::lock;
use std::sync::Mutex;

/// Round trips at the start. The shortest one counts.
const ROUND_TRIPS: usize = 8;
/// A steady clock gains or loses less than a five-thousandth: a reading is as good as a newer one that is worse.
const DRIFT: u32 = 5_000;
/// A shorter sleep of the machine is a measuring error.
const SLEPT_MIN: Duration = Duration::from_millis(50);
/// A wall clock that is wrong by more is logged.
const OFF_US: u64 = 1_000_000;

/// The store's clock.
#[derive(Debug)]
pub(super) struct StoreClock {
    time: Time,
    heard: Mutex<Option<Known>>,
    /// How far the machine's time of day is ahead of the store's clock.
    offset_us: AtomicI64,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The bound of the error of what the services' time follows, and when that was read, by [`uptime`].
    within: Duration,
    read: Duration,
    /// Both clocks at the last heartbeat: their difference is time in which the machine slept.
    uptime: Duration,
    steady: Duration,
    is_off: bool,
}

impl StoreClock {
    /// Reads the store's clock, before anybody reads the services' time.
    pub(super) async fn start(store: &Store, time: Time) -> Result<Self, StoreError> {
        let clock = StoreClock { time, heard: Mutex::default(), offset_us: AtomicI64::new(0) };
        for _ in 0..ROUND_TRIPS {
            let sent = uptime();
            let store_us = store.clock_us().await?;
            clock.hear(Heard { took: uptime().saturating_sub(sent), store_us });
        }
        Ok(clock)
    }

    /// Takes an answer that has just come.
    pub(super) fn hear(&self, heard: Heard) {
        let (steady, uptime) = (self.time.steady(), uptime());
        let (within, mut last) = (heard.took / 2, lock(&self.heard));
        let slept = last.map_or(Duration::ZERO, |last| {
            let passed = steady.saturating_sub(last.steady);
            uptime.saturating_sub(last.uptime).saturating_sub(passed)
        });
        if slept >= SLEPT_MIN {
            tracing::warn!(?slept, "the machine slept");
            self.time.has_slept(slept);
        }
        let known = match *last {
            Some(last) if within > last.within + uptime.saturating_sub(last.read) / DRIFT => {
                Known { uptime, steady, ..last }
            }
            before => {
                self.time.follow(heard.store_us, steady.saturating_sub(within));
                let is_off = before.is_some_and(|before| before.is_off);
                Known { within, read: uptime, uptime, steady, is_off }
            }
        };
        *last = Some(Known { is_off: self.compare(heard, known.is_off), ..known });
    }

    /// Compares the machine's time of day with the store's clock. Returns whether it is wrong.
    fn compare(&self, heard: Heard, was_off: bool) -> bool {
        let signed = |us: u64| i64::try_from(us).unwrap_or(i64::MAX);
        let half_us = u64::try_from((heard.took / 2).as_micros()).unwrap_or(u64::MAX);
        let machine_us = self.time.machine_ms().saturating_mul(1_000);
        let offset_us = signed(machine_us).saturating_sub(signed(heard.store_us.saturating_add(half_us)));
        self.offset_us.store(offset_us, Ordering::Relaxed);
        let is_off = offset_us.unsigned_abs() > OFF_US.saturating_add(half_us);
        if is_off && !was_off {
            let offset_s = offset_us / 1_000_000;
            tracing::warn!(
                offset_s,
                "this machine's time of day is not the database's: synchronize both (NTP). The node goes by the database's"
            );
        } else if was_off && !is_off {
            tracing::info!("this machine's time of day is the database's again");
        }
        is_off
    }

    /// How far the machine's time of day is ahead of the store's clock, in seconds.
    #[allow(clippy::cast_precision_loss, reason = "a figure to look at")]
    pub(super) fn offset_s(&self) -> f64 {
        self.offset_us.load(Ordering::Relaxed) as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;

    fn clock(time: &Time) -> StoreClock {
        StoreClock { time: time.clone(), heard: Mutex::default(), offset_us: AtomicI64::new(0) }
    }

    #[test]
    fn the_best_reading_counts_until_a_steady_clock_may_have_drifted() {
        let time = Time::wrong_by(3_600_000);
        let (clock, right_us) = (clock(&time), time.machine_ms() * 1_000 - HOUR_US);
        let is_right = |by_us: i64| {
            let wrong_us = (time.wall_ms() * 1_000).abs_diff(right_us.saturating_add_signed(by_us));
            assert!(wrong_us < 60_000_000, "{wrong_us}");
        };
        clock.hear(Heard { took: Duration::from_millis(2), store_us: right_us });
        is_right(0);
        assert!((clock.offset_s() - 3_600.0).abs() < 60.0);
        // An answer that took long says little.
        clock.hear(Heard { took: Duration::from_secs(2), store_us: right_us + 2 * HOUR_US });
        is_right(0);
        clock.hear(Heard { took: Duration::from_millis(1), store_us: right_us + 2 * HOUR_US });
        is_right(2 * 3_600_000_000);
    }
}
