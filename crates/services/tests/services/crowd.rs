//! Clients that take every connection, and sockets that never sign in.

use crate::hall::Hall;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use parlor_services::store::Role;
use parlor_testing::{Answer, TestServer, within};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

/// All places of the server, on TCP.
const PLACES: usize = 300;
/// What one address may have of them.
const SHARE: usize = PLACES / 8;
const GREEDY: Ipv4Addr = Ipv4Addr::new(127, 0, 9, 1);

/// A server with services that counts this machine's connections like all others, and no handshake too many.
async fn hall() -> Hall {
    Hall::changed(|setup| {
        (setup.config.limits_local, setup.config.connections_max) = (true, PLACES);
        (setup.config.handshakes_per_second, setup.config.handshakes_per_second_all) = (10_000, 10_000);
    })
    .await
}

pub(crate) async fn tcp_from(from: Ipv4Addr, addr: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    within(socket.connect(addr)).await.unwrap()
}

/// A JSON socket, if there is a place for it.
async fn socket_from(from: Ipv4Addr, hall: &Hall) -> Option<WebSocketStream<TcpStream>> {
    let stream = tcp_from(from, hall.server.addr()).await;
    within(client_async("ws://localhost/v1/socket", stream)).await.ok().map(|(socket, _)| socket)
}

/// Takes as many places as an address gets, of all that there are.
async fn crowd(from: Ipv4Addr, hall: &Hall) -> Vec<WebSocketStream<TcpStream>> {
    let sockets = join_all((0..PLACES).map(|_| socket_from(from, hall))).await;
    sockets.into_iter().flatten().collect()
}

async fn ask_from(from: Ipv4Addr, server: &TestServer, request: &str) -> Answer {
    let mut stream = tcp_from(from, server.addr()).await;
    let request = format!("{request}Host: localhost\r\nConnection: close\r\n\r\n");
    within(async {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        Answer::new(answer)
    })
    .await
}

#[tokio::test]
async fn threat_47_one_address_that_takes_all_connections_leaves_the_others_theirs() {
    let hall = hall().await;
    let crowd = crowd(GREEDY, &hall).await;
    assert_eq!(crowd.len(), SHARE);
    assert_eq!(hall.server.server.stats().await.tcp_turned_away, (PLACES - SHARE) as u64);
    for number in 1..=20 {
        let from = Ipv4Addr::new(127, 0, 10 + number, 1);
        let health = ask_from(from, &hall.server, "GET /health HTTP/1.1\r\n").await;
        assert_eq!((health.status(), health.body()), (200, "ok\n"));
        assert!(socket_from(from, &hall).await.is_some(), "number {number} of the others");
    }
    let (mut host, mut guest, code) = hall.server.room().await;
    hall.server.assert_goes_on(&mut host, &mut guest, code).await;
    // What is given back is there again for whoever had it.
    drop(crowd);
    within(async {
        while socket_from(GREEDY, &hall).await.is_none() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn threat_47_where_every_place_is_taken_health_and_operators_are_answered() {
    let hall = hall().await;
    let mallory = hall.operator_named(Role::Admin, "mallory", "production");
    let ban = json!({ "account": "mallory", "operator": true, "reason": "left" });
    hall.good("POST", "/admin/bans", &hall.operator(Role::Admin), ban).await;
    let mut all = Vec::new();
    // Addresses of different neighbourhoods, until nobody finds a place any more.
    for number in 0..=8 {
        all.push(crowd(Ipv4Addr::new(127, 0, 100 + number, 1), &hall).await);
    }
    let taken: usize = all.iter().map(Vec::len).sum();
    assert_eq!((taken, hall.server.server.stats().await.tcp_connections), (PLACES, PLACES));
    let other = Ipv4Addr::new(127, 0, 200, 1);
    let ask = async |line: &str| ask_from(other, &hall.server, line).await;
    let (admin, player) = (hall.operator(Role::Admin), "no.token.atall");
    // As often as anybody likes: each gives its place back.
    for _ in 0..20 {
        assert_eq!(ask("GET /health HTTP/1.1\r\n").await.status(), 200);
        assert_eq!(ask("GET /ready HTTP/1.1\r\n").await.status(), 200);
        let rooms = format!("GET /v1/admin/live HTTP/1.1\r\nAuthorization: Bearer {admin}\r\n");
        let rooms = ask(&rooms).await;
        assert_ne!(rooms.status(), 503, "{rooms:?}");
        for line in [
            "GET / HTTP/1.1\r\n".to_owned(),
            "GET /v1/openapi.json HTTP/1.1\r\n".to_owned(),
            format!("GET /v1/admin/live HTTP/1.1\r\nAuthorization: Bearer {player}\r\n"),
            format!("GET /v1/admin/live HTTP/1.1\r\nAuthorization: Bearer {mallory}\r\n"),
            format!("GET /rooms/K7QM HTTP/1.1\r\nAuthorization: Bearer {admin}\r\n"),
        ] {
            let full = ask(&line).await;
            assert_eq!(
                (full.status(), &full.json()["error"]["code"]),
                (503, &json!("server_full")),
                "{line}"
            );
            assert!(full.head().contains("retry-after: "), "{full:?}");
        }
    }
}

#[tokio::test]
async fn threat_47_a_socket_that_nobody_signs_in_to_is_closed_in_time_whatever_comes() {
    let hall = Hall::changed(|setup| {
        setup.online.sign_in_time = Duration::from_millis(500);
    })
    .await;
    let wrong = json!({
        "id": 1, "op": "auth.refresh", "input": { "app": "tanks", "refresh_token": "no.token.atall" }
    });
    let sayings = [
        Message::Ping("are you there?".into()),
        Message::Pong("I am".into()),
        Message::Text(wrong.to_string().into()),
        Message::Text("nonsense".into()),
    ];
    let talking = sayings.into_iter().cycle().take(40).map(|saying| {
        let hall = &hall;
        async move {
            let mut socket = hall.socket().await.socket;
            loop {
                // Signed in it would go on for ever. What is not answered is said once.
                let _ = socket.send(saying.clone()).await;
                match socket.next().await {
                    Some(Ok(Message::Close(Some(frame)))) => {
                        assert_eq!(frame.code, CloseCode::Policy);
                        assert!(frame.reason.contains("signed in"), "{frame:?}");
                        return;
                    }
                    Some(Ok(_)) => {}
                    ended => panic!("{ended:?}"),
                }
            }
        }
    });
    within(join_all(talking)).await;
}
