//! Peers that violate the protocol, and peers that send random bytes.

use crate::harness::{PERFECT, World, hello, welcome};
use bytes::Bytes;
use parlor_proto::session::{Answer, DeliveryId, Event, Outgoing, Session};
use parlor_proto::wire::cursor::Write;
use parlor_proto::wire::frame::{Fragment, Frame, Time};
use parlor_proto::wire::handshake::Limits;
use parlor_proto::wire::header::{Ack, Header};
use parlor_proto::{
    Carrier, ChannelId, CloseReason, Instant, LinkKind, Packet, PeerMisbehaved, channel, limits,
};
use proptest::collection::vec;
use proptest::prelude::*;

const NOW: Instant = Instant::from_millis(10);

fn packet(carrier: Carrier, header: Header, frames: &[Frame]) -> Packet {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    frames.iter().for_each(|frame| frame.write(&mut bytes));
    Packet { carrier, bytes: bytes.into() }
}

fn numbered(number: u16, frames: &[Frame]) -> Packet {
    packet(Carrier::Datagram, Header { sequence: Some(number), ..Header::default() }, frames)
}

fn stream(frames: &[Frame]) -> Packet {
    packet(Carrier::Stream, Header::default(), frames)
}

fn unreliable(channel: ChannelId) -> Frame {
    Frame::Unreliable { channel, payload: Bytes::from_static(b"hi") }
}

fn ordered(number: u64, order: u64) -> Frame {
    Frame::Ordered { channel: channel::MESSAGE_ORDERED, number, order, payload: Bytes::from_static(b"hi") }
}

/// The state of a session when its peer misbehaves.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Greeting,
    Deciding,
    Open,
    Closing,
    Closed,
}

const STAGES: [Stage; 5] = [Stage::Greeting, Stage::Deciding, Stage::Open, Stage::Closing, Stage::Closed];

/// A client and a server in the state `stage`, with all packets so far.
fn at(stage: Stage, link: LinkKind) -> ([Session; 2], Vec<(usize, Packet)>) {
    let mut ends = [Session::client(hello(), link, NOW), Session::server(link, NOW)];
    let mut said = Vec::new();
    let mut carry = |ends: &mut [Session; 2], from: usize| {
        while let Some(packet) = ends[from].poll_packet(NOW) {
            said.push((from, packet.clone()));
            ends[1 - from].handle_packet(packet, NOW).expect("honest peers understand each other");
        }
    };
    if !matches!(stage, Stage::Greeting) {
        carry(&mut ends, 0);
    }
    if !matches!(stage, Stage::Greeting | Stage::Deciding) {
        ends[1].answer(Answer::Welcome(Box::new(welcome(NOW, Limits::of_this_build()))), NOW);
        carry(&mut ends, 1);
        for from in [0, 1] {
            for lane in 3..=6 {
                for len in [5, 2_000] {
                    let payload = Bytes::from(vec![7; len]);
                    let message = Outgoing {
                        channel: ChannelId(lane),
                        key: 1,
                        payload,
                        delivery_id: Some(DeliveryId(1)),
                    };
                    ends[from].send(message).expect("it is open");
                }
            }
            carry(&mut ends, from);
        }
        carry(&mut ends, 0);
    }
    if matches!(stage, Stage::Closing | Stage::Closed) {
        ends.iter_mut().for_each(|end| end.close(CloseReason::Left, NOW));
    }
    if matches!(stage, Stage::Closed) {
        let later = NOW + limits::CLOSE_LINGER;
        ends.iter_mut().for_each(|end| end.handle_timeout(later));
    }
    for end in &mut ends {
        while end.poll_event().is_some() {}
    }
    (ends, said)
}

/// Hands a packet to an end. If it is rejected, the session must be over and report that at both ends.
fn shut_out(end: &mut Session, packet: Packet) -> Option<PeerMisbehaved> {
    let misbehaved = end.handle_packet(packet, NOW).err();
    let events: Vec<Event> = std::iter::from_fn(|| end.poll_event()).collect();
    if let Some(misbehaved) = &misbehaved {
        let detail = misbehaved.to_string();
        assert_eq!(events.last(), Some(&Event::Closed(CloseReason::Misbehaved { detail })));
        assert!(!end.is_open());
        let last = std::iter::from_fn(|| end.poll_packet(NOW)).last().expect("the peer is told");
        assert_eq!(last.carrier, Carrier::Stream);
        assert!(end.is_finished());
    }
    misbehaved
}

