//! What an end can do beyond its version: one bit each. A bit allows something only if both ends have set it.

/// The client can return after its grace, as the same member. The hub then refuses its resume with
/// [`GraceOver`](super::ResumeRefusal::GraceOver).
pub const RETURNS: u64 = 1;
/// In a hello that joins: the client wants a spectator's seat. In a hello that opens a room: it takes
/// [`SPECTATORS_DEFAULT`](crate::limits::SPECTATORS_DEFAULT) spectators, and none without it. In a welcome: the member
/// is a spectator.
pub const SPECTATES: u64 = 2;
/// The hub takes [`HandOver`](crate::wire::control::HandOver), and the client the answer to it.
pub const HANDS_OVER: u64 = 4;
/// The hub is a node whose rooms can be reopened at another one. The client takes [`Seat`](super::Seat), and
/// claims its seat at another node if this one dies.
pub const MOVES: u64 = 8;
/// In a welcome to a claim: the reliable messages of both ends go on with the numbers that they had. The room has moved
/// with its sessions.
pub const CONTINUES: u64 = 16;
