//! The publisher: makes packets for one receiver.

mod planning;

use super::config::PublisherConfig;
use super::encode::{BodyForm, Encodings, Place};
use super::flight::{Flight, FlightEntry, Flights};
use super::log::Change;
use super::packet::{HEAD_BYTES_MAX, PacketHead};
use super::plan::Plan;
use super::receiver_state::{ReceiverState, SlotSet};
use super::store::World;
use crate::audience::Viewer;
use crate::delta::EntryKind;
use crate::interest::NEARNESS_MAX;
use crate::limits::{BASELINE_AGE_MAX, FLIGHTS_MAX, NUMBER_WINDOW};
use bytes::Bytes;
use parlor_proto::Instant;

/// The burst that may be saved up: the bytes of this many microseconds, and at least two packets.
const BURST_US: i64 = 125_000;

/// Converts bytes to millionths.
fn micro(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(1_000_000)
}

/// The number of a packet among all of its publisher, for reporting its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent(pub u64);

/// Makes packets for one receiver from one [`World`], which must be the same at every call.
///
/// Report the fate of each packet with [`delivered`](Self::delivered) or [`lost`](Self::lost). The receiver
/// must have applied a packet before its delivery is reported.
#[derive(Clone, Debug)]
pub struct Publisher {
    pub(super) viewer: Viewer,
    config: PublisherConfig,
    /// Whether the receiver sees everything that the audiences admit, or only what was
    /// [entered](Self::enter).
    sees_all: bool,
    pub(super) known: Vec<ReceiverState>,
    /// Slots whose entities the receiver sees, as in [`known`](Self::known).
    pub(super) present: SlotSet,
    pub(super) pending: SlotSet,
    pub(super) flights: Flights,
    /// The number of the next packet, and of the first one of this epoch.
    next: u64,
    epoch: u64,
    /// Whether the receiver may not know of this epoch yet.
    is_new: bool,
    is_transfer: bool,
    /// The lineage of the world, and the change up to which it was scanned.
    lineage: u32,
    cursor: Option<u64>,
    /// The newest tick of a sent packet, and of a delivered one.
    newest: u32,
    arrived: Option<u32>,
    /// The floor of the newest packet, if it was marked as the last of its tick.
    last_floor: Option<u64>,
    /// The highest number that was lost: a receiver that waits for a floor below it needs a higher one.
    lost_max: Option<u64>,
    /// The content of the next packets: entities of which all members see the same, then the others.
    pub(super) plan: Plan,
    pub(super) own: Plan,
    /// The state of the world that the plans are for: its changes and its tick.
    planned: Option<(u64, u32)>,
    done: usize,
    place: Option<Place>,
    /// Newer rows are not used as baselines for now, even if the receiver has them, because other members do
    /// not.
    pub(super) rows_until: Option<u32>,
    /// The tick at which urgencies last grew.
    aged: Option<u32>,
    /// The byte budget, in millionths, and when it was refilled.
    tokens: i64,
    refilled: Option<Instant>,
    /// The recent average size of an entry, in sixteenths of a byte.
    entry_bytes: usize,
    pub(super) chosen: Vec<(u32, u16)>,
    pub(super) figures: super::diagnostics::Figures,
}

impl Publisher {
    /// Creates a publisher for a new receiver that sees everything that audiences admit.
    pub fn new(viewer: Viewer, config: PublisherConfig) -> Self {
        Publisher {
            viewer,
            config,
            sees_all: true,
            known: Vec::new(),
            present: SlotSet::default(),
            pending: SlotSet::default(),
            flights: Flights::default(),
            next: 0,
            epoch: 0,
            is_new: true,
            is_transfer: false,
            lineage: 0,
            cursor: None,
            newest: 0,
            arrived: None,
            last_floor: None,
            lost_max: None,
            plan: Plan::default(),
            own: Plan::default(),
            planned: None,
            done: 0,
            place: None,
            rows_until: None,
            aged: None,
            tokens: 0,
            refilled: None,
            entry_bytes: 16 * 16,
            chosen: Vec::new(),
            figures: super::diagnostics::Figures::default(),
        }
    }

