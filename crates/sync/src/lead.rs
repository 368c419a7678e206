//! How far ahead of the room's time a member runs its steps, so that its inputs are at the authority in time.
//!
//! The authority measures what nobody else can: how long before it ran a step the input for it had come. What it reports
//! moves the lead of the member by running its steps a little faster or slower, as Overwatch and Rocket League do (T. Ford,
//! *Overwatch Gameplay Architecture and Netcode*, GDC 2017; J. Cone, *It IS Rocket Science*, GDC 2018): by a twentieth for
//! each step that is missing, and by a twentieth at most. Nobody sees that.
//!
//! An input that is lost comes with the next one, a step later. There is no room for losses that were not seen yet: each step of
//! lead is a step further back that everything is when this member acts on it.

use crate::limits::{
    LEAD_HOLD, LEAD_MAX, LEAD_RISE_MAX, LEAD_STALL, MARGIN_WANTED, MARGIN_WINDOW, STEPS_LED_MAX,
};
use core::time::Duration;
use parlor_proto::{Instant, Tick, TickRate};
use std::collections::VecDeque;

/// Parts in which the dilation is counted.
const PPM: i64 = 1_000_000;
/// How much faster or slower steps come at most: 5%.
const DILATION_MAX_PPM: i64 = 50_000;
/// How much faster they come for each step that the lead is too short.
const GAIN_PPM: i64 = 50_000;
/// How much slower they come for each step that it is too long: what is too long costs little, what is too short is seen.
const GAIN_SLOWER_PPM: i64 = GAIN_PPM / 5;

/// The clock that a member's steps are run by: the room's time and a lead, which changes as the authority reports.
///
/// It never runs backwards, and it jumps only where play does not go on smoothly anyway: when it begins, with the first
/// report, and after a stall of more than [`LEAD_STALL`].
#[derive(Clone, Debug)]
pub struct Lead {
    rate: TickRate,
    /// The newest moment of room time that was looked at.
    at: Instant,
    lead_us: i64,
    target_us: i64,
    dilation_ppm: i64,
    is_settled: bool,
    /// The longest of the leads that reports asked for.
    longest: Greatest,
    /// The lead with which each of the last steps was run, by ascending tick.
    led: VecDeque<(Tick, i64)>,
    jumps: u64,
}

/// The greatest number of the last [`LEAD_HOLD`].
#[derive(Clone, Debug, Default)]
struct Greatest {
    /// Each with when it came: each is smaller than all before it that are still kept, so the first is the greatest.
    kept: VecDeque<(Instant, i64)>,
}

impl Greatest {
    /// Takes one in that came at `at`, and gives the greatest.
    fn of(&mut self, at: Instant, number: i64) -> i64 {
        while self.kept.back().is_some_and(|(_, known)| *known <= number) {
            self.kept.pop_back();
        }
        self.kept.push_back((at, number));
        while self.kept.front().is_some_and(|(came, _)| at.saturating_since(*came) > LEAD_HOLD) {
            self.kept.pop_front();
        }
        self.kept.front().map_or(number, |(_, greatest)| *greatest)
    }
}

impl Lead {
    /// A first guess, at `room_time`: half of the round trip to the hub, and a step. How much round trips differ is not known at first;
    /// the first report says what is missing.
    #[must_use]
    pub fn new(rate: TickRate, room_time: Instant, round_trip: Duration) -> Self {
        let mut lead = Lead {
            rate,
            at: room_time,
            lead_us: 0,
            target_us: 0,
            dilation_ppm: 0,
            is_settled: false,
            longest: Greatest::default(),
            led: VecDeque::new(),
            jumps: 0,
        };
        lead.target_us = lead.within_bounds(micros(round_trip / 2).saturating_add(lead.interval_us()));
        lead.lead_us = lead.target_us;
        lead
    }

