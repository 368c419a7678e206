//! Start of a server with services.

use crate::online::{Online, OnlineConfig, OnlineError};
use crate::store::{Options, Store};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parlor_server::{Config, Server};
use std::sync::Arc;
use thiserror::Error;

/// Why a server with services could not start. No part of it is running then.
#[derive(Debug, Error)]
pub enum StartError {
    /// The server could not start.
    #[error(transparent)]
    Server(#[from] parlor_server::StartError),
    /// The services could not start.
    #[error(transparent)]
    Online(#[from] OnlineError),
}

/// Starts a server with services. It is reachable when this returns.
///
/// # Errors
/// [`StartError`] describes what to do. Nothing is running then.
// Boxed: an async function is compiled again, with all that it calls, in each crate that awaits it.
#[inline(never)]
pub fn start(config: Config, online: OnlineConfig) -> BoxFuture<'static, Result<Server, StartError>> {
    started(config, online).boxed()
}

async fn started(config: Config, online: OnlineConfig) -> Result<Server, StartError> {
    // Before the port opens: clients find a sound store, or no server.
    let node = online.cluster.as_ref().map(|cluster| cluster.node.clone());
    let options = Options { limits: online.limits, node, ..Options::default() };
    let store = Store::open_with(&online.store, options).await.map_err(OnlineError::from)?;
    let services = async |parts| Ok(Arc::new(Online::start(online, store, parts).await?) as Arc<_>);
    Server::start_with(config, services).await
}
