//! How far ahead of room time a member runs its steps, so that its inputs reach the authority in time.
//!
//! Only the authority can measure the margin: how long before a step ran its input had arrived. Its reports
//! adjust the member's lead by running steps slightly faster or slower. Overwatch and Rocket League do the
//! same (T. Ford, *Overwatch Gameplay Architecture and Netcode*, GDC 2017; J. Cone, *It IS Rocket Science*,
//! GDC 2018). The change is 5% for each missing step and 5% at most, too little to be visible.
//!
//! A lost input is repeated in the next message, one step later. The lead leaves no room for losses not yet
//! seen: each step of lead means that this member acts on state one step older.

use crate::limits::{
    DILATION_PER_MILLE_MAX, LEAD_GAIN_PER_MILLE_MAX, LEAD_HOLD, LEAD_MAX, LEAD_RISE_MAX, LEAD_STALL,
    MARGIN_WANTED, MARGIN_WANTED_MAX, MARGIN_WINDOW, STEPS_LED_MAX,
};
use core::time::Duration;
use parlor_proto::text::Millis;
use parlor_proto::{Instant, Tick, TickRate};
use std::collections::VecDeque;

/// Unit of the dilation: parts per million.
const PPM: i64 = 1_000_000;
/// Too long a lead costs little, too short a lead is visible: steps slow down by this part of the gain.
const GAIN_SLOWER_PART: i64 = 5;

/// How a [`Lead`] follows the authority's reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeadTuning {
    /// How long before its step the slowest input shall arrive: 0 to 250 ms. Default: 20 ms. More makes fewer inputs
    /// late, and lets the member act on older state.
    pub margin: Duration,
    /// Speed-up for each step that the lead is too short, in thousandths: 5 to 200. Default: 50. Slow-downs are a fifth
    /// of it.
    pub gain_per_mille: u16,
    /// Largest change of the step rate, in thousandths: 5 to 250. Default: 50, which is not visible.
    pub dilation_per_mille: u16,
}

impl Default for LeadTuning {
    fn default() -> Self {
        LeadTuning { margin: MARGIN_WANTED, gain_per_mille: 50, dilation_per_mille: 50 }
    }
}

impl LeadTuning {
    /// Checks that every field is within its range.
    ///
    /// # Errors
    /// A text for a person that names the field and its range.
    pub fn check(&self) -> Result<(), String> {
        let LeadTuning { margin, gain_per_mille, dilation_per_mille } = *self;
        if margin > MARGIN_WANTED_MAX {
            let (margin, most) = (Millis(margin), Millis(MARGIN_WANTED_MAX));
            return Err(format!("the lead's margin is {margin}; it may be 0 to {most}"));
        }
        let parts = [
            ("gain_per_mille", gain_per_mille, LEAD_GAIN_PER_MILLE_MAX),
            ("dilation_per_mille", dilation_per_mille, DILATION_PER_MILLE_MAX),
        ];
        match parts.iter().find(|(_, part, most)| !(5..=*most).contains(part)) {
            Some((name, part, most)) => Err(format!("the lead's {name} is {part}; it may be 5 to {most}")),
            None => Ok(()),
        }
    }
}

/// The clock of a member's steps: room time plus a lead that follows the authority's reports.
///
/// It never runs backwards. It jumps only where play is not smooth anyway: at the start, with the first
/// report, and after a stall of more than [`LEAD_STALL`].
#[derive(Clone, Debug)]
pub struct Lead {
    tuning: LeadTuning,
    rate: TickRate,
    /// The newest room time passed in.
    at: Instant,
    lead_us: i64,
    target_us: i64,
    dilation_ppm: i64,
    is_settled: bool,
    /// The longest lead that recent reports asked for.
    longest: Greatest,
    /// The lead with which each recent step was run, by ascending tick.
    led: VecDeque<(Tick, i64)>,
    jumps: u64,
}

/// The maximum of the numbers within the last [`LEAD_HOLD`].
#[derive(Clone, Debug, Default)]
struct Greatest {
    /// Numbers with their arrival times, in descending order, so the first is the maximum.
    kept: VecDeque<(Instant, i64)>,
}

