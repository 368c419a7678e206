//! The client side: one socket per address family, shared by all its connections.

use super::link::{establish, establish_session};
use super::session::{NoSession, Session};
use super::webtransport::ALPN_HTTP3;
use super::{ALPN_PARLOR, bind_udp, transport_config};
use crate::closed::{CloseCode, peer_reason};
use crate::connect::ConnectError;
use crate::direct::probe::{Probes, guard};
use crate::impaired::{self, Conditions};
use crate::link::Link;
use crate::trust::{Refusal, Trust};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use core::time::Duration;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, Runtime, TokioRuntime, TransportErrorCode};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::{Instant, sleep, timeout};

/// Default timeout for an address. A dead UDP port does not answer.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// How long the search for the largest packet is waited for, and how often it is looked at.
const PACKETS_PATIENCE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Up to this size of packets, in bytes, the library searches.
const PACKET_BYTES_MAX: u16 = 1452;

/// The TLS alert for "no common application protocol".
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// Opens connections. Its links stay alive when it is dropped.
#[derive(Debug, Default)]
pub struct Dialer {
    /// For IPv4 and IPv6, opened when first needed.
    sockets: Mutex<[Option<Socket>; 2]>,
    conditions: Option<Conditions>,
    /// The local address of its sockets; `None` for any.
    source: Option<IpAddr>,
}

/// Properties of the network between this machine and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The round trip.
    pub rtt: Duration,
    /// The largest UDP payload that arrives, in bytes, as far as it was found within a second.
    pub packet_bytes_max: u16,
}

/// One of a dialer's sockets.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) endpoint: Endpoint,
    pub(crate) probes: Arc<Probes>,
}

impl Dialer {
    /// Creates a dialer without sockets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a dialer whose sockets are impaired.
    pub fn impaired(conditions: Conditions) -> Self {
        Dialer { conditions: Some(conditions), ..Self::default() }
    }

    /// Creates a dialer that connects from this local address, and only to addresses of its family.
    pub fn from_source(source: IpAddr) -> Self {
        Dialer { source: Some(source), ..Self::default() }
    }

    /// Connects to `addr`, and verifies the server as `trust` says, under the name `server_name`. With
    /// [`Trust::Fingerprint`] the name is not checked and may be the address. Must always be called in the
    /// same tokio runtime. Cancel-safe.
    ///
    /// # Errors
    /// [`ConnectError`]; a dead port is [`TimedOut`](ConnectError::TimedOut) after `deadline`.
    pub async fn connect(
        &self,
        addr: SocketAddr,
        server_name: &str,
        trust: &Trust,
        deadline: Duration,
    ) -> Result<Link, ConnectError> {
        let connection = self.dial(addr, server_name, trust, ALPN_PARLOR, deadline).await?;
        establish(connection)
            .map_err(|violation| ConnectError::NotParlor { addr, detail: violation.to_string() })
    }

    /// Connects over WebTransport, as a browser does, to the certificate that browsers are shown. For measuring
    /// what a page costs a server, and for tests: [`connect`](Self::connect) takes fewer round trips.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect); a server that refuses the session is
    /// [`NotParlor`](ConnectError::NotParlor).
    #[doc(hidden)]
    pub async fn connect_webtransport(
        &self,
        addr: SocketAddr,
        server_name: &str,
        trust: &Trust,
        deadline: Duration,
    ) -> Result<Link, ConnectError> {
        let connecting = async {
            let connection = self.dial(addr, server_name, trust, ALPN_HTTP3, deadline).await?;
            let not_parlor = |detail| ConnectError::NotParlor { addr, detail };
            let authority = format!("{server_name}:{}", addr.port());
            let session =
                Session::ask(&connection, &authority).await.map_err(|no_session| match no_session {
                    NoSession::Lost(error) => failed(addr, deadline, error, &Refusal::default()),
                    NoSession::Refused(detail) => not_parlor(detail),
                })?;
            establish_session(connection, session).map_err(|violation| not_parlor(violation.to_string()))
        };
        timeout(deadline, connecting).await.unwrap_or(Err(ConnectError::TimedOut { addr, waited: deadline }))
    }

