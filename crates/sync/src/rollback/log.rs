//! The arbiter's log of settled ticks, for returning ends and spectators.

use super::input::Input;
use parlor_proto::Tick;

/// The last settled ticks.
#[derive(Debug)]
pub(super) struct Log {
    players: usize,
    missed: Vec<u8>,
    inputs: Vec<Input>,
    begin: Tick,
    end: Tick,
}

impl Log {
    pub(super) fn new(players: usize, ticks: u32, begin: Tick) -> Self {
        let ticks = ticks as usize;
        Log {
            players,
            missed: vec![0; ticks],
            inputs: vec![Input::EMPTY; ticks * players],
            begin,
            end: begin,
        }
    }

    fn index(&self, tick: Tick) -> usize {
        tick.0 as usize % self.missed.len()
    }

    /// The oldest tick in the log.
    pub(super) fn oldest(&self) -> Tick {
        let ticks = i32::try_from(self.missed.len()).unwrap_or(i32::MAX);
        let first = self.end.offset(-ticks);
        if first.is_newer_than(self.begin) { first } else { self.begin }
    }

    /// Adds the next tick.
    pub(super) fn push(&mut self, missed: u8, inputs: impl Iterator<Item = Input>) {
        let index = self.index(self.end);
        self.missed[index] = missed;
        let first = index * self.players;
        for (slot, input) in self.inputs[first..first + self.players].iter_mut().zip(inputs) {
            *slot = input;
        }
        self.end = self.end.next();
    }

    /// Returns which players missed a tick, one bit each, and the inputs of all.
    pub(super) fn get(&self, tick: Tick) -> Option<(u8, &[Input])> {
        let is_there = tick.since(self.oldest()) >= 0 && self.end.is_newer_than(tick);
        is_there.then(|| {
            let index = self.index(tick);
            let first = index * self.players;
            (self.missed[index], &self.inputs[first..first + self.players])
        })
    }
}
