//! The immutable setup of a room.

use parlor_proto::wire::handshake::RoomSettings;
use parlor_proto::{ChannelTable, Instant, RoomCode, RoomId};
use parlor_sync::schema::{Schema, SchemaError};
use thiserror::Error;

/// The immutable setup of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Its id.
    pub id: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// The game's name.
    pub app: String,
    /// The game's environment.
    pub environment: String,
    /// The creator's settings.
    pub settings: RoomSettings,
    /// The game's channels.
    pub channels: ChannelTable,
    /// When it opened, on the hub's clock.
    pub opened: Instant,
    /// Maximum average bytes of state sent to one member per second.
    pub state_bytes_per_second: u32,
    /// Maximum number of spectators at once, until its opener says otherwise.
    pub spectators: u16,
}

/// Why a room cannot be created.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SetupError {
    /// Its schema could not be read.
    #[error("the schema could not be read: {0}")]
    Schema(#[from] SchemaError),
    /// Its schema is that of a member's own state.
    #[error("the schema lacks the components that every room has: build it with Schema::builder()")]
    BareSchema,
}

impl Setup {
    /// Returns the schema of its entities.
    ///
    /// # Errors
    /// [`SetupError`] if the bytes in its settings are not a room's schema.
    pub fn schema(&self) -> Result<Schema, SetupError> {
        if self.settings.schema.is_empty() {
            return Ok(Schema::default());
        }
        let schema = Schema::decode(self.settings.schema.clone())?;
        if schema.has_builtins() { Ok(schema) } else { Err(SetupError::BareSchema) }
    }
}
