//! How a link ends. Each end receives a code and a reason; the codes are the same on every kind of link.

use crate::quic::webtransport::Fault;
use core::fmt;
use parlor_proto::error::clip;
use parlor_proto::limits;
use thiserror::Error;

/// Longest reason of a close, in bytes of UTF-8: the limit of a WebSocket close frame. A longer reason is cut
/// between two characters.
pub const CLOSE_REASON_BYTES_MAX: usize = 123;

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkClosed {
    /// This end closed it.
    #[error("closed by this end: {}", sentence(*.code, .reason))]
    Local {
        /// The code sent to the peer.
        code: CloseCode,
        /// The reason sent to the peer.
        reason: String,
    },
    /// The peer closed it. All that it sent before was received.
    #[error("closed by the other end: {}", sentence(*.code, .reason))]
    ByPeer {
        /// The peer's code.
        code: CloseCode,
        /// The peer's reason: at most [`limits::REASON_BYTES_MAX`] bytes, perhaps empty.
        reason: String,
    },
    /// Idle timeout: nothing arrived from the peer for too long.
    #[error("nothing was heard from the other end for too long")]
    TimedOut,
    /// The connection broke without a close: the peer's process or machine died, or the network cut it.
    #[error("the connection broke without a goodbye")]
    Reset,
    /// The library or operating system reported an error.
    #[error("the connection failed: {0}")]
    TransportError(String),
    /// The peer violated the protocol. The link was closed with the matching code.
    #[error("the other end does not speak Parlor: {0}")]
    NotParlor(Violation),
}

/// A protocol violation by the peer, below the level of sessions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A WebSocket text message came.
    #[error("a text message came where only binary ones are used")]
    TextMessage,
    /// A packet on a stream or in a WebSocket message exceeds
    /// [`STREAM_PACKET_BYTES_MAX`](limits::STREAM_PACKET_BYTES_MAX).
    #[error("a packet of more than {} bytes came", limits::STREAM_PACKET_BYTES_MAX)]
    OversizedPacket,
    /// A datagram exceeds [`DATAGRAM_BYTES_MAX`](limits::DATAGRAM_BYTES_MAX).
    #[error("a datagram of {bytes} bytes came, the limit is {}", limits::DATAGRAM_BYTES_MAX)]
    OversizedDatagram {
        /// Its size in bytes.
        bytes: usize,
    },
    /// More bytes of unfinished isolated packets came than a Parlor sender allows in flight.
    #[error("too many bytes of unfinished packets came")]
    TooMuchUnfinished,
    /// The first byte of a stream is an unknown stream type.
    #[error("a stream of the unknown type {0} came")]
    UnknownStreamType(u8),
    /// A stream ended before its type byte.
    #[error("a stream came without a type")]
    EmptyStream,
    /// A second record stream came.
    #[error("a second stream of records came")]
    SecondRecordStream,
    /// The record stream ended inside a record.
    #[error("the stream of records ended inside a record")]
    TruncatedRecord,
    /// The length of a record is not in its shortest form.
    #[error("the length of a record is not in its shortest form")]
    RecordLength,
    /// The peer reset a stream.
    #[error("a stream was reset")]
    StreamReset,
    /// The peer stopped a stream without closing the connection.
    #[error("a stream was refused")]
    StreamStopped,
    /// The peer accepts no datagrams, or only shorter ones than Parlor needs.
    #[error("datagrams of {} bytes are not taken", limits::DATAGRAM_BYTES_MAX)]
    NoDatagrams,
    /// The peer lets this end open no stream.
    #[error("no stream may be opened to it")]
    NoStreams,
    /// A bidirectional stream came, which only WebTransport has.
    #[error("a bidirectional stream came")]
    Bidirectional,
    /// HTTP/3 or WebTransport is wrong.
    #[error("{0}")]
    Http3(#[from] Fault),
    /// The WebSocket framing is wrong.
    #[error("{0}")]
    WebSocket(String),
}

impl Violation {
    /// Returns the close code sent to the peer.
    pub const fn code(&self) -> CloseCode {
        match self {
            Violation::TextMessage
            | Violation::UnknownStreamType(_)
            | Violation::NoDatagrams
            | Violation::NoStreams
            | Violation::Bidirectional
            | Violation::StreamStopped => CloseCode::NOT_PARLOR,
            Violation::OversizedPacket
            | Violation::OversizedDatagram { .. }
            | Violation::TooMuchUnfinished => CloseCode::OVERSIZED,
            Violation::EmptyStream
            | Violation::SecondRecordStream
            | Violation::TruncatedRecord
            | Violation::RecordLength
            | Violation::StreamReset
            | Violation::Http3(_)
            | Violation::WebSocket(_) => CloseCode::MALFORMED,
        }
    }
}

/// The number that says why a link was closed, 0 to 999. QUIC carries it as the application error code;
/// PROTOCOL.md has the table by which a WebSocket carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CloseCode(pub u16);

