//! Payloads that members exchange and the hub does not read, and the names in them.
//!
//! ```text
//!  typed message   (0 · event time: varint ms) or nothing · kind: text, not empty · value, to the end
//! ```

use crate::error::RoomError;
use bytes::Bytes;
use parlor_proto::session::Message;
use parlor_proto::wire::cursor::{Reader, VARINT_MAX, Write};
use parlor_proto::{ApiMisuse, ChannelId, Lane, channel, limits};
use parlor_sync::value::{Value, to_value};
use serde::Serialize;
use std::time::Duration;

/// Prefix of kinds that games may not use.
pub(crate) const RESERVED: &str = "parlor.";
/// The kind in which members ask each other how their own states travel.
pub(crate) const FLOW: &str = "parlor.flow";

/// The length of an empty text: no kind is empty, so it says that a time comes first.
const TIMED: u8 = 0;

/// How a typed message is sent.
#[derive(Clone, Copy, Debug)]
pub struct MessageOptions {
    /// Its lane.
    pub lane: Lane,
    /// Whether the hub numbers it among the numbered messages of the room.
    pub stamp: bool,
    /// When what it tells happened, since the room's opening; sent in whole ms. `None` sends no time.
    pub event_time: Option<Duration>,
}

/// A typed message without its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Typed {
    /// Its kind.
    pub kind: String,
    /// What its sender says of when it happened, since the room's opening.
    pub event_time: Option<Duration>,
    /// Its content.
    pub value: Value,
}

/// Encodes a typed message without its envelope, however long it is. Also returns the bytes that it counts as.
///
/// # Errors
/// [`RoomError`] if the kind is empty or too long, or the message cannot be encoded.
pub(crate) fn encode_typed<T: Serialize + ?Sized>(
    kind: &str,
    event_time: Option<Duration>,
    message: &T,
) -> Result<(Bytes, usize), RoomError> {
    check_name("the kind of a message", kind).map_err(ApiMisuse::Bounds)?;
    let value = to_value(message)?.encode(usize::MAX)?;
    let mut out = Vec::with_capacity(kind.len() + value.len() + 12);
    if let Some(time) = event_time {
        out.put_u8(TIMED);
        out.put_varint(u64::try_from(time.as_millis()).unwrap_or(VARINT_MAX).min(VARINT_MAX));
    }
    out.put_str(kind);
    out.put(&value);
    Ok((out.into(), value.len()))
}

/// Checks the length of a name that travels. `what` says of what, for a person.
///
/// # Errors
/// A text for a person.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), String> {
    let (len, max) = (name.len(), limits::LABEL_BYTES_MAX);
    if len == 0 || len > max {
        Err(format!("{what} has {len} bytes; it may have 1 to {max}"))
    } else {
        Ok(())
    }
}

/// Decodes a typed message without its envelope. Returns `None` if it is malformed.
pub fn decode_typed(payload: Bytes) -> Option<Typed> {
    let is_timed = payload.first() == Some(&TIMED);
    let mut reader = Reader::new(payload);
    let mut event_time = None;
    if is_timed {
        reader.u8().ok()?;
        event_time = Some(Duration::from_millis(reader.varint().ok()?));
    }
    let kind = reader.str_max("kind", limits::LABEL_BYTES_MAX).ok().filter(|kind| !kind.is_empty())?;
    Some(Typed { kind, event_time, value: Value::decode(reader.rest()).ok()? })
}

/// Whether a channel carries match data.
pub(crate) fn is_match_data(channel: ChannelId) -> bool {
    matches!(channel, channel::MATCH_DATA | channel::MATCH_DATA_UNRELIABLE)
}

/// Whether a message becomes an event for the game.
pub(crate) fn is_of_game(message: &Message) -> bool {
    let channel = message.channel;
    channel == channel::ACTIONS
        || channel.0 >= limits::APP_CHANNEL_FIRST
        || (channel::MESSAGE_ORDERED.0..=channel::MESSAGE_SEQUENCED.0).contains(&channel.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A time costs its own bytes only, and a message without one has none.
        #[test]
        fn t8_a_message_comes_as_it_was_sent_with_its_time_or_without(
            kind in "[a-zé]{1,20}", ms in proptest::option::of(0..=VARINT_MAX), number in any::<i64>(),
        ) {
            let event_time = ms.map(Duration::from_millis);
            let (bytes, counted) = encode_typed(&kind, event_time, &number).unwrap();
            let (untimed, counted_untimed) = encode_typed(&kind, None, &number).unwrap();
            prop_assert_eq!(counted, counted_untimed);
            prop_assert!(bytes.ends_with(&untimed));
            let value = to_value(&number).unwrap();
            prop_assert_eq!(decode_typed(bytes), Some(Typed { kind, event_time, value }));
        }

        #[test]
        fn any_bytes_are_a_message_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(typed) = decode_typed(bytes.into()) {
                prop_assert!(!typed.kind.is_empty() && typed.kind.len() <= limits::LABEL_BYTES_MAX);
            }
        }
    }
}
