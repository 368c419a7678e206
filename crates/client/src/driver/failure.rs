//! Why no server is reached, as the game gets it.

use crate::modules::ModuleDisabled;
use parlor_client_core::{ConnectFailure, ConnectFailureKind};
use parlor_transport::ConnectError;
use parlor_transport::discovery::ServerAddress;

/// The failure of a room whose module is off.
pub(super) fn disabled(disabled: ModuleDisabled) -> ConnectFailure {
    let kind = ConnectFailureKind::ModuleDisabled { code: disabled.code() };
    ConnectFailure { kind, detail: disabled.to_string() }
}

/// A server that cannot be connected to.
pub(super) fn failure(address: &ServerAddress, error: &ConnectError) -> ConnectFailure {
    let kind = match error {
        ConnectError::NameResolution { .. } => ConnectFailureKind::UnknownHost,
        ConnectError::InvalidName(_) => ConnectFailureKind::BadAddress,
        ConnectError::WrongFingerprint { .. }
        | ConnectError::UntrustedCertificate(_)
        | ConnectError::TrustUnreadable(_)
        | ConnectError::PlainBeyondLoopback { .. } => ConnectFailureKind::Untrusted,
        ConnectError::NotParlor { .. } => ConnectFailureKind::NotParlor,
        ConnectError::Refused { .. }
        | ConnectError::Unreachable { .. }
        | ConnectError::TimedOut { .. }
        | ConnectError::Busy { .. }
        | ConnectError::ClosedByPeer { .. }
        | ConnectError::Failed { .. } => ConnectFailureKind::Unreachable,
    };
    let hint = match error {
        ConnectError::UntrustedCertificate(_) if address.fingerprint.is_none() => {
            ". A development server is trusted by its fingerprint: use its invite link, or HOST:PORT#FINGERPRINT"
        }
        _ => "",
    };
    ConnectFailure { kind, detail: format!("{error}{hint}") }
}
