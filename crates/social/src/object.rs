//! Objects: what a game stores for a player or for itself, and who may read and write each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who may read an object, besides the game's own service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "ObjectReaders")]
pub enum Readers {
    /// Its owner.
    #[default]
    Owner,
    /// Every player.
    Everyone,
    /// Nobody.
    Server,
}

/// Who may write an object, besides the game's own service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObjectWriters {
    /// Its owner.
    #[default]
    Owner,
    /// Nobody.
    Server,
}

/// Who asks for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectUser {
    /// The game's own service.
    Server,
    /// The player who owns it.
    Owner,
    /// Another player.
    Other,
}

impl Readers {
    /// All of them.
    pub const ALL: [Readers; 3] = [Readers::Owner, Readers::Everyone, Readers::Server];

    /// Its word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Readers::Owner => "owner",
            Readers::Everyone => "everyone",
            Readers::Server => "server",
        }
    }

    /// Whether that user may read it.
    pub fn allows(self, user: ObjectUser) -> bool {
        match user {
            ObjectUser::Server => true,
            ObjectUser::Owner => self != Readers::Server,
            ObjectUser::Other => self == Readers::Everyone,
        }
    }
}

impl ObjectWriters {
    /// All of them.
    pub const ALL: [ObjectWriters; 2] = [ObjectWriters::Owner, ObjectWriters::Server];

    /// Its word in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectWriters::Owner => "owner",
            ObjectWriters::Server => "server",
        }
    }

    /// Whether that user may write it.
    pub fn allows(self, user: ObjectUser) -> bool {
        match user {
            ObjectUser::Server => true,
            ObjectUser::Owner => self == ObjectWriters::Owner,
            ObjectUser::Other => false,
        }
    }
}
