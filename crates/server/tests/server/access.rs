//! Access control over real sockets: floods, guesses, tokens and slow clients are limited, and others are
//! not.

use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use futures_util::future::join_all;
use parlor_proto::RoomCode;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::wire::handshake::{Auth, Hello, Refusal, RetryAfter};
use parlor_server::admission::{PermitFor, Policy, SigningKey, TokenRequest};
use parlor_testing::{Answer, Client, TestServer, creating, dial, joining, within};
use parlor_transport::quic::IDLE_TIMEOUT;
use parlor_transport::{ConnectError, Link};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Another address of this machine, and of another neighbourhood than 127.0.0.1.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 9, 1);

/// A server that counts this machine's connections like all others.
async fn strict(handshakes_per_second: u32) -> TestServer {
    TestServer::start_with(|config, _| {
        (config.limits_local, config.handshakes_per_second) = (true, handshakes_per_second);
    })
    .await
}

async fn tcp_from(from: Ipv4Addr, server: &TestServer) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    within(socket.connect(server.addr())).await.unwrap()
}

/// Asks from an address and reads until the server closes. Nothing is answered to whoever is turned away at once.
async fn ask_from(from: Ipv4Addr, server: &TestServer, path: &str) -> Option<Answer> {
    let mut stream = tcp_from(from, server).await;
    within(async {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut answer = Vec::new();
        stream.write_all(request.as_bytes()).await.ok()?;
        stream.read_to_end(&mut answer).await.ok()?;
        (!answer.is_empty()).then(|| Answer::new(answer))
    })
    .await
}

#[tokio::test]
async fn threat_02_a_flood_from_one_address_leaves_the_others_their_handshakes() {
    // Five at once, and one more each second: far below what follows.
    let server = strict(1).await;
    let flood = (0..200).map(|_| ask_from(ELSEWHERE, &server, "/health"));
    let served = join_all(flood).await.into_iter().flatten().count();
    assert!((5..50).contains(&served), "{served} of 200");
    assert!(server.server.stats().await.tcp_turned_away >= 150);
    // Another address gets in by every way meanwhile.
    let (host, mut guest, code) = server.room().await;
    host.say("hello").await;
    assert_eq!(guest.heard().await.1, "hello");
    let room = server.get(&format!("/rooms/{code}")).await;
    assert_eq!(room.json()["players"], 2);
}

#[tokio::test]
async fn threat_02_a_flood_of_quic_handshakes_is_asked_for_proof_and_then_refused() {
    let server = strict(1).await;
    let fingerprint = server.server.fingerprint().unwrap();
    let dialled = join_all((0..60).map(|_| dial(server.addr(), fingerprint))).await;
    let links: Vec<Link> = dialled
        .into_iter()
        .filter_map(|dialled| match dialled {
            Ok(link) => Some(link),
            Err(error) => {
                assert_eq!(error, ConnectError::Busy { addr: server.addr() });
                None
            }
        })
        .collect();
    // Without proof five, with it five more, and one of each for every second that it took.
    assert!((10..50).contains(&links.len()), "{} of 60", links.len());
    assert!(server.server.stats().await.quic_turned_away >= 10);
    // Those who are in stay in, and whoever comes from elsewhere is let in.
    let mut host = Client::new(links.into_iter().next().unwrap(), creating(None, None, 4));
    let code = host.welcome().await.code;
    let answer = ask_from(ELSEWHERE, &server, &format!("/rooms/{code}")).await.expect("it is let in");
    assert_eq!(answer.json()["players"], 1);
}

fn far(number: u32) -> RoomCode {
    format!("NO{number}NE").parse().unwrap()
}

async fn told_to_wait(client: &mut Client) -> RetryAfter {
    match client.event().await {
        Event::Rejected(Rejection::RetryAfter(retry)) => retry,
        event => panic!("{event:?}"),
    }
}

