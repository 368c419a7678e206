//! Parlor's sockets. No other crate opens one.
//!
//! A [`Link`] carries packets between two ends: over QUIC, over a WebSocket or, within one process, in
//! memory. All three have the same interface and guarantees, which one contract test checks.
//!
//! - [`link`]: links · [`closed`]: how a link ends, with the close codes
//! - [`quic`]: a listener and a dialer · [`websocket`]: for networks that block UDP · [`memory`]: two ends in
//!   one process
//! - [`inside`]: links to a server in the same process
//! - [`direct`]: a link between two players without a server in between
//! - [`identity`]: a server's certificate and its fingerprint · [`trust`]: how a client verifies it ·
//!   [`CertificateChain`]: what a server shows, for diagnosis · [`tls`]: TLS on TCP · [`MutualTls`]: TLS on TCP
//!   between two servers
//! - [`alarm`]: a timer without extra wake-ups · [`connect`]: connection errors · [`discovery`]: finding a
//!   server · [`impaired`]: a simulated bad network
//! - `lan`, a feature: rooms on the local network
//!
//! Every queue, buffer and handshake is bounded. Absent by design: a way to disable verification, unencrypted
//! WebSockets beyond this machine, and allocation by a length that a peer declares.

pub mod alarm;
mod certificate_chain;
pub mod closed;
pub mod connect;
pub mod direct;
pub mod discovery;
pub mod identity;
pub mod impaired;
pub mod inside;
mod io;
#[cfg(feature = "lan")]
pub mod lan;
pub mod link;
pub mod memory;
mod mutual;
mod outbox;
pub mod quic;
mod rate;
#[cfg(target_os = "linux")]
mod registered;
pub mod tls;
pub mod trust;
pub mod websocket;

pub use certificate_chain::CertificateChain;
pub use closed::{CloseCode, LinkClosed, Violation};
pub use connect::ConnectError;
pub use identity::{Fingerprint, Identity, IdentityError};
pub use impaired::Impairment;
pub use link::{Link, LinkReceiver, LinkSender};
pub use mutual::MutualTls;
pub use outbox::{LinkStats, SendError};
pub use tls::ServerTls;
pub use trust::Trust;
