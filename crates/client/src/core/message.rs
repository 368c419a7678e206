//! The payloads that a room's members exchange and the hub does not read.
//!
//! ```text
//!  typed message   kind: text · value, to the end
//! ```

use bytes::Bytes;
use parlor_proto::limits;
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_sync::value::Value;

/// A typed message as it goes into its envelope.
pub(super) fn encode_typed(kind: &str, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(kind.len() + value.len() + 2);
    out.put_str(kind);
    out.put(value);
    out.into()
}

/// What kind of message a payload on a channel for typed messages is, and what it says; `None` if its sender wrote something
/// else. Its envelope is off already.
#[must_use]
pub fn decode_typed(payload: Bytes) -> Option<(String, Value)> {
    let mut reader = Reader::new(payload);
    let kind = reader.str_max("kind", limits::LABEL_BYTES_MAX).ok()?;
    Some((kind, Value::decode(reader.rest()).ok()?))
}
