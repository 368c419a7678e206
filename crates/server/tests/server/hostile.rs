//! Hostile and broken peers are rejected, and other clients are not affected.

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use parlor_proto::session::{Event, Session};
use parlor_proto::wire::control::{LeaveReason, ToMember};
use parlor_proto::{Carrier, Instant, LinkKind, MemberId, Packet, RoomCode, channel, limits};
use parlor_server::{IDENTITY_FILE, IdentitySource};
use parlor_testing::{Client, HANG, TestServer, joining, within};
use parlor_transport::websocket::SUBPROTOCOL;
use parlor_transport::{CloseCode, LinkClosed};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::{ClientRequestBuilder, IntoClientRequest};
use tokio_tungstenite::{WebSocketStream, client_async};

#[tokio::test]
async fn garbage_on_the_ports_harms_nobody() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    let garbage = |length: usize| -> Vec<u8> {
        (0..length).map(|at| (at * 37 + length * 101).to_le_bytes()[0]).collect()
    };
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in 0..1_200 {
        udp.send_to(&garbage(length), server.addr()).unwrap();
    }
    udp.send_to(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", server.addr()).unwrap();
    for length in [1, 2, 5, 100, 5_000, 100_000] {
        // The second begins like TLS, the third like a request that never ends.
        for first in [0x00, 0x16, b'G'] {
            let mut bytes = garbage(length);
            bytes[0] = first;
            within(async {
                let mut stream = TcpStream::connect(server.addr()).await.unwrap();
                // The server may have closed before all is written.
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
            })
            .await;
        }
    }
    server.assert_goes_on(&mut host, &mut guest, code).await;
}

#[tokio::test]
async fn whoever_is_silent_is_hung_up_on() {
    let server = TestServer::start_with(|config, folder| {
        config.identity = IdentitySource::Development { folder: Some(folder.path().to_owned()) };
    })
    .await;
    let (mut host, mut guest, code) = server.room().await;
    let until_closed = async |mut stream: Box<dyn parlor_transport::websocket::Io>| {
        let mut answer = Vec::new();
        // Closed in whichever way: what counts is that it is over.
        let _ = stream.read_to_end(&mut answer).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{answer:?}");
    };
    let tcp = || async { TcpStream::connect(server.addr()).await.unwrap() };

    let silent = Box::new(tcp().await);
    let mut half_a_request = Box::new(tcp().await);
    half_a_request.write_all(b"GET / HTTP/1.1\r\nHost").await.unwrap();
    let pem = std::fs::read(server.folder.path().join(IDENTITY_FILE)).unwrap();
    let tls = Box::new(tls(&pem, tcp().await).await);
    let mut half_a_tls = Box::new(tcp().await);
    half_a_tls.write_all(&[0x16, 3, 1]).await.unwrap();
    let without_hello = server.quic_link().await.unwrap();
    let (_sender, mut without_hello) = without_hello.split();
    within(async {
        tokio::join!(
            until_closed(silent),
            until_closed(half_a_request),
            until_closed(tls),
            until_closed(half_a_tls),
            async {
                let goodbye = without_hello.recv().await.unwrap();
                assert_eq!(goodbye.carrier, Carrier::Stream);
                assert!(matches!(without_hello.recv().await, Err(LinkClosed::ByPeer { .. })));
            }
        )
    })
    .await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
}

/// A TLS client that trusts exactly this certificate.
async fn tls(pem: &[u8], stream: TcpStream) -> tokio_rustls::client::TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config)).connect("localhost".try_into().unwrap(), stream).await.unwrap()
}

#[tokio::test]
async fn a_member_whose_packets_cannot_be_read_loses_its_seat_only() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    for (member, over_quic) in [(2, true), (3, false)] {
        let hello = joining(code, None);
        let mut bad = if over_quic { server.quic(hello).await } else { server.websocket(true, hello).await };
        bad.welcome().await;
        host.joined(1).await;
        guest.joined(1).await;
        // A header that says more than there is.
        bad.raw(Packet { carrier: Carrier::Stream, bytes: Bytes::from_static(&[0b11, 0]) }).await;
        let end = bad.ended().await;
        assert!(matches!(end, LinkClosed::ByPeer { code: CloseCode::MISBEHAVED, .. }), "{end}");
        assert_left(&mut host, &mut guest, member, LeaveReason::Misbehaved).await;
        server.assert_goes_on(&mut host, &mut guest, code).await;
    }
}

#[tokio::test]
async fn a_member_that_vanishes_frees_its_seat() {
    let server = TestServer::start_with(|config, _| config.grace = Duration::ZERO).await;
    let (mut host, mut guest, code) = server.room().await;
    for (member, over_quic) in [(2, true), (3, false)] {
        let hello = joining(code, None);
        let mut gone = if over_quic { server.quic(hello).await } else { server.websocket(true, hello).await };
        gone.welcome().await;
        host.joined(1).await;
        guest.joined(1).await;
        drop(gone);
        assert_left(&mut host, &mut guest, member, LeaveReason::ConnectionLost).await;
        server.assert_goes_on(&mut host, &mut guest, code).await;
    }
}

