//! Payloads that members exchange and the hub does not read, and the names in them.
//!
//! ```text
//!  typed message   kind: text · value, to the end
//! ```

use crate::error::RoomError;
use bytes::Bytes;
use parlor_proto::session::Message;
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_proto::{ApiMisuse, ChannelId, channel, limits};
use parlor_sync::value::{Value, to_value};
use serde::Serialize;

/// Encodes a typed message without its envelope, however long it is. Also returns the bytes that it counts as.
///
/// # Errors
/// [`RoomError`] if the kind is empty or too long, or the message cannot be encoded.
pub(crate) fn encode_typed<T: Serialize + ?Sized>(
    kind: &str,
    message: &T,
) -> Result<(Bytes, usize), RoomError> {
    check_name("the kind of a message", kind).map_err(ApiMisuse::Bounds)?;
    let value = to_value(message)?.encode(usize::MAX)?;
    let mut out = Vec::with_capacity(kind.len() + value.len() + 2);
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

/// Decodes a typed message without its envelope into kind and value. Returns `None` if it is malformed.
pub fn decode_typed(payload: Bytes) -> Option<(String, Value)> {
    let mut reader = Reader::new(payload);
    let kind = reader.str_max("kind", limits::LABEL_BYTES_MAX).ok()?;
    Some((kind, Value::decode(reader.rest()).ok()?))
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
