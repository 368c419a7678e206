//! TLS on TCP: for a server, which distinguishes it from plain HTTP on the same port, and for a client.

use crate::connect::ConnectError;
use crate::identity::Identity;
use crate::impaired::{Conditions, Wire};
use crate::io::Io;
use crate::quic::webtransport::ALPN_HTTP3;
use crate::trust::Trust;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_proto::limits::HANDSHAKE_TIMEOUT;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The first byte of a TLS client: the type of a handshake record. No HTTP request begins with it.
const TLS_HANDSHAKE_RECORD: u8 = 0x16;

/// An identity, ready for QUIC and TCP. Cheap to clone; all clones share one identity.
#[derive(Clone, Debug)]
pub struct ServerTls {
    current: Arc<Current>,
    tcp: Arc<ServerConfig>,
}

/// The certificates for the next handshake.
#[derive(Debug)]
struct Current {
    identity: RwLock<Arc<CertifiedKey>>,
    /// For HTTP/3, if that has one of its own.
    web: RwLock<Option<Arc<CertifiedKey>>>,
}

impl Current {
    // They are replaced in one step, so a panic leaves a consistent state.
    fn identity(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.identity.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn web(&self) -> Option<Arc<CertifiedKey>> {
        self.web.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let speaks_http3 = hello.alpn().is_some_and(|mut names| names.any(|name| name == ALPN_HTTP3));
        let web = if speaks_http3 { self.web() } else { None };
        web.or_else(|| Some(self.identity()))
    }
}

impl ServerTls {
    /// Creates it for TLS 1.3 on QUIC, and 1.2 and 1.3 on TCP, where HTTP/1.1 is negotiated.
    pub fn new(identity: &Identity) -> Self {
        let current =
            Arc::new(Current { identity: RwLock::new(identity.certified()), web: RwLock::new(None) });
        let mut tcp = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13, &TLS12])
            .expect("ring has suites for TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&current));
        tcp.alpn_protocols = vec![b"http/1.1".to_vec()];
        ServerTls { current, tcp: Arc::new(tcp) }
    }

    /// Replaces the identity from the next handshake on. Existing connections stay unchanged.
    pub fn replace(&self, identity: &Identity) {
        *self.current.identity.write().unwrap_or_else(PoisonError::into_inner) = identity.certified();
    }

    /// Sets the identity that browsers are shown over HTTP/3, from the next handshake on. They accept one
    /// without an authority only if it is short-lived and they know its hash.
    pub fn set_web(&self, identity: &Identity) {
        *self.current.web.write().unwrap_or_else(PoisonError::into_inner) = Some(identity.certified());
    }

    pub(crate) fn quic_config(&self, alpn: Vec<Vec<u8>>) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .expect("ring has suites for TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::<Current>::clone(&self.current));
        config.alpn_protocols = alpn;
        // A dialer keeps no tickets: each would be made, sent and acknowledged for nothing.
        config.send_tls13_tickets = 0;
        config
    }
}

/// A TCP connection, by its client's first byte.
#[derive(Debug)]
pub enum Sniffed {
    /// TLS, after the handshake.
    Tls(Box<TlsStream<Wire>>),
    /// Another protocol, presumably HTTP; nothing was read from it yet.
    Plain(Wire),
}

/// Why a TCP connection failed. It affects only that client.
#[derive(Debug, Error)]
pub enum SniffError {
    /// The client was silent, or its handshake took too long.
    #[error("{remote} did not begin within {waited:?}")]
    TimedOut {
        /// The client.
        remote: SocketAddr,
        /// The timeout.
        waited: Duration,
    },
    /// The client disconnected, or TLS failed.
    #[error("the connection with {remote} failed: {error}")]
    Failed {
        /// The client.
        remote: SocketAddr,
        /// The error of the library or the system.
        error: io::Error,
    },
}

/// Unsent bytes of a stream that the system may buffer.
#[cfg(any(target_os = "android", target_os = "linux"))]
const UNSENT_BYTES_MAX: u32 = 8 * 1024;

/// Sends small packets at once (`TCP_NODELAY`). Where supported, limits the system's send buffer: data in it
/// becomes outdated and cannot be replaced.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    #[cfg(any(target_os = "android", target_os = "linux"))]
    socket2::SockRef::from(stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    Ok(())
}

/// Waits for the client's first byte, and for its TLS handshake if it is one: [`HANDSHAKE_TIMEOUT`] for both
/// together. Small packets are sent at once from then on (`TCP_NODELAY`). Spawn it; do not await it in the
/// accepting task.
///
/// # Errors
/// Why the connection failed.
pub async fn sniff(stream: TcpStream, remote: SocketAddr, tls: &ServerTls) -> Result<Sniffed, SniffError> {
    sniff_impaired(stream, remote, tls, None, HANDSHAKE_TIMEOUT).await
}

/// [`sniff`] with an impaired network, if there are conditions, and another timeout.
///
/// # Errors
/// Why the connection failed.
pub async fn sniff_impaired(
    stream: TcpStream,
    remote: SocketAddr,
    tls: &ServerTls,
    conditions: Option<&Conditions>,
    time: Duration,
) -> Result<Sniffed, SniffError> {
    let deadline = Instant::now() + time;
    let timed_out = |_| SniffError::TimedOut { remote, waited: time };
    let failed = |error| SniffError::Failed { remote, error };
    prepare(&stream).map_err(failed)?;
    let mut first = [0];
    let read = timeout_at(deadline, stream.peek(&mut first)).await.map_err(timed_out)?.map_err(failed)?;
    if read == 0 {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    let stream = Wire::new(stream, conditions);
    if first[0] != TLS_HANDSHAKE_RECORD {
        return Ok(Sniffed::Plain(stream));
    }
    let accepting = TlsAcceptor::from(Arc::clone(&tls.tcp)).accept(stream);
    let stream = timeout_at(deadline, accepting).await.map_err(timed_out)?.map_err(failed)?;
    Ok(Sniffed::Tls(Box::new(stream)))
}

/// Secures a client's TCP connection to `addr` by TLS 1.2 or 1.3, and verifies that the server is `host`.
/// Negotiates HTTP/1.1. `host` is a name or an address (IPv6 without brackets). It sets no deadline.
/// Cancel-safe.
///
/// # Errors
/// [`ConnectError`]: the server is not trusted, or does not speak TLS
/// ([`NotParlor`](ConnectError::NotParlor)), or the connection broke.
pub async fn connect<S: Io>(
    stream: S,
    addr: SocketAddr,
    host: &str,
    trust: &Trust,
) -> Result<impl Io + use<S>, ConnectError> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| ConnectError::InvalidName(host.to_owned()))?;
    let (config, refusal) = trust.tcp_config(b"http/1.1")?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    connecting.map_err(|error| refusal.take().unwrap_or_else(|| failed(addr, &error)))
}

pub(crate) fn failed(addr: SocketAddr, error: &io::Error) -> ConnectError {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => {
            ConnectError::NotParlor { addr, detail: "it has no TLS on this port".to_owned() }
        }
        _ => ConnectError::from_io(addr, error),
    }
}
