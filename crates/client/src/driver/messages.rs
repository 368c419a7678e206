//! Messages, as a game sends them.

use super::room::Room;
use bytes::Bytes;
use parlor_client_core::{MessageOptions, RoomError};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{ApiMisuse, ChannelId, Lane};
use serde::Serialize;
use std::time::Duration;

/// How a message travels. Default: as the room's [`Protocol`](crate::Protocol) has it, which is reliable and in the order of sending
/// unless the game sets another.
///
/// ```no_run
/// use parlor::{Lane, Recipient, SendOptions};
/// # fn say(room: &parlor::Room) -> Result<(), parlor::RoomError> {
/// // May be lost: it is out of date soon.
/// room.send_with(Lane::Unreliable, Recipient::Others, "aim", &0.25)?;
/// // The others learn when it happened, however late they hear of it.
/// room.send_with(SendOptions::default().timed(), Recipient::Others, "horn", "tuut")?;
/// // All players receive both kinds in the same order, which the hub sets.
/// room.send_with(SendOptions::default().numbered(), Recipient::Everyone, "bid", &40)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// `None` for the room's.
    lane: Option<Lane>,
    is_numbered: bool,
    event_time: EventTime,
}

/// The event time that a message carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum EventTime {
    #[default]
    None,
    /// That of the call that sends it.
    Now,
    /// In server time.
    At(Duration),
}

impl SendOptions {
    /// Travels on this lane.
    pub const fn lane(lane: Lane) -> Self {
        SendOptions { lane: Some(lane), is_numbered: false, event_time: EventTime::None }
    }

    /// Carries the time of the call that sends it: the receivers read in
    /// [`Message::event_time`](crate::Message::event_time) when it was sent, however late it arrives. It costs
    /// about 5 bytes, and is sent in whole milliseconds.
    pub const fn timed(self) -> Self {
        SendOptions { event_time: EventTime::Now, ..self }
    }

    /// Carries the time at which the event that it tells happened, in [`Room::server_time`], as
    /// [`timed`](Self::timed) carries that of the call.
    pub const fn happened_at(self, server_time: Duration) -> Self {
        SendOptions { event_time: EventTime::At(server_time), ..self }
    }

    /// All players receive numbered messages of a reliable ordered lane in the same order, whoever sent them:
    /// the hub numbers each ([`Message::order`](crate::Message::order)). Without it, each sender's messages
    /// are in order, and those of two senders may arrive in different orders at different players. Without a
    /// lane it takes the reliable ordered one.
    pub const fn numbered(self) -> Self {
        SendOptions { is_numbered: true, ..self }
    }
}

impl From<Lane> for SendOptions {
    fn from(lane: Lane) -> Self {
        SendOptions::lane(lane)
    }
}

/// Messages.
impl Room {
    /// Sends a typed message, reliable and in the order of sending unless the room's
    /// [`protocol`](super::RoomBuilder::protocol) is another: to a player by its id, or to any [`Recipient`].
    ///
    /// ```no_run
    /// # use parlor::Recipient;
    /// # let room = parlor::Room::join("tanks", "K7QM").open();
    /// # let friend = room.local_id().unwrap();
    /// room.send(friend, "chat", "well played")?;
    /// room.send(Recipient::Authority, "vote", &3)?;
    /// # Ok::<(), parlor::RoomError>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, there is no such player, or the message cannot be written.
    pub fn send<T: Serialize + ?Sized>(
        &self,
        to: impl Into<Recipient>,
        kind: &str,
        message: &T,
    ) -> Result<(), RoomError> {
        self.send_with(SendOptions::default(), to, kind, message)
    }

