//! The face of the game: what is drawn on the terminal, and what its keys mean.
//!
//! [`draw()`] is a pure function of a [`HudModel`] (who, how and how well connected: plain numbers and texts) and a
//! [`Scene`](crate::game::Scene) (the game), and [`draw_walkers`] one of a [`Ground`]. [`Screen`] is the only thing here that
//! touches a terminal.

mod arena;
mod draw;
mod field;
mod hud;
mod keys;
mod letters;
mod net;
mod overlay;
mod palette;
mod panel;
mod screen;
#[cfg(test)]
mod tests;
mod text;
mod walkers;

pub(crate) use arena::{Field, NetGraph, Piece, draw_arena};
pub(crate) use draw::draw;
pub(crate) use hud::{HudModel, MemberLine, Stage};
pub(crate) use keys::{Command, Controls};
pub(crate) use screen::Screen;
pub(crate) use walkers::{Ground, Mark, draw_walkers};
