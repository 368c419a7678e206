//! Converts the ends of QUIC connections to those of links.

use crate::closed::{CloseCode, LinkClosed, Violation, clip_reason, peer_reason};
use quinn::{Connection, ConnectionError, SendDatagramError};

/// Converts a datagram's send error to the end of the link.
pub(super) fn datagram_error(error: SendDatagramError) -> LinkClosed {
    match error {
        SendDatagramError::ConnectionLost(error) => lost(error),
        SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled | SendDatagramError::TooLarge => {
            LinkClosed::NotParlor(Violation::NoDatagrams)
        }
    }
}

/// Converts a connection error to the end of the link.
pub(super) fn lost(error: ConnectionError) -> LinkClosed {
    match error {
        ConnectionError::ApplicationClosed(close) => LinkClosed::ByPeer {
            code: CloseCode::from_quic(close.error_code),
            reason: peer_reason(&close.reason),
        },
        ConnectionError::TimedOut => LinkClosed::TimedOut,
        ConnectionError::Reset => LinkClosed::Reset,
        // The local close has been recorded in the outbox before, and the first cause counts.
        ConnectionError::LocallyClosed => LinkClosed::Local { code: CloseCode::DONE, reason: String::new() },
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::CidsExhausted => LinkClosed::TransportError(error.to_string()),
    }
}

/// Closes a connection at once because of a violation.
pub(super) fn close_for(connection: &Connection, violation: &Violation) {
    connection.close(violation.code().to_quic(), clip_reason(&violation.to_string()).as_bytes());
}
