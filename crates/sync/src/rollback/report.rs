//! Events and diagnostics of a session.

use parlor_proto::Tick;

/// Number of recorded corrections.
pub(super) const CORRECTIONS: usize = 16;

/// Events for the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Two ends have different states although all inputs before were the same. The game is not
    /// deterministic, or a player cheats.
    Desync {
        /// The player whose state differs from this end's; `None` in a sync test, whose own states differ.
        player: Option<u8>,
        /// The first tick before which the states differed.
        tick: Tick,
        /// Whether they are known to be equal one tick before. If not, checksums of ticks in between are
        /// missing.
        is_exact: bool,
    },
    /// This end lacks inputs that the arbiter does not have: it was away for longer than the arbiter's history,
    /// or began the session again that long after its first step. It cannot continue. Begin another session at
    /// all ends, from the settled state of one that goes on.
    Lost {
        /// The oldest tick that the arbiter has.
        oldest: Tick,
    },
}

/// A rollback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// The first replayed step.
    pub tick: Tick,
    /// Replayed steps.
    pub steps: u32,
}

/// Counters of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    /// The next step.
    pub next: Tick,
    /// All ticks before this one are settled.
    pub settled: Tick,
    /// Steps run for the first time.
    pub steps: u64,
    /// Replayed steps.
    pub replayed: u64,
    /// Rollbacks.
    pub rollbacks: u64,
    /// Most steps of one rollback.
    pub deepest: u32,
    /// Ticks with a due step that could not be run because the window was full.
    pub stalled: u64,
    /// Inputs of this end that were late.
    pub missed: u64,
    /// Late inputs of all players.
    pub missed_by_all: u64,
    /// Rejected inputs: too far ahead.
    pub refused: u64,
    /// Ignored messages: malformed, of another session, or not allowed from their sender.
    pub ignored: u64,
    /// Ends whose states diverged.
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
