//! The engine against the library's own clients, on real sockets of this machine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::host::Host;
use crate::common::nat::Nat;
use crate::common::raw;
use crate::common::{HANG, LOCALHOST, packet, within};
use core::time::Duration;
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::{Carrier, Packet};
use parlor_transport::impaired::Conditions;
use parlor_transport::quic::engine::{EVENTS_MAX, Event};
use parlor_transport::quic::{ALPN_PARLOR, Dialer, HandshakeError, HandshakeLimits};
use parlor_transport::{CloseCode, ConnectError, Link, LinkClosed, SendError, Violation};
use quinn::{Endpoint, IdleTimeout, TransportConfig, VarInt};
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Instant;

const CARRIERS: [Carrier; 3] = [Carrier::Datagram, Carrier::Stream, Carrier::Isolated];

#[tokio::test]
async fn packets_of_every_size_go_both_ways_on_every_carrier() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (mut client, id) = host.client(&dialer).await;
        for carrier in CARRIERS {
            let largest =
                if carrier == Carrier::Datagram { DATAGRAM_BYTES_MAX } else { STREAM_PACKET_BYTES_MAX };
            for size in
                [0, 1, 63, 64, 1_000, 16_383, 16_384, largest].into_iter().filter(|size| *size <= largest)
            {
                let sent = packet(carrier, vec![size.to_le_bytes()[0]; size]);
                send(&mut host, &client, sent.clone()).await;
                assert_eq!(host.packet().await, (id, sent.clone()));
                host.send(id, sent.clone()).await;
                assert_eq!(host.serve_while(client.recv()).await.unwrap(), sent);
            }
        }
        let stats = host.engine.link_stats(id).unwrap();
        assert_eq!((stats.packets_sent, stats.packets_received), (22, 22));
        assert_eq!(stats.bytes_sent, stats.bytes_received);
    })
    .await;
}