    /// Creates a publisher for a new receiver that sees what is [entered](Self::enter) and admitted by its
    /// audience.
    pub fn with_interest(viewer: Viewer, config: PublisherConfig) -> Self {
        Publisher { sees_all: false, ..Self::new(viewer, config) }
    }

    /// Creates a publisher for a receiver that has the whole present world: the replica that was [handed
    /// over](super::Replica::hand_over) and that a [successor](super::Replica::into_successor) continues.
    pub fn of_successor(world: &World, config: PublisherConfig) -> Self {
        let mut publisher = Publisher::new(Viewer::Everything, config);
        publisher.lineage = world.lineage;
        publisher.known = world.slots.iter().map(ReceiverState::given).collect();
        let slots = (0..).zip(&publisher.known);
        slots.filter(|(_, known)| known.is_present).for_each(|(slot, _)| publisher.present.insert(slot));
        publisher
    }

    /// Numbers the packets from `first` on. Use it for consecutive publishers if a late fate may belong to
    /// any of them: give each its own range.
    #[must_use]
    pub fn numbered_from(mut self, first: u64) -> Self {
        self.number_from(first);
        self
    }

    /// As [`numbered_from`](Self::numbered_from), before the first packet.
    pub fn number_from(&mut self, first: u64) {
        debug_assert!(self.next == self.epoch && self.flights.len() == 0, "nothing was sent yet");
        (self.next, self.epoch) = (first, first);
    }

    /// The receiver.
    pub const fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// The send limits.
    pub const fn config(&self) -> PublisherConfig {
        self.config
    }

    /// Sets the send limits.
    pub fn set_config(&mut self, config: PublisherConfig) {
        if config.is_plain != self.config.is_plain {
            // The plan's bodies that are encoded already have the other form.
            self.planned = None;
        }
        self.config = config;
    }

    /// Makes the entity in a slot visible to the receiver.
    pub fn enter(&mut self, world: &World, slot: u16) {
        self.known_mut(slot).entered = true;
        self.look(world, slot);
    }

    /// Hides the entity in a slot from the receiver.
    pub fn leave(&mut self, world: &World, slot: u16) {
        self.known_mut(slot).entered = false;
        self.look(world, slot);
    }

    /// Whether the receiver sees the entity in a slot, as of the last scan.
    pub fn sees(&self, slot: u16) -> bool {
        self.known.get(usize::from(slot)).is_some_and(|known| known.is_present)
    }

    /// The [`World::hash`] of what the receiver sees; its settled replica has the same.
    pub fn hash(&self, world: &World) -> u64 {
        world.hash_of(self.viewer, |slot| self.sees(slot))
    }

    /// Whether there is something to send or to send again.
    pub fn is_due(&mut self, world: &World) -> bool {
        self.scan(world);
        !self.pending.is_empty() || self.owes_last(world)
    }

    /// Starts again: the receiver has lost everything, and packets in flight do not count.
    pub fn restart(&mut self) {
        for known in &mut self.known {
            known.forget();
        }
        self.present.clear();
        self.pending.clear();
        self.flights.clear();
        (self.epoch, self.newest, self.is_new, self.is_transfer) = (self.next, 0, true, false);
        (self.cursor, self.last_floor, self.planned) = (None, None, None);
        (self.arrived, self.rows_until) = (None, None);
    }

    /// Begins a transfer to another authority: like [`restart`](Self::restart), with packets marked as a
    /// transfer until the receiver is known to have one.
    pub fn begin_transfer(&mut self) {
        self.restart();
        self.is_transfer = true;
    }

    /// The lowest packet number that the receiver must have, with all up to the newest, to have the whole
    /// world as of the newest packet. `None` if something was still to be sent.
    pub const fn told_floor(&self) -> Option<u64> {
        self.last_floor
    }

