//! Estimates the bandwidth of a stream from what its socket accepts: for links without other measurements of
//! the path.
//!
//! A socket that accepts everything at once shows only that the path carries that much. One that is busy for
//! 100 ms without accepting everything has a standing queue; what it accepted in that time is what the
//! path carries. The reported rate is set slightly below that, so that the queue drains. Then it grows to
//! probe for more: quickly up to what the path has carried before, since a stall is not a narrow path, and
//! slowly beyond it.

use crate::time::Instant;
use core::time::Duration;

/// A queue that lasts this long is standing.
const STANDING: Duration = Duration::from_millis(100);
/// The reported rate as a percentage of what the path carries: the queue drains by the rest.
const DRAIN_PERCENT: u64 = 85;
/// Time without a standing queue before the rate is raised, each time.
const CALM: Duration = Duration::from_millis(500);
/// The growth beyond what the path was seen to carry, as a fraction of it.
const GROWTH_PART: u64 = 20;
/// Less than this fraction of the last bandwidth is a stall, not the bandwidth.
const STALL_PART: u64 = 4;
/// Minimum rate, in bytes per second: a game without any packets is over.
const LEAST: u64 = 4 * 1024;
/// Maximum rate: no game sends more.
const MOST: u64 = 16 * 1024 * 1024;

/// See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct StreamRate {
    /// The reported rate.
    rate: Option<u64>,
    /// What the path was seen to carry.
    seen: u64,
    /// Since when the socket is busy, and what it accepted since.
    busy: Option<(Instant, u64)>,
    /// Since when there is no standing queue, or when the rate was last raised.
    calm: Instant,
}

impl StreamRate {
    /// Bytes per second that the path carries; `None` until there was a queue.
    pub fn bytes_per_second(&self) -> Option<u64> {
        self.rate
    }

    /// Handles that the socket accepted `bytes` from `began` until `now`; `waits` says whether more was
    /// queued then.
    pub fn handle_written(&mut self, began: Instant, now: Instant, bytes: u64, waits: bool) {
        let (since, before) = self.busy.unwrap_or((began, 0));
        let (span, taken) = (now.saturating_since(since), before + bytes);
        if span >= STANDING {
            self.shrink(taken, span, now);
            self.busy = waits.then_some((now, 0));
            return;
        }
        self.busy = waits.then_some((since, taken));
        if now.saturating_since(self.calm) >= CALM {
            self.calm = now;
            self.grow();
        }
    }

    fn shrink(&mut self, taken: u64, span: Duration, now: Instant) {
        let span_us = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        let carried = taken.saturating_mul(1_000_000) / span_us.max(1);
        if carried >= self.seen / STALL_PART {
            self.seen = carried;
        }
        self.rate = Some((carried * DRAIN_PERCENT / 100).clamp(LEAST, MOST));
        self.calm = now;
    }

    fn grow(&mut self) {
        let Some(rate) = self.rate else { return };
        let grown = if rate < self.seen { (2 * rate).min(self.seen) } else { rate + rate / GROWTH_PART };
        self.rate = Some(grown.min(MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sender that produces the reported rate, or its own, each tick, and a socket that accepts `carries`
    /// bytes per second: the queue after each tick, in ms of the socket, and the bytes accepted.
    struct Model {
        rate: StreamRate,
        now: Instant,
        waiting: u64,
    }

    const TICK: Duration = Duration::from_millis(33);

    impl Model {
        fn tick(&mut self, wants: u64, carries: u64) -> (u64, u64) {
            let most = self.rate.bytes_per_second().map_or(wants, |rate| rate.min(wants));
            self.waiting += most * 33 / 1_000;
            let room = carries * 33 / 1_000;
            let (taken, began) = (self.waiting.min(room), self.now);
            self.waiting -= taken;
            self.now += TICK;
            let took = Duration::from_millis(taken * 33 / room.max(1));
            if taken > 0 || self.waiting > 0 {
                let until = if self.waiting > 0 { self.now } else { began + took };
                self.rate.handle_written(began, until, taken, self.waiting > 0);
            }
            (self.waiting * 1_000 / carries.max(1), taken)
        }
    }

    #[test]
    fn a_narrow_socket_is_filled_without_a_queue_that_stays() {
        for carries in [20_000, 62_500, 250_000, 1_000_000] {
            let mut model = Model { rate: StreamRate::default(), now: Instant::ZERO, waiting: 0 };
            let ticks: Vec<(u64, u64)> = (0..1_800).map(|_| model.tick(3 * carries, carries)).collect();
            let mut queues: Vec<u64> = ticks[300..].iter().map(|(queue, _)| *queue).collect();
            queues.sort_unstable();
            let p95 = queues[queues.len() * 95 / 100];
            assert!(p95 <= 120, "at {carries} B/s {p95} ms wait");
            let taken: u64 = ticks[300..].iter().map(|(_, taken)| taken).sum();
            let share = taken * 100 / (carries * 33 / 1_000 * 1_500);
            assert!(share >= 80, "{share}% of {carries} B/s is used");
        }
    }

    #[test]
    fn nothing_is_told_of_a_socket_that_takes_everything_and_a_stall_is_soon_over() {
        let mut model = Model { rate: StreamRate::default(), now: Instant::ZERO, waiting: 0 };
        for _ in 0..300 {
            model.tick(100_000, 120_000);
        }
        assert_eq!(model.rate.bytes_per_second(), None);
        for _ in 0..300 {
            model.tick(240_000, 120_000);
        }
        for _ in 0..90 {
            model.tick(240_000, 0);
        }
        let until = model.now + Duration::from_secs(4);
        while model.now < until {
            model.tick(240_000, 120_000);
        }
        assert!(model.rate.bytes_per_second() > Some(90_000), "{:?}", model.rate.bytes_per_second());
    }
}
