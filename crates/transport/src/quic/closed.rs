//! How QUIC's ends of a connection are a link's.

use crate::closed::{CloseCode, LinkClosed, Violation, clip_reason, peer_reason};
use quinn::{Connection, ConnectionError, SendDatagramError};

/// Why a datagram could not be sent, as the end of the link.
pub(super) fn datagram_error(error: SendDatagramError) -> LinkClosed {
    match error {
        SendDatagramError::ConnectionLost(error) => lost(error),
        SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled | SendDatagramError::TooLarge => {
            LinkClosed::NotParlor(Violation::NoDatagrams)
        }
    }
}

/// Why a connection is over, as the end of the link.
pub(super) fn lost(error: ConnectionError) -> LinkClosed {
    match error {
        ConnectionError::ApplicationClosed(close) => LinkClosed::ByPeer {
            code: CloseCode::from_quic(close.error_code),
            reason: peer_reason(&close.reason),
        },
        ConnectionError::TimedOut => LinkClosed::TimedOut,
        ConnectionError::Reset => LinkClosed::Reset,
        // Whoever closed it here has told the outbox before, and the first cause stays.
        ConnectionError::LocallyClosed => LinkClosed::Local { code: CloseCode::DONE, reason: String::new() },
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::ConnectionClosed(_)
        | ConnectionError::CidsExhausted => LinkClosed::TransportError(error.to_string()),
    }
}

/// Closes a connection at once for what its peer did.
pub(super) fn close_for(connection: &Connection, violation: &Violation) {
    connection.close(violation.code().to_quic(), clip_reason(&violation.to_string()).as_bytes());
}
