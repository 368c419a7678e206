//! What a log has, and what it never has.

use super::*;
use core::time::Duration;
use parlor_proto::wire::handshake::{Auth, Hello, Intent, RoomKind, RoomSettings};
use parlor_proto::{ChannelTable, channel};
use proptest::prelude::*;

fn at(ms: u64) -> Instant {
    Instant::from_millis(5_000 + ms)
}

fn packet(frames: &[Frame]) -> Packet {
    let mut out = Vec::new();
    Header { sequence: Some(7), ack: None, reliable_ack: None, tick: None, epoch: Default::default() }
        .write(&mut out);
    frames.iter().for_each(|frame| frame.write(&mut out));
    Packet { carrier: Carrier::Datagram, bytes: out.into() }
}

fn said(payload: &'static [u8]) -> Frame {
    Frame::Unreliable { channel: channel::MESSAGE_UNRELIABLE, payload: Bytes::from_static(payload) }
}

fn hello() -> Frame {
    let settings =
        RoomSettings { secret: Some("open-sesame".into()), ..RoomSettings::new(RoomKind::PlayerHosted, 4) };
    Frame::Hello(Box::new(Hello {
        version_min: 1,
        version_max: 1,
        app: "tanks".into(),
        environment: String::new(),
        capabilities: 0,
        auth: Auth::Token(Bytes::from_static(b"a token of ada")),
        key: None,
        name: "ada".into(),
        channels: ChannelTable::default(),
        schema: None,
        intent: Intent::Create(settings),
    }))
}

fn entries(log: Vec<u8>) -> Vec<(Duration, PacketEntry)> {
    PacketLogReader::new(log.into()).unwrap().map(Result::unwrap).collect()
}

#[test]
fn t11_a_log_has_packets_as_they_were_but_no_secrets() {
    let (mut writer, mut log) = PacketLogWriter::new("tanks", b"", 10_000, at(0));
    let (first, second) = (packet(&[hello(), said(b"hi")]), packet(&[said(b"one"), said(b"two")]));
    log.extend(writer.packet(PacketWay::Sent, None, &first, at(3)));
    writer.miss();
    writer.miss();
    log.extend(writer.packet(PacketWay::Received, Some(PathId(9)), &second, at(40)));
    for secret in ["open-sesame", "a token of ada"] {
        assert!(first.bytes.windows(secret.len()).any(|it| it == secret.as_bytes()));
        assert!(!log.windows(secret.len()).any(|it| it == secret.as_bytes()), "{secret:?} is in the log");
    }
    let logged = LoggedPacket {
        way: PacketWay::Sent,
        path: None,
        carrier: Carrier::Datagram,
        length: first.bytes.len(),
        left_out: vec!["Hello".into()],
        bytes: packet(&[said(b"hi")]).bytes,
    };
    let direct = LoggedPacket {
        way: PacketWay::Received,
        path: Some(PathId(9)),
        length: second.bytes.len(),
        left_out: Vec::new(),
        bytes: second.bytes,
        ..logged.clone()
    };
    let expected = [
        (Duration::from_millis(3), PacketEntry::Packet(logged)),
        (Duration::from_millis(40), PacketEntry::Missed(2)),
        (Duration::from_millis(40), PacketEntry::Packet(direct)),
    ];
    assert_eq!(entries(log), expected);
}

#[test]
fn t11_a_log_ends_at_its_bound() {
    let (mut writer, mut log) = PacketLogWriter::new("tanks", b"", 500, at(0));
    let one = packet(&[said(b"one")]);
    for ms in 0..1_000 {
        log.extend(writer.packet(PacketWay::Sent, None, &one, at(ms)));
    }
    assert!(writer.is_full() && (400..510).contains(&log.len()), "{} bytes", log.len());
    let entries = entries(log);
    let fulls = entries.iter().filter(|(_, entry)| *entry == PacketEntry::Full).count();
    assert_eq!((fulls, entries.last().map(|(_, entry)| entry)), (1, Some(&PacketEntry::Full)));
}

#[test]
fn what_is_no_log_says_so() {
    let error = |bytes: &[u8]| PacketLogReader::new(Bytes::copy_from_slice(bytes)).unwrap_err();
    assert_eq!(error(b"PARLORLOG"), PacketLogError::NotALog);
    assert_eq!(error(b"PARLORNET"), PacketLogError::NotALog);
    assert_eq!(error(b"PARLORNET\x09"), PacketLogError::Version(9));
}

proptest! {
    /// What others send may be anything: it is logged by its length, and never stops the log.
    #[test]
    fn t11_packets_that_are_none_are_logged_too(
        bytes in proptest::collection::vec(any::<u8>(), 0..60), cut in 0usize..200,
    ) {
        let (mut writer, mut log) = PacketLogWriter::new("tanks", b"", 10_000, at(0));
        let packet = Packet { carrier: Carrier::Stream, bytes: bytes.clone().into() };
        log.extend(writer.packet(PacketWay::Received, None, &packet, at(1)));
        let entries = entries(log.clone());
        let PacketEntry::Packet(logged) = &entries[0].1 else { panic!("{entries:?}") };
        prop_assert_eq!(logged.length, bytes.len());
        // A log that was cut, as when the process was killed, is read up to there.
        log.truncate(cut.min(log.len()));
        if let Ok(reader) = PacketLogReader::new(log.into()) {
            prop_assert!(reader.count() <= 2);
        }
    }
}

#[test]
fn x15_moments_of_the_game_come_back_and_count_for_the_size_of_a_log() {
    let (mut writer, mut log) = PacketLogWriter::new("tanks", b"", 10_000, at(0));
    let moment =
        |moment, tick| LoggedMoment { moment, tick: Tick(tick), room_time: Duration::from_millis(70) };
    let all = [
        moment(Moment::Step, 9),
        moment(Moment::State { input: Some(Tick(7)) }, 8),
        moment(Moment::State { input: None }, 8),
        moment(Moment::Drawn, 6),
    ];
    all.iter().zip(1..).for_each(|(moment, ms)| log.extend(writer.moment(*moment, at(ms))));
    let expected: Vec<_> = (1..).map(Duration::from_millis).zip(all.map(PacketEntry::Moment)).collect();
    assert_eq!(entries(log), expected);

    let (mut writer, mut log) = PacketLogWriter::new("tanks", b"", 60, at(0));
    (0..20).for_each(|ms| log.extend(writer.moment(all[0], at(ms))));
    let entries = entries(log);
    assert!(writer.is_full() && entries.len() < 8);
    assert_eq!(entries.last().map(|(_, entry)| entry), Some(&PacketEntry::Full));
}