impl CloseCode {
    /// Normal close.
    pub const DONE: CloseCode = CloseCode(0);
    /// This process is shutting down.
    pub const GOING_AWAY: CloseCode = CloseCode(1);
    /// The data received is not Parlor's protocol.
    pub const NOT_PARLOR: CloseCode = CloseCode(2);
    /// More bytes came than a limit allows.
    pub const OVERSIZED: CloseCode = CloseCode(3);
    /// Framing that cannot be read.
    pub const MALFORMED: CloseCode = CloseCode(4);
    /// The session found a violation in the peer's packets.
    pub const MISBEHAVED: CloseCode = CloseCode(5);
    /// The peer received its packets too slowly.
    pub const TOO_SLOW: CloseCode = CloseCode(6);
    /// The peer sent no hello in time.
    pub const NO_HELLO: CloseCode = CloseCode(7);

    /// Largest code.
    pub const MAX: CloseCode = CloseCode(999);

    /// Codes with a standard WebSocket equivalent; all others are 4000 plus the code.
    const WEBSOCKET: [(CloseCode, u16); 5] = [
        (CloseCode::DONE, 1000),
        (CloseCode::GOING_AWAY, 1001),
        (CloseCode::NOT_PARLOR, 1003),
        (CloseCode::OVERSIZED, 1009),
        (CloseCode::MALFORMED, 1002),
    ];

    /// Returns the WebSocket close code.
    pub fn to_websocket(self) -> u16 {
        let known = Self::WEBSOCKET.iter().find(|(code, _)| *code == self);
        known.map_or(4000 + self.0.min(Self::MAX.0), |(_, websocket)| *websocket)
    }

    /// Converts a WebSocket close code. A code that Parlor never sends keeps its number (above
    /// [`MAX`](Self::MAX)).
    pub fn from_websocket(code: u16) -> Self {
        let known = Self::WEBSOCKET.iter().find(|(_, websocket)| *websocket == code);
        match (known, code) {
            (Some((code, _)), _) => *code,
            (None, 4000..=4999) => CloseCode(code - 4000),
            (None, code) => CloseCode(code),
        }
    }

    pub(crate) fn to_quic(self) -> quinn::VarInt {
        quinn::VarInt::from_u32(self.0.into())
    }

    /// HTTP/3's code for a connection that ends without its session having ended first.
    pub(crate) fn to_http3(self) -> quinn::VarInt {
        const NO_ERROR: u32 = 0x100;
        const GENERAL_PROTOCOL_ERROR: u32 = 0x101;
        const EXCESSIVE_LOAD: u32 = 0x107;
        quinn::VarInt::from_u32(match self {
            CloseCode::NOT_PARLOR | CloseCode::MALFORMED => GENERAL_PROTOCOL_ERROR,
            CloseCode::OVERSIZED => EXCESSIVE_LOAD,
            _ => NO_ERROR,
        })
    }

    pub(crate) fn from_quic(code: quinn::VarInt) -> Self {
        CloseCode(u16::try_from(code.into_inner()).unwrap_or(u16::MAX))
    }
}

impl fmt::Display for CloseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            CloseCode::DONE => "done",
            CloseCode::GOING_AWAY => "going away",
            CloseCode::NOT_PARLOR => "not Parlor",
            CloseCode::OVERSIZED => "too large",
            CloseCode::MALFORMED => "malformed",
            CloseCode::MISBEHAVED => "misbehaved",
            CloseCode::TOO_SLOW => "too slow",
            CloseCode::NO_HELLO => "no hello",
            CloseCode(code) => return write!(f, "code {code}"),
        })
    }
}

/// Cuts a reason to its maximum length on the wire.
pub(crate) fn clip_reason(reason: &str) -> &str {
    clip(reason, CLOSE_REASON_BYTES_MAX)
}

/// Decodes a peer's reason: any bytes, any length.
pub(crate) fn peer_reason(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limits::REASON_BYTES_MAX)]);
    clip(&text, limits::REASON_BYTES_MAX).to_owned()
}

fn sentence(code: CloseCode, reason: &str) -> String {
    if reason.is_empty() { code.to_string() } else { format!("{code}: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_a_websocket() {
        for code in 0..=CloseCode::MAX.0 {
            let websocket = CloseCode(code).to_websocket();
            assert_eq!(CloseCode::from_websocket(websocket), CloseCode(code));
            assert!(matches!(websocket, 1000..=1003 | 1009 | 4000..=4999));
        }
        assert_eq!(CloseCode::from_websocket(1011), CloseCode(1011));
    }

    #[test]
    fn a_peers_reason_is_cut_and_made_text() {
        assert_eq!(peer_reason(&[b'a', 0xff]), "a\u{fffd}");
        assert!(peer_reason(&[0xff; 5_000]).len() <= limits::REASON_BYTES_MAX);
        assert_eq!(clip_reason(&"ö".repeat(100)).len(), 122);
    }
}
