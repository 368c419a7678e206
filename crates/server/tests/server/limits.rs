//! Limits of rooms and connections.

use futures_util::future::join_all;
use parlor_proto::wire::handshake::Refusal;
use parlor_server::{Config, STATE_MEMORY_MIN, Server};
use parlor_testing::{HANG, TestServer, creating, dial, joining, local, within};
use parlor_transport::{ConnectError, websocket};

#[tokio::test]
async fn connections_beyond_the_limit_are_turned_away_and_counted() {
    let server = TestServer::start_with(|config, _| config.connections_max = 1).await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    assert_eq!(server.quic_link().await.unwrap_err(), ConnectError::Busy { addr: server.addr() });

    let mut guest = server.websocket(true, joining(code, None)).await;
    guest.welcome().await;
    within(async {
        let front = server.get("/").await;
        assert_eq!((front.status(), &front.json()["error"]["code"]), (503, &"server_full".into()));
    })
    .await;
    let websocket = websocket::connect(&server.target(true), &server.trust(), HANG).await;
    assert_eq!(websocket.unwrap_err(), ConnectError::Busy { addr: server.addr() });
    let stats = server.server.stats().await;
    assert_eq!((stats.tcp_connections, stats.tcp_turned_away), (1, 2));
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

#[tokio::test]
async fn threat_47_one_address_has_its_share_of_quic_connections() {
    const SHARE: usize = 4;
    let server = TestServer::start_with(|config, _| {
        config.limits_local = true;
        (config.connections_max, config.connections_per_address) = (40, Some(SHARE));
    })
    .await;
    let fingerprint = server.server.fingerprint().unwrap();
    let dialled = join_all((0..40).map(|_| dial(server.addr(), fingerprint))).await;
    for dialled in &dialled {
        assert!(matches!(dialled, Ok(_) | Err(ConnectError::Busy { .. })), "{dialled:?}");
    }
    // Some may have got as far as to show their address, and were closed then.
    within(async {
        while server.server.stats().await.quic_connections > SHARE {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let stats = server.server.stats().await;
    assert_eq!((stats.quic_connections, stats.quic_turned_away), (SHARE, 40 - SHARE as u64));
}

#[tokio::test]
async fn a_server_takes_half_of_the_memory_for_the_state_of_rooms_unless_it_is_told() {
    let Config { state_memory, .. } = local();
    assert!(state_memory.room <= state_memory.origin && state_memory.origin < state_memory.all);
    assert!(state_memory.all >= STATE_MEMORY_MIN);
    Server::start(local()).await.unwrap().shutdown().await;
}
