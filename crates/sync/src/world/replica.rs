//! The world as a reader holds it.

use super::labels::Labels;
use super::meta::Meta;
use super::packet::PacketHead;
use super::retreat::Wholes;
use super::ring::Form;
use super::store::World;
use super::window::Window;
use super::{EntityId, StreamError};
use crate::delta::{EntryHead, EntryKind, HISTORY_MAX, Past, Reader};
use crate::limits::{BASELINE_AGE_MAX, HISTORY_TICKS, REPLICA_WORLDS_MAX, WORLD_HISTORY_BYTES_MAX};
use crate::schema::{ComponentId, Schema};
use bytes::Bytes;
use parlor_proto::{Tick, TickRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// What became of a packet that keeps to the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It was taken in.
    Taken(T),
    /// It is repeated, too late, or of an epoch that is over. Nothing changed.
    Old,
    /// It builds on an epoch of which nothing came yet. Nothing changed.
    Waiting,
}

/// A packet that a replica took in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The newest tick of the sender's world when it was made.
    pub tick: Tick,
    /// Its number, relative to others of the same replica.
    pub number: u64,
    /// Whether the replica holds exactly what the sender held at that tick, as far as it may see it.
    pub settled: bool,
    /// Whether the state passed to another authority: readers snap to it.
    pub transfer: bool,
    /// Entities that came into sight, by ascending slot. They stand in `changed` as well.
    pub spawned: Vec<EntityId>,
    /// Entities of which something changed that is read, with the components that changed, came or went, one
    /// bit each; none if it is the owner alone.
    pub changed: Vec<(EntityId, u64)>,
    /// Entities that are gone, or out of sight.
    pub despawned: Vec<EntityId>,
}

/// What became of the packets that a replica was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounters {
    /// Taken in.
    pub taken: u64,
    /// Bytes of those that were taken in.
    pub bytes: u64,
    /// Repeated, too late, or of an epoch that is over.
    pub old: u64,
    /// Of an epoch of which nothing came yet.
    pub waiting: u64,
    /// Breaking the protocol.
    pub refused: u64,
    /// Entries of those that were taken in.
    pub entries: u64,
    /// Entries that were older than what is there, and were kept as something to build on.
    pub late_entries: u64,
    /// Entries that built on older rows.
    pub updates: u64,
    /// Ticks from the newest of these rows, the baseline, to the row that came, over all updates.
    pub baseline_ages_ticks: u64,
    /// The most that it was.
    pub baseline_age_ticks_max: u32,
}

impl ReplicaCounters {
    /// What another replica counted, too.
    pub(super) fn add(&mut self, other: &ReplicaCounters) {
        self.taken += other.taken;
        self.bytes += other.bytes;
        self.old += other.old;
        self.waiting += other.waiting;
        self.refused += other.refused;
        self.entries += other.entries;
        self.late_entries += other.late_entries;
        self.updates += other.updates;
        self.baseline_ages_ticks += other.baseline_ages_ticks;
        self.baseline_age_ticks_max = self.baseline_age_ticks_max.max(other.baseline_age_ticks_max);
    }

    fn note_update(&mut self, baseline_age: u32) {
        self.updates += 1;
        self.baseline_ages_ticks += u64::from(baseline_age);
        self.baseline_age_ticks_max = self.baseline_age_ticks_max.max(baseline_age);
    }
}

/// A world that is made of packets of a [`Publisher`](super::Publisher).
#[derive(Clone, Debug)]
pub struct Replica {
    pub(super) world: World,
    /// Whether the sender says owners, zones and audiences: whether its viewer is everything.
    everything: bool,
    /// Whether only the first packet of an epoch will do.
    pub(super) is_waiting: bool,
    /// Whether the next epoch goes on with what is held.
    pub(super) continues: bool,
    /// The first number of this epoch.
    epoch: u64,
    pub(super) window: Window,
    pub(super) places: Vec<Place>,
    /// The newest packet that said that it brings this up to date: its number, its floor and its tick.
    pub(super) last: Option<(u64, u64, u32)>,
    pub(super) settled: Option<u32>,
    /// The tick of the last time that nothing was missing.
    pub(super) was_settled: Option<u32>,
    /// Ticks to which it can go back, if it is of everything.
    pub(super) wholes: Wholes,
    /// Entities that are gone, with the number of the packet that said so and its tick.
    pub(super) tombstones: VecDeque<(u16, u64, u32)>,
    stale: usize,
    counters: ReplicaCounters,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

/// What is known of a slot beside what its entity is.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The newest packet by which an entity came here or went. What older ones say is not read.
    pub(super) life: Option<u64>,
    /// Whether the entity is of an earlier epoch and was not heard of since.
    is_stale: bool,
    /// The rows that came.
    pub(super) rows: Labels,
}

