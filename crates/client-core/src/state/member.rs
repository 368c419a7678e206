//! A member's side: a replica of the world as far as the member may see it.
//!
//! The hub's and the host's stream of the same world each fill their own replica. The member reads one until
//! another has the complete world at a tick that is not older; then it switches, and reports the differences
//! like a packet. So no entity disappears and reappears, and nothing displayed goes back in time. The
//! exception is a host whose last steps the room never received.

use super::{check_of_game, is_of_game};
use crate::drawing::Drawing;
use crate::event::{StateSource, StateUpdate};
use crate::info::Diagnostics;
use bytes::Bytes;
use parlor_proto::{EntityId, Instant, MemberId, PathId, Tick, TickRate};
use parlor_sync::interpolation::{Between, Playout, PlayoutMetrics, Sample};
use parlor_sync::keyed::{Changes, KeyReader};
use parlor_sync::limits::DRAWN_BEYOND_MAX;
use parlor_sync::prediction::{Frame, Predictor, Smoothing};
use parlor_sync::schema::{Component, ComponentId, NOT_OF_GAME, Replicated, RowReader, Schema};
use parlor_sync::value::Value;
use parlor_sync::world::{
    Applied, Diagnostics as WorldDiagnostics, Outcome, Replica, StreamError, World, WorldError,
};
use std::sync::Arc;
use std::time::Duration;

/// The world that a member reads.
#[derive(Debug)]
pub(crate) struct Member {
    me: MemberId,
    rate: TickRate,
    replica: Replica,
    /// The path that delivers the stream being read; `None` for the hub's stream.
    source: Option<PathId>,
    /// Streams that may replace it.
    beside: Vec<(Option<PathId>, Replica)>,
    keys: KeyReader,
    playout: Playout,
    sample: Sample,
    drawing: Drawing,
    /// Predicts this member's own entities, if any.
    predictor: Option<Box<Predictor>>,
    /// The last drawn moment of room time.
    drawn: Option<Instant>,
    changes: ChangeSet,
    told: Told,
    /// Whether any update came, and whether it brought the complete world.
    is_begun: bool,
    is_complete: bool,
    /// Whether the last packet belonged to a transfer.
    is_transfer: bool,
    /// The kind of the last packet.
    source_of_last: StateSource,
    /// Ticks newer than this belong to the next authority; the inner `None` means all ticks do.
    successor_after: Option<Option<Tick>>,
    /// The previous authority's last tick: nothing moves from its state to the present one's.
    cut: Option<Tick>,
}

/// A game that has drawn nothing interpolated for this long does not interpolate.
const DRAWN_RECENTLY: Duration = Duration::from_secs(1);

/// What a packet changed for the game.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Entities that came into view.
    pub(crate) spawned: Vec<EntityId>,
    /// Entities that left the view.
    pub(crate) despawned: Vec<EntityId>,
    /// The update of keyed state or of the report on this member's inputs.
    pub(crate) update: Option<StateUpdate>,
    /// Whether this is the first state of another authority.
    pub(crate) is_of_successor: bool,
    /// Whether the stream being read changed.
    pub(crate) is_switch: bool,
}

impl Member {
    pub(crate) fn new(me: MemberId, schema: Arc<Schema>, rate: TickRate) -> Self {
        Member {
            me,
            rate,
            replica: Replica::new(schema, rate),
            source: None,
            beside: Vec::new(),
            keys: KeyReader::new(),
            playout: Playout::new(rate),
            sample: Sample::default(),
            drawing: Drawing::default(),
            predictor: None,
            drawn: None,
            changes: ChangeSet::default(),
            told: Told::default(),
            is_begun: false,
            is_complete: false,
            is_transfer: false,
            source_of_last: StateSource::Complete,
            successor_after: None,
            cut: None,
        }
    }

    pub(crate) fn world(&self) -> &World {
        self.replica.world()
    }

    /// The world, and what predicts this member's own entities in it.
    pub(super) fn prediction(&mut self) -> (&World, Option<&mut Predictor>) {
        (self.replica.world(), self.predictor.as_deref_mut())
    }

    /// What predicts this member's own entities, if anything does.
    pub(super) fn predictor(&self) -> Option<&Predictor> {
        self.predictor.as_deref()
    }

    /// Draws others so from here on.
    pub(super) fn draw_by(&mut self, drawing: Drawing) {
        self.playout.set_delay(drawing.delay);
        self.playout.set_whole_numbers(drawing.whole_numbers);
        self.drawing = drawing;
    }

