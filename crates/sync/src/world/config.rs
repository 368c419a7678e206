//! How much a publisher may send, and in which form.

use parlor_proto::limits::STREAM_PACKET_BYTES_TARGET;

/// How much a [`Publisher`](super::Publisher) may send, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherConfig {
    /// Bytes per second, in the long run.
    pub bytes_per_second: u32,
    /// Bytes of a packet, at most, unless one entity alone takes more.
    pub packet_bytes: usize,
    /// Bytes whose fate is not known, at most: beyond it nothing is sent, so that a slow receiver gets the
    /// newest state later instead of a queue. With 0 nothing is sent at all.
    pub in_flight_bytes_max: usize,
    /// Whether bodies are written out and not coded, if the receiver sees everything: for one to whom bytes
    /// cost nothing.
    pub is_plain: bool,
}

impl PublisherConfig {
    /// So many bytes per second, in packets of a datagram, with what 350 ms take under way.
    pub const fn new(bytes_per_second: u32) -> Self {
        PublisherConfig {
            bytes_per_second,
            packet_bytes: PACKET_BYTES,
            in_flight_bytes_max: bytes_per_second as usize * 7 / 20,
            is_plain: false,
        }
    }

    /// For a receiver in the same process, to whom bytes cost nothing and coding does: as much as there is,
    /// written out, in packets as large as fit a record of a link's stream well.
    pub const fn within_process() -> Self {
        let packet_bytes = STREAM_PACKET_BYTES_TARGET - RECORD_HEAD_BYTES;
        PublisherConfig {
            bytes_per_second: u32::MAX,
            packet_bytes,
            in_flight_bytes_max: usize::MAX,
            is_plain: true,
        }
    }
}

impl Default for PublisherConfig {
    fn default() -> Self {
        Self::new(BYTES_PER_SECOND)
    }
}

/// What a member gets unless its room says otherwise.
const BYTES_PER_SECOND: u32 = 192 * 1024;
/// A datagram, less what the session needs around a message.
const PACKET_BYTES: usize = 940;
/// What the session needs around a message in a record.
const RECORD_HEAD_BYTES: usize = 64;
