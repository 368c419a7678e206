//! The predicted rows of all entities of a member, and what becomes of them when the authority tells.

use super::shown::{Eye, Frame, Smoothing};
use super::track::{Track, place};
use crate::interpolation::Sample;
use crate::limits::{PREDICTED_TICKS, REPLAY_TICKS_MAX};
use crate::replicator::motion::Motion;
use crate::schema::{Component, ComponentId, NOT_OF_GAME, Replicated, RowReader, Schema};
use crate::world::{Applied, Row, World, WorldError};
use parlor_proto::{EntityId, MemberId, Tick};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Predicted rows, laid over those of a replica: see the [module](super).
///
/// The caller runs steps: [`begin_step`](Self::begin_step), the game reads and writes,
/// [`end_step`](Self::end_step). It hands over what packets bring with [`observe`](Self::observe), and asks
/// with [`reconcile`](Self::reconcile) before its next step whether some have to be run again.
///
/// Each predicted component of an entity takes [`PREDICTED_TICKS`] rows; entities and components are bounded
/// by what a world holds.
#[derive(Clone, Debug)]
pub struct Predictor {
    me: MemberId,
    schema: Arc<Schema>,
    /// Predicted components, one bit each.
    predicted: u64,
    /// For each component how it moves, if it is predicted.
    motions: Vec<Option<Motion>>,
    smoothing: Smoothing,
    /// By slot.
    entities: BTreeMap<u16, Own>,
    /// The newest step that was run.
    newest: Option<Tick>,
    /// The step that is running.
    step: Option<Tick>,
    /// The last of the steps that are run again.
    rerun_to: Option<Tick>,
    /// The frame in which they are.
    frame: Option<Frame>,
    /// Whether something came that was not compared.
    is_stale: bool,
    sample: Sample,
    counters: PredictionCounters,
}

/// An entity of the member's own.
#[derive(Clone, Debug)]
struct Own {
    entity: EntityId,
    /// One for each predicted component, whether the entity has it or not.
    tracks: Vec<Track>,
    /// Which places of the rings hold a row, of the [`PREDICTED_TICKS`] ticks up to the newest.
    kept: u128,
    /// The newest tick of which it is known what the authority had.
    known: Option<Tick>,
    /// From when on its rows follow from what the authority told, while steps are run again; before it
    /// nothing is known.
    anchor: Option<Tick>,
    /// Whether its rows ever followed from what the authority had at a known step. Until then nothing was
    /// predicted.
    has_begun: bool,
}

/// Steps to be run again, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// The first. All rows are what they were when it began.
    pub first: Tick,
    /// The last: the newest that was run.
    pub last: Tick,
}

/// What was counted of a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictionCounters {
    /// Steps of an entity that turned out as predicted, of those that could be compared.
    pub confirmed: u64,
    /// How often the member went back because a step had not.
    pub corrections: u64,
    /// Steps that were run again, for this and for entities that came.
    pub replayed_steps: u64,
    /// How often rows were set to what the authority told without running anything again: because that was
    /// too long ago, or at a break.
    pub snaps: u64,
    /// The furthest that a correction displaced what is shown, in the unit of the field that was most.
    pub displacement_max: f64,
}

impl Predictor {
    /// A predictor of the entities that `me` owns, of those of their components that `predicted` names, one
    /// bit each.
    pub fn new(schema: Arc<Schema>, me: MemberId, predicted: u64, smoothing: Smoothing) -> Self {
        let builtin = if schema.has_builtins() { NOT_OF_GAME } else { 0 };
        let components = schema.components();
        let all = (0..64).zip(components).fold(0, |all, (index, _)| all | 1u64 << index);
        let predicted = predicted & all & !builtin;
        let motions = (0..64).zip(components);
        let motions = motions.map(|(index, kind)| (predicted >> index & 1 == 1).then(|| Motion::new(kind)));
        Predictor {
            me,
            predicted,
            motions: motions.collect(),
            schema,
            smoothing,
            entities: BTreeMap::new(),
            newest: None,
            step: None,
            rerun_to: None,
            frame: None,
            is_stale: false,
            sample: Sample::default(),
            counters: PredictionCounters::default(),
        }
    }

    /// What was counted.
    pub const fn counters(&self) -> PredictionCounters {
        self.counters
    }

