//! Connecting to a host by TCP, with or without TLS.

use super::error::NetError;
use super::options::Options;
use core::net::SocketAddr;
use core::time::Duration;
use parlor_transport::websocket::Io;
use parlor_transport::{ConnectError, connect, tls};
use std::io;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

pub(super) type BoxIo = Box<dyn Io>;

/// Connects to the first address of a host that answers.
pub(super) async fn tcp(
    host: &str,
    port: u16,
    options: &Options,
) -> Result<(TcpStream, SocketAddr), NetError> {
    let deadline = Instant::now() + options.patience;
    let addresses = resolve(host, port, options, deadline).await?;
    let mut last = None;
    for (index, addr) in addresses.iter().copied().enumerate() {
        // The remaining time is shared, so that one address that drops packets does not use up the time of
        // the others.
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - index).unwrap_or(u32::MAX);
        match timeout_at(Instant::now() + share, TcpStream::connect(addr)).await {
            Ok(Ok(stream)) => {
                // A game sends small messages often.
                let _ = stream.set_nodelay(true);
                return Ok((stream, addr));
            }
            Ok(Err(error)) => last = Some(failed(addr, &error)),
            Err(_) => last = Some(ConnectError::TimedOut { addr, waited: share }),
        }
    }
    let nowhere =
        || ConnectError::NameResolution { host: host.to_owned(), detail: "it has no address".to_owned() };
    Err(NetError::Connect(last.unwrap_or_else(nowhere)))
}

/// Connects, with TLS if requested.
pub(super) async fn stream(
    host: &str,
    port: u16,
    is_secure: bool,
    options: &Options,
) -> Result<BoxIo, NetError> {
    let began = Instant::now();
    let (stream, addr) = tcp(host, port, options).await?;
    if !is_secure {
        return Ok(Box::new(stream));
    }
    let securing = tls::connect(stream, addr, host, &options.trust);
    let timed_out = |_| ConnectError::TimedOut { addr, waited: options.patience };
    let stream = timeout_at(began + options.patience, securing).await.map_err(timed_out)??;
    Ok(Box::new(stream))
}

/// Resolves a host into at least one address.
pub(super) async fn resolve(
    host: &str,
    port: u16,
    options: &Options,
    deadline: Instant,
) -> Result<Vec<SocketAddr>, NetError> {
    let too_slow = |waited: Duration| ConnectError::NameResolution {
        host: host.to_owned(),
        detail: format!("nobody answered within {} ms", waited.as_millis()),
    };
    let found = timeout_at(deadline, connect::resolve(host, port)).await;
    Ok(found.map_err(|_| too_slow(options.patience))??)
}

fn failed(addr: SocketAddr, error: &io::Error) -> ConnectError {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused { addr },
        _ => ConnectError::Unreachable { addr, detail: error.to_string() },
    }
}
