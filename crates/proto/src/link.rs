//! What a session knows about the connection that carries it.

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
    /// WebTransport, from a browser: datagrams, and independent streams.
    WebTransport,
    /// A kind of a later version, of another member. No end of this version has it.
    Unknown(u8),
}

impl LinkKind {
    /// All kinds of this version.
    pub const ALL: [LinkKind; 4] =
        [LinkKind::Quic, LinkKind::WebSocket, LinkKind::Memory, LinkKind::WebTransport];

    /// Whether the link has datagrams: packets that may be lost and do not block others.
    pub const fn has_datagrams(self) -> bool {
        matches!(self, LinkKind::Quic | LinkKind::WebTransport)
    }

    /// Its number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            LinkKind::Quic => 0,
            LinkKind::WebSocket => 1,
            LinkKind::Memory => 2,
            LinkKind::WebTransport => 3,
            LinkKind::Unknown(value) => value,
        }
    }

    /// Returns the kind with this number.
    pub const fn from_wire(value: u8) -> Self {
        match value {
            0 => LinkKind::Quic,
            1 => LinkKind::WebSocket,
            2 => LinkKind::Memory,
            3 => LinkKind::WebTransport,
            value => LinkKind::Unknown(value),
        }
    }

    /// The name in JSON and in messages to people.
    pub const fn as_str(self) -> &'static str {
        match self {
            LinkKind::Quic => "quic",
            LinkKind::WebSocket => "websocket",
            LinkKind::Memory => "memory",
            LinkKind::WebTransport => "webtransport",
            LinkKind::Unknown(_) => "unknown",
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
