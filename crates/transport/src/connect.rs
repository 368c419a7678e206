//! Why no link came to be, on the client's side, for a person and for a program that tries another way.

use crate::closed::CloseCode;
use crate::identity::Fingerprint;
use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use thiserror::Error;

/// Why a client could not connect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The name of the server has no address.
    #[error("the address of {host} could not be found: {detail}. Check the name and the network")]
    NameResolution {
        /// The name.
        host: String,
        /// What the system says.
        detail: String,
    },
    /// The name can be no server's.
    #[error("{0:?} is not the name or address of a server")]
    InvalidName(String),
    /// The machine answers that nothing listens there.
    #[error("{addr} refused the connection: no server is running there")]
    Refused {
        /// The address tried.
        addr: SocketAddr,
    },
    /// No way leads there.
    #[error("{addr} cannot be reached: {detail}")]
    Unreachable {
        /// The address tried.
        addr: SocketAddr,
        /// What the system says.
        detail: String,
    },
    /// Nothing answered in time: no server runs there, or the network blocks the way (many block UDP).
    #[error(
        "{addr} did not answer within {} ms: no server is running there, or the network blocks the way",
        waited.as_millis()
    )]
    TimedOut {
        /// The address tried.
        addr: SocketAddr,
        /// How long.
        waited: Duration,
    },
    /// The server has too many handshakes under way; try again later.
    #[error("{addr} is busy: try again in a moment")]
    Busy {
        /// The server.
        addr: SocketAddr,
    },
    /// The server proved to be another one than the one expected.
    #[error(
        "the server has another certificate than expected: {found} and not {expected}. It was set up anew, the \
         fingerprint is mistyped, or somebody is in between"
    )]
    WrongFingerprint {
        /// The fingerprint asked for.
        expected: Fingerprint,
        /// The fingerprint of what the server has.
        found: Fingerprint,
    },
    /// The server's certificate is not vouched for by whom the client trusts, or it is for another name.
    #[error("the server's certificate is not trusted: {0}")]
    UntrustedCertificate(String),
    /// What the client shall trust cannot be read.
    #[error("what to trust could not be read: {0}")]
    TrustUnreadable(String),
    /// Something else than Parlor answers there.
    #[error("{addr} does not speak Parlor: {detail}")]
    NotParlor {
        /// The address tried.
        addr: SocketAddr,
        /// What it does instead.
        detail: String,
    },
    /// A WebSocket without encryption was asked for beyond this machine.
    #[error("{addr} is another machine, and ws:// has no encryption: use wss://")]
    PlainBeyondLoopback {
        /// The address asked for.
        addr: SocketAddr,
    },
    /// The server closed while the connection was made.
    #[error("{addr} closed the connection at once: {code} {reason}")]
    ClosedByPeer {
        /// The server.
        addr: SocketAddr,
        /// Its code.
        code: CloseCode,
        /// What it says about it; may be empty.
        reason: String,
    },
    /// QUIC, TLS or HTTP failed.
    #[error("connecting to {addr} failed: {detail}")]
    Failed {
        /// The address tried.
        addr: SocketAddr,
        /// What the library says.
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

/// The addresses of a server, in the system's order of preference; at least one. `host` may be an address (IPv6
/// without brackets).
///
/// # Errors
/// [`ConnectError::NameResolution`].
pub async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let failed = |detail: String| ConnectError::NameResolution { host: host.to_owned(), detail };
    let found: Vec<_> =
        tokio::net::lookup_host((host, port)).await.map_err(|error| failed(error.to_string()))?.collect();
    if found.is_empty() { Err(failed("it has no address".to_owned())) } else { Ok(found) }
}
