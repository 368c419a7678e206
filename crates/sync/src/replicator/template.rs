//! Templates: the fields of a member's state, and the error that others may see.

use super::added::{RESERVED, added, is_like};
use super::motion::{EXTRAPOLATION_MAX, Motion};
use crate::schema::{Component, ComponentId, Field, Kind, Replicated, RowReader, Schema, SchemaError};
use bytes::Bytes;
use core::f64::consts::TAU;
use core::num::NonZeroU16;
use core::time::Duration;
use std::sync::Arc;
use thiserror::Error;

/// The one component of a template.
pub(super) const STATE: ComponentId = ComponentId(0);
/// Longest time before a changed state is sent. Others extrapolate for twice as long, so that motion does not
/// stop while the next state is on its way.
const LONGEST_INTERVAL: Duration = Duration::from_millis(500);

const _: () = assert!(2 * LONGEST_INTERVAL.as_micros() <= EXTRAPOLATION_MAX.as_micros());

/// The error that others may see in a field before a new state is sent. They extrapolate the last sent state,
/// so steady motion is rarely sent.
///
/// Bool, integers, names, text, bytes, values and fields without interpolation are not extrapolated: others
/// see the last sent value. They are sent as soon as they change by more than `off_by`, or after `late_by`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// In the unit of the field; for a vector, a position or a direction, the length of the difference. 0 for
    /// the resolution of the field.
    pub off_by: f64,
    /// In radians, for angles and rotations. 0 for the resolution of the field.
    pub turned_by: f64,
    /// Latency tolerance: how long others may see a smaller difference, and how late those kinds may be that
    /// are otherwise sent at once. Zero: the longest interval of the template for the former, no delay for
    /// the latter.
    pub late_by: Duration,
    /// A position that moves by more than this within one step counts as a teleport: others do not
    /// interpolate it. 0: never.
    pub jump: f64,
    /// How urgent changes of the field are to distant players: 256 is normal, 512 twice as urgent. 0: the priority of
    /// the field, or else that of the template.
    pub priority: u16,
}

impl Tolerance {
    /// A tolerance of this much, in the unit of the field.
    pub fn off_by(off_by: f64) -> Self {
        Tolerance { off_by, ..Tolerance::default() }
    }

    /// Sets the tolerance of rotation, in radians.
    #[must_use]
    pub fn turned_by(self, turned_by: f64) -> Self {
        Tolerance { turned_by, ..self }
    }

    /// Sets the latency tolerance.
    #[must_use]
    pub fn late_by(self, late_by: Duration) -> Self {
        Tolerance { late_by, ..self }
    }

    /// Sets how urgent changes of the field are to distant players: 256 is normal, 512 twice as urgent.
    #[must_use]
    pub fn priority(self, priority: u16) -> Self {
        Tolerance { priority, ..self }
    }

    /// Sets the distance within one step from which a move is a teleport.
    #[must_use]
    pub fn jump(self, jump: f64) -> Self {
        Tolerance { jump, ..self }
    }
}

/// Why a template is invalid.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A field is invalid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A tolerance names a field that does not exist.
    #[error(
        "the template \"{template}\" has a tolerance for a field \"{field}\", but no such field: add it, or correct the name"
    )]
    NoSuchField {
        /// The template's name.
        template: String,
        /// The field's name.
        field: String,
    },
    /// A tolerance is negative or NaN.
    #[error("the tolerance of the field \"{field}\" is negative or not finite: it must be 0 or more")]
    Tolerance {
        /// The field's name.
        field: String,
    },
    /// A name is reserved.
    #[error(
        "the field \"{field}\" begins with \"{RESERVED}\", which the replicator has for itself: rename it"
    )]
    Reserved {
        /// The field's name.
        field: String,
    },
    /// A received schema is not that of a template.
    #[error("the schema of a member's state is not made by a template: send that of a `Form`")]
    NotATemplate,
}

/// The form of a member's state, as its receivers know it.
#[derive(Clone, Debug)]
pub struct Form {
    schema: Arc<Schema>,
    motion: Motion,
    /// The number of the game's fields, which come first.
    game_fields: usize,
    /// The priority of each of the game's fields, and where they differ: a state with one for all has none here.
    priorities: Vec<u16>,
    /// Lane indices of the last two fields.
    beat_lane: usize,
    cut_lane: usize,
}

impl Form {
    /// The form for a received schema.
    ///
    /// # Errors
    /// [`TemplateError::NotATemplate`] unless [`Template::form`] can have this schema.
    pub fn new(schema: Arc<Schema>) -> Result<Form, TemplateError> {
        let [component] = schema.components() else { return Err(TemplateError::NotATemplate) };
        let fields = component.fields();
        let is_of_game = |field: &&Field| !field.name.starts_with(RESERVED);
        let game_fields = fields.iter().take_while(is_of_game).count();
        let (game, rest) = fields.split_at(game_fields);
        let expected = added(game.iter().map(|field| (field, Tolerance::default())));
        let is_alike = rest.len() == expected.len()
            && rest.iter().zip(&expected).all(|(field, expected)| is_like(field, expected));
        if !is_alike {
            return Err(TemplateError::NotATemplate);
        }
        let [beat_lane, cut_lane] = [2, 1].map(|last| component.field_lanes(fields.len() - last).start);
        let motion = Motion::new(component);
        let of = |field: &Field| field.priority.map_or(component.priority(), NonZeroU16::get);
        let priorities: Vec<u16> = game.iter().map(of).collect();
        let is_one = priorities.iter().all(|priority| *priority == component.priority());
        let priorities = if is_one { Vec::new() } else { priorities };
        Ok(Form { schema, motion, game_fields, priorities, beat_lane, cut_lane })
    }

