//! The arena, the demo of how a game feels: players drive and shoot, each tank responds at once, and a shot
//! hits what its shooter saw.

mod bot;
mod game;
mod rules;
mod table;

pub use bot::Bot;
pub use game::{Game, Seen, Settings, Verdict, look};
pub use rules::{
    AIM_STEPS, HZ, Life, Order, PILLARS, RANGE_M, SIDES_M, Shot, TANK_RADIUS_M, Tank, aim_of, schema,
};
pub use table::{Core, Past, Table};

/// The game's name towards the server.
pub const APP: &str = "arena";