#[tokio::test]
async fn the_owner_is_told_where_a_client_is_that_moves() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let nat = Nat::before(host.addr).await;
        let trust = host.trust.clone();
        let client = host.serve_while(dialer.connect(nat.addr, "localhost", &trust, HANG)).await.unwrap();
        let id = host.accept().await;
        for _ in 0..2 {
            let before = nat.outside();
            assert_eq!(host.engine.remote(id), Some(before));
            nat.rebind().await;
            let after = nat.outside();
            assert_ne!(before, after);
            send(&mut host, &client, packet(Carrier::Stream, vec![7])).await;
            let mut told = Vec::new();
            while told.len() < 2 {
                told.push(host.told().await);
            }
            let has_moved = |event: &Event| matches!(event, Event::Moved { id: of, remote } if (*of, *remote) == (id, after));
            assert!(told.iter().any(has_moved), "{told:?}");
            assert!(told.iter().any(|event| matches!(event, Event::Packet { .. })), "{told:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn what_a_carrier_cannot_carry_is_refused() {
    let (mut host, dialer) = (Host::start(), Dialer::new());
    let (_client, id) = within(host.client(&dialer)).await;
    for (carrier, max) in [
        (Carrier::Datagram, DATAGRAM_BYTES_MAX),
        (Carrier::Stream, STREAM_PACKET_BYTES_MAX),
        (Carrier::Isolated, STREAM_PACKET_BYTES_MAX),
    ] {
        let refused = host.engine.send(id, packet(carrier, vec![0; max + 1]));
        assert!(
            matches!(refused, Err(SendError::TooLarge { bytes, max: limit }) if bytes == max + 1 && limit == max)
        );
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_stops_the_sender_and_loses_nothing() {
    within(async {
        for carrier in [Carrier::Stream, Carrier::Isolated] {
            let (mut host, dialer) = (Host::start(), Dialer::new());
            let (mut client, id) = host.client(&dialer).await;
            let (mut sent, mut full) = (0_u32, 0);
            // The client's library accepts what its window allows; that is over when nothing changes for many
            // turns.
            while full < 200 {
                let mut bytes = vec![0; 32 * 1024];
                bytes[..4].copy_from_slice(&sent.to_le_bytes());
                match host.engine.send(id, packet(carrier, bytes)) {
                    Ok(()) => (sent, full) = (sent + 1, 0),
                    Err(SendError::NotWritable(_)) => full += 1,
                    Err(error) => panic!("{error}"),
                }
                assert!(sent < 200, "nothing holds the sender back");
                host.serve_while(tokio::task::yield_now()).await;
            }
            assert!(!host.engine.is_writable(id, carrier));
            let mut seen = BTreeSet::new();
            for _ in 0..sent {
                let received = host.serve_while(client.recv()).await.unwrap();
                assert_eq!((received.carrier, received.bytes.len()), (carrier, 32 * 1024));
                assert!(seen.insert(number_of(&received)), "no packet comes twice");
            }
            assert!(seen.into_iter().eq(0..sent));
            while !matches!(host.told().await, Event::Writable { carrier: told, .. } if told == carrier) {}
            assert!(host.engine.is_writable(id, carrier));
        }
    })
    .await;
}

#[tokio::test]
async fn a_burst_of_datagrams_is_told_to_wait_and_then_to_go_on() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (_client, id) = host.client(&dialer).await;
        let mut sent = 0;
        let back = loop {
            match host.engine.send(id, packet(Carrier::Datagram, vec![0; DATAGRAM_BYTES_MAX])) {
                Ok(()) => sent += 1,
                Err(SendError::NotWritable(back)) => break back,
                Err(error) => panic!("{error}"),
            }
        };
        assert!((6..=12).contains(&sent), "{sent}: about a tick's worth, the rest is the session's");
        assert!(matches!(host.told().await, Event::Writable { carrier: Carrier::Datagram, .. }));
        host.engine.send(id, back).unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_the_owner_does_not_take_is_bounded_and_stays_in_order() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (client, id) = host.client(&dialer).await;
        let count = 3 * u32::try_from(EVENTS_MAX).unwrap();
        let sending = tokio::spawn(async move {
            for number in 0..count {
                let mut next = packet(Carrier::Stream, number.to_le_bytes().to_vec());
                while let Err(SendError::NotWritable(back)) = client.send(next) {
                    next = back;
                    client.sender.writable(Carrier::Stream).await;
                }
            }
            client
        });
        while host.engine.link_stats(id).unwrap().packets_received < EVENTS_MAX as u64 {
            host.turn().await;
        }
        // Many more turns in which no packet is taken.
        for _ in 0..500 {
            host.turn().await;
        }
        let taken = host.engine.link_stats(id).unwrap().packets_received;
        assert!(taken <= EVENTS_MAX as u64 + 64, "{taken} wait");
        for number in 0..count {
            let (from, packet) = host.packet().await;
            assert_eq!((from, number_of(&packet)), (id, number));
        }
        drop(host.serve_while(sending).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn a_flood_of_one_does_not_keep_the_others_waiting() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (flood, _) = host.client(&dialer).await;
        let (other, id) = host.client(&dialer).await;
        let mut sent = 0_u32;
        while flood.send(packet(Carrier::Stream, sent.to_le_bytes().to_vec())).is_ok() {
            sent += 1;
        }
        // The flood is sent before the other's packet.
        let (first, _) = host.packet().await;
        assert_ne!(first, id);
        other.send(packet(Carrier::Stream, "me too")).unwrap();
        let mut of_flood = 1;
        while host.packet().await.0 != id {
            of_flood += 1;
        }
        assert!(of_flood < sent, "the other came after all {sent} of the flood");
    })
    .await;
}

#[tokio::test]
async fn a_close_arrives_after_what_was_sent_before_it() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (mut client, id) = host.client(&dialer).await;
        for number in 0..20_u32 {
            host.send(id, packet(Carrier::Stream, number.to_le_bytes().to_vec())).await;
            host.send(id, packet(Carrier::Isolated, (100 + number).to_le_bytes().to_vec())).await;
        }
        let last = [packet(Carrier::Stream, 20_u32.to_le_bytes().to_vec())];
        host.engine.part(id, last, CloseCode::TOO_SLOW, "over", Instant::now());
        assert!(matches!(
            host.engine.send(id, packet(Carrier::Stream, "late")),
            Err(SendError::Closed(LinkClosed::Local { code: CloseCode::TOO_SLOW, .. }))
        ));
        let (mut seen, end) = host.serve_while(all_of(&mut client)).await;
        assert_eq!(end, LinkClosed::ByPeer { code: CloseCode::TOO_SLOW, reason: "over".to_owned() });
        let on_stream: Vec<u32> = seen.extract_if(.., |number| *number < 100).collect();
        assert!(on_stream.into_iter().eq(0..21), "the stream keeps its order");
        seen.sort_unstable();
        assert!(seen.into_iter().eq(100..120));
        let Event::Closed { id: closed, why } = host.told().await else { panic!("it is over") };
        let reason = "over".to_owned();
        assert_eq!((closed, why), (id, LinkClosed::Local { code: CloseCode::TOO_SLOW, reason }));
    })
    .await;
}