/// A row that is being taken in.
struct Incoming {
    slot: u16,
    /// Whether nobody will build on it, nor read it.
    is_void: bool,
    /// Whether it is what is read from here on.
    is_news: bool,
    /// Whether its entity was not there.
    is_new: bool,
    label: u32,
    /// Its components.
    mask: u64,
    /// What the entity is beside its components, if that is not what it was at the baseline.
    meta: Option<Meta>,
}

impl Replica {
    /// A replica of what a member sees, that waits for its first packet.
    pub fn new(schema: Arc<Schema>, rate: TickRate) -> Self {
        let mut world = World::new(schema, rate);
        world.complete = false;
        Replica {
            world,
            everything: false,
            is_waiting: true,
            continues: false,
            epoch: 0,
            window: Window::default(),
            places: Vec::new(),
            last: None,
            settled: None,
            was_settled: None,
            wholes: Wholes::default(),
            tombstones: VecDeque::new(),
            stale: 0,
            counters: ReplicaCounters::default(),
            lanes: Vec::new(),
            blobs: Vec::new(),
        }
    }

    /// A replica of everything, whose sender is a publisher for
    /// [`Viewer::Everything`](super::Viewer::Everything).
    pub fn of_everything(schema: Arc<Schema>, rate: TickRate) -> Self {
        Replica { everything: true, ..Self::new(schema, rate) }
    }

    /// The world as it is read.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The tick at which the world was exactly what it is, as far as it is seen; `None` while something is
    /// missing.
    pub fn settled(&self) -> Option<Tick> {
        self.settled.map(Tick)
    }

    /// What became of the packets.
    pub const fn counters(&self) -> ReplicaCounters {
        self.counters
    }

    pub(super) fn world_to_switch(&mut self) -> &mut World {
        &mut self.world
    }

    pub(super) fn counters_mut(&mut self) -> &mut ReplicaCounters {
        &mut self.counters
    }

    /// The newest tick as of which nothing was missing, however long ago that was and whatever is missing
    /// since.
    pub fn was_settled(&self) -> Option<Tick> {
        self.was_settled.map(Tick)
    }

    /// The next epoch replaces everything, whatever its numbers; until it comes nothing is taken in. What is
    /// read stays, and goes when the new epoch is settled and did not tell of it. For another sender.
    pub fn restart(&mut self) {
        (self.is_waiting, self.continues) = (true, false);
        (self.settled, self.last) = (None, None);
        self.wholes.begin(None);
        self.world.complete = false;
    }

    /// Takes in a packet.
    ///
    /// # Errors
    /// [`StreamError`] if it breaks the protocol. What it said before the fault stands; the sender is not to
    /// be listened to any more.
    pub fn apply(&mut self, bytes: Bytes) -> Result<Outcome<Applied>, StreamError> {
        let len = bytes.len() as u64;
        let outcome = PacketHead::read(bytes).and_then(|(head, body)| self.take(head, &body));
        let counter = match &outcome {
            Ok(Outcome::Taken(_)) => &mut self.counters.taken,
            Ok(Outcome::Old) => &mut self.counters.old,
            Ok(Outcome::Waiting) => &mut self.counters.waiting,
            Err(_) => &mut self.counters.refused,
        };
        *counter += 1;
        if let Ok(Outcome::Taken(_)) = &outcome {
            self.counters.bytes += len;
        }
        outcome
    }

