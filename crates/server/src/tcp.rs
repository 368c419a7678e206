//! The TCP port: HTTPS and WebSocket, and plain HTTP for this machine's own processes.

use crate::connection;
use crate::gate::Gate;
use crate::http::{self, Site, UpgradeSlot};
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hyper_util::rt::TokioIo;
use parlor_transport::ServerTls;
use parlor_transport::tls::{Sniffed, sniff};
use parlor_transport::websocket::{self, Io};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How long to wait when the system gives no connection, for want of file descriptors presumably. They come back only
/// as connections end, and asking without a pause would take a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Takes connections. Each has a task that ends with this one.
pub(crate) async fn accept(listener: TcpListener, gate: Gate, tls: ServerTls, site: Site) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    // Beyond the limit a connection is closed at once: a queue would only hold it up until it is.
                    let Some(pass) = gate.enter() else { continue };
                    let (tls, site) = (tls.clone(), site.clone());
                    connections.spawn(async move {
                        serve(stream, remote, &tls, &site).await;
                        drop(pass);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a TCP connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(ended) = connections.join_next() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "the task of a TCP connection failed; please report this");
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, remote: SocketAddr, tls: &ServerTls, site: &Site) {
    match sniff(stream, remote, tls).await {
        Ok(Sniffed::Tls(stream)) => serve_http(*stream, remote, site).await,
        Ok(Sniffed::Plain(stream)) if may_be_plain(remote.ip()) => serve_http(stream, remote, site).await,
        Ok(Sniffed::Plain(stream)) => {
            tracing::debug!(%remote, "a plain connection from another machine was told to use TLS");
            http::turn_away_plain(stream).await;
        }
        Err(error) => tracing::debug!(%error, "a TCP client did not get in"),
    }
}

/// Without TLS only this machine's own processes are served: nobody stands between.
fn may_be_plain(remote: IpAddr) -> bool {
    remote.to_canonical().is_loopback()
}

/// Answers one request, and goes on as a WebSocket if that is what was asked for.
async fn serve_http(io: impl Io, remote: SocketAddr, site: &Site) {
    let slot = UpgradeSlot::default();
    http::serve(io, site, &slot).await;
    let Some(upgrade) = slot.take() else { return };
    match upgrade.await {
        Ok(upgraded) => {
            let link = websocket::accept(TokioIo::new(upgraded), remote).await;
            connection::serve(link, site.shard()).await;
        }
        Err(error) => tracing::debug!(%remote, %error, "a WebSocket client went away during its upgrade"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_may_do_without_tls() {
        for own in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(may_be_plain(own.parse().unwrap()), "{own}");
        }
        for other in
            ["192.168.1.2", "10.0.0.1", "0.0.0.0", "::", "fe80::1", "::ffff:192.0.2.1", "2001:db8::1"]
        {
            assert!(!may_be_plain(other.parse().unwrap()), "{other}");
        }
    }
}