    /// Connects, measures the network, and closes the connection again. For diagnosis.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect).
    pub async fn measure(
        &self,
        addr: SocketAddr,
        server_name: &str,
        trust: &Trust,
        deadline: Duration,
    ) -> Result<Measured, ConnectError> {
        let connection = self.dial(addr, server_name, trust, ALPN_PARLOR, deadline).await?;
        let until = Instant::now() + PACKETS_PATIENCE;
        let packet_bytes_max = || connection.stats().path.current_mtu;
        while packet_bytes_max() < PACKET_BYTES_MAX && Instant::now() < until {
            sleep(LOOK_EVERY).await;
        }
        let measured = Measured { rtt: connection.rtt(), packet_bytes_max: packet_bytes_max() };
        connection.close(CloseCode::DONE.to_quic(), b"");
        Ok(measured)
    }

    /// Connects without making a link, for a client of another protocol on the server's port.
    ///
    /// # Errors
    /// As of [`connect`](Self::connect).
    // What a browser says is written by hand in tests.
    #[doc(hidden)]
    pub async fn dial(
        &self,
        addr: SocketAddr,
        server_name: &str,
        trust: &Trust,
        alpn: &[u8],
        deadline: Duration,
    ) -> Result<Connection, ConnectError> {
        let (tls, refusal) = trust.quic_config(alpn)?;
        let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3 with ring has what QUIC needs");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport_config(0));
        let socket = self.socket(addr.is_ipv6()).map_err(|error| ConnectError::from_io(addr, &error))?;
        let connecting =
            socket.endpoint.connect_with(config, addr, server_name).map_err(|error| match error {
                quinn::ConnectError::InvalidServerName(name) => ConnectError::InvalidName(name),
                error => ConnectError::Unreachable { addr, detail: error.to_string() },
            })?;
        timeout(deadline, connecting)
            .await
            .map_err(|_| ConnectError::TimedOut { addr, waited: deadline })?
            .map_err(|error| failed(addr, deadline, error, &refusal))
    }

    /// Waits until all links are over and their closes are sent. For the end of a process.
    pub async fn wait_idle(&self) {
        let sockets = self.lock().clone();
        for socket in sockets.into_iter().flatten() {
            socket.endpoint.wait_idle().await;
        }
    }

    /// Returns the socket of an address family.
    pub(crate) fn socket(&self, is_ipv6: bool) -> io::Result<Socket> {
        let mut sockets = self.lock();
        let slot = &mut sockets[usize::from(is_ipv6)];
        if let Some(socket) = slot {
            return Ok(socket.clone());
        }
        let any: IpAddr = if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let local: SocketAddr = (self.source.unwrap_or(any), 0).into();
        let probes = Arc::new(Probes::default());
        let guarded = guard(TokioRuntime.wrap_udp_socket(bind_udp(local)?)?, Arc::clone(&probes));
        let endpoint = impaired::endpoint(guarded, None, self.conditions.as_ref())?;
        Ok(slot.insert(Socket { endpoint, probes }).clone())
    }

    /// Whether the socket of an address family is open.
    pub(crate) fn has_socket(&self, is_ipv6: bool) -> bool {
        self.lock()[usize::from(is_ipv6)].is_some()
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Socket>; 2]> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts the error of a failed connection.
fn failed(addr: SocketAddr, waited: Duration, error: ConnectionError, refusal: &Refusal) -> ConnectError {
    if let Some(refused) = refusal.take() {
        return refused;
    }
    let no_protocol = TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL);
    match error {
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::CONNECTION_REFUSED =>
        {
            ConnectError::Busy { addr }
        }
        ConnectionError::ConnectionClosed(close) if close.error_code == no_protocol => {
            ConnectError::NotParlor { addr, detail: "it offers other protocols on this port".to_owned() }
        }
        ConnectionError::TransportError(error) if error.code == no_protocol => {
            ConnectError::NotParlor { addr, detail: "it named no protocol".to_owned() }
        }
        ConnectionError::VersionMismatch => {
            ConnectError::NotParlor { addr, detail: "it has no version of QUIC in common".to_owned() }
        }
        ConnectionError::ApplicationClosed(close) => ConnectError::ClosedByPeer {
            addr,
            code: CloseCode::from_quic(close.error_code),
            reason: peer_reason(&close.reason),
        },
        ConnectionError::TimedOut => ConnectError::TimedOut { addr, waited },
        error => ConnectError::Failed { addr, detail: error.to_string() },
    }
}
