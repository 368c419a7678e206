//! Connection errors on the client's side: for display, and for a program that tries another transport.

use crate::closed::CloseCode;
use crate::identity::Fingerprint;
use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use thiserror::Error;

/// Why a client could not connect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// Name resolution failed.
    #[error("the address of {host} could not be found: {detail}. Check the name and the network")]
    NameResolution {
        /// The name.
        host: String,
        /// The system's message.
        detail: String,
    },
    /// The text is not a valid server name.
    #[error("{0:?} is not the name or address of a server")]
    InvalidName(String),
    /// The machine answered that nothing listens on that port.
    #[error("{addr} refused the connection: no server is running there")]
    Refused {
        /// The address tried.
        addr: SocketAddr,
    },
    /// There is no network route to the address.
    #[error("{addr} cannot be reached: {detail}")]
    Unreachable {
        /// The address tried.
        addr: SocketAddr,
        /// The system's message.
        detail: String,
    },
    /// Nothing answered in time: no server runs there, or the network blocks it (many block UDP).
    #[error(
        "{addr} did not answer within {} ms: no server is running there, or the network blocks the way",
        waited.as_millis()
    )]
    TimedOut {
        /// The address tried.
        addr: SocketAddr,
        /// How long the client waited.
        waited: Duration,
    },
    /// The server has too many handshakes under way; try again later.
    #[error("{addr} is busy: try again in a moment")]
    Busy {
        /// The server.
        addr: SocketAddr,
    },
    /// The server's certificate has another fingerprint than the expected one.
    #[error(
        "the server has another certificate than expected: {found} and not {expected}. It was set up anew, the \
         fingerprint is mistyped, or somebody is in between"
    )]
    WrongFingerprint {
        /// The expected fingerprint.
        expected: Fingerprint,
        /// The fingerprint of the server's certificate.
        found: Fingerprint,
    },
    /// No trusted authority signed the server's certificate, or it is for another name.
    #[error("the server's certificate is not trusted: {0}")]
    UntrustedCertificate(String),
    /// The trusted root certificates cannot be read.
    #[error("what to trust could not be read: {0}")]
    TrustUnreadable(String),
    /// The server at that address does not speak Parlor.
    #[error("{addr} does not speak Parlor: {detail}")]
    NotParlor {
        /// The address tried.
        addr: SocketAddr,
        /// What it sent or did instead.
        detail: String,
    },
    /// An unencrypted WebSocket to another machine was requested.
    #[error("{addr} is another machine, and ws:// has no encryption: use wss://")]
    PlainBeyondLoopback {
        /// The requested address.
        addr: SocketAddr,
    },
    /// The server closed the connection during the handshake.
    #[error("{addr} closed the connection at once: {code} {reason}")]
    ClosedByPeer {
        /// The server.
        addr: SocketAddr,
        /// The server's close code.
        code: CloseCode,
        /// The server's reason; may be empty.
        reason: String,
    },
    /// QUIC, TLS or HTTP failed.
    #[error("connecting to {addr} failed: {detail}")]
    Failed {
        /// The address tried.
        addr: SocketAddr,
        /// The library's message.
        detail: String,
    },
}

impl ConnectError {
    pub(crate) fn from_io(addr: SocketAddr, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => ConnectError::Refused { addr },
            io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::AddrNotAvailable => {
                ConnectError::Unreachable { addr, detail: error.to_string() }
            }
            _ => ConnectError::Failed { addr, detail: error.to_string() },
        }
    }
}

/// Resolves a server's addresses, in the system's order of preference; at least one. `host` may be an address
/// (IPv6 without brackets).
///
/// # Errors
/// [`ConnectError::NameResolution`].
pub async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let failed = |detail: String| ConnectError::NameResolution { host: host.to_owned(), detail };
    let found: Vec<_> =
        tokio::net::lookup_host((host, port)).await.map_err(|error| failed(error.to_string()))?.collect();
    if found.is_empty() { Err(failed("it has no address".to_owned())) } else { Ok(found) }
}