    fn take(&mut self, head: PacketHead, body: &Bytes) -> Result<Outcome<Applied>, StreamError> {
        if head.plain && !self.everything {
            return Err(StreamError::Head("it is written out, as only a stream of everything may be"));
        }
        let number = self.window.number(head.number);
        let epoch = head.epoch_gap.map(|gap| number.saturating_sub(u64::from(gap)));
        if let Some(epoch) = epoch.filter(|epoch| self.is_waiting || *epoch > self.epoch) {
            self.begin_epoch(epoch, number, &head);
        }
        if self.is_waiting {
            return Ok(Outcome::Waiting);
        }
        let is_late = self.world.newest_tick().saturating_sub(head.tick) > BASELINE_AGE_MAX;
        if number < self.epoch || is_late || !self.window.is_new(number) {
            return Ok(Outcome::Old);
        }
        self.advance(head.tick);
        let mut applied =
            Applied { tick: Tick(head.tick), number, transfer: head.transfer, ..Applied::default() };
        self.take_body(body, number, &head, &mut applied)?;
        if !self.world.keeps_history_within(REPLICA_WORLDS_MAX * WORLD_HISTORY_BYTES_MAX) {
            return Err(StreamError::TooLarge);
        }
        self.window.insert(number);
        if head.last && self.last.is_none_or(|(last, ..)| number > last) {
            self.last = Some((number, number.saturating_sub(u64::from(head.floor_gap)), head.tick));
        }
        if head.last && self.everything {
            let floor = number.saturating_sub(u64::from(head.floor_gap));
            self.wholes.note(number, floor, head.tick, self.world.newest_tick());
        }
        self.settle(&mut applied);
        Ok(Outcome::Taken(applied))
    }

    fn begin_epoch(&mut self, epoch: u64, number: u64, head: &PacketHead) {
        self.is_waiting = false;
        self.epoch = epoch;
        self.window.restart(number);
        // One that begins a transfer has been begun anew since, from nothing.
        if core::mem::take(&mut self.continues) && !head.transfer {
            self.places.iter_mut().for_each(|place| place.life = None);
            return;
        }
        self.world.begin_epoch(head.tick);
        self.wholes.begin(None);
        (self.last, self.settled) = (None, None);
        self.tombstones.clear();
        self.stale = 0;
        for (place, slot) in self.places.iter_mut().zip(&self.world.slots) {
            place.life = None;
            place.rows.clear();
            place.is_stale = slot.live;
            self.stale += usize::from(slot.live);
        }
    }

    /// The newest tick is `tick` if it is newer; what nobody can build on any more goes.
    pub(super) fn advance(&mut self, tick: u32) {
        if self.world.tick.is_none_or(|newest| tick > newest) {
            self.world.tick = Some(tick);
        }
        let newest = self.world.newest_tick();
        while let Some((slot, number, since)) = self.tombstones.front().copied()
            && newest.saturating_sub(since) > HISTORY_TICKS
        {
            self.tombstones.pop_front();
            let place = &self.places[usize::from(slot)];
            if place.life == Some(number) && !self.world.slot(slot).live {
                self.clear_place(slot);
            }
        }
    }

    /// Nothing is known any more of what was in a slot.
    pub(super) fn clear_place(&mut self, slot: u16) {
        self.places[usize::from(slot)].rows.clear();
        self.world.clear_slot(slot);
    }

    fn take_body(
        &mut self,
        body: &[u8],
        number: u64,
        &PacketHead { tick, plain, .. }: &PacketHead,
        applied: &mut Applied,
    ) -> Result<(), StreamError> {
        let (tables, schema) = (Arc::clone(&self.world.tables), Arc::clone(&self.world.schema));
        let mut reader = match plain {
            true => Reader::plain(&tables, body),
            false => Reader::new(&tables, body, self.everything),
        };
        while let Some(head) = reader.head()? {
            self.counters.entries += 1;
            self.make_place(head.slot);
            if head.kind == EntryKind::Despawn {
                self.take_despawn(head.slot, number, tick, applied);
                continue;
            }
            let label =
                tick.checked_sub(head.row_age).ok_or(StreamError::Head("a row is older than the world"))?;
            let incoming = self.incoming(&head, number, label, applied)?;
            let changed = self.take_components((&mut reader, plain), &schema, &head, &incoming)?;
            self.take_row(incoming, &head, changed, applied);
        }
        Ok(())
    }

    fn make_place(&mut self, slot: u16) {
        self.world.make_slot(slot);
        if self.places.len() < self.world.slots.len() {
            self.places.resize(self.world.slots.len(), Place::default());
        }
    }

    fn take_despawn(&mut self, slot: u16, number: u64, tick: u32, applied: &mut Applied) {
        let place = &mut self.places[usize::from(slot)];
        if place.life.is_some_and(|life| life >= number) {
            return;
        }
        place.life = Some(number);
        self.stale -= usize::from(core::mem::take(&mut place.is_stale));
        if let Some(entity) = self.world.despawn_slot(slot) {
            self.tombstones.push_back((slot, number, tick));
            applied.despawned.push(entity);
        }
    }

