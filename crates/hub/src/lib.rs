//! The pure server core of Parlor: a directory of rooms, one machine for each room, and the hub that seats sessions
//! in them.
//!
//! Nothing here has a clock, a source of randomness, a thread, a lock, a socket or `async`: time and seeds are passed
//! in, packets go in and come out. A server drives one [`Hub`] on each shard; the simulator drives one on virtual time;
//! [`room::log`] replays one room from what it was told.
//!
//! - [`Hub`]: connections, sessions, and who sits where
//! - [`directory`]: which code leads to which room
//! - [`room`]: members, presence, relay, state: one machine per room

pub mod directory;
mod hub;
pub mod room;

pub use hub::{Config, Happening, Hub, Output, RoomSummary};
