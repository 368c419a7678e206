//! UDP: datagrams to and from one address.

use super::connection::{Connection, Event, Outgoing, Pipes};
use super::dial;
use super::error::{Closed, NetError};
use super::options::Options;
use super::queue::NotPut;
use bytes::Bytes;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use parlor_transport::ConnectError;
use std::io;
use std::sync::atomic::Ordering;
use tokio::net::UdpSocket;
use tokio::time::Instant;

/// Maximum payload in bytes of a datagram over IPv4. Datagrams of more than about 1,200 bytes are fragmented,
/// and each fragment may be lost.
pub const UDP_MESSAGE_BYTES_MAX: usize = 65_507;

/// Maximum length in bytes of any datagram, IPv6 included.
pub(super) const DATAGRAM_BYTES_MAX: usize = u16::MAX as usize;

pub(super) fn open(host: &str, port: u16, options: Options) -> Connection {
    let host = host.to_owned();
    let options =
        Options { message_bytes_max: options.message_bytes_max.min(UDP_MESSAGE_BYTES_MAX), ..options };
    Connection::begin(options, false, |pipes, options| async move {
        match connect(&host, port, &options).await {
            Ok(socket) => {
                pipes.inbound.put(Event::Open, 0).await;
                tokio::select! {
                    closed = receive(&pipes, &socket) => closed,
                    closed = send(&pipes, &socket) => closed,
                }
            }
            Err(error) => Closed::NotOpened(error),
        }
    })
}

/// A socket connected to one address.
async fn connect(host: &str, port: u16, options: &Options) -> Result<UdpSocket, NetError> {
    let addresses = dial::resolve(host, port, options, Instant::now() + options.patience).await?;
    let mut last = None;
    for addr in addresses {
        let any = match addr {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let connecting = async {
            let socket = UdpSocket::bind(any).await?;
            socket.connect(addr).await?;
            Ok::<_, io::Error>(socket)
        };
        match connecting.await {
            Ok(socket) => return Ok(socket),
            Err(error) => last = Some(ConnectError::Unreachable { addr, detail: error.to_string() }),
        }
    }
    let nowhere =
        || ConnectError::NameResolution { host: host.to_owned(), detail: "it has no address".to_owned() };
    Err(NetError::Connect(last.unwrap_or_else(nowhere)))
}

async fn receive(pipes: &Pipes, socket: &UdpSocket) -> Closed {
    let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
    loop {
        match socket.recv(&mut buffer).await {
            Ok(len) => {
                let datagram = Event::Message(Bytes::copy_from_slice(&buffer[..len]));
                if pipes.inbound.try_put(datagram, len) == Err(NotPut::Full) {
                    pipes.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Closed::Broken(error.to_string()),
        }
    }
}

async fn send(pipes: &Pipes, socket: &UdpSocket) -> Closed {
    while let Some(message) = pipes.outbound.take().await {
        let bytes = match &message {
            Outgoing::Bytes(bytes) => bytes.as_ref(),
            Outgoing::Text(text) => text.as_bytes(),
        };
        // A datagram that the system refuses counts as lost.
        if socket.send(bytes).await.is_err() {
            pipes.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
    Closed::Here
}

/// Whether a socket's error reports an earlier datagram: port unreachable or no route. Both may be
/// temporary.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::NetworkDown
            | io::ErrorKind::Interrupted
    )
}