    /// What a head says its row is.
    fn incoming(
        &mut self,
        head: &EntryHead,
        number: u64,
        label: u32,
        applied: &mut Applied,
    ) -> Result<Incoming, StreamError> {
        let slot = head.slot;
        let place = &mut self.places[usize::from(slot)];
        let is_newer = place.life.is_none_or(|life| number > life);
        let mut is_void = false;
        let mut mask_before = None;
        if head.kind == EntryKind::Spawn {
            let is_other = self.world.slot(slot).generation != head.generation;
            if is_newer {
                place.life = Some(number);
                if is_other {
                    place.rows.clear();
                    self.stale -= usize::from(core::mem::take(&mut place.is_stale));
                    applied.despawned.extend(self.world.despawn_slot(slot));
                    self.world.replace(slot, head.generation);
                }
            } else {
                is_void = is_other;
            }
        } else {
            let gone = |label| StreamError::BaselineGone { slot, label };
            let baseline = label.saturating_sub(head.ages[0]);
            if head.history == 0 {
                return Err(gone(baseline));
            }
            for age in &head.ages[..usize::from(head.history)] {
                let label = label.saturating_sub(*age);
                if !place.rows.has(label) {
                    return Err(gone(label));
                }
            }
            mask_before = Some(self.world.mask_at(slot, baseline).ok_or_else(|| gone(baseline))?);
            if is_newer && !self.world.slot(slot).live {
                return Err(StreamError::UnknownEntity { slot });
            }
            self.counters.note_update(head.ages[0]);
        }
        let mask = self.incoming_mask(head, mask_before)?;
        let meta = self.incoming_meta(head, label, mask)?;
        let is_new = !self.world.slot(slot).live && !is_void && is_newer;
        let rows = &self.places[usize::from(slot)].rows;
        let is_news = !is_void && is_newer && (is_new || rows.newest().is_none_or(|newest| label > newest));
        Ok(Incoming { slot, is_void, is_news, is_new, label, mask, meta })
    }

    /// The components that an entity then has, given those that it had at the baseline.
    fn incoming_mask(&self, head: &EntryHead, before: Option<u64>) -> Result<u64, StreamError> {
        let before = before.unwrap_or(0);
        let mask = if head.mask_changed { head.mask } else { before };
        let unknown =
            (mask & !self.world.masks.all()) | (head.changed & !mask) | (mask & !before & !head.changed);
        if unknown == 0 {
            Ok(mask)
        } else {
            Err(StreamError::UnknownComponents { slot: head.slot, mask: unknown })
        }
    }

    /// What an entity is beside its components, if it is not what it was at the baseline.
    fn incoming_meta(&self, head: &EntryHead, label: u32, mask: u64) -> Result<Option<Meta>, StreamError> {
        match &head.meta {
            Some(meta) => Ok(Some(Meta {
                label,
                mask,
                owner: meta.owner,
                zone: meta.zone,
                audience: Arc::new(meta.audience.clone()),
            })),
            None if head.kind == EntryKind::Spawn => {
                Err(StreamError::Head("an entity comes without an owner or none"))
            }
            None if head.mask_changed => Ok(self.baseline_meta(head, label, mask)),
            None => Ok(None),
        }
    }

    /// What an entity was at the baseline, as of `label` and with these components.
    fn baseline_meta(&self, head: &EntryHead, label: u32, mask: u64) -> Option<Meta> {
        let before = self.world.meta_at(head.slot, label.saturating_sub(head.ages[0]))?;
        Some(Meta { label, mask, ..before.clone() })
    }

    /// Takes in what a row brings; says which components are not what was read so far.
    fn take_components(
        &mut self,
        (reader, is_plain): (&mut Reader, bool),
        schema: &Schema,
        head: &EntryHead,
        row: &Incoming,
    ) -> Result<u64, StreamError> {
        let Incoming { slot, label, is_void, is_news, is_new, .. } = *row;
        // Another entity is here by now: only the order of the bits counts.
        let old_mask = if is_new || is_void { 0 } else { self.world.slot(slot).mask };
        let mut changed = if is_news { old_mask ^ row.mask } else { 0 };
        let (mut lanes, mut blobs) = (core::mem::take(&mut self.lanes), core::mem::take(&mut self.blobs));
        for id in ComponentId::in_mask(head.changed) {
            let kind = &schema.components()[id.index()];
            lanes.clear();
            lanes.resize(kind.lanes(), 0);
            blobs.clear();
            blobs.resize(kind.blobs(), Bytes::new());
            if is_plain {
                reader.component(id, &[], &mut lanes, &mut blobs)?;
                kind.check_row(&lanes, &blobs)?;
            } else {
                let (pasts, count) = self.pasts(head, label, id.bit(), id.index())?;
                reader.component(id, &pasts[..count], &mut lanes, &mut blobs)?;
                // The reader has refused what is beyond its span.
                kind.check_row_in_span(&lanes, &blobs)?;
            }
            let form = Form { lanes: &lanes, blobs: &blobs };
            if !is_void {
                self.world.adopt_version(slot, id, label, form)?;
            }
            if is_news && self.world.adopt_present(slot, id, form)? {
                changed |= id.bit();
            }
        }
        blobs.clear();
        (self.lanes, self.blobs) = (lanes, blobs);
        Ok(changed)
    }

