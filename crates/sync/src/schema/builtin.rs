//! Built-in components, the first ones of every room's schema.

use super::component::Component;
use super::{ComponentId, Interpolation, Kind};
use crate::limits::{FIELD_SPAN_MAX, HINTS_BYTES_MAX, INPUT_MARGIN_MS_MAX};
use parlor_proto::limits::{STATE_KEY_BYTES_MAX, STATE_VALUE_BYTES_MAX};

/// A key of keyed state: the fields `name` (text), `hints` (bytes) and `value` (any value).
pub const KEYED_KEY: ComponentId = ComponentId(0);

/// The authority's report to a member about its inputs: the fields `tick` (the newest one whose input was
/// used: its number, lowest 31 bits), `margin` (the smallest one of the last half second: how long before its
/// step an input arrived, in ms) and `late` (the number of late inputs, lowest 8 bits).
pub const INPUT_ACK: ComponentId = ComponentId(1);

/// Mask of components whose entities belong to the engine: the game does not see them.
pub const NOT_OF_GAME: u64 = KEYED_KEY.bit() | INPUT_ACK.bit();

/// The built-in components, in the order of their numbers.
pub fn builtins() -> Vec<Component> {
    let key = Component::builder("keyed.key")
        .field("name", Kind::text(limit(STATE_KEY_BYTES_MAX)))
        .field("hints", Kind::bytes(limit(HINTS_BYTES_MAX)))
        .field("value", Kind::any(limit(STATE_VALUE_BYTES_MAX)))
        .build();
    let tick = Kind::int(0, i64::from(FIELD_SPAN_MAX)).interpolation(Interpolation::None);
    let margin = i64::from(INPUT_MARGIN_MS_MAX);
    let margin = Kind::int(-margin, margin).interpolation(Interpolation::None);
    let late = Kind::int(0, 255).interpolation(Interpolation::None);
    let ack = Component::builder("input.ack").field("tick", tick).field("margin", margin).field("late", late);
    vec![key, ack.build()]
}

fn limit(bytes: usize) -> u16 {
    u16::try_from(bytes).expect("the limits of keyed state are below 64 KiB")
}
