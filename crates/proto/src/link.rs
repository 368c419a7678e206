//! What a session knows of the connection that carries it.

use crate::wire::cursor::ReadError;
use bytes::Bytes;

/// What a connection is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkKind {
    /// QUIC: datagrams, and streams that do not hold each other up.
    Quic,
    /// WebSocket: one reliable stream, on which every lane arrives reliably.
    WebSocket,
    /// Two ends in one process: a reliable stream, of which nothing is lost and nothing comes late.
    Memory,
}

impl LinkKind {
    /// All of them.
    pub const ALL: [LinkKind; 3] = [LinkKind::Quic, LinkKind::WebSocket, LinkKind::Memory];

    /// Whether the link has datagrams: packets that may be lost and that hold nothing up.
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

    /// The kind with this number.
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

    /// The word for it in JSON and in what a person reads.
    pub const fn as_str(self) -> &'static str {
        match self {
            LinkKind::Quic => "quic",
            LinkKind::WebSocket => "websocket",
            LinkKind::Memory => "memory",
        }
    }
}

/// What must carry a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// A datagram, at most [`DATAGRAM_BYTES_MAX`](crate::limits::DATAGRAM_BYTES_MAX) bytes. Never asked of a link
    /// that has none.
    Datagram,
    /// The link's one stream of records, which keeps their order.
    Stream,
    /// A stream of its own, so that neither waits for the other. A link with one stream only uses that.
    Isolated,
}

/// One packet, either way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What carries it.
    pub carrier: Carrier,
    /// Header and frames.
    pub bytes: Bytes,
}
