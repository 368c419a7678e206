//! How a server is found: by its address, by an invite, or in the registry of this machine.

pub mod address;
pub mod invite;
pub mod registry;

pub use address::{AddressError, ServerAddress};
pub use invite::{Invite, InviteError};
pub use registry::{Registry, RoomEntry, ServerEntry};

/// The port of a server that was given no other: UDP for QUIC, TCP for HTTP and WebSocket.
pub const DEFAULT_PORT: u16 = 7700;