    /// Returns the next packet with its number, if there is something to send and the limits allow it.
    pub fn poll(&mut self, world: &World, encodings: &mut Encodings, now: Instant) -> Option<(Bytes, Sent)> {
        self.poll_near(world, encodings, now, |_| NEARNESS_MAX)
    }

    /// As [`poll`](Self::poll), with the nearness of each slot to the receiver: its priority is multiplied by
    /// it, in parts of [`NEARNESS_MAX`]. `nearness` is called only if not everything can be sent.
    pub fn poll_near(
        &mut self,
        world: &World,
        encodings: &mut Encodings,
        now: Instant,
        nearness: impl Fn(u16) -> u16,
    ) -> Option<(Bytes, Sent)> {
        let tick = world.tick?;
        self.scan(world);
        self.refill(now);
        if self.pending.is_empty() && !self.owes_last(world) {
            return None;
        }
        if self.budget_bytes() < self.worth_sending_bytes() {
            self.figures.held_back += 1;
            return None;
        }
        if self.done == self.planned_entries() || self.planned != Some((world.log.end(), tick)) {
            self.make_plan(world, tick, nearness);
        }
        if self.planned_entries() == 0 && !(self.pending.is_empty() && self.owes_last(world)) {
            return None;
        }
        Some(self.next_packet(world, encodings, tick))
    }

    /// Reports that a packet was delivered. Repeated and unknown numbers are ignored.
    pub fn delivered(&mut self, sent: Sent) {
        let Some(flight) = self.flights.take(sent.0) else {
            self.figures.unknown += 1;
            return;
        };
        // The receiver may have ignored it, because it may have received much newer ones before.
        let is_behind = self.next - flight.number > NUMBER_WINDOW;
        if is_behind || self.newest.saturating_sub(flight.tick) > BASELINE_AGE_MAX {
            self.figures.late += 1;
            return self.handle_lost(flight);
        }
        if flight.number >= self.epoch {
            (self.is_new, self.is_transfer) = (false, false);
            self.arrived = self.arrived.max(Some(flight.tick));
        }
        for entry in &flight.entries {
            let known = &mut self.known[usize::from(entry.slot)];
            known.handle_delivered(entry, flight.number);
        }
        self.figures.delivered += 1;
        self.flights.recycle(flight.entries);
    }

    /// Reports that a packet was lost. Repeated and unknown numbers are ignored.
    pub fn lost(&mut self, sent: Sent) {
        let Some(flight) = self.flights.take(sent.0) else {
            self.figures.unknown += 1;
            return;
        };
        self.figures.lost += 1;
        self.handle_lost(flight);
    }

    fn handle_lost(&mut self, flight: Flight) {
        for entry in &flight.entries {
            let known = &mut self.known[usize::from(entry.slot)];
            // A later packet for the slot covers everything in this one.
            if known.number == flight.number && known.generation == entry.generation {
                known.resend = true;
                self.pending.insert(entry.slot);
                self.planned = None;
            }
        }
        self.lost_max = self.lost_max.max(Some(flight.number));
        self.flights.recycle(flight.entries);
    }

    /// Whether the receiver must still learn that its state is complete.
    fn owes_last(&mut self, world: &World) -> bool {
        let floor = self.floor().unwrap_or(self.next);
        let is_told = self.last_floor.is_some_and(|told| {
            // While an older packet is in flight, a new floor would not help.
            let is_in_vain = self.lost_max.is_some_and(|lost| told <= lost);
            !is_in_vain || self.lost_max >= Some(floor)
        });
        !is_told && world.complete && world.tick.is_some()
    }

    /// The lowest packet in flight that the receiver needs to be up to date.
    fn floor(&mut self) -> Option<u64> {
        let known = &self.known;
        self.flights.floor(|entry, number| {
            let known = &known[usize::from(entry.slot)];
            known.number == number && known.generation == entry.generation
        })
    }

    pub(super) fn known_mut(&mut self, slot: u16) -> &mut ReceiverState {
        let needed = usize::from(slot) + 1;
        if self.known.len() < needed {
            self.known.resize(needed, ReceiverState::default());
        }
        &mut self.known[usize::from(slot)]
    }

