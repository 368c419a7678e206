//! Schemas: what the entities of a room are made of, and how finely.
//!
//! A [`Schema`] lists the components of a room; a [`Component`] lists its fields; a [`Field`] has a [`Kind`].
//! A value is *quantized* once: its numbers become **lanes**, whole numbers from 0 to a span that the kind
//! gives, and its text, bytes and values become **blobs**. Lanes and blobs are all that is kept, compared and
//! sent, so both ends have the same. What is read back from them is the value *as quantized*, and quantizing
//! that again gives the same lanes, also when it went through an `f32` that is fine enough for it.
//!
//! - [`kind`](Kind): what a field can hold · `quantize`: numbers to lanes and back · `wire`: a schema as
//!   bytes
//! - [`Replicated`] with [`replicated!`](crate::replicated): Rust types as components · [`RowWriter`],
//!   [`RowReader`]
//!
//! ```
//! use parlor_sync::replicated;
//! use parlor_sync::schema::{Kind, Replicated, Schema};
//!
//! #[derive(Clone, Debug, PartialEq)]
//! struct Tank {
//!     position: [f32; 3],
//!     heading: f32,
//!     shells: u8,
//! }
//!
//! replicated!(Tank as "tank" => {
//!     position: Kind::vector3(-256.0, 256.0, 1.0 / 512.0),
//!     heading: Kind::angle(1024),
//!     shells: Kind::int(0, 20),
//! });
//!
//! let schema = Schema::builder().replicate::<Tank>().build()?;
//! assert_eq!(schema, Schema::decode(schema.encode())?);
//! assert!(schema.find("tank").is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builtin;
mod choice;
mod component;
mod error;
mod kind;
mod lanes;
mod quantize;
mod replicated;
mod row;
mod wire;

pub use builtin::{INPUT_ACK, KEYED_KEY, NOT_OF_GAME, builtins};
pub use choice::Choice;
pub use component::{Component, ComponentBuilder, Field};
pub use error::{FieldFault, RowError, SchemaError};
pub use kind::{FIELD_NUMBERS_MAX, Kind, Range};
pub use lanes::{LaneKind, LaneRole, PER_TICK_FRACTION_BITS, PerTick, VelocityLane};
pub use replicated::{Body, FieldValue, Replicated, Transform};
pub use row::{FieldReader, FieldWriter, RowReader, RowWriter};

use crate::limits::{COMPONENTS_MAX, FIELD_ABS_MAX};
use bytes::Bytes;
use core::fmt;
use parlor_proto::limits::SCHEMA_BYTES_MAX;

/// The number of a component in its schema: built-in ones first, then a game's in the order of their
/// registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u8);

impl ComponentId {
    /// As an index into [`Schema::components`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Its bit in a mask of components.
    pub const fn bit(self) -> u64 {
        1 << (self.0 & 63)
    }

    /// The components in a mask, ascending.
    pub fn in_mask(mut mask: u64) -> impl Iterator<Item = ComponentId> {
        core::iter::from_fn(move || {
            let bit = u8::try_from(mask.trailing_zeros()).ok().filter(|bit| *bit < 64)?;
            mask &= mask - 1;
            Some(ComponentId(bit))
        })
    }
}

impl fmt::Display for ComponentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "component {}", self.0)
    }
}

/// How a field is played out between two updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// Not at all: the older stands until the newer is due.
    #[default]
    None,
    /// In a straight line; angles the shorter way, directions and rotations along the chord.
    Linear,
    /// Directions and rotations at an even pace along the arc; positions and velocities in a straight line.
    Spherical,
    /// Positions along a curve that has the velocities at its ends; rotations as
    /// [`Spherical`](Self::Spherical).
    Hermite,
}

/// Which members a component of an entity is sent to. The authority and the hub have all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// All who see the entity.
    #[default]
    Everyone,
    /// The owner of the entity alone.
    OwnerOnly,
    /// All who see the entity but its owner.
    NotOwner,
}

impl Condition {
    /// Whether a member that sees an entity gets the component, given whether it owns the entity.
    pub const fn admits(self, owner: bool) -> bool {
        match self {
            Condition::Everyone => true,
            Condition::OwnerOnly => owner,
            Condition::NotOwner => !owner,
        }
    }
}

/// Which entities a member sees: those near its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridInterest {
    /// The component that says where an entity is.
    pub component: ComponentId,
    /// Index of the field: a vector, a transform or a body.
    pub field: usize,
    /// An entity that comes this near is seen, in the field's unit.
    pub radius: f64,
    /// An entity that is farther away than this is no longer seen; at least `radius`.
    pub leave: f64,
}

/// The components of a room. It is made once and does not change: see [`Schema::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Whether the built-in components stand first.
    builtins: bool,
    components: Vec<Component>,
    interest: Option<GridInterest>,
}

