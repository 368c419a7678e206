//! Components: named fields, and the positions of their lanes and blobs.

use super::kind::Kind;
use super::lanes::{LaneKind, LaneRole};
use super::{Condition, FieldValue, Interpolation, SchemaError};
use crate::limits::{FIELDS_MAX, LANES_MAX};
use core::any::type_name;
use core::num::NonZeroU16;
use core::ops::Range as Indices;
use parlor_proto::limits::LABEL_BYTES_MAX;

/// One field of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, 1 to 64 bytes, unique within the component.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
    /// How it is interpolated.
    pub interpolation: Interpolation,
    /// A change of at most this many quantized steps, in each lane of the field, is ignored. 0 for kinds with
    /// a blob, `Bool` and `Enum`; below the least span of its lanes.
    pub threshold: u32,
    /// How urgent its changes are, in a player's own state: 256 is normal, 512 twice as urgent. `None` for the
    /// priority of the component. Entities of a world have the priorities of their components only.
    pub priority: Option<NonZeroU16>,
}

impl Field {
    /// Sets the interpolation.
    pub fn interpolation(self, interpolation: Interpolation) -> Field {
        Field { interpolation, ..self }
    }

    /// Sets the threshold: a change of at most this many quantized steps is ignored.
    pub fn threshold(self, steps: u32) -> Field {
        Field { threshold: steps, ..self }
    }

    /// Sets the priority in a player's own state: 256 is normal, 512 twice as urgent. 0 is that of the component.
    pub fn priority(self, priority: u16) -> Field {
        Field { priority: NonZeroU16::new(priority), ..self }
    }

    fn check(&self) -> Result<(), &'static str> {
        self.kind.check()?;
        if !self.kind.admits(self.interpolation) {
            return Err("cannot be played out so: its kind does not have this interpolation");
        }
        let span = match self.kind {
            Kind::Bool | Kind::Enum { .. } => 0,
            _ => self
                .lane_kinds()
                .iter()
                .filter(|lane| lane.role != LaneRole::RotationLargest)
                .map(|lane| lane.span)
                .min()
                .unwrap_or(0),
        };
        if self.threshold > 0 && self.threshold >= span {
            return Err("has a threshold that no change of it would pass");
        }
        Ok(())
    }

    fn lane_kinds(&self) -> Vec<LaneKind> {
        let mut lanes = Vec::new();
        self.kind.push_lanes(&mut lanes);
        lanes
    }
}

/// Creates a field of this kind, without a name, with the kind's default interpolation.
impl From<Kind> for Field {
    fn from(kind: Kind) -> Self {
        let interpolation = kind.interpolation_default();
        Field { name: String::new(), kind, interpolation, threshold: 0, priority: None }
    }
}

