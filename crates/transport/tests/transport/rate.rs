//! The rate control on real sockets: that it is in use, and that its floor continues on a path without
//! answers. Its quality is tested in virtual time beside it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::{Ends, HANG, LOCALHOST, Made, QuicServer, packet, within};
use core::net::SocketAddr;
use parlor_proto::Carrier;
use parlor_proto::limits::DATAGRAM_BYTES_MAX;
use parlor_transport::quic::Dialer;
use parlor_transport::{LinkSender, SendError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::net::UdpSocket;

/// More than a full window and the probes of all timeouts until a connection counts as dead: about 60 for a
/// dead path without a floor.
const DATAGRAMS: usize = 120;

async fn send_when_writable(sender: &LinkSender) {
    while let Err(error) = sender.send(packet(Carrier::Datagram, vec![7; DATAGRAM_BYTES_MAX])) {
        assert!(matches!(error, SendError::NotWritable(_)), "{error}");
        sender.writable(Carrier::Datagram).await;
    }
}

#[tokio::test]
async fn bursts_wait_for_their_turn_and_all_arrive() {
    within(async {
        let Ends { client, mut server, .. } = Made::Quic.ends().await;
        // Ticks of 3 Mbit/s at 30 Hz do not fit the library's buffer at once.
        for _tick in 0..40 {
            let sending = async {
                for _ in 0..13 {
                    send_when_writable(&client.sender).await;
                }
            };
            let receiving = async {
                for _ in 0..13 {
                    assert_eq!(server.recv().await.unwrap().bytes.len(), DATAGRAM_BYTES_MAX);
                }
            };
            tokio::join!(sending, receiving);
        }
    })
    .await;
}

#[tokio::test]
async fn a_path_that_answers_nothing_gets_a_packet_per_tick() {
    within(async {
        let server = QuicServer::start();
        let relay = Relay::start(server.addr).await;
        let dialer = Dialer::new();
        let (client, served) =
            tokio::join!(dialer.connect(relay.addr, "localhost", &server.trust, HANG), server.accept());
        let client = client.unwrap();
        relay.is_cut.store(true, Ordering::Relaxed);
        let sending = async {
            loop {
                send_when_writable(&client.sender).await;
            }
        };
        let counting = async {
            while relay.swallowed.load(Ordering::Relaxed) < DATAGRAMS {
                relay.swallowed_one.notified().await;
                assert_eq!(client.sender.end(), None, "after {:?}", relay.swallowed);
            }
        };
        tokio::select! {
            () = sending => {}
            () = counting => {}
        }
        drop(served);
    })
    .await;
}

/// Relays between a client and a server until it is cut; then it drops and counts the client's large packets.
struct Relay {
    addr: SocketAddr,
    is_cut: Arc<AtomicBool>,
    swallowed: Arc<AtomicUsize>,
    swallowed_one: Arc<tokio::sync::Notify>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let socket = UdpSocket::bind(LOCALHOST).await.unwrap();
        let relay = Relay {
            addr: socket.local_addr().unwrap(),
            is_cut: Arc::default(),
            swallowed: Arc::default(),
            swallowed_one: Arc::default(),
        };
        let (is_cut, swallowed, one) =
            (Arc::clone(&relay.is_cut), Arc::clone(&relay.swallowed), Arc::clone(&relay.swallowed_one));
        tokio::spawn(async move {
            let (mut client, mut bytes) = (None, [0; 2_000]);
            loop {
                let (length, from) = socket.recv_from(&mut bytes).await.unwrap();
                let to = if from == server { client } else { Some(server) };
                client = if from == server { client } else { Some(from) };
                if !is_cut.load(Ordering::Relaxed) {
                    socket.send_to(&bytes[..length], to.unwrap()).await.unwrap();
                } else if from != server && length >= DATAGRAM_BYTES_MAX {
                    swallowed.fetch_add(1, Ordering::Relaxed);
                    one.notify_one();
                }
            }
        });
        relay
    }
}