    /// Scans the changes since the last call.
    fn scan(&mut self, world: &World) {
        if self.lineage != world.lineage {
            let is_transfer = self.is_transfer;
            self.restart();
            (self.lineage, self.is_transfer) = (world.lineage, is_transfer);
        }
        let end = world.log.end();
        if self.cursor == Some(end) {
            return;
        }
        let few = self.cursor.filter(|cursor| end.saturating_sub(*cursor) <= world.slots.len() as u64);
        if let Some(changes) = few.and_then(|cursor| world.log.since(cursor)) {
            changes.for_each(|change| self.look_at(world, change));
        } else {
            let slots = world.slots.len().max(self.known.len());
            (0..u16::try_from(slots).unwrap_or(u16::MAX)).for_each(|slot| self.look(world, slot));
        }
        self.cursor = Some(end);
    }

    /// Scans one change of a slot.
    #[inline]
    fn look_at(&mut self, world: &World, change: Change) {
        if !change.is_of_values {
            return self.look(world, change.slot);
        }
        // If the receiver has it already, the plan detects that.
        if self.present.contains(change.slot) {
            self.pending.insert(change.slot);
            self.planned = None;
        }
    }

    /// Scans one slot: whether it must be sent.
    #[inline]
    fn look(&mut self, world: &World, slot: u16) {
        let is_due = match self.looks_due(world, slot) {
            Some(is_due) => is_due,
            None => self.look_closely(world, slot),
        };
        self.pending.set(slot, is_due);
        self.planned = None;
    }

    /// Whether an entity must be sent, if the receiver sees the same of it as others, and saw it before;
    /// `None` in all other cases.
    #[inline]
    fn looks_due(&self, world: &World, slot: u16) -> Option<bool> {
        let brief = world.brief(slot, self.viewer == Viewer::Everything)?;
        let known = self.known.get(usize::from(slot))?;
        let is_there =
            known.is_present && (self.sees_all || known.entered) && known.generation == brief.generation;
        is_there.then(|| known.needs(brief.label))
    }

    #[inline(never)]
    fn look_closely(&mut self, world: &World, slot: u16) -> bool {
        let (sees_all, viewer, next) = (self.sees_all, self.viewer, self.next);
        let place = world.slots.get(usize::from(slot)).filter(|place| place.published);
        let meta = world.metas.get(usize::from(slot)).and_then(|metas| metas.newest());
        let known = self.known_mut(slot);
        let visible = place
            .filter(|_| (sees_all || known.entered) && meta.is_some_and(|meta| meta.audience.admits(viewer)));
        let is_due = match visible {
            Some(place) => {
                known.appear(place.generation, next);
                world.row_seen(slot, viewer).is_some_and(|(label, _)| known.needs(label))
            }
            None => known.vanish(),
        };
        let is_present = known.is_present;
        self.present.set(slot, is_present);
        is_due
    }

