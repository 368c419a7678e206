//! What can be wrong with a schema, and with a row of one.

use crate::limits::{COMPONENTS_MAX, FIELDS_MAX, LANES_MAX};
use crate::value::ValueError;
use parlor_proto::limits::{LABEL_BYTES_MAX, SCHEMA_BYTES_MAX};
use parlor_proto::wire::cursor::ReadError;
use thiserror::Error;

/// A schema cannot be: what is wrong, and where.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SchemaError {
    /// Two components have one name.
    #[error("the component {component:?} is registered twice: register it once, or name it otherwise")]
    DuplicateComponent {
        /// Their name.
        component: String,
    },
    /// Two fields of a component have one name.
    #[error("the component {component:?} has two fields {field:?}")]
    DuplicateField {
        /// The component.
        component: String,
        /// Their name.
        field: String,
    },
    /// A component or field has a name that is empty or too long.
    #[error("the name {name:?} is not 1 to {LABEL_BYTES_MAX} bytes long")]
    Name {
        /// The name.
        name: String,
    },
    /// There are too many components.
    #[error("a schema has at most {COMPONENTS_MAX} components of a game")]
    TooManyComponents,
    /// A component has too many fields.
    #[error("the component {component:?} has more than {FIELDS_MAX} fields: make two components of it")]
    TooManyFields {
        /// The component.
        component: String,
    },
    /// A component has too many lanes.
    #[error(
        "the component {component:?} has {lanes} lanes, {LANES_MAX} are allowed: make two components of it"
    )]
    TooManyLanes {
        /// The component.
        component: String,
        /// How many it has.
        lanes: usize,
    },
    /// A component without a field.
    #[error("the component {component:?} has no fields")]
    NoFields {
        /// The component.
        component: String,
    },
    /// A component whose priority is 0: it would never be sent.
    #[error("the component {component:?} has the priority 0, 256 is normal")]
    Priority {
        /// The component.
        component: String,
    },
    /// The parameters of a kind are out of bounds.
    #[error("the field {component}.{field} {fault}")]
    Field {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// What is wrong, in words that follow "the field".
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
    /// The field that interest is measured by is not one.
    #[error(
        "interest needs a vector, a transform or a body, and {component:?} has none as its field {field}"
    )]
    InterestField {
        /// The component, by name or number.
        component: String,
        /// The field, by name or number.
        field: String,
    },
    /// The radii of interest are out of bounds.
    #[error("interest within {radius} that ends at {leave}: 0 < radius <= leave <= 10^15 must hold")]
    InterestRadius {
        /// Within it, entities are seen.
        radius: f64,
        /// Beyond it, they are no longer seen.
        leave: f64,
    },
    /// The schema is too long as bytes.
    #[error("the schema takes {bytes} bytes, {SCHEMA_BYTES_MAX} are allowed: shorten names")]
    TooLarge {
        /// Bytes that it takes.
        bytes: usize,
    },
    /// Bytes of a schema that cannot be read.
    #[error("a schema could not be read: {0}")]
    Read(#[from] ReadError),
    /// A kind of field that this version does not know.
    #[error("the field {component}.{field} is of the unknown kind {kind}: this version is too old for it")]
    UnknownKind {
        /// The component.
        component: String,
        /// The field.
        field: String,
        /// The number of the kind.
        kind: u8,
    },
    /// A number has another form than the one that it is written in.
    #[error("the field {component}.{field} has a −0 that should be 0")]
    NotCanonical {
        /// The component.
        component: String,
        /// The field.
        field: String,
    },
}

/// A value does not fit the component that it is to become, or a row is none of its component.
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

/// What is wrong with the value of a field.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FieldFault {
    /// A number is NaN or infinite.
    #[error("a number must be finite")]
    NotFinite,
    /// The value is of a type that cannot stand in a field of this kind.
    #[error("{found} does not fit a field of this kind")]
    WrongType {
        /// The Rust type.
        found: &'static str,
    },
    /// There are more or fewer numbers than a value of the field has.
    #[error("{found} numbers for a field that has {expected}")]
    WrongCount {
        /// How many there are.
        found: usize,
        /// How many there should be.
        expected: usize,
    },
    /// The index of a name is beyond the names.
    #[error("there is no name {index} among {count}")]
    NoSuchChoice {
        /// The index.
        index: usize,
        /// How many names there are.
        count: usize,
    },
    /// Text, bytes or a value take too many bytes.
    #[error("{bytes} bytes are more than the {max} allowed")]
    TooLong {
        /// Bytes that it takes.
        bytes: usize,
        /// Bytes allowed.
        max: usize,
    },
    /// A value cannot be sent.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// A lane is outside of its span, or together with others not in its one form.
    #[error("a quantized number is out of range or not in its one form")]
    Lane,
    /// A blob is not what its kind holds.
    #[error("its bytes are not {expected}")]
    Blob {
        /// What they should be.
        expected: &'static str,
    },
}
