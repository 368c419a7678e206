//! The predicted rows of a member's entities, and their reconciliation with the authority's state.

use super::shown::{Eye, Frame, Smoothing};
use super::track::{Track, place};
use crate::interpolation::Sample;
use crate::limits::{PREDICTED_TICKS, REPLAY_TICKS_MAX};
use crate::replicator::motion::Motion;
use crate::schema::{Component, ComponentId, NOT_OF_GAME, Replicated, RowReader, RowWriter, Schema};
use crate::world::{Applied, Row, World, WorldError};
use parlor_proto::OrderedMap;
use parlor_proto::{EntityId, MemberId, Tick};
use std::sync::Arc;

/// Predicted rows, an overlay on those of a replica: see the [module](super).
///
/// The caller runs the steps: [`begin_step`](Self::begin_step), the game reads and writes,
/// [`end_step`](Self::end_step). It passes in received packets with [`observe`](Self::observe). Before each
/// step it calls [`reconcile`](Self::reconcile), which returns the steps to run again.
///
/// Each predicted component of an entity has [`PREDICTED_TICKS`] rows. The number of entities and components
/// is bounded by the world's limits.
#[derive(Clone, Debug)]
pub struct Predictor {
    me: MemberId,
    schema: Arc<Schema>,
    /// Predicted components, one bit each.
    predicted: u64,
    /// The motion of each predicted component.
    motions: Vec<Option<Motion>>,
    smoothing: Smoothing,
    /// By slot.
    entities: OrderedMap<u16, Own>,
    /// The newest step that was run.
    newest: Option<Tick>,
    /// The running step.
    step: Option<Tick>,
    /// The last of the steps being replayed.
    rerun_to: Option<Tick>,
    /// The frame of the replay.
    frame: Option<Frame>,
    /// Whether new state was received that is not compared yet.
    is_stale: bool,
    sample: Sample,
    counters: PredictionCounters,
}

/// An entity of this member.
#[derive(Clone, Debug)]
struct Own {
    entity: EntityId,
    /// One for each predicted component, whether the entity has it or not.
    tracks: Vec<Track>,
    /// Which slots of the rings hold a row, of the [`PREDICTED_TICKS`] ticks up to the newest.
    kept: u128,
    /// The newest tick for which the authority's state is known.
    known: Option<Tick>,
    /// During a replay: the tick from which its rows follow from the authority's state. Before it nothing is
    /// known.
    anchor: Option<Tick>,
    /// Whether its rows ever followed from the authority's state at a known step. Until then nothing was
    /// predicted.
    has_begun: bool,
}

/// A range of steps to replay, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rerun {
    /// The first. All rows are restored to its beginning.
    pub first: Tick,
    /// The last: the newest step that was run.
    pub last: Tick,
}

/// Counters of a prediction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictionCounters {
    /// Compared steps of an entity that were predicted correctly.
    pub confirmed: u64,
    /// How often a wrong prediction caused a rollback.
    pub corrections: u64,
    /// Replayed steps, for corrections and for new entities.
    pub replayed_steps: u64,
    /// How often rows were set to the authority's state without a replay: the difference was too old, or at a
    /// break.
    pub snaps: u64,
    /// The largest displacement by a correction, in the unit of the field with the largest one.
    pub displacement_max: f64,
}

