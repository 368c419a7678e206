//! Services of a Parlor server beside its rooms: accounts, turn rooms, and logs of kept matches.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use parlor_server::Config;
//! use parlor_services::OnlineConfig;
//! let mut server = parlor_services::start(Config::default(), OnlineConfig::new("parlor.db")).await?;
//! println!("listening on port {}", server.local_port());
//! let failed = server.wait().await;
//! # Err(failed.into()) }
//! ```
//!
//! - [`start`] and [`OnlineConfig`]: a server with services, and their configuration
//! - [`store`]: what outlives a server
//! - [`operator_token`]: tokens for operators
//! - [`ScoreReceipt`]: scores that a game's own service signs
//!
//! The server knows only [`embed::Services`](parlor_server::embed::Services). No realtime room waits for this
//! crate.

mod cluster;
mod online;
mod start;
pub mod store;

pub use cluster::{BusAddress, BusError, ClusterConfig, InvalidBusAddress, LineError};
pub use online::{
    GamesError, KEEP_MATCHES_DAYS, Lives, OPERATOR_LIFE_S_MAX, OnlineConfig, OnlineError, OnlineMemory,
    RECEIPT_LIFE_S_MAX, SIGN_IN_TIME, ScoreReceipt, WebhookConfig, WebhookError, operator_token,
};
pub use start::{StartError, start};
