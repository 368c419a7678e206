//! Accounts, rooms that outlive their players, and matches that are kept: services that a Parlor server may have beside its rooms.
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
//! - [`start`] and [`OnlineConfig`]: a server with services, and what they may be told
//! - [`store`]: what outlives a server
//! - [`operator_token`]: for whoever runs one
//!
//! The server knows none of this: it asks [`embed::Services`](parlor_server::embed::Services). What is absent: anything that a realtime room
//! waits for.

mod online;
mod start;
pub mod store;

pub use online::{
    GamesError, KEEP_MATCHES_DAYS, Lives, OPERATOR_LIFE_S_MAX, OnlineConfig, OnlineError, OnlineMemory,
    SIGN_IN_TIME, WebhookConfig, WebhookError, operator_token,
};
pub use start::{StartError, start};
