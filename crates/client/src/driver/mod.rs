//! The driver: sockets and a background thread behind a room, so that a game needs neither a runtime nor patience.

mod builder;
mod dial;
mod places;
mod reach;
mod replicas;
mod room;
mod runtime;
mod shared;
mod world;

pub use builder::RoomBuilder;
pub use reach::Via;
pub use room::Room;
