//! The memory of an idle link in this process: a server has thousands of them.
//!
//! The allocator counts for the whole process, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

mod common;

use common::{HANG, QuicServer, TcpServer, packet, within};
use parlor_proto::Carrier;
use parlor_transport::quic::Dialer;
use parlor_transport::{Link, LinkSender, websocket};
use peak_alloc::PeakAlloc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const LINKS: usize = 100;
const PACKET_BYTES: usize = 300;
const LARGE_PACKET_BYTES: usize = 60_000;

/// The server's end of a WebSocket without TLS, with the client's bare socket, which is about half a KiB of
/// it.
const WEBSOCKET_BYTES_MAX: usize = 5 * 1024;
/// The same after a large packet.
const WEBSOCKET_AFTER_LARGE_BYTES_MAX: usize = 10 * 1024;
/// Both ends of a QUIC link; the client's has a TLS configuration of its own, and nine tenths are the
/// library's.
const QUIC_PAIR_BYTES_MAX: usize = 84 * 1024;

#[tokio::test]
async fn an_idle_link_holds_little() {
    within(async {
        let server = TcpServer::start().await;
        // The first one allocates what all share.
        let first = connect_websocket(&server).await;
        let before = ALLOCATOR.current_usage();
        let mut links = Vec::with_capacity(LINKS);
        for _ in 0..LINKS {
            links.push(connect_websocket(&server).await);
        }
        assert_held("a WebSocket", before, WEBSOCKET_BYTES_MAX);
        let mut large = vec![0; 4 + LARGE_PACKET_BYTES];
        for (client, sender) in &mut links {
            sender.send(packet(Carrier::Stream, vec![1; LARGE_PACKET_BYTES])).unwrap();
            client.read_exact(&mut large).await.unwrap();
        }
        assert_held("a WebSocket after a large packet", before, WEBSOCKET_AFTER_LARGE_BYTES_MAX);
        drop((first, links));

        let server = QuicServer::start();
        let dialer = Dialer::new();
        let first = connect_quic(&server, &dialer).await;
        let before = ALLOCATOR.current_usage();
        let mut links = Vec::with_capacity(LINKS);
        for _ in 0..LINKS {
            links.push(connect_quic(&server, &dialer).await);
        }
        assert_held("a pair of QUIC ends", before, QUIC_PAIR_BYTES_MAX);
        drop((first, links));
    })
    .await;
}

fn assert_held(what: &str, before: usize, bytes_max: usize) {
    let bytes = (ALLOCATOR.current_usage() - before) / LINKS;
    assert!(bytes <= bytes_max, "{what} holds {bytes} bytes, more than {bytes_max}");
}

/// Echoes each packet and waits for the next, as a server does.
fn serve(link: Link) -> Arc<LinkSender> {
    let (sender, mut receiver) = link.split();
    let sender = Arc::new(sender);
    let answering = Arc::clone(&sender);
    tokio::spawn(async move {
        while let Ok(packet) = receiver.recv().await {
            answering.send(packet).unwrap();
        }
    });
    sender
}

/// A link that has carried a packet in each direction on each carrier.
async fn connect_quic(server: &QuicServer, dialer: &Dialer) -> (Link, Arc<LinkSender>) {
    let dialing = dialer.connect(server.addr, "localhost", &server.trust, HANG);
    let (client, served) = tokio::join!(dialing, server.accept());
    let (mut client, sender) = (client.unwrap(), serve(served));
    for carrier in [Carrier::Stream, Carrier::Datagram] {
        client.send(packet(carrier, vec![1; PACKET_BYTES])).unwrap();
        client.recv().await.unwrap();
    }
    (client, sender)
}

/// A link that has carried a packet in each direction, whose client is only a socket.
async fn connect_websocket(server: &TcpServer) -> (TcpStream, Arc<LinkSender>) {
    let connecting = async {
        let mut client = common::tcp(server.addr).await;
        let request = format!(
            "GET /link HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
             Sec-WebSocket-Protocol: {}\r\n\r\n",
            websocket::SUBPROTOCOL
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        client
    };
    let (mut client, link) = tokio::join!(connecting, server.accept());
    let sender = serve(link);
    // A binary frame with a mask of zeros, and the answer without one.
    let length = u16::try_from(PACKET_BYTES).unwrap().to_be_bytes();
    let mut frame = vec![0x82, 0x80 | 126, length[0], length[1], 0, 0, 0, 0];
    frame.extend([1; PACKET_BYTES]);
    client.write_all(&frame).await.unwrap();
    let mut answer = [0; 4 + PACKET_BYTES];
    client.read_exact(&mut answer).await.unwrap();
    (client, sender)
}
