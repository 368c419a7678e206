//! The authority's buffer of one member's inputs.

use super::actions::{Acted, Numbers, split};
use super::{Input, View};
use crate::limits::{
    ACTIONS_PENDING_MAX, INPUT_AHEAD_TICKS, INPUT_BEHIND_TICKS, INPUT_MARGIN_MS_MAX, INPUTS_KEPT_TICKS,
    INPUTS_SENT_MAX, MARGIN_STEP_MS, MARGIN_TOLD_EVERY, MARGIN_WINDOW,
};
use crate::value::DecodeError;
use bytes::Bytes;
use core::ops::AddAssign;
use core::time::Duration;
use parlor_proto::limits::INPUT_BYTES_MAX;
use parlor_proto::wire::cursor::{ReadError, Reader};
use parlor_proto::{Instant, Tick, TickRate};
use std::collections::VecDeque;
use thiserror::Error;

/// When a message arrived, in room time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The room time of the arrival.
    pub at: Instant,
    /// The step due at that moment, whether or not the authority has run it.
    pub tick: Tick,
}

/// An input message is invalid. Its sender is at fault, and the whole message is ignored.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum InputError {
    /// It is truncated, or has trailing bytes.
    #[error("a message of inputs cannot be read: {0}")]
    Malformed(#[from] ReadError),
    /// It has no inputs, or more than allowed.
    #[error("a message of {0} inputs: 1 to {INPUTS_SENT_MAX} are allowed")]
    Count(u8),
    /// The first of its inputs repeats the one before it, which does not exist.
    #[error("the first input of a message repeats another one")]
    NothingToRepeat,
    /// An input is not a valid value.
    #[error("an input cannot be read: {0}")]
    Value(#[from] DecodeError),
}

/// Counters of a member's inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Accepted inputs, including late ones.
    pub taken: u64,
    /// Inputs that arrived after their step was run: an older one was used instead.
    pub late: u64,
    /// Steps that were run without their input while the member was sending: it was late or lost.
    pub missing: u64,
    /// Inputs for a step that already had one: repetitions against loss, and abuse.
    pub repeated: u64,
    /// Inputs for steps too long past, ignored.
    pub ancient: u64,
    /// Inputs for steps too far ahead, ignored.
    pub far_ahead: u64,
    /// Invalid messages.
    pub unreadable: u64,
    /// Predicted actions that were dropped, because more waited than a member may have undecided.
    pub actions_dropped: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.taken += other.taken;
        self.late += other.late;
        self.missing += other.missing;
        self.repeated += other.repeated;
        self.ancient += other.ancient;
        self.far_ahead += other.far_ahead;
        self.unreadable += other.unreadable;
        self.actions_dropped += other.actions_dropped;
    }
}

/// The authority's report to a member about its inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The newest step whose input was used.
    pub tick: Tick,
    /// The smallest margin of the last half second: how long before its step was run an input arrived. −500
    /// to 500 ms, negative for a late input.
    pub margin_ms: i16,
    /// The number of late inputs, modulo 256.
    pub late: u8,
}

/// When the authority ran its last steps.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    /// Ascending by tick and by time.
    runs: VecDeque<(Tick, Instant)>,
}

impl Runs {
    /// Records that a step begins, at a moment of room time. Ignored unless it is newer than those before it.
    pub fn ran(&mut self, tick: Tick, at: Instant) {
        if self.runs.back().is_some_and(|(newest, _)| !tick.is_newer_than(*newest)) {
            return;
        }
        if self.runs.len() == INPUTS_KEPT_TICKS as usize {
            self.runs.pop_front();
        }
        self.runs.push_back((tick, at));
    }

    /// Returns when a step began; for a skipped step, when the next one did. `None` if it was not run yet.
    fn passed(&self, tick: Tick) -> Option<Instant> {
        let before = self.runs.partition_point(|(run, _)| tick.is_newer_than(*run));
        self.runs.get(before).map(|(_, at)| *at)
    }
}

