//! Threat 7: millions of control frames leave next to nothing in a session's memory, whatever their kinds.
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
/// Maximum growth of a session's memory.
const GROWTH_MAX: usize = 64 * 1024;

#[test]
fn threat_07_a_million_control_frames_and_a_million_empty_packets_leave_64_kib() {
    control_frames();
    empty_packets();
}

/// Bytes that an open session holds after a flood while it cannot send.
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
    // One, and those for packets beyond the newest acknowledgement.
    assert!(answers <= 1 + limits::IN_FLIGHT_MAX / 32, "{answers} packets answer them");
    most
}

/// Every kind that an open session accepts, as many as allowed in each packet.
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
    // The packet itself is in memory while it is handled.
    assert!(held <= GROWTH_MAX + 2 * bytes.len(), "{held} bytes are kept of a million control frames");
}

/// Packets with only a number, and an acknowledgement of packets that never existed.
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

/// The part of a packet's number on the wire.
fn low_half(number: usize) -> u16 {
    u16::try_from(number % (1 << 16)).expect("it is a remainder")
}
