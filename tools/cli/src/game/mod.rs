//! Magpies, the game that `parlor play` shows: its rules, its bots and its scripted players.
//!
//! There is no network, terminal or clock here. The authority owns a [`World`] and calls [`World::step`] once
//! per tick; [`World::publish`] returns the values for the room's keyed state. All members, the authority
//! included, draw and decide from a [`Scene`], which reads that keyed state.
//!
//! The rules: a magpie flies on in the direction last pressed and picks up the gems it touches. A dash is a short burst;
//! dashing into another magpie scatters a third of what it carries. After a minute the richest wins.

mod bot;
#[cfg(test)]
mod golden;
mod scene;
mod script;
mod state;
#[cfg(test)]
mod tests;
mod world;

pub(crate) use bot::Bot;
#[cfg(target_os = "linux")]
pub(crate) use scene::{Bird, Scene, Source};
pub(crate) use script::Script;
pub(crate) use state::{
    Badge, Dir, FIELD_HEIGHT, FIELD_WIDTH, GemState, HZ, Input, Motion, Phase, PlayerState, RoundState,
    ticks_until,
};
pub(crate) use world::World;
