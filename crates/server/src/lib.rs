//! The Parlor server as a library, so that a test, a game or the binary `parlor` can run one.
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
//! One port number serves everything: QUIC on UDP, HTTPS and WebSocket on TCP, and to this machine's own processes
//! plain HTTP on TCP as well. Behind it stands a shard: a task that owns a [`Hub`](parlor_hub::Hub) and is the only
//! one to touch it, so nothing here needs a lock around rooms. A server with several shards has a thread and a port for
//! each, and a client that comes to the wrong one is told the right one's.
//!
//! - [`Config`] and [`IdentitySource`]: what a server may be told
//! - [`Server`]: start, addresses, invites, shutdown
//! - [`admission`]: tokens, without which a server may let nobody in
//! - [`store`]: what outlives a server
//! - [`StartError`], [`ServerFailed`]: why there is none
//!
//! What is bounded: connections, handshakes, queues, request heads, the time that each of them may take. What is absent:
//! plain HTTP beyond this machine, and anything that makes game traffic wait for a disk.

mod address;
pub mod admission;
mod bind;
mod clock;
mod config;
mod connection;
mod door;
mod error;
mod gate;
mod handshakes;
mod http;
mod identity;
mod inside;
mod keeper;
mod metrics;
mod mutex;
pub mod online;
mod origin;
mod pace;
mod quic;
mod recorder;
mod server;
mod shard;
pub mod store;
mod system;
mod tcp;
mod worker;

pub use config::{
    CONNECTIONS_MAX, Config, FLUSH_QUANTUM_MS_MAX, GRACE, GRACE_S_MAX, IdentitySource, ROOMS_MAX, STATE_RATE,
    STATE_RATE_MIN,
};
pub use error::{ServerFailed, StartError};
pub use handshakes::{HANDSHAKES_PER_SECOND, HANDSHAKES_PER_SECOND_ALL};
pub use identity::{IDENTITY_FILE, IdentitySourceError};
pub use server::{Server, Stats};
