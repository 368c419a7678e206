//! The face of the game: what is drawn on the terminal, and what its keys mean.
//!
//! [`draw()`] is a pure function of a [`HudModel`] (who, how and how well connected: plain numbers and texts) and a
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