    /// Sends a typed message with options; a [`Lane`] alone will do.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with<T: Serialize + ?Sized>(
        &self,
        options: impl Into<SendOptions>,
        to: impl Into<Recipient>,
        kind: &str,
        message: &T,
    ) -> Result<(), RoomError> {
        let (SendOptions { lane, is_numbered: stamp, event_time }, to) = (options.into(), to.into());
        self.with(|core, now| {
            let of_room = if stamp { Lane::ReliableOrdered } else { core.protocol().lane() };
            let event_time = match event_time {
                EventTime::None => None,
                EventTime::Now => core.server_time(now),
                EventTime::At(time) => Some(time),
            };
            let options = MessageOptions { lane: lane.unwrap_or(of_room), stamp, event_time };
            core.send_with(&options, to, kind, message, now)
        })
    }

    /// Sends a typed message to all other players, as [`send`](Self::send) does.
    ///
    /// ```no_run
    /// # let room = parlor::Room::join("tanks", "K7QM").open();
    /// room.broadcast("chat", "hello")?;
    /// # Ok::<(), parlor::RoomError>(())
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or the message cannot be written.
    pub fn broadcast<T: Serialize + ?Sized>(&self, kind: &str, message: &T) -> Result<(), RoomError> {
        self.send(Recipient::Others, kind, message)
    }

    /// Sends bytes on a channel of the game, declared by
    /// [`RoomBuilder::channel`](super::RoomBuilder::channel), which has its lane.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, the channel is not declared, or the message is too large.
    pub fn send_raw(
        &self,
        channel: u8,
        to: impl Into<Recipient>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), RoomError> {
        let (to, bytes) = (to.into(), bytes.into());
        self.with(|core, now| core.send_raw(ChannelId(channel), to, bytes, false, now))
    }
}

/// Data of a match, which [`Room::create_match`] opens: a number that says what it is, and bytes. What the
/// numbers mean is the game's own affair.
///
/// ```no_run
/// use parlor::{Event, Room, Recipient};
/// const MOVED: i64 = 1;
/// const SHOT: i64 = 2;
///
/// let mut room = Room::create_match("duels").name("ada").open();
/// loop {
///     while let Some(event) = room.poll() {
///         match event {
///             Event::Open { code } => println!("the id of the match is {code}"),
///             Event::PlayerJoined(player) if !player.is_me => {
///                 room.send_data(MOVED, player.id, b"4,2".as_slice())?;
///             }
///             Event::Data { from, op: SHOT, data, .. } => println!("{from} shoots: {} bytes", data.len()),
///             Event::Closed(why) => return Err(why.into()),
///             _ => {}
///         }
///     }
///     room.send_data(SHOT, Recipient::Others, b"at 7,1".as_slice())?;
///     std::thread::sleep(room.until_next_tick());
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Room {
    /// Sends data to players of a match, reliably. All who get two pieces of data get them in the same order
    /// ([`Event::Data`](crate::Event::Data)).
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open or no match, there is no such player, or the data has more than
    /// 64 KiB.
    pub fn send_data(
        &self,
        op: i64,
        to: impl Into<Recipient>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), RoomError> {
        let (to, bytes) = (to.into(), bytes.into());
        self.with(|core, now| core.send_data(op, to, bytes, true, now))
    }

    /// Sends data with options. Data has two lanes: [`Lane::ReliableOrdered`], which is
    /// [`send_data`](Self::send_data) and always [numbered](SendOptions::numbered), and [`Lane::Unreliable`],
    /// for what is out of date soon: it may be lost and has no number.
    ///
    /// # Errors
    /// As [`send_data`](Self::send_data), and for any other lane or an event time.
    pub fn send_data_with(
        &self,
        options: impl Into<SendOptions>,
        op: i64,
        to: impl Into<Recipient>,
        bytes: impl Into<Bytes>,
    ) -> Result<(), RoomError> {
        match options.into() {
            SendOptions { lane: None | Some(Lane::ReliableOrdered), event_time: EventTime::None, .. } => {
                self.send_data(op, to, bytes)
            }
            SendOptions { lane: Some(Lane::Unreliable), is_numbered: false, event_time: EventTime::None } => {
                let (to, bytes) = (to.into(), bytes.into());
                self.with(|core, now| core.send_data(op, to, bytes, false, now))
            }
            options => {
                let text = format!(
                    "data of a match cannot be sent with {options:?}: use Lane::ReliableOrdered, or Lane::Unreliable without a number, and no event time"
                );
                Err(ApiMisuse::Bounds(text).into())
            }
        }
    }
}