fn open_server() -> Session {
    let ([_, server], _) = at(Stage::Open, LinkKind::Quic);
    server
}

/// The error of an open server for one packet. Numbers of packets and reliable messages from 10 to 50 are
/// unused.
fn refused(packet: Packet) -> Option<PeerMisbehaved> {
    shut_out(&mut open_server(), packet)
}

#[test]
fn a_packet_over_its_carriers_limit_is_refused() {
    let mut server = open_server();
    let bytes = Bytes::from(vec![0; limits::DATAGRAM_BYTES_MAX + 1]);
    let oversized = |carrier, bytes: Bytes| Packet { carrier, bytes };
    assert!(matches!(
        shut_out(&mut server, oversized(Carrier::Datagram, bytes)),
        Some(PeerMisbehaved::Oversized { bytes: 1_001, max: 1_000 })
    ));
    for carrier in [Carrier::Stream, Carrier::Isolated] {
        let bytes = Bytes::from(vec![0; limits::STREAM_PACKET_BYTES_MAX + 1]);
        assert!(matches!(refused(oversized(carrier, bytes)), Some(PeerMisbehaved::Oversized { .. })));
    }
}

#[test]
fn hello_has_its_place() {
    let again = stream(&[Frame::Hello(Box::new(hello()))]);
    let out_of_place = |refused| matches!(refused, Some(PeerMisbehaved::OutOfPlace { .. }));
    assert!(out_of_place(refused(again.clone())));
    let ([_, mut server], _) = at(Stage::Deciding, LinkKind::Quic);
    assert!(out_of_place(shut_out(&mut server, again.clone())));
    let ([mut client, _], _) = at(Stage::Greeting, LinkKind::Quic);
    assert!(out_of_place(shut_out(&mut client, again)));
    // Not in a datagram, and not after another frame.
    for first in [
        numbered(0, &[Frame::Hello(Box::new(hello()))]),
        stream(&[ordered(0, 0)]),
        numbered(0, &[unreliable(channel::MESSAGE_UNRELIABLE)]),
        stream(&[Frame::Welcome(Box::new(welcome(NOW, Limits::of_this_build())))]),
    ] {
        let mut server = Session::server(LinkKind::Quic, NOW);
        assert!(out_of_place(shut_out(&mut server, first)));
    }
}

#[test]
fn answers_come_from_the_server_and_once() {
    let answer = stream(&[Frame::Welcome(Box::new(welcome(NOW, Limits::of_this_build())))]);
    assert!(refused(answer.clone()).is_some());
    let ([mut client, _], _) = at(Stage::Open, LinkKind::Quic);
    assert!(shut_out(&mut client, answer).is_some());
    let ([mut client, _], _) = at(Stage::Greeting, LinkKind::Quic);
    assert!(shut_out(&mut client, stream(&[ordered(0, 0)])).is_some());
}

#[test]
fn what_was_never_sent_cannot_be_acknowledged() {
    let ack = |newest| Header { ack: Some(Ack { newest, bits: 0 }), ..Header::default() };
    let future = |refused| matches!(refused, Some(PeerMisbehaved::AckedTheFuture { .. }));
    assert!(future(refused(packet(Carrier::Datagram, ack(1_000), &[]))));
    let reliable = |number| Header { reliable_ack: Some(number), ..Header::default() };
    assert!(future(refused(packet(Carrier::Datagram, reliable(1_000), &[]))));
    assert_eq!(refused(packet(Carrier::Datagram, reliable(4), &[])), None);
    // A queued message that was not given to the connection was not sent either.
    let mut server = open_server();
    server.send(Outgoing::new(channel::MESSAGE_ORDERED, Bytes::new())).expect("it is open");
    assert!(future(shut_out(&mut server, packet(Carrier::Datagram, reliable(5), &[]))));
    let ([_, mut server], _) = at(Stage::Greeting, LinkKind::Quic);
    assert!(future(shut_out(&mut server, packet(Carrier::Stream, ack(0), &[]))));
}

