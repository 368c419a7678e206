//! Another member's state at any moment.

use super::latency::{Latencies, Latency};
use super::motion::numbers_of;
use super::template::{Form, State};
use crate::limits::HISTORY_DEPTH_MAX;
use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{Instant, TickRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// The time in which a remaining error decays to 1/e.
const BLEND: Duration = Duration::from_millis(100);

/// Another member's state, from irregular samples.
///
/// Between two samples it is extrapolated, because its sender sends a new one as soon as that is too far off;
/// within the last step it moves to the newer sample. Beyond the newest it is extrapolated for at most
/// [`EXTRAPOLATION_MAX`](super::EXTRAPOLATION_MAX). If a new sample shows an error, the error is blended out
/// gradually, except after a teleport.
#[derive(Clone, Debug)]
pub struct RemoteState {
    form: Arc<Form>,
    /// Length of a step.
    step: Duration,
    /// Oldest first.
    samples: VecDeque<Sample>,
    /// The latest moment that was read with [`state_at`](Self::state_at).
    read: Option<Instant>,
    error: Option<Error>,
    latencies: Latencies,
}

#[derive(Clone, Debug)]
struct Sample {
    at: Instant,
    numbers: Vec<f64>,
    blobs: Vec<Bytes>,
    cut: i32,
    /// Whether it follows continuously from the sample before.
    follows: bool,
}

/// The difference between the state shown and the true one.
#[derive(Clone, Debug)]
struct Error {
    offset: Vec<f64>,
    /// When the difference was recorded.
    since: Instant,
    /// When it becomes zero: the time of a later teleport.
    until: Option<Instant>,
}

impl RemoteState {
    /// Creates a remote state without samples.
    pub fn new(form: Arc<Form>, rate: TickRate) -> Self {
        RemoteState {
            form,
            step: rate.interval(),
            samples: VecDeque::new(),
            read: None,
            error: None,
            latencies: Latencies::default(),
        }
    }

    /// Returns the form of the states.
    pub fn form(&self) -> &Arc<Form> {
        &self.form
    }

    /// Adds a sample of the step that began at `at`, which arrived at `arrived`, both in room time. Returns
    /// whether it is newer than all before. If not, or if it does not match the form, it is ignored.
    pub fn observe(&mut self, at: Instant, lanes: &[i32], blobs: &[Bytes], arrived: Instant) -> bool {
        let component = self.form.component();
        let is_row = component.lanes() == lanes.len() && component.blobs() == blobs.len();
        if !is_row || self.samples.back().is_some_and(|newest| at <= newest.at) {
            return false;
        }
        self.latencies.arrived(at, arrived);
        let mut numbers = Vec::with_capacity(component.numbers());
        numbers_of(component, lanes, blobs, &mut numbers);
        let cut = lanes[self.form.cut_lane()];
        let follows = self.samples.back().is_some_and(|newest| newest.cut == cut);
        let sample = Sample { at, numbers, blobs: blobs.to_vec(), cut, follows };
        let shown = self.read.and_then(|read| Some((read, self.shown_at(read)?)));
        if self.samples.len() == HISTORY_DEPTH_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if let Some((read, shown)) = shown {
            self.note_error(read, &shown.numbers, (!follows).then_some(at));
        }
        true
    }

    /// Returns the state at `at` of room time for display, with errors blended out; `None` before the first
    /// sample. Before the first sample's step it is the first sample.
    ///
    /// Call it in chronological order, once for each frame: errors are blended from the last moment read.
    pub fn state_at(&mut self, at: Instant) -> Option<State> {
        let shown = self.shown_at(at);
        self.read = Some(self.read.map_or(at, |read| read.max(at)));
        shown
    }

    /// Returns the state at `at` of room time from the samples alone, without blending: for game logic.
    pub fn raw_at(&self, at: Instant) -> Option<State> {
        let next = self.samples.partition_point(|sample| sample.at <= at);
        let Some(older) = next.checked_sub(1).and_then(|index| self.samples.get(index)) else {
            let first = self.samples.front()?;
            return Some(self.state(first.numbers.clone(), first));
        };
        let motion = self.form.motion();
        let mut numbers = Vec::new();
        match self.samples.get(next).filter(|newer| newer.follows) {
            Some(newer) => {
                // Up to the step before the newer sample, the sender knew that the extrapolation was right.
                let turn = (newer.at - self.step).max(older.at);
                motion.extrapolate(&older.numbers, seconds(older.at, at.min(turn)), &mut numbers);
                if at > turn {
                    let t = seconds(turn, at) / seconds(turn, newer.at);
                    motion.mix(&mut numbers, &newer.numbers, t, &mut Vec::new());
                }
            }
            None => motion.extrapolate(&older.numbers, seconds(older.at, at), &mut numbers),
        }
        Some(self.state(numbers, older))
    }

    /// The step of the newest sample, in room time.
    pub fn newest(&self) -> Option<Instant> {
        self.samples.back().map(|newest| newest.at)
    }

    /// Returns the latency of the states; `None` before the first.
    pub fn latency(&self) -> Option<Latency> {
        self.latencies.latency()
    }

    fn state(&self, numbers: Vec<f64>, sample: &Sample) -> State {
        State { form: Arc::clone(&self.form), numbers, blobs: sample.blobs.clone() }
    }

    /// The state with the remaining error.
    fn shown_at(&self, at: Instant) -> Option<State> {
        let mut state = self.raw_at(at)?;
        if let Some(error) = &self.error
            && at >= error.since
            && error.until.is_none_or(|until| at < until)
        {
            let weight = (-seconds(error.since, at) / BLEND.as_secs_f64()).exp();
            self.form.motion().put(&mut state.numbers, &error.offset, weight);
        }
        Some(state)
    }

    /// Records the error, so that `shown` continues at `read`. From `cut` on, the sample counts instead.
    fn note_error(&mut self, read: Instant, shown: &[f64], cut: Option<Instant>) {
        let before = self.error.take().and_then(|error| error.until).filter(|until| *until > read);
        let until = before.into_iter().chain(cut).min();
        if until.is_some_and(|until| until <= read) {
            return;
        }
        if let Some(right) = self.raw_at(read) {
            let mut offset = Vec::new();
            self.form.motion().offset(shown, &right.numbers, &mut offset);
            self.error = Some(Error { offset, since: read, until });
        }
    }
}

/// Seconds from one instant to a later one.
fn seconds(from: Instant, to: Instant) -> f64 {
    to.saturating_since(from).as_secs_f64()
}
