//! Templates: the fields of a member's state, and the error that others may see.

use super::added::{RESERVED, added, is_like};
use super::motion::{EXTRAPOLATION_MAX, Motion};
use crate::schema::{Component, ComponentId, Field, Kind, Replicated, RowReader, Schema, SchemaError};
use bytes::Bytes;
use core::f64::consts::TAU;
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
        Ok(Form { schema, motion, game_fields, beat_lane, cut_lane })
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
}

impl TemplateBuilder {
    /// Adds a field: a [`Kind`], or a [`Field`] made from one. Fields keep their order.
    #[must_use]
    pub fn field(mut self, name: &str, field: impl Into<Field>, tolerance: Tolerance) -> Self {
        self.fields.push((Field { name: name.to_owned(), ..field.into() }, tolerance));
        self
    }

    /// Adds a number from `min` to `max` with `bits` bits: 4, 8, 16 or up to 31. A full `f32` is not sent: 31
    /// bits distinguish as many numbers, evenly spaced.
    #[must_use]
    pub fn float(self, name: &str, min: f64, max: f64, bits: u8, tolerance: Tolerance) -> Self {
        self.field(name, Kind::float_bits(min, max, bits), tolerance)
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
        for field in fields {
            let name = field.name.clone();
            // The tolerances decide when to send; a threshold would suppress changes that they let through.
            component = component.field(&name, field.threshold(0));
        }
        let component =
            added.into_iter().fold(component, |component, (name, kind)| component.field(&name, kind)).build();
        let schema = Schema::bare().component(component).build()?;
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
