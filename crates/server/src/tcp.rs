//! The TCP port: HTTPS and WebSocket, and plain HTTP for local processes.

use crate::access::Access;
use crate::connection;
use crate::connection_limit::TcpLimit;
use crate::handshakes::Verdict;
use crate::http::{self, Purpose, Site, Upgrade, UpgradeSlot};
use crate::seldom::Seldom;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use hyper_util::rt::TokioIo;
use parlor_transport::ServerTls;
use parlor_transport::impaired::Conditions;
use parlor_transport::tls::{Sniffed, sniff_impaired};
use parlor_transport::websocket::{self, Io};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Pause after an error of accept, which usually means no free file descriptors. They are freed only as
/// connections end, and retries without a pause would take a whole core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections. Each has a task that ends with this one.
pub(crate) async fn accept(
    listener: TcpListener,
    limit: TcpLimit,
    access: Access,
    tls: ServerTls,
    conditions: Option<Conditions>,
    site: Site,
) {
    let mut connections = JoinSet::new();
    let mut exhausted = Seldom::default();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, remote)) => {
                    // Before any byte is read, and above all before TLS. TCP has verified the address.
                    if access.handshake(remote.ip(), true) != Verdict::Begin {
                        limit.places.turn_away();
                        continue;
                    }
                    // Beyond its address's share a connection is closed at once; a queue would only delay
                    // that.
                    let Some(entered) = limit.enter(access.origin(remote.ip())) else { continue };
                    let (tls, conditions, site) = (tls.clone(), conditions.clone(), site.clone());
                    connections.spawn(async move {
                        serve(stream, remote, entered.is_of_reserve, &tls, conditions.as_ref(), &site).await;
                        drop(entered);
                    });
                }
                Err(error) => {
                    if let Some(unsaid) = exhausted.may_say() {
                        tracing::warn!(
                            %error, unsaid,
                            "a TCP connection could not be accepted; where too many files are open, raise their limit (ulimit -n)"
                        );
                    }
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

async fn serve(
    stream: TcpStream,
    remote: SocketAddr,
    is_of_reserve: bool,
    tls: &ServerTls,
    conditions: Option<&Conditions>,
    site: &Site,
) {
    // The futures before the link are boxed, here and below, so that a link's task does not hold their memory
    // for its whole life.
    match Box::pin(sniff_impaired(stream, remote, tls, conditions, site.handshake_time())).await {
        Ok(Sniffed::Tls(stream)) => serve_http(stream, remote, is_of_reserve, site).await,
        Ok(Sniffed::Plain(stream)) if may_be_plain(remote.ip()) => {
            serve_http(stream, remote, is_of_reserve, site).await
        }
        Ok(Sniffed::Plain(stream)) => {
            tracing::debug!(%remote, "a plain connection from another machine was told to use TLS");
            Box::pin(http::turn_away_plain(stream, site.handshake_time())).await;
        }
        Err(error) => tracing::debug!(%error, "a TCP client did not get in"),
    }
}

/// Only local processes are served without TLS, because no network is in between.
fn may_be_plain(remote: IpAddr) -> bool {
    remote.to_canonical().is_loopback()
}

/// Answers one request, or upgrades it to a WebSocket.
async fn serve_http(io: impl Io, remote: SocketAddr, is_of_reserve: bool, site: &Site) {
    let slot = UpgradeSlot::default();
    Box::pin(http::serve(io, remote, is_of_reserve, site, &slot)).await;
    let Some(Upgrade { on, origin, purpose }) = slot.take() else { return };
    match (on.await, purpose) {
        (Ok(upgraded), Purpose::Link) => {
            let link = websocket::accept(TokioIo::new(upgraded), remote).await;
            connection::serve(link, origin, site.shard()).await;
        }
        (Ok(upgraded), Purpose::Operations { services, token }) => {
            services.serve_socket(TokioIo::new(upgraded), origin, token).await;
        }
        (Err(error), _) => {
            tracing::debug!(%remote, %error, "a WebSocket client went away during its upgrade")
        }
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
