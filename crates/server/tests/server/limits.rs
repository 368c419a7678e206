//! What there may be at once.

use crate::client::{creating, joining, within};
use crate::common::TestServer;
use parlor_proto::wire::handshake::Refusal;
use parlor_transport::ConnectError;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away_and_counted() {
    let server = TestServer::start_with(|config, _| config.connections_max = 1).await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    assert_eq!(server.quic_link().await.unwrap_err(), ConnectError::Busy { addr: server.addr() });

    let mut guest = server.websocket(true, joining(code, None)).await;
    guest.welcome().await;
    within(async {
        let mut late = TcpStream::connect(server.addr()).await.unwrap();
        // End or error: closed either way.
        assert_eq!(late.read(&mut [0]).await.unwrap_or(0), 0);
    })
    .await;
    let stats = server.server.stats().await;
    assert_eq!((stats.tcp_connections, stats.tcp_turned_away), (1, 1));
    assert_eq!((stats.quic_connections, stats.quic_turned_away), (1, 1));

    host.joined(2).await;
    guest.joined(2).await;
    guest.say("in").await;
    assert_eq!(host.heard().await.1, "in");
    guest.leave().await;
    guest.ended().await;
    // The place is free again once the server has seen the end of the connection.
    within(async {
        while server.server.stats().await.tcp_connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut next = server.websocket(true, joining(code, None)).await;
    next.welcome().await;
}

#[tokio::test]
async fn rooms_beyond_the_limit_are_refused() {
    let server = TestServer::start_with(|config, _| config.rooms_max = 1).await;
    let mut host = server.quic(creating(None, None, 4)).await;
    host.welcome().await;
    let mut late = server.quic(creating(None, None, 4)).await;
    assert_eq!(late.refusal().await, Refusal::ServerFull);
}
