//! Payloads that members exchange and the hub does not read.
//!
//! ```text
//!  typed message   kind: text · value, to the end
//! ```

use bytes::Bytes;
use parlor_proto::session::Message;
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_proto::{ChannelId, channel, limits};
use parlor_sync::value::Value;

/// Encodes a typed message, without its envelope.
pub(crate) fn encode_typed(kind: &str, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(kind.len() + value.len() + 2);
    out.put_str(kind);
    out.put(value);
    out.into()
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
