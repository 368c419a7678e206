//! What a member's state is made of, and how far off others may see it.

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
/// How long a state that differs from what was sent is kept back at most. Others extrapolate for twice as
/// long, so that nothing that moves stands still while the next state is under way.
const LONGEST_INTERVAL: Duration = Duration::from_millis(500);

const _: () = assert!(2 * LONGEST_INTERVAL.as_micros() <= EXTRAPOLATION_MAX.as_micros());

/// How far off others may see a field before a new state is sent. They extrapolate what was sent, so
/// something that moves steadily is sent rarely.
///
/// Bool, integers, names, text, bytes, values and what is played out with no interpolation leap: others see
/// what was sent last. They are sent as soon as they change by more than `off_by`, or after `late_by`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tolerance {
    /// In the unit of the field: of a vector, a position or a direction, the length of the difference. 0 for
    /// the resolution of the field.
    pub off_by: f64,
    /// In radians, for angles and rotations. 0 for the resolution of the field.
    pub turned_by: f64,
    /// Latency tolerance: how long others may see a difference that is smaller, and how long those kinds may
    /// be late that are otherwise sent at once. Zero: the former as long as the longest interval of the
    /// template, the latter not at all.
    pub late_by: Duration,
    /// If a position moves by more than this from one step to the next, it did not go there but was put
    /// there: others do not see it on the way. 0: never.
    pub jump: f64,
}

impl Tolerance {
    /// Off by so much, in the unit of the field.
    pub fn off_by(off_by: f64) -> Self {
        Tolerance { off_by, ..Tolerance::default() }
    }

    /// Turned by so much, in radians.
    #[must_use]
    pub fn turned_by(self, turned_by: f64) -> Self {
        Tolerance { turned_by, ..self }
    }

    /// Late by so much.
    #[must_use]
    pub fn late_by(self, late_by: Duration) -> Self {
        Tolerance { late_by, ..self }
    }

    /// A move by more than this within one step is a jump.
    #[must_use]
    pub fn jump(self, jump: f64) -> Self {
        Tolerance { jump, ..self }
    }
}

/// What is wrong with a template.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A field is out of order.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A tolerance names a field that there is not.
    #[error(
        "the template \"{template}\" has a tolerance for a field \"{field}\", but no such field: add it, or correct the name"
    )]
    NoSuchField {
        /// Of the template.
        template: String,
        /// Of the field.
        field: String,
    },
    /// A tolerance is negative or no number.
    #[error("the tolerance of the field \"{field}\" is negative or not finite: it must be 0 or more")]
    Tolerance {
        /// Of the field.
        field: String,
    },
    /// A name is not for games.
    #[error(
        "the field \"{field}\" begins with \"{RESERVED}\", which the replicator has for itself: rename it"
    )]
    Reserved {
        /// Of the field.
        field: String,
    },
    /// A schema that came from elsewhere is not a template's.
    #[error("the schema of a member's state is not made by a template: send that of a `Form`")]
    NotATemplate,
}

/// What a member's state is made of, as those know it who receive it.
#[derive(Clone, Debug)]
pub struct Form {
    schema: Arc<Schema>,
    motion: Motion,
    /// Fields of the game, which stand first.
    game_fields: usize,
    /// Indices of the lanes of the two fields that stand last.
    beat_lane: usize,
    cut_lane: usize,
}

impl Form {
    /// Of a schema that came with a member's states.
    ///
    /// # Errors
    /// [`TemplateError::NotATemplate`] unless [`Template::form`] has this schema at somebody else.
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

    /// The schema of the world that has the state as its one entity.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The component, which has the game's fields first and then the replicator's own.
    pub fn component(&self) -> &Component {
        &self.schema.components()[STATE.index()]
    }

    /// Fields of the game, which stand first.
    pub fn game_fields(&self) -> usize {
        self.game_fields
    }

    /// Lanes of the game's fields.
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

/// What a member's own state is made of, and how far off others may see it.
#[derive(Clone, Debug)]
pub struct Template {
    form: Arc<Form>,
    /// Of the fields of the game.
    tolerances: Vec<Tolerance>,
    longest_interval: Duration,
}

impl Template {
    /// A template for states of a Rust type.
    pub fn of<C: Replicated>() -> TemplateBuilder {
        let component = C::component();
        let builder = Template::builder(component.name()).priority(component.priority());
        component.fields().iter().fold(builder, |builder, field| {
            let name = field.name.clone();
            builder.field(&name, field.clone(), Tolerance::default())
        })
    }

    /// A template of this name without fields as yet.
    pub fn builder(name: &str) -> TemplateBuilder {
        TemplateBuilder {
            name: name.to_owned(),
            fields: Vec::new(),
            priority: 256,
            longest_interval: LONGEST_INTERVAL,
            unknown: None,
        }
    }

    /// What its states are made of.
    pub fn form(&self) -> &Arc<Form> {
        &self.form
    }

