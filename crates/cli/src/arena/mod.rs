//! The arena, the demo of how a game feels: players drive and shoot, each tank obeys its player at once, and a shot hits what
//! its shooter saw.

mod bot;
mod game;
mod keeper;
mod rules;
mod seat;
mod table;

pub(crate) use bot::Bot;
pub(crate) use game::{Game, Settings, Verdict, look};
pub(crate) use keeper::Keeper;
pub(crate) use rules::{HZ, Order, PILLARS, RANGE_M, SIDES_M, Shot, TANK_RADIUS_M, Tank, aim_of, schema};
pub(crate) use seat::{Driver, Press, Seat};
pub(crate) use table::{Core, Table};

/// The game's name towards the server.
pub(crate) const APP: &str = "arena";
