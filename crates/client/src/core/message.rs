//! The payloads that a room's members exchange and the hub does not read.
//!
//! ```text
//!  typed message   kind: text · value, to the end
//!  input           tick: 4 bytes · value, to the end
//! ```

use bytes::Bytes;
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_proto::{Tick, limits};
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

/// The input of one tick.
pub(super) fn encode_input(tick: Tick, value: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(value.len() + 4);
    out.put_u32(tick.0);
    out.put(value);
    out.into()
}

/// What [`encode_input`] wrote; `None` if its sender wrote something else, or more than an input may have.
pub(super) fn decode_input(payload: Bytes) -> Option<(Tick, Value)> {
    let mut reader = Reader::new(payload);
    let tick = Tick(reader.u32().ok()?);
    let value = reader.rest();
    if value.len() > limits::INPUT_BYTES_MAX {
        return None;
    }
    Some((tick, Value::decode(value).ok()?))
}
