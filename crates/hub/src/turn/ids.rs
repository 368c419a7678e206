//! Ids that stand in a document, and its time.

use super::limits::{ID_BYTES_MAX, ID_PATTERN};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// A text is no id.
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
            /// The id that a text is.
            ///
            /// # Errors
            /// [`BadId`] if the text is empty, too long, or has characters that an id may not have.
            pub fn new(text: &str) -> Result<Self, BadId> {
                if is_id(text) { Ok($name(text.into())) } else { Err(BadId { len: text.len() }) }
            }

            /// The id as text.
            #[must_use]
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
    /// Who plays: the id of an account.
    PlayerId
);
text_id!(
    /// A turn room. Its creator, the server, never gives one twice.
    RoomId
);

fn as_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Ids are printed in logs and stand in paths of URLs, so they have nothing that needs to be escaped there.
fn is_id(text: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte);
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal)
}

/// A proposed move. Rooms count their own, from 1, and give no number twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct ProposalId(pub u64);

impl fmt::Display for ProposalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The time of day in milliseconds since 1970. Rooms outlive processes, so no other clock would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct UnixMillis(pub u64);

impl UnixMillis {
    /// So much later.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> UnixMillis {
        UnixMillis(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this, none if it is not earlier.
    #[must_use]
    pub fn since(self, earlier: UnixMillis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
