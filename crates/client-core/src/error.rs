//! Errors of the calls that a game makes on its room.

use parlor_proto::session::SendError;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::wire::control::HandOverRefusal;
use parlor_proto::wire::handshake::{RoomKind, Welcome};
use parlor_proto::{ApiMisuse, CloseReason, EntityId};
use parlor_sync::keyed::StateError;
use parlor_sync::value::ValueError;
use parlor_sync::world::WorldError;
use thiserror::Error;

/// Why a room refused a call. Nothing was sent and nothing changed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RoomError {
    /// The call is wrong, or not possible in this state.
    #[error(transparent)]
    Misuse(#[from] ApiMisuse),
    /// A value could not be encoded, or does not match the wanted type.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The keyed state would exceed its bounds.
    #[error(transparent)]
    State(Box<StateError>),
    /// The entity or component does not exist, a component does not fit its schema, or the world would exceed
    /// its bounds.
    #[error(transparent)]
    World(Box<WorldError>),
    /// The action is not allowed.
    #[error("the action on {entity} is refused: {why}")]
    Refused {
        /// The entity.
        entity: EntityId,
        /// The reason.
        why: ActionRefusal,
    },
    /// The host keeps its part.
    #[error("the host's part is not handed over: {why}")]
    NotHandedOver {
        /// The reason.
        why: HandOverRefusal,
    },
    /// The queue of reliable messages is full: the connection is slower than the game sends.
    #[error("too many messages wait to be sent: send less, or on an unreliable lane")]
    Full,
    /// A file could not be created.
    #[error("the file {} cannot be made: {detail}", path.display())]
    File {
        /// Its path.
        path: std::path::PathBuf,
        /// The system's error.
        detail: String,
    },
}

impl From<StateError> for RoomError {
    fn from(error: StateError) -> Self {
        RoomError::State(Box::new(error))
    }
}

impl From<WorldError> for RoomError {
    fn from(error: WorldError) -> Self {
        RoomError::World(Box::new(error))
    }
}

impl From<SendError> for RoomError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Misuse(misuse) => RoomError::Misuse(misuse),
            SendError::Full => RoomError::Full,
        }
    }
}

/// Returns the close reason for a peer that sent something unreadable.
pub(crate) fn misbehaved(what: &str, error: &dyn std::error::Error) -> CloseReason {
    CloseReason::Misbehaved { detail: format!("{what} could not be read: {error}") }
}

/// Returns the error for a call that only the host may make, at another process.
pub(crate) fn not_host(welcome: &Welcome, what: &'static str) -> ApiMisuse {
    match welcome.kind {
        _ if welcome.spectates() => ApiMisuse::Spectator { what },
        RoomKind::Match => ApiMisuse::NoHost { what },
        _ => ApiMisuse::NotHost { what, local: welcome.member },
    }
}
