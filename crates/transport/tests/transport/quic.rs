//! QUIC: certificate verification, and hostile peers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::host::Host;
use crate::common::raw::{self, assert_closed_for, send_stream};
use crate::common::{HANG, LOCALHOST, QuicServer, identity, packet, within};
use core::time::Duration;
use parlor_proto::Carrier;
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_transport::quic::engine::Event;
use parlor_transport::quic::{
    ALPN_PARLOR, Dialer, STREAM_TYPE_ISOLATED, STREAM_TYPE_RECORDS, STREAMS_MAX, udp_buffers,
};
use parlor_transport::{ConnectError, LinkClosed, Trust, Violation};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::net::UdpSocket;
use std::sync::Arc;

#[tokio::test]
async fn a_wrong_fingerprint_is_refused_by_name() {
    within(async {
        let server = QuicServer::start();
        let expected = identity().fingerprint();
        let dialer = Dialer::new();
        let trust = Trust::Fingerprint(expected);
        let dialing = dialer.connect(server.addr, "localhost", &trust, HANG);
        let (error, served) = tokio::join!(dialing, server.handshake());
        let found = server.identity.fingerprint();
        assert_eq!(error.unwrap_err(), ConnectError::WrongFingerprint { expected, found });
        assert!(served.is_err());
        server.assert_serves().await;
    })
    .await;
}

#[tokio::test]
async fn own_roots_check_the_name_and_the_issuer() {
    within(async {
        let server = QuicServer::start();
        let roots = Trust::Roots(server.identity.to_pem().certificates);
        let dialer = Dialer::new();
        let (link, _served) =
            tokio::join!(dialer.connect(server.addr, "localhost", &roots, HANG), server.accept());
        link.unwrap();
        let others = Trust::Roots(identity().to_pem().certificates);
        for (name, trust) in [("example.com", &roots), ("localhost", &others)] {
            let refused = tokio::select! {
                refused = dialer.connect(server.addr, name, trust, HANG) => refused,
                _ = server.accept() => panic!("{name} got in"),
            };
            assert!(matches!(refused, Err(ConnectError::UntrustedCertificate(_))), "{refused:?}");
        }
        let nothing = dialer.connect(server.addr, "localhost", &Trust::Roots(String::new()), HANG).await;
        assert!(matches!(nothing, Err(ConnectError::TrustUnreadable(_))));
        let no_name = dialer.connect(server.addr, "no name", &roots, HANG).await;
        assert!(matches!(no_name, Err(ConnectError::InvalidName(_))));
    })
    .await;
}

#[tokio::test]
async fn a_dead_port_times_out() {
    let dead = UdpSocket::bind(LOCALHOST).unwrap();
    let addr = dead.local_addr().unwrap();
    let waited = Duration::from_millis(50);
    let trust = Trust::Fingerprint(identity().fingerprint());
    let error = Dialer::new().connect(addr, "localhost", &trust, waited).await.unwrap_err();
    assert_eq!(error, ConnectError::TimedOut { addr, waited });
}

#[tokio::test]
async fn a_measured_network_has_a_round_trip_and_a_packet_size() {
    within(async {
        let server = QuicServer::start();
        let dialer = Dialer::new();
        let measuring = dialer.measure(server.addr, "localhost", &server.trust, HANG);
        let (measured, served) = tokio::join!(measuring, async {
            let mut served = server.accept().await;
            served.recv().await
        });
        let measured = measured.unwrap();
        assert!(measured.rtt > Duration::ZERO && measured.packet_bytes_max >= 1_200, "{measured:?}");
        assert!(served.is_err(), "the connection is closed again");
        dialer.wait_idle().await;
    })
    .await;
}

#[test]
fn a_socket_has_buffers() {
    let (granted, wanted) = udp_buffers().unwrap();
    assert!(granted.iter().all(|bytes| (1..=wanted).contains(bytes)), "{granted:?} of {wanted}");
}

#[tokio::test]
async fn one_dialer_serves_many_links() {
    within(async {
        let server = QuicServer::start();
        let dialer = Dialer::new();
        let mut links = Vec::new();
        for _ in 0..3 {
            let dialing = dialer.connect(server.addr, "localhost", &server.trust, HANG);
            let (client, served) = tokio::join!(dialing, server.accept());
            links.push((client.unwrap(), served));
        }
        let ports: Vec<_> = links.iter().map(|(_, served)| served.remote().port()).collect();
        assert!(ports.iter().all(|port| *port == ports[0]), "one socket for all");
        drop(links);
        dialer.wait_idle().await;
    })
    .await;
}

