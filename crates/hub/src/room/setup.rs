//! What a room is from its opening on.

use parlor_proto::wire::handshake::RoomSettings;
use parlor_proto::{ChannelTable, Instant, RoomCode, RoomId};
use parlor_sync::schema::{Schema, SchemaError};
use thiserror::Error;

/// What a room is from its opening on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its id.
    pub id: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// Which game it is for.
    pub app: String,
    /// Which environment of the game.
    pub environment: String,
    /// What its creator asked for.
    pub settings: RoomSettings,
    /// The channels of its game.
    pub channels: ChannelTable,
    /// When it opened, on the hub's clock.
    pub opened: Instant,
    /// Bytes of state that one member is sent in a second on the long run, at most.
    pub state_bytes_per_second: u32,
}

/// Why a room cannot be what its creator asked for.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetupError {
    /// Its schema could not be read.
    #[error("the schema could not be read: {0}")]
    Schema(#[from] SchemaError),
    /// Its schema is one of a member's own state.
    #[error("the schema lacks the components that every room has: build it with Schema::builder()")]
    BareSchema,
}

impl Setup {
    /// What its entities are made of.
    ///
    /// # Errors
    /// [`SetupError`] if the bytes in its settings are no schema of a room.
    pub fn schema(&self) -> Result<Schema, SetupError> {
        if self.settings.schema.is_empty() {
            return Ok(Schema::default());
        }
        let schema = Schema::decode(self.settings.schema.clone())?;
        if schema.has_builtins() { Ok(schema) } else { Err(SetupError::BareSchema) }
    }
}
