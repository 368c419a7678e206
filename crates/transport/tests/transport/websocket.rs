//! WebSocket: certificate verification, and hostile peers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::{HANG, TcpServer, dead_tcp_port, identity, packet, tcp, within};
use futures_util::{SinkExt, StreamExt};
use parlor_proto::Carrier;
use parlor_proto::limits::STREAM_PACKET_BYTES_MAX;
use parlor_transport::tls::{SniffError, sniff};
use parlor_transport::websocket::{self, SUBPROTOCOL, Target};
use parlor_transport::{CloseCode, ConnectError, Link, LinkClosed, ServerTls, Trust, Violation};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::{ClientRequestBuilder, IntoClientRequest};
use tokio_tungstenite::{WebSocketStream, client_async};

#[tokio::test]
async fn a_wrong_fingerprint_is_refused_by_name() {
    within(async {
        let server = TcpServer::start().await;
        let expected = identity().fingerprint();
        let (target, trust) = (server.target(true), Trust::Fingerprint(expected));
        let serving = async {
            let (stream, remote) = server.listener.accept().await.unwrap();
            sniff(stream, remote, &ServerTls::new(&server.identity)).await
        };
        let (error, served) = tokio::join!(websocket::connect(&target, &trust, HANG), serving);
        let found = server.identity.fingerprint();
        assert_eq!(error.unwrap_err(), ConnectError::WrongFingerprint { expected, found });
        assert!(matches!(served, Err(SniffError::Failed { .. })));
        server.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn own_roots_check_the_name() {
    within(async {
        let server = TcpServer::start().await;
        let roots = Trust::Roots(server.identity.to_pem().certificates);
        let target = server.target(true);
        let (link, _served) = tokio::join!(websocket::connect(&target, &roots, HANG), server.accept());
        link.unwrap();
        let target = Target { host: "example.com".to_owned(), ..target };
        let serving = async {
            let (stream, remote) = server.listener.accept().await.unwrap();
            sniff(stream, remote, &ServerTls::new(&server.identity)).await
        };
        let (refused, _) = tokio::join!(websocket::connect(&target, &roots, HANG), serving);
        assert!(matches!(refused, Err(ConnectError::UntrustedCertificate(_))), "{refused:?}");
    })
    .await;
}

#[tokio::test]
async fn without_tls_only_this_machine_is_reached() {
    // Documentation addresses: nothing is sent there, the address alone decides.
    for addr in ["192.0.2.1:80", "[2001:db8::1]:80", "[::ffff:192.0.2.1]:80"] {
        let addr = addr.parse().unwrap();
        let target = Target { secure: false, addr, host: "localhost".to_owned(), path: "/".to_owned() };
        let error = websocket::connect(&target, &Trust::System, HANG).await.unwrap_err();
        assert_eq!(error, ConnectError::PlainBeyondLoopback { addr });
    }
}

#[tokio::test]
async fn a_dead_port_is_refused_at_once() {
    within(async {
        let addr = dead_tcp_port().await;
        let target = Target { secure: true, addr, host: "localhost".to_owned(), path: "/".to_owned() };
        let trust = Trust::Fingerprint(identity().fingerprint());
        let error = websocket::connect(&target, &trust, HANG).await.unwrap_err();
        assert_eq!(error, ConnectError::Refused { addr });
    })
    .await;
}

#[tokio::test]
async fn a_server_of_another_kind_is_not_parlor() {
    within(async {
        // Plain HTTP without such a path; something other than TLS; a WebSocket of another protocol.
        for (secure, answer) in [
            (false, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            (true, "SSH-2.0-OpenSSH_9.9\r\n"),
            (false, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            (false, "HELO\r\n\r\n"),
        ] {
            let server = TcpServer::start().await;
            let target = server.target(secure);
            let serving = async {
                let (mut stream, _) = server.listener.accept().await.unwrap();
                let mut request = [0; 4096];
                assert_ne!(stream.read(&mut request).await.unwrap(), 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
                stream
            };
            let connecting = websocket::connect(&target, &server.trust, HANG);
            let (refused, _stream) = tokio::join!(connecting, serving);
            assert!(matches!(refused, Err(ConnectError::NotParlor { .. })), "{answer}: {refused:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_hangs_up_before_it_begins_is_named() {
    within(async {
        let server = TcpServer::start().await;
        drop(tcp(server.addr).await);
        let (stream, remote) = server.listener.accept().await.unwrap();
        let sniffed = sniff(stream, remote, &ServerTls::new(&server.identity)).await;
        assert!(matches!(sniffed, Err(SniffError::Failed { remote: told, .. }) if told == remote));
        server.assert_serves().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_client_is_given_up() {
    let server = TcpServer::start().await;
    let _client = tcp(server.addr).await;
    let (stream, remote) = server.listener.accept().await.unwrap();
    let sniffed = sniff(stream, remote, &ServerTls::new(&server.identity)).await;
    assert!(matches!(sniffed, Err(SniffError::TimedOut { .. })));
}

#[tokio::test]
async fn text_is_refused_at_both_ends() {
    refused(Violation::TextMessage, async |peer| {
        peer.send(Message::text("{\"hello\":1}")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_message_beyond_the_limit_is_refused_at_both_ends() {
    refused(Violation::OversizedPacket, async |peer| {
        // More than the sockets hold, so that the server closes while bytes are still arriving.
        let _ = peer.send(Message::binary(vec![0; STREAM_PACKET_BYTES_MAX * 20])).await;
    })
    .await;
}

#[tokio::test]
async fn wrong_framing_is_refused_at_both_ends() {
    within(async {
        let server = TcpServer::start().await;
        let (mut peer, mut served) = connect_raw(&server).await;
        // A frame without a mask, which a client must not send.
        peer.get_mut().write_all(&[0x82, 0x01, 0xaa]).await.unwrap();
        let end = served.recv().await.unwrap_err();
        assert!(matches!(end, LinkClosed::NotParlor(Violation::WebSocket(_))), "{end}");
        assert_close_frame(&mut peer, CloseCode::MALFORMED).await;
        server.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_vanishes_is_a_reset() {
    within(async {
        let server = TcpServer::start().await;
        let (mut peer, mut served) = connect_raw(&server).await;
        // The head of a message of 100 bytes, and two of them.
        peer.get_mut().write_all(&[0x82, 0x80 | 100, 0, 0, 0, 0, 1, 2]).await.unwrap();
        drop(peer);
        assert_eq!(served.recv().await, Err(LinkClosed::Reset));
        served.sender.closed().await;
        server.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn pings_are_answered_and_a_foreign_close_is_understood() {
    within(async {
        let server = TcpServer::start().await;
        let (mut peer, mut served) = connect_raw(&server).await;
        peer.send(Message::Ping("are you there?".into())).await.unwrap();
        peer.send(Message::binary("packet")).await.unwrap();
        assert_eq!(served.recv().await, Ok(packet(Carrier::Stream, "packet")));
        let next = async { served.recv().await };
        let closing = async {
            assert_eq!(peer.next().await.unwrap().unwrap(), Message::Pong("are you there?".into()));
            peer.close(None).await.unwrap();
            // The close frame is answered, then the server disconnects.
            while peer.next().await.is_some_and(|message| message.is_ok()) {}
        };
        let (end, ()) = tokio::join!(next, closing);
        assert_eq!(end, Err(LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() }));
        served.sender.closed().await;
    })
    .await;
}

/// A peer violates the protocol after a valid packet: the packet arrives, both ends learn of the violation,
/// and the server continues to serve others.
async fn refused(violation: Violation, misbehave: impl AsyncFnOnce(&mut WebSocketStream<TcpStream>)) {
    within(async {
        let server = TcpServer::start().await;
        let (mut peer, mut served) = connect_raw(&server).await;
        peer.send(Message::binary("fine")).await.unwrap();
        let receiving = async {
            assert_eq!(served.recv().await, Ok(packet(Carrier::Stream, "fine")));
            served.recv().await
        };
        let (end, ()) = tokio::join!(receiving, misbehave(&mut peer));
        assert_eq!(end, Err(LinkClosed::NotParlor(violation.clone())));
        assert_eq!(served.sender.end(), Some(LinkClosed::NotParlor(violation.clone())));
        let reason = assert_close_frame(&mut peer, violation.code()).await;
        assert_eq!(reason, violation.to_string());
        drop(peer);
        served.sender.closed().await;
        server.assert_serves().await;
    })
    .await;
}

async fn assert_close_frame(peer: &mut WebSocketStream<TcpStream>, code: CloseCode) -> String {
    let message = peer.next().await.expect("a goodbye comes").expect("it can be read");
    let Message::Close(Some(frame)) = message else { panic!("{message:?}") };
    assert_eq!(u16::from(frame.code), code.to_websocket());
    frame.reason.to_string()
}

/// A client of plain WebSocket that may send anything.
async fn connect_raw(server: &TcpServer) -> (WebSocketStream<TcpStream>, Link) {
    let uri = format!("ws://localhost:{}/link", server.addr.port()).parse().unwrap();
    let request =
        ClientRequestBuilder::new(uri).with_sub_protocol(SUBPROTOCOL).into_client_request().unwrap();
    let stream = tcp(server.addr).await;
    let (peer, served) = tokio::join!(client_async(request, stream), server.accept());
    (peer.unwrap().0, served)
}
