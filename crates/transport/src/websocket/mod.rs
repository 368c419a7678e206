//! WebSocket, for networks that block UDP and for browsers without WebTransport. Each binary message is one
//! packet; all arrive in order. Text is an error. The subprotocol is `parlor`.

pub(crate) mod link;

use crate::connect::ConnectError;
use crate::impaired::{Conditions, Wire};
pub use crate::io::Io;
use crate::link::Link;
use crate::tls;
use crate::trust::Trust;
use core::net::{Ipv6Addr, SocketAddr};
use core::time::Duration;
use std::io;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::{ClientRequestBuilder, IntoClientRequest};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::http::{StatusCode, Uri};
use tokio_tungstenite::tungstenite::{self, protocol::Role};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// The subprotocol of both ends (`Sec-WebSocket-Protocol`).
pub const SUBPROTOCOL: &str = "parlor";

/// Creates a link from a connection after its HTTP upgrade, on the server's side. The upgrade must have
/// checked that the client requested the [`SUBPROTOCOL`] and answered with it and with [`accept_key`]. Bytes
/// that the HTTP server read ahead must be readable from `io` again. Must be called in a tokio runtime.
pub async fn accept(io: impl Io, remote: SocketAddr) -> Link {
    let io: link::BoxIo = Box::new(io);
    let socket = WebSocketStream::from_raw_socket(io, Role::Server, Some(link::config())).await;
    link::establish(socket, remote)
}

/// Returns `Sec-WebSocket-Accept` for a `Sec-WebSocket-Key`.
pub fn accept_key(sec_websocket_key: &str) -> String {
    derive_accept_key(sec_websocket_key.as_bytes())
}

/// The address of a WebSocket server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Whether to use TLS (`wss`). Without it (`ws`) the address must be this machine's own.
    pub secure: bool,
    /// The address to connect to.
    pub addr: SocketAddr,
    /// The server's name, without port, for the request. With [`Trust::System`] and [`Trust::Roots`] the
    /// certificate must be valid for it. May be an address (IPv6 without brackets).
    pub host: String,
    /// The path, beginning with a slash, with an optional query.
    pub path: String,
}

/// Connects to a WebSocket server within `deadline`. Must be called in a tokio runtime. Cancel-safe.
///
/// # Errors
/// [`ConnectError`]; a dead port is [`Refused`](ConnectError::Refused) at once.
pub async fn connect(target: &Target, trust: &Trust, deadline: Duration) -> Result<Link, ConnectError> {
    connect_impaired(target, trust, deadline, None).await
}

/// [`connect`] with an impaired network, if there are conditions.
///
/// # Errors
/// As for [`connect`].
pub async fn connect_impaired(
    target: &Target,
    trust: &Trust,
    deadline: Duration,
    conditions: Option<&Conditions>,
) -> Result<Link, ConnectError> {
    let addr = target.addr;
    if !target.secure && !addr.ip().to_canonical().is_loopback() {
        return Err(ConnectError::PlainBeyondLoopback { addr });
    }
    let timed_out = |_| ConnectError::TimedOut { addr, waited: deadline };
    timeout(deadline, open(target, trust, conditions)).await.map_err(timed_out)?
}

/// [`connect`] over an existing connection to the target's address, for instance from a certain local
/// address.
///
/// # Errors
/// As for [`connect`].
pub async fn connect_over(
    stream: TcpStream,
    target: &Target,
    trust: &Trust,
    deadline: Duration,
) -> Result<Link, ConnectError> {
    let addr = target.addr;
    if !target.secure && !addr.ip().to_canonical().is_loopback() {
        return Err(ConnectError::PlainBeyondLoopback { addr });
    }
    let timed_out = |_| ConnectError::TimedOut { addr, waited: deadline };
    timeout(deadline, upgrade(stream, target, trust, None)).await.map_err(timed_out)?
}

async fn open(target: &Target, trust: &Trust, conditions: Option<&Conditions>) -> Result<Link, ConnectError> {
    let addr = target.addr;
    let stream = TcpStream::connect(addr).await.map_err(|error| ConnectError::from_io(addr, &error))?;
    upgrade(stream, target, trust, conditions).await
}

async fn upgrade(
    stream: TcpStream,
    target: &Target,
    trust: &Trust,
    conditions: Option<&Conditions>,
) -> Result<Link, ConnectError> {
    let addr = target.addr;
    let request = request(target)?;
    let failed = |error: io::Error| ConnectError::from_io(addr, &error);
    tls::prepare(&stream).map_err(failed)?;
    let stream = Wire::new(stream, conditions);
    let io: link::BoxIo = if target.secure {
        Box::new(tls::connect(stream, addr, &target.host, trust).await?)
    } else {
        Box::new(stream)
    };
    let (socket, _) = client_async_with_config(request, io, Some(link::config()))
        .await
        .map_err(|error| upgrade_failed(addr, error))?;
    Ok(link::establish(socket, addr))
}

fn request(target: &Target) -> Result<tungstenite::handshake::client::Request, ConnectError> {
    let invalid = || ConnectError::InvalidName(format!("{}{}", target.host, target.path));
    let host = if target.host.parse::<Ipv6Addr>().is_ok() {
        format!("[{}]", target.host)
    } else {
        target.host.clone()
    };
    let uri = Uri::builder()
        .scheme(if target.secure { "wss" } else { "ws" })
        .authority(format!("{host}:{}", target.addr.port()))
        .path_and_query(target.path.as_str())
        .build()
        .map_err(|_| invalid())?;
    let request = ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL);
    request.into_client_request().map_err(|_| invalid())
}

/// Whether a status means that the server may accept the client later.
fn is_busy(status: StatusCode) -> bool {
    matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS)
}

fn upgrade_failed(addr: SocketAddr, error: tungstenite::Error) -> ConnectError {
    match error {
        tungstenite::Error::Io(error) => ConnectError::from_io(addr, &error),
        tungstenite::Error::Http(response) if is_busy(response.status()) => ConnectError::Busy { addr },
        tungstenite::Error::Http(response) => ConnectError::NotParlor {
            addr,
            detail: format!(
                "it answers with the HTTP status {} where a WebSocket was asked for",
                response.status()
            ),
        },
        error => ConnectError::NotParlor { addr, detail: error.to_string() },
    }
}
