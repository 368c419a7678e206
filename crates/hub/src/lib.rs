//! The pure server core of Parlor: a directory of rooms, one machine for each room, and the hub that seats sessions
//! in them.
//!
//! Nothing here has a clock, a source of randomness, a thread, a lock, a socket or `async`: time and seeds are passed
//! in, packets go in and come out. A server drives one [`Hub`] on each shard; the simulator drives one on virtual time;
//! [`room::log`] replays one room from what it was told.
//!
//! - [`Hub`]: connections, sessions, and who sits where
//! - [`door`]: who may ask for a room at all, and [`budget`]: how often
//! - [`directory`]: which code leads to which room
//! - [`Shards`]: which of several hubs a room lives on
//! - [`room`]: members, presence, relay, state: one machine per room
//! - [`turn`]: rooms that outlive their players and the server: a document, changed by one operation at a time

pub mod budget;
pub mod directory;
pub mod door;
mod hub;
pub mod room;
mod shards;
pub mod turn;

pub use door::Origin;
pub use hub::{
    Config, Happening, Hub, MatchFilter, MemberSummary, NotThere, Output, ROOMS_LOOKED_AT_MAX, RoomDetails,
    RoomPage, RoomQuery, RoomSummary, Stats,
};
pub use shards::Shards;
