//! Threat 16: a session's memory is a bounded multiple of what a peer sends, whatever lengths it declares.
//!
//! The allocator counts for the whole process, so this file has one test.

mod open;

use bytes::Bytes;
use open::{NOW, open_server, packet};
use parlor_proto::session::Event;
use parlor_proto::wire::control::{ToHub, ToMember};
use parlor_proto::wire::cursor::Write;
use parlor_proto::wire::envelope::Upward;
use parlor_proto::wire::frame::{Fragment, Frame};
use parlor_proto::{Carrier, Packet, channel, limits};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Checks the peak of additional memory while `input` bytes are handled.
fn check(what: &str, input: usize, take: impl FnOnce()) {
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    take();
    let held = ALLOCATOR.peak_usage() - before;
    let most = 8 * input + 64 * 1024;
    assert!(held <= most, "{what}: {held} bytes were held for {input}, which is more than {most}");
}

/// Feeds packets to an open server that takes its events after each, as its caller must.
fn feed(what: &str, packets: impl Iterator<Item = Packet>) {
    let packets: Vec<Packet> = packets.collect();
    let input = packets.iter().map(|packet| packet.bytes.len()).sum();
    let mut server = open_server();
    check(what, input, || {
        // Each packet is freed once handled, unless the session keeps a part of it.
        for packet in packets {
            let bytes = Bytes::copy_from_slice(&packet.bytes);
            let _ = server.handle_packet(Packet { bytes, ..packet }, NOW);
            while let Some(event) = server.poll_event() {
                assert!(!matches!(event, Event::Hello(_)));
            }
        }
    });
}

/// A frame that declares a length without content, and lists that declare a count without content.
fn declared_lengths() {
    for kind in (0u64..0x20).chain([1 << 20]) {
        for declared in [63, 16_383, 67_000, 1 << 20, 1 << 40, (1 << 62) - 1] {
            let mut bytes = vec![0];
            bytes.put_varint(kind);
            bytes.put_varint(declared);
            let packets = [Packet { carrier: Carrier::Stream, bytes: bytes.into() }];
            feed("a frame's length", packets.into_iter());
        }
    }
    for declared in [1u64, 63, 256, 16_383, 1 << 30, (1 << 62) - 1] {
        for head in [&[0, 1][..], &[0, 1, 1], &[2, 1], &[3], &[0, 0, 0, 0, 0], &[0x83]] {
            let mut bytes = head.to_vec();
            bytes.put_varint(declared);
            let bytes = Bytes::from(bytes);
            check("a count", bytes.len(), || {
                let _ = ToMember::decode(bytes.clone());
                let _ = ToHub::decode(bytes.clone());
                let _ = Upward::decode(bytes.clone());
            });
        }
    }
}

#[test]
fn threat_16_memory_is_bounded_by_what_came() {
    declared_lengths();
    let tiny = |payload: Bytes| Frame::Unreliable { channel: channel::MESSAGE_UNRELIABLE, payload };
    feed(
        "as many frames as fit a packet",
        [packet(Carrier::Stream, Some(1), vec![tiny(Bytes::new()); 20_000])].into_iter(),
    );
    feed(
        "as many frames as a packet may have",
        [packet(Carrier::Stream, Some(1), vec![tiny(Bytes::new()); limits::FRAMES_PER_PACKET_MAX])]
            .into_iter(),
    );
    let sequenced = |key: u32| Frame::Sequenced { channel: channel::INPUT, key, payload: Bytes::new() };
    let keys = |from: u16| (0..100).map(move |key| sequenced(u32::from(from) * 100 + key));
    feed("ever new keys", (0..200).map(|from| packet(Carrier::Datagram, Some(from), keys(from))));
    let ordered = |number: u64| {
        let payload = Bytes::from_static(b"x");
        Frame::Ordered { channel: channel::MESSAGE_ORDERED, number, order: number, payload }
    };
    let padding = |frame: Frame, to: usize| {
        let mut bytes = packet(Carrier::Stream, None, [frame]).bytes.to_vec();
        bytes.put_varint(0x3f);
        bytes.put_bytes(&vec![0; to]);
        Packet { carrier: Carrier::Stream, bytes: bytes.into() }
    };
    // One message is missing and the others wait for it, each from a packet with mostly other content.
    let mut server = open_server();
    check("small messages of large packets", 1_000 * 10, || {
        for number in 1..1_000 {
            server.handle_packet(padding(ordered(number), 0), NOW).expect("it is within the window");
        }
    });
    let mut server = open_server();
    ALLOCATOR.reset_peak_usage();
    let before = ALLOCATOR.current_usage();
    for number in 1..1_000 {
        server.handle_packet(padding(ordered(number), 60_000), NOW).expect("it is within the window");
    }
    let held = ALLOCATOR.current_usage() - before;
    assert!(held < 256 * 1024, "{held} bytes are kept of a thousand one-byte messages");
    threat_14();
}

/// First fragments of many messages, and almost all fragments of some.
fn threat_14() {
    let fragment = |id: u16, index: u8| {
        let part = Bytes::from(vec![0; limits::FRAGMENT_BYTES]);
        Frame::Fragment(Fragment { id, index, count: 70, part })
    };
    for each in [1u8, 69] {
        let mut server = open_server();
        let before = ALLOCATOR.current_usage();
        let mut number = 0;
        for id in 0..300 {
            for index in 0..each {
                let packet = packet(Carrier::Datagram, Some(number), [fragment(id, index)]);
                server.handle_packet(packet, NOW).expect("it is as laid out");
                number = number.wrapping_add(1);
            }
        }
        let held = ALLOCATOR.current_usage() - before;
        assert!(held <= 80 * 1024, "{held} bytes are kept of fragments");
        assert!(server.poll_timeout().is_some_and(|at| at <= NOW + limits::FRAGMENT_TTL));
        server.handle_timeout(NOW + limits::FRAGMENT_TTL);
        let held = ALLOCATOR.current_usage() - before;
        assert!(held <= 8 * 1024, "{held} bytes are kept of fragments that are too old");
    }
}