/// The inputs of one member, at most one for each step.
///
/// It keeps those of the last [`INPUTS_KEPT_TICKS`] steps and of the next [`INPUT_AHEAD_TICKS`], and the
/// newest one before them, which is used until another arrives.
#[derive(Clone, Debug)]
pub struct InputBuffer {
    rate: TickRate,
    /// By ascending tick.
    held: VecDeque<Held>,
    /// Margins in µs with the time at which each was measured. Ascending, so the first is the minimum of the
    /// window.
    margins: VecDeque<(Instant, i64)>,
    told: Option<Told>,
    counters: Counters,
    /// Actions to decide, each with the tick of the input that brought it, by ascending tick.
    actions: VecDeque<(Tick, Acted)>,
    numbers: Numbers,
}

#[derive(Clone, Debug)]
struct Held {
    input: Input,
    arrived: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    margin_ms: i16,
    late: u8,
}

impl InputBuffer {
    /// Creates an empty buffer for a room with this tick rate.
    pub fn new(rate: TickRate) -> Self {
        InputBuffer {
            rate,
            held: VecDeque::new(),
            margins: VecDeque::new(),
            told: None,
            counters: Counters::default(),
            actions: VecDeque::new(),
            numbers: Numbers::default(),
        }
    }

    /// Takes in a message. Returns the oldest step that was run already and for which it brought the input,
    /// if there is one: from there on the simulation used an outdated input.
    ///
    /// # Errors
    /// [`InputError`]; the message is ignored then, and counted.
    pub fn take(
        &mut self,
        message: Bytes,
        arrival: Arrival,
        runs: &Runs,
    ) -> Result<Option<Tick>, InputError> {
        let inputs = read(message).inspect_err(|_| self.counters.unreadable += 1)?;
        let mut late = None;
        // Newest first: the last late one is the oldest.
        for (input, actions) in inputs {
            let (tick, taken) = (input.tick, self.counters.taken);
            if self.put(input, arrival, runs) {
                late = Some(tick);
            }
            if self.counters.taken > taken {
                self.put_actions(tick, actions);
            }
        }
        self.forget_before(arrival.tick.offset(-INPUTS_KEPT_TICKS.cast_signed()));
        Ok(late)
    }

    /// Stores an input. Returns whether it was late.
    fn put(&mut self, input: Input, arrival: Arrival, runs: &Runs) -> bool {
        let ahead = input.tick.since(arrival.tick);
        if ahead > INPUT_AHEAD_TICKS.cast_signed() {
            self.counters.far_ahead += 1;
            return false;
        }
        let at = self.held.partition_point(|held| input.tick.is_newer_than(held.input.tick));
        if self.held.get(at).is_some_and(|held| held.input.tick == input.tick) {
            self.counters.repeated += 1;
            return false;
        }
        // At a high tick rate the transit takes many steps, and the newest input counts even without lead.
        if ahead < -INPUT_BEHIND_TICKS.max(u32::from(self.rate.hz())).cast_signed() {
            self.counters.ancient += 1;
            return false;
        }
        let passed = runs.passed(input.tick);
        self.held.insert(at, Held { input, arrived: arrival.at });
        self.counters.taken += 1;
        if let Some(ran) = passed {
            self.counters.late += 1;
            self.note_margin(arrival.at, -micros(arrival.at.saturating_since(ran)));
        }
        passed.is_some()
    }

    /// Queues the actions of an input, each number once.
    fn put_actions(&mut self, tick: Tick, actions: Vec<Acted>) {
        for acted in actions {
            if self.actions.len() == ACTIONS_PENDING_MAX {
                self.counters.actions_dropped += 1;
            } else if self.numbers.take(acted.number) {
                let at = self.actions.partition_point(|(other, _)| !other.is_newer_than(tick));
                self.actions.insert(at, (tick, acted));
            }
        }
    }

    /// Takes the next action of an input up to the step `tick`, with the tick of its input.
    pub fn next_action(&mut self, tick: Tick) -> Option<(Tick, Acted)> {
        let is_due = self.actions.front().is_some_and(|(of, _)| !of.is_newer_than(tick));
        if is_due { self.actions.pop_front() } else { None }
    }

    /// Records that the authority begins the step `tick` at `now` of room time, for the first time.
    pub fn ran(&mut self, tick: Tick, now: Instant) {
        match self.exactly(tick).map(|held| held.arrived) {
            Some(arrived) => self.note_margin(now, micros(now.saturating_since(arrived))),
            // A member that has stopped sending is not missing inputs.
            None => {
                let newest = self.held.back().map(|held| tick.since(held.input.tick));
                let is_sending = newest.is_some_and(|behind| behind <= INPUT_BEHIND_TICKS.cast_signed());
                self.counters.missing += u64::from(is_sending && self.at(tick).is_some());
            }
        }
    }

