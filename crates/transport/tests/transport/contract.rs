//! The guarantees of every link, whatever its transport.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::{Ends, Made, packet, within};
use bytes::Bytes;
use futures_util::FutureExt;
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::{Carrier, Packet};
use parlor_transport::{CloseCode, LinkClosed, LinkReceiver, LinkSender, SendError};
use std::collections::BTreeSet;

/// Runs a test over each kind of link.
macro_rules! contract {
    ($($(#[$doc:meta])* async fn $name:ident($made:ident: Made) $body:block)*) => {
        mod each {
            use super::*;
            $($(#[$doc])* pub(super) async fn $name($made: Made) $body)*
        }
        contract!(@tests memory Memory $($name)*);
        contract!(@tests quic Quic $($name)*);
        contract!(@tests webtransport WebTransport $($name)*);
        contract!(@tests ws Ws $($name)*);
        contract!(@tests wss Wss $($name)*);
        contract!(@tests direct Direct $($name)*);
    };
    (@tests $module:ident $made:ident $($name:ident)*) => {
        mod $module {
            $(#[tokio::test]
            async fn $name() {
                crate::common::within(super::each::$name(crate::common::Made::$made)).await;
            })*
        }
    };
}

const CARRIERS: [Carrier; 3] = [Carrier::Datagram, Carrier::Stream, Carrier::Isolated];

contract! {
    async fn packets_of_every_size_go_both_ways_on_every_carrier(made: Made) {
        let Ends { mut client, mut server, .. } = made.ends().await;
        assert_eq!((client.kind(), server.kind()), (made.kind(), made.kind()));
        assert_eq!(client.sender.rtt().is_some(), made.kind().has_datagrams());
        for carrier in CARRIERS {
            if carrier == Carrier::Datagram && !made.kind().has_datagrams() {
                continue;
            }
            for size in sizes(carrier) {
                let sent = packet(carrier, vec![size.to_le_bytes()[0]; size]);
                for (from, to) in [(&client.sender, &mut server.receiver), (&server.sender, &mut client.receiver)] {
                    send(from, sent.clone()).await;
                    let received = to.recv().await.unwrap();
                    assert_eq!(received.bytes, sent.bytes);
                    assert_eq!(received.carrier, arrives_as(made, carrier));
                }
            }
        }
    }

    async fn the_stream_keeps_its_order_and_isolated_packets_all_arrive(made: Made) {
        let Ends { client, mut server, .. } = made.ends().await;
        let count = 500u32;
        let sending = async {
            for number in 0..count {
                let carrier = if number.is_multiple_of(3) { Carrier::Isolated } else { Carrier::Stream };
                send(&client.sender, packet(carrier, numbered(number))).await;
            }
        };
        let receiving = async {
            let (mut stream, mut isolated) = (Vec::new(), BTreeSet::new());
            while stream.len() + isolated.len() < count as usize {
                let number = number_of(&server.receiver.recv().await.unwrap());
                if number.is_multiple_of(3) { assert!(isolated.insert(number)) } else { stream.push(number) }
            }
            assert!(stream.is_sorted());
        };
        tokio::join!(sending, receiving);
    }

    async fn a_close_arrives_after_what_was_sent_before_it(made: Made) {
        let Ends { mut client, mut server, .. } = made.ends().await;
        for number in 0..100 {
            send(&client.sender, packet(Carrier::Stream, numbered(number))).await;
        }
        client.sender.close(CloseCode::TOO_SLOW, "the queue is full");
        let local = LinkClosed::Local { code: CloseCode::TOO_SLOW, reason: "the queue is full".to_owned() };
        assert_eq!(client.recv().await, Err(local.clone()));
        assert_eq!(client.sender.end(), Some(local.clone()));
        let refused = client.send(packet(Carrier::Stream, "late"));
        assert!(matches!(refused, Err(SendError::Closed(end)) if end == local));
        for number in 0..100 {
            assert_eq!(number_of(&server.recv().await.unwrap()), number);
        }
        let by_peer = LinkClosed::ByPeer { code: CloseCode::TOO_SLOW, reason: "the queue is full".to_owned() };
        assert_eq!(server.recv().await, Err(by_peer.clone()));
        assert_eq!(server.recv().await, Err(by_peer.clone()), "it is told again");
        let refused = server.send(packet(Carrier::Stream, "late"));
        assert!(matches!(refused, Err(SendError::Closed(end)) if end == by_peer));
        client.sender.closed().await;
        server.sender.closed().await;
    }

    async fn isolated_packets_arrive_before_a_close(made: Made) {
        let Ends { client, mut server, .. } = made.ends().await;
        for number in 0..20 {
            send(&client.sender, packet(Carrier::Isolated, numbered(number))).await;
        }
        client.sender.close(CloseCode::DONE, "");
        let mut seen = BTreeSet::new();
        let end = loop {
            match server.recv().await {
                Ok(packet) => assert!(seen.insert(number_of(&packet))),
                Err(end) => break end,
            }
        };
        assert_eq!(seen, (0..20).collect());
        assert_eq!(end, LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() });
    }

    async fn a_long_reason_is_cut_and_every_code_survives(made: Made) {
        for code in [CloseCode::DONE, CloseCode::GOING_AWAY, CloseCode::NO_HELLO, CloseCode::MAX] {
            let Ends { client, mut server, .. } = made.ends().await;
            client.sender.close(code, &"ä".repeat(200));
            assert_eq!(server.recv().await, Err(LinkClosed::ByPeer { code, reason: "ä".repeat(61) }));
        }
    }

    async fn dropping_either_half_closes_the_link(made: Made) {
        let done = LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() };
        let Ends { client, mut server, .. } = made.ends().await;
        let (sender, receiver) = client.split();
        send(&sender, packet(Carrier::Stream, "last")).await;
        drop(sender);
        assert_eq!(server.recv().await.unwrap().bytes, "last");
        assert_eq!(server.recv().await, Err(done.clone()));
        drop(receiver);

        let Ends { client, mut server, .. } = made.ends().await;
        let (sender, receiver) = client.split();
        drop(receiver);
        assert!(matches!(sender.send(packet(Carrier::Stream, "late")), Err(SendError::Closed(_))));
        assert_eq!(server.recv().await, Err(done));
    }

    async fn a_receiver_that_waits_learns_that_its_own_end_closed(made: Made) {
        let Ends { client, server, .. } = made.ends().await;
        let (sender, mut receiver) = client.split();
        let (end, ()) = tokio::join!(receiver.recv(), async { sender.close(CloseCode::DONE, "bye") });
        assert!(matches!(end, Err(LinkClosed::Local { .. })));
        drop(server);
    }

    async fn a_reader_that_stalls_stops_the_sender_and_loses_nothing(made: Made) {
        for carrier in [Carrier::Stream, Carrier::Isolated] {
            let Ends { client, mut server, .. } = made.ends().await;
            let accepted = send_without_reader(&client.sender, carrier).await;
            assert!(accepted > 0);
            let mut seen = BTreeSet::new();
            for _ in 0..accepted {
                let packet = server.recv().await.unwrap();
                assert_eq!(packet.bytes.len(), STALL_PACKET_BYTES);
                assert!(seen.insert(number_of(&packet)), "no packet comes twice");
            }
            client.sender.writable(carrier).await;
            client.send(packet(carrier, "more")).unwrap();
            assert_eq!(server.recv().await.unwrap().bytes, "more");
        }
    }

    async fn two_ends_that_fill_each_other_are_not_stuck(made: Made) {
        let Ends { mut client, mut server, .. } = made.ends().await;
        let to_server = send_without_reader(&client.sender, Carrier::Stream).await;
        let to_client = send_without_reader(&server.sender, Carrier::Stream).await;
        for (end, count) in [(&mut client, to_client), (&mut server, to_server)] {
            for number in 0..count {
                assert_eq!(number_of(&end.recv().await.unwrap()), number);
            }
        }
    }

    async fn a_peer_that_reads_nothing_does_not_keep_a_close_from_ending(made: Made) {
        let Ends { client, server, .. } = made.ends().await;
        send_without_reader(&client.sender, Carrier::Stream).await;
        client.sender.close(CloseCode::TOO_SLOW, "");
        client.sender.closed().await;
        drop(server);
    }

    async fn a_cancelled_receive_loses_nothing(made: Made) {
        let Ends { client, mut server, .. } = made.ends().await;
        for number in 0..100 {
            assert!(server.recv().now_or_never().is_none_or(|packet| packet.is_err()), "nothing was sent yet");
            send(&client.sender, packet(Carrier::Stream, numbered(number))).await;
            assert_eq!(number_of(&server.recv().await.unwrap()), number);
        }
    }

    async fn all_that_is_there_is_taken_at_once_up_to_a_limit(made: Made) {
        let Ends { client, mut server, .. } = made.ends().await;
        for number in 0..10 {
            send(&client.sender, packet(Carrier::Stream, numbered(number))).await;
        }
        let mut packets = Vec::new();
        while packets.len() < 10 {
            let before = packets.len();
            let taken = server.receiver.recv_many(&mut packets, 4).await.unwrap();
            assert!((1..=4).contains(&taken));
            assert_eq!(packets.len(), before + taken);
        }
        assert!(packets.iter().map(number_of).eq(0..10));
        assert_eq!(server.receiver.try_recv(), Ok(None));
        drop(client);
        assert!(server.receiver.recv_many(&mut packets, 4).await.is_err());
        assert_eq!(packets.len(), 10);
    }

    async fn what_a_carrier_cannot_carry_is_refused(made: Made) {
        let Ends { client, .. } = made.ends().await;
        for (carrier, max) in [
            (Carrier::Datagram, DATAGRAM_BYTES_MAX),
            (Carrier::Stream, STREAM_PACKET_BYTES_MAX),
            (Carrier::Isolated, STREAM_PACKET_BYTES_MAX),
        ] {
            let refused = client.send(packet(carrier, vec![0; max + 1]));
            assert!(matches!(refused, Err(SendError::TooLarge { bytes, max: limit }) if bytes == max + 1 && limit == max));
        }
        if !made.kind().has_datagrams() {
            let refused = client.send(packet(Carrier::Datagram, "x"));
            assert!(matches!(refused, Err(SendError::NoDatagrams(kind)) if kind == made.kind()));
        }
    }

    async fn packets_and_bytes_are_counted(made: Made) {
        let Ends { client, mut server, .. } = made.ends().await;
        for _ in 0..3 {
            send(&client.sender, packet(Carrier::Stream, "12345")).await;
            server.recv().await.unwrap();
        }
        let (sent, received) = (client.sender.stats(), server.sender.stats());
        assert_eq!((sent.packets_sent, sent.bytes_sent, sent.packets_received), (3, 15, 0));
        assert_eq!((received.packets_received, received.bytes_received, received.packets_sent), (3, 15, 0));
    }
}

/// The library's small buffer bounds datagrams: a burst fills it, and none is dropped for another.
#[tokio::test]
async fn a_burst_of_datagrams_is_told_to_wait() {
    within(async {
        let Ends { client, server, .. } = Made::Quic.ends().await;
        let full = (0..1_000u32).find_map(|sent| {
            let datagram = packet(Carrier::Datagram, vec![0; DATAGRAM_BYTES_MAX]);
            match client.send(datagram) {
                Ok(()) => None,
                Err(SendError::NotWritable(back)) => Some((sent, back)),
                Err(error) => panic!("{error}"),
            }
        });
        let (sent, back) = full.expect("a burst of 1,000,000 bytes does not fit");
        assert!((6..=12).contains(&sent), "{sent}: about a tick's worth, the rest is the session's");
        assert_eq!(back.bytes.len(), DATAGRAM_BYTES_MAX);
        assert!(!client.sender.is_writable(Carrier::Datagram));
        client.sender.writable(Carrier::Datagram).await;
        client.send(back).unwrap();
        drop(server);
    })
    .await;
}

/// Memory is bounded by this, far below what is sent: queues, the library's window, the system's buffers.
const STALL_BYTES_MAX: usize = 24 * 1024 * 1024;
const STALL_PACKET_BYTES: usize = 32 * 1024;

/// Sends to a peer that does not read until nothing more is accepted for a long while. Returns the number of
/// packets.
async fn send_without_reader(sender: &LinkSender, carrier: Carrier) -> u32 {
    let (mut accepted, mut refused_in_a_row) = (0u32, 0);
    while refused_in_a_row < 2_000 {
        let mut bytes = vec![0; STALL_PACKET_BYTES];
        bytes[..4].copy_from_slice(&accepted.to_le_bytes());
        match sender.send(packet(carrier, bytes)) {
            Ok(()) => {
                accepted += 1;
                refused_in_a_row = 0;
            }
            Err(SendError::NotWritable(_)) => refused_in_a_row += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(accepted as usize * STALL_PACKET_BYTES < STALL_BYTES_MAX, "nothing holds the sender back");
        tokio::task::yield_now().await;
    }
    accepted
}

async fn send(sender: &LinkSender, packet: Packet) {
    let mut packet = packet;
    while let Err(error) = sender.send(packet) {
        let SendError::NotWritable(back) = error else { panic!("{error}") };
        packet = back;
        sender.writable(packet.carrier).await;
    }
}

fn sizes(carrier: Carrier) -> Vec<usize> {
    match carrier {
        Carrier::Datagram => vec![0, 1, DATAGRAM_BYTES_MAX],
        // Around each width of a record's length.
        Carrier::Stream | Carrier::Isolated => vec![0, 1, 63, 64, 16_383, 16_384, STREAM_PACKET_BYTES_MAX],
    }
}

fn arrives_as(made: Made, carrier: Carrier) -> Carrier {
    if made.kind().has_datagrams() { carrier } else { Carrier::Stream }
}

fn numbered(number: u32) -> Bytes {
    Bytes::copy_from_slice(&number.to_le_bytes())
}

fn number_of(packet: &Packet) -> u32 {
    u32::from_le_bytes(packet.bytes[..4].try_into().unwrap())
}

/// Halves go to different tasks.
#[allow(dead_code)]
fn halves_can_be_sent(sender: LinkSender, receiver: LinkReceiver) -> impl Send {
    fn shared(_: &impl Sync) {}
    shared(&sender);
    (sender, receiver)
}
