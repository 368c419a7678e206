//! A room's part in a pair of a room and its delayed copy, and what waits between the two.

use crate::room;
use parlor_proto::{Instant, RoomId};
use std::collections::VecDeque;
use std::time::Duration;

/// The part of a room in a pair.
#[derive(Debug, Default)]
pub(super) enum Part {
    /// It has no copy: its spectators see it as its players do.
    #[default]
    Alone,
    /// Its spectators are in this copy.
    Watched(RoomId),
    /// It is the copy. Boxed, because few rooms are one.
    Copy(Box<Waiting>),
}

/// What happened in the room and not yet in its copy.
#[derive(Debug)]
pub(super) struct Waiting {
    delay: Duration,
    /// Whether the room has ended.
    pub(super) is_over: bool,
    /// Oldest first, with the time at which the room took it.
    inputs: VecDeque<(Instant, room::Input)>,
    bytes: usize,
    /// Its bytes when the copy's memory was last counted.
    counted_bytes: usize,
}

/// Waiting bytes that may come before the memory of the copy is counted again.
const UNCOUNTED_BYTES_MAX: usize = 16 * 1024;

impl Waiting {
    pub(super) fn new(delay: Duration) -> Self {
        Waiting { delay, is_over: false, inputs: VecDeque::new(), bytes: 0, counted_bytes: 0 }
    }

    pub(super) fn push(&mut self, at: Instant, input: room::Input) {
        self.bytes += Self::bytes_of(&input);
        self.inputs.push_back((at, input));
    }

    /// Takes the next input, if it is due.
    pub(super) fn take(&mut self, now: Instant) -> Option<room::Input> {
        let (_, input) = self.inputs.pop_front_if(|(at, _)| *at + self.delay <= now)?;
        self.bytes -= Self::bytes_of(&input);
        Some(input)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.inputs.front().map(|(at, _)| *at + self.delay)
    }

    pub(super) fn delay(&self) -> Duration {
        self.delay
    }

    /// Whether much more waits than when it was counted.
    pub(super) fn has_grown(&self) -> bool {
        self.bytes > self.counted_bytes + UNCOUNTED_BYTES_MAX
    }

    fn bytes_of(input: &room::Input) -> usize {
        size_of::<Instant>() + input.memory_bytes()
    }

    /// Returns its bytes, and takes them as counted.
    pub(super) fn count(&mut self) -> usize {
        self.counted_bytes = self.bytes;
        self.bytes
    }
}
