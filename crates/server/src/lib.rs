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
//! plain HTTP on TCP as well. Behind it stands one shard: a task that owns a [`Hub`](parlor_hub::Hub) and is the only
//! one to touch it, so nothing here needs a lock around rooms.
//!
//! - [`Config`] and [`IdentitySource`]: what a server may be told
//! - [`Server`]: start, addresses, invites, shutdown
//! - [`StartError`], [`ServerFailed`]: why there is none
//!
//! What is bounded: connections, handshakes, queues, request heads, the time that each of them may take. What is absent:
//! plain HTTP beyond this machine, and anything that makes game traffic wait for a disk.

mod address;
mod bind;
mod clock;
mod config;
mod connection;
mod error;
mod gate;
mod http;
mod identity;
mod quic;
mod recorder;
mod server;
mod shard;
mod tcp;

pub use config::{CONNECTIONS_MAX, Config, IdentitySource, ROOMS_MAX};
pub use error::{ServerFailed, StartError};
pub use identity::{IDENTITY_FILE, IdentitySourceError};
pub use server::{Server, Stats};
