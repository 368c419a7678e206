//! The input of one player for one step, of a fixed size in memory.

use crate::limits::ROLLBACK_INPUT_BYTES_MAX;

/// The input of one player for one step: up to [`ROLLBACK_INPUT_BYTES_MAX`] bytes of the game's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    len: u8,
    /// Zero beyond the length, so that equal inputs are equal bit for bit.
    bytes: [u8; ROLLBACK_INPUT_BYTES_MAX],
}

impl Input {
    /// No bytes: what a player has pressed before its first input.
    pub const EMPTY: Input = Input { len: 0, bytes: [0; ROLLBACK_INPUT_BYTES_MAX] };

    /// These bytes; `None` if they are too many.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut input = Input::EMPTY;
        input.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        input.len = u8::try_from(bytes.len()).ok()?;
        Some(input)
    }

    /// The game's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// How sure an input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputStatus {
    /// The player pressed it.
    Known,
    /// The predictor's guess; what the player pressed is still under way.
    Predicted,
    /// It did not come in time: the predictor's guess stands for it, for everybody and for good.
    Missed,
}

/// What one player does in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerInput {
    /// What is to be used.
    pub input: Input,
    /// How sure it is.
    pub status: InputStatus,
}

impl PlayerInput {
    pub(super) const NONE: PlayerInput = PlayerInput { input: Input::EMPTY, status: InputStatus::Predicted };

    /// The game's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.input.bytes()
    }
}
