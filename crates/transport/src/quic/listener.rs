//! The server's end: one UDP socket on which connections arrive.

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

/// What may be negotiated on the port, and what is made of a connection then. Another protocol is one more line here
/// and one more variant of [`Accepted`].
const PROTOCOLS: &[(&[u8], Establish)] =
    &[(ALPN_PARLOR, |connection| establish(connection).map(Accepted::Parlor))];

type Establish = fn(Connection) -> Result<Accepted, Violation>;

/// Takes connections on a UDP port. Dropping it stops that; links that exist live on.
#[derive(Debug)]
pub struct Listener {
    endpoint: Endpoint,
    limits: HandshakeLimits,
    half_open: Arc<AtomicUsize>,
    retried: AtomicU64,
    refused: AtomicU64,
}

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

/// What a listener turned away since it was bound.
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

    /// The address that is listened on.
    ///
    /// # Errors
    /// What the operating system says, if the socket is gone.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The next client, or `None` once the listener is closed. Its handshake has not begun: spawn
    /// [`Incoming::handshake`] and accept on. May be cancelled.
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

    /// What was turned away.
    pub fn stats(&self) -> ListenerStats {
        ListenerStats {
            half_open: self.half_open.load(Ordering::Relaxed),
            retried: self.retried.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// Links that exist, half-open ones included.
    pub fn connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Stops listening and closes all links at once, without the grace that [`LinkSender::close`] gives each. The
    /// reason is cut at [`CLOSE_REASON_BYTES_MAX`](crate::closed::CLOSE_REASON_BYTES_MAX) bytes.
    ///
    /// [`LinkSender::close`]: crate::LinkSender::close
    pub fn close(&self, code: CloseCode, reason: &str) {
        self.endpoint.close(code.to_quic(), clip_reason(reason).as_bytes());
    }

    /// Waits until all links are over and their goodbyes are sent.
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

/// A connection, by the protocol that it negotiated.
#[derive(Debug)]
#[non_exhaustive]
pub enum Accepted {
    /// Parlor's packets.
    Parlor(Link),
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

impl Incoming {
    /// Where the client is, or says it is.
    pub fn remote(&self) -> SocketAddr {
        self.incoming.remote_address()
    }

    /// Turns the client away without a handshake, for instance because its address has used up its budget.
    pub fn refuse(self) {
        self.incoming.refuse();
    }

    /// Does the handshake, within [`HANDSHAKE_TIMEOUT`]. Dropping the future turns the client away.
    ///
    /// # Errors
    /// Why the client did not get in.
    pub async fn handshake(self) -> Result<Accepted, HandshakeError> {
        let remote = self.remote();
        // Counted until the handshake is over, whichever way.
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

/// One handshake among those under way.
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

/// How the server's end of every connection is set.
pub(super) fn server_config(tls: &ServerTls) -> ServerConfig {
    let alpn = PROTOCOLS.iter().map(|(name, _)| name.to_vec()).collect();
    let crypto =
        QuicServerConfig::try_from(tls.quic_config(alpn)).expect("TLS 1.3 with ring has what QUIC needs");
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport_config());
    // What may wait for `accept`, which decides at once: few, and their first flight only.
    config.max_incoming(1024).incoming_buffer_size(16 * 1024).incoming_buffer_size_total(4 * 1024 * 1024);
    config
}