/// A part of an entity: fields that are added, changed and removed together. The [builder of a
/// schema](super::SchemaBuilder::build) checks that it is valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    name: String,
    fields: Vec<Field>,
    priority: u16,
    condition: Condition,
    /// Of all fields, in order.
    lanes: Vec<LaneKind>,
    /// For each lane, the number of steps that is ignored; empty without any threshold.
    thresholds: Vec<u32>,
    /// The first lane of each field, and its blob if it has one.
    spots: Vec<Spot>,
    numbers: usize,
    blobs: usize,
    /// The first field whose Rust type cannot hold its kind, and the type.
    mismatch: Option<(usize, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spot {
    lane: usize,
    number: usize,
    blob: usize,
}

impl Component {
    /// Starts a component of this name.
    pub fn builder(name: &str) -> ComponentBuilder {
        ComponentBuilder(Component {
            name: name.to_owned(),
            fields: Vec::new(),
            priority: 256,
            condition: Condition::Everyone,
            lanes: Vec::new(),
            thresholds: Vec::new(),
            spots: Vec::new(),
            numbers: 0,
            blobs: 0,
            mismatch: None,
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its fields, in the order of their lanes and blobs.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The priority of its changes: 256 is normal, 512 twice as urgent.
    pub const fn priority(&self) -> u16 {
        self.priority
    }

    /// Which members get it.
    pub const fn condition(&self) -> Condition {
        self.condition
    }

    /// The number of lanes of all its fields.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The number of blobs of all its fields.
    pub const fn blobs(&self) -> usize {
        self.blobs
    }

    /// The kind of each lane.
    pub fn lane_kinds(&self) -> &[LaneKind] {
        &self.lanes
    }

    /// The index of the field with this name.
    pub fn find(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|each| each.name == field)
    }

    /// The lanes of the field with this index; none if there is no such field.
    pub fn field_lanes(&self, field: usize) -> Indices<usize> {
        match (self.spots.get(field), self.fields.get(field)) {
            (Some(spot), Some(field)) => spot.lane..spot.lane + field.kind.lanes(),
            _ => 0..0,
        }
    }

    /// The numbers of the field with this index, in the order of [`Kind`]'s table; none if there is no such
    /// field.
    pub fn field_numbers(&self, field: usize) -> Indices<usize> {
        match (self.spots.get(field), self.fields.get(field)) {
            (Some(spot), Some(field)) => spot.number..spot.number + field.kind.numbers(),
            _ => 0..0,
        }
    }

    /// The count of numbers of all its fields.
    pub const fn numbers(&self) -> usize {
        self.numbers
    }

    /// The blob of the field with this index, if it has one.
    pub fn field_blob(&self, field: usize) -> Option<usize> {
        self.fields.get(field)?.kind.blob_bytes_max()?;
        self.spots.get(field).map(|spot| spot.blob)
    }

    /// Maximum bytes of each blob.
    pub fn blob_bytes_max(&self) -> impl Iterator<Item = usize> {
        self.fields.iter().filter_map(|field| field.kind.blob_bytes_max())
    }

    /// Whether `lanes` is a change against what was `published`: any lane differs by more steps than its
    /// field's threshold, by the shorter way for cyclic ones. Compare with the published row, not with the
    /// last one seen, or slow motion is never detected.
    pub fn is_change(&self, published: &[i32], lanes: &[i32]) -> bool {
        if self.thresholds.is_empty() {
            return published != lanes;
        }
        let mut pairs = published.iter().zip(lanes).zip(self.lanes.iter().zip(&self.thresholds));
        pairs.any(|((a, b), (lane, threshold))| lane.distance(*a, *b) > *threshold)
    }

    /// Checks that it is valid in a schema.
    pub(super) fn check(&self) -> Result<(), SchemaError> {
        let component = || self.name.clone();
        check_name(&self.name)?;
        if self.priority == 0 {
            return Err(SchemaError::Priority { component: component() });
        }
        if self.fields.is_empty() {
            return Err(SchemaError::NoFields { component: component() });
        }
        if self.fields.len() > FIELDS_MAX {
            return Err(SchemaError::TooManyFields { component: component() });
        }
        for (index, field) in self.fields.iter().enumerate() {
            check_name(&field.name)?;
            let name = || field.name.clone();
            if self.find(&field.name) != Some(index) {
                return Err(SchemaError::DuplicateField { component: component(), field: name() });
            }
            field.check().map_err(|fault| SchemaError::Field {
                component: component(),
                field: name(),
                fault,
            })?;
            if let Some((at, found)) = self.mismatch
                && at == index
            {
                return Err(SchemaError::Type { component: component(), field: name(), found });
            }
        }
        if self.lanes() > LANES_MAX {
            return Err(SchemaError::TooManyLanes { component: component(), lanes: self.lanes() });
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), SchemaError> {
    if name.is_empty() || name.len() > LABEL_BYTES_MAX {
        return Err(SchemaError::Name { name: name.to_owned() });
    }
    Ok(())
}

/// Builds a [`Component`].
#[derive(Clone, Debug)]
pub struct ComponentBuilder(Component);

impl ComponentBuilder {
    /// Adds a field: a [`Kind`], or a [`Field`] made from one. Fields keep their order.
    #[must_use]
    pub fn field(mut self, name: &str, field: impl Into<Field>) -> Self {
        self.push(name, field.into());
        self
    }

    /// Adds a field for a struct's field of the type `V`. A schema rejects it if that type cannot hold the
    /// kind.
    #[must_use]
    pub fn field_of<S, V: FieldValue>(
        mut self,
        name: &str,
        field: impl Into<Field>,
        _: fn(&S) -> &V,
    ) -> Self {
        let field = field.into();
        if self.0.mismatch.is_none() && !V::fits(&field.kind) {
            self.0.mismatch = Some((self.0.fields.len(), type_name::<V>()));
        }
        self.push(name, field);
        self
    }

    /// Sets the priority of its changes: 256 is normal, 512 twice as urgent; 0 is invalid.
    #[must_use]
    pub fn priority(mut self, priority: u16) -> Self {
        self.0.priority = priority;
        self
    }

    /// Sets which members get it.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.0.condition = condition;
        self
    }

    /// Builds the component.
    pub fn build(mut self) -> Component {
        if self.0.thresholds.iter().all(|threshold| *threshold == 0) {
            self.0.thresholds.clear();
        }
        self.0
    }

    fn push(&mut self, name: &str, field: Field) {
        let component = &mut self.0;
        let lane = component.lanes.len();
        component.spots.push(Spot { lane, number: component.numbers, blob: component.blobs });
        field.kind.push_lanes(&mut component.lanes);
        // The index of a rotation's omitted part does not measure the rotation, so its change always counts.
        component.thresholds.extend(component.lanes[lane..].iter().map(|lane| match lane.role {
            LaneRole::RotationLargest => 0,
            _ => field.threshold,
        }));
        component.numbers += field.kind.numbers();
        component.blobs += usize::from(field.kind.blob_bytes_max().is_some());
        component.fields.push(Field { name: name.to_owned(), ..field });
    }
}
