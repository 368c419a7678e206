//! Server discovery: by address, by invite, or in this machine's registry.

pub mod address;
pub mod invite;
pub mod registry;

pub use address::{AddressError, ServerAddress};
pub use invite::{Invite, InviteError};
pub use registry::{Registry, RoomEntry, ServerEntry};

/// The default port: UDP for QUIC, TCP for HTTP and WebSocket.
pub const DEFAULT_PORT: u16 = 7700;
