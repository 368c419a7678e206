//! The entities of a room with their recent history.

use super::brief::Brief;
use super::column::Column;
use super::log::ChangeLog;
use super::meta::{Masks, Meta, Metas};
use super::resting::Resting;
use super::ring::Form;
use super::{EntityId, WorldError};
use crate::audience::Audience;
use crate::delta::Tables;
use crate::limits::{
    ENTITIES_MAX, ENTITY_BLOB_BYTES_MAX, HISTORY_TICKS, WORLD_BLOB_BYTES_MAX, WORLD_HISTORY_BYTES_MAX,
    WORLD_LANES_MAX,
};
use crate::schema::{Component, ComponentId, Replicated, RowReader, RowWriter, Schema};
use bytes::Bytes;
use parlor_proto::{MemberId, Tick, TickRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// The entities of a room with their components, quantized as the [`Schema`] says.
///
/// Written values are readable at once, as quantized. Publishers send the state of the last
/// [`commit`](Self::commit). Tick numbers do not wrap here: a world ends with tick 2³² − 1, after 207 days at
/// 240 Hz.
#[derive(Clone, Debug)]
pub struct World {
    pub(super) schema: Arc<Schema>,
    pub(super) rate: TickRate,
    /// Made with the first tick: a room may have no state.
    tables: Option<Arc<Tables>>,
    pub(super) masks: Masks,
    pub(super) slots: Vec<Slot>,
    pub(super) metas: Vec<Metas>,
    /// The fields of each slot that publishers check first.
    pub(super) briefs: Vec<Brief>,
    pub(super) columns: Vec<Column>,
    /// Components with blobs, one bit each.
    pub(super) blob_columns: u64,
    pub(super) log: ChangeLog,
    pub(super) tick: Option<u32>,
    /// How often the history was reset. Publishers start again then.
    pub(super) lineage: u32,
    /// Whether it is exactly the authority's state at `tick`.
    pub(super) complete: bool,
    /// Its size in lanes, of rows with memory of their own.
    pub(super) lanes: usize,
    pub(super) blob_bytes: usize,
    /// Bytes of memory of all versions in `metas`.
    pub(super) meta_bytes: usize,
    pub(super) live: usize,
    /// Whether histories were too large at the last commit.
    is_overfull: bool,
    /// Slots with uncommitted changes.
    pub(super) dirty: Vec<u16>,
    /// Slots of despawned entities, with the tick of the despawn.
    pub(super) free: VecDeque<(u16, u32)>,
    resting: Resting,
    scratch: (Vec<i32>, Vec<Bytes>),
}

/// A slot for an entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    pub(super) generation: u16,
    /// Whether there is an entity for readers.
    pub(super) live: bool,
    /// Whether there is an entity for publishers.
    pub(super) published: bool,
    /// The label of its last committed change.
    pub(super) label: u32,
    pub(super) mask: u64,
    pub(super) owner: Option<MemberId>,
    pub(super) zone: u32,
    pub(super) audience: Arc<Audience>,
    /// Components with possibly uncommitted changes.
    dirty: u64,
    is_listed: bool,
}

impl World {
    /// Creates an empty world of entities with the components of `schema`, at the tick rate `rate`.
    pub fn new(schema: Arc<Schema>, rate: TickRate) -> Self {
        let columns: Vec<Column> =
            schema.components().iter().map(|it| Column::new(it.lanes(), it.blobs())).collect();
        let with_blobs = (0..64).zip(&columns).filter(|(_, column)| column.blobs() > 0);
        World {
            tables: None,
            masks: Masks::new(&schema),
            blob_columns: with_blobs.fold(0, |mask, (index, _)| mask | 1 << index),
            columns,
            schema,
            rate,
            slots: Vec::new(),
            metas: Vec::new(),
            briefs: Vec::new(),
            log: ChangeLog::default(),
            tick: None,
            lineage: 0,
            complete: true,
            lanes: 0,
            blob_bytes: 0,
            meta_bytes: 0,
            live: 0,
            is_overfull: false,
            dirty: Vec::new(),
            free: VecDeque::new(),
            resting: Resting::default(),
            scratch: Default::default(),
        }
    }

