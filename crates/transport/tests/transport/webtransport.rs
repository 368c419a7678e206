//! WebTransport against the engine, by a client that writes each byte itself: the session's rules, and what
//! hostile clients send. The same guarantees as of other links are in `engine.rs`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use crate::common::h3::{self, STREAM};
use crate::common::host::Host;
use crate::common::{packet, raw, within};
use core::time::Duration;
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::{Carrier, LinkKind};
use parlor_transport::quic::engine::Event;
use parlor_transport::quic::webtransport::{CONTROL, Fault, PASSED_OVER_BYTES_MAX, close};
use parlor_transport::quic::{ALPN_PARLOR, HandshakeError};
use parlor_transport::{CloseCode, LinkClosed, Violation};
use quinn::{Connection, ConnectionError, TransportConfig, VarInt};
use std::time::Instant;

const NO_ERROR: u32 = 0x100;
const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
const GREASE_STREAM: &[u8] = &[0x21];

/// What follows the prefix of a session's stream or datagram is as on a connection of its own.
#[tokio::test]
async fn packets_of_each_carrier_go_both_ways_behind_their_prefixes() {
    within(async {
        let mut host = Host::start();
        let (session, id) = h3::session(&mut host).await;
        let of_session = |bytes: &[u8]| [STREAM, bytes].concat();

        let mut records = h3::stream(&session.connection, &of_session(&[0, 3])).await;
        records.write_all(b"abc\x01d").await.unwrap();
        assert_eq!(host.packet().await, (id, packet(Carrier::Stream, "abc")));
        assert_eq!(host.packet().await, (id, packet(Carrier::Stream, "d")));
        h3::stream(&session.connection, &of_session(b"\x01alone")).await.finish().unwrap();
        assert_eq!(host.packet().await, (id, packet(Carrier::Isolated, "alone")));
        session.connection.send_datagram(b"\0soon".as_slice().into()).unwrap();
        assert_eq!(host.packet().await, (id, packet(Carrier::Datagram, "soon")));

        host.send(id, packet(Carrier::Datagram, vec![7; DATAGRAM_BYTES_MAX])).await;
        let datagram = host.serve_while(session.connection.read_datagram()).await.unwrap();
        assert_eq!((datagram[0], datagram.len()), (0, 1 + DATAGRAM_BYTES_MAX));
        for (carrier, bytes) in [(Carrier::Stream, "record"), (Carrier::Isolated, "isolated")] {
            host.send(id, packet(carrier, bytes)).await;
        }
        let mut streams = Vec::new();
        for _ in 0..3 {
            let mut stream = host.serve_while(session.connection.accept_uni()).await.unwrap();
            let mut bytes = Vec::new();
            while !bytes.ends_with(b"record") && !bytes.ends_with(&[0; 7]) {
                match host.serve_while(stream.read_chunk(64, true)).await.unwrap() {
                    Some(chunk) => bytes.extend_from_slice(&chunk.bytes),
                    None => break,
                }
            }
            streams.push((bytes, stream));
        }
        let bytes: Vec<&[u8]> = streams.iter().map(|(bytes, _)| &bytes[..]).collect();
        assert!(bytes[0].starts_with(&[0, 4]), "SETTINGS come first");
        assert!(bytes.contains(&&of_session(b"\x00\x06record")[..]), "{bytes:?}");
        assert!(bytes.contains(&&of_session(b"\x01isolated")[..]), "{bytes:?}");
    })
    .await;
}

#[tokio::test]
async fn what_overtakes_the_request_waits_for_it() {
    within(async {
        let mut host = Host::start();
        let connection = h3::connect(&mut host, TransportConfig::default()).await;
        connection.send_datagram(b"\0early".as_slice().into()).unwrap();
        let _records = h3::stream(&connection, &[STREAM, b"\x00\x05first"].concat()).await;
        let _asking = h3::ask(&connection).await;
        let Event::Connected { id, kind } = host.told().await else { panic!("it is admitted") };
        assert_eq!(kind, LinkKind::WebTransport);
        let mut came = vec![host.packet().await, host.packet().await];
        came.sort_by_key(|(_, packet)| packet.bytes.len());
        assert_eq!(came, [(id, packet(Carrier::Datagram, "early")), (id, packet(Carrier::Stream, "first"))]);
    })
    .await;
}

