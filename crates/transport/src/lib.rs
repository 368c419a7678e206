//! The sockets of Parlor, and the only place that has any.
//!
//! A [`Link`] carries packets between two ends. It is made of QUIC, of a WebSocket or, within one process, of memory; all
//! three have the same face and keep the same promises, which one contract test checks.
//!
//! - [`link`]: what a link is · [`closed`]: how one ends, with the codes both ends see
//! - [`quic`]: a listener and a dialer · [`websocket`]: for networks that block UDP · [`memory`]: two ends in one process
//! - [`inside`]: the way into a server of the same process
//! - [`direct`]: a link between two players without a server in between
//! - [`identity`]: a server's certificate and its fingerprint · [`trust`]: whom a client believes · [`tls`]: TLS on TCP
//! - [`alarm`]: a timer that wakes for nothing else · [`connect`]: why no link came to be · [`discovery`]: how a server is found · [`impaired`]: a bad network, on demand
//! - `lan`, a feature: rooms on the local network
//!
//! What is bounded: every queue, every buffer, every handshake. What is absent: a way to switch verification off,
//! unencrypted WebSockets beyond this machine, and allocation from a length that a peer declares.

pub mod alarm;
pub mod closed;
pub mod connect;
pub mod direct;
pub mod discovery;
pub mod identity;
pub mod impaired;
pub mod inside;
#[cfg(feature = "lan")]
pub mod lan;
pub mod link;
pub mod memory;
mod outbox;
pub mod quic;
mod rate;
#[cfg(target_os = "linux")]
mod registered;
pub mod tls;
pub mod trust;
pub mod websocket;

pub use closed::{CloseCode, LinkClosed, Violation};
pub use connect::ConnectError;
pub use identity::{Fingerprint, Identity, IdentityError};
pub use impaired::Impairment;
pub use link::{Link, LinkReceiver, LinkSender, LinkStats, SendError};
pub use tls::ServerTls;
pub use trust::Trust;
