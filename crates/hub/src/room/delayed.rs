//! The delayed copy of a room: the same room, opened later, for spectators who shall see it later than its players.
//!
//! The copy takes what its room took, as late as it opened later, so its time, its ticks and its messages are those of
//! the room at that time. The room's members are in it without a connection: it makes nothing for them. Its spectators
//! are its own, with ids that no member of the room has.

use super::members::Members;
use super::{Input, Room, Setup, SetupError};
use bytes::Bytes;
use parlor_proto::{MemberId, channel};

impl Room {
    /// Creates the delayed copy of a room. `setup` is the room's, with the copy's own id and time of opening. The copy
    /// takes the [`copied`](Input::copied) inputs of its room, and its spectators.
    ///
    /// # Errors
    /// [`SetupError`] as of [`new`](Self::new).
    pub fn delayed_copy(setup: Setup) -> Result<Self, SetupError> {
        Ok(Room { is_copy: true, members: Members::of_copy(), keeping: None, ..Room::new(setup)? })
    }

    /// Whether a member is sent anything here.
    pub(super) fn sends_to(&self, member: MemberId) -> bool {
        !self.is_copy || self.spectates(member)
    }
}

impl Input {
    /// Returns the input as the delayed copy of a room takes it. `None` if it concerns only how members receive, or
    /// only the authority. Copies a message, so that it does not keep the whole packet that it came in.
    pub fn copied(&self) -> Option<Input> {
        match self {
            Input::Fate { .. }
            | Input::Writable { .. }
            | Input::Path { .. }
            | Input::Reachable { .. }
            | Input::Flush
            | Input::Message { channel: channel::INPUT | channel::ACTIONS, .. } => None,
            Input::Message { from, channel, key, payload, epoch } => {
                let payload = Bytes::copy_from_slice(payload);
                Some(Input::Message { from: *from, channel: *channel, key: *key, payload, epoch: *epoch })
            }
            other => Some(other.clone()),
        }
    }

    /// Returns about how much memory a waiting input takes, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let message = if let Input::Message { payload, .. } = self { payload.len() } else { 0 };
        size_of::<Input>() + message
    }
}
