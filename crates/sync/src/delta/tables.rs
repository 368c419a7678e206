//! Coding tables, computed from a schema and a tick rate: which lanes form a group, and its models.

use super::layout;
use super::priors::{PRIORS, SYMBOLS};
use crate::coder::{Bit, Symbols};
use crate::schema::{Component, ComponentId, Kind, LaneRole, PerTick, Schema};
use core::ops::Range;
use parlor_proto::TickRate;

/// How the components of a schema are coded. Both ends compute it from the same schema and tick rate.
#[derive(Clone, Debug)]
pub struct Tables {
    pub(super) plans: Vec<Plan>,
    /// The initial models of the head, then those of the components.
    pub(super) models: Vec<Bit>,
    /// The choice-of-sixteen models of the components.
    pub(super) symbols: Vec<Symbols>,
    /// The number of lanes of all components.
    pub(super) lanes: usize,
    /// The number of blobs of all components.
    pub(super) blobs: usize,
    /// The number of groups of all components.
    pub(super) groups: usize,
}

/// How one component is coded.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    /// The first of its models in [`Tables::models`], and their count.
    pub(super) models: usize,
    pub(super) models_len: usize,
    /// The same for [`Tables::symbols`].
    pub(super) symbols: usize,
    pub(super) symbols_len: usize,
    /// Its first lane, blob and group among those of all components.
    pub(super) lane: usize,
    pub(super) blob: usize,
    pub(super) group: usize,
    pub(super) lanes: usize,
    pub(super) blobs: usize,
}

impl Plan {
    /// Its models among those of all components.
    pub(super) fn models(&self) -> Range<usize> {
        self.models..self.models + self.models_len
    }

    /// Its choice-of-sixteen models among those of all components.
    pub(super) fn symbols(&self) -> Range<usize> {
        self.symbols..self.symbols + self.symbols_len
    }

    /// Its groups among those of all components.
    pub(super) fn groups(&self) -> Range<usize> {
        self.group..self.group + self.groups.len()
    }
}

/// Lanes that are coded together, or a blob.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// The index of its first lane, or of its blob, in the component.
    pub(super) first: usize,
    /// The index of its field in the component.
    pub(super) field: usize,
    /// The index of its own models within the component's.
    pub(super) models: usize,
    /// The index of its family's choice-of-sixteen models within the component's.
    pub(super) symbols: usize,
    pub(super) shape: Shape,
}

/// The type of a group.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Flag,
    Choice {
        bits: u32,
        last: i32,
    },
    Numbers(Numbers),
    /// The omitted part, then three numbers.
    Rotation(Numbers),
    Blob {
        bytes_max: usize,
    },
}

/// Up to three numbers of the same span.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    pub(super) dims: usize,
    pub(super) span: i32,
    /// Steps of a full turn; 0 for numbers that are not cyclic.
    pub(super) steps: i32,
    /// The first lane of the velocity, and its unit.
    pub(super) velocity: Option<(usize, PerTick)>,
}

impl Tables {
    /// Bytes of memory in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        let groups: usize = self.plans.iter().map(|plan| plan.groups.capacity()).sum();
        self.plans.capacity() * size_of::<Plan>()
            + groups * size_of::<Group>()
            + self.models.capacity() * size_of::<Bit>()
            + self.symbols.capacity() * size_of::<Symbols>()
    }

    /// Computes the tables of this schema at this tick rate.
    pub fn new(schema: &Schema, rate: TickRate) -> Self {
        Self::with_priors(schema, rate, (&PRIORS, &SYMBOLS))
    }

    /// Computes tables with other priors, of which there are [`layout::COUNT`].
    pub(super) fn with_priors(schema: &Schema, rate: TickRate, priors: (&[Bit], &[Symbols])) -> Self {
        let mut models = priors.0[..layout::HEAD].to_vec();
        let mut symbols = Vec::new();
        let (mut lane, mut blob, mut group) = (0, 0, 0);
        let plans = schema.components().iter().map(|component| {
            let mut builder = Builder {
                field: 0,
                groups: Vec::new(),
                models: Vec::new(),
                symbols: Vec::new(),
                families: [None; 3],
                priors,
            };
            builder.add(component, rate);
            builder.groups.shrink_to_fit();
            let plan = Plan {
                models: models.len(),
                models_len: builder.models.len(),
                symbols: symbols.len(),
                symbols_len: builder.symbols.len(),
                lane,
                blob,
                group,
                lanes: component.lanes(),
                blobs: component.blobs(),
                groups: builder.groups,
            };
            models.append(&mut builder.models);
            symbols.append(&mut builder.symbols);
            lane += plan.lanes;
            blob += plan.blobs;
            group += plan.groups.len();
            plan
        });
        let plans = plans.collect();
        models.shrink_to_fit();
        symbols.shrink_to_fit();
        Tables { plans, models, symbols, lanes: lane, blobs: blob, groups: group }
    }

    /// The number of components.
    pub fn components(&self) -> usize {
        self.plans.len()
    }

    pub(super) fn plan(&self, id: ComponentId) -> &Plan {
        &self.plans[id.index()]
    }
}