#[tokio::test]
async fn the_owner_decides_about_a_session_and_a_refused_client_may_ask_again() {
    within(async {
        let mut host = Host::start();
        let connection = h3::connect(&mut host, TransportConfig::default()).await;
        let (_control, stopped, mut answers) = h3::ask(&connection).await;
        let Event::Asked { id, request } = host.asked().await else { panic!("it asks") };
        assert_eq!((request.authority.as_str(), request.origin), ("localhost", None));
        host.engine.turn_down(id, 503);
        let answer = host.serve_while(answers.read_to_end(1_000)).await.unwrap();
        assert!(answer.starts_with(b"\x01\x2e\x00\x00\x5f\x09\x03503"), "{answer:?}");
        // A browser drops what the server stops.
        drop(stopped);
        let (mut request, _answers) = host.serve_while(connection.open_bi()).await.unwrap();
        request.write_all(&h3::request_frame()).await.unwrap();
        assert_eq!(host.accept().await, id);
        assert_eq!(host.engine.stats().half_open, 0);
    })
    .await;
}

#[tokio::test]
async fn each_end_hears_the_others_code_and_reason() {
    within(async {
        let mut host = Host::start();
        let (mut session, id) = h3::session(&mut host).await;
        let began = Instant::now();
        host.engine.part(id, [packet(Carrier::Stream, "bye")], CloseCode::TOO_SLOW, "too slow", began);
        let capsule = host.serve_while(session.answers.read_to_end(1_000)).await.unwrap();
        assert_eq!(capsule, close(6, "too slow"));
        let why = LinkClosed::Local { code: CloseCode::TOO_SLOW, reason: "too slow".into() };
        assert!(matches!(host.told().await, Event::Closed { why: told, .. } if told == why));
        assert_closed(&mut host, &session.connection, NO_ERROR, "too slow").await;

        let (mut session, id) = h3::session(&mut host).await;
        session.connection.send_datagram(b"\0last".as_slice().into()).unwrap();
        session.request.write_all(&close(5, "enough")).await.unwrap();
        session.request.finish().unwrap();
        assert_eq!(host.packet().await, (id, packet(Carrier::Datagram, "last")));
        let why = LinkClosed::ByPeer { code: CloseCode::MISBEHAVED, reason: "enough".into() };
        assert!(matches!(host.told().await, Event::Closed { why: told, .. } if told == why));
        assert_closed(&mut host, &session.connection, NO_ERROR, "").await;
    })
    .await;
}

/// When the whole port closes, pages have their codes, those of a link that was closed before too.
#[tokio::test]
async fn a_closed_engine_tells_each_session_its_code() {
    within(async {
        let mut host = Host::start();
        let (mut parted, id) = h3::session(&mut host).await;
        let (mut open, _) = h3::session(&mut host).await;
        // What waits for its acknowledgement keeps the first one from being closed at once.
        host.engine.part(id, [packet(Carrier::Stream, "bye")], CloseCode::DONE, "left", Instant::now());
        host.engine.close(CloseCode::GOING_AWAY, "back in a minute", Instant::now());
        let capsule = host.serve_while(parted.answers.read_to_end(1_000)).await.unwrap();
        assert_eq!(capsule, close(0, "left"));
        let capsule = host.serve_while(open.answers.read_to_end(1_000)).await.unwrap();
        assert_eq!(capsule, close(1, "back in a minute"));
        host.engine.wind_up().await;
        assert_eq!(host.engine.connections(), 0);
    })
    .await;
}

#[tokio::test]
async fn a_session_that_is_cut_is_reset_and_one_that_ends_is_done() {
    within(async {
        let mut host = Host::start();
        let cuts: [fn(&mut h3::Session); 3] = [
            |session| session.request.reset(VarInt::from_u32(0x10c)).unwrap(),
            |session| session.connection.close(VarInt::from_u32(NO_ERROR), b""),
            |session| session.request.finish().unwrap(),
        ];
        let done = LinkClosed::ByPeer { code: CloseCode::DONE, reason: String::new() };
        for (cut, why) in cuts.into_iter().zip([LinkClosed::Reset, LinkClosed::Reset, done]) {
            let (mut session, id) = h3::session(&mut host).await;
            cut(&mut session);
            let Event::Closed { id: closed, why: told } = host.told().await else { panic!("it is over") };
            assert_eq!((closed, told), (id, why));
        }
    })
    .await;
}

/// A violation of a link's rules closes the session with its code.
#[tokio::test]
async fn violations_within_a_session_close_it_with_their_code() {
    within(async {
        let mut host = Host::start();
        for (bytes, violation) in [
            (&[9][..], Violation::UnknownStreamType(9)),
            (&[0, 0x80, 0x10, 0, 0][..], Violation::OversizedPacket),
            (&[0, 0x40, 0][..], Violation::RecordLength),
        ] {
            let (mut session, _) = h3::session(&mut host).await;
            let _stream = h3::stream(&session.connection, &[STREAM, bytes].concat()).await;
            let capsule = host.serve_while(session.answers.read_to_end(1_000)).await.unwrap();
            assert_eq!(capsule, close(violation.code().0.into(), &violation.to_string()));
            let Event::Closed { why, .. } = host.told().await else { panic!("it is over") };
            assert_eq!(why, LinkClosed::NotParlor(violation));
        }
        let (session, _) = h3::session(&mut host).await;
        let bytes = vec![0; DATAGRAM_BYTES_MAX + 2];
        session.connection.send_datagram(bytes.into()).unwrap();
        let Event::Closed { why, .. } = host.told().await else { panic!("it is over") };
        let bytes = DATAGRAM_BYTES_MAX + 1;
        assert_eq!(why, LinkClosed::NotParlor(Violation::OversizedDatagram { bytes }));
        host.assert_serves().await;
    })
    .await;
}

