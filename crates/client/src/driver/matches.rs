//! What players of a match say to each other.

use super::room::Room;
use crate::core::RoomError;
use bytes::Bytes;
use parlor_proto::wire::envelope::To;

/// Data of a match, which [`Room::create_match`] opens: a number that says what it is, and bytes. What the numbers mean is the game's
/// own affair.
///
/// ```no_run
/// use parlor::{Event, Room, To};
/// const MOVED: i64 = 1;
/// const SHOT: i64 = 2;
///
/// let mut room = Room::create_match("duels").name("ada").open();
/// loop {
///     while let Some(event) = room.poll() {
///         match event {
///             Event::Open { code } => println!("the id of the match is {code}"),
///             Event::PlayerJoined(player) if !player.is_me => {
///                 room.send_data(MOVED, To::Member(player.id), b"4,2".as_slice())?;
///             }
///             Event::Data { from, op: SHOT, data, .. } => println!("{from} shoots: {} bytes", data.len()),
///             Event::Closed(why) => return Err(why.into()),
///             _ => {}
///         }
///     }
///     room.broadcast_data(SHOT, b"at 7,1".as_slice())?;
///     std::thread::sleep(room.until_next_tick());
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Room {
    /// Sends data to all other players of a match; it arrives, and all who get it have the same order of all data
    /// ([`Event::Data`](crate::Event::Data)).
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or no match, or the data has more than 64 KiB.
    pub fn broadcast_data(&mut self, op: i64, bytes: impl Into<Bytes>) -> Result<(), RoomError> {
        self.send_data(op, To::Others, bytes)
    }

    /// Sends data to some players of a match, or to all; it arrives, in the same order for all who get it.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or no match, there is no such player, or the data has more than 64 KiB.
    pub fn send_data(&mut self, op: i64, to: To, bytes: impl Into<Bytes>) -> Result<(), RoomError> {
        self.with(|core, _| core.send_data(op, to, bytes.into(), true))
    }

    /// Sends data that may be lost, such as where something is that moves on anyway.
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data).
    pub fn send_data_unreliable(
        &mut self,
        op: i64,
        to: To,
        bytes: impl Into<Bytes>,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.send_data(op, to, bytes.into(), false))
    }
}
