//! The components that every schema of a room begins with.

use super::component::Component;
use super::{ComponentId, Interpolation, Kind};
use crate::limits::{FIELD_SPAN_MAX, HINTS_BYTES_MAX};
use parlor_proto::limits::{STATE_KEY_BYTES_MAX, STATE_VALUE_BYTES_MAX};

/// A key of keyed state: the fields `name` (text), `hints` (bytes) and `value` (any value).
pub const KEYED_KEY: ComponentId = ComponentId(0);

/// The newest input of a member that the authority has used: the field `tick` (its number, lowest 31 bits).
pub const INPUT_ACK: ComponentId = ComponentId(1);

/// The built-in components, in the order of their numbers.
#[must_use]
pub fn builtins() -> Vec<Component> {
    let key = Component::builder("keyed.key")
        .field("name", Kind::text(limit(STATE_KEY_BYTES_MAX)))
        .field("hints", Kind::bytes(limit(HINTS_BYTES_MAX)))
        .field("value", Kind::any(limit(STATE_VALUE_BYTES_MAX)))
        .build();
    let tick = Kind::int(0, i64::from(FIELD_SPAN_MAX)).interpolation(Interpolation::None);
    let ack = Component::builder("input.ack").field("tick", tick).build();
    vec![key, ack]
}

fn limit(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("the limits of keyed state are below 64 KiB")
}