    /// Predicts the components of `mask` on this member's own entities; none if it is empty.
    pub(super) fn predict(&mut self, mask: u64, smoothing: Smoothing) {
        if mask != 0 {
            let schema = Arc::clone(self.world().schema());
            self.predictor = Some(Box::new(Predictor::new(schema, self.me, mask, smoothing)));
        }
    }

    pub(crate) fn keys(&self) -> &KeyReader {
        &self.keys
    }

    /// Expects another authority: state newer than `tick` is its state, and does not continue what was drawn
    /// and predicted.
    pub(crate) fn await_transfer(&mut self, tick: Option<Tick>) {
        self.successor_after = Some(tick);
    }

    /// Diagnostics of the received stream; `now` is the room's tick.
    pub(crate) fn world_diagnostics(&self, now: Tick) -> WorldDiagnostics {
        self.replica.diagnostics(now)
    }

    pub(crate) fn source(&self) -> Option<PathId> {
        self.source
    }

    /// Begins a stream, from nothing.
    pub(crate) fn await_stream(&mut self, source: Option<PathId>) {
        self.beside.retain(|(other, _)| *other != source);
        let replica = Replica::new(Arc::clone(self.replica.world().schema()), self.rate);
        self.beside.push((source, replica));
    }

    /// Begins the hub's stream anew. What this member reads stays until that stream has the whole world.
    pub(crate) fn reopened(&mut self) {
        self.beside.clear();
        self.await_stream(None);
    }

    /// Ends a path's stream. Returns whether it was being read; the hub's stream then begins anew.
    pub(crate) fn lose_stream(&mut self, path: PathId) -> bool {
        self.beside.retain(|(other, _)| *other != Some(path));
        let was_read = self.source == Some(path);
        if was_read {
            self.await_stream(None);
        }
        was_read
    }

    /// Takes in a packet of the world from a path or the hub. Returns `None` if it changes nothing in the
    /// stream being read.
    pub(crate) fn take_packet(
        &mut self,
        source: Option<PathId>,
        payload: Bytes,
        at: Instant,
    ) -> Result<Option<News>, StreamError> {
        if source == self.source && !self.beside.iter().any(|(other, _)| *other == source) {
            let Outcome::Taken(applied) = self.replica.apply(payload)? else { return Ok(None) };
            return Ok(Some(self.take_in(applied, at)));
        }
        let Some(index) = self.beside.iter().position(|(other, _)| *other == source) else { return Ok(None) };
        let (_, beside) = &mut self.beside[index];
        if !matches!(beside.apply(payload)?, Outcome::Taken(_)) {
            return Ok(None);
        }
        let shown = self.replica.world().tick();
        let is_ahead = |tick: Tick| shown.is_none_or(|shown| !shown.is_newer_than(tick));
        if !beside.settled().is_some_and(|tick| is_ahead(tick) || self.succeeds(tick)) {
            return Ok(None);
        }
        let (_, mut replica) = self.beside.swap_remove(index);
        let is_other_authority = replica.settled().is_some_and(|tick| self.succeeds(tick));
        let applied = replica.take_place_of(&self.replica, !is_other_authority);
        (self.replica, self.source) = (replica, source);
        // A path's stream ends the hub's: until the path is over, the hub sends this member no state.
        self.beside.retain(|(other, _)| other.is_some());
        Ok(Some(News { is_switch: true, ..self.take_in(applied, at) }))
    }

    /// Whether this tick belongs to another authority than the state being read.
    fn succeeds(&self, tick: Tick) -> bool {
        self.successor_after.is_some_and(|after| after.is_none_or(|after| tick.is_newer_than(after)))
    }

