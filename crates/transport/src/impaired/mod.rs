//! A simulated bad network between this process and others, for tests and development.
//!
//! [`parlor_impair`] decides the fate of each packet; here it is delayed until its time. QUIC is impaired
//! below its UDP socket, so that its streams and congestion control are affected as in reality. A WebSocket
//! is impaired below TLS, where losses become stalls. A [`Proxy`] impairs other programs' traffic.
//!
//! Without [`Conditions`] there is no overhead: sockets are used directly.

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

/// Creates a QUIC endpoint on `socket`, impaired if there are conditions. Must be called in a tokio runtime.
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
