//! Dead reckoning: decides when a state must be sent.

use super::motion::numbers_of;
use super::template::Template;
use crate::schema::{Kind, RowWriter};
use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{Tick, TickRate};

/// Tracks what others extrapolate from the last sent state, and detects when that is too far off.
#[derive(Clone, Debug)]
pub(super) struct Reckoner {
    template: Template,
    rate: TickRate,
    /// The last sent state; `None` before the first.
    sent: Option<Row>,
    /// Its numbers.
    sent_numbers: Vec<f64>,
    /// For each field of the game, since when others see a wrong value.
    differs_since: Vec<Option<Tick>>,
    /// The last step looked at, and its numbers.
    seen: Option<Tick>,
    seen_numbers: Vec<f64>,
    /// The rates of all numbers, as a row.
    rates: Vec<f64>,
    numbers: Vec<f64>,
    expected: Vec<f64>,
}

#[derive(Clone, Debug)]
struct Row {
    tick: Tick,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

impl Reckoner {
    pub(super) fn new(template: Template, rate: TickRate) -> Self {
        let form = template.form();
        let (fields, numbers) = (form.game_fields(), form.component().numbers());
        Reckoner {
            template,
            rate,
            sent: None,
            sent_numbers: Vec::new(),
            differs_since: vec![None; fields],
            seen: None,
            seen_numbers: Vec::new(),
            rates: vec![0.0; numbers],
            numbers: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Takes in the state at `tick`, without the added fields. Returns whether it is discontinuous: it was
    /// `put` there, or it jumped.
    pub(super) fn look(&mut self, tick: Tick, lanes: &[i32], blobs: &[Bytes], put: bool) -> bool {
        let form = self.template.form();
        numbers_of(form.component(), lanes, blobs, &mut self.numbers);
        let mut is_cut = false;
        if let Some(seen) = self.seen.replace(tick) {
            let motion = form.motion();
            is_cut = put
                || (0..form.game_fields()).any(|field| {
                    let jump = self.template.tolerance(field).jump;
                    jump > 0.0 && motion.deviation(field, &self.numbers, &self.seen_numbers).off_by > jump
                });
            if !is_cut {
                let gap_s = seconds(tick.since(seen), self.rate);
                motion.measure(&self.seen_numbers, &self.numbers, gap_s, &mut self.rates);
            }
        }
        self.seen_numbers.clone_from(&self.numbers);
        is_cut
    }

    /// Whether the state [looked at](Self::look) last must be sent.
    pub(super) fn is_due(&mut self, tick: Tick, lanes: &[i32], blobs: &[Bytes]) -> bool {
        let Some(sent) = &self.sent else { return true };
        let form = self.template.form();
        let gap = tick.since(sent.tick);
        form.motion().extrapolate(&self.sent_numbers, seconds(gap, self.rate), &mut self.expected);
        let game = ..form.game_lanes();
        let is_other = lanes[game] != sent.lanes[game] || *blobs != *sent.blobs;
        let mut is_due = is_other && gap >= ticks(self.template.longest_interval(), self.rate);
        for (field, since) in self.differs_since.iter_mut().enumerate() {
            let tolerance = self.template.tolerance(field);
            let blob = form.component().field_blob(field);
            let leapt = blob.is_some_and(|blob| blobs[blob] != sent.blobs[blob]);
            let off = form.motion().deviation(field, &self.numbers, &self.expected);
            if !off.is_real && !leapt {
                *since = None;
                continue;
            }
            let late_by = Some(tolerance.late_by).filter(|late_by| !late_by.is_zero());
            let waited = tick.since(*since.get_or_insert(tick));
            let is_late = late_by.is_some_and(|late_by| waited >= ticks(late_by, self.rate));
            let may_wait = late_by.is_some() && (leapt || off.leapt);
            let is_off = leapt || off.off_by > tolerance.off_by || off.turned_by > tolerance.turned_by;
            is_due |= is_late || (is_off && !may_wait);
        }
        is_due
    }

    /// Writes the rates into their fields.
    pub(super) fn write_rates(&self, lanes: &mut [i32], blobs: &mut [Bytes]) {
        let form = self.template.form();
        let component = form.component();
        let mut row = RowWriter::new(component, lanes, blobs);
        for (index, field) in component.fields().iter().enumerate().skip(form.game_fields()) {
            let rates = self.rates.get(component.field_numbers(index)).unwrap_or_default();
            match (&field.kind, rates) {
                (Kind::Float { .. }, [x]) => row.set(index, x),
                (Kind::Vector { .. }, [x, y]) => row.set(index, &[*x, *y]),
                (Kind::Vector { .. }, [x, y, z]) => row.set(index, &[*x, *y, *z]),
                _ => {}
            }
        }
        row.finish().expect("rates are finite: they are differences of quantized numbers");
    }

    /// Records the state sent at `tick`.
    pub(super) fn sent(&mut self, tick: Tick, lanes: &[i32], blobs: &[Bytes]) {
        numbers_of(self.template.form().component(), lanes, blobs, &mut self.sent_numbers);
        self.differs_since.fill(None);
        self.sent = Some(Row { tick, lanes: lanes.to_vec(), blobs: blobs.to_vec() });
    }
}

fn seconds(ticks: i32, rate: TickRate) -> f64 {
    f64::from(ticks) / f64::from(rate.hz())
}

/// Converts a time to steps, rounded up; at least one.
fn ticks(time: Duration, rate: TickRate) -> i32 {
    let steps = time.as_micros().saturating_mul(u128::from(rate.hz())).div_ceil(1_000_000);
    i32::try_from(steps).unwrap_or(i32::MAX).max(1)
}