    fn take_in(&mut self, mut applied: Applied, at: Instant) -> News {
        let is_newer = |after: &mut Option<Tick>| after.is_none_or(|after| applied.tick.is_newer_than(after));
        let successor_after = self.successor_after.take_if(is_newer);
        let is_of_successor = successor_after.is_some();
        self.cut = successor_after.unwrap_or(self.cut);
        applied.transfer |= is_of_successor;
        let world = self.replica.world();
        let despawned = applied.despawned.iter().copied().filter(|it| self.told.remove(*it)).collect();
        let spawned: Vec<EntityId> =
            applied.spawned.iter().copied().filter(|it| is_of_game(world, *it)).collect();
        spawned.iter().for_each(|entity| self.told.insert(*entity));
        let begins = applied.transfer && !self.is_transfer;
        if let Some(predictor) = &mut self.predictor {
            predictor.observe(world, &applied, begins);
        }
        let changes = self.keys.observe(world, &applied);
        self.playout.observe(at, &applied, &changes, &self.keys);
        self.playout.render_time(at);
        for (entity, mask) in &applied.changed {
            if mask & NOT_OF_GAME == 0 {
                self.changes.add(*entity, *mask);
            }
        }
        self.is_transfer = applied.transfer;
        self.source_of_last = match (applied.transfer, self.is_complete) {
            (true, _) => StateSource::Transfer,
            (false, false) => StateSource::Complete,
            (false, true) => StateSource::Delta,
        };
        let is_news = begins || !self.is_begun || !changes.is_empty();
        let update = is_news.then(|| self.update(&applied, changes));
        self.is_begun = true;
        self.is_complete |= self.replica.settled().is_some();
        News { spawned, despawned, update, is_of_successor, is_switch: false }
    }

    fn update(&self, applied: &Applied, changes: Changes) -> StateUpdate {
        let names = changes.changed.iter().map(|change| &change.key).chain(&changes.removed);
        let mut changed: Vec<String> = names.map(|key| key.to_string()).collect();
        changed.sort_unstable();
        self.metadata(self.world().tick().unwrap_or(applied.tick), changed)
    }

    /// Metadata of the newest update, of entities too; `None` before the first.
    pub(crate) fn newest_update(&self) -> Option<StateUpdate> {
        self.world().tick().filter(|_| self.is_begun).map(|tick| self.metadata(tick, Vec::new()))
    }

    fn metadata(&self, tick: Tick, changed: Vec<String>) -> StateUpdate {
        let PlayoutMetrics { jitter, buffer_delay, buffered_server_time, history_depth } =
            self.playout.metrics();
        StateUpdate {
            sequence: u64::from(tick.0),
            server_tick: tick,
            server_time_ms: self.rate.begins(tick).as_millis(),
            tick_interval_ms: self.rate.interval().as_secs_f64() * 1_000.0,
            input_ack_tick: self.keys.input_ack(),
            source: self.source_of_last,
            jitter_ms: ms(jitter),
            buffer_delay_ms: ms(buffer_delay),
            history_depth,
            buffered_server_time_ms: ms(buffered_server_time),
            changed,
        }
    }

    /// The tick at which this replica is exactly the authority's world, as far as this member may see it.
    pub(crate) fn settled(&self) -> Option<Tick> {
        self.replica.settled()
    }

    pub(crate) fn hash(&self) -> Option<(u64, u64)> {
        Some((u64::from(self.settled()?.0), self.keys.hash()))
    }

    /// The interpolated value of a key at `now`.
    pub(crate) fn interpolated(&mut self, key: &str, now: Instant) -> Option<Value> {
        let at = self.playout.render_time(now)?;
        self.drawn = Some(at);
        self.playout.value_at(key, at).map(std::borrow::Cow::into_owned)
    }

    /// The interpolated component of an entity in a frame; for an own entity the current or predicted one.
    pub(crate) fn interpolated_component<C: Replicated>(
        &mut self,
        entity: EntityId,
        frame: Frame,
    ) -> Result<Option<C>, WorldError> {
        let id = self.world().schema().find(C::NAME).ok_or(WorldError::NotRegistered { name: C::NAME })?;
        self.draw((entity, id), frame, Drawing::draw, |row| C::read(row))
    }