#[tokio::test]
async fn a_websocket_that_is_not_parlors_is_closed_with_a_reason() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    let oversized = Message::binary(vec![0; limits::STREAM_PACKET_BYTES_MAX + 1]);
    for (member, offence, close) in
        [(2, Message::text("hello"), CloseCode::NOT_PARLOR), (3, oversized, CloseCode::OVERSIZED)]
    {
        let mut socket = raw_member(&server, code).await;
        host.joined(1).await;
        guest.joined(1).await;
        within(socket.send(offence)).await.unwrap();
        assert_eq!(close_code(&mut socket).await, close.to_websocket());
        assert_left(&mut host, &mut guest, member, LeaveReason::ConnectionLost).await;
        server.assert_goes_on(&mut host, &mut guest, code).await;
    }
}

#[tokio::test]
async fn a_websocket_that_is_cut_in_the_middle_of_a_message_leaves() {
    let server = TestServer::start_with(|config, _| config.grace = Duration::ZERO).await;
    let (mut host, mut guest, code) = server.room().await;
    let mut socket = raw_member(&server, code).await;
    host.joined(1).await;
    guest.joined(1).await;
    within(socket.get_mut().write_all(&[0x82, 0xfe, 0x10])).await.unwrap();
    drop(socket);
    assert_left(&mut host, &mut guest, 2, LeaveReason::ConnectionLost).await;
    server.assert_goes_on(&mut host, &mut guest, code).await;
}

#[tokio::test]
async fn a_member_that_reads_nothing_is_disconnected_and_holds_nobody_up() {
    let server = TestServer::start().await;
    let (mut host, mut guest, code) = server.room().await;
    let large: Bytes = vec![9; 32 * 1024].into();
    for (member, over_quic) in [(2, true), (3, false)] {
        let hello = joining(code, None);
        let mut slow = if over_quic { server.quic(hello).await } else { server.websocket(true, hello).await };
        slow.welcome().await;
        host.joined(1).await;
        guest.joined(1).await;
        slow.pause(true).await;
        let left = ToMember::Left { member: MemberId(member), reason: LeaveReason::TooSlow };
        // Each waits for an answer to the one before. The answer carries the acknowledgement; by itself it may take so
        // long that the guest seems slow, too.
        let (mut guest_knows, mut host_knows) = (false, false);
        // What waits in the hub, and what the links and the system below them take before that.
        for _ in 0..(limits::RELIABLE_QUEUE_BYTES_MAX + 2 * 1024 * 1024) / large.len() {
            host.say(large.clone()).await;
            guest_knows |= heard_or_left(&mut guest, &left).await;
            guest.say("got it").await;
            host_knows |= heard_or_left(&mut host, &left).await;
        }
        assert!(guest_knows && host_knows);
        server.assert_goes_on(&mut host, &mut guest, code).await;
    }
}

/// Waits for the next message of a member; gives whether the news of who left came before it.
async fn heard_or_left(client: &mut Client, left: &ToMember) -> bool {
    let mut knows = false;
    loop {
        let message = client.message().await;
        if message.channel == channel::MESSAGE_ORDERED {
            return knows;
        }
        assert_eq!(ToMember::decode(message.payload), Ok(Some(left.clone())));
        knows = true;
    }
}

async fn assert_left(host: &mut Client, guest: &mut Client, member: u32, reason: LeaveReason) {
    let left = ToMember::Left { member: MemberId(member), reason };
    assert_eq!(host.control().await, left);
    assert_eq!(guest.control().await, left);
}

/// A member of a room on a WebSocket that can send anything.
async fn raw_member(server: &TestServer, code: RoomCode) -> WebSocketStream<TcpStream> {
    let uri = format!("ws://localhost:{}/ws", server.addr().port()).parse().unwrap();
    let request =
        ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL).into_client_request().unwrap();
    let stream = TcpStream::connect(server.addr()).await.unwrap();
    let (mut socket, _) = within(client_async(request, stream)).await.unwrap();
    let now = Instant::from_millis(1);
    let mut session = Session::client(joining(code, None), LinkKind::WebSocket, now);
    loop {
        while let Some(packet) = session.poll_packet(now) {
            within(socket.send(Message::Binary(packet.bytes))).await.unwrap();
        }
        if let Some(event) = session.poll_event() {
            assert!(matches!(event, Event::Welcome(_)), "{event:?}");
            return socket;
        }
        let bytes = within(socket.next()).await.unwrap().unwrap().into_data();
        session.handle_packet(Packet { carrier: Carrier::Stream, bytes }, now).unwrap();
    }
}

async fn close_code(socket: &mut WebSocketStream<TcpStream>) -> u16 {
    loop {
        match tokio::time::timeout(HANG, socket.next()).await.unwrap().unwrap().unwrap() {
            Message::Close(Some(frame)) => return frame.code.into(),
            Message::Binary(_) => {}
            other => panic!("{other:?}"),
        }
    }
}
