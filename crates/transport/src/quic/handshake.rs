//! How a server lets clients in: its limits, what it counts, and why a client did not get in.

use super::webtransport::ALPN_HTTP3;
use super::{ALPN_PARLOR, transport_config};
use crate::closed::Violation;
use crate::tls::ServerTls;
use core::net::SocketAddr;
use core::time::Duration;
use quinn::ServerConfig;
use quinn::crypto::rustls::QuicServerConfig;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// How many handshakes may be under way at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// From this many on, a client must first show that its address is its own, which costs it a round trip.
    pub retry_above: usize,
    /// From this many on, clients are refused and may come again.
    pub refuse_above: usize,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        HandshakeLimits { retry_above: 64, refuse_above: 1024 }
    }
}

/// What a server turned away since its port was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Handshakes under way now.
    pub half_open: usize,
    /// Clients told to show that their address is their own.
    pub retried: u64,
    /// Clients refused because too many handshakes were under way.
    pub refused: u64,
}

/// The port could not be opened.
#[derive(Debug, Error)]
#[error(
    "cannot listen on UDP {addr}: {error}. Is another server running there, and is the address this machine's?"
)]
pub struct ListenError {
    /// The address asked for.
    pub addr: SocketAddr,
    /// What the operating system says.
    pub error: io::Error,
}

/// Why a client did not get in. It concerns that client only.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// It took longer than it may.
    #[error("{remote} did not finish its handshake within {waited:?}")]
    TimedOut {
        /// The client.
        remote: SocketAddr,
        /// How long it was waited for.
        waited: Duration,
    },
    /// QUIC or TLS failed, for instance because no protocol is common to both ends.
    #[error("the handshake with {remote} failed: {detail}")]
    Failed {
        /// The client.
        remote: SocketAddr,
        /// What the library says.
        detail: String,
    },
    /// The client lacks what Parlor needs.
    #[error("{remote} does not speak Parlor: {violation}")]
    NotParlor {
        /// The client.
        remote: SocketAddr,
        /// What it lacks.
        violation: Violation,
    },
}

/// How the server's end of every connection is set.
pub fn server_config(tls: &ServerTls) -> ServerConfig {
    let alpn = vec![ALPN_PARLOR.to_vec(), ALPN_HTTP3.to_vec()];
    let crypto =
        QuicServerConfig::try_from(tls.quic_config(alpn)).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport_config(1));
    // What may wait for `accept`, which decides at once: few, and their first flight only.
    config.max_incoming(1024).incoming_buffer_size(16 * 1024).incoming_buffer_size_total(4 * 1024 * 1024);
    config
}