#[test]
fn a_message_comes_in_the_frame_of_its_lane() {
    let wrong = |refused| matches!(refused, Some(PeerMisbehaved::WrongLane { .. }));
    assert!(wrong(refused(numbered(50, &[unreliable(channel::MESSAGE_ORDERED)]))));
    assert!(wrong(refused(numbered(50, &[unreliable(ChannelId(16))]))));
    let sequenced = Frame::Sequenced { channel: channel::MESSAGE_UNRELIABLE, key: 0, payload: Bytes::new() };
    assert!(wrong(refused(numbered(50, &[sequenced]))));
    let number = 10;
    let reliable = Frame::Reliable { channel: channel::MESSAGE_ORDERED, number, payload: Bytes::new() };
    assert!(wrong(refused(stream(&[reliable]))));
    let order = Frame::Ordered { channel: channel::STATE, number, order: 0, payload: Bytes::new() };
    assert!(wrong(refused(stream(&[order]))));
}

#[test]
fn a_frame_comes_by_its_carrier() {
    let out_of_place = |refused| matches!(refused, Some(PeerMisbehaved::OutOfPlace { .. }));
    let fragment = Frame::Fragment(Fragment { id: 9, index: 1, count: 2, part: Bytes::from_static(b"x") });
    let time = Frame::Time(Time { sent_us: 1, echo: None });
    let number = Header { sequence: Some(50), ..Header::default() };
    assert!(out_of_place(refused(packet(Carrier::Stream, number, std::slice::from_ref(&fragment)))));
    for frame in [fragment, time, unreliable(channel::MESSAGE_UNRELIABLE)] {
        assert!(out_of_place(refused(packet(
            Carrier::Datagram,
            Header::default(),
            std::slice::from_ref(&frame)
        ))));
        assert!(out_of_place(refused(packet(Carrier::Isolated, number, &[frame]))));
    }
    let reliable = Frame::Reliable { channel: channel::MESSAGE_UNORDERED, number: 4, payload: Bytes::new() };
    for frame in [ordered(4, 2), reliable.clone(), Frame::Close(CloseReason::Left)] {
        assert!(out_of_place(refused(numbered(50, &[frame]))));
    }
    assert!(out_of_place(refused(packet(Carrier::Isolated, Header::default(), &[ordered(4, 2)]))));
    assert_eq!(refused(packet(Carrier::Isolated, Header::default(), &[reliable])), None);
}

#[test]
fn reliable_messages_stay_within_the_window() {
    let beyond = |refused| refused == Some(PeerMisbehaved::BeyondWindow);
    assert!(beyond(refused(stream(&[ordered(4 + limits::RELIABLE_WINDOW, 2)]))));
    assert!(beyond(refused(stream(&[ordered(4, 2 + limits::RELIABLE_WINDOW)]))));
    assert!(beyond(refused(stream(&[ordered(4, 2), ordered(5, 2)]))));
    assert_eq!(refused(stream(&[ordered(5, 3), ordered(4, 2)])), None);
    assert!(beyond(refused(stream(&[ordered((1 << 62) - 1, 2)]))));
}

#[test]
fn what_fragments_come_to_is_one_unreliable_message() {
    let whole = |frame: &Frame| {
        let mut bytes = Vec::new();
        frame.write(&mut bytes);
        bytes.resize(limits::FRAGMENT_BYTES + 1, 0);
        let part = |range: std::ops::Range<usize>| Bytes::copy_from_slice(&bytes[range]);
        let fragment = |index, part| Frame::Fragment(Fragment { id: 9, index, count: 2, part });
        let cut = limits::FRAGMENT_BYTES;
        [numbered(50, &[fragment(0, part(0..cut))]), numbered(51, &[fragment(1, part(cut..cut + 1))])]
    };
    let len = limits::FRAGMENT_BYTES + 1;
    let filler = |head: usize| Bytes::from(vec![0; len - head]);
    let hidden =
        Frame::Ordered { channel: channel::MESSAGE_ORDERED, number: 4, order: 2, payload: filler(6) };
    for (frame, is_refused) in [
        (Frame::Unreliable { channel: channel::MESSAGE_UNRELIABLE, payload: filler(4) }, false),
        (hidden, true),
        // Trailing bytes.
        (unreliable(channel::MESSAGE_UNRELIABLE), true),
        // A frame on a channel of another lane.
        (Frame::Unreliable { channel: channel::MESSAGE_ORDERED, payload: filler(4) }, true),
    ] {
        let mut server = open_server();
        let refused: Vec<_> = whole(&frame).into_iter().map(|packet| shut_out(&mut server, packet)).collect();
        assert_eq!(refused[0], None);
        assert_eq!(refused[1].is_some(), is_refused, "{frame:?}");
    }
}

