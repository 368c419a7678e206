//! One player's input for one step, of a fixed size in memory.

use crate::limits::ROLLBACK_INPUT_BYTES_MAX;

/// One player's input for one step: up to [`ROLLBACK_INPUT_BYTES_MAX`] bytes, defined by the game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    len: u8,
    /// Zero beyond the length, so that equal inputs are equal bit for bit.
    bytes: [u8; ROLLBACK_INPUT_BYTES_MAX],
}

impl Input {
    /// The empty input: used before a player's first one.
    pub const EMPTY: Input = Input { len: 0, bytes: [0; ROLLBACK_INPUT_BYTES_MAX] };

    /// Creates an input from bytes; `None` if there are too many.
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

/// Whether an input is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputStatus {
    /// The player's real input.
    Known,
    /// A prediction; the real input has not arrived.
    Predicted,
    /// It did not arrive in time: the prediction replaces it, permanently and at all ends.
    Missed,
}

/// A player's input in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerInput {
    /// The input to use.
    pub input: Input,
    /// Whether it is final.
    pub status: InputStatus,
}

impl PlayerInput {
    pub(super) const NONE: PlayerInput = PlayerInput { input: Input::EMPTY, status: InputStatus::Predicted };

    /// The game's bytes.
    pub fn bytes(&self) -> &[u8] {
        self.input.bytes()
    }
}
