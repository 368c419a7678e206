//! The replica: a reader's copy of a world.

mod rows;

use super::labels::Labels;
use super::packet::PacketHead;
use super::retreat::Wholes;
use super::store::World;
use super::window::Window;
use super::{EntityId, StreamError};
use crate::limits::{BASELINE_AGE_MAX, HISTORY_TICKS, REPLICA_WORLDS_MAX, WORLD_HISTORY_BYTES_MAX};
use crate::schema::Schema;
use bytes::Bytes;
use parlor_proto::{Tick, TickRate};
use std::collections::VecDeque;
use std::sync::Arc;

/// The result of a packet that follows the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It was applied.
    Taken(T),
    /// It is a duplicate, too late, or of a past epoch. Nothing was changed.
    Old,
    /// It belongs to an epoch whose beginning has not arrived. Nothing was changed.
    Waiting,
}

/// A packet that a replica applied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// The newest tick of the sender's world when it was made.
    pub tick: Tick,
    /// Its number, relative to others of the same replica.
    pub number: u64,
    /// Whether the replica equals the sender's world at that tick, as far as it may see it.
    pub settled: bool,
    /// Whether the state passed to another authority: readers snap to it.
    pub transfer: bool,
    /// Entities that became visible, by ascending slot. They are in `changed` as well.
    pub spawned: Vec<EntityId>,
    /// Changed entities, with the components that changed, were added or removed, one bit each; 0 if only the
    /// owner changed.
    pub changed: Vec<(EntityId, u64)>,
    /// Entities that were despawned or became invisible.
    pub despawned: Vec<EntityId>,
}

/// Counters of the packets given to a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounters {
    /// Applied.
    pub taken: u64,
    /// Bytes of applied packets.
    pub bytes: u64,
    /// Duplicates, too late, or of a past epoch.
    pub old: u64,
    /// Of an epoch whose beginning has not arrived.
    pub waiting: u64,
    /// Violating the protocol.
    pub refused: u64,
    /// Entries of applied packets.
    pub entries: u64,
    /// Entries older than the present state, kept as possible baselines.
    pub late_entries: u64,
    /// Entries that built on older rows.
    pub updates: u64,
    /// Ticks from the baseline to the received row, summed over all updates.
    pub baseline_ages_ticks: u64,
    /// The maximum of these.
    pub baseline_age_ticks_max: u32,
}

impl ReplicaCounters {
    /// Adds another replica's counters.
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

/// A world built from the packets of a [`Publisher`](super::Publisher).
#[derive(Clone, Debug)]
pub struct Replica {
    pub(super) world: World,
    /// Whether the sender includes zones and audiences: its viewer is everything.
    everything: bool,
    /// Whether only the first packet of an epoch is accepted.
    pub(super) is_waiting: bool,
    /// Whether the next epoch continues the present state.
    pub(super) continues: bool,
    /// The first packet number of this epoch.
    epoch: u64,
    pub(super) window: Window,
    pub(super) places: Vec<Place>,
    /// The newest packet marked as the last of its tick: its number, its floor and its tick.
    pub(super) last: Option<(u64, u64, u32)>,
    pub(super) settled: Option<u32>,
    /// The newest tick at which it was settled.
    pub(super) was_settled: Option<u32>,
    /// Ticks that it can roll back to, for a replica of everything.
    pub(super) wholes: Wholes,
    /// Despawned entities, with the number and tick of the packet that despawned them.
    pub(super) tombstones: VecDeque<(u16, u64, u32)>,
    stale: usize,
    counters: ReplicaCounters,
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

/// The receiving state of a slot, beside its entity.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    /// The newest packet that spawned or despawned an entity here. Older packets do not change the present
    /// state.
    pub(super) life: Option<u64>,
    /// Whether the entity is of an earlier epoch and was not received since.
    is_stale: bool,
    /// The labels of the received rows.
    pub(super) rows: Labels,
}

impl Replica {
    /// Creates a replica of a member's view, which waits for its first packet.
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

    /// Creates a replica of everything, for a publisher with
    /// [`Viewer::Everything`](super::Viewer::Everything).
    pub fn of_everything(schema: Arc<Schema>, rate: TickRate) -> Self {
        Replica { everything: true, ..Self::new(schema, rate) }
    }

    /// The present world.
    pub const fn world(&self) -> &World {
        &self.world
    }

    /// The tick at which the authority's world was exactly this, as far as it is visible; `None` while
    /// something is missing.
    pub fn settled(&self) -> Option<Tick> {
        self.settled.map(Tick)
    }

    /// The packet counters.
    pub const fn counters(&self) -> ReplicaCounters {
        self.counters
    }

    pub(super) fn world_to_switch(&mut self) -> &mut World {
        &mut self.world
    }

    pub(super) fn counters_mut(&mut self) -> &mut ReplicaCounters {
        &mut self.counters
    }

    /// The newest tick at which nothing was missing, even if something is missing since.
    pub fn was_settled(&self) -> Option<Tick> {
        self.was_settled.map(Tick)
    }

    /// Prepares for another sender. The next epoch replaces everything, whatever its numbers; until then
    /// nothing is applied. The present state stays readable. What the new epoch does not contain is despawned
    /// once it is settled.
    pub fn restart(&mut self) {
        (self.is_waiting, self.continues) = (true, false);
        (self.settled, self.last) = (None, None);
        self.wholes.begin(None);
        self.world.complete = false;
    }

    /// Applies a packet.
    ///
    /// # Errors
    /// [`StreamError`] if it violates the protocol. Its content before the error stays applied; stop
    /// listening to the sender.
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
        // A replica that begins a transfer was restarted since, from nothing.
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

    /// Sets the newest tick to `tick` if it is newer, and drops tombstones beyond the history.
    pub(super) fn advance(&mut self, tick: u32) {
        if self.world.tick.is_none_or(|newest| tick > newest) {
            self.world.set_tick(tick);
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

    /// Drops all state of a slot.
    pub(super) fn clear_place(&mut self, slot: u16) {
        self.places[usize::from(slot)].rows.clear();
        self.world.clear_slot(slot);
    }

    /// Checks whether nothing is missing.
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
