//! The figures of one link, and the project's aims that they miss.

use super::link::Quality;
use super::play::Played;
use super::watch::{Seat, Shots};
use crate::tally::{percent, percentile};
use anyhow::Context;
use parlor_client_core::RoomCore;
use serde::Serialize;

/// What the library counted at one seat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) corrections: u64,
    pub(super) snaps: u64,
    pub(super) steps_replayed: u64,
    /// Of all members, at the host.
    pub(super) inputs_late: u64,
    /// Of all members, at the host; those that came late included.
    pub(super) inputs_missing: u64,
    pub(super) lead_ms: f64,
}

impl Counted {
    /// What is counted now.
    pub(super) fn of(room: &RoomCore) -> Counted {
        let counted = room.diagnostics();
        Counted {
            corrections: counted.prediction.corrections,
            snaps: counted.prediction.snaps,
            steps_replayed: counted.steps_replayed,
            inputs_late: counted.inputs_late,
            inputs_missing: counted.inputs_missing,
            lead_ms: counted.lead_ms,
        }
    }

    /// What was counted since `before`.
    pub(super) fn since(self, before: Counted) -> Counted {
        Counted {
            corrections: self.corrections - before.corrections,
            snaps: self.snaps - before.snaps,
            steps_replayed: self.steps_replayed - before.steps_replayed,
            inputs_late: self.inputs_late - before.inputs_late,
            inputs_missing: self.inputs_missing - before.inputs_missing,
            lead_ms: self.lead_ms,
        }
    }
}

/// The figures of one link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) rtt_ms: u32,
    pub(super) quality: Quality,
    pub(super) jitter_ms: u32,
    pub(super) loss_percent: f64,
    /// How many ticks after an order a member's own tank obeyed, at worst.
    pub(super) own_input_latency_ticks_max: Option<u32>,
    /// Orders that changed in a second, at the member whose orders changed less often.
    pub(super) order_changes_per_second: f64,
    /// Steps of the undisturbed member in which its tank was what the host said later, of all.
    pub(super) foreseen_percent: Option<f64>,
    /// The same without a second after each step for which the host had not the order.
    pub(super) foreseen_undisturbed_percent: Option<f64>,
    pub(super) steps: u64,
    /// Steps of both members for which the host had another order than the member gave.
    pub(super) steps_without_order: u64,
    /// Inputs that came after their step, of both members.
    pub(super) inputs_late: u64,
    /// Inputs that never came, of both members.
    pub(super) inputs_aged_out: u64,
    /// Corrections of the undisturbed member.
    pub(super) corrections_calm: u64,
    /// Pushes of the other one, and its corrections.
    pub(super) pushes: u64,
    pub(super) corrections_pushed: u64,
    pub(super) steps_replayed: u64,
    pub(super) snaps: u64,
    /// Shots that the host counted, of both members, and how many of them were shown once, again, or never.
    pub(super) shots: u64,
    pub(super) shots_shown_once: u64,
    pub(super) shots_shown_again: u64,
    pub(super) shots_never_shown: u64,
    /// Shots shown that the host never counted.
    pub(super) shots_made_up: u64,
    /// Shots that hit for shooter or host and whose view is within reach; those of which both say the same.
    pub(super) hits: u64,
    pub(super) hits_agreed_percent: Option<f64>,
    /// How far from the edge of a target the worst of the others passed, in metres.
    pub(super) hits_disputed_margin_m_max: Option<f32>,
    /// Shots whose view is farther back than can be gone.
    pub(super) shots_beyond_rewind: u64,
    pub(super) pictures: u64,
    pub(super) pictures_even_percent: Option<f64>,
    pub(super) pictures_frozen: u64,
    pub(super) pictures_backward: u64,
    pub(super) render_delay_ms_p95: f64,
    /// What it may be: the interval of updates and twice the p95 of the jitter.
    pub(super) render_delay_ms_aim: f64,
    /// The longer one of both members at the end.
    pub(super) lead_ms: f64,
    /// From a second after joining on.
    pub(super) clock_error_ms_max: f64,
    /// A number for the whole run: the same seed has the same.
    pub(super) trace: String,
    /// Names of the figures that miss an aim of the project.
    pub(super) misses: Vec<&'static str>,
}

