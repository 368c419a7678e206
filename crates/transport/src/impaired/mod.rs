//! A bad network between this process and the others, for tests and for whoever develops a game.
//!
//! What becomes of each packet is decided by [`parlor_impair`]; here it is held back until its time. QUIC is impaired
//! beneath its UDP socket, so that its streams and its congestion control feel it like a game does; a WebSocket is
//! impaired beneath TLS, where trouble becomes a stall; and a [`Proxy`] does it for programs that know nothing of it.
//!
//! Without [`Conditions`] nothing of this is in the way: sockets are used as they are.

mod conditions;
mod lane;
mod proxy;
mod tcp;
mod udp;

pub use conditions::Conditions;
pub use parlor_impair::{Counts, Impairment, ImpairmentError, Outage};
pub use proxy::{FLOW_IDLE, FLOWS_MAX, Proxy, ProxyCounts, ProxyError};
pub use tcp::Wire;
pub(crate) use udp::impair;

use quinn::{AsyncUdpSocket, Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use std::io;
use std::sync::Arc;

/// A QUIC endpoint on `socket`, on a bad network if there are conditions. Must be called in a tokio runtime.
pub(crate) fn endpoint(
    socket: Arc<dyn AsyncUdpSocket>,
    server: Option<ServerConfig>,
    conditions: Option<&Conditions>,
) -> io::Result<Endpoint> {
    let socket = match conditions {
        Some(conditions) => impair(socket, conditions),
        None => socket,
    };
    Endpoint::new_with_abstract_socket(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
}

#[cfg(test)]
mod tests;
