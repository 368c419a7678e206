//! The clock that steps are run by: the room's time, plus the lead if enabled.

use crate::info::Diagnostics;
use crate::options::Options;
use parlor_proto::{Instant, Tick, TickRate};
use parlor_sync::inputs::Report;
use parlor_sync::lead::{Lead, LeadTuning};
use parlor_sync::limits::SIMULATION_DELAY_TICKS_MAX;
use parlor_sync::replicator::Latencies;
use std::time::Duration;

/// How this process keeps pace with the room.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// `None` at the host, without [`Options::lead`], and until the room's clock was measured.
    lead: Option<Lead>,
    /// Delay of the host's steps behind the room's time.
    delay: Duration,
    /// The host's last report on this member's inputs.
    report: Option<Report>,
    /// Delay of state from the host's step to here.
    down: Latencies,
    /// Delay of inputs from here to the host.
    up: Latencies,
}

impl Pace {
    /// Converts a moment of room time to the clock of the steps.
    pub(crate) fn time(&self, room_time: Instant) -> Instant {
        self.lead.as_ref().map_or(room_time - self.delay, |lead| lead.time(room_time))
    }

    /// The pace of a host, which may run its steps behind the room's time.
    pub(crate) fn of_host(options: &Options, rate: TickRate) -> Self {
        let ticks = options.simulation_delay_ticks.min(SIMULATION_DELAY_TICKS_MAX);
        Pace { delay: rate.interval() * ticks, ..Pace::default() }
    }

    /// Whether steps are run ahead of the room's time.
    pub(crate) fn has_lead(&self) -> bool {
        self.lead.is_some()
    }

    /// Speed of the steps relative to the room's time.
    pub(crate) fn dilation(&self) -> f64 {
        self.lead.as_ref().map_or(1.0, Lead::dilation)
    }

    /// Starts the lead, initially from half a round trip.
    pub(crate) fn lead_from(
        &mut self,
        tuning: LeadTuning,
        room_time: Instant,
        rate: TickRate,
        round_trip: Duration,
    ) {
        self.lead = Some(Lead::new(rate, room_time, round_trip).tuned(tuning));
    }

    /// Advances the lead. Returns whether the steps jumped ahead.
    pub(crate) fn advance(&mut self, room_time: Instant) -> bool {
        self.lead.as_mut().is_some_and(|lead| lead.advance(room_time))
    }

    /// Applies a new report of the host on this member's inputs. Returns whether the steps jumped ahead.
    pub(crate) fn reported(&mut self, report: Report) -> Option<bool> {
        if self.report == Some(report) {
            return None;
        }
        self.report = Some(report);
        // The input was sent one lead before its step and arrived one margin before it.
        let lead_ms = self.lead.as_ref().map_or(0, |lead| lead.lead().as_millis());
        let on_the_way_ms =
            i64::try_from(lead_ms).unwrap_or(i64::MAX).saturating_sub(report.margin_ms.into());
        let on_the_way = Duration::from_millis(u64::try_from(on_the_way_ms).unwrap_or(0));
        self.up.arrived(Instant::ZERO, Instant::ZERO + on_the_way);
        Some(self.lead.as_mut().is_some_and(|lead| lead.report(report.tick, report.margin_ms)))
    }

    /// Notes the first run of a step.
    pub(crate) fn ran(&mut self, tick: Tick) {
        if let Some(lead) = &mut self.lead {
            lead.ran(tick);
        }
    }

    /// Notes the arrival of the state of a step that began at `begun`, both in room time.
    pub(crate) fn state_arrived(&mut self, begun: Instant, room_time: Instant) {
        self.down.arrived(begun, room_time);
    }

    pub(crate) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        diagnostics.latency_down = self.down.latency();
        diagnostics.latency_up = self.up.latency();
        diagnostics.lead_ms = self.lead.as_ref().map_or(0.0, |lead| lead.lead().as_secs_f64() * 1_000.0);
        diagnostics.dilation = self.dilation();
        diagnostics.input_margin_ms = self.report.map(|report| report.margin_ms);
    }
}
