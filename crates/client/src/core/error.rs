//! Why a room does not do what it is asked.

use parlor_proto::session::SendError;
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::{ApiMisuse, EntityId};
use parlor_sync::keyed::StateError;
use parlor_sync::value::ValueError;
use parlor_sync::world::WorldError;
use thiserror::Error;
/// Why a room did not do what it was asked. Nothing was sent, nothing changed.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RoomError {
    /// It cannot be asked like this, or not now.
    #[error(transparent)]
    Misuse(#[from] ApiMisuse),
    /// A value could not be written, or is not as the wanted type has it.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The state would be out of its bounds.
    #[error(transparent)]
    State(Box<StateError>),
    /// There is no such entity or component, a component does not fit its schema, or the world would be out of its bounds.
    #[error(transparent)]
    World(Box<WorldError>),
    /// An action may not be.
    #[error("the action on {entity} is refused: {why}")]
    Refused {
        /// On which entity.
        entity: EntityId,
        /// Why.
        why: ActionRefusal,
    },
    /// So many reliable messages wait that no more can be taken: the connection is slower than the game sends.
    #[error("too many messages wait to be sent: send less, or on an unreliable lane")]
    Full,
    /// A file cannot be made.
    #[error("the file {} cannot be made: {detail}", path.display())]
    File {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
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
