//! Errors of schemas and rows.

use crate::limits::{COMPONENTS_MAX, FIELDS_MAX, LANES_MAX};
use crate::value::ValueError;
use parlor_proto::limits::{LABEL_BYTES_MAX, SCHEMA_BYTES_MAX};
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// Why a schema is invalid, and where.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchemaError {
    /// Two components have the same name.
    #[error(
        "the component {} is registered twice: register it once, or name it otherwise",
        Quoted(.component)
    )]
    DuplicateComponent {
        /// Their name.
        component: String,
    },
    /// Two fields of a component have the same name.
    #[error("the component {} has two fields {}", Quoted(.component), Quoted(.field))]
    DuplicateField {
        /// The component.
        component: String,
        /// Their name.
        field: String,
    },
    /// A component or field has a name that is empty or too long.
    #[error("the name {} is not 1 to {LABEL_BYTES_MAX} bytes long", Quoted(.name))]
    Name {
        /// The name.
        name: String,
    },
    /// There are too many components.
    #[error("a schema has at most {COMPONENTS_MAX} components of a game")]
    TooManyComponents,
    /// A component has too many fields.
    #[error(
        "the component {} has more than {FIELDS_MAX} fields: make two components of it",
        Quoted(.component)
    )]
    TooManyFields {
        /// The component.
        component: String,
    },
    /// A component has too many lanes.
    #[error(
        "the component {} has {lanes} lanes, {LANES_MAX} are allowed: make two components of it",
        Quoted(.component)
    )]
    TooManyLanes {
        /// The component.
        component: String,
        /// The number of its lanes.
        lanes: usize,
    },
    /// A component has no fields.
    #[error("the component {} has no fields", Quoted(.component))]
    NoFields {
        /// The component.
        component: String,
    },
    /// A component has priority 0: it would never be sent.
    #[error("the component {} has the priority 0, 256 is normal", Quoted(.component))]
    Priority {
        /// The component.
        component: String,
    },
    /// The parameters of a kind are out of range.
    #[error("the field {component}.{field} {fault}")]
    Field {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// What is wrong, as a continuation of "the field".
        fault: &'static str,
    },
    /// The Rust type of a field cannot hold its kind.
    #[error("the field {component}.{field} is {found} in Rust, which does not hold its kind")]
    Type {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// The Rust type.
        found: &'static str,
    },
    /// The field for interest has no position.
    #[error(
        "interest needs a vector, a transform or a body, and {} has none as its field {field}",
        Quoted(.component)
    )]
    InterestField {
        /// The component, by name or number.
        component: String,
        /// The field, by name or number.
        field: String,
    },
    /// The radii of interest are out of range.
    #[error("interest within {radius} that ends at {leave}: 0 < radius <= leave <= 10^15 must hold")]
    InterestRadius {
        /// The radius in which entities are seen.
        radius: f64,
        /// The radius beyond which they are no longer seen.
        leave: f64,
    },
    /// The schema is too long when encoded.
    #[error("the schema takes {bytes} bytes, {SCHEMA_BYTES_MAX} are allowed: shorten names")]
    TooLarge {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The bytes of a schema are malformed.
    #[error("a schema could not be read: {0}")]
    Read(#[from] ReadError),
    /// This version does not know the kind of a field.
    #[error("the field {component}.{field} is of the unknown kind {kind}: this version is too old for it")]
    UnknownKind {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// The number of the kind.
        kind: u8,
    },
    /// A number is not in its unique encoding.
    #[error("the field {component}.{field} has a −0 that should be 0")]
    NotCanonical {
        /// The component.
        component: String,
        /// The field.
        field: String,
    },
}

/// A value does not fit its component, or a row is invalid for its component.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{component}.{field}: {fault}")]
pub struct RowError {
    /// Name of the component.
    pub component: String,
    /// Name of the field.
    pub field: String,
    /// What is wrong with it.
    pub fault: FieldFault,
}

/// What is wrong with a field's value.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FieldFault {
    /// A number is NaN or infinite.
    #[error("a number must be finite")]
    NotFinite,
    /// The value's type is invalid for this kind of field.
    #[error("{found} does not fit a field of this kind")]
    WrongType {
        /// The Rust type.
        found: &'static str,
    },
    /// The value has the wrong count of numbers.
    #[error("{found} numbers for a field that has {expected}")]
    WrongCount {
        /// The count.
        found: usize,
        /// The expected count.
        expected: usize,
    },
    /// An index is beyond the list of names.
    #[error("there is no name {index} among {count}")]
    NoSuchChoice {
        /// The index.
        index: usize,
        /// The number of names.
        count: usize,
    },
    /// Text, bytes or a value are too long.
    #[error("{bytes} bytes are more than the {max} allowed")]
    TooLong {
        /// The length in bytes.
        bytes: usize,
        /// The maximum in bytes.
        max: usize,
    },
    /// A value cannot be sent.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A lane is outside of its span, or the lanes are not in their unique encoding.
    #[error("a quantized number is out of range or not in its one form")]
    Lane,
    /// A blob is invalid for its kind.
    #[error("its bytes are not {expected}")]
    Blob {
        /// What was expected.
        expected: &'static str,
    },
}
