//! The Parlor server as a library, for tests, games and the binary `parlor`.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use parlor_server::{Config, Server};
//! let mut server = Server::start(Config::default()).await?;
//! println!("listening on port {}", server.local_port());
//! let failed = server.wait().await;
//! # Err(failed.into()) }
//! ```
//!
//! One port number serves everything: QUIC on UDP, HTTPS and WebSocket on TCP, and to this machine's own
//! processes plain HTTP on TCP as well. Behind it is a shard: a task that owns a [`Hub`](parlor_hub::Hub)
//! alone, so rooms need no locks. A server with several shards has a thread and a port for each, and
//! redirects clients to the right one.
//!
//! - [`Config`] and [`IdentitySource`]: its configuration
//! - [`Server`]: start, addresses, invites, shutdown
//! - [`admission`]: tokens, which a server may require
//! - [`embed`]: the interface to services beside its rooms, a separate library; [`realm`]: names of games and
//!   environments
//! - [`StartError`], [`ServerFailed`]: its errors
//! - [`checks`]: what would keep it from starting, without a start
//!
//! Bounded are connections, handshakes, queues, request heads, and the time of each. Absent are plain HTTP
//! beyond this machine, and disk accesses that delay game traffic.

mod access;
mod address;
pub mod admission;
mod bind;
pub mod checks;
mod clock;
mod config;
mod connection;
mod connection_limit;
pub mod embed;
mod error;
mod files;
mod handshakes;
mod http;
mod identity;
mod inside;
mod kept;
mod match_log_queue;
mod metrics;
mod mutex;
mod node;
mod origin;
mod pace;
mod quic;
pub mod realm;
mod recorder;
mod renewal;
mod seldom;
mod server;
mod shard;
mod system;
mod tcp;
mod time;
mod web_identity;
mod web_pages;
mod worker;

pub use config::{
    CONNECTIONS_MAX, Config, FLUSH_QUANTUM_MS_MAX, GRACE, GRACE_S_MAX, IdentitySource, REMEMBER,
    REMEMBER_S_MAX, ROOMS_MAX, STATE_MEMORY, STATE_MEMORY_MIN, STATE_RATE, STATE_RATE_MIN,
};
pub use error::{ServerFailed, StartError};
pub use handshakes::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_ALL};
pub use identity::{IDENTITY_FILE, IdentitySourceError};
pub use kept::KEPT_MATCHES;
pub use parlor_hub::StateMemory;
pub use renewal::CERTIFICATE_EVERY;
pub use server::{Server, Stats};
pub use time::Time;
pub use web_identity::{WEB_FILE, WEB_NEXT_FILE};
pub use web_pages::{WebFile, WebGame, WebPages};
