//! The ids and the time in a document.

use super::limits::{ID_BYTES_MAX, ID_PATTERN};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// The text is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("an id has 1 to {ID_BYTES_MAX} letters, digits or . _ - : and no other; this has {len} bytes")]
pub struct BadId {
    len: usize,
}

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(#[serde(serialize_with = "as_text")] Arc<str>);

        impl $name {
            /// Parses an id.
            ///
            /// # Errors
            /// [`BadId`] if the text is empty, too long, or has invalid characters.
            pub fn new(text: &str) -> Result<Self, BadId> {
                if is_id(text) { Ok($name(text.into())) } else { Err(BadId { len: text.len() }) }
            }

            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = BadId;

            fn try_from(text: String) -> Result<Self, BadId> {
                Self::new(&text)
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": ID_PATTERN })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A player's account id.
    PlayerId
);
text_id!(
    /// A turn room's id. The server never reuses one.
    RoomId
);

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Ids appear in logs and URL paths, so they contain nothing that needs escaping there.
fn is_id(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal)
}

/// The number of a proposed move. Each room counts its own, from 1, without reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ProposalId(pub u64);

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time of day in milliseconds since 1970: the only clock that rooms, which outlive processes, can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// Returns the time `ms` milliseconds later.
    pub fn after_ms(self, ms: u64) -> UnixMillis {
        UnixMillis(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds since `earlier`; zero if it is not earlier.
    pub fn since(self, earlier: UnixMillis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
