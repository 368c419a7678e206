//! Schemas: the components of a room's entities, with their ranges and resolution.
//!
//! A [`Schema`] lists the components of a room; a [`Component`] lists its fields; a [`Field`] has a [`Kind`].
//! A value is *quantized* once: its numbers become **lanes**, integers from 0 to the kind's span, and its
//! text, bytes and values become **blobs**. Only lanes and blobs are stored, compared and sent, so both ends
//! have the same. Reading them back gives the value *as quantized*. Quantizing that again gives the same
//! lanes, also after a conversion to `f32`, if that is precise enough for the range.
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
    /// Its index into [`Schema::components`].
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

/// How a field is interpolated between two updates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interpolation {
    /// No interpolation: keeps the older value until the newer one is due.
    #[default]
    None,
    /// Linear; angles by the shorter way, directions and rotations along the chord.
    Linear,
    /// Directions and rotations at constant speed along the arc; positions and velocities linear.
    Spherical,
    /// Positions along a curve with the velocities at its ends; rotations as [`Spherical`](Self::Spherical).
    Hermite,
}

/// Which members get a component. The authority and the hub have all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// All members that see the entity.
    #[default]
    Everyone,
    /// Only the owner of the entity.
    OwnerOnly,
    /// All members that see the entity except its owner.
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

/// Interest by distance: a member sees the entities near its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridInterest {
    /// The component with the position of an entity.
    pub component: ComponentId,
    /// Index of the field: a vector, a transform or a body.
    pub field: usize,
    /// The distance within which an entity is seen, in the field's unit.
    pub radius: f64,
    /// The distance beyond which it is no longer seen; at least `radius`.
    pub leave: f64,
}

/// The components of a room. It is immutable: see [`Schema::builder`].
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Whether it begins with the built-in components.
    builtins: bool,
    components: Vec<Component>,
    interest: Option<GridInterest>,
}

impl Schema {
    /// Starts a schema for a room, which begins with the built-in components.
    pub fn builder() -> SchemaBuilder {
        SchemaBuilder { builtins: true, components: Vec::new(), interest: None }
    }

    /// Starts a schema without built-in components: for a member's own state.
    pub fn bare() -> SchemaBuilder {
        SchemaBuilder { builtins: false, components: Vec::new(), interest: None }
    }

    /// All components; the index of each is its [`ComponentId`].
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// Returns the component with this number.
    pub fn get(&self, id: ComponentId) -> Option<&Component> {
        self.components.get(id.index())
    }

    /// Returns the number of the component with this name.
    pub fn find(&self, name: &str) -> Option<ComponentId> {
        let index = self.components.iter().position(|component| component.name() == name)?;
        u8::try_from(index).ok().map(ComponentId)
    }

    /// The interest by distance, if there is one.
    pub const fn interest(&self) -> Option<&GridInterest> {
        self.interest.as_ref()
    }

    /// Whether it begins with the built-in components, as every room's schema does.
    pub const fn has_builtins(&self) -> bool {
        self.builtins
    }

    /// XXH3 (64 bits, seed 0) of [`encode`](Self::encode), which identifies the schema. It is never 0, which
    /// stands for no schema in the handshake.
    pub fn hash(&self) -> u64 {
        xxhash_rust::xxh3::xxh3_64(&self.encode()).max(1)
    }

    /// Encodes the schema: see PROTOCOL.md.
    pub fn encode(&self) -> Bytes {
        wire::encode(self)
    }

    /// Decodes a schema. Rejects bytes that [`encode`](Self::encode) would not have written.
    ///
    /// # Errors
    /// [`SchemaError`].
    pub fn decode(bytes: Bytes) -> Result<Schema, SchemaError> {
        wire::decode(bytes)
    }

    /// Whether a game has components in it. A room without them has keyed state alone.
    pub fn has_game_components(&self) -> bool {
        !self.game_components().is_empty()
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

/// Builds a [`Schema`]; errors are returned by [`build`](Self::build).
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

    /// Sets interest: a member sees what is within `radius` of an entity that it owns, until it is farther
    /// away than `leave`. The position is the field `field` of the component `component`. Both distances are
    /// in its unit.
    #[must_use]
    pub fn interest(mut self, component: &str, field: &str, radius: f64, leave: f64) -> Self {
        let (component, field) = (component.to_owned(), field.to_owned());
        self.interest = Some(InterestByName { component, field, radius, leave });
        self
    }

    /// Builds the schema.
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

/// Creates the schema of a game's `components`, checked except for its interest and size.
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

/// Checks interest and size.
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