    fn refill(&mut self, now: Instant) {
        let rate = i64::from(self.config.bytes_per_second);
        let burst = rate.saturating_mul(BURST_US).max(2 * micro(self.config.packet_bytes));
        let since = self.refilled.map(|before| now.saturating_since(before));
        let gained = since
            .map_or(burst, |since| rate.saturating_mul(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)));
        self.tokens = self.tokens.saturating_add(gained).min(burst);
        self.refilled = Some(now);
    }

    /// The newest tick up to which the fate of all packets is known. `None` if a packet is missing while
    /// newer ones were delivered, or if none was.
    pub(super) fn all_known_until(&self) -> Option<u32> {
        let until = self.flights.oldest_tick().map_or(self.newest, |tick| tick.saturating_sub(1));
        (until.saturating_add(1) >= self.arrived?).then_some(until)
    }

    fn planned_entries(&self) -> usize {
        self.plan.entries.len() + self.own.entries.len()
    }

    /// A digest of what the receiver sees as all members do, as of the last plan.
    pub(super) fn view_digest(&self) -> u64 {
        self.plan.view_digest
    }

    pub(super) fn in_flight_bytes(&self) -> usize {
        self.flights.bytes()
    }

    /// The approximate number of bytes that may be sent now.
    pub(super) fn budget_bytes(&self) -> usize {
        let tokens = usize::try_from(self.tokens / 1_000_000).unwrap_or(0);
        tokens.min(self.config.in_flight_bytes_max.saturating_sub(self.flights.bytes()))
    }

    /// Bytes that must be free for a packet to be made: the pending state, or a full packet. Otherwise an
    /// exhausted budget would be spent on tiny packets, as often as it is polled.
    fn worth_sending_bytes(&self) -> usize {
        let waiting = self.pending.len() * self.entry_bytes / 16;
        waiting.min(self.config.packet_bytes).clamp(1, self.config.in_flight_bytes_max.max(1))
    }

    fn next_packet(&mut self, world: &World, encodings: &mut Encodings, tick: u32) -> (Bytes, Sent) {
        let everything = self.viewer == Viewer::Everything;
        let form = BodyForm {
            everything,
            is_plain: everything && self.config.is_plain,
            bytes_max: self.config.packet_bytes.saturating_sub(HEAD_BYTES_MAX),
        };
        let from = self.done;
        let body = encodings.next_body(world, form, (&self.plan, &self.own), &mut self.place);
        let number = self.next;
        let mut entries = self.flights.room();
        let common = self.plan.entries.len();
        for (plan, before) in [(&self.plan, 0), (&self.own, common)] {
            let all = plan.entries.len();
            let [from, until] = [from, body.until].map(|at| at.saturating_sub(before).min(all));
            // Most entries of a packet are adjacent with the same shape.
            for alike in plan.entries[from..until].chunk_by(|a, b| a.shape == b.shape) {
                let shape = plan.shape(alike[0]);
                let is_despawn = shape.kind == EntryKind::Despawn;
                self.figures.note(shape, alike.len() as u64);
                entries.extend(alike.iter().map(|entry| {
                    let known = &mut self.known[usize::from(entry.slot)];
                    known.handle_sent(shape.label, number);
                    self.pending.remove(entry.slot);
                    let generation = known.generation;
                    FlightEntry { slot: entry.slot, generation, label: shape.label, is_despawn }
                }));
            }
        }
        self.done = body.until;
        let floor = self.floor().unwrap_or(number);
        let is_last = self.pending.is_empty() && world.complete;
        let gap = |from: u64| u32::try_from(number - from).unwrap_or(u32::MAX);
        let head = PacketHead {
            last: is_last,
            transfer: self.is_transfer,
            plain: form.is_plain,
            epoch_gap: self.is_new.then(|| gap(self.epoch)),
            number: (number & 0xffff) as u16,
            floor_gap: gap(floor),
            tick,
        };
        let mut out = Vec::with_capacity(HEAD_BYTES_MAX + body.bytes.len());
        head.write(&mut out);
        out.extend_from_slice(&body.bytes);
        self.figures.note_body(body, out.len());
        self.last_floor = is_last.then_some(floor);
        self.note_sent(out.len(), tick, entries);
        (out.into(), Sent(number))
    }

    fn note_sent(&mut self, bytes: usize, tick: u32, entries: Vec<FlightEntry>) {
        let number = self.next;
        if !entries.is_empty() {
            let mean = bytes * 16 / entries.len();
            self.entry_bytes = (self.entry_bytes * 7 + mean) / 8;
        }
        self.tokens -= micro(bytes);
        self.newest = self.newest.max(tick);
        self.next += 1;
        self.flights.push(Flight {
            number,
            tick,
            bytes,
            is_large: bytes > self.config.packet_bytes,
            entries,
            outdated: 0,
        });
        while self.flights.len() > FLIGHTS_MAX
            && let Some(oldest) = self.flights.oldest().and_then(|oldest| self.flights.take(oldest))
        {
            self.figures.lost += 1;
            self.handle_lost(oldest);
        }
    }
}
