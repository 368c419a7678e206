//! Links and programs on a bad network, over real sockets. The tests check which packets arrive, and only
//! that they are not too early.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::{Ends, HANG, LOCALHOST, Made, QuicServer, packet, within};
use core::time::Duration;
use parlor_proto::Carrier;
use parlor_transport::CloseCode;
use parlor_transport::impaired::{Conditions, FLOW_IDLE, FLOWS_MAX, Proxy, ProxyCounts};
use parlor_transport::quic::Dialer;
use std::time::Instant;
use tokio::net::UdpSocket;

const LATENCY: Duration = Duration::from_millis(40);

fn conditions(text: &str) -> Conditions {
    Conditions::new(text.parse().unwrap())
}

/// The round trip of a packet to the server and back.
async fn round_trip(ends: &mut Ends) -> Duration {
    let sent = Instant::now();
    ends.client.send(packet(Carrier::Stream, "ping")).unwrap();
    assert_eq!(ends.server.recv().await.unwrap().bytes, "ping");
    ends.server.send(packet(Carrier::Stream, "pong")).unwrap();
    assert_eq!(ends.client.recv().await.unwrap().bytes, "pong");
    sent.elapsed()
}

#[tokio::test]
async fn a_round_trip_takes_the_latency_of_both_ways() {
    within(async {
        for made in [Made::Quic, Made::Ws, Made::Wss] {
            let conditions = conditions("latency=40ms");
            let mut ends = made.ends_on(&conditions).await;
            let took = round_trip(&mut ends).await;
            assert!(took >= LATENCY * 2, "{made:?} took {took:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn everything_arrives_on_a_stream_in_order_whatever_is_lost() {
    within(async {
        for made in [Made::Quic, Made::Ws, Made::Wss] {
            let text = "latency=2ms,jitter=2ms,loss=5%,duplicate=2%,reorder=1%,rate=20mbit,seed=3";
            let mut ends = made.ends_on(&conditions(text)).await;
            let mut sent = 0u32;
            for received in 0..300u32 {
                // As many at once as the link accepts.
                while sent < 300 && sent - received < 40 {
                    let bytes = [&sent.to_be_bytes()[..], &[0; 900]].concat();
                    ends.client.send(packet(Carrier::Stream, bytes)).unwrap();
                    sent += 1;
                }
                let bytes = ends.server.recv().await.unwrap().bytes;
                assert_eq!(bytes[..4], received.to_be_bytes(), "{made:?}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn conditions_change_while_a_link_is_open() {
    within(async {
        for made in [Made::Quic, Made::Wss] {
            let conditions = conditions("none");
            let mut ends = made.ends_on(&conditions).await;
            round_trip(&mut ends).await;
            conditions.set("latency=40ms".parse().unwrap());
            let took = round_trip(&mut ends).await;
            assert!(took >= LATENCY * 2, "{made:?} took {took:?}");
            conditions.set("none".parse().unwrap());
            round_trip(&mut ends).await;
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_lost_on_a_stream_comes_when_the_network_is_back() {
    within(async {
        let conditions = conditions("none");
        let mut ends = Made::Quic.ends_on(&conditions).await;
        round_trip(&mut ends).await;
        conditions.set("loss=100%".parse().unwrap());
        ends.client.send(packet(Carrier::Stream, "lost")).unwrap();
        let nothing = tokio::time::timeout(Duration::from_millis(100), ends.server.recv()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        conditions.set("none".parse().unwrap());
        assert_eq!(ends.server.recv().await.unwrap().bytes, "lost");
    })
    .await;
}

#[tokio::test]
async fn a_proxy_carries_quic_and_counts() {
    within(async {
        let server = QuicServer::start();
        let conditions = conditions("latency=20ms,loss=5%,seed=11");
        let mut proxy = Proxy::bind(LOCALHOST, server.addr, &conditions).await.unwrap();
        let addr = proxy.local_addr().unwrap();
        let dialer = Dialer::new();
        let play = async {
            let dialing = dialer.connect(addr, "localhost", &server.trust, HANG);
            let (client, mut served) = tokio::join!(dialing, server.accept());
            let client = client.unwrap();
            let sent = Instant::now();
            client.send(packet(Carrier::Stream, "through")).unwrap();
            assert_eq!(served.recv().await.unwrap().bytes, "through");
            assert!(sent.elapsed() >= Duration::from_millis(20));
        };
        tokio::select! {
            () = play => {}
            failed = proxy.run() => panic!("{failed}"),
        }
        let counts = proxy.counts();
        assert_eq!((counts.clients, proxy.flows(), counts.refused), (1, 1, 0));
        assert!(counts.there.offered >= 3 && counts.back.offered >= 3, "{counts:?}");
    })
    .await;
}

/// Sends numbered datagrams through a proxy, one after the other. Returns the numbers of those that arrived.
async fn survivors(text: &str) -> (Vec<u32>, ProxyCounts) {
    let server = UdpSocket::bind(LOCALHOST).await.unwrap();
    let to = server.local_addr().unwrap();
    let mut proxy = Proxy::bind(LOCALHOST, to, &conditions(text)).await.unwrap();
    let client = UdpSocket::bind(LOCALHOST).await.unwrap();
    client.connect(proxy.local_addr().unwrap()).await.unwrap();
    let mut buffer = [0; 8];
    let mut came = Vec::new();
    for number in 0..400u32 {
        client.send(&number.to_be_bytes()).await.unwrap();
        // Until the proxy has decided on it, and what it let through has arrived.
        while proxy.counts().there.offered <= u64::from(number)
            || (came.len() as u64) < proxy.counts().there.arriving()
        {
            tokio::select! {
                received = server.recv(&mut buffer) => {
                    assert_eq!(received.unwrap(), 4);
                    came.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
                }
                failed = proxy.run() => panic!("{failed}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
    (came, proxy.counts())
}

#[tokio::test]
async fn a13_the_same_seed_loses_the_same_datagrams() {
    within(async {
        let (came, counts) = survivors("loss=20%,duplicate=10%,seed=5").await;
        assert!(counts.there.lost > 40 && counts.there.duplicated > 10, "{counts:?}");
        assert_eq!(survivors("loss=20%,duplicate=10%,seed=5").await, (came.clone(), counts));
        assert_ne!(survivors("loss=20%,duplicate=10%,seed=6").await.0, came);
    })
    .await;
}

#[tokio::test]
async fn a_proxy_keeps_clients_apart_and_only_so_many() {
    within(async {
        let server = UdpSocket::bind(LOCALHOST).await.unwrap();
        let to = server.local_addr().unwrap();
        let mut proxy = Proxy::bind(LOCALHOST, to, &conditions("none")).await.unwrap();
        let addr = proxy.local_addr().unwrap();
        let mut clients = Vec::new();
        for _ in 0..=FLOWS_MAX {
            let client = UdpSocket::bind(LOCALHOST).await.unwrap();
            client.connect(addr).await.unwrap();
            clients.push(client);
        }
        let (last, first) = clients.split_last().unwrap();
        let play = async {
            let mut buffer = [0; 8];
            for (number, client) in first.iter().enumerate() {
                client.send(&[u8::try_from(number % 256).unwrap()]).await.unwrap();
                let (bytes, flow) = server.recv_from(&mut buffer).await.unwrap();
                server.send_to(&buffer[..bytes], flow).await.unwrap();
            }
            for (number, client) in first.iter().enumerate() {
                assert_eq!(client.recv(&mut buffer).await.unwrap(), 1);
                assert_eq!(usize::from(buffer[0]), number % 256);
            }
            last.send(b"too many").await.unwrap();
        };
        tokio::select! {
            () = play => {}
            failed = proxy.run() => panic!("{failed}"),
        }
        while proxy.counts().refused == 0 {
            tokio::select! {
                failed = proxy.run() => panic!("{failed}"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!(proxy.flows(), FLOWS_MAX);
    })
    .await;
}

#[tokio::test]
async fn a_proxy_forgets_clients_that_are_silent() {
    // Time advances only where this says so, and sockets are not affected. A hang is measured by the system's
    // clock.
    tokio::time::pause();
    let began = Instant::now();
    let server = UdpSocket::bind(LOCALHOST).await.unwrap();
    let to = server.local_addr().unwrap();
    let mut proxy = Proxy::bind(LOCALHOST, to, &conditions("none")).await.unwrap();
    let client = UdpSocket::bind(LOCALHOST).await.unwrap();
    client.connect(proxy.local_addr().unwrap()).await.unwrap();
    for visit in 1..=2 {
        client.send(b"hello").await.unwrap();
        let (mut buffer, mut has_come) = ([0; 8], false);
        while !has_come {
            assert!(began.elapsed() < HANG, "the datagram does not come");
            tokio::select! {
                received = server.recv(&mut buffer) => has_come = received.is_ok(),
                failed = proxy.run() => panic!("{failed}"),
                () = tokio::task::yield_now() => {}
            }
        }
        assert_eq!((proxy.counts().clients, proxy.flows()), (visit, 1));
        tokio::time::advance(FLOW_IDLE + Duration::from_secs(1)).await;
        while proxy.flows() > 0 {
            assert!(began.elapsed() < HANG, "the client is not forgotten");
            tokio::select! {
                failed = proxy.run() => panic!("{failed}"),
                () = tokio::task::yield_now() => {}
            }
        }
    }
}

const TICK: Duration = Duration::from_millis(33);
const TICKS: u32 = 900;
/// Bytes per second of the narrow path, and of the traffic offered.
const CARRIES: u64 = 1_000_000 / 8;
const WANTS: u64 = 3 * CARRIES;

/// Sends what a room would make each tick, limited to the link's estimate of the path if `heeds`. Of the last
/// two thirds of the time it returns the 95th percentile of the latency, and the used share of the path in
/// percent.
async fn stream_of_state(ends: Ends, heeds: bool) -> (Duration, u64) {
    const BYTES: usize = 500;
    let Ends { client, mut server, .. } = ends;
    let (client, _receiver) = client.split();
    let began = tokio::time::Instant::now();
    let sending = async {
        let (mut every, mut budget) = (tokio::time::interval(TICK), 0);
        for _ in 0..TICKS {
            every.tick().await;
            let carries = client.bytes_per_second().filter(|_| heeds).unwrap_or(WANTS);
            budget += carries.min(WANTS) * 33 / 1_000;
            while budget >= BYTES as u64 {
                budget -= BYTES as u64;
                let sent = u64::try_from(began.elapsed().as_micros()).unwrap().to_be_bytes();
                // What finds no room is outdated before there is some.
                let _ = client.send(packet(Carrier::Stream, [&sent[..], &[0; BYTES - 8]].concat()));
            }
        }
        client.close(CloseCode::DONE, "");
        client.closed().await;
    };
    let receiving = async {
        let mut took = Vec::new();
        while let Ok(packet) = server.recv().await {
            let sent = Duration::from_micros(u64::from_be_bytes(packet.bytes[..8].try_into().unwrap()));
            if sent >= TICK * (TICKS / 3) {
                took.push(began.elapsed().saturating_sub(sent));
            }
        }
        took
    };
    let ((), mut took) = tokio::join!(sending, receiving);
    took.sort_unstable();
    let used = (took.len() * BYTES) as u64 * 100;
    (took[took.len() * 95 / 100], used / (CARRIES * 33 / 1_000 * u64::from(TICKS * 2 / 3)))
}

#[tokio::test(start_paused = true)]
async fn a_websocket_on_a_narrow_path_says_what_it_carries_and_no_long_queue_stands() {
    let narrow = conditions("latency=20ms,rate=1mbit,queue=8kB");
    for made in [Made::Ws, Made::Wss] {
        let (took, used) = stream_of_state(made.ends_on(&narrow).await, true).await;
        assert!(took < Duration::from_millis(350) && used > 75, "{made:?}: {took:?}, {used}% used");
        let (took, _) = stream_of_state(made.ends_on(&narrow).await, false).await;
        assert!(took > Duration::from_millis(500), "{made:?}: {took:?} without a word of it");
    }
}