#[tokio::test]
async fn a_clients_last_words_come_before_its_close() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (client, id) = host.client(&dialer).await;
        for number in 0..20_u32 {
            client.send(packet(Carrier::Stream, number.to_le_bytes().to_vec())).unwrap();
        }
        client.sender.close(CloseCode::GOING_AWAY, "home");
        for number in 0..20 {
            assert_eq!(number_of(&host.packet().await.1), number);
        }
        let Event::Closed { id: closed, why } = host.told().await else { panic!("it is over") };
        let reason = "home".to_owned();
        assert_eq!((closed, why), (id, LinkClosed::ByPeer { code: CloseCode::GOING_AWAY, reason }));
        assert!(matches!(host.engine.send(id, packet(Carrier::Stream, "late")), Err(SendError::Closed(_))));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_does_not_keep_a_close_from_ending() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (_client, id) = host.client(&dialer).await;
        while host.engine.send(id, packet(Carrier::Stream, vec![0; 32 * 1024])).is_ok() {
            host.serve_while(tokio::task::yield_now()).await;
        }
        host.engine.part(id, [], CloseCode::TOO_SLOW, "", Instant::now());
        while !matches!(host.told().await, Event::Closed { .. }) {}
    })
    .await;
}

#[tokio::test]
async fn a_client_that_falls_silent_is_lost() {
    within(async {
        let mut host = Host::start();
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(50))));
        let (addr, certificates) = (host.addr, host.certificates.clone());
        let dialing = raw::connect_with(addr, &certificates, &[ALPN_PARLOR], transport);
        let _silent = host.serve_while(dialing).await.unwrap();
        let id = host.accept().await;
        let Event::Closed { id: closed, why } = host.told().await else { panic!("it is lost") };
        assert_eq!((closed, why), (id, LinkClosed::TimedOut));
        host.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn many_clients_are_served_at_once_and_forgotten() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let mut clients = Vec::new();
        for _ in 0..40 {
            clients.push(host.client(&dialer).await);
        }
        for (number, (client, _)) in (0_u32..).zip(&clients) {
            client.send(packet(Carrier::Datagram, number.to_le_bytes().to_vec())).unwrap();
        }
        for _ in 0..clients.len() {
            let (id, question) = host.packet().await;
            let number = number_of(&question) as usize;
            assert_eq!(id, clients[number].1);
            host.send(id, packet(Carrier::Stream, question.bytes)).await;
        }
        for (number, (client, _)) in (0..).zip(&mut clients) {
            assert_eq!(number_of(&host.serve_while(client.recv()).await.unwrap()), number);
        }
        let mut left: BTreeSet<_> = clients.iter().map(|(_, id)| format!("{id:?}")).collect();
        drop(clients);
        while !left.is_empty() {
            let Event::Closed { id, .. } = host.told().await else { panic!("all of them leave") };
            assert!(left.remove(&format!("{id:?}")), "each leaves once");
        }
        while host.engine.connections() > 0 {
            host.turn().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_moves_is_still_the_same() {
    within(async {
        let mut host = Host::start();
        let endpoint = Endpoint::client(LOCALHOST).unwrap();
        let config = raw::config(&host.certificates, &[ALPN_PARLOR], TransportConfig::default());
        let dialing = endpoint.connect_with(config, host.addr, "localhost").unwrap();
        let client = host.serve_while(dialing).await.unwrap();
        let id = host.accept().await;
        let before = host.engine.remote(id).unwrap();
        endpoint.rebind(UdpSocket::bind(LOCALHOST).unwrap()).unwrap();
        client.send_datagram("here".into()).unwrap();
        let moved = host.told().await;
        assert!(
            matches!(moved, Event::Moved { id: of, remote } if of == id && remote != before),
            "{moved:?}"
        );
        assert_eq!(host.packet().await, (id, packet(Carrier::Datagram, "here")));
        assert_eq!(host.engine.remote(id), Some(endpoint.local_addr().unwrap()));
        host.send(id, packet(Carrier::Datagram, "there")).await;
        assert_eq!(host.serve_while(client.read_datagram()).await.unwrap(), "there");
    })
    .await;
}

#[tokio::test]
async fn the_owner_may_ask_for_proof_and_refuse() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (addr, trust) = (host.addr, host.trust.clone());
        let dialing = tokio::spawn(async move { dialer.connect(addr, "localhost", &trust, HANG).await });
        let Event::Incoming(incoming) = host.event().await else { panic!("somebody comes") };
        assert!(!incoming.is_proven());
        host.engine.ask_for_proof(incoming);
        assert_eq!(host.engine.stats().half_open, 0, "nothing is kept of it");
        let again = loop {
            let Event::Incoming(incoming) = host.event().await else { panic!("it comes again") };
            // Its first packet may have arrived twice.
            if incoming.is_proven() {
                break incoming;
            }
            host.engine.ask_for_proof(incoming);
        };
        host.engine.refuse(again);
        let refused = host.serve_while(dialing).await.unwrap();
        assert_eq!(refused.unwrap_err(), ConnectError::Busy { addr });
        assert_eq!((host.engine.stats().half_open, host.engine.connections()), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_crowd_must_show_its_address_and_then_is_refused() {
    within(async {
        let mut host = Host::start_with(HandshakeLimits { retry_above: 0, refuse_above: 1_000 });
        host.assert_serves().await;
        assert_eq!((host.engine.stats().retried, host.engine.stats().half_open), (1, 0));

        let mut host = Host::start_with(HandshakeLimits { retry_above: 0, refuse_above: 0 });
        let (addr, trust, dialer) = (host.addr, host.trust.clone(), Dialer::new());
        let refused = host.serve_while(dialer.connect(addr, "localhost", &trust, HANG)).await;
        assert_eq!(refused.unwrap_err(), ConnectError::Busy { addr });
        assert_eq!((host.engine.stats().refused, host.engine.stats().half_open), (1, 0));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_handshake_is_forgotten() {
    within(async {
        let mut host = Host::start();
        host.handshake_time = Duration::from_millis(20);
        // Its first packet comes through a socket that relays nothing else.
        let between = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
        let (dialer, trust) = (Dialer::new(), host.trust.clone());
        let dialing = dialer.connect(between.local_addr().unwrap(), "localhost", &trust, HANG);
        let mut first = vec![0; 2_000];
        let length = tokio::select! {
            length = between.recv(&mut first) => length.unwrap(),
            _ = dialing => panic!("nobody answered"),
        };
        between.send_to(&first[..length], host.addr).await.unwrap();
        let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
        let (remote, waited) = (between.local_addr().unwrap(), host.handshake_time);
        assert!(matches!(error, HandshakeError::TimedOut { remote: from, waited: time } if from == remote && time == waited));
        assert_eq!(host.engine.stats().half_open, 0);
        host.handshake_time = HANG;
        host.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn who_speaks_another_protocol_or_takes_no_datagrams_does_not_get_in() {
    within(async {
        let mut host = Host::start();
        let (addr, certificates) = (host.addr, host.certificates.clone());
        for alpn in [&[&b"h2"[..]][..], &[]] {
            let dialing = raw::connect_with(addr, &certificates, alpn, TransportConfig::default());
            assert!(host.serve_while(dialing).await.is_err());
            // The first packet is enough, so there never was a connection.
            assert_eq!((host.engine.stats().half_open, host.engine.connections()), (0, 0));
        }
        let mut transport = TransportConfig::default();
        transport.datagram_receive_buffer_size(None);
        let dialing = raw::connect_with(addr, &certificates, &[ALPN_PARLOR], transport);
        let peer = host.serve_while(dialing).await.unwrap();
        let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
        assert!(matches!(error, HandshakeError::NotParlor { violation: Violation::NoDatagrams, .. }));
        host.serve_while(raw::assert_closed_for(&peer, &Violation::NoDatagrams)).await;
        host.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn a_client_that_refuses_the_stream_is_named() {
    within(async {
        let mut host = Host::start();
        let (addr, certificates) = (host.addr, host.certificates.clone());
        let peer = host.serve_while(raw::connect(addr, &certificates)).await.unwrap();
        let id = host.accept().await;
        host.send(id, packet(Carrier::Stream, "hello")).await;
        host.serve_while(peer.accept_uni()).await.unwrap().stop(1u32.into()).unwrap();
        let Event::Closed { why, .. } = host.told().await else { panic!("it is over") };
        assert_eq!(why, LinkClosed::NotParlor(Violation::StreamStopped));
        host.serve_while(raw::assert_closed_for(&peer, &Violation::StreamStopped)).await;
    })
    .await;
}

#[tokio::test]
async fn a_bad_network_is_felt_and_loses_nothing_of_a_stream() {
    within(async {
        let conditions = Conditions::new("latency=20ms,loss=5%".parse().unwrap());
        let mut host = Host::start_on(HandshakeLimits::default(), Some(&conditions));
        let dialer = Dialer::new();
        let begun = Instant::now();
        let (mut client, id) = host.client(&dialer).await;
        assert!(begun.elapsed() >= Duration::from_millis(40), "a handshake goes there and back");
        for number in 0..20_u32 {
            let sent = packet(Carrier::Stream, number.to_le_bytes().to_vec());
            client.send(sent.clone()).unwrap();
            assert_eq!(host.packet().await, (id, sent.clone()));
            host.send(id, sent.clone()).await;
            assert_eq!(host.serve_while(client.recv()).await.unwrap(), sent);
        }
    })
    .await;
}

#[tokio::test]
async fn garbage_on_the_port_harms_nobody() {
    within(async {
        let mut host = Host::start();
        let socket = UdpSocket::bind(LOCALHOST).unwrap();
        for length in 0..1_200_usize {
            let garbage: Vec<u8> = (0..length).map(|at| (at * 37 + length * 101).to_le_bytes()[0]).collect();
            socket.send_to(&garbage, host.addr).unwrap();
        }
        host.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn a_closed_engine_tells_all_and_lets_nobody_in() {
    within(async {
        let (mut host, dialer) = (Host::start(), Dialer::new());
        let (mut client, id) = host.client(&dialer).await;
        host.engine.close(CloseCode::GOING_AWAY, "back in a minute", Instant::now());
        let reason = "back in a minute".to_owned();
        let end = host.serve_while(client.recv()).await.unwrap_err();
        assert_eq!(end, LinkClosed::ByPeer { code: CloseCode::GOING_AWAY, reason });
        assert!(matches!(host.told().await, Event::Closed { id: closed, .. } if closed == id));
        let (addr, trust) = (host.addr, host.trust.clone());
        let refused = host.serve_while(dialer.connect(addr, "localhost", &trust, HANG)).await;
        assert_eq!(refused.unwrap_err(), ConnectError::Busy { addr });
        host.engine.wind_up().await;
        assert_eq!(host.engine.connections(), 0);
    })
    .await;
}

/// Sends when there is room, while the host continues.
async fn send(host: &mut Host, client: &Link, packet: Packet) {
    let mut packet = packet;
    while let Err(error) = client.send(packet) {
        let SendError::NotWritable(back) = error else { panic!("{error}") };
        packet = back;
        host.serve_while(client.sender.writable(packet.carrier)).await;
    }
}

/// Returns the numbers of all packets until the end.
async fn all_of(client: &mut Link) -> (Vec<u32>, LinkClosed) {
    let mut numbers = Vec::new();
    loop {
        match client.recv().await {
            Ok(packet) => numbers.push(number_of(&packet)),
            Err(end) => return (numbers, end),
        }
    }
}

fn number_of(packet: &Packet) -> u32 {
    u32::from_le_bytes(packet.bytes[..4].try_into().unwrap())
}