    fn take_row(&mut self, row: Incoming, head: &EntryHead, changed: u64, applied: &mut Applied) {
        let Incoming { slot, is_void, is_news, is_new, label, mask, meta } = row;
        if is_void {
            return;
        }
        self.places[usize::from(slot)].rows.insert(label);
        if !is_news {
            self.counters.late_entries += 1;
        }
        // Of an earlier epoch there may be an entity to read, and none to publish.
        let was_published = self.world.slot(slot).published;
        let differs = match meta {
            Some(meta) => {
                self.world.adopt_meta(slot, meta.clone());
                is_news && self.world.adopt_entity(slot, &meta)
            }
            None if !is_news || self.world.adopt_label(slot, label, mask) => false,
            None => {
                self.baseline_meta(head, label, mask).is_some_and(|meta| self.world.adopt_entity(slot, &meta))
            }
        };
        if is_news {
            self.world.note_change(slot, was_published && !differs && !is_new);
            self.show(slot, changed, differs, is_new, applied);
        }
    }

    /// A row is what is read from here on.
    fn show(&mut self, slot: u16, changed: u64, differs: bool, is_new: bool, applied: &mut Applied) {
        let place = &mut self.places[usize::from(slot)];
        self.stale -= usize::from(core::mem::take(&mut place.is_stale));
        let entity = EntityId { slot, generation: self.world.slot(slot).generation };
        if is_new {
            applied.spawned.push(entity);
        }
        if differs || changed != 0 {
            applied.changed.push((entity, changed));
        }
    }

    /// What a component was at the rows that an entry builds on, as far as it was there.
    fn pasts(
        &self,
        head: &EntryHead,
        label: u32,
        bit: u64,
        index: usize,
    ) -> Result<([Past<'_>; HISTORY_MAX], usize), StreamError> {
        let slot = head.slot;
        let mut pasts = [Past { age: 1, lanes: &[], blobs: &[] }; HISTORY_MAX];
        let mut count = 0;
        for age in &head.ages[..usize::from(head.history)] {
            let then = label.saturating_sub(*age);
            let gone = || StreamError::BaselineGone { slot, label: then };
            let mask = self.world.mask_at(slot, then).ok_or_else(gone)?;
            if mask & bit != 0 {
                let Form { lanes, blobs } = self.world.columns[index].at(slot, then).ok_or_else(gone)?;
                pasts[count] = Past { age: *age, lanes, blobs };
                count += 1;
            }
        }
        Ok((pasts, count))
    }

    /// Finds out whether nothing is missing.
    fn settle(&mut self, applied: &mut Applied) {
        let last = self.last.filter(|(number, floor, _)| {
            *number == self.window.newest() && self.window.has_all(*floor, *number)
        });
        self.settled = last.map(|(_, _, tick)| tick);
        self.was_settled = self.settled.or(self.was_settled);
        self.world.complete = self.settled.is_some();
        applied.settled = self.world.complete;
        if self.world.complete {
            applied.despawned.extend(self.despawn_stale());
        }
    }

    /// What is of an earlier epoch and was not told of since is gone; says what that was.
    pub(super) fn despawn_stale(&mut self) -> Vec<EntityId> {
        if core::mem::take(&mut self.stale) == 0 {
            return Vec::new();
        }
        let mut gone = Vec::new();
        for slot in 0..u16::try_from(self.places.len()).unwrap_or(u16::MAX) {
            if core::mem::take(&mut self.places[usize::from(slot)].is_stale) {
                gone.extend(self.world.despawn_slot(slot));
                self.world.clear_slot(slot);
            }
        }
        gone
    }
}