#[tokio::test]
async fn threat_10_guesses_over_http_and_in_hellos_share_one_budget() {
    let server = strict(1_000).await;
    let (host, mut guest, code) = server.room().await;
    let mut looked_up = 0;
    for (number, path) in (10..50).zip(["rooms", "join"].into_iter().cycle()) {
        let answer = server.get(&format!("/{path}/{}", far(number))).await;
        match answer.status() {
            404 => looked_up += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert!((20..25).contains(&looked_up), "{looked_up}");
    // The right code is not looked up either, by whichever way.
    for path in ["rooms", "join"] {
        let (right, wrong) = (format!("/{path}/{code}"), format!("/{path}/{}", far(99)));
        let (right, wrong) = (server.get(&right).await, server.get(&wrong).await);
        assert_eq!((right.status(), wrong.status()), (429, 429));
        assert!(right.head().contains("retry-after: "), "{right:?}");
    }
    let mut late = server.quic(joining(code, None)).await;
    assert!(told_to_wait(&mut late).await.after <= Duration::from_secs(16));
    let mut late = server.websocket(true, joining(code, None)).await;
    told_to_wait(&mut late).await;
    // Elsewhere nobody notices, and neither does the room.
    let answer = ask_from(ELSEWHERE, &server, &format!("/rooms/{code}")).await.unwrap();
    assert_eq!(answer.json()["players"], 2);
    host.say("hello").await;
    assert_eq!(guest.heard().await.1, "hello");
}

#[tokio::test]
async fn threat_10_a_room_with_a_secret_looks_over_http_as_if_there_were_none() {
    let server = TestServer::start().await;
    let mut host = server.quic(creating(None, Some("sesame"), 4)).await;
    let code = host.welcome().await.code;
    for path in ["rooms", "join"] {
        let there = server.get(&format!("/{path}/{code}")).await;
        let not_there = server.get(&format!("/{path}/NONE")).await;
        assert_eq!(there.status(), 404);
        let length = |answer: &Answer| answer.body().len();
        assert_eq!(there.body().replace(code.as_str(), "NONE"), not_there.body());
        assert_eq!(length(&there) - length(&not_there), code.as_str().len() - 4);
    }
    assert_eq!(server.server.room(code).await.map(|room| room.needs_secret), Some(true));
}

/// A server with a key, and what gives out tokens for it.
async fn with_tokens(is_required: bool) -> (TestServer, SigningKey) {
    let key = SigningKey::generate().unwrap();
    let server = TestServer::start_with(|config, folder| {
        let public = key.write_new(&folder.path().join("admission")).unwrap();
        config.admission = Some(Policy { key: Some(public), is_required });
    })
    .await;
    (server, key)
}

fn token(key: &SigningKey, what: PermitFor) -> Auth {
    let request = TokenRequest { user: "user-1", app: "tanks", environment: "", what };
    Auth::Token(key.token(&request).unwrap().into())
}

#[tokio::test]
async fn threat_03_a_server_with_a_key_lets_in_by_token_once() {
    let (server, key) = with_tokens(true).await;
    let open = token(&key, PermitFor::Create(None));
    let mut host = server.quic(Hello { auth: open.clone(), ..creating(None, None, 4) }).await;
    let code = host.welcome().await.code;
    let join = token(&key, PermitFor::Join(code));
    let mut guest = server.websocket(true, Hello { auth: join.clone(), ..joining(code, None) }).await;
    guest.welcome().await;
    let forged = token(&SigningKey::generate().unwrap(), PermitFor::Join(code));
    let elsewhere = token(&key, PermitFor::Join("K7QM".parse().unwrap()));
    for auth in [Auth::Anonymous, open, join, forged, elsewhere] {
        for over_quic in [true, false] {
            let hello = Hello { auth: auth.clone(), ..joining(code, None) };
            let mut thief =
                if over_quic { server.quic(hello).await } else { server.websocket(true, hello).await };
            assert_eq!(thief.refusal().await, Refusal::Unauthorized, "{auth:?}");
        }
    }
    let mut anonymous = server.quic(creating(None, None, 4)).await;
    assert_eq!(anonymous.refusal().await, Refusal::Unauthorized);
    assert_eq!(server.server.room(code).await.unwrap().players, 2);
}

#[tokio::test]
async fn threat_03_two_shards_accept_a_token_once_together() {
    let key = SigningKey::generate().unwrap();
    let server = TestServer::start_with(|config, folder| {
        let public = key.write_new(&folder.path().join("admission")).unwrap();
        config.admission = Some(Policy { key: Some(public), is_required: true });
        config.shards = core::num::NonZeroU16::new(2).unwrap();
    })
    .await;
    let open = token(&key, PermitFor::Create(None));
    let hello = || Hello { auth: open.clone(), ..creating(None, None, 4) };
    let mut let_in = 0;
    for _ in 0..4 {
        let mut client = server.quic(hello()).await;
        match client.event().await {
            Event::Welcome(_) => let_in += 1,
            Event::Rejected(Rejection::Refused(refusal)) => assert_eq!(refusal, Refusal::Unauthorized),
            Event::Rejected(Rejection::Redirect(redirect)) => {
                let port: u16 = redirect.address.trim_start_matches(':').parse().unwrap();
                let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
                let link = dial(addr, server.server.fingerprint().unwrap()).await.unwrap();
                match Client::new(link, hello()).event().await {
                    Event::Welcome(_) => let_in += 1,
                    event => {
                        let refused = Rejection::Refused(Refusal::Unauthorized);
                        assert_eq!(event, Event::Rejected(refused));
                    }
                }
            }
            event => panic!("{event:?}"),
        }
    }
    assert_eq!(let_in, 1);
}

#[tokio::test]
async fn where_tokens_are_optional_one_comes_in_without() {
    let (server, key) = with_tokens(false).await;
    let mut host = server.quic(creating(None, None, 4)).await;
    let code = host.welcome().await.code;
    let auth = token(&key, PermitFor::Join(code));
    let mut guest = server.quic(Hello { auth: auth.clone(), ..joining(code, None) }).await;
    guest.welcome().await;
    let mut thief = server.quic(Hello { auth, ..joining(code, None) }).await;
    assert_eq!(thief.refusal().await, Refusal::Unauthorized);
}

/// Connects, says a little and then nothing; over when the server hangs up.
async fn dawdle(server: &TestServer, first: &[u8]) {
    let mut stream = TcpStream::connect(server.addr()).await.unwrap();
    stream.write_all(first).await.unwrap();
    // Closed in whichever way: what counts is that it is over.
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

#[tokio::test]
async fn threat_19_a_thousand_slow_connections_are_hung_up_on_and_hold_nobody_up() {
    let server = TestServer::start_with(|config, _| config.handshake_time = Duration::from_secs(2)).await;
    // Silent, at the beginning of TLS, and at two places of a request's head.
    let beginnings: [&[u8]; 4] = [b"", &[0x16], b"G", b"GET /rooms/K7QM HTTP/1.1\r\nHost: x"];
    let slow = join_all((0..1_000).map(|number| dawdle(&server, beginnings[number % 4])));
    let healthy = async {
        // All are there: the healthy come last.
        while server.server.stats().await.tcp_connections < 1_000 {
            tokio::task::yield_now().await;
        }
        server.room().await
    };
    let (_, (mut host, mut guest, code)) = within(async { tokio::join!(slow, healthy) }).await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
    within(async {
        // The guest's WebSocket is left.
        while server.server.stats().await.tcp_connections > 1 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn threat_19_a_quic_handshake_that_does_not_go_on_ends() {
    let server = TestServer::start_with(|config, _| config.handshake_time = Duration::from_millis(200)).await;
    let proxy = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let addr = proxy.local_addr().unwrap();
    let fingerprint = server.server.fingerprint().unwrap();
    // The client's first packets get through, no answer does: so its handshake stays half open at the server.
    let dialling = tokio::spawn(dial(addr, fingerprint));
    let target = server.addr();
    std::thread::spawn(move || {
        let (mut packet, out) = ([0; 2_048], std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        while let Ok((length, _)) = proxy.recv_from(&mut packet) {
            out.send_to(&packet[..length], target).unwrap();
        }
    });
    within(async {
        while server.server.stats().await.quic_connections == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // Sooner by far than QUIC itself gives a silent peer up.
    tokio::time::timeout(IDLE_TIMEOUT * 2 / 3, async {
        while server.server.stats().await.quic_connections > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("it ends by its deadline");
    // Until here, because a client that is dropped says goodbye.
    dialling.abort();
    let (mut host, mut guest, code) = server.room().await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
}
