//! How packets lie on QUIC's streams and datagrams, and what no Parlor peer sends there. It knows bytes only: who drives
//! the connection, the library's tasks or the [engine](super::engine), hands them over.

use super::{ISOLATED_UNFINISHED_BYTES_MAX, STREAM_TYPE_ISOLATED, STREAM_TYPE_RECORDS};
use crate::closed::Violation;
use bytes::{Bytes, BytesMut};
use parlor_proto::limits::{DATAGRAM_BYTES_MAX, STREAM_PACKET_BYTES_MAX};
use parlor_proto::wire::cursor::{Reader, Write};
use parlor_proto::{Carrier, Packet};

/// Longest length of a record that is within the limit, in bytes.
const LENGTH_BYTES_MAX: usize = 4;

/// What a stream turned out to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum StreamType {
    /// The stream of records.
    Records,
    /// An isolated packet.
    Isolated,
}

impl StreamType {
    /// By its first byte.
    pub(super) fn of(byte: u8) -> Result<Self, Violation> {
        match byte {
            STREAM_TYPE_RECORDS => Ok(StreamType::Records),
            STREAM_TYPE_ISOLATED => Ok(StreamType::Isolated),
            unknown => Err(Violation::UnknownStreamType(unknown)),
        }
    }
}

/// A datagram as a packet.
pub(super) fn datagram(bytes: Bytes) -> Result<Packet, Violation> {
    if bytes.len() > DATAGRAM_BYTES_MAX {
        return Err(Violation::OversizedDatagram { bytes: bytes.len() });
    }
    Ok(Packet { carrier: Carrier::Datagram, bytes })
}

/// What precedes a record: its length, and on a stream that begins with it the stream's type.
pub(super) fn record_head(record_bytes: usize, is_first: bool) -> Bytes {
    let mut head = Vec::with_capacity(1 + LENGTH_BYTES_MAX);
    if is_first {
        head.put_u8(STREAM_TYPE_RECORDS);
    }
    head.put_varint(record_bytes as u64);
    head.into()
}

/// Adds bytes to an isolated packet, as long as it is within its limit.
pub(super) fn extend_isolated(packet: &mut BytesMut, bytes: &[u8]) -> Result<(), Violation> {
    if packet.len() + bytes.len() > STREAM_PACKET_BYTES_MAX {
        return Err(Violation::OversizedPacket);
    }
    packet.extend_from_slice(bytes);
    Ok(())
}

/// Whether the bytes of all unfinished isolated packets of a peer are within their limit.
pub(super) fn check_unfinished(all_bytes: usize) -> Result<(), Violation> {
    if all_bytes > ISOLATED_UNFINISHED_BYTES_MAX { Err(Violation::TooMuchUnfinished) } else { Ok(()) }
}

/// What came on the stream of records and is not taken. It grows with the bytes that come, whatever length they declare,
/// and is given back when nothing is left in it.
#[derive(Debug, Default)]
pub(super) struct Records {
    buffer: BytesMut,
}

impl Records {
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next record that is complete.
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

    /// The stream ended: it may between two records.
    pub(super) fn end(&self) -> Result<(), Violation> {
        if self.buffer.is_empty() { Ok(()) } else { Err(Violation::TruncatedRecord) }
    }
}