    /// The schema of its entities.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The tick rate.
    pub const fn rate(&self) -> TickRate {
        self.rate
    }

    /// The newest tick that was committed or received.
    pub fn tick(&self) -> Option<Tick> {
        self.tick.map(Tick)
    }

    /// Spawns an entity without components, visible to all members.
    ///
    /// # Errors
    /// [`WorldError::TooManyEntities`].
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, WorldError> {
        let slot = self.take_slot()?;
        self.touch(slot);
        let place = &mut self.slots[usize::from(slot)];
        let generation = place.generation.wrapping_add(1);
        place.generation = generation;
        (place.live, place.owner, place.zone, place.mask) = (true, owner, 0, 0);
        place.audience = Arc::default();
        self.live += 1;
        Ok(EntityId { slot, generation })
    }

    /// Despawns an entity. Its id is invalid from then on.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), WorldError> {
        self.check(entity)?;
        self.touch(entity.slot);
        self.slots[usize::from(entity.slot)].live = false;
        self.live -= 1;
        Ok(())
    }

    /// Whether the entity exists.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.check(entity).is_ok()
    }

    /// Iterates over all entities, by ascending slot.
    pub fn entities(&self) -> impl Iterator<Item = EntityId> {
        let slots = (0u16..).zip(&self.slots).filter(|(_, slot)| slot.live);
        slots.map(|(slot, place)| EntityId { slot, generation: place.generation })
    }

    /// The number of entities.
    pub const fn len(&self) -> usize {
        self.live
    }

    /// Whether there are no entities.
    pub const fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns the entity in this slot.
    pub fn entity_at(&self, slot: u16) -> Option<EntityId> {
        let place = self.slots.get(usize::from(slot)).filter(|place| place.live)?;
        Some(EntityId { slot, generation: place.generation })
    }

    /// Returns the owner of an entity; `None` without one.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, WorldError> {
        Ok(self.check(entity)?.owner)
    }

    /// Sets the owner of an entity; `None` for no owner.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn set_owner(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), WorldError> {
        self.check(entity)?;
        self.touch(entity.slot);
        self.slots[usize::from(entity.slot)].owner = owner;
        Ok(())
    }

    /// Returns the audience of an entity.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn audience(&self, entity: EntityId) -> Result<&Audience, WorldError> {
        Ok(&self.check(entity)?.audience)
    }

    /// Sets the audience of an entity. Its owner sees it only if it is included.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), WorldError> {
        if *self.check(entity)?.audience != audience {
            self.touch(entity.slot);
            self.slots[usize::from(entity.slot)].audience = Arc::new(audience);
        }
        Ok(())
    }

    /// Returns the interest zone of an entity, 0 for everywhere.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn zone(&self, entity: EntityId) -> Result<u32, WorldError> {
        Ok(self.check(entity)?.zone)
    }

    /// Sets the interest zone of an entity; 0 is everywhere.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn set_zone(&mut self, entity: EntityId, zone: u32) -> Result<(), WorldError> {
        self.check(entity)?;
        self.touch(entity.slot);
        self.slots[usize::from(entity.slot)].zone = zone;
        Ok(())
    }

    /// Sets a component of an entity, quantized as the schema says. Numbers outside the range of their field
    /// are clamped. Returns whether that changed anything.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`], [`WorldError::NotRegistered`]; [`WorldError::Row`] for a value that is
    /// NaN, infinite or too long; [`WorldError::TooManyLanes`], [`WorldError::TooManyBytes`] and
    /// [`WorldError::TooMuchHistory`]. Nothing is changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, value: &C) -> Result<bool, WorldError> {
        self.write_with(entity, self.registered::<C>()?, |row| value.write(row))
    }

    /// As [`insert`](Self::insert), without a Rust type: `write` sets the fields. Those that it does not set keep
    /// their values; 0 and empty in a component that the entity did not have.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and [`WorldError::NoSuchComponent`]. Nothing is changed then.
    pub fn write_with(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Result<bool, WorldError> {
        let (mut lanes, mut blobs) = core::mem::take(&mut self.scratch);
        let written = self.write_fields(entity, component, write, &mut lanes, &mut blobs);
        self.scratch = (lanes, blobs);
        written
    }

    /// Returns a component of an entity, as quantized; `None` if it has none.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`], [`WorldError::NotRegistered`].
    pub fn get<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, WorldError> {
        Ok(self.row(entity, self.registered::<C>()?)?.map(|row| C::read(&row)))
    }

    /// As [`get`](Self::get), without a Rust type.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`], [`WorldError::NoSuchComponent`].
    pub fn row(&self, entity: EntityId, component: ComponentId) -> Result<Option<RowReader<'_>>, WorldError> {
        let kind = self.schema.get(component).ok_or(WorldError::NoSuchComponent { component })?;
        let row = self.read_row(entity, component)?;
        Ok(row.map(|(lanes, blobs)| RowReader::new(kind, lanes, blobs)))
    }

    /// Removes a component from an entity. Returns whether it had one.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`], [`WorldError::NotRegistered`].
    pub fn remove<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, WorldError> {
        self.remove_row(entity, self.registered::<C>()?)
    }

    /// Whether an entity has a component.
    pub fn has(&self, entity: EntityId, component: ComponentId) -> bool {
        self.check(entity).is_ok_and(|slot| slot.mask & component.bit() != 0 && component.0 < 64)
    }

    /// Returns the components of an entity, one bit each.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn mask(&self, entity: EntityId) -> Result<u64, WorldError> {
        Ok(self.check(entity)?.mask)
    }

    /// Returns the lanes and blobs of a component of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn read_row(&self, entity: EntityId, component: ComponentId) -> Result<Option<Row<'_>>, WorldError> {
        self.check(entity)?;
        if !self.has(entity, component) {
            return Ok(None);
        }
        let form = self.columns[component.index()].present(entity.slot);
        Ok(form.map(|form| (form.lanes, form.blobs)))
    }

    /// Sets a component of an entity in its quantized form. Returns whether that changed anything.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and [`WorldError::NoSuchComponent`]. Nothing is changed then.
    pub fn write_row(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        lanes: &[i32],
        blobs: &[Bytes],
    ) -> Result<bool, WorldError> {
        let schema = Arc::clone(&self.schema);
        let kind = schema.get(component).ok_or(WorldError::NoSuchComponent { component })?;
        kind.check_row(lanes, blobs)?;
        self.set_row(entity, component, kind, Form { lanes, blobs })
    }

    /// Removes a component from an entity. Returns whether it had one.
    ///
    /// # Errors
    /// [`WorldError::NoSuchEntity`].
    pub fn remove_row(&mut self, entity: EntityId, component: ComponentId) -> Result<bool, WorldError> {
        self.check(entity)?;
        if !self.has(entity, component) {
            return Ok(false);
        }
        self.touch(entity.slot);
        let column = &mut self.columns[component.index()];
        self.blob_bytes -= column.present(entity.slot).map_or(0, |form| blob_len(form.blobs));
        let nothing = vec![Bytes::new(); column.blobs()];
        let zero = vec![0; column.lanes()];
        column.set_present(entity.slot, Form { lanes: &zero, blobs: &nothing });
        self.slots[usize::from(entity.slot)].mask &= !component.bit();
        Ok(true)
    }

    /// Closes the batch of a tick, which publishers send from then on. Returns whether anything changed.
    ///
    /// # Errors
    /// [`WorldError::TickNotNewer`]; nothing is committed then.
    pub fn commit(&mut self, tick: Tick) -> Result<bool, WorldError> {
        if let Some(newest) = self.tick.filter(|newest| tick.0 <= *newest) {
            return Err(WorldError::TickNotNewer { tick, newest: Tick(newest) });
        }
        self.set_tick(tick.0);
        self.complete = true;
        self.resting.forget(tick.0);
        let mut any = false;
        let mut dirty = core::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            any |= self.commit_slot(slot, tick.0);
        }
        self.dirty = dirty;
        self.is_overfull = !self.keeps_history_within(WORLD_HISTORY_BYTES_MAX);
        Ok(any)
    }

    pub(super) fn set_tick(&mut self, tick: u32) {
        self.tick = Some(tick);
        self.make_tables();
    }

    /// Returns the coding tables, made when they are first needed.
    pub(super) fn make_tables(&mut self) -> &Arc<Tables> {
        self.tables.get_or_insert_with(|| Arc::new(Tables::new(&self.schema, self.rate)))
    }

    /// The coding tables.
    pub(super) fn tables(&self) -> &Tables {
        self.tables.as_ref().expect("a world with a tick has tables")
    }

    /// Bytes of memory of the coding tables.
    pub(super) fn tables_bytes(&self) -> usize {
        self.tables.as_ref().map_or(0, |tables| tables.memory_bytes())
    }

    fn commit_slot(&mut self, slot: u16, tick: u32) -> bool {
        let cutoff = cutoff(tick);
        let place = &mut self.slots[usize::from(slot)];
        let (dirty, was_published) = (core::mem::take(&mut place.dirty), place.published);
        place.is_listed = false;
        place.published = place.live;
        if !place.live {
            let before = self.lanes;
            self.clear_slot(slot);
            if was_published {
                self.resting.add(tick, before - self.lanes);
            }
            self.free.push_back((slot, tick));
            if was_published {
                self.log.push(slot);
            }
            return was_published;
        }
        let meta = Meta {
            label: tick,
            mask: place.mask,
            owner: place.owner,
            zone: place.zone,
            audience: Arc::clone(&place.audience),
        };
        let (metas, bytes) = (&mut self.metas[usize::from(slot)], &mut self.meta_bytes);
        let before = metas.newest().map_or(0, |meta| meta.mask);
        let is_other = !metas.newest().is_some_and(|newest| newest.is_same(&meta));
        let has_aged = if is_other { metas.insert(meta, cutoff, bytes) } else { metas.retire(cutoff, bytes) };
        let mut changed = is_other;
        for component in ComponentId::in_mask(dirty & place.mask) {
            let is_new = before & component.bit() == 0;
            changed |= self.columns[component.index()].commit(slot, tick, is_new, cutoff);
        }
        if changed {
            place.label = tick;
        }
        if is_other || has_aged || !was_published {
            self.refresh(slot);
        } else if changed {
            self.refresh_label(slot, tick);
        }
        if changed {
            self.note_change(slot, !is_other && was_published);
        }
        changed
    }

    /// Clears a slot, except its generation.
    pub(super) fn clear_slot(&mut self, slot: u16) {
        for column in &mut self.columns {
            self.blob_bytes -= column.empty_present(slot);
            if column.free_row(slot) {
                self.lanes -= row_cost(column.lanes(), column.blobs());
            }
        }
        self.metas[usize::from(slot)].clear(&mut self.meta_bytes);
        let place = &mut self.slots[usize::from(slot)];
        *place = Slot { generation: place.generation, ..Slot::default() };
        self.briefs[usize::from(slot)] = Brief::default();
    }

    /// Whether there are uncommitted changes.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn registered<C: Replicated>(&self) -> Result<ComponentId, WorldError> {
        self.schema.find(C::NAME).ok_or(WorldError::NotRegistered { name: C::NAME })
    }

    fn check(&self, entity: EntityId) -> Result<&Slot, WorldError> {
        let slot = self.slots.get(usize::from(entity.slot));
        slot.filter(|slot| slot.live && slot.generation == entity.generation)
            .ok_or(WorldError::NoSuchEntity { entity })
    }

    fn write_fields(
        &mut self,
        entity: EntityId,
        id: ComponentId,
        write: impl FnOnce(&mut RowWriter<'_>),
        lanes: &mut Vec<i32>,
        blobs: &mut Vec<Bytes>,
    ) -> Result<bool, WorldError> {
        let schema = Arc::clone(&self.schema);
        let kind = schema.get(id).ok_or(WorldError::NoSuchComponent { component: id })?;
        lanes.clear();
        blobs.clear();
        // Unchanged texts and values are not copied.
        let before = self.read_row(entity, id)?.unwrap_or_default();
        lanes.extend_from_slice(before.0);
        blobs.extend_from_slice(before.1);
        lanes.resize(kind.lanes(), 0);
        blobs.resize(kind.blobs(), Bytes::new());
        let mut row = RowWriter::new(kind, lanes, blobs);
        write(&mut row);
        row.finish()?;
        self.set_row(entity, id, kind, Form { lanes, blobs })
    }

    /// Sets a row that is valid for its component.
    fn set_row(
        &mut self,
        entity: EntityId,
        id: ComponentId,
        kind: &Component,
        form: Form,
    ) -> Result<bool, WorldError> {
        self.check(entity)?;
        let had = self.has(entity, id);
        let before = self.columns[id.index()].present(entity.slot);
        if had && before.is_some_and(|old| !kind.is_change(old.lanes, form.lanes) && old.blobs == form.blobs)
        {
            return Ok(false);
        }
        if self.is_overfull {
            return Err(WorldError::TooMuchHistory);
        }
        let (old_bytes, bytes) = (before.map_or(0, |form| blob_len(form.blobs)), blob_len(form.blobs));
        if bytes > old_bytes {
            let others: usize = self.entity_blob_bytes(entity.slot) - old_bytes;
            let in_all = self.blob_bytes - old_bytes + bytes;
            if others + bytes > ENTITY_BLOB_BYTES_MAX || in_all > WORLD_BLOB_BYTES_MAX {
                return Err(WorldError::TooManyBytes);
            }
        }
        if before.is_none() {
            let lanes = self.lanes + row_cost(form.lanes.len(), form.blobs.len());
            if lanes + self.resting.lanes > WORLD_LANES_MAX {
                return Err(WorldError::TooManyLanes);
            }
            self.lanes = lanes;
        }
        self.touch(entity.slot);
        self.blob_bytes = self.blob_bytes - old_bytes + bytes;
        let column = &mut self.columns[id.index()];
        column.make_row(entity.slot);
        column.set_present(entity.slot, form);
        let place = &mut self.slots[usize::from(entity.slot)];
        place.mask |= id.bit();
        place.dirty |= id.bit();
        Ok(true)
    }

    /// Bytes of all texts, bytes and values of an entity.
    pub(super) fn entity_blob_bytes(&self, slot: u16) -> usize {
        let mask = self.slots[usize::from(slot)].mask;
        let forms = ComponentId::in_mask(mask).filter_map(|id| self.columns[id.index()].present(slot));
        forms.map(|form| blob_len(form.blobs)).sum()
    }

    /// Adds the slot to the list for the next commit.
    fn touch(&mut self, slot: u16) {
        let place = &mut self.slots[usize::from(slot)];
        if !place.is_listed {
            place.is_listed = true;
            self.dirty.push(slot);
        }
    }

    fn take_slot(&mut self) -> Result<u16, WorldError> {
        let now = self.tick.unwrap_or(0);
        if let Some((slot, since)) = self.free.front().copied()
            && now.saturating_sub(since) >= HISTORY_TICKS
        {
            self.free.pop_front();
            return Ok(slot);
        }
        let slot = u16::try_from(self.slots.len()).ok().filter(|slot| usize::from(*slot) < ENTITIES_MAX);
        let slot = slot.ok_or(WorldError::TooManyEntities)?;
        self.make_slot(slot);
        Ok(slot)
    }

    pub(super) fn make_slot(&mut self, slot: u16) {
        let needed = usize::from(slot) + 1;
        if self.slots.len() < needed {
            self.slots.resize(needed, Slot::default());
            self.metas.resize(needed, Metas::default());
            self.briefs.resize(needed, Brief::default());
        }
    }
}

/// The quantized form of a component: its lanes and its blobs.
pub type Row<'a> = (&'a [i32], &'a [Bytes]);

/// The tick from which on all versions of each component are kept; before it one version.
pub(super) const fn cutoff(tick: u32) -> u32 {
    tick.saturating_sub(HISTORY_TICKS)
}

/// The cost of a row against the limit of a world's lanes. A row without lanes takes memory too.
pub(super) const fn row_cost(lanes: usize, blobs: usize) -> usize {
    lanes + blobs
}

pub(super) fn blob_len(blobs: &[Bytes]) -> usize {
    blobs.iter().map(Bytes::len).sum()
}
