//! A member's record of its own inputs, and the messages that send them.

use super::{Input, View};
use crate::limits::{INPUTS_RECORDED_MAX, INPUTS_SENT_MAX};
use bytes::Bytes;
use parlor_proto::Tick;
use parlor_proto::limits::INPUT_MESSAGE_BYTES_MAX;
use parlor_proto::wire::cursor::{Write, varint_width};
use std::collections::VecDeque;

/// This process's inputs of the last steps: for sending until the authority has used them, and for replays.
#[derive(Clone, Debug, Default)]
pub struct OwnInputs {
    /// By ascending tick.
    recorded: VecDeque<Recorded>,
    acknowledged: Option<Tick>,
}

#[derive(Clone, Debug)]
struct Recorded {
    input: Input,
    /// The input with the actions of its step; `None` without actions.
    with_actions: Option<Bytes>,
}

impl Recorded {
    /// What is sent for the step `tick`: a later step repeats the input without its actions.
    fn sent_for(&self, tick: Tick) -> &Bytes {
        self.with_actions.as_ref().filter(|_| self.input.tick == tick).unwrap_or(&self.input.encoded)
    }
}

impl OwnInputs {
    /// Creates an empty record.
    pub fn new() -> Self {
        OwnInputs::default()
    }

    /// Records the input of the step `tick`. A second call for the newest step replaces its input. A call for
    /// an earlier step is ignored.
    pub fn record(&mut self, tick: Tick, view: Option<View>, encoded: Bytes) {
        self.record_with_actions(tick, view, encoded, None);
    }

    /// Records the input of the step `tick` as [`record`](Self::record) does, and what is sent in its place:
    /// the input with the [actions](super::encode_with_actions) of the step.
    pub fn record_with_actions(
        &mut self,
        tick: Tick,
        view: Option<View>,
        encoded: Bytes,
        with_actions: Option<Bytes>,
    ) {
        match self.recorded.back().map(|newest| tick.since(newest.input.tick)) {
            Some(0) => drop(self.recorded.pop_back()),
            Some(..0) => return,
            Some(_) | None => {}
        }
        if self.recorded.len() == INPUTS_RECORDED_MAX {
            self.recorded.pop_front();
        }
        self.recorded.push_back(Recorded { input: Input { tick, view, encoded }, with_actions });
    }

    /// Returns the input for the step `tick`: that of the newest recorded step up to it.
    pub fn at(&self, tick: Tick) -> Option<&Input> {
        self.recorded_at(tick).map(|recorded| &recorded.input)
    }

    fn recorded_at(&self, tick: Tick) -> Option<&Recorded> {
        let after = self.recorded.partition_point(|recorded| !recorded.input.tick.is_newer_than(tick));
        self.recorded.get(after.checked_sub(1)?)
    }

    /// Records that the authority has used the input of the step `tick`: neither this nor an older one is
    /// sent again.
    pub fn acknowledge(&mut self, tick: Tick) {
        if self.acknowledged.is_none_or(|known| tick.is_newer_than(known)) {
            self.acknowledged = Some(tick);
        }
    }

    /// Returns the message to send; `None` if nothing was recorded. It has the newest input, and up to
    /// `repeated` unacknowledged ones before it, as far as the message has room: at most [`INPUTS_SENT_MAX`]
    /// in all. A step without a recorded input repeats the one before it.
    pub fn message(&self, repeated: usize) -> Option<Bytes> {
        let newest = &self.recorded.back()?.input;
        let mut out = Vec::with_capacity(64);
        out.put_u32(newest.tick.0);
        out.put_u8(0);
        let mut count: u8 = 0;
        let (mut tick, mut before) = (newest.tick, None);
        while usize::from(count) <= repeated.min(INPUTS_SENT_MAX - 1) {
            let is_due = count == 0 || self.acknowledged.is_none_or(|known| tick.is_newer_than(known));
            let Some(recorded) = self.recorded_at(tick).filter(|_| is_due) else { break };
            let (input, sent) = (&recorded.input, recorded.sent_for(tick));
            let encoded = if before == Some(sent) { &[] } else { &sent[..] };
            let bytes = size_of::<u16>() + varint_width(encoded.len() as u64) + encoded.len();
            if count > 0 && out.len() + bytes > INPUT_MESSAGE_BYTES_MAX {
                break;
            }
            out.put_u16(View::to_wire(input.view.filter(|_| input.tick == tick)));
            out.put_bytes(encoded);
            (tick, before, count) = (tick.offset(-1), Some(sent), count + 1);
        }
        out[size_of::<u32>()] = count;
        Some(out.into())
    }
}
