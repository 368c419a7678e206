//! The framing of packets on QUIC's streams and datagrams, and its violations. It handles bytes only, for
//! both the library's tasks and the [engine](super::engine).

use super::{ISOLATED_UNFINISHED_BYTES_MAX, STREAM_TYPE_ISOLATED, STREAM_TYPE_RECORDS};
use crate::closed::Violation;
use bytes::{Bytes, BytesMut};
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_proto::{Carrier, Packet};

/// Maximum bytes of a record's length.
const LENGTH_BYTES_MAX: usize = 4;

/// The type of a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamType {
    /// The record stream.
    Records,
    /// An isolated packet.
    Isolated,
}

impl StreamType {
    /// Returns the type for a stream's first byte.
    pub(super) fn of(byte: u8) -> Result<Self, Violation> {
        match byte {
            STREAM_TYPE_RECORDS => Ok(StreamType::Records),
            STREAM_TYPE_ISOLATED => Ok(StreamType::Isolated),
            unknown => Err(Violation::UnknownStreamType(unknown)),
        }
    }
}

/// Converts a datagram to a packet.
pub(super) fn datagram(bytes: Bytes) -> Result<Packet, Violation> {
    if bytes.len() > DATAGRAM_BYTES_MAX {
        return Err(Violation::OversizedDatagram { bytes: bytes.len() });
    }
    Ok(Packet { carrier: Carrier::Datagram, bytes })
}

/// The head of a record: its length, preceded by the stream's type for the first record.
pub(super) fn record_head(record_bytes: usize, is_first: bool) -> Bytes {
    let mut head = Vec::with_capacity(1 + LENGTH_BYTES_MAX);
    if is_first {
        head.put_u8(STREAM_TYPE_RECORDS);
    }
    head.put_varint(record_bytes as u64);
    head.into()
}

/// Adds bytes to an isolated packet, within its limit.
pub(super) fn extend_isolated(packet: &mut BytesMut, bytes: &[u8]) -> Result<(), Violation> {
    if packet.len() + bytes.len() > STREAM_PACKET_BYTES_MAX {
        return Err(Violation::OversizedPacket);
    }
    packet.extend_from_slice(bytes);
    Ok(())
}

/// Checks the total of a peer's unfinished isolated packets.
pub(super) fn check_unfinished(all_bytes: usize) -> Result<(), Violation> {
    if all_bytes > ISOLATED_UNFINISHED_BYTES_MAX { Err(Violation::TooMuchUnfinished) } else { Ok(()) }
}

/// Received bytes of the record stream that are not taken. The buffer grows with received bytes, not with
/// declared lengths, and is freed when it is empty.
#[derive(Debug, Default)]
pub(super) struct Records {
    buffer: BytesMut,
}

impl Records {
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete record.
    pub(super) fn take(&mut self) -> Result<Option<Bytes>, Violation> {
        let Some(first) = self.buffer.first() else {
            self.buffer = BytesMut::new();
            return Ok(None);
        };
        let width = 1 << (first >> 6);
        if width > LENGTH_BYTES_MAX {
            return Err(Violation::OversizedPacket);
        }
        let Some(length) = self.buffer.get(..width) else { return Ok(None) };
        let length =
            Reader::new(Bytes::copy_from_slice(length)).varint().map_err(|_| Violation::RecordLength)?;
        let length = usize::try_from(length).map_err(|_| Violation::OversizedPacket)?;
        if length > STREAM_PACKET_BYTES_MAX {
            return Err(Violation::OversizedPacket);
        }
        if self.buffer.len() < width + length {
            return Ok(None);
        }
        let mut record = self.buffer.split_to(width + length);
        Ok(Some(record.split_off(width).freeze()))
    }

    /// Checks the end of the stream: it must be between two records.
    pub(super) fn end(&self) -> Result<(), Violation> {
        if self.buffer.is_empty() { Ok(()) } else { Err(Violation::TruncatedRecord) }
    }
}