impl Schema {
    /// A builder of the schema of a room: the built-in components stand first.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder { builtins: true, components: Vec::new(), interest: None }
    }

    /// A builder of a schema that has nothing but what it is given: for a member's own state.
    pub fn bare() -> SchemaBuilder {
        SchemaBuilder { builtins: false, components: Vec::new(), interest: None }
    }

    /// All components; the index of each is its [`ComponentId`].
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The component that has this number.
    pub fn get(&self, id: ComponentId) -> Option<&Component> {
        self.components.get(id.index())
    }

    /// The component that has this name.
    pub fn find(&self, name: &str) -> Option<ComponentId> {
        let index = self.components.iter().position(|component| component.name() == name)?;
        u8::try_from(index).ok().map(ComponentId)
    }

    /// Which entities a member sees, if nearness decides.
    pub const fn interest(&self) -> Option<&GridInterest> {
        self.interest.as_ref()
    }

    /// Whether the built-in components stand first, as in every schema of a room.
    pub const fn has_builtins(&self) -> bool {
        self.builtins
    }

    /// XXH3 (64 bits, seed 0) of [`encode`](Self::encode): who has the same reads the same. It is never 0,
    /// which stands for no schema in the handshake.
    pub fn hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&self.encode()).max(1)
    }

    /// The schema as bytes: see PROTOCOL.md.
    pub fn encode(&self) -> Bytes {
        wire::encode(self)
    }

    /// Reads a schema. Bytes that [`encode`](Self::encode) would not have written are refused.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn decode(bytes: Bytes) -> Result<Schema, SchemaError> {
        wire::decode(bytes)
    }

    fn game_components(&self) -> &[Component] {
        let first = if self.builtins { builtins().len() } else { 0 };
        self.components.get(first..).unwrap_or_default()
    }
}

/// The built-in components alone.
impl Default for Schema {
    fn default() -> Self {
        Schema { builtins: true, components: builtins(), interest: None }
    }
}

/// Puts a [`Schema`] together; what is wrong is said by [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct SchemaBuilder {
    builtins: bool,
    components: Vec<Component>,
    interest: Option<InterestByName>,
}

#[derive(Clone, Debug)]
struct InterestByName {
    component: String,
    field: String,
    radius: f64,
    leave: f64,
}

impl SchemaBuilder {
    /// Registers a Rust type. The order of registration is the order on the wire.
    #[must_use]
    pub fn replicate<C: Replicated>(self) -> Self {
        self.component(C::component())
    }

    /// Registers a component that has no Rust type.
    #[must_use]
    pub fn component(mut self, component: Component) -> Self {
        self.components.push(component);
        self
    }

    /// Lets a member see what comes within `radius` of an entity that it owns, until it is farther away than
    /// `leave`. Where an entity is says the field `field` of the component `component`, in whose unit both
    /// are.
    #[must_use]
    pub fn interest(mut self, component: &str, field: &str, radius: f64, leave: f64) -> Self {
        let (component, field) = (component.to_owned(), field.to_owned());
        self.interest = Some(InterestByName { component, field, radius, leave });
        self
    }

    /// The schema.
    ///
    /// # Errors
    /// [`SchemaError`] says what is wrong, and with which component and field.
    pub fn build(self) -> Result<Schema, SchemaError> {
        let interest = self.interest;
        let mut schema = assemble(self.builtins, self.components)?;
        if let Some(interest) = interest {
            let found = schema.find(&interest.component).and_then(|component| {
                let field = schema.get(component)?.find(&interest.field)?;
                Some((component, field))
            });
            let Some((component, field)) = found else {
                return Err(SchemaError::InterestField {
                    component: interest.component,
                    field: interest.field,
                });
            };
            let (radius, leave) = (interest.radius, interest.leave);
            schema.interest = Some(GridInterest { component, field, radius, leave });
        }
        finish(schema)
    }
}

/// The schema of a game's `components`, checked but for its interest and size.
fn assemble(builtin: bool, components: Vec<Component>) -> Result<Schema, SchemaError> {
    if components.len() > COMPONENTS_MAX {
        return Err(SchemaError::TooManyComponents);
    }
    let mut all = if builtin { builtins() } else { Vec::new() };
    for component in components {
        component.check()?;
        if all.iter().any(|other| other.name() == component.name()) {
            return Err(SchemaError::DuplicateComponent { component: component.name().to_owned() });
        }
        all.push(component);
    }
    Ok(Schema { builtins: builtin, components: all, interest: None })
}

/// The schema, its interest and size checked too.
fn finish(schema: Schema) -> Result<Schema, SchemaError> {
    if let Some(GridInterest { component, field, radius, leave }) = schema.interest {
        let kind = schema.get(component).and_then(|component| component.fields().get(field));
        let is_place = kind.is_some_and(|field| {
            matches!(field.kind, Kind::Vector { .. } | Kind::Transform { .. } | Kind::Body { .. })
        });
        if !is_place {
            let component = component.to_string();
            return Err(SchemaError::InterestField { component, field: field.to_string() });
        }
        let ordered = radius >= f64::MIN_POSITIVE && radius <= leave && leave <= FIELD_ABS_MAX;
        if !ordered {
            return Err(SchemaError::InterestRadius { radius, leave });
        }
    }
    let bytes = schema.encode().len();
    if bytes > SCHEMA_BYTES_MAX {
        return Err(SchemaError::TooLarge { bytes });
    }
    Ok(schema)
}

#[cfg(test)]
mod tests;