#[tokio::test]
async fn links_outlive_their_dialer_and_their_server() {
    within(async {
        let server = QuicServer::start();
        let dialer = Dialer::new();
        let dialing = dialer.connect(server.addr, "localhost", &server.trust, HANG);
        let (client, mut served) = tokio::join!(dialing, server.accept());
        drop((dialer, server));
        client.unwrap().send(packet(Carrier::Stream, "still here")).unwrap();
        assert_eq!(served.recv().await.unwrap().bytes, "still here");
    })
    .await;
}

#[tokio::test]
async fn a_server_of_another_protocol_is_not_parlor() {
    within(async {
        let identity = identity();
        let pem = identity.to_pem();
        let chain = vec![CertificateDer::from_pem_slice(pem.certificates.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(pem.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        for alpn in [vec![b"h3".to_vec()], vec![]] {
            tls.alpn_protocols = alpn;
            let crypto = QuicServerConfig::try_from(tls.clone()).unwrap();
            let endpoint = Endpoint::server(ServerConfig::with_crypto(Arc::new(crypto)), LOCALHOST).unwrap();
            let addr = endpoint.local_addr().unwrap();
            let trust = Trust::Fingerprint(identity.fingerprint());
            let dialer = Dialer::new();
            let serving = async { endpoint.accept().await.unwrap().await };
            let (refused, _) = tokio::join!(dialer.connect(addr, "localhost", &trust, HANG), serving);
            assert!(matches!(refused, Err(ConnectError::NotParlor { .. })), "{refused:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_record_beyond_the_limit_is_refused_by_its_length_alone() {
    let too_long = u32::try_from(STREAM_PACKET_BYTES_MAX + 1).unwrap() | 0x8000_0000;
    refused(Violation::OversizedPacket, async |peer| {
        send_stream(peer, &[&[STREAM_TYPE_RECORDS][..], &too_long.to_be_bytes()].concat(), false).await;
    })
    .await;
    refused(Violation::OversizedPacket, async |peer| {
        send_stream(peer, &[STREAM_TYPE_RECORDS, 0xff], false).await;
    })
    .await;
}

#[tokio::test]
async fn a_record_with_a_padded_length_is_refused() {
    refused(Violation::RecordLength, async |peer| {
        send_stream(peer, &[STREAM_TYPE_RECORDS, 0x40, 0x01, 0xaa], false).await;
    })
    .await;
}

#[tokio::test]
async fn a_truncated_record_is_named() {
    refused(Violation::TruncatedRecord, async |peer| {
        send_stream(peer, &[STREAM_TYPE_RECORDS, 5, 1, 2], true).await;
    })
    .await;
}

#[tokio::test]
async fn an_unknown_stream_type_is_named() {
    refused(Violation::UnknownStreamType(7), async |peer| send_stream(peer, &[7], false).await).await;
}

#[tokio::test]
async fn a_stream_without_a_type_is_named() {
    refused(Violation::EmptyStream, async |peer| send_stream(peer, &[], true).await).await;
}

#[tokio::test]
async fn a_second_stream_of_records_is_named() {
    refused(Violation::SecondRecordStream, async |peer| {
        send_stream(peer, &[STREAM_TYPE_RECORDS], false).await;
        send_stream(peer, &[STREAM_TYPE_RECORDS], false).await;
    })
    .await;
}

#[tokio::test]
async fn a_reset_stream_is_named() {
    refused(Violation::StreamReset, async |peer| {
        let mut stream = peer.open_uni().await.unwrap();
        stream.write_all(&[STREAM_TYPE_RECORDS, 5, 1]).await.unwrap();
        stream.reset(1u32.into()).unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_isolated_packet_beyond_the_limit_is_named() {
    let mut stream = vec![0; 1 + STREAM_PACKET_BYTES_MAX + 1];
    stream[0] = STREAM_TYPE_ISOLATED;
    refused(Violation::OversizedPacket, async |peer| send_stream(peer, &stream, true).await).await;
}

#[tokio::test]
async fn a_datagram_beyond_the_limit_is_named() {
    let bytes = DATAGRAM_BYTES_MAX + 1;
    refused(Violation::OversizedDatagram { bytes }, async |peer| {
        peer.send_datagram(vec![0; bytes].into()).unwrap();
    })
    .await;
}

#[tokio::test]
async fn unfinished_packets_fill_a_budget_and_no_more() {
    refused(Violation::TooMuchUnfinished, async |peer| {
        let mut stream = vec![0; 1 + STREAM_PACKET_BYTES_MAX];
        stream[0] = STREAM_TYPE_ISOLATED;
        for _ in 0..STREAMS_MAX {
            send_stream(peer, &stream, false).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_takes_no_datagrams_is_no_parlor_peer() {
    within(async {
        let server = QuicServer::start();
        let mut transport = TransportConfig::default();
        transport.datagram_receive_buffer_size(None);
        let dialing = raw::connect_with(server.addr, &server.certificates, &[ALPN_PARLOR], transport);
        let (peer, served) = tokio::join!(dialing, server.handshake());
        assert_eq!(served.unwrap().err(), Some(Violation::NoDatagrams));
        assert_closed_for(&peer.unwrap(), &Violation::NoDatagrams).await;
    })
    .await;
}

#[tokio::test]
async fn a_peer_that_refuses_the_stream_is_named() {
    within(async {
        let server = QuicServer::start();
        let (peer, mut served) =
            tokio::join!(raw::connect(server.addr, &server.certificates), server.accept());
        let peer = peer.unwrap();
        served.send(packet(Carrier::Stream, "hello")).unwrap();
        peer.accept_uni().await.unwrap().stop(1u32.into()).unwrap();
        served.send(packet(Carrier::Stream, "anybody there?")).unwrap();
        // The writing task notices it while it writes.
        while served.sender.end().is_none() {
            served.sender.writable(Carrier::Stream).await;
            let _ = served.send(packet(Carrier::Stream, vec![0; 1_000]));
            tokio::task::yield_now().await;
        }
        assert_eq!(served.recv().await, Err(LinkClosed::NotParlor(Violation::StreamStopped)));
        assert_closed_for(&peer, &Violation::StreamStopped).await;
    })
    .await;
}

/// A peer violates the protocol after a valid packet: the packet arrives, both ends learn of the violation,
/// and the server continues to serve others. Both for a link and for an engine.
async fn refused(violation: Violation, misbehave: impl AsyncFn(&Connection)) {
    within(refused_by_link(&violation, &misbehave)).await;
    within(refused_by_engine(&violation, &misbehave)).await;
}

async fn refused_by_link(violation: &Violation, misbehave: &impl AsyncFn(&Connection)) {
    let server = QuicServer::start();
    let (peer, mut served) = tokio::join!(raw::connect(server.addr, &server.certificates), server.accept());
    let peer = peer.unwrap();
    peer.send_datagram("fine".into()).unwrap();
    assert_eq!(served.recv().await, Ok(packet(Carrier::Datagram, "fine")));
    let receiving = async {
        loop {
            match served.recv().await {
                Ok(_) => {}
                Err(end) => break end,
            }
        }
    };
    let (end, ()) = tokio::join!(receiving, misbehave(&peer));
    assert_eq!(end, LinkClosed::NotParlor(violation.clone()));
    assert_eq!(served.sender.end(), Some(LinkClosed::NotParlor(violation.clone())));
    assert_closed_for(&peer, violation).await;
    server.assert_serves().await;
}

async fn refused_by_engine(violation: &Violation, misbehave: &impl AsyncFn(&Connection)) {
    let mut host = Host::start();
    let (addr, certificates) = (host.addr, host.certificates.clone());
    let peer = host.serve_while(raw::connect(addr, &certificates)).await.unwrap();
    let id = host.accept().await;
    peer.send_datagram("fine".into()).unwrap();
    assert_eq!(host.packet().await, (id, packet(Carrier::Datagram, "fine")));
    host.serve_while(async {
        misbehave(&peer).await;
        assert_closed_for(&peer, violation).await;
    })
    .await;
    loop {
        match host.event().await {
            Event::Packet { .. } => {}
            Event::Closed { id: closed, why } => {
                assert_eq!((closed, why), (id, LinkClosed::NotParlor(violation.clone())));
                break;
            }
            event => panic!("{event:?}"),
        }
    }
    host.assert_serves().await;
}
