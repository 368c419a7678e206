//! Threat 7: control frames by the million leave next to nothing at a session, whatever kinds they are of.
//!
//! The allocator counts for the whole process, so this file has one test.

mod open;

use open::{NOW, open_server, packet};
use parlor_proto::wire::cursor::Write;
use parlor_proto::wire::frame::{Echo, Frame, Time};
use parlor_proto::wire::header::Header;
use parlor_proto::{Carrier, Packet, limits};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Frames of one flood, and packets of the other.
const FLOOD: usize = 1_000_000;
/// What a session may hold of one, beyond what it held before.
const GROWTH_MAX: usize = 64 * 1024;

#[test]
fn threat_07_a_million_control_frames_and_a_million_empty_packets_leave_64_kib() {
    control_frames();
    empty_packets();
}

/// What an open session holds of a flood while nothing can be sent back.
fn held(flood: impl Iterator<Item = Packet>) -> usize {
    let mut server = open_server();
    let before = ALLOCATOR.current_usage();
    let mut most = 0;
    for packet in flood {
        server.handle_packet(packet, NOW).expect("it is as laid out");
        while server.poll_event().is_some() {}
        most = most.max(ALLOCATOR.current_usage().saturating_sub(before));
    }
    let mut answers = 0;
    while server.poll_packet(NOW).is_some() {
        answers += 1;
    }
    // One, and those that acknowledge what the newest acknowledgement does not cover.
    assert!(answers <= 1 + limits::IN_FLIGHT_MAX / 32, "{answers} packets answer them");
    most
}

/// Of every kind that an open session takes, as many in each packet as may be.
fn control_frames() {
    let each = limits::FRAMES_PER_PACKET_MAX;
    let time = |echo| Frame::Time(Time { sent_us: 1, echo });
    let mut three = Vec::new();
    time(None).write(&mut three);
    time(Some(Echo { sent_us: 1, held_us: 1 })).write(&mut three);
    three.put_varint(0x3f);
    three.put_bytes(b"later");
    let mut bytes = packet(Carrier::Stream, Some(0), []).bytes.to_vec();
    bytes.extend(three.repeat(each / 3));
    let flood = (0..=FLOOD / (each / 3 * 3)).map(|number| {
        let mut bytes = bytes.clone();
        bytes[1..3].copy_from_slice(&low_half(number).to_le_bytes());
        Packet { carrier: Carrier::Stream, bytes: bytes.into() }
    });
    let held = held(flood);
    // The packet itself is there while it is taken in.
    assert!(held <= GROWTH_MAX + 2 * bytes.len(), "{held} bytes are kept of a million control frames");
}

/// Packets of nothing but their number, and of what they acknowledge, which never was.
fn empty_packets() {
    let empty = |number: usize| {
        let mut bytes = Vec::new();
        let header = Header { sequence: Some(low_half(number)), reliable_ack: Some(0), ..Header::default() };
        header.write(&mut bytes);
        Packet { carrier: Carrier::Datagram, bytes: bytes.into() }
    };
    let held = held((0..FLOOD).map(empty));
    assert!(held <= GROWTH_MAX, "{held} bytes are kept of a million packets");
}

/// What the wire carries of a packet's number.
fn low_half(number: usize) -> u16 {
    u16::try_from(number % (1 << 16)).expect("it is a remainder")
}
