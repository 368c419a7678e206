//! Which moment of the room to show.

use crate::limits::{
    ARRIVAL_AGE_MAX, ARRIVALS_MAX, BUFFER_DELAY_MAX, RESYNC_BEYOND, SETTLES_AFTER, SETTLES_WITH,
};
use core::time::Duration;
use parlor_proto::Instant;
use std::collections::VecDeque;

/// The part of updates, in percent, that arrive within the jitter.
const JITTER_PERCENTILE: usize = 95;
/// The part of updates, in percent, that shall be there when what came before them has been shown, of those
/// that can be.
const IN_TIME_PERCENTILE: usize = 98;
/// If less than this part of updates, in percent, can be there then, they are not lost now and then but come
/// that far apart.
const LOST_BELOW_PERCENT: usize = 87;
/// Updates that are further apart were not lost in between: nothing happened. One lost packet after another
/// is rare.
const GAP_TICKS_MAX: u32 = 4;
/// A playout that falls behind on purpose runs at half speed: quickly enough to have samples again soon.
const GROW: i128 = 2;
/// A playout that catches up runs 5% faster, which is not visible.
const SHRINK: i128 = 20;

/// Maps the local clock to the moment of room time to show.
///
/// The two clocks need not agree on anything. The smallest difference between an update's arrival and its
/// room time is taken for the fastest way here; most others are slower by up to the jitter. What is shown
/// lags behind the fastest way such that nearly every update is there before what came ahead of it has been
/// shown to its end, whatever was lost between the two: by one tick and the jitter at least, and by one tick
/// and twice the jitter at most, because more would be felt. Which updates are late even so is no reason to
/// wait at all: it is for whoever draws to [extrapolate](super::Sample::take_moment). The lag grows fast and
/// shrinks slowly.
///
/// Only until it has *settled* may it become shorter at once. The first update of a newcomer may be of a tick
/// long ago, because the room was at rest or because it waited in a process that was just starting: that says
/// nothing of the way here, and whoever has just come in has seen nothing move yet.
#[derive(Clone, Debug)]
pub struct Timeline {
    tick_interval: Duration,
    arrivals: VecDeque<Arrival>,
    /// Local time minus room time on the fastest way, in µs. The clocks have different origins: it may be
    /// anything.
    fastest_us: i128,
    jitter: Duration,
    /// How far behind the fastest way it must be shown for nearly all updates to be in time that can be, in
    /// µs.
    in_time_us: i128,
    /// Local time minus the room time shown, in µs; none before the first update.
    lag_us: Option<i128>,
    /// When the lag was last looked at.
    asked: Option<Instant>,
    shown: Option<Instant>,
    newest: Instant,
    is_settled: bool,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    difference_us: i128,
    /// Room time between the update that was the newest before and this one.
    gap_us: i128,
}

impl Timeline {
    /// A timeline of a room whose ticks are `tick_interval` apart.
    pub fn new(tick_interval: Duration) -> Self {
        Timeline {
            tick_interval,
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

    /// An update from `server_time` of the room arrived at `now` of the local clock.
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

    /// Whether an update shows that all before it waited for something that is over: it is faster by more
    /// than a tick, and what came before was not enough to know the way here.
    fn begins_anew(&mut self, now: Instant, difference_us: i128) -> bool {
        let Some(first) = self.arrivals.front() else { return false };
        let is_long = now.saturating_since(first.at) >= SETTLES_AFTER;
        self.is_settled |= is_long && self.arrivals.len() >= SETTLES_WITH;
        !self.is_settled && difference_us + micros(self.tick_interval) < self.fastest_us
    }

    /// Forgets everything: room time may have leapt.
    pub fn restart(&mut self) {
        *self = Timeline::new(self.tick_interval);
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

    /// How far apart the room's ticks are.
    pub fn tick_interval(&self) -> Duration {
        self.tick_interval
    }

    /// The moment that was last shown.
    pub fn shown(&self) -> Option<Instant> {
        self.shown
    }

    /// How much later than the fastest nearly all updates arrive.
    pub fn jitter(&self) -> Duration {
        self.jitter
    }

    /// How far behind the fastest update the moment shown is at present.
    pub fn buffer_delay(&self) -> Duration {
        self.lag_us.map_or(Duration::ZERO, |lag_us| duration(lag_us - self.fastest_us))
    }

    /// How much newer the newest update is than the moment last shown.
    pub fn buffered(&self) -> Duration {
        self.shown.map_or(Duration::ZERO, |shown| self.newest.saturating_since(shown))
    }

    /// How much newer an update is than all before it, if that says something of what was lost.
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

    /// What the lag ought to be.
    fn target_us(&self) -> i128 {
        self.fastest_us + self.in_time_us.min(micros(BUFFER_DELAY_MAX.max(self.tick_interval)))
    }

    /// `lag_us`, moved as far towards the target as the time since the last look allows.
    fn slewed(&self, lag_us: i128, now: Instant) -> i128 {
        let elapsed_us = self.asked.map_or(0, |asked| micros(now.saturating_since(asked)));
        let off_us = self.target_us() - lag_us;
        if off_us.abs() > micros(RESYNC_BEYOND) {
            return self.target_us();
        }
        lag_us + off_us.clamp(-elapsed_us / SHRINK, elapsed_us / GROW)
    }
}

/// The least of ascending numbers that so many percent of them do not exceed.
fn percentile(sorted: &[i128], percent: usize) -> Option<i128> {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied()
}

fn micros(duration: Duration) -> i128 {
    i128::try_from(duration.as_micros()).unwrap_or(i128::MAX)
}

fn duration(us: i128) -> Duration {
    Duration::from_micros(u64::try_from(us.max(0)).unwrap_or(u64::MAX))
}