    /// Takes in what a packet changed in `world`: entities that are the member's begin to be predicted, those
    /// that are not any more cease to be, and at a break between authorities all become what the new one
    /// told.
    pub fn observe(&mut self, world: &World, applied: &Applied, is_break: bool) {
        if self.predicted == 0 {
            return;
        }
        self.is_stale = true;
        for gone in &applied.despawned {
            self.disown(*gone);
        }
        for (entity, _) in &applied.changed {
            let is_mine = world.owner(*entity) == Ok(Some(self.me))
                && (!self.schema.has_builtins()
                    || world.mask(*entity).is_ok_and(|mask| mask & NOT_OF_GAME == 0));
            if !is_mine {
                self.disown(*entity);
            } else if self.own(*entity).is_none() {
                let own = Own::new(*entity, &self.schema, self.predicted, world);
                self.entities.insert(entity.slot, own);
            }
        }
        if is_break {
            self.rerun_to = None;
            for own in self.entities.values_mut() {
                own.snap(world, None);
                own.has_begun = false;
            }
            self.counters.snaps += u64::from(!self.entities.is_empty());
        }
    }

    fn disown(&mut self, entity: EntityId) {
        if self.own(entity).is_some() {
            self.entities.remove(&entity.slot);
        }
    }

    /// Whether steps that were to be run again still are: a break ends that.
    pub const fn is_rerunning(&self) -> bool {
        self.rerun_to.is_some()
    }

    /// Compares what was predicted with what has come, up to `settled` the world as a whole; `newest` is the
    /// newest step that was run. If something turned out otherwise, all rows become what they were after an
    /// earlier step, and the steps after it are to be run again. What they change is kept from the eye, as of
    /// `frame`.
    pub fn reconcile(
        &mut self,
        world: &World,
        settled: Option<Tick>,
        newest: Tick,
        frame: Frame,
    ) -> Option<Rerun> {
        if !std::mem::take(&mut self.is_stale) || self.entities.is_empty() {
            return None;
        }
        self.advance(newest);
        let back_to = self.compare(world, settled, newest)?;
        self.frame = Some(frame);
        self.keep_shown(frame);
        self.entities.values_mut().for_each(|own| own.rewind(world, back_to, newest));
        self.rerun_to = Some(newest);
        if back_to == newest {
            self.end_rerun();
            return None;
        }
        self.counters.replayed_steps += u64::from(newest.since(back_to).unsigned_abs());
        Some(Rerun { first: back_to.next(), last: newest })
    }

    /// Compares all entities of which something newer is known; says which step to go back to, if any.
    fn compare(&mut self, world: &World, settled: Option<Tick>, newest: Tick) -> Option<Tick> {
        let (mut oldest, mut is_wrong, mut has_snapped) = (None, false, false);
        for own in self.entities.values_mut() {
            let Some(known) = own.newest_known(world, settled) else { continue };
            own.known = Some(known);
            if own.was_right(world, known, newest) {
                self.counters.confirmed += 1;
                // After a snap it follows from what the authority told as well.
                own.has_begun = true;
                continue;
            }
            let back = newest.since(known);
            if back < 0 || back.unsigned_abs() > REPLAY_TICKS_MAX {
                has_snapped = true;
                own.snap(world, Some(known));
                continue;
            }
            is_wrong |= own.has_begun;
            own.anchor = Some(known);
            oldest = Some(oldest.map_or(known, |oldest| older(oldest, known)));
        }
        self.counters.corrections += u64::from(is_wrong);
        self.counters.snaps += u64::from(has_snapped);
        oldest
    }

    /// A step begins.
    pub fn begin_step(&mut self, tick: Tick) {
        self.step = Some(tick);
    }

    /// The step that began last, if it is not over yet, is over: what rows are is what they were after it.
    pub fn end_step(&mut self) {
        let Some(tick) = self.step.take() else { return };
        self.advance(tick);
        for own in self.entities.values_mut() {
            own.keep(tick);
        }
        if self.rerun_to == Some(tick) {
            self.end_rerun();
        }
    }

    /// The newest step is this, if it is newer: the rows of ticks that are too old go.
    fn advance(&mut self, tick: Tick) {
        let Some(newest) = self.newest else {
            self.newest = Some(tick);
            return;
        };
        let steps = tick.since(newest);
        if steps <= 0 {
            return;
        }
        self.newest = Some(tick);
        let passed = if steps.unsigned_abs() >= PREDICTED_TICKS {
            u128::MAX
        } else {
            (1..=steps).fold(0, |passed, step| passed | 1 << place(newest.offset(step)))
        };
        self.entities.values_mut().for_each(|own| own.kept &= !passed);
    }

