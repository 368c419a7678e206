//! The pure server core of Parlor: the room directory, one machine per room, and the hub that seats sessions
//! in rooms.
//!
//! Nothing here has a clock, a source of randomness, a thread, a lock, a socket or `async`. Time and seeds
//! are arguments; packets go in and come out. A server drives one [`Hub`] per shard; the simulator drives one
//! on virtual time. [`room::log`] replays one room from its recorded inputs.
//!
//! - [`Hub`]: connections, sessions and seats
//! - [`admission_policy`]: authorizes room requests; [`budget`]: rate limits
//! - [`cluster`]: several servers that share a store
//! - [`directory`]: maps room codes to rooms
//! - [`Shards`]: assigns each room to one of several hubs
//! - [`room`]: members, presence, relay and state: one machine per room

pub mod admission_policy;
pub mod budget;
pub mod cluster;
pub mod directory;
mod hub;
pub mod room;
mod shards;

pub use admission_policy::Origin;
pub use cluster::ownership::RoomUid;
pub use hub::{
    ClaimAnswer, ClaimedRoom, ClusterConfig, ClusterView, Config, Entered, EnteredRoom, Hub, HubEvent,
    KeptSeats, Located, MatchFilter, NotThere, Output, ROOMS_LOOKED_AT_MAX, RoomDetails, RoomPage, RoomQuery,
    RoomRoster, RoomSummary, StateMemory, Stats, USER_SEATS_MAX, Unmovable, UserSeats,
};
pub use room::MemberSummary;
pub use shards::Shards;
