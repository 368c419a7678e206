//! Determines which moment of the room to show.

use crate::limits::{
    ARRIVAL_AGE_MAX, ARRIVALS_MAX, BUFFER_DELAY_MAX, RESYNC_BEYOND, SETTLES_AFTER, SETTLES_WITH,
};
use core::time::Duration;
use parlor_proto::Instant;
use parlor_proto::text::Millis;
use std::collections::VecDeque;

/// Percentage of updates that arrive within the jitter.
const JITTER_PERCENTILE: usize = 95;
/// Percentage of the updates that can be in time which must arrive before playout needs them.
const IN_TIME_PERCENTILE: usize = 98;
/// If less than this percentage of updates can be in time, the gaps are not occasional losses: updates come
/// that far apart.
const LOST_BELOW_PERCENT: usize = 87;
/// A larger gap between updates is not loss: nothing happened. Consecutive losses are rare.
const GAP_TICKS_MAX: u32 = 4;
/// To increase the lag, playout runs at half speed, so that it soon has samples again.
const GROW: i128 = 2;
/// To decrease the lag, playout runs 5% faster, which is not visible.
const SHRINK: i128 = 20;

/// Maps the local clock to the moment of room time to show.
///
/// The two clocks need not be related. The smallest difference between an update's arrival and its room time
/// counts as the fastest transit; most others are slower by up to the jitter. The moment shown lags behind
/// the fastest transit, so that nearly every update arrives before its predecessor was shown to the end, even
/// after losses in between. The lag is at least one tick and the jitter. It is at most one tick and twice the
/// jitter, because players would notice more. Updates that are later than that do not increase it: the
/// renderer may [extrapolate](super::Sample::take_moment) instead. The lag grows fast and shrinks slowly.
///
/// Only until it has *settled* may the lag shrink at once. A newcomer's first update may be of a tick long
/// ago, because the room was at rest, or because the update waited while its process started. It does not
/// measure the transit, and a newcomer has not yet seen any motion.
#[derive(Clone, Debug)]
pub struct Timeline {
    tick_interval: Duration,
    delay: RenderDelay,
    arrivals: VecDeque<Arrival>,
    /// Local time minus room time for the fastest transit, in µs. The clocks have different origins: any
    /// value is possible.
    fastest_us: i128,
    jitter: Duration,
    /// The lag behind the fastest transit, in µs, with which nearly all updates that can be in time are.
    in_time_us: i128,
    /// Local time minus the room time shown, in µs; `None` before the first update.
    lag_us: Option<i128>,
    /// When the lag was last computed.
    asked: Option<Instant>,
    shown: Option<Instant>,
    newest: Instant,
    is_settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    difference_us: i128,
    /// Room time between the previous newest update and this one.
    gap_us: i128,
}

/// Bounds of how far behind the fastest update others are drawn. Within them the delay follows the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderDelay {
    /// Shortest delay. Default: zero, which leaves one step and the jitter.
    pub shortest: Duration,
    /// Longest delay, but at least one step. Default and maximum: 500 ms.
    pub longest: Duration,
}

impl Default for RenderDelay {
    fn default() -> Self {
        RenderDelay { shortest: Duration::ZERO, longest: BUFFER_DELAY_MAX }
    }
}

impl RenderDelay {
    /// Checks that the bounds are within their range.
    ///
    /// # Errors
    /// A text for a person that names the range.
    pub fn check(&self) -> Result<(), String> {
        let RenderDelay { shortest, longest } = *self;
        if shortest > longest || longest > BUFFER_DELAY_MAX {
            let [shortest, longest, most] = [shortest, longest, BUFFER_DELAY_MAX].map(Millis);
            return Err(format!(
                "the render delay is {shortest} to {longest}; it may be zero to {most}, the shortest first"
            ));
        }
        Ok(())
    }
}

impl Timeline {
    /// Creates a timeline for a room whose ticks are `tick_interval` apart.
    pub fn new(tick_interval: Duration) -> Self {
        Timeline {
            tick_interval,
            delay: RenderDelay::default(),
            arrivals: VecDeque::new(),
            fastest_us: 0,
            jitter: Duration::ZERO,
            in_time_us: 0,
            lag_us: None,
            asked: None,
            shown: None,
            newest: Instant::ZERO,
            is_settled: false,
        }
    }

    /// Records that an update from `server_time` of the room arrived at `now` of the local clock.
    pub fn arrived(&mut self, now: Instant, server_time: Instant) {
        let difference_us = i128::from(now.as_micros()) - i128::from(server_time.as_micros());
        let begins_anew = self.begins_anew(now, difference_us);
        if begins_anew {
            self.arrivals.clear();
        }
        self.arrivals.push_back(Arrival { at: now, difference_us, gap_us: self.gap_us(server_time) });
        let too_old = |arrival: &Arrival| now.saturating_since(arrival.at) > ARRIVAL_AGE_MAX;
        while self.arrivals.len() > ARRIVALS_MAX || self.arrivals.front().is_some_and(too_old) {
            self.arrivals.pop_front();
        }
        self.measure();
        self.newest = self.newest.max(server_time);
        if self.lag_us.is_none() || begins_anew {
            self.lag_us = Some(self.target_us());
        }
    }

