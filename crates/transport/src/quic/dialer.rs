//! The client's end: one socket per address family, shared by all its connections.

use super::link::establish;
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
use quinn::{ClientConfig, ConnectionError, Endpoint, Runtime, TokioRuntime, TransportErrorCode};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::timeout;

/// How long a client tries an address before it takes it for dead, unless it has a reason for another value. A dead
/// UDP port says nothing.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// The TLS alert by which a server says that no protocol is common to both ends.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// Makes connections. Dropping it leaves its links alive.
#[derive(Debug, Default)]
pub struct Dialer {
    /// One for IPv4, one for IPv6, opened when first needed.
    sockets: Mutex<[Option<Socket>; 2]>,
    conditions: Option<Conditions>,
    /// The address of this machine that its sockets have; any if `None`.
    source: Option<IpAddr>,
}

/// One of a dialer's sockets.
#[derive(Clone, Debug)]
pub(crate) struct Socket {
    pub(crate) endpoint: Endpoint,
    pub(crate) probes: Arc<Probes>,
}

impl Dialer {
    /// A dialer without sockets yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A dialer whose sockets are on a bad network.
    pub fn impaired(conditions: Conditions) -> Self {
        Dialer { conditions: Some(conditions), ..Self::default() }
    }

    /// A dialer whose connections come from this address of the machine, and go to addresses of its family alone.
    pub fn from_source(source: IpAddr) -> Self {
        Dialer { source: Some(source), ..Self::default() }
    }

    /// Connects to `addr`, where a server proves to be `server_name` as `trust` demands. With
    /// [`Trust::Fingerprint`] the name is not checked and may be the address. Must be called in a tokio runtime,
    /// always the same. May be cancelled.
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
        let (tls, refusal) = trust.quic_config(ALPN_PARLOR)?;
        let crypto = QuicClientConfig::try_from(tls).expect("TLS 1.3 with ring has what QUIC needs");
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport_config());
        let socket = self.socket(addr.is_ipv6()).map_err(|error| ConnectError::from_io(addr, &error))?;
        let connecting =
            socket.endpoint.connect_with(config, addr, server_name).map_err(|error| match error {
                quinn::ConnectError::InvalidServerName(name) => ConnectError::InvalidName(name),
                error => ConnectError::Unreachable { addr, detail: error.to_string() },
            })?;
        let connection = timeout(deadline, connecting)
            .await
            .map_err(|_| ConnectError::TimedOut { addr, waited: deadline })?
            .map_err(|error| failed(addr, deadline, error, &refusal))?;
        establish(connection)
            .map_err(|violation| ConnectError::NotParlor { addr, detail: violation.to_string() })
    }

    /// Waits until all links are over and their goodbyes are sent: what a process does last.
    pub async fn wait_idle(&self) {
        let sockets = self.lock().clone();
        for socket in sockets.into_iter().flatten() {
            socket.endpoint.wait_idle().await;
        }
    }

    /// The socket of an address family.
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

    /// Whether the socket of an address family was needed already.
    pub(crate) fn has_socket(&self, is_ipv6: bool) -> bool {
        self.lock()[usize::from(is_ipv6)].is_some()
    }

    fn lock(&self) -> MutexGuard<'_, [Option<Socket>; 2]> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a connection did not come to be.
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
