//! Inputs of a room, as a game holds it.

use super::room::Room;
use crate::core::RoomError;
use parlor_proto::MemberId;
use parlor_sync::inputs::Counters as InputCounters;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Inputs.
impl Room {
    /// Says what this player wants in the step that was run last; call it once in each. It is sent until the host has used it.
    /// The host's own goes the same way. In a step that is run again it does nothing: what was recorded counts.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the input has more than 512 bytes.
    pub fn send_input<T: Serialize + ?Sized>(&mut self, input: &T) -> Result<(), RoomError> {
        self.with(|core, _| core.send_input(input))
    }

    /// What a player wants in the step that the game is in: the input for it, or the newest one before it that came; `None`
    /// until the first. The host asks of anybody, a guest of itself alone.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host and the player another one, or the input is not as the type wants it: a hostile player can
    /// send anything.
    pub fn input<T: DeserializeOwned>(&mut self, player: MemberId) -> Result<Option<T>, RoomError> {
        self.with(|core, _| core.input(player))
    }

    /// What all players that sent something want in the step that the game is in, for the host. What cannot be read is left
    /// out.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host.
    pub fn inputs<T: DeserializeOwned>(&mut self) -> Result<Vec<(MemberId, T)>, RoomError> {
        self.with(|core, _| core.inputs())
    }

    /// What was counted of a player's inputs, for the host: taken, late, missing, ignored; `None` if none came.
    #[must_use]
    pub fn input_counters(&self, player: MemberId) -> Option<InputCounters> {
        self.with(|core, _| core.input_counters(player))
    }
}