/// What a client may break of HTTP/3 before and within its session ends its connection, and no other.
#[tokio::test]
async fn threat_07_a_broken_http3_ends_the_connection_and_no_other() {
    within(async {
        let mut host = Host::start();
        for (bytes, fault) in [
            (&[0, 4, 0, 4, 0][..], Fault::SettingsPlace),
            (&[0, 0x21, 0][..], Fault::SettingsPlace),
            (&[0, 4, 0, 0, 0][..], Fault::Frame),
            (&[1][..], Fault::Push),
            (&[0x40, 0x54, 1][..], Fault::OtherSession),
        ] {
            let connection = h3::connect(&mut host, TransportConfig::default()).await;
            let _stream = h3::stream(&connection, bytes).await;
            assert_refused(&mut host, &connection, fault).await;
        }
        for (bytes, fault) in [(CONTROL, Fault::SecondStream), (&[0x40, 0x54, 4][..], Fault::OtherSession)] {
            let (session, _) = h3::session(&mut host).await;
            let _stream = h3::stream(&session.connection, bytes).await;
            assert_violated(&mut host, &session.connection, fault).await;
        }
        let (mut session, _) = h3::session(&mut host).await;
        session.control.finish().unwrap();
        assert_violated(&mut host, &session.connection, Fault::StreamEnded).await;
        let (session, _) = h3::session(&mut host).await;
        session.connection.send_datagram(b"\x01other".as_slice().into()).unwrap();
        assert_violated(&mut host, &session.connection, Fault::OtherSession).await;
        assert_eq!(host.engine.stats().half_open, 0);
        host.assert_serves().await;
    })
    .await;
}

/// Streams of unknown types are stopped, each costs its sender a part of what is passed over, and then it is over.
#[tokio::test]
async fn threat_20_streams_of_unknown_types_are_stopped_and_end() {
    within(async {
        let mut host = Host::start();
        let (session, id) = h3::session(&mut host).await;
        let connection = session.connection.clone();
        let flood = tokio::spawn(async move {
            let mut opened = 0;
            while let Ok(mut stream) = connection.open_uni().await {
                let _ = stream.write_all(GREASE_STREAM).await;
                let _ = stream.finish();
                opened += 1;
            }
            opened
        });
        let Event::Closed { id: closed, why } = host.told().await else { panic!("it is over") };
        assert_eq!((closed, why), (id, LinkClosed::NotParlor(Violation::Http3(Fault::TooMuch))));
        let opened = host.serve_while(flood).await.unwrap();
        assert!(opened <= PASSED_OVER_BYTES_MAX / 64 + 64, "{opened}");
        host.assert_serves().await;
    })
    .await;
}

/// A connection that asks nothing, or half a question, is gone when its handshake's time is over.
#[tokio::test]
async fn threat_19_half_a_request_is_given_up_in_its_time() {
    within(async {
        let mut host = Host::start();
        host.handshake_time = Duration::from_millis(200);
        let waited = host.handshake_time;
        let frame = h3::request_frame();
        for asked in [None, Some(&frame[..0]), Some(&frame[..20])] {
            let connection = h3::connect(&mut host, TransportConfig::default()).await;
            let _control = h3::stream(&connection, CONTROL).await;
            let mut request = None;
            if let Some(bytes) = asked {
                let mut streams = connection.open_bi().await.unwrap();
                streams.0.write_all(bytes).await.unwrap();
                request = Some(streams);
            }
            assert_eq!(host.engine.stats().half_open, 1, "its handshake is not done");
            let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
            assert!(matches!(error, HandshakeError::TimedOut { waited: told, .. } if told == waited));
            assert_eq!(host.engine.stats().half_open, 0);
            drop(request);
        }
        host.handshake_time = crate::common::HANG;
        host.assert_serves().await;
    })
    .await;
}

