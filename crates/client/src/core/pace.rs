//! The moment that steps are run by: the room's time, or with lead a little ahead of it.

use super::info::Diagnostics;
use super::options::Options;
use super::room::Joined;
use parlor_proto::session::Session;
use parlor_proto::{Instant, Tick, TickRate};
use parlor_sync::inputs::Report;
use parlor_sync::lead::Lead;
use parlor_sync::limits::SIMULATION_DELAY_TICKS_MAX;
use parlor_sync::replicator::Latencies;
use std::time::Duration;

/// How this process keeps pace with the room.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// None at the host, without [`Options::lead`], and until the room's clock was measured.
    lead: Option<Lead>,
    /// How far behind the room's time the host's steps are.
    delay: Duration,
    /// What the host told last of this member's inputs.
    report: Option<Report>,
    /// How long state takes from the host's step to here.
    down: Latencies,
    /// How long inputs take from here to the host.
    up: Latencies,
}

impl Pace {
    /// The moment that steps are run by, at a moment of room time.
    pub(super) fn time(&self, room_time: Instant) -> Instant {
        self.lead.as_ref().map_or(room_time - self.delay, |lead| lead.time(room_time))
    }

    /// That of a host, who may run its steps later than they are due.
    pub(super) fn of_host(options: &Options, rate: TickRate) -> Self {
        let ticks = options.simulation_delay_ticks.min(SIMULATION_DELAY_TICKS_MAX);
        Pace { delay: rate.interval() * ticks, ..Pace::default() }
    }
}

impl Joined {
    /// The moment that this process runs its steps by.
    pub(super) fn simulation_time(&self, now: Instant) -> Instant {
        self.pace.time(self.room_time(now))
    }

    /// Follows the clocks, before it is asked whether a step is due.
    pub(super) fn keep_pace(&mut self, options: &Options, session: &Session, now: Instant) {
        let mut has_jumped = false;
        if let Some(offset_us) = session.clock_offset_us() {
            has_jumped = self.clock.follow(offset_us, now);
            if options.has_lead() && !self.is_host() && self.pace.lead.is_none() {
                let round_trip = session.rtt().unwrap_or_default();
                let room_time = self.room_time(now);
                let rate = self.welcome.tick_rate;
                self.pace.lead = Some(Lead::new(rate, room_time, round_trip));
                has_jumped = true;
            }
        }
        let room_time = self.room_time(now);
        if let Some(lead) = &mut self.pace.lead {
            has_jumped |= lead.advance(room_time);
        }
        has_jumped |= self.hear_report();
        // Without the lead that it needs a step's input would be late, and the host would tell of it when there is one.
        let waits_for_lead = options.has_lead() && !self.is_host() && self.pace.lead.is_none();
        if has_jumped || waits_for_lead {
            self.ticker.begin_at(self.simulation_time(now));
        }
    }

    /// Takes in what the host tells of this member's inputs. Says whether the steps jumped ahead.
    fn hear_report(&mut self) -> bool {
        let Some(report) = self.shared.input_report().filter(|report| self.pace.report != Some(*report))
        else {
            return false;
        };
        self.pace.report = Some(report);
        self.inputs.reported(report);
        // It was sent ahead of its step by the lead, and was there before its step by the margin.
        let lead_ms = self.pace.lead.as_ref().map_or(0, |lead| lead.lead().as_millis());
        let on_the_way_ms =
            i64::try_from(lead_ms).unwrap_or(i64::MAX).saturating_sub(report.margin_ms.into());
        let on_the_way = Duration::from_millis(u64::try_from(on_the_way_ms).unwrap_or(0));
        self.pace.up.arrived(Instant::ZERO, Instant::ZERO + on_the_way);
        self.pace.lead.as_mut().is_some_and(|lead| lead.report(report.tick, report.margin_ms))
    }

    /// A step begins that was not run before.
    pub(super) fn began(&mut self, tick: Tick, now: Instant) {
        let room_time = self.room_time(now);
        // Whatever was written for before: the game is in this step.
        self.label = tick;
        if let Some(lead) = &mut self.pace.lead {
            lead.ran(tick);
        }
        if self.is_host() {
            self.inputs.ran(tick, room_time);
        }
    }

    /// A packet of the host's state arrived, when this process knew of its steps up to `before`.
    pub(super) fn heard_state(&mut self, before: Option<Tick>, arrived: Instant) {
        // What is sent again says nothing of how long the way here takes.
        if let Some(newest) = self.shared.world().tick().filter(|newest| before != Some(*newest)) {
            let room_time = self.room_time(arrived);
            self.pace.down.arrived(self.welcome.tick_rate.begins(newest), room_time);
        }
    }

    pub(super) fn diagnose_pace(&self, diagnostics: &mut Diagnostics) {
        diagnostics.time_synchronized = self.clock.is_synchronized();
        diagnostics.time_variance = self.clock.variance();
        diagnostics.latency_down = self.pace.down.latency();
        diagnostics.latency_up = self.pace.up.latency();
        diagnostics.lead_ms = self.pace.lead.as_ref().map_or(0.0, |lead| lead.lead().as_secs_f64() * 1_000.0);
        diagnostics.dilation = self.pace.lead.as_ref().map_or(1.0, Lead::dilation);
        diagnostics.input_margin_ms = self.pace.report.map(|report| report.margin_ms);
        let counters = self.inputs.counters(self.is_host());
        diagnostics.inputs_late = counters.late;
        diagnostics.inputs_missing = counters.missing;
        diagnostics.inputs_refused = counters.ancient + counters.far_ahead;
    }

    /// The step that is due now for whatever is not simulated: that of the room's time, when steps are run ahead of it.
    pub(super) fn room_tick(&self, now: Instant) -> Tick {
        let room_time = self.room_time(now);
        if self.pace.time(room_time) == room_time {
            self.ticker.label(room_time)
        } else {
            self.welcome.tick_rate.tick_at(room_time)
        }
    }
}