    /// Whether an update shows that all earlier ones were delayed by a cause that is over: it is faster by
    /// more than a tick, and the timeline has not settled.
    fn begins_anew(&mut self, now: Instant, difference_us: i128) -> bool {
        let Some(first) = self.arrivals.front() else { return false };
        let is_long = now.saturating_since(first.at) >= SETTLES_AFTER;
        self.is_settled |= is_long && self.arrivals.len() >= SETTLES_WITH;
        !self.is_settled && difference_us + micros(self.tick_interval) < self.fastest_us
    }

    /// Resets everything: room time may have jumped.
    pub fn restart(&mut self) {
        *self = Timeline { delay: self.delay, ..Timeline::new(self.tick_interval) };
    }

    /// Sets the bounds of the lag.
    pub fn set_delay(&mut self, delay: RenderDelay) {
        self.delay = delay;
    }

    /// Returns the moment of room time to show at `now` of the local clock. It never runs backwards. `None`
    /// until the first update arrives.
    pub fn render_time(&mut self, now: Instant) -> Option<Instant> {
        let lag_us = self.slewed(self.lag_us?, now);
        self.lag_us = Some(lag_us);
        self.asked = Some(self.asked.map_or(now, |asked| asked.max(now)));
        let moment_us = (i128::from(now.as_micros()) - lag_us).clamp(0, i128::from(u64::MAX));
        let moment = Instant::from_micros(u64::try_from(moment_us).expect("it was clamped"));
        self.shown = Some(self.shown.map_or(moment, |shown| shown.max(moment)));
        self.shown
    }

    /// Returns the interval between the room's ticks.
    pub fn tick_interval(&self) -> Duration {
        self.tick_interval
    }

    /// Returns the moment that was last shown.
    pub fn shown(&self) -> Option<Instant> {
        self.shown
    }

    /// Returns how much later than the fastest nearly all updates arrive.
    pub fn jitter(&self) -> Duration {
        self.jitter
    }

    /// Returns how far the moment shown is currently behind the fastest update.
    pub fn buffer_delay(&self) -> Duration {
        self.lag_us.map_or(Duration::ZERO, |lag_us| duration(lag_us - self.fastest_us))
    }

    /// Returns how far the newest update is ahead of the moment last shown.
    pub fn buffered(&self) -> Duration {
        self.shown.map_or(Duration::ZERO, |shown| self.newest.saturating_since(shown))
    }

    /// The gap between an update and the newest one before it, if it indicates loss; else one tick.
    fn gap_us(&self, server_time: Instant) -> i128 {
        let gap = server_time.saturating_since(self.newest);
        let is_loss = self.lag_us.is_some() && gap <= self.tick_interval * GAP_TICKS_MAX;
        micros(if is_loss { gap } else { self.tick_interval })
    }

    fn measure(&mut self) {
        let mut sorted: Vec<i128> = self.arrivals.iter().map(|it| it.difference_us).collect();
        sorted.sort_unstable();
        let (Some(fastest), Some(slow)) = (sorted.first(), percentile(&sorted, JITTER_PERCENTILE)) else {
            return;
        };
        (self.fastest_us, self.jitter) = (*fastest, duration(slow - fastest));
        let least = self.tick_interval.saturating_add(self.jitter);
        let most_us = micros(least.saturating_add(self.jitter));
        sorted.clear();
        sorted.extend(self.arrivals.iter().map(|it| it.difference_us + it.gap_us - self.fastest_us));
        sorted.sort_unstable();
        let can_be = &sorted[..sorted.partition_point(|behind_us| *behind_us <= most_us)];
        let are_lost = can_be.len() * 100 >= sorted.len() * LOST_BELOW_PERCENT;
        let nearly_all_us = percentile(can_be, IN_TIME_PERCENTILE).filter(|_| are_lost).unwrap_or(most_us);
        self.in_time_us = nearly_all_us.max(micros(least));
    }

    /// The lag to aim at.
    fn target_us(&self) -> i128 {
        let most_us = micros(self.delay.longest.max(self.tick_interval));
        self.fastest_us + self.in_time_us.max(micros(self.delay.shortest)).min(most_us)
    }

    /// Returns `lag_us`, moved towards the target as far as the time since the last call allows.
    fn slewed(&self, lag_us: i128, now: Instant) -> i128 {
        let elapsed_us = self.asked.map_or(0, |asked| micros(now.saturating_since(asked)));
        let off_us = self.target_us() - lag_us;
        if off_us.abs() > micros(RESYNC_BEYOND) {
            return self.target_us();
        }
        lag_us + off_us.clamp(-elapsed_us / SHRINK, elapsed_us / GROW)
    }
}

/// Returns the percentile of ascending numbers.
fn percentile(sorted: &[i128], percent: usize) -> Option<i128> {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

fn micros(duration: Duration) -> i128 {
    i128::try_from(duration.as_micros()).unwrap_or(i128::MAX)
}

fn duration(us: i128) -> Duration {
    Duration::from_micros(u64::try_from(us.max(0)).unwrap_or(u64::MAX))
}
