//! Send limits and packet form of a publisher.

use parlor_proto::limits::STREAM_PACKET_BYTES_TARGET;

/// Send limits and packet form of a [`Publisher`](super::Publisher).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherConfig {
    /// Average send rate in bytes per second.
    pub bytes_per_second: u32,
    /// Maximum bytes of a packet, unless a single entity is larger.
    pub packet_bytes: usize,
    /// Maximum unacknowledged bytes. At this limit nothing is sent, so that a slow receiver gets the newest
    /// state later instead of a queue. 0 stops sending.
    pub in_flight_bytes_max: usize,
    /// Whether bodies are plain instead of coded, if the receiver sees everything: for receivers to which
    /// bytes cost nothing.
    pub is_plain: bool,
}

impl PublisherConfig {
    /// Creates a configuration with this rate, packets of a datagram, and in-flight bytes for 350 ms.
    pub const fn new(bytes_per_second: u32) -> Self {
        PublisherConfig {
            bytes_per_second,
            packet_bytes: PACKET_BYTES,
            in_flight_bytes_max: bytes_per_second as usize * 7 / 20,
            is_plain: false,
        }
    }

    /// For a receiver in the same process, where bytes cost nothing and coding does: no rate limit, plain
    /// bodies, and packets that fill a record of a link's stream.
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

/// The default rate of a member.
const BYTES_PER_SECOND: u32 = 192 * 1024;
/// A datagram, less the session's overhead for a message.
const PACKET_BYTES: usize = 940;
/// The session's overhead for a message in a record.
const RECORD_HEAD_BYTES: usize = 64;