    /// Returns the input for the step `tick`: that of the newest step up to it.
    pub fn at(&self, tick: Tick) -> Option<&Input> {
        let after = self.held.partition_point(|held| !held.input.tick.is_newer_than(tick));
        Some(&self.held.get(after.checked_sub(1)?)?.input)
    }

    /// Returns the report for the member; `used` is the newest step whose input was used. Margin and count
    /// are updated when the margin changed by [`MARGIN_STEP_MS`], or every [`MARGIN_TOLD_EVERY`] if one of
    /// them changed. In between, a member whose inputs are not used costs nothing.
    pub fn report(&mut self, used: Tick, now: Instant) -> Report {
        let margin_ms = self.margin_ms(now);
        let is_due = self.told.is_none_or(|told| {
            let margin_ms = margin_ms.unwrap_or(told.margin_ms);
            now.saturating_since(told.at) >= MARGIN_TOLD_EVERY
                || margin_ms.abs_diff(told.margin_ms) >= MARGIN_STEP_MS
        });
        if is_due {
            let margin_ms = margin_ms.or(self.told.map(|told| told.margin_ms)).unwrap_or(0);
            let late = (self.counters.late & 0xff) as u8;
            self.told = Some(Told { at: now, margin_ms, late });
        }
        let (margin_ms, late) = self.told.map_or((0, 0), |told| (told.margin_ms, told.late));
        Report { tick: used, margin_ms, late }
    }

    /// Returns the smallest margin of the last half second in ms; `None` if no input arrived.
    fn margin_ms(&mut self, now: Instant) -> Option<i16> {
        while self.margins.front().is_some_and(|(at, _)| now.saturating_since(*at) > MARGIN_WINDOW) {
            self.margins.pop_front();
        }
        let max = i64::from(INPUT_MARGIN_MS_MAX);
        let (_, least_us) = self.margins.front()?;
        i16::try_from(least_us.div_euclid(1_000).clamp(-max, max)).ok()
    }

    fn note_margin(&mut self, at: Instant, margin_us: i64) {
        while self.margins.back().is_some_and(|(_, known_us)| *known_us >= margin_us) {
            self.margins.pop_back();
        }
        self.margins.push_back((at, margin_us));
        // Larger ones are replaced by a newer, smaller one, so their number is bounded by the steps run in
        // the window.
        while self.margins.front().is_some_and(|(first, _)| at.saturating_since(*first) > MARGIN_WINDOW) {
            self.margins.pop_front();
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of stored inputs.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Whether no input is stored.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    fn exactly(&self, tick: Tick) -> Option<&Held> {
        let at = self.held.partition_point(|held| tick.is_newer_than(held.input.tick));
        self.held.get(at).filter(|held| held.input.tick == tick)
    }

    /// Drops inputs older than `tick`, except the newest of them.
    fn forget_before(&mut self, tick: Tick) {
        while self.held.get(1).is_some_and(|second| !second.input.tick.is_newer_than(tick)) {
            self.held.pop_front();
        }
    }
}

/// Reads the inputs of a message, newest first, each with the actions of its step.
fn read(message: Bytes) -> Result<Vec<(Input, Vec<Acted>)>, InputError> {
    let mut reader = Reader::new(message);
    let (newest, count) = (Tick(reader.u32()?), reader.u8()?);
    if count == 0 || usize::from(count) > INPUTS_SENT_MAX {
        return Err(InputError::Count(count));
    }
    let mut inputs: Vec<(Input, Vec<Acted>)> = Vec::with_capacity(usize::from(count));
    for back in 0..i32::from(count) {
        let view = View::from_wire(reader.u16()?);
        let encoded = reader.bytes_max("input", INPUT_BYTES_MAX)?;
        let (encoded, actions) = if encoded.is_empty() {
            inputs
                .last()
                .map(|(before, acts)| (before.encoded.clone(), acts.clone()))
                .ok_or(InputError::NothingToRepeat)?
        } else {
            split(encoded)?
        };
        inputs.push((Input { tick: newest.offset(-back), view, encoded }, actions));
    }
    reader.finish()?;
    Ok(inputs)
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