    /// As [`interpolated_component`](Self::interpolated_component), without a Rust type.
    pub(crate) fn interpolated_row<R>(
        &mut self,
        component: (EntityId, ComponentId),
        frame: Frame,
        read: impl FnOnce(&RowReader<'_>) -> R,
    ) -> Result<Option<R>, WorldError> {
        self.draw(component, frame, |_, _, _| None, read)
    }

    /// Draws a component of an entity: by `by` if that does, otherwise by what `read` makes of the row to show.
    fn draw<R>(
        &mut self,
        (entity, id): (EntityId, ComponentId),
        frame: Frame,
        by: impl FnOnce(&Drawing, &Component, &Between<'_>) -> Option<R>,
        read: impl FnOnce(&RowReader<'_>) -> R,
    ) -> Result<Option<R>, WorldError> {
        check_of_game(self.world(), entity)?;
        if let Some(shown) = self.predictor.as_mut().and_then(|it| it.show_row(entity, id, frame)) {
            return Ok(shown.map(|row| read(&row)));
        }
        let world = self.replica.world();
        let component = world.schema().get(id).ok_or(WorldError::NoSuchComponent { component: id })?;
        if world.owner(entity)? == Some(self.me) {
            return Ok(world.row(entity, id)?.map(|row| read(&row)));
        }
        let Some(at) = self.playout.render_time(frame.now) else {
            return Ok(world.row(entity, id)?.map(|row| read(&row)));
        };
        self.drawn = Some(at);
        let Some(between) = Between::find(world, entity, id, at, DRAWN_BEYOND_MAX) else {
            // The component did not exist then. Right after a transfer the history is empty, and only the
            // current state exists.
            let current = world.row(entity, id)?.filter(|_| world.label(entity, id).is_none());
            return Ok(current.map(|row| read(&row)));
        };
        let between = self.cut.map_or(between, |cut| between.cut_at(cut));
        if let Some(drawn) = by(&self.drawing, component, &between) {
            return Ok(Some(drawn));
        }
        let Between { versions: [older, newer], seconds, t, .. } = between;
        if self.drawing.snaps {
            let version = if t >= 1.0 { newer } else { older };
            return Ok(Some(read(&RowReader::new(component, version.lanes, version.blobs))));
        }
        self.sample.mix(component, older, newer, seconds, t);
        Ok(Some(read(&self.sample.row(component))))
    }

    /// The last drawn moment of room time: what the player acts upon. A game that has not read interpolated
    /// values within the last second draws the newest state. `None` until an update arrives.
    pub(crate) fn drawn(&self) -> Option<Instant> {
        let newest = self.rate.begins(self.world().tick().filter(|_| self.is_begun)?);
        let is_recent = |drawn: &Instant| newest.saturating_since(*drawn) < DRAWN_RECENTLY;
        Some(self.drawn.filter(is_recent).unwrap_or(newest))
    }

    /// Takes the entities of the game whose components changed since the last call, with the changed
    /// components.
    pub(crate) fn take_changes(&mut self) -> Vec<(EntityId, u64)> {
        self.changes.take(self.replica.world())
    }

    pub(crate) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        let counters = self.replica.counters();
        diagnostics.updates_decoded = counters.taken;
        diagnostics.updates_outdated = counters.old;
        diagnostics.updates_gapped = counters.waiting;
        diagnostics.messages_unreadable += self.keys.unreadable();
        diagnostics.jitter_ms = ms(self.playout.metrics().jitter);
        diagnostics.buffer_delay_ms = ms(self.playout.metrics().buffer_delay);
    }
}

/// Which components of which entities changed, bounded by the number of slots.
#[derive(Debug, Default)]
struct ChangeSet {
    /// By slot; `None` where nothing changed.
    masks: Vec<Option<u64>>,
    /// Slots with a mask, in the order of their first change.
    slots: Vec<u16>,
}

impl ChangeSet {
    fn add(&mut self, entity: EntityId, mask: u64) {
        let slot = usize::from(entity.slot);
        if self.masks.len() <= slot {
            self.masks.resize(slot + 1, None);
        }
        match &mut self.masks[slot] {
            Some(known) => *known |= mask,
            none => {
                *none = Some(mask);
                self.slots.push(entity.slot);
            }
        }
    }

    /// Takes the changes of the existing entities.
    fn take(&mut self, world: &World) -> Vec<(EntityId, u64)> {
        let masks = &mut self.masks;
        let taken = self.slots.drain(..).filter_map(|slot| {
            let mask = masks[usize::from(slot)].take()?;
            Some((world.entity_at(slot)?, mask))
        });
        taken.collect()
    }
}

/// The entities announced to the game: when one is despawned, nothing else says whether it was the game's.
#[derive(Debug, Default)]
struct Told {
    /// By slot: the generation.
    generations: Vec<Option<u16>>,
}

impl Told {
    fn insert(&mut self, entity: EntityId) {
        let slot = usize::from(entity.slot);
        if self.generations.len() <= slot {
            self.generations.resize(slot + 1, None);
        }
        self.generations[slot] = Some(entity.generation);
    }

    /// Removes an entity. Returns whether it was announced.
    fn remove(&mut self, entity: EntityId) -> bool {
        let known = self.generations.get_mut(usize::from(entity.slot));
        known.and_then(|known| known.take_if(|generation| *generation == entity.generation)).is_some()
    }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
