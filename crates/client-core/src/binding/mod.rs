//! What bindings to other languages have in common: options, schemas and rows by name instead of by Rust type.
//!
//! Names are those of the TypeScript API. A name that is unknown is a fault, so a misspelt option is not a default.
//! What comes out is described by [`Describe`].

mod hints;
mod options;
mod record;
mod rows;
mod schema;

pub use hints::read_hints;
pub use options::{read_code, read_options};
pub use record::{Record, mismatch, unknown_word};
pub use rows::{
    NONE, Row, describe_component, put_columns, put_row, read_columns, read_row, write_columns, write_row,
};
pub use schema::{read_schema, read_template};

use crate::describe::{Describe, Fields};
use crate::error::RoomError;
use parlor_proto::MemberId;
use parlor_sync::value::{DecodeError, Value, ValueError};

/// Why a call of a binding was refused. Nothing changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault(Value);

impl Fault {
    /// A fault with its name for programs and its text for people.
    pub fn new(code: &str, message: &str) -> Self {
        Fault(Fields::default().with("code", code).with("message", message).build())
    }

    /// A fault of one option or field, named by its path.
    pub fn at(code: &str, path: &str, message: &str) -> Self {
        let message = format!("{path}: {message}");
        Fault(Fields::default().with("code", code).with("message", message).with("path", path).build())
    }

    /// A call with an argument that no correct binding passes.
    pub fn bad_call(message: &str) -> Self {
        Fault::new("bad_call", message)
    }

    /// The map `{code, message, path?}`.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// One of its texts; empty if it has none of this name.
    pub fn text(&self, name: &str) -> &str {
        if let Some(Value::Text(text)) = self.0.field(name) { text } else { "" }
    }
}

impl From<RoomError> for Fault {
    fn from(error: RoomError) -> Self {
        Fault(error.describe())
    }
}

impl From<ValueError> for Fault {
    fn from(error: ValueError) -> Self {
        RoomError::from(error).into()
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Fault::new("bad_value", &format!("what was passed is no value: {error}"))
    }
}

/// The member that a value names.
pub fn as_member(value: &Value) -> Option<MemberId> {
    if let Value::Int(member) = value { u32::try_from(*member).ok().map(MemberId) } else { None }
}