    /// Returns the schema of the world with the state as its one entity.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Returns the component: the game's fields, then the replicator's own.
    pub fn component(&self) -> &Component {
        &self.schema.components()[STATE.index()]
    }

    /// The number of the game's fields, which come first.
    pub fn game_fields(&self) -> usize {
        self.game_fields
    }

    /// Returns how urgent the change from one row to another is: the highest priority of the fields that differ.
    /// Without such a field, as for a state that is repeated, it is the priority of the state.
    pub fn urgency(&self, before: Option<(&[i32], &[Bytes])>, after: (&[i32], &[Bytes])) -> u16 {
        let component = self.component();
        let (Some(before), false) = (before, self.priorities.is_empty()) else { return component.priority() };
        let differs = |field: usize| {
            let lanes = component.field_lanes(field);
            let blob = component.field_blob(field);
            before.0.get(lanes.clone()) != after.0.get(lanes)
                || blob.is_some_and(|blob| before.1.get(blob) != after.1.get(blob))
        };
        let changed = self.priorities.iter().enumerate().filter(|(field, _)| differs(*field));
        changed.map(|(_, priority)| *priority).max().unwrap_or(component.priority())
    }

    /// The number of lanes of the game's fields.
    pub(super) fn game_lanes(&self) -> usize {
        self.component().field_lanes(self.game_fields).start
    }

    pub(super) fn motion(&self) -> &Motion {
        &self.motion
    }

    pub(super) fn beat_lane(&self) -> usize {
        self.beat_lane
    }

    pub(super) fn cut_lane(&self) -> usize {
        self.cut_lane
    }
}

/// The fields of a member's own state, and the error that others may see.
#[derive(Clone, Debug)]
pub struct Template {
    form: Arc<Form>,
    /// The tolerances of the game's fields.
    tolerances: Vec<Tolerance>,
    longest_interval: Duration,
}

impl Template {
    /// Starts a template for states of a Rust type.
    pub fn of<C: Replicated>() -> TemplateBuilder {
        let component = C::component();
        let builder = Template::builder(component.name()).priority(component.priority());
        component.fields().iter().fold(builder, |builder, field| {
            let name = field.name.clone();
            builder.field(&name, field.clone(), Tolerance::default())
        })
    }

    /// Starts a template of this name, without fields.
    pub fn builder(name: &str) -> TemplateBuilder {
        TemplateBuilder {
            name: name.to_owned(),
            fields: Vec::new(),
            priority: 256,
            longest_interval: LONGEST_INTERVAL,
            unknown: None,
            radius: None,
        }
    }

    /// Returns the form of its states.
    pub fn form(&self) -> &Arc<Form> {
        &self.form
    }

    /// Returns the tolerance of the field with this index.
    pub fn tolerance(&self, field: usize) -> Tolerance {
        self.tolerances.get(field).copied().unwrap_or_default()
    }

    /// Longest time before a changed state is sent.
    pub fn longest_interval(&self) -> Duration {
        self.longest_interval
    }
}

/// Builds a [`Template`]; errors are returned by [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct TemplateBuilder {
    name: String,
    fields: Vec<(Field, Tolerance)>,
    priority: u16,
    longest_interval: Duration,
    /// The first field with a tolerance that does not exist.
    unknown: Option<String>,
    /// The field with the position, and the radius.
    radius: Option<(String, f64)>,
}

impl TemplateBuilder {
    /// Adds a field: a [`Kind`], or a [`Field`] made from one. Fields keep their order.
    #[must_use]
    pub fn field(mut self, name: &str, field: impl Into<Field>, tolerance: Tolerance) -> Self {
        self.fields.push((Field { name: name.to_owned(), ..field.into() }, tolerance));
        self
    }

    /// Adds a number from `min` to `max` with `bits` bits: 4, 8, 16 or up to 31.
    #[must_use]
    pub fn float(self, name: &str, min: f64, max: f64, bits: u8, tolerance: Tolerance) -> Self {
        self.field(name, Kind::float_bits(min, max, bits), tolerance)
    }

    /// Adds an `f32` that is sent as it is, without a range. Others see the last one sent: it is sent as soon as it
    /// changes, or after `late_by`.
    #[must_use]
    pub fn plain_float(self, name: &str, tolerance: Tolerance) -> Self {
        self.field(name, Kind::plain_f32(), tolerance)
    }