    fn own(&self, entity: EntityId) -> Option<&Own> {
        self.entities.get(&entity.slot).filter(|own| own.entity == entity)
    }

    fn track_mut(&mut self, entity: EntityId, component: ComponentId) -> Option<&mut Track> {
        let own = self.entities.get_mut(&entity.slot).filter(|own| own.entity == entity)?;
        own.tracks.iter_mut().find(|track| track.id == component)
    }
}

/// For the game.
impl Predictor {
    /// A component as predicted: the inner `None` if the entity has none; the outer one if it is not
    /// predicted.
    pub fn row(&self, entity: EntityId, component: ComponentId) -> Option<Option<Row<'_>>> {
        let own = self.own(entity)?;
        own.tracks.iter().find(|track| track.id == component).map(Track::row)
    }

    /// As [`row`](Self::row), as a Rust type.
    pub fn get<C: Replicated>(&self, entity: EntityId) -> Option<Option<C>> {
        let id = self.schema.find(C::NAME)?;
        let kind = &self.schema.components()[id.index()];
        let row = self.row(entity, id)?;
        Some(row.map(|(lanes, blobs)| C::read(&RowReader::new(kind, lanes, blobs))))
    }

    /// Sets a component, quantized as the authority would; says whether that changed anything. `None` if it
    /// is not predicted.
    ///
    /// # Errors
    /// [`WorldError::Row`] for what is NaN, infinite or too long. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, value: &C) -> Option<Result<bool, WorldError>> {
        let id = self.schema.find(C::NAME)?;
        let schema = Arc::clone(&self.schema);
        let track = self.track_mut(entity, id)?;
        Some(track.write(&schema.components()[id.index()], value).map_err(WorldError::Row))
    }

    /// Takes a component away; says whether it was there. `None` if it is not predicted.
    pub fn remove(&mut self, entity: EntityId, component: ComponentId) -> Option<bool> {
        self.track_mut(entity, component).map(Track::remove)
    }

    /// A component as it shall be drawn in a frame: between what it was after the two newest steps, with what
    /// a correction displaced on top, as far as that has not faded. `None` as [`row`](Self::row).
    pub fn show<C: Replicated>(&mut self, entity: EntityId, frame: Frame) -> Option<Option<C>> {
        let id = self.schema.find(C::NAME)?;
        let newest = self.newest;
        let own = self.entities.get(&entity.slot).filter(|own| own.entity == entity)?;
        let track = own.tracks.iter().find(|track| track.id == id)?;
        let kind = &self.schema.components()[id.index()];
        let motion = self.motions[id.index()].as_ref()?;
        let Some(rows) = own.rows_around(track, newest) else { return Some(None) };
        track.eye.show((kind, motion), rows, frame, self.smoothing.fade, &mut self.sample);
        Some(Some(self.sample.read(kind)))
    }

    /// Keeps what is shown in a frame, before rows go back.
    fn keep_shown(&mut self, frame: Frame) {
        let (fade, newest) = (self.smoothing.fade, self.newest);
        for own in self.entities.values_mut() {
            for index in 0..own.tracks.len() {
                let track = &own.tracks[index];
                let shape = shape(&self.schema, &self.motions, track.id).filter(|_| own.has_begun);
                let is_shown = shape
                    .zip(own.rows_around(track, newest))
                    .map(|(shape, rows)| track.eye.show(shape, rows, frame, fade, &mut self.sample))
                    .is_some();
                own.tracks[index].eye.begin(is_shown.then_some(&self.sample));
            }
        }
    }

    /// All steps were run again: what they changed fades in what is shown.
    fn end_rerun(&mut self) {
        self.rerun_to = None;
        let Some(frame) = self.frame.take() else { return };
        let (Smoothing { fade, leap }, newest) = (self.smoothing, self.newest);
        for own in self.entities.values_mut() {
            own.anchor = None;
            for index in 0..own.tracks.len() {
                let track = &own.tracks[index];
                let Some(shape) = shape(&self.schema, &self.motions, track.id) else { continue };
                let right = own.rows_around(track, newest).map(|rows| {
                    Eye::default().show(shape, rows, frame, fade, &mut self.sample);
                });
                let right = right.map(|()| &self.sample);
                let displaced = own.tracks[index].eye.end(shape, right, frame.now, leap);
                self.counters.displacement_max = self.counters.displacement_max.max(displaced);
            }
        }
    }
}