#[test]
fn unknown_frames_are_passed_over_and_unknown_flags_refused() {
    let mut bytes = vec![1, 50, 0];
    bytes.put_varint(0x3f);
    bytes.put_bytes(b"of a later version");
    unreliable(channel::MESSAGE_UNRELIABLE).write(&mut bytes);
    let mut server = open_server();
    let datagram = |bytes: Vec<u8>| Packet { carrier: Carrier::Datagram, bytes: bytes.into() };
    assert_eq!(server.handle_packet(datagram(bytes), NOW), Ok(()));
    assert!(matches!(server.poll_event(), Some(Event::Message(_))));
    assert_eq!(server.stats().frames_unknown, 1);
    for flag in [0x20, 0x40, 0x80] {
        assert!(matches!(refused(datagram(vec![flag])), Some(PeerMisbehaved::Malformed { .. })));
    }
    assert!(matches!(refused(datagram(Vec::new())), Some(PeerMisbehaved::Malformed { .. })));
}

#[test]
fn threat_07_frames_that_stuff_a_packet_are_refused() {
    let frames = |count: usize| {
        packet(
            Carrier::Stream,
            Header { sequence: Some(50), ..Header::default() },
            &vec![unreliable(channel::MESSAGE_UNRELIABLE); count],
        )
    };
    assert_eq!(refused(frames(limits::FRAMES_PER_PACKET_MAX)), None);
    assert_eq!(refused(frames(limits::FRAMES_PER_PACKET_MAX + 1)), Some(PeerMisbehaved::TooManyFrames));
}

#[test]
fn threat_04_a_repeated_packet_gives_nothing() {
    let mut server = open_server();
    let hi = numbered(50, &[unreliable(channel::MESSAGE_UNRELIABLE)]);
    for _ in 0..3 {
        assert_eq!(server.handle_packet(hi.clone(), NOW), Ok(()));
    }
    assert_eq!(std::iter::from_fn(|| server.poll_event()).count(), 1);
    assert_eq!(server.stats().packets_repeated, 2);
}

#[test]
fn honest_senders_keep_to_the_limits_that_receivers_enforce() {
    // So many small messages that the frame limit is reached before the byte limit.
    for kind in [LinkKind::Quic, LinkKind::WebSocket] {
        let mut world = World::open(1, kind, PERFECT);
        for lane in 3..=5 {
            for _ in 0..limits::FRAMES_PER_PACKET_MAX + 100 {
                assert!(world.send(0, ChannelId(lane), 0, 8, false));
            }
            world.run_ms(1_000);
        }
        world.check_settled();
    }
}

fn carrier() -> impl Strategy<Value = Carrier> {
    prop_oneof![Just(Carrier::Datagram), Just(Carrier::Stream), Just(Carrier::Isolated)]
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(
        stage in prop::sample::select(&STAGES[..]),
        is_websocket: bool,
        packets in vec((carrier(), 0usize..2, vec(any::<u8>(), 0..100)), 1..8),
    ) {
        let link = if is_websocket { LinkKind::WebSocket } else { LinkKind::Quic };
        let (mut ends, _) = at(stage, link);
        for (carrier, end, bytes) in packets {
            if ends[end].is_finished() {
                continue;
            }
            shut_out(&mut ends[end], Packet { carrier, bytes: bytes.into() });
        }
    }

    #[test]
    fn a_changed_packet_is_taken_or_refused(
        stage in prop::sample::select(&STAGES[..]),
        is_websocket: bool,
        which: prop::sample::Index,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        other_carrier in prop::option::of(carrier()),
    ) {
        let link = if is_websocket { LinkKind::WebSocket } else { LinkKind::Quic };
        let (_, said) = at(Stage::Open, link);
        let (mut ends, _) = at(stage, link);
        let (from, Packet { carrier, bytes }) = &said[which.index(said.len())];
        let mut bytes = bytes.to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let packet = Packet { carrier: other_carrier.unwrap_or(*carrier), bytes: bytes.into() };
        shut_out(&mut ends[1 - from], packet);
    }
}