    /// How far off others may see the field of this index.
    pub fn tolerance(&self, field: usize) -> Tolerance {
        self.tolerances.get(field).copied().unwrap_or_default()
    }

    /// How long a state that differs from what was sent is kept back at most.
    pub fn longest_interval(&self) -> Duration {
        self.longest_interval
    }
}

/// Puts a [`Template`] together; what is wrong is said by [`build`](Self::build).
#[derive(Clone, Debug)]
pub struct TemplateBuilder {
    name: String,
    fields: Vec<(Field, Tolerance)>,
    priority: u16,
    longest_interval: Duration,
    /// The first field that a tolerance names though there is none.
    unknown: Option<String>,
}

impl TemplateBuilder {
    /// Adds a field: a [`Kind`], or a [`Field`] made from one. Fields keep their order.
    #[must_use]
    pub fn field(mut self, name: &str, field: impl Into<Field>, tolerance: Tolerance) -> Self {
        self.fields.push((Field { name: name.to_owned(), ..field.into() }, tolerance));
        self
    }

    /// Adds a number from `min` to `max` that takes `bits` bits: 4, 8, 16 or as many as 31. A full `f32` is
    /// not sent: 31 bits tell as many numbers apart, evenly.
    #[must_use]
    pub fn float(self, name: &str, min: f64, max: f64, bits: u8, tolerance: Tolerance) -> Self {
        self.field(name, Kind::float_bits(min, max, bits), tolerance)
    }

    /// Adds a number that goes around in a circle, of 2 to the `bits` (1 to 22) parts. It is a
    /// [`Kind::Angle`], in radians; see [`Cycle`] for other units.
    #[must_use]
    pub fn cyclic(self, name: &str, bits: u8, tolerance: Tolerance) -> Self {
        let steps = 1u32.checked_shl(bits.into()).unwrap_or(0);
        self.field(name, Kind::angle(steps), tolerance)
    }

    /// Says how far off others may see a field that was added.
    #[must_use]
    pub fn tolerance(mut self, field: &str, tolerance: Tolerance) -> Self {
        match self.fields.iter_mut().find(|(each, _)| each.name == field) {
            Some((_, slot)) => *slot = tolerance,
            None => self.unknown = self.unknown.or(Some(field.to_owned())),
        }
        self
    }

    /// How urgent the state is; 256 is normal, 512 twice as urgent.
    #[must_use]
    pub fn priority(self, priority: u16) -> Self {
        TemplateBuilder { priority, ..self }
    }

    /// How long a state that differs from what was sent is kept back at most, up to 500 ms; 500 ms unless
    /// this says otherwise.
    #[must_use]
    pub fn longest_interval(self, longest_interval: Duration) -> Self {
        TemplateBuilder { longest_interval: longest_interval.min(LONGEST_INTERVAL), ..self }
    }

    /// The template.
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
            // Tolerances decide what is sent; a threshold would hold back what they let through.
            component = component.field(&name, field.threshold(0));
        }
        let component =
            added.into_iter().fold(component, |component, (name, kind)| component.field(&name, kind)).build();
        let schema = Schema::bare().component(component).build()?;
        let form = Arc::new(Form::new(Arc::new(schema))?);
        Ok(Template { form, tolerances, longest_interval: self.longest_interval })
    }
}

/// The unit of a cyclic number: from `min` up to `max`, which is `min` again. It turns such numbers into the
/// radians of a [`Kind::Angle`] and back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cycle {
    /// Least number.
    pub min: f64,
    /// Where it begins anew, above `min`.
    pub max: f64,
}

impl Cycle {
    /// Degrees from 0 to 360.
    pub const DEGREES: Cycle = Cycle { min: 0.0, max: 360.0 };

    /// A number of this cycle in radians.
    pub fn to_radians(self, number: f64) -> f64 {
        (number - self.min) / (self.max - self.min) * TAU
    }

    /// Radians as a number of this cycle, from `min` up to but not including `max`.
    pub fn from_radians(self, radians: f64) -> f64 {
        let turns = radians / TAU;
        let number = self.min + (turns - turns.floor()) * (self.max - self.min);
        if number < self.max { number } else { self.min }
    }
}

/// A member's state at some moment.
#[derive(Clone, Debug)]
pub struct State {
    pub(super) form: Arc<Form>,
    pub(super) numbers: Vec<f64>,
    pub(super) blobs: Vec<Bytes>,
}

impl State {
    /// As a Rust type. Fields that it has and the state has not, or not so, are what the type makes of zeros.
    pub fn read<C: Replicated>(&self) -> C {
        C::read(&self.row())
    }

    /// Its name in the template of whoever sent it, to tell states of several types apart.
    pub fn name(&self) -> &str {
        self.form.component().name()
    }

    /// Its fields, for whoever does not know their types.
    pub fn row(&self) -> RowReader<'_> {
        RowReader::of_numbers(self.form.component(), &self.numbers, &self.blobs)
    }
}
