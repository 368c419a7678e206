//! Components: named fields, and where their lanes and blobs stand.

use super::kind::Kind;
use super::lanes::{LaneKind, LaneRole};
use super::{Condition, FieldValue, Interpolation, SchemaError};
use crate::limits::{FIELDS_MAX, LANES_MAX};
use core::any::type_name;
use core::ops::Range as Indices;
use parlor_proto::limits::LABEL_BYTES_MAX;

/// One field of a component.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Its name, 1 to 64 bytes, unlike those of the component's other fields.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// How it is played out.
    pub interpolation: Interpolation,
    /// So many quantized steps or fewer, in each lane of the field, are no change. 0 for kinds with a blob,
    /// `Bool` and `Enum`, and below the least span of its lanes.
    pub threshold: u32,
}

impl Field {
    /// The same field, played out as `interpolation` says.
    pub fn interpolation(self, interpolation: Interpolation) -> Field {
        Field { interpolation, ..self }
    }

    /// The same field, of which `steps` quantized steps or fewer are no change.
    pub fn threshold(self, steps: u32) -> Field {
        Field { threshold: steps, ..self }
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

/// A field of this kind, as yet without a name, played out as the kind usually is.
impl From<Kind> for Field {
    fn from(kind: Kind) -> Self {
        let interpolation = kind.interpolation_default();
        Field { name: String::new(), kind, interpolation, threshold: 0 }
    }
}

/// A part of an entity: fields that come, change and go together. Whether it is in order is said by the
/// [builder of a schema](super::SchemaBuilder::build).
#[derive(Clone, Debug, PartialEq)]
pub struct Component {
    name: String,
    fields: Vec<Field>,
    priority: u16,
    condition: Condition,
    /// Of all fields, one after another.
    lanes: Vec<LaneKind>,
    /// For each lane, how many steps are no change; empty if there is no threshold at all.
    thresholds: Vec<u32>,
    /// Where the lanes of each field begin, and where its blob stands if it has one.
    spots: Vec<Spot>,
    numbers: usize,
    blobs: usize,
    /// The first field whose Rust type does not hold its kind, and the type.
    mismatch: Option<(usize, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Spot {
    lane: usize,
    number: usize,
    blob: usize,
}

impl Component {
    /// A builder of a component of this name.
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

    /// How urgent changes of it are; 256 is normal, 512 twice as urgent.
    pub const fn priority(&self) -> u16 {
        self.priority
    }

    /// Which members get it.
    pub const fn condition(&self) -> Condition {
        self.condition
    }

    /// Lanes of all its fields.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Blobs of all its fields.
    pub const fn blobs(&self) -> usize {
        self.blobs
    }

    /// What each lane is.
    pub fn lane_kinds(&self) -> &[LaneKind] {
        &self.lanes
    }

    /// Index of the field that has this name.
    pub fn find(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|each| each.name == field)
    }

    /// Which lanes belong to the field of this index; none if there is no such field.
    pub fn field_lanes(&self, field: usize) -> Indices<usize> {
        match (self.spots.get(field), self.fields.get(field)) {
            (Some(spot), Some(field)) => spot.lane..spot.lane + field.kind.lanes(),
            _ => 0..0,
        }
    }

    /// Which numbers of a row belong to the field of this index, in the order of [`Kind`]'s table; none if
    /// there is no such field.
    pub fn field_numbers(&self, field: usize) -> Indices<usize> {
        match (self.spots.get(field), self.fields.get(field)) {
            (Some(spot), Some(field)) => spot.number..spot.number + field.kind.numbers(),
            _ => 0..0,
        }
    }

    /// Numbers of all its fields.
    pub const fn numbers(&self) -> usize {
        self.numbers
    }

    /// Which blob belongs to the field of this index, if it has one.
    pub fn field_blob(&self, field: usize) -> Option<usize> {
        self.fields.get(field)?.kind.blob_bytes_max()?;
        self.spots.get(field).map(|spot| spot.blob)
    }

    /// Most bytes of each blob.
    pub fn blob_bytes_max(&self) -> impl Iterator<Item = usize> {
        self.fields.iter().filter_map(|field| field.kind.blob_bytes_max())
    }

    /// Whether `lanes` is a change against what was `published`: whether any lane differs by more steps than
    /// its field's threshold, the shorter way around for cyclic ones. Compare with what was published and not
    /// with the last value seen, or slow motion is never noticed.
    pub fn is_change(&self, published: &[i32], lanes: &[i32]) -> bool {
        if self.thresholds.is_empty() {
            return published != lanes;
        }
        let mut pairs = published.iter().zip(lanes).zip(self.lanes.iter().zip(&self.thresholds));
        pairs.any(|((a, b), (lane, threshold))| lane.distance(*a, *b) > *threshold)
    }

    /// Whether it may stand in a schema.
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

/// Puts a [`Component`] together.
#[derive(Clone, Debug)]
pub struct ComponentBuilder(Component);

impl ComponentBuilder {
    /// Adds a field: a [`Kind`], or a [`Field`] made from one. Fields keep their order.
    #[must_use]
    pub fn field(mut self, name: &str, field: impl Into<Field>) -> Self {
        self.push(name, field.into());
        self
    }

    /// Adds a field that a struct's field of the type `V` becomes; a schema refuses it if that cannot hold
    /// the kind.
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

    /// How urgent changes of it are: 256 is normal, 512 twice as urgent; 0 is refused.
    #[must_use]
    pub fn priority(mut self, priority: u16) -> Self {
        self.0.priority = priority;
        self
    }

    /// Which members get it.
    #[must_use]
    pub fn condition(mut self, condition: Condition) -> Self {
        self.0.condition = condition;
        self
    }

    /// The component.
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
        // Which part of a rotation is left out says nothing about how far it turned, and is a change in any
        // case.
        component.thresholds.extend(component.lanes[lane..].iter().map(|lane| match lane.role {
            LaneRole::RotationLargest => 0,
            _ => field.threshold,
        }));
        component.numbers += field.kind.numbers();
        component.blobs += usize::from(field.kind.blob_bytes_max().is_some());
        component.fields.push(Field { name: name.to_owned(), ..field });
    }
}
