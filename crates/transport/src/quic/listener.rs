//! The server side: one UDP socket that accepts connections.

use super::link::establish;
use super::{ALPN_PARLOR, bind_udp, transport_config};
use crate::closed::{CloseCode, Violation, clip_reason};
use crate::impaired;
use crate::link::Link;
use crate::tls::ServerTls;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::limits::HANDSHAKE_TIMEOUT;
use quinn::crypto::rustls::{HandshakeData, QuicServerConfig};
use quinn::{Connection, Endpoint, Runtime, ServerConfig, TokioRuntime};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use thiserror::Error;
use tokio::time::timeout;

/// The application protocols of the port, and what their connections become. Another protocol is one more
/// line here and one more variant of [`Accepted`].
const PROTOCOLS: &[(&[u8], Establish)] =
    &[(ALPN_PARLOR, |connection| establish(connection).map(Accepted::Parlor))];

type Establish = fn(Connection) -> Result<Accepted, Violation>;

/// Accepts connections on a UDP port. Dropping it stops that; existing links stay alive.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    limits: HandshakeLimits,
    half_open: Arc<AtomicUsize>,
    retried: AtomicU64,
    refused: AtomicU64,
}

/// Limits on concurrent handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// From this many on, clients must first validate their address, which takes a round trip.
    pub retry_above: usize,
    /// From this many on, clients are refused and may retry.
    pub refuse_above: usize,
}

impl Default for HandshakeLimits {
    fn default() -> Self {
        HandshakeLimits { retry_above: 64, refuse_above: 1024 }
    }
}

/// Counts of rejected clients since the listener was bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerStats {
    /// Current handshakes.
    pub half_open: usize,
    /// Clients asked to validate their address.
    pub retried: u64,
    /// Clients refused because of too many handshakes.
    pub refused: u64,
}

/// The port could not be opened.
#[derive(Debug, Error)]
#[error(
    "cannot listen on UDP {addr}: {error}. Is another server running there, and is the address this machine's?"
)]
pub struct ListenError {
    /// The requested address.
    pub addr: SocketAddr,
    /// The operating system's error.
    pub error: io::Error,
}

impl Listener {
    /// Opens `addr`; port 0 lets the system choose. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// [`ListenError`] with the operating system's reason.
    pub fn bind(addr: SocketAddr, tls: &ServerTls) -> Result<Self, ListenError> {
        Self::bind_with(addr, tls, HandshakeLimits::default())
    }