impl Greatest {
    /// Adds a number that arrived at `at` and returns the maximum.
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
    /// Starts with a guess at `room_time`: half of the round trip to the hub, plus one step. Jitter is not
    /// known yet; the first report corrects the guess.
    pub fn new(rate: TickRate, room_time: Instant, round_trip: Duration) -> Self {
        let mut lead = Lead {
            tuning: LeadTuning::default(),
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

    /// The same with another tuning.
    #[must_use]
    pub fn tuned(self, tuning: LeadTuning) -> Self {
        Lead { tuning, ..self }
    }

    /// Advances to `room_time`. Returns whether the clock jumped, in which case the steps in between are
    /// skipped.
    pub fn advance(&mut self, room_time: Instant) -> bool {
        let before = self.time(self.at);
        let passed = room_time.saturating_since(self.at);
        let is_set_back = self.at.saturating_since(room_time) > LEAD_STALL;
        if passed > LEAD_STALL || is_set_back {
            // Room time was set back. The caller that counts steps waits for those already run ahead of it.
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
        let [gain_ppm, most_ppm] = [self.tuning.gain_per_mille, self.tuning.dilation_per_mille]
            .map(|per_mille| i64::from(per_mille) * PPM / 1_000);
        let gain_ppm = if error_us > 0 { gain_ppm } else { gain_ppm / GAIN_SLOWER_PART };
        let wanted_ppm = error_us.saturating_mul(gain_ppm) / self.interval_us();
        self.dilation_ppm = wanted_ppm.clamp(-most_ppm, most_ppm);
        let change_us = micros(passed) * self.dilation_ppm / PPM;
        self.lead_us += change_us.clamp(-error_us.abs(), error_us.abs());
        false
    }

    /// Records that the step `tick` was run for the first time.
    pub fn ran(&mut self, tick: Tick) {
        if self.led.len() == STEPS_LED_MAX {
            self.led.pop_front();
        }
        self.led.push_back((tick, self.lead_us));
    }

    /// Takes a report as of `tick`: the smallest margin of the last half second, in ms. Returns whether the
    /// clock jumped ahead, skipping the steps in between; only the first report can do that. A report about
    /// steps not run with this lead is ignored.
    pub fn report(&mut self, tick: Tick, margin_ms: i16) -> bool {
        let margin_us = i64::from(margin_ms) * 1_000;
        let Some(lead_us) = self.least_lead(tick, margin_us) else { return false };
        let needed_us = lead_us + micros(self.tuning.margin) - margin_us;
        let is_first = !std::mem::replace(&mut self.is_settled, true);
        // A network outage that delayed inputs must not raise the lead of every later step.
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

    /// Returns the smallest lead of the steps that a report as of `tick` covers. A late input is noticed on
    /// arrival, so its step is older by the lateness. `None` if no covered step was run with this lead.
    fn least_lead(&self, tick: Tick, margin_us: i64) -> Option<i64> {
        let back_us = micros(MARGIN_WINDOW) + (-margin_us).max(0);
        let window = i32::try_from(back_us / self.interval_us() + 1).unwrap_or(i32::MAX);
        let of_report = |of: Tick| (0..=window).contains(&tick.since(of));
        self.led.iter().filter(|(of, _)| of_report(*of)).map(|(_, lead_us)| *lead_us).min()
    }

    /// Returns the time by which steps are run, at `room_time`.
    pub fn time(&self, room_time: Instant) -> Instant {
        let lead = Duration::from_micros(u64::try_from(self.lead_us).unwrap_or(0));
        self.at.max(room_time) + lead
    }

    /// Returns how far ahead of room time the steps run.
    pub fn lead(&self) -> Duration {
        Duration::from_micros(u64::try_from(self.lead_us).unwrap_or(0))
    }

    /// Returns the current speed relative to room time: 0.95 to 1.05 by default.
    pub fn dilation(&self) -> f64 {
        let ppm = i32::try_from(PPM + self.dilation_ppm).unwrap_or(i32::MAX);
        f64::from(ppm) / 1_000_000.0
    }

    /// Returns how often the clock jumped.
    pub fn jumps(&self) -> u64 {
        self.jumps
    }

    fn within_bounds(&self, lead_us: i64) -> i64 {
        let least = self.interval_us();
        lead_us.clamp(least, micros(LEAD_MAX).max(least))
    }

    /// Returns the length of a step in µs, at least 1.
    fn interval_us(&self) -> i64 {
        1_000_000 / i64::from(self.rate.hz())
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests;
