//! The terminal view of the game, and its keys.
//!
//! [`draw()`] is a pure function of a [`HudModel`] (players and connection: plain numbers and texts) and a
//! [`Scene`](crate::game::Scene) (the game).

mod draw;
mod field;
mod hud;
mod keys;
mod letters;
mod overlay;
mod panel;
#[cfg(test)]
mod tests;

pub(crate) use draw::draw;
pub(crate) use hud::{HudModel, MemberLine, Stage};
pub(crate) use keys::{Command, Controls};