    /// [`bind`](Self::bind) with other limits than the default.
    ///
    /// # Errors
    /// [`ListenError`] with the operating system's reason.
    pub fn bind_with(
        addr: SocketAddr,
        tls: &ServerTls,
        limits: HandshakeLimits,
    ) -> Result<Self, ListenError> {
        let failed = |error| ListenError { addr, error };
        let socket =
            bind_udp(addr).and_then(|socket| TokioRuntime.wrap_udp_socket(socket)).map_err(failed)?;
        let endpoint = impaired::endpoint(socket, Some(server_config(tls)), None).map_err(failed)?;
        Ok(Listener {
            endpoint,
            limits,
            half_open: Arc::new(AtomicUsize::new(0)),
            retried: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// The local address.
    ///
    /// # Errors
    /// The operating system's error, if the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Returns the next client; `None` once the listener is closed. Its handshake has not begun: spawn
    /// [`Incoming::handshake`] and continue accepting. Cancel-safe.
    pub async fn accept(&self) -> Option<Incoming> {
        loop {
            let incoming = self.endpoint.accept().await?;
            let half_open = self.half_open.load(Ordering::Relaxed);
            if half_open >= self.limits.refuse_above {
                self.refused.fetch_add(1, Ordering::Relaxed);
                incoming.refuse();
            } else if half_open >= self.limits.retry_above && incoming.may_retry() {
                self.retried.fetch_add(1, Ordering::Relaxed);
                if incoming.retry().is_err() {
                    tracing::debug!("a client that may be asked to retry could not be");
                }
            } else {
                return Some(Incoming { incoming, half_open: HalfOpen::count(&self.half_open) });
            }
        }
    }

    /// Counts of rejected clients.
    pub fn stats(&self) -> ListenerStats {
        ListenerStats {
            half_open: self.half_open.load(Ordering::Relaxed),
            retried: self.retried.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// The number of links, including half-open ones.
    pub fn connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Stops listening and closes all links at once, without the grace period of [`LinkSender::close`]. The
    /// reason is cut at [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes.
    ///
    /// [`LinkSender::close`]: crate::LinkSender::close
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.endpoint.close(code.to_quic(), clip_reason(reason).as_bytes());
    }

    /// Waits until all links are over and their closes are sent.
    pub async fn wait_idle(&self) {
        self.endpoint.wait_idle().await;
    }
}

/// A client that wants to connect.
#[derive(Debug)]
pub struct Incoming {
    incoming: quinn::Incoming,
    half_open: HalfOpen,
}

/// A connection, by its application protocol.
#[derive(Debug)]
#[non_exhaustive]
pub enum Accepted {
    /// A Parlor link.
    Parlor(Link),
}

/// Why a client's handshake failed. It affects only that client.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The handshake timed out.
    #[error("{remote} did not finish its handshake within {waited:?}")]
    TimedOut {
        /// The client.
        remote: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// QUIC or TLS failed, for instance without a common application protocol.
    #[error("the handshake with {remote} failed: {detail}")]
    Failed {
        /// The client.
        remote: SocketAddr,
        /// The library's error.
        detail: String,
    },
    /// The client lacks a feature that Parlor needs.
    #[error("{remote} does not speak Parlor: {violation}")]
    NotParlor {
        /// The client.
        remote: SocketAddr,
        /// The missing feature.
        violation: Violation,
    },
}

impl Incoming {
    /// The client's claimed address.
    pub fn remote(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Refuses the client without a handshake, for instance because its address has used up its budget.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Runs the handshake, within [`HANDSHAKE_TIMEOUT`]. Dropping the future rejects the client.
    ///
    /// # Errors
    /// Why the client's handshake failed.
    pub async fn handshake(self) -> Result<Accepted, HandshakeError> {
        let remote = self.remote();
        // Counted until the handshake ends in any way.
        let _half_open = self.half_open;
        let failed =
            |error: quinn::ConnectionError| HandshakeError::Failed { remote, detail: error.to_string() };
        let connecting = self.incoming.accept().map_err(failed)?;
        let connection = timeout(HANDSHAKE_TIMEOUT, connecting)
            .await
            .map_err(|_| HandshakeError::TimedOut { remote, waited: HANDSHAKE_TIMEOUT })?
            .map_err(failed)?;
        let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
        let alpn = data.and_then(|data| data.protocol).unwrap_or_default();
        let Some((_, establish)) = PROTOCOLS.iter().find(|(name, _)| *name == alpn) else {
            connection.close(CloseCode::NOT_PARLOR.to_quic(), b"no protocol was negotiated");
            return Err(HandshakeError::Failed { remote, detail: "no protocol was negotiated".to_owned() });
        };
        establish(connection).map_err(|violation| HandshakeError::NotParlor { remote, violation })
    }
}

/// One of the current handshakes.
#[derive(Debug)]
struct HalfOpen(Arc<AtomicUsize>);

impl HalfOpen {
    fn count(all: &Arc<AtomicUsize>) -> Self {
        all.fetch_add(1, Ordering::Relaxed);
        HalfOpen(Arc::clone(all))
    }
}

impl Drop for HalfOpen {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The server's configuration of every connection.
pub(super) fn server_config(tls: &ServerTls) -> ServerConfig {
    let alpn = PROTOCOLS.iter().map(|(name, _)| name.to_vec()).collect();
    let crypto =
        QuicServerConfig::try_from(tls.quic_config(alpn)).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport_config());
    // The queue for `accept`, which decides at once: few clients, and their first packets only.
    config.max_incoming(1024).incoming_buffer_size(16 * 1024).incoming_buffer_size_total(4 * 1024 * 1024);
    config
}
