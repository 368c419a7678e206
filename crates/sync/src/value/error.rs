//! Errors of values, with their paths.

use core::fmt;
use parlor_proto::limits;
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// A value could not be created, encoded or converted to the requested type. The message has the path:
/// `tank.pos[2].x: expected a number, found text`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}{kind}", .path, if .path.is_empty() { "" } else { ": " })]
pub struct ValueError {
    path: String,
    kind: ValueErrorKind,
}

/// The kind of error.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ValueErrorKind {
    /// A number is NaN or infinite.
    #[error("a number must be finite")]
    NotFinite,
    /// An unsigned number is beyond `i64::MAX`.
    #[error("the number {value} is beyond {}", i64::MAX)]
    IntTooLarge {
        /// The number.
        value: u64,
    },
    /// The type has 128-bit numbers.
    #[error("numbers of 128 bits cannot be sent")]
    Wide,
    /// Lists and maps are nested too deeply.
    #[error("lists and maps may stand {} deep in one another", limits::VALUE_DEPTH_MAX)]
    TooDeep,
    /// The encoding is larger than the caller allows.
    #[error("larger than the {max} bytes allowed")]
    TooLarge {
        /// The maximum in bytes.
        max: usize,
    },
    /// A map has keys that cannot be written as text.
    #[error("the keys of a map must be text, whole numbers or names of an enum")]
    KeyNotText,
    /// A map has the same key twice.
    #[error("the key {} occurs twice", Quoted(.key))]
    DuplicateKey {
        /// The key, as text.
        key: String,
    },
    /// The value does not match the type.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What the type expects.
        expected: String,
        /// What was found.
        found: String,
    },
    /// An error of the type's deserializer: a missing field, an unknown variant.
    #[error("{0}")]
    Type(String),
}

impl ValueError {
    /// The kind of error.
    pub const fn kind(&self) -> &ValueErrorKind {
        &self.kind
    }

    /// The path: names of fields joined by dots, and indices in brackets. Empty for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the error as seen from a map that has the value as its field `name`.
    #[must_use]
    pub fn in_field(self, name: &str) -> Self {
        self.below(name.to_owned())
    }

    /// Returns the error as seen from a list that has the value as its item `index`.
    #[must_use]
    pub(super) fn in_item(self, index: usize) -> Self {
        self.below(format!("[{index}]"))
    }

    pub(super) fn mismatch(expected: impl fmt::Display, found: impl fmt::Display) -> Self {
        ValueErrorKind::Mismatch { expected: expected.to_string(), found: found.to_string() }.into()
    }

    fn below(mut self, outer: String) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{outer}{dot}{}", self.path);
        self
    }
}

impl From<ValueErrorKind> for ValueError {
    fn from(kind: ValueErrorKind) -> Self {
        ValueError { path: String::new(), kind }
    }
}

impl serde::ser::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        ValueErrorKind::Type(message.to_string()).into()
    }
}

impl serde::de::Error for ValueError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        ValueErrorKind::Type(message.to_string()).into()
    }

    fn invalid_type(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        ValueError::mismatch(expected, found)
    }

    fn invalid_value(found: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        ValueError::mismatch(expected, found)
    }
}

/// The bytes are not the encoding of a value. Encodings are unique: bytes that an encoder would not write are
/// rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes are truncated or malformed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A tag is unknown.
    #[error("a value has the unknown tag {tag:#04x}")]
    UnknownTag {
        /// The tag.
        tag: u8,
    },
    /// A number is NaN or infinite.
    #[error("a number is not finite")]
    NotFinite,
    /// The encoding is not the shortest one, or −0.0 is encoded instead of 0.0.
    #[error("{what} is not in its one form")]
    NotCanonical {
        /// The type of the value.
        what: &'static str,
    },
    /// The keys of a map are not ascending, or one occurs twice.
    #[error("the keys of a map do not ascend")]
    KeysNotAscending,
    /// Lists and maps are nested too deeply.
    #[error("lists and maps stand more than {} deep in one another", limits::VALUE_DEPTH_MAX)]
    TooDeep,
    /// A list or map claims more items than bytes remain.
    #[error("{count} items in {left} bytes")]
    TooManyItems {
        /// Items claimed.
        count: u64,
        /// Bytes remaining.
        left: usize,
    },
}
