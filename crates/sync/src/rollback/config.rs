//! Configuration of a rollback session: what all ends share, and what each may choose.

use super::input::Input;
use crate::limits::{
    ROLLBACK_DELAY_MAX, ROLLBACK_HISTORY_TICKS, ROLLBACK_INPUT_BYTES_MAX, ROLLBACK_PLAYERS_MAX,
    ROLLBACK_WINDOW_MAX,
};
use parlor_proto::Tick;
use thiserror::Error;

/// Predicts an input from the player's newest known one and its age in ticks (1 or more). It must depend on
/// nothing else, and must be the same at all ends: its result also replaces a missed input.
pub type Predictor = fn(last: &Input, age_ticks: u32) -> Input;

/// Repeats the newest input: right for held keys, the most common case.
pub fn repeat_last(last: &Input, _age_ticks: u32) -> Input {
    *last
}

/// Predicts no input: for games whose inputs are single events.
pub fn no_input(_last: &Input, _age_ticks: u32) -> Input {
    Input::EMPTY
}

/// The role of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The player with this number.
    Player(u8),
    /// Watches settled ticks with this delay.
    Spectator {
        /// The delay in ticks.
        delay: u32,
    },
    /// Settles ticks without playing: a dedicated host.
    Arbiter,
    /// All players in one process, with every step run again later: a test of the game, without a network.
    SyncTest {
        /// Ticks that are run again with each step: 1 to the window.
        distance: u32,
    },
}

/// Configuration of a rollback session. `session`, `players`, `arbiter`, `begin`, `window` and `predictor`
/// must be the same at all ends.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Distinguishes consecutive sessions in a room: messages with another number are ignored. Default: 0.
    pub session: u16,
    /// Number of players: 2 to [`ROLLBACK_PLAYERS_MAX`]; in a sync test at least 1.
    pub players: u8,
    /// The player that settles ticks; `None` for an arbiter that does not play.
    pub arbiter: Option<u8>,
    /// The role of this end.
    pub role: Role,
    /// The first step.
    pub begin: Tick,
    /// Ticks from an input to the step that uses it: 0 to [`ROLLBACK_DELAY_MAX`]. Each end may choose its
    /// own. Default: 2. 33 ms at 60 Hz are not noticeable, and cover the latency of a good connection, so
    /// that no rollback is needed.
    pub input_delay: u32,
    /// Maximum steps ahead of the settled tick, 1 to [`ROLLBACK_WINDOW_MAX`], and so the longest rollback.
    /// Default: 24, or 400 ms at 60 Hz. One half is for an input's way to the arbiter, the other for the
    /// settled tick's way back. Each covers 100 ms with jitter and one loss.
    pub window: u32,
    /// How long the arbiter waits for an input that is late by half a window, in ticks. Default: 8. With half
    /// of the window that is 333 ms at 60 Hz, and the rest hides it from the others. A player that uses it up
    /// earns it back with inputs that are in time.
    pub patience: u32,
    /// Settled ticks that the arbiter keeps for returning ends and spectators, up to
    /// [`ROLLBACK_HISTORY_TICKS`], the default.
    pub history: u32,
    /// Predicts missing inputs. Default: [`repeat_last`].
    pub predictor: Predictor,
}

/// By how many ticks the clock of a player's second process may be behind that of the first.
const CLOCK_TICKS: i32 = 8;

impl Config {
    /// Configures a player of a session in which the first player is the arbiter, with the defaults.
    pub fn new(players: u8, me: u8, begin: Tick) -> Self {
        Config {
            session: 0,
            players,
            arbiter: Some(0),
            role: Role::Player(me),
            begin,
            input_delay: 2,
            window: 24,
            patience: 8,
            history: ROLLBACK_HISTORY_TICKS,
            predictor: repeat_last,
        }
    }

    /// Configures a sync test: all players in one process, `distance` steps run again with each.
    pub fn sync_test(players: u8, begin: Tick, distance: u32) -> Self {
        Config {
            role: Role::SyncTest { distance },
            input_delay: 0,
            history: 1,
            ..Config::new(players, 0, begin)
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    /// [`RollbackError::Bounds`] for a value out of range.
    pub fn check(&self) -> Result<(), RollbackError> {
        let least = if matches!(self.role, Role::SyncTest { .. }) { 1 } else { 2 };
        let most = u32::try_from(ROLLBACK_PLAYERS_MAX).expect("they are few");
        bounds("players", u32::from(self.players), least, most)?;
        bounds("the window", self.window, 1, ROLLBACK_WINDOW_MAX)?;
        bounds("the input delay", self.input_delay, 0, ROLLBACK_DELAY_MAX)?;
        bounds("the history", self.history, 1, ROLLBACK_HISTORY_TICKS)?;
        bounds("the patience", self.patience, 0, ROLLBACK_HISTORY_TICKS)?;
        let last = u32::from(self.players) - 1;
        if let Some(arbiter) = self.arbiter {
            bounds("the arbiter's number", u32::from(arbiter), 0, last)?;
        }
        match self.role {
            Role::Player(me) => bounds("the player's number", u32::from(me), 0, last),
            Role::SyncTest { distance } => bounds("the distance", distance, 1, self.window),
            Role::Spectator { delay } => bounds("the delay", delay, 0, self.history),
            Role::Arbiter if self.arbiter.is_some() => Err(RollbackError::TwoArbiters),
            Role::Arbiter => Ok(()),
        }
    }

    pub(super) fn is_arbiter(&self) -> bool {
        match self.role {
            Role::Player(me) => self.arbiter == Some(me),
            Role::Arbiter | Role::SyncTest { .. } => true,
            Role::Spectator { .. } => false,
        }
    }

    /// The first tick for which this end says its own inputs, if its first step is called at `target`. Who begins
    /// later than the arbiter waits for anybody may be a player's second process: what the first one sent is for
    /// the arbiter to say. What it did not send is missed. Otherwise this end would settle inputs that no other has.
    pub(super) fn own_from(&self, target: Tick) -> Tick {
        let late = target.since(self.begin).min(self.history.cast_signed());
        let is_late = late >= self.window.cast_signed();
        if !is_late || self.is_arbiter() {
            return self.begin;
        }
        self.begin.offset(late + self.input_delay.cast_signed() + CLOCK_TICKS)
    }

    pub(super) fn count(&self) -> usize {
        usize::from(self.players)
    }

    /// The player at this end; `None` in a sync test, which has all.
    pub(super) fn me(&self) -> Option<u8> {
        match self.role {
            Role::Player(me) => Some(me),
            _ => None,
        }
    }
}

fn bounds(what: &'static str, is: u32, min: u32, max: u32) -> Result<(), RollbackError> {
    if (min..=max).contains(&is) { Ok(()) } else { Err(RollbackError::Bounds { what, is, min, max }) }
}

/// Why a session was not created, or an input not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RollbackError {
    /// A value is out of range.
    #[error("{what} may be {min} to {max}, and is {is}")]
    Bounds {
        /// The name of the value.
        what: &'static str,
        /// The value.
        is: u32,
        /// The minimum.
        min: u32,
        /// The maximum.
        max: u32,
    },
    /// The session would have a second arbiter.
    #[error("a player is the arbiter already: leave `arbiter` empty for one that does not play")]
    TwoArbiters,
    /// Inputs can be added only for this end's own players.
    #[error("player {0} is not of this end: its inputs come over the network")]
    NotMine(u8),
    /// The input is too large.
    #[error("an input has {0} bytes; it may have {ROLLBACK_INPUT_BYTES_MAX}")]
    TooLarge(usize),
}