/// A client that lets nothing be opened to it, or takes no datagrams, does not get in.
#[tokio::test]
async fn a_client_that_lacks_what_a_session_needs_is_refused() {
    within(async {
        let mut host = Host::start();
        let mut transport = TransportConfig::default();
        transport.max_concurrent_uni_streams(VarInt::from_u32(0));
        let connection = h3::connect(&mut host, transport).await;
        let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
        assert!(matches!(error, HandshakeError::NotParlor { violation: Violation::NoStreams, .. }));
        assert_closed(&mut host, &connection, GENERAL_PROTOCOL_ERROR, &Violation::NoStreams.to_string())
            .await;

        let mut transport = TransportConfig::default();
        transport.datagram_receive_buffer_size(None);
        let connection = h3::connect(&mut host, transport).await;
        let _asking = h3::ask(&connection).await;
        let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
        assert!(matches!(error, HandshakeError::NotParlor { violation: Violation::NoDatagrams, .. }));
    })
    .await;
}

/// With limits of its own a client gets so many bytes and streams, and more when it raises them.
#[tokio::test]
async fn the_sessions_own_limits_are_kept() {
    within(async {
        let mut host = Host::start();
        let connection = h3::connect(&mut host, TransportConfig::default()).await;
        // SETTINGS: 100 bytes and one stream.
        let _control = h3::stream(&connection, b"\x00\x04\x07\x6b\x61\x40\x64\x6b\x64\x01").await;
        let (mut request, _answers) = connection.open_bi().await.unwrap();
        request.write_all(&h3::request_frame()).await.unwrap();
        let id = host.accept().await;
        let record = vec![1; 150];
        for _ in 0..2 {
            host.send(id, packet(Carrier::Stream, record.clone())).await;
        }
        host.send(id, packet(Carrier::Isolated, "waits")).await;
        let mut streams = Vec::new();
        for _ in 0..2 {
            streams.push(host.serve_while(connection.accept_uni()).await.unwrap());
        }
        let records = &mut streams[1];
        let mut got = vec![0; STREAM.len() + 100];
        host.serve_while(records.read_exact(&mut got)).await.unwrap();
        assert!(got.starts_with(&[STREAM, &[0, 0x40, 150]].concat()));
        let more = records.read_chunk(1, true);
        assert!(tokio::time::timeout(Duration::from_millis(50), host.serve_while(more)).await.is_err());
        // WT_MAX_DATA 10,000 and WT_MAX_STREAMS 2, in a DATA frame.
        let raise = b"\x00\x0d\x99\x0b\x4d\x3d\x02\x67\x10\x99\x0b\x4d\x40\x01\x02";
        request.write_all(raise).await.unwrap();
        let mut got = vec![0; 1 + 2 + 150 + 2 + 150 - 100];
        host.serve_while(records.read_exact(&mut got)).await.unwrap();
        let mut isolated = host.serve_while(connection.accept_uni()).await.unwrap();
        let got = host.serve_while(isolated.read_to_end(100)).await.unwrap();
        assert_eq!(got, [STREAM, b"\x01waits"].concat());
    })
    .await;
}

/// On a connection of Parlor's own a bidirectional stream is a violation, although HTTP/3 may open one.
#[tokio::test]
async fn a_bidirectional_stream_of_a_native_client_is_a_violation() {
    within(async {
        let mut host = Host::start();
        let (addr, certificates) = (host.addr, host.certificates.clone());
        let connecting = raw::connect_with(addr, &certificates, &[ALPN_PARLOR], TransportConfig::default());
        let peer = host.serve_while(connecting).await.unwrap();
        host.accept().await;
        let (mut stream, _) = peer.open_bi().await.unwrap();
        stream.write_all(&[0; STREAM_PACKET_BYTES_MAX]).await.unwrap();
        host.serve_while(raw::assert_closed_for(&peer, &Violation::Bidirectional)).await;
    })
    .await;
}

async fn assert_refused(host: &mut Host, peer: &Connection, fault: Fault) {
    let Event::Failed { error, .. } = host.told().await else { panic!("it does not get in") };
    let HandshakeError::NotParlor { violation, .. } = error else { panic!("{error}") };
    assert_eq!(violation, Violation::Http3(fault));
    assert_closed(host, peer, GENERAL_PROTOCOL_ERROR, &violation.to_string()).await;
}

async fn assert_violated(host: &mut Host, peer: &Connection, fault: Fault) {
    let Event::Closed { why, .. } = host.told().await else { panic!("it is over") };
    assert_eq!(why, LinkClosed::NotParlor(Violation::Http3(fault)));
    assert_closed(host, peer, GENERAL_PROTOCOL_ERROR, &fault.to_string()).await;
}

async fn assert_closed(host: &mut Host, peer: &Connection, code: u32, reason: &str) {
    let ConnectionError::ApplicationClosed(close) = host.serve_while(peer.closed()).await else {
        panic!("closed by the application")
    };
    assert_eq!((close.error_code, &close.reason[..]), (code.into(), reason.as_bytes()));
}
