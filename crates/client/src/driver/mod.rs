//! The driver: sockets and a background thread behind a room, so that a game needs neither a runtime nor patience.

mod builder;
mod dial;
mod places;
mod room;
mod runtime;
mod shared;

pub use builder::{RoomBuilder, Via};
pub use room::Room;