struct Builder<'a> {
    /// The field whose groups are being added.
    field: usize,
    groups: Vec<Group>,
    models: Vec<Bit>,
    symbols: Vec<Symbols>,
    /// The index of each family's models, once a group uses them.
    families: [Option<usize>; 3],
    priors: (&'a [Bit], &'a [Symbols]),
}

impl Builder<'_> {
    fn add(&mut self, component: &Component, rate: TickRate) {
        for (index, field) in component.fields().iter().enumerate() {
            self.field = index;
            let lanes = component.field_lanes(index);
            let first = lanes.start;
            let spans: Vec<i32> = component.lane_kinds()[lanes]
                .iter()
                .map(|lane| i32::try_from(lane.span).unwrap_or(i32::MAX))
                .collect();
            let numbers = |dims, span, steps| Numbers { dims, span, steps, velocity: None };
            match &field.kind {
                Kind::Bool => self.push(first, Shape::Flag),
                Kind::Enum { .. } => {
                    let bits = (spans[0] as u32).checked_ilog2().map_or(0, |bits| bits + 1);
                    self.push(first, Shape::Choice { bits, last: spans[0] });
                }
                Kind::Int { .. } => self.numbers(first, layout::RATE, numbers(1, spans[0], 0)),
                Kind::Float { .. } => self.numbers(first, layout::MOTION, numbers(1, spans[0], 0)),
                Kind::Angle { steps } => {
                    self.numbers(
                        first,
                        layout::MOTION,
                        numbers(1, spans[0], i32::try_from(*steps).unwrap_or(0)),
                    );
                }
                Kind::Vector { dims, .. } => {
                    self.numbers(first, layout::MOTION, numbers(usize::from(*dims), spans[0], 0));
                }
                Kind::UnitVector { .. } => self.numbers(first, layout::RATE, numbers(2, spans[0], 0)),
                Kind::Rotation { .. } => self.rotation(first, spans[1]),
                Kind::Transform { .. } => {
                    self.numbers(first, layout::MOTION, numbers(3, spans[0], 0));
                    self.rotation(first + 3, spans[4]);
                }
                Kind::Body { .. } => {
                    let velocity = velocity(component, first, rate);
                    self.numbers(first + 7, layout::RATE, numbers(3, spans[7], 0));
                    self.numbers(first, layout::MOTION, Numbers { velocity, ..numbers(3, spans[0], 0) });
                    self.numbers(first + 10, layout::RATE, numbers(3, spans[10], 0));
                    self.rotation(first + 3, spans[4]);
                }
                Kind::Text { bytes_max } | Kind::Bytes { bytes_max } | Kind::Any { bytes_max } => {
                    let blob = component.field_blob(index).expect("these kinds have a blob");
                    self.push(blob, Shape::Blob { bytes_max: usize::from(*bytes_max) });
                }
            }
        }
    }

    fn rotation(&mut self, first: usize, span: i32) {
        let numbers = Numbers { dims: 3, span, steps: 0, velocity: None };
        self.push_with(first, layout::ROTATION, Shape::Rotation(numbers));
    }

    fn numbers(&mut self, first: usize, family: usize, numbers: Numbers) {
        self.push_with(first, family, Shape::Numbers(numbers));
    }

    /// Adds a group with the models of a family, which a component has once.
    fn push_with(&mut self, first: usize, family: usize, shape: Shape) {
        let begun = self.families[family].unwrap_or(self.symbols.len());
        if self.families[family].is_none() {
            self.families[family] = Some(begun);
            let from = family * layout::FAMILY_SYMBOLS;
            self.symbols.extend_from_slice(&self.priors.1[from..from + layout::FAMILY_SYMBOLS]);
        }
        self.push(first, shape);
        let group = self.groups.last_mut().expect("it was just pushed");
        group.symbols = begun;
    }

    fn push(&mut self, first: usize, shape: Shape) {
        let (from, len) = match &shape {
            Shape::Flag => (layout::FLAG, layout::FLAG_LEN),
            Shape::Choice { bits, .. } => (layout::CHOICE, 1 + (1 << bits)),
            Shape::Numbers(_) => (layout::NUMBERS, layout::NUMBERS_LEN),
            Shape::Rotation(_) => (layout::TURN, layout::TURN_LEN),
            Shape::Blob { .. } => (layout::BLOB, layout::BLOB_LEN),
        };
        let field = self.field;
        self.groups.push(Group { first, field, models: self.models.len(), symbols: 0, shape });
        self.models.extend_from_slice(&self.priors.0[from..from + len]);
    }
}

/// The unit of a body's velocity, relative to its position.
fn velocity(component: &Component, first: usize, rate: TickRate) -> Option<(usize, PerTick)> {
    match component.lane_kinds()[first].role {
        LaneRole::Position { velocity: Some(velocity) } => Some((velocity.lane, velocity.per_tick(rate))),
        _ => None,
    }
}
