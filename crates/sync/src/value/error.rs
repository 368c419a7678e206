//! What can be wrong with a value, and where.

use core::fmt;
use parlor_proto::limits;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// A value could not be made, encoded or turned into the type that was asked for. It says where:
/// `tank.pos[2].x: expected a number, found text`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{}{kind}", .path, if .path.is_empty() { "" } else { ": " })]
pub struct ValueError {
    path: String,
    kind: ValueErrorKind,
}

/// What was wrong.
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
    /// The type has numbers of 128 bits.
    #[error("numbers of 128 bits cannot be sent")]
    Wide,
    /// Lists and maps stand in one another too deeply.
    #[error("lists and maps may stand {} deep in one another", limits::VALUE_DEPTH_MAX)]
    TooDeep,
    /// The encoding is larger than the caller allows.
    #[error("larger than the {max} bytes allowed")]
    TooLarge {
        /// Bytes allowed.
        max: usize,
    },
    /// A map has keys that cannot be written as text.
    #[error("the keys of a map must be text, whole numbers or names of an enum")]
    KeyNotText,
    /// A map has one key twice.
    #[error("the key {key:?} occurs twice")]
    DuplicateKey {
        /// The key, as text.
        key: String,
    },
    /// A value is not what the type asks for.
    #[error("expected {expected}, found {found}")]
    Mismatch {
        /// What the type asks for.
        expected: String,
        /// What there was.
        found: String,
    },
    /// What a type says of itself: a missing field, an unknown variant.
    #[error("{0}")]
    Type(String),
}

impl ValueError {
    /// What was wrong.
    pub const fn kind(&self) -> &ValueErrorKind {
        &self.kind
    }

    /// Where: names of fields joined by dots, and indices in brackets. Empty for the value itself.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The same fault, seen from the map whose field `name` the value is: for a caller that knows the key it
    /// stood under.
    #[must_use]
    pub fn in_field(self, name: &str) -> Self {
        self.below(name.to_owned())
    }

    /// The same fault, seen from the list whose item `index` the value is.
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

/// Bytes are not the encoding of a value. One value has one encoding, so whatever an encoder would not have
/// written is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A tag has no meaning.
    #[error("a value has the unknown tag {tag:#04x}")]
    UnknownTag {
        /// The tag.
        tag: u8,
    },
    /// A number is NaN or infinite.
    #[error("a number is not finite")]
    NotFinite,
    /// Something has a shorter form, or −0.0 stands where 0.0 is due.
    #[error("{what} is not in its one form")]
    NotCanonical {
        /// What.
        what: &'static str,
    },
    /// The keys of a map do not ascend, or one occurs twice.
    #[error("the keys of a map do not ascend")]
    KeysNotAscending,
    /// Lists and maps stand in one another too deeply.
    #[error("lists and maps stand more than {} deep in one another", limits::VALUE_DEPTH_MAX)]
    TooDeep,
    /// A list or map claims more items than bytes are left.
    #[error("{count} items in {left} bytes")]
    TooManyItems {
        /// Items claimed.
        count: u64,
        /// Bytes left.
        left: usize,
    },
}
