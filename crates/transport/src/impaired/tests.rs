//! Tests of the socket below QUIC, from both sides.

use super::lane::{Lane, UNDER_WAY_MAX};
use super::{Conditions, endpoint};
use crate::{Identity, ServerTls, Trust};
use core::future::poll_fn;
use core::net::{Ipv4Addr, SocketAddr};
use core::time::Duration;
use parlor_impair::{Direction, Path};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{
    AsyncUdpSocket, ClientConfig, ConnectionError, Runtime, ServerConfig, TokioRuntime, TransportConfig,
};
use std::io::IoSliceMut;
use std::net::UdpSocket;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

const LOCALHOST: SocketAddr = SocketAddr::new(core::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Timeout: only a hang takes this long.
const HANG: Duration = Duration::from_secs(60);
const ALPN: &[u8] = b"test";

fn conditions(text: &str) -> Conditions {
    Conditions::new(text.parse().unwrap())
}

fn udp() -> Arc<dyn AsyncUdpSocket> {
    TokioRuntime.wrap_udp_socket(UdpSocket::bind(LOCALHOST).unwrap()).unwrap()
}

fn impaired(text: &str) -> Arc<dyn AsyncUdpSocket> {
    super::udp::impair(udp(), &conditions(text))
}

fn send(socket: &dyn AsyncUdpSocket, to: SocketAddr, contents: &[u8], segment_size: Option<usize>) {
    let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
    socket.try_send(&transmit).unwrap();
}

#[tokio::test]
async fn the_seed_decides_which_datagrams_leave_the_socket() {
    let text = "loss=25%,duplicate=10%,seed=5";
    let peer = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
    let (socket, to) = (impaired(text), peer.local_addr().unwrap());
    let mut model = Path::new(&text.parse().unwrap(), 0, Direction::There);
    let mut buffer = [0; 4];
    for number in 0..400u32 {
        send(&*socket, to, &number.to_be_bytes(), None);
        for _ in model.offer(Duration::ZERO, 4) {
            assert_eq!(timeout(HANG, peer.recv(&mut buffer)).await.unwrap().unwrap(), 4);
            assert_eq!(u32::from_be_bytes(buffer), number);
        }
    }
    assert!(model.counts().lost > 70 && model.counts().duplicated > 20);
}

#[tokio::test]
async fn what_is_under_way_leaves_although_the_socket_is_dropped() {
    let peer = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
    let socket = impaired("latency=20ms");
    let sent = Instant::now();
    send(&*socket, peer.local_addr().unwrap(), b"bye", None);
    drop(socket);
    assert_eq!(timeout(HANG, peer.recv(&mut [0; 8])).await.unwrap().unwrap(), 3);
    assert!(sent.elapsed() >= Duration::from_millis(20));
}

#[tokio::test]
async fn datagrams_that_are_sent_together_leave_as_single_ones() {
    let peer = tokio::net::UdpSocket::bind(LOCALHOST).await.unwrap();
    let socket = impaired("none");
    assert_eq!(socket.max_transmit_segments(), 1);
    send(&*socket, peer.local_addr().unwrap(), b"aaabbbc", Some(3));
    let mut buffer = [0; 8];
    for expected in [&b"aaa"[..], b"bbb", b"c"] {
        let bytes = timeout(HANG, peer.recv(&mut buffer)).await.unwrap().unwrap();
        assert_eq!(&buffer[..bytes], expected);
    }
}

#[tokio::test]
async fn datagrams_that_come_together_are_received_as_single_ones() {
    // With segmentation offload the system passes all of them at once, where supported.
    let sender = udp();
    let socket = impaired("latency=1ms");
    let segments = sender.max_transmit_segments().min(8);
    let contents: Vec<u8> = (0..segments).flat_map(|number| [u8::try_from(number).unwrap(); 100]).collect();
    let segment_size = (segments > 1).then_some(100);
    let writable = async {
        let mut poller = Arc::clone(&sender).create_io_poller();
        poll_fn(|cx| poller.as_mut().poll_writable(cx)).await.unwrap();
    };
    timeout(HANG, writable).await.unwrap();
    send(&*sender, socket.local_addr().unwrap(), &contents, segment_size);
    let mut came = Vec::new();
    while came.len() < segments {
        let size = 1_500 * socket.max_receive_segments();
        let (mut one, mut other) = (vec![0; size], vec![0; size]);
        let mut metas = [RecvMeta::default(); 2];
        let receiving = poll_fn(|cx| {
            let mut bufs = [IoSliceMut::new(&mut one), IoSliceMut::new(&mut other)];
            socket.poll_recv(cx, &mut bufs, &mut metas)
        });
        let received = timeout(HANG, receiving).await.unwrap().unwrap();
        for (buffer, meta) in [&one, &other].into_iter().zip(&metas[..received]) {
            assert_eq!((meta.len, meta.stride), (100, 100));
            assert_eq!(meta.addr, sender.local_addr().unwrap());
            came.push(buffer[0]);
        }
    }
    assert!(came.into_iter().map(usize::from).eq(0..segments));
}

#[tokio::test]
async fn what_is_under_way_is_bounded_and_everything_is_counted() {
    let conditions = conditions("latency=10s,seed=1");
    let mut lane = Lane::new(&conditions, 0, Direction::There);
    let start = Instant::now();
    for _ in 0..UNDER_WAY_MAX + 7 {
        lane.offer(start, 1, &());
    }
    let news = lane.news();
    assert_eq!((news.offered, news.overflowed), (UNDER_WAY_MAX as u64 + 7, 7));
    // A later change does not affect packets in flight, and the counts continue.
    conditions.set("loss=100%".parse().unwrap());
    lane.offer(start, 1, &());
    let news = lane.news();
    assert_eq!((news.offered, news.lost, news.overflowed), (1, 1, 0));
    assert_eq!(lane.take(start + Duration::from_secs(9)), None);
    let late = start + Duration::from_secs(11);
    assert_eq!(core::iter::from_fn(|| lane.take(late)).count(), UNDER_WAY_MAX);
    assert_eq!(lane.next_at(), None);
}

#[tokio::test]
async fn an_outage_longer_than_the_idle_timeout_breaks_the_link() {
    let mut transport = TransportConfig::default();
    let idle = Duration::from_secs(2);
    // Without the outage the link would never end.
    transport.max_idle_timeout(Some(idle.try_into().unwrap())).keep_alive_interval(Some(idle / 10));
    let transport = Arc::new(transport);
    let identity = Identity::generate(&["localhost"]).unwrap();
    let tls = ServerTls::new(&identity).quic_config(vec![ALPN.to_vec()]);
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()));
    server.transport_config(Arc::clone(&transport));
    let (tls, _) = Trust::Fingerprint(identity.fingerprint()).quic_config(ALPN).unwrap();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    client.transport_config(transport);

    let conditions = conditions("none");
    let server = endpoint(udp(), Some(server), Some(&conditions)).unwrap();
    let dialer = endpoint(udp(), None, None).unwrap();
    let connecting = dialer.connect_with(client, server.local_addr().unwrap(), "localhost").unwrap();
    let accepting = async { server.accept().await.unwrap().await };
    let (client, served) = timeout(HANG, async { tokio::join!(connecting, accepting) }).await.unwrap();
    let (client, served) = (client.unwrap(), served.unwrap());
    conditions.set("outage=59min/3540001ms".parse().unwrap());
    let ends = timeout(HANG, async { tokio::join!(client.closed(), served.closed()) }).await.unwrap();
    assert!(matches!(ends, (ConnectionError::TimedOut, ConnectionError::TimedOut)), "{ends:?}");
}
