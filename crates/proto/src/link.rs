//! What a session knows about the connection that carries it.

use crate::wire::cursor::ReadError;
use bytes::Bytes;

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// QUIC: datagrams, and independent streams.
    Quic,
    /// WebSocket: one reliable stream; every lane is reliable on it.
    WebSocket,
    /// Two ends in one process: a reliable stream without loss or latency.
    Memory,
}

impl LinkKind {
    /// All kinds.
    pub const ALL: [LinkKind; 3] = [LinkKind::Quic, LinkKind::WebSocket, LinkKind::Memory];

    /// Whether the link has datagrams: packets that may be lost and do not block others.
    pub const fn has_datagrams(self) -> bool {
        matches!(self, LinkKind::Quic)
    }

    /// Its number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            LinkKind::Quic => 0,
            LinkKind::WebSocket => 1,
            LinkKind::Memory => 2,
        }
    }

    /// Returns the kind with this number.
    ///
    /// # Errors
    /// [`ReadError::Unknown`] if there is none.
    pub const fn from_wire(value: u8) -> Result<Self, ReadError> {
        match value {
            0 => Ok(LinkKind::Quic),
            1 => Ok(LinkKind::WebSocket),
            2 => Ok(LinkKind::Memory),
            value => Err(ReadError::Unknown { field: "link", value: value as u64 }),
        }
    }

    /// The name in JSON and in messages to people.
    pub const fn as_str(self) -> &'static str {
        match self {
            LinkKind::Quic => "quic",
            LinkKind::WebSocket => "websocket",
            LinkKind::Memory => "memory",
        }
    }
}

/// The required carrier of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// A datagram, at most [`DATAGRAM_BYTES_MAX`](crate::limits::DATAGRAM_BYTES_MAX) bytes. Used only on
    /// links that have datagrams.
    Datagram,
    /// The link's main stream of records, in order.
    Stream,
    /// A stream of its own, so that neither blocks the other. A link with only one stream uses that.
    Isolated,
}

/// A packet, in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its carrier.
    pub carrier: Carrier,
    /// Header and frames.
    pub bytes: Bytes,
}