impl Figures {
    /// What comes of a run of `span_us`.
    ///
    /// # Errors
    /// If there is nothing to measure in it.
    pub(super) fn of(
        played: &Played,
        rtt_ms: u32,
        quality: Quality,
        span_us: u64,
    ) -> anyhow::Result<Figures> {
        let host = &played.host;
        let [calm, pushed] = [&played.members[0], &played.members[1]];
        let seats =
            [calm, pushed].map(|member| Seat { member: member.id, tank: member.tank, log: &member.log });
        let [foresight, other] = seats.each_ref().map(|seat| seat.foresight(host));
        let mut shots = Shots::default();
        seats.iter().for_each(|seat| shots.add(seat, host));
        let counted = [calm.counted, pushed.counted];
        let drones = [&calm.log.drones, &pushed.log.drones];
        let sum = |of: fn(&super::watch::Drones) -> u64| drones.into_iter().map(of).sum::<u64>();
        let (pictures, frozen, backward) =
            (sum(|it| it.pictures), sum(|it| it.frozen), sum(|it| it.backward));
        let mut delays_us: Vec<u32> =
            seats.iter().flat_map(|seat| seat.log.delays_us.iter().copied()).collect();
        let delay_us = percentile(&mut delays_us, 95).context("nothing was drawn")?;
        let changes = seats.iter().map(Seat::order_changes).min().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "a few hundred changes in minutes")]
        let order_changes_per_second = changes as f64 * 1e6 / span_us as f64;
        let mut figures = Figures {
            rtt_ms,
            quality,
            jitter_ms: quality.jitter_ms(),
            loss_percent: f64::from(quality.loss_per_mille()) / 10.0,
            own_input_latency_ticks_max: seats.iter().filter_map(Seat::latency_ticks_max).max(),
            order_changes_per_second,
            foreseen_percent: percent(foresight.right, foresight.steps),
            foreseen_undisturbed_percent: percent(foresight.undisturbed_right, foresight.undisturbed),
            steps: foresight.steps,
            steps_without_order: foresight.without_order + other.without_order,
            inputs_late: played.counted.inputs_late,
            inputs_aged_out: played.counted.inputs_missing.saturating_sub(played.counted.inputs_late),
            corrections_calm: calm.counted.corrections,
            pushes: played.pushes,
            corrections_pushed: pushed.counted.corrections,
            steps_replayed: counted.iter().map(|it| it.steps_replayed).sum(),
            snaps: counted.iter().map(|it| it.snaps).sum(),
            shots: shots.fired,
            shots_shown_once: shots.fired.saturating_sub(shots.never + shots.again),
            shots_shown_again: shots.again,
            shots_never_shown: shots.never,
            shots_made_up: shots.made_up,
            hits: shots.hits,
            hits_agreed_percent: percent(shots.agreed, shots.hits),
            hits_disputed_margin_m_max: shots.disputed_margin_m_max,
            shots_beyond_rewind: shots.beyond,
            pictures,
            pictures_even_percent: percent(pictures - frozen - backward, pictures),
            pictures_frozen: frozen,
            pictures_backward: backward,
            render_delay_ms_p95: f64::from(delay_us) / 1e3,
            render_delay_ms_aim: 1e3 / f64::from(parlor_demos::arena::HZ) + 2.0 * quality.jitter_ms_p95(),
            lead_ms: counted.iter().map(|it| it.lead_ms).fold(0.0, f64::max),
            clock_error_ms_max: calm.log.clock_error_max.max(pushed.log.clock_error_max).as_secs_f64() * 1e3,
            trace: format!("{:016x}", played.trace),
            misses: Vec::new(),
        };
        figures.misses = figures.find_misses();
        Ok(figures)
    }

    fn find_misses(&self) -> Vec<&'static str> {
        let at_least = |value: Option<f64>, least: f64| value.is_some_and(|value| value >= least);
        let is_shown = self.shots > 0 && self.shots_shown_once == self.shots && self.shots_made_up == 0;
        // Each order that came too late may need a correction as well as each push.
        let corrections = self.corrections_calm + self.corrections_pushed;
        let expected = self.pushes..=self.pushes + self.steps_without_order.max(self.inputs_late);
        let aims = [
            ("own input", self.own_input_latency_ticks_max == Some(0)),
            ("foreseen", at_least(self.foreseen_undisturbed_percent, 100.0)),
            ("corrections", expected.contains(&corrections)),
            ("inputs aged out", self.inputs_aged_out == 0),
            ("shown once", is_shown),
            // Where all shots lie farther back than can be gone there is nothing to agree on.
            ("hits", self.hits == 0 || at_least(self.hits_agreed_percent, 99.0)),
            ("even pictures", at_least(self.pictures_even_percent, 99.5)),
            ("render delay", self.render_delay_ms_p95 <= self.render_delay_ms_aim),
        ];
        aims.into_iter().filter(|(_, is_met)| !is_met).map(|(name, _)| name).collect()
    }
}