fn older(a: Tick, b: Tick) -> Tick {
    if a.is_newer_than(b) { b } else { a }
}

/// What a predicted component is, and how it moves.
fn shape<'a>(
    schema: &'a Schema,
    motions: &'a [Option<Motion>],
    id: ComponentId,
) -> Option<(&'a Component, &'a Motion)> {
    schema.get(id).zip(motions.get(id.index())?.as_ref())
}

impl Own {
    fn new(entity: EntityId, schema: &Schema, predicted: u64, world: &World) -> Self {
        let tracks = ComponentId::in_mask(predicted).filter_map(|id| Some(Track::new(id, schema.get(id)?)));
        let mut own =
            Own { entity, tracks: tracks.collect(), kept: 0, known: None, anchor: None, has_begun: false };
        own.take(world);
        own
    }

    /// All rows become what the world has.
    fn take(&mut self, world: &World) {
        for track in &mut self.tracks {
            track.set(world.read_row(self.entity, track.id).ok().flatten());
        }
    }

    /// All rows become what the world has, at once and for the eye too; what they were is forgotten.
    fn snap(&mut self, world: &World, known: Option<Tick>) {
        self.take(world);
        (self.kept, self.anchor, self.known) = (0, None, known);
        self.tracks.iter_mut().for_each(|track| track.eye.snap());
    }

    /// The tick at which the authority had what the world has, if it is newer than what was compared before.
    fn newest_known(&self, world: &World, settled: Option<Tick>) -> Option<Tick> {
        let label = world.row_label(self.entity);
        let newest =
            [label, settled].into_iter().flatten().reduce(|a, b| if b.is_newer_than(a) { b } else { a })?;
        self.known.is_none_or(|known| newest.is_newer_than(known)).then_some(newest)
    }

    /// Whether what was predicted for a tick is what the world has.
    fn was_right(&self, world: &World, known: Tick, newest: Tick) -> bool {
        let at = place(known);
        let is_same = |track: &Track| track.past(at) == world.read_row(self.entity, track.id).ok().flatten();
        self.has(known, newest) && self.tracks.iter().all(is_same)
    }

    /// Whether the rows of a tick are kept.
    fn has(&self, tick: Tick, newest: Tick) -> bool {
        let age = newest.since(tick);
        (0..PREDICTED_TICKS.cast_signed()).contains(&age) && self.kept & 1 << place(tick) != 0
    }

    /// All rows become what they were after a step, or as near to it as is known; from the anchor on they
    /// follow from what the world has.
    fn rewind(&mut self, world: &World, to: Tick, newest: Tick) {
        if let Some(anchor) = self.anchor {
            let at = place(anchor);
            for track in &mut self.tracks {
                track.put(at, world.read_row(self.entity, track.id).ok().flatten());
                track.restore(at);
            }
            (self.kept, self.has_begun) = (1 << at, true);
            self.anchor.take_if(|anchor| *anchor == to);
            return;
        }
        let mut ages = 0..PREDICTED_TICKS.cast_signed();
        if let Some(age) = ages.find(|age| self.has(to.offset(-age), newest)) {
            let at = place(to.offset(-age));
            self.tracks.iter_mut().for_each(|track| track.restore(at));
        }
    }

    /// A step is over.
    fn keep(&mut self, tick: Tick) {
        let at = place(tick);
        match self.anchor {
            Some(anchor) if anchor.is_newer_than(tick) => {}
            Some(anchor) if anchor == tick => {
                self.anchor = None;
                self.tracks.iter_mut().for_each(|track| track.restore(at));
            }
            _ => {
                self.tracks.iter_mut().for_each(|track| track.keep(at));
                self.kept |= 1 << at;
            }
        }
    }

    /// What a component was after the two newest steps; the newest alone, or what it is, where that is all
    /// there is. `None` if it was not there.
    fn rows_around<'a>(&self, track: &'a Track, newest: Option<Tick>) -> Option<[Row<'a>; 2]> {
        let Some(newest) = newest.filter(|newest| self.has(*newest, *newest)) else {
            return track.row().map(|row| [row; 2]);
        };
        let newer = track.past(place(newest))?;
        let before = newest.offset(-1);
        let older = if self.has(before, newest) { track.past(place(before)) } else { None };
        Some([older.unwrap_or(newer), newer])
    }
}
