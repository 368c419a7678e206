//! Parlor's session protocol: everything that two ends must agree on to talk.
//!
//! This crate is pure: it has no clock, no source of randomness, no thread, lock, socket or `async`. Time
//! comes in as an [`Instant`], bytes come in and go out, and the same calls always give the same results.
//! `PROTOCOL.md` is the normative description of the wire format; golden vectors are in `testdata/`.
//!
//! - [`time`]: instants and ticks · [`ids`]: one type for each kind of id · [`limits`]: every bound, in one
//!   place
//! - [`wire`]: the layout of packets, frames, handshakes, envelopes and room control
//! - [`channel`]: lanes, and the channel table that both ends agree on
//! - [`session`]: the state machine between two ends, independent of the connection that carries it
//! - [`code`]: room codes · [`random`]: numbers from a seed · [`stream_rate`]: what a stream carries ·
//!   [`ordered`]: a map and a set with little code · [`text`]: names and times for people

pub mod channel;
pub mod code;
pub mod error;
pub mod ids;
pub mod limits;
pub mod link;
pub mod ordered;
pub mod random;
pub mod session;
pub mod stream_rate;
pub mod text;
pub mod time;
pub mod wire;

pub use channel::{Channel, ChannelTable, Lane};
pub use code::RoomCode;
pub use error::{ApiMisuse, CloseReason, PeerMisbehaved};
pub use ids::{ChannelId, ConnectionId, EntityId, Epoch, MemberId, PathId, RoomId, SessionId};
pub use link::{Carrier, LinkKind, Packet};
pub use ordered::{OrderedMap, OrderedSet};
pub use time::{Instant, Tick, TickRate};