    /// Lets time pass, to `room_time`. Says whether the clock jumped: then there were no steps in between.
    pub fn advance(&mut self, room_time: Instant) -> bool {
        let before = self.time(self.at);
        let passed = room_time.saturating_since(self.at);
        let is_set_back = self.at.saturating_since(room_time) > LEAD_STALL;
        if passed > LEAD_STALL || is_set_back {
            // The room's time was set back: the steps that were run ahead of it are waited for by whoever counts steps.
            self.at = room_time;
            self.lead_us = self.target_us;
            if !is_set_back {
                self.lead_us = self.lead_us.max(micros(before.saturating_since(room_time)));
            }
            self.jumps += 1;
            return false;
        }
        self.at = self.at.max(room_time);
        let error_us = self.target_us - self.lead_us;
        let gain_ppm = if error_us > 0 { GAIN_PPM } else { GAIN_SLOWER_PPM };
        let wanted_ppm = error_us.saturating_mul(gain_ppm) / self.interval_us();
        self.dilation_ppm = wanted_ppm.clamp(-DILATION_MAX_PPM, DILATION_MAX_PPM);
        let change_us = micros(passed) * self.dilation_ppm / PPM;
        self.lead_us += change_us.clamp(-error_us.abs(), error_us.abs());
        false
    }

    /// The step `tick` was run, for the first time.
    pub fn ran(&mut self, tick: Tick) {
        if self.led.len() == STEPS_LED_MAX {
            self.led.pop_front();
        }
        self.led.push_back((tick, self.lead_us));
    }

    /// The authority reports, as of `tick`, the least margin of the last half second, in ms. Says whether the clock jumped
    /// ahead, which only the first report can do: then there were no steps in between. A report of steps that were not run with
    /// this lead says nothing of it.
    pub fn report(&mut self, tick: Tick, margin_ms: i16) -> bool {
        let margin_us = i64::from(margin_ms) * 1_000;
        let Some(lead_us) = self.least_lead(tick, margin_us) else { return false };
        let needed_us = lead_us + micros(MARGIN_WANTED) - margin_us;
        let is_first = !std::mem::replace(&mut self.is_settled, true);
        // What a break of the network delays is not to be waited for with every step that follows.
        let most_us = if is_first { micros(LEAD_MAX) } else { self.lead_us + micros(LEAD_RISE_MAX) };
        let needed_us = self.within_bounds(needed_us.min(most_us));
        self.target_us = self.longest.of(self.at, needed_us);
        let jumps = is_first && self.target_us > self.lead_us + self.interval_us();
        if jumps {
            self.lead_us = self.target_us;
            self.jumps += 1;
        }
        jumps
    }

    /// The least lead of the steps that a report as of `tick` looks back on: the margin is theirs. An input that came late was noticed
    /// when it came, so its step is longer ago by that. None if none of them was run with this lead.
    fn least_lead(&self, tick: Tick, margin_us: i64) -> Option<i64> {
        let back_us = micros(MARGIN_WINDOW) + (-margin_us).max(0);
        let window = i32::try_from(back_us / self.interval_us() + 1).unwrap_or(i32::MAX);
        let of_report = |of: Tick| (0..=window).contains(&tick.since(of));
        self.led.iter().filter(|(of, _)| of_report(*of)).map(|(_, lead_us)| *lead_us).min()
    }

    /// The moment that steps are run by, at `room_time`.
    #[must_use]
    pub fn time(&self, room_time: Instant) -> Instant {
        let lead = Duration::from_micros(u64::try_from(self.lead_us).unwrap_or(0));
        self.at.max(room_time) + lead
    }

    /// How far ahead of the room's time that is.
    #[must_use]
    pub fn lead(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.lead_us).unwrap_or(0))
    }

    /// How much faster than the room's time it runs at present: 0.95 to 1.05.
    #[must_use]
    pub fn dilation(&self) -> f64 {
        let ppm = i32::try_from(PPM + self.dilation_ppm).unwrap_or(i32::MAX);
        f64::from(ppm) / 1_000_000.0
    }

    /// How often it jumped.
    #[must_use]
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    fn within_bounds(&self, lead_us: i64) -> i64 {
        let least = self.interval_us();
        lead_us.clamp(least, micros(LEAD_MAX).max(least))
    }

    /// The length of a step in µs, at least 1.
    fn interval_us(&self) -> i64 {
        1_000_000 / i64::from(self.rate.hz())
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests;
