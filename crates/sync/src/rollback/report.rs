//! What a session tells of itself.

use parlor_proto::Tick;

/// Corrections that are remembered.
pub(super) const CORRECTIONS: usize = 16;

/// A game may like to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Two ends have different states although all inputs before were the same: the game is not
    /// deterministic, or somebody cheats.
    Desync {
        /// Which player's state differs from this end's; `None` in a sync-test, where it differs from this
        /// end's own.
        player: Option<u8>,
        /// The first tick before which the states were different.
        tick: Tick,
        /// Whether it is known that they were equal one tick before; if not, checksums of ticks in between
        /// are missing.
        is_exact: bool,
    },
    /// This end was away for longer than the arbiter remembers: it cannot go on, only begin anew from a state
    /// of another end.
    Lost {
        /// The oldest tick that the arbiter has.
        oldest: Tick,
    },
}

/// A rollback that was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// The first step that was run again.
    pub tick: Tick,
    /// Steps that were run again.
    pub steps: u32,
}

/// What a session counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The step that is next.
    pub next: Tick,
    /// All before this tick is settled.
    pub settled: Tick,
    /// Steps that were run for the first time.
    pub steps: u64,
    /// Steps that were run again.
    pub replayed: u64,
    /// Rollbacks.
    pub rollbacks: u64,
    /// Most steps that one rollback ran again.
    pub deepest: u32,
    /// Ticks at which a step was due and none could be run: the window was full.
    pub stalled: u64,
    /// Inputs of this end that did not come in time.
    pub missed: u64,
    /// Inputs of all players that did not come in time.
    pub missed_by_all: u64,
    /// Inputs that were refused: for ticks too far ahead.
    pub refused: u64,
    /// Messages that were not as laid out, of another session, or of somebody who may not say so.
    pub ignored: u64,
    /// Ends whose states came to differ.
    pub desyncs: u64,
    history: [Correction; CORRECTIONS],
}

impl Diagnostics {
    pub(super) fn corrected(&mut self, tick: Tick, steps: u32) {
        let at = usize::try_from(self.rollbacks % CORRECTIONS as u64).unwrap_or(0);
        self.history[at] = Correction { tick, steps };
        self.rollbacks += 1;
        self.deepest = self.deepest.max(steps);
    }

    /// The last 16 rollbacks, oldest first.
    pub fn corrections(&self) -> impl Iterator<Item = Correction> + '_ {
        let kept = self.rollbacks.min(CORRECTIONS as u64);
        (self.rollbacks - kept..self.rollbacks)
            .map(|number| self.history[usize::try_from(number % CORRECTIONS as u64).unwrap_or(0)])
    }
}