impl Predictor {
    /// Creates a predictor of the entities that `me` owns, for the components in `predicted`, one bit each.
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
            entities: OrderedMap::new(),
            newest: None,
            step: None,
            rerun_to: None,
            frame: None,
            is_stale: false,
            sample: Sample::default(),
            counters: PredictionCounters::default(),
        }
    }

    /// Returns the counters.
    pub const fn counters(&self) -> PredictionCounters {
        self.counters
    }

    /// Takes in a packet's changes in `world`. Entities that the member now owns begin to be predicted,
    /// others cease to be. At a break between authorities all rows are set to the new authority's state.
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

    /// Whether a replay is still running: a break ends it.
    pub const fn is_rerunning(&self) -> bool {
        self.rerun_to.is_some()
    }

    /// Compares the predictions with the received state; up to `settled` it is that of the whole world.
    /// `newest` is the newest step that was run. If a prediction was wrong, all rows are restored to an
    /// earlier step, and the steps after it are returned for a replay. The displacement is hidden from the
    /// display, as of `frame`.
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

    /// Compares all entities with newer known state. Returns the step to roll back to, if any.
    fn compare(&mut self, world: &World, settled: Option<Tick>, newest: Tick) -> Option<Tick> {
        let (mut oldest, mut is_wrong, mut has_snapped) = (None, false, false);
        for own in self.entities.values_mut() {
            let Some(known) = own.newest_known(world, settled) else { continue };
            own.known = Some(known);
            if own.was_right(world, known, newest) {
                self.counters.confirmed += 1;
                // After a snap its rows follow from the authority's state as well.
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

    /// Begins a step.
    pub fn begin_step(&mut self, tick: Tick) {
        self.step = Some(tick);
    }

    /// Ends the running step, if there is one, and keeps its rows.
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

    /// Sets the newest step, if it is newer, and drops rows of ticks that are too old.
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

/// Access for the game.
impl Predictor {
    /// Returns a predicted component: `None` if it is not predicted, `Some(None)` if the entity lacks it.
    pub fn row(&self, entity: EntityId, component: ComponentId) -> Option<Option<Row<'_>>> {
        let own = self.own(entity)?;
        own.tracks.iter().find(|track| track.id == component).map(Track::row)
    }

    /// As [`row`](Self::row), as a Rust type.
    pub fn get<C: Replicated>(&self, entity: EntityId) -> Option<Option<C>> {
        Some(self.read(entity, self.schema.find(C::NAME)?)?.map(|row| C::read(&row)))
    }

    /// As [`row`](Self::row), to be read field by field.
    pub fn read(&self, entity: EntityId, component: ComponentId) -> Option<Option<RowReader<'_>>> {
        let kind = self.schema.get(component)?;
        let row = self.row(entity, component)?;
        Some(row.map(|(lanes, blobs)| RowReader::new(kind, lanes, blobs)))
    }

    /// Sets a component, quantized as on the authority. Returns whether that changed anything; `None` if it
    /// is not predicted.
    ///
    /// # Errors
    /// [`WorldError::Row`] for a value that is NaN, infinite or too long. Nothing is changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, value: &C) -> Option<Result<bool, WorldError>> {
        self.write_with(entity, self.schema.find(C::NAME)?, |row| value.write(row))
    }

    /// As [`insert`](Self::insert), without a Rust type: fields that `write` does not set keep their values.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn write_with(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Option<Result<bool, WorldError>> {
        let schema = Arc::clone(&self.schema);
        let kind = schema.get(component)?;
        let track = self.track_mut(entity, component)?;
        Some(track.write(kind, write).map_err(WorldError::Row))
    }

    /// Removes a component. Returns whether it existed; `None` if it is not predicted.
    pub fn remove(&mut self, entity: EntityId, component: ComponentId) -> Option<bool> {
        self.track_mut(entity, component).map(Track::remove)
    }

    /// Returns a component for drawing in a frame: interpolated between the two newest steps, plus the rest
    /// of a correction's displacement. `None` as for [`row`](Self::row).
    pub fn show<C: Replicated>(&mut self, entity: EntityId, frame: Frame) -> Option<Option<C>> {
        let id = self.schema.find(C::NAME)?;
        Some(self.show_row(entity, id, frame)?.map(|row| C::read(&row)))
    }

    /// As [`show`](Self::show), without a Rust type.
    pub fn show_row(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        frame: Frame,
    ) -> Option<Option<RowReader<'_>>> {
        let newest = self.newest;
        let own = self.entities.get(&entity.slot).filter(|own| own.entity == entity)?;
        let track = own.tracks.iter().find(|track| track.id == component)?;
        let (kind, motion) = shape(&self.schema, &self.motions, component)?;
        let Some(rows) = own.rows_around(track, newest) else { return Some(None) };
        track.eye.show((kind, motion), rows, frame, self.smoothing.fade, &mut self.sample);
        Some(Some(self.sample.row(kind)))
    }

    /// Records what is shown in a frame, before a rollback.
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

    /// Ends a replay: its displacements fade out in what is shown.
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

/// Returns a predicted component's type and motion.
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

    /// Sets all rows to the world's state.
    fn take(&mut self, world: &World) {
        for track in &mut self.tracks {
            track.set(world.read_row(self.entity, track.id).ok().flatten());
        }
    }

    /// Sets all rows to the world's state, also in what is shown, and drops their history.
    fn snap(&mut self, world: &World, known: Option<Tick>) {
        self.take(world);
        (self.kept, self.anchor, self.known) = (0, None, known);
        self.tracks.iter_mut().for_each(|track| track.eye.snap());
    }

    /// The newest tick whose authority state the world has, if it is newer than the last compared one.
    fn newest_known(&self, world: &World, settled: Option<Tick>) -> Option<Tick> {
        let label = world.row_label(self.entity);
        let newest =
            [label, settled].into_iter().flatten().reduce(|a, b| if b.is_newer_than(a) { b } else { a })?;
        self.known.is_none_or(|known| newest.is_newer_than(known)).then_some(newest)
    }

    /// Whether the prediction for a tick equals the world's state.
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

    /// Restores all rows to their state after a step, or the nearest known one; from the anchor on they
    /// follow from the world's state.
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

    /// Keeps the rows of a finished step.
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

    /// Returns a component's rows of the two newest steps, or as many of them as exist; else its current row.
    /// `None` if it did not exist.
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
