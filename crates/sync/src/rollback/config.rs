//! What the ends of a rollback session agree on, and what each may choose.

use super::input::Input;
use crate::limits::{
    ROLLBACK_DELAY_MAX, ROLLBACK_HISTORY_TICKS, ROLLBACK_INPUT_BYTES_MAX, ROLLBACK_PLAYERS_MAX,
    ROLLBACK_WINDOW_MAX,
};
use parlor_proto::Tick;
use thiserror::Error;

/// Guesses an input: from the newest one of the player that is known, and how many ticks ago that was (1 or
/// more). It must depend on nothing else, and all ends must use the same: what it says is also what stands
/// for an input that was missed.
pub type Predictor = fn(last: &Input, age_ticks: u32) -> Input;

/// The newest input goes on: right for held keys, which is what players do most of the time.
pub fn repeat_last(last: &Input, _age_ticks: u32) -> Input {
    *last
}

/// Nothing is pressed: for games whose inputs are single events.
pub fn no_input(_last: &Input, _age_ticks: u32) -> Input {
    Input::EMPTY
}

/// What an end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This player.
    Player(u8),
    /// It watches what is settled, this many ticks behind.
    Spectator {
        /// Ticks behind the room.
        delay: u32,
    },
    /// It decides and plays no part itself: a dedicated host.
    Arbiter,
    /// All players, and every step is run again so many ticks later: a test of the game, without a network.
    SyncTest {
        /// Ticks that are run again with each step, 1 to the window.
        distance: u32,
    },
}

/// A rollback session. `session`, `players`, `arbiter`, `begin`, `window` and `predictor` must be the same at
/// all ends.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Tells one session in a room from the one before; what bears another number is ignored. Default 0.
    pub session: u16,
    /// Players, 2 to [`ROLLBACK_PLAYERS_MAX`]; in a sync-test 1 is enough.
    pub players: u8,
    /// Which player settles ticks; `None` if it is none of them.
    pub arbiter: Option<u8>,
    /// What this end is.
    pub role: Role,
    /// The first step.
    pub begin: Tick,
    /// From an input to the step that uses it, in ticks, 0 to [`ROLLBACK_DELAY_MAX`]. Each end may choose its
    /// own. Default 2: 33 ms at 60 Hz are not felt, and hide the way of a good connection, so that nothing
    /// has to be run again.
    pub input_delay: u32,
    /// Steps that are run ahead of what is settled, 1 to [`ROLLBACK_WINDOW_MAX`], and so the most that a
    /// rollback runs again. Default 24, 400 ms at 60 Hz: half of it for an input's way to the arbiter, half
    /// for the way back of its settling; that is 100 ms each with jitter and a loss.
    pub window: u32,
    /// How long the arbiter waits for an input that is half a window late, in ticks. Default 8: with half of
    /// the window it is 333 ms at 60 Hz, and the rest hides it from the others. A player that wears it out
    /// earns it back with inputs that come in time.
    pub patience: u32,
    /// Settled ticks that the arbiter remembers for those who come back or watch, up to
    /// [`ROLLBACK_HISTORY_TICKS`]. Default all.
    pub history: u32,
    /// How missing inputs are guessed. Default [`repeat_last`].
    pub predictor: Predictor,
}

impl Config {
    /// A player of a session with the first player as its arbiter, and the defaults.
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

    /// All players in one process, and `distance` steps are run again with each.
    pub fn sync_test(players: u8, begin: Tick, distance: u32) -> Self {
        Config {
            role: Role::SyncTest { distance },
            input_delay: 0,
            history: 1,
            ..Config::new(players, 0, begin)
        }
    }

    /// Whether every value is within its bounds.
    ///
    /// # Errors
    /// [`RollbackError::Bounds`] with the value that is not.
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

    pub(super) fn count(&self) -> usize {
        usize::from(self.players)
    }

    /// Which player this end is; in a sync-test it is all.
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

/// Why a session was not made, or an input not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RollbackError {
    /// A value is out of its bounds.
    #[error("{what} may be {min} to {max}, and is {is}")]
    Bounds {
        /// Which.
        what: &'static str,
        /// What it is.
        is: u32,
        /// Least.
        min: u32,
        /// Most.
        max: u32,
    },
    /// It would settle ticks beside a player that does.
    #[error("a player is the arbiter already: leave `arbiter` empty for one that does not play")]
    TwoArbiters,
    /// Only this end's own players have inputs here.
    #[error("player {0} is not of this end: its inputs come over the network")]
    NotMine(u8),
    /// The input is too large.
    #[error("an input has {0} bytes; it may have {ROLLBACK_INPUT_BYTES_MAX}")]
    TooLarge(usize),
}