    /// Adds a cyclic number with 2 to the `bits` (1 to 22) steps a turn. It is a [`Kind::Angle`], in radians;
    /// see [`Cycle`] for other units.
    #[must_use]
    pub fn cyclic(self, name: &str, bits: u8, tolerance: Tolerance) -> Self {
        let steps = 1u32.checked_shl(bits.into()).unwrap_or(0);
        self.field(name, Kind::angle(steps), tolerance)
    }

    /// Sets the tolerance of a field that was added.
    #[must_use]
    pub fn tolerance(mut self, field: &str, tolerance: Tolerance) -> Self {
        match self.fields.iter_mut().find(|(each, _)| each.name == field) {
            Some((_, slot)) => *slot = tolerance,
            None => self.unknown = self.unknown.or(Some(field.to_owned())),
        }
        self
    }

    /// Sets the priority of the state: 256 is normal, 512 twice as urgent.
    #[must_use]
    pub fn priority(self, priority: u16) -> Self {
        TemplateBuilder { priority, ..self }
    }

    /// Sets the distance from which on others get the state at the lowest rate, four times a second; the nearer they
    /// are, the more often. `field` is a vector, transform or body with the position, and the distance is between
    /// the states of both players. Default: the radius of the room's schema, by the first such field; without one,
    /// distance does not count.
    #[must_use]
    pub fn radius(self, field: &str, radius: f64) -> Self {
        TemplateBuilder { radius: Some((field.to_owned(), radius)), ..self }
    }

    /// Sets the longest time before a changed state is sent, up to 500 ms. Default: 500 ms.
    #[must_use]
    pub fn longest_interval(self, longest_interval: Duration) -> Self {
        TemplateBuilder { longest_interval: longest_interval.min(LONGEST_INTERVAL), ..self }
    }

    /// Builds the template.
    ///
    /// # Errors
    /// [`TemplateError`] says which field is wrong, and why.
    pub fn build(self) -> Result<Template, TemplateError> {
        if let Some(field) = self.unknown {
            return Err(TemplateError::NoSuchField { template: self.name, field });
        }
        for (field, tolerance) in &self.fields {
            let numbers = [tolerance.off_by, tolerance.turned_by, tolerance.jump];
            if numbers.iter().any(|number| !number.is_finite() || *number < 0.0) {
                return Err(TemplateError::Tolerance { field: field.name.clone() });
            }
        }
        if let Some((field, _)) = self.fields.iter().find(|(field, _)| field.name.starts_with(RESERVED)) {
            return Err(TemplateError::Reserved { field: field.name.clone() });
        }
        let added = added(self.fields.iter().map(|(field, tolerance)| (field, *tolerance)));
        let (fields, tolerances): (Vec<Field>, Vec<Tolerance>) = self.fields.into_iter().unzip();
        let mut component = Component::builder(&self.name).priority(self.priority);
        for (field, tolerance) in fields.into_iter().zip(&tolerances) {
            let name = field.name.clone();
            let own = field.priority.map_or(0, NonZeroU16::get);
            let priority = if tolerance.priority > 0 { tolerance.priority } else { own };
            // The tolerances decide when to send; a threshold would suppress changes that they let through.
            component = component.field(&name, field.threshold(0).priority(priority));
        }
        let component =
            added.into_iter().fold(component, |component, (name, kind)| component.field(&name, kind)).build();
        let mut schema = Schema::bare().component(component);
        if let Some((field, radius)) = &self.radius {
            schema = schema.interest(&self.name, field, *radius, *radius);
        }
        let schema = schema.build()?;
        let form = Arc::new(Form::new(Arc::new(schema))?);
        Ok(Template { form, tolerances, longest_interval: self.longest_interval })
    }
}

/// The unit of a cyclic number: from `min` up to `max`, which equals `min`. Converts such numbers to the
/// radians of a [`Kind::Angle`] and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// The least number.
    pub min: f64,
    /// The number at which it wraps, above `min`.
    pub max: f64,
}

impl Cycle {
    /// Degrees from 0 to 360.
    pub const DEGREES: Cycle = Cycle { min: 0.0, max: 360.0 };

    /// Converts a number of this cycle to radians.
    pub fn to_radians(self, number: f64) -> f64 {
        (number - self.min) / (self.max - self.min) * TAU
    }

    /// Converts radians to a number of this cycle, from `min` up to but not including `max`.
    pub fn from_radians(self, radians: f64) -> f64 {
        let turns = radians / TAU;
        let number = self.min + (turns - turns.floor()) * (self.max - self.min);
        if number < self.max { number } else { self.min }
    }
}

/// A member's state at one moment.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) form: Arc<Form>,
    pub(super) numbers: Vec<f64>,
    pub(super) blobs: Vec<Bytes>,
}

impl State {
    /// Reads it as a Rust type. Fields that the state lacks, or has with another kind, are read from zeros.
    pub fn read<C: Replicated>(&self) -> C {
        C::read(&self.row())
    }

    /// Its name in its sender's template, to distinguish states of several types.
    pub fn name(&self) -> &str {
        self.form.component().name()
    }

    /// Its fields, without a Rust type.
    pub fn row(&self) -> RowReader<'_> {
        RowReader::of_numbers(self.form.component(), &self.numbers, &self.blobs)
    }
}
