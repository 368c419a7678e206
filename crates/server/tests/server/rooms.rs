//! Admission to rooms, and messages between members.

use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::wire::handshake::{Auth, Hello, Intent, Refusal, RoomKind};
use parlor_proto::{CloseReason, MemberId, RoomCode, limits};
use parlor_testing::{TestServer, creating, dial, joining};
use parlor_transport::websocket;
use parlor_transport::{CloseCode, ConnectError, Fingerprint, LinkClosed, Trust};

#[tokio::test]
async fn x1_messages_cross_between_quic_and_websocket() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
    assert_eq!(server.registry.room(code).unwrap().server.port, server.server.local_port());
    let stats = server.server.stats().await;
    assert_eq!((stats.rooms, stats.connections), (1, 2));
    assert_eq!((stats.tcp_turned_away, stats.quic_turned_away), (0, 0));

    guest.leave().await;
    assert_eq!(host.control().await, ToMember::Left { member: MemberId(1), reason: LeaveReason::Left });
    assert!(matches!(guest.ended().await, LinkClosed::ByPeer { code: CloseCode::DONE, .. }));
    let mut plain = server.websocket(false, joining(code, None)).await;
    assert_eq!(plain.welcome().await.member, MemberId(2));
    host.leave().await;
    assert_eq!(plain.closed().await, CloseReason::HostLeft);
    plain.ended().await;
    assert_eq!(server.server.room(code).await, None);
    assert_eq!(server.registry.room(code), None);
}

#[tokio::test]
async fn large_messages_cross() {
    let server = TestServer::start().await;
    let (mut host, mut guest, _) = server.room().await;
    let large = vec![5; limits::MESSAGE_BYTES_MAX];
    for _ in 0..8 {
        host.say(large.clone()).await;
        guest.say(large.clone()).await;
    }
    for _ in 0..8 {
        assert_eq!(guest.heard().await, (MemberId(0), large.clone().into()));
        assert_eq!(host.heard().await, (MemberId(1), large.clone().into()));
    }
}

#[tokio::test]
async fn each_refusal_arrives_by_its_name() {
    let server =
        TestServer::start_with(|config, _| config.apps = Some(vec!["tanks".into(), "golf".into()])).await;
    let code: RoomCode = "MYROOM".parse().unwrap();
    let mut host = server.quic(creating(Some(code), Some("sesame"), 2)).await;
    assert_eq!(host.welcome().await.code, code);
    let joined = joining(code, Some("sesame"));

    let unknown = joining("NOROOM".parse().unwrap(), None);
    let version = Hello { version_min: 7, version_max: 9, ..joined.clone() };
    let unserved = Hello { app: "chess".into(), ..joined.clone() };
    let elsewhere = Hello { app: "golf".into(), ..joined.clone() };
    let token = Hello { auth: Auth::Token("x".into()), ..joined.clone() };
    let (min, max) = (limits::VERSION_MIN, limits::VERSION_MAX);
    for (hello, refusal) in [
        (unknown, Refusal::NoSuchRoom),
        (version, Refusal::Version { min, max }),
        (unserved, Refusal::App { expected: "tanks, golf".into() }),
        (elsewhere, Refusal::App { expected: "tanks".into() }),
        (token, Refusal::Unauthorized),
        (joining(code, Some("sesam")), Refusal::NoSuchRoom),
        (joining(code, None), Refusal::NoSuchRoom),
        (creating(Some(code), None, 2), Refusal::CodeTaken),
    ] {
        for over_quic in [true, false] {
            let hello = hello.clone();
            let mut client =
                if over_quic { server.quic(hello).await } else { server.websocket(true, hello).await };
            assert_eq!(client.refusal().await, refusal);
            assert!(matches!(client.ended().await, LinkClosed::ByPeer { code: CloseCode::DONE, .. }));
        }
    }

    let mut guest = server.websocket(true, joined.clone()).await;
    guest.welcome().await;
    let mut late = server.quic(joined).await;
    assert_eq!(late.refusal().await, Refusal::RoomFull { max: 2 });
    host.joined(2).await;
    guest.joined(2).await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
}

#[tokio::test]
async fn dedicated_hosts_are_let_in_where_the_operator_wants_them() {
    let hello = || {
        let mut hello = creating(None, None, 100);
        let Intent::Create(settings) = &mut hello.intent else { unreachable!("it creates a room") };
        settings.kind = RoomKind::Dedicated;
        hello
    };
    let closed = TestServer::start().await;
    let refused = Refusal::RoomKind { kind: RoomKind::Dedicated };
    assert_eq!(closed.quic(hello()).await.refusal().await, refused);
    let open = TestServer::start_with(|config, _| config.dedicated = true).await;
    let welcome = open.quic(hello()).await.welcome().await;
    assert_eq!((welcome.kind, welcome.max_players), (RoomKind::Dedicated, 100));
}

#[tokio::test]
async fn a_server_of_another_fingerprint_is_refused() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    let expected = Fingerprint([1; 32]);
    let found = server.server.fingerprint().unwrap();
    let refused = ConnectError::WrongFingerprint { expected, found };
    assert_eq!(dial(server.addr(), expected).await.unwrap_err(), refused);
    let trust = Trust::Fingerprint(expected);
    let dialed = websocket::connect(&server.target(true), &trust, parlor_testing::HANG).await;
    assert_eq!(dialed.unwrap_err(), refused);
    server.assert_goes_on(&mut host, &mut guest, code).await;
}
