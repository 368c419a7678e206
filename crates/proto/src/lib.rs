//! What two ends of Parlor must agree on to talk.
//!
//! This crate is pure: it has no clock, no source of randomness, no thread, lock, socket or `async`. Time comes
//! in as an [`Instant`], bytes come in and go out, and the same calls always give the same results. The
//! normative description of what it puts on the wire is `PROTOCOL.md`; golden vectors stand in `testdata/`.
//!
//! - [`time`]: instants and ticks · [`ids`]: one type for each kind of id · [`limits`]: every bound, in one place
//! - [`wire`]: how packets, frames, handshakes, envelopes and room control are laid out
//! - [`channel`]: lanes, and the table of channels both ends agree on
//! - [`session`]: the state machine between two ends, independent of the connection that carries it
//! - [`code`]: room codes · [`random`]: numbers from a seed

pub mod channel;
pub mod code;
pub mod error;
pub mod ids;
pub mod limits;
pub mod link;
pub mod random;
pub mod session;
pub mod time;
pub mod wire;

pub use channel::{Channel, ChannelTable, Lane};
pub use code::RoomCode;
pub use error::{ApiMisuse, CloseReason, PeerMisbehaved};
pub use ids::{ChannelId, ConnectionId, EntityId, Epoch, MemberId, PathId, RoomId, SessionId};
pub use link::{Carrier, LinkKind, Packet};
pub use time::{Instant, Tick, TickRate};
