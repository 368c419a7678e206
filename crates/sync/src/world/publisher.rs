//! Packets for one receiver.

use super::config::PublisherConfig;
use super::encode::{BodyForm, Encodings, Place};
use super::flight::{Flight, FlightEntry, Flights};
use super::log::Change;
use super::packet::{HEAD_BYTES_MAX, PacketHead};
use super::plan::{Plan, Shape};
use super::receiver_state::{ReceiverState, SlotSet};
use super::store::World;
use crate::audience::Viewer;
use crate::delta::EntryKind;
use crate::interest::NEARNESS_MAX;
use crate::limits::{BASELINE_AGE_MAX, FLIGHTS_MAX, NUMBER_WINDOW};
use bytes::Bytes;
use parlor_proto::Instant;

/// What may be saved up for a burst: what comes in so many microseconds, and at least two packets.
const BURST_US: i64 = 125_000;

/// Bytes in millionths.
fn micro(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX).saturating_mul(1_000_000)
}

/// The number of a packet among all that a publisher ever made, to say what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sent(pub u64);

/// Makes packets for one receiver out of one [`World`], which must be the same at every call.
///
/// What became of each packet must be told with [`delivered`](Self::delivered) and [`lost`](Self::lost); the
/// receiver takes a packet in before its delivery is reported.
#[derive(Clone, Debug)]
pub struct Publisher {
    pub(super) viewer: Viewer,
    config: PublisherConfig,
    /// Whether everything is seen that the audiences admit, or only what was [entered](Self::enter).
    sees_all: bool,
    pub(super) known: Vec<ReceiverState>,
    /// Slots whose entities the receiver sees, as [`known`](Self::known) has them.
    pub(super) present: SlotSet,
    pub(super) pending: SlotSet,
    pub(super) flights: Flights,
    /// The number of the next packet, and of the first one of this epoch.
    next: u64,
    epoch: u64,
    /// Whether the receiver is not known to know of this epoch.
    is_new: bool,
    is_transfer: bool,
    /// The lineage of the world and its change up to which everything was looked at.
    lineage: u32,
    cursor: Option<u64>,
    /// The newest tick of which a packet was sent, and of which one arrived.
    newest: u32,
    arrived: Option<u32>,
    /// The floor of the newest packet, if it said that it brings the receiver up to date.
    last_floor: Option<u64>,
    /// The highest number that was lost: who waits for all from its floor on must be told a higher floor.
    lost_max: Option<u64>,
    pub(super) plan: Plan,
    /// Of which state of the world the plan is: its changes and its tick.
    planned: Option<(u64, u32)>,
    done: usize,
    place: Option<Place>,
    /// Newer rows are not built on at the moment, though the receiver has them: other members do not.
    pub(super) rows_until: Option<u32>,
    /// When urgencies grew last.
    aged: Option<u32>,
    /// Bytes that may be sent, in millionths, and since when.
    tokens: i64,
    refilled: Option<Instant>,
    /// Bytes of an entry, in sixteenths, as of late.
    entry_bytes: usize,
    pub(super) chosen: Vec<(u32, u16)>,
    pub(super) figures: super::diagnostics::Figures,
}

impl Publisher {
    /// A publisher for a receiver that has nothing, and that sees everything that audiences admit.
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

    /// A publisher for a receiver that has nothing, and that sees what is [entered](Self::enter) and its
    /// audience admits.
    pub fn with_interest(viewer: Viewer, config: PublisherConfig) -> Self {
        Publisher { sees_all: false, ..Self::new(viewer, config) }
    }

    /// A publisher for a receiver that has all of this world as it is: the replica that was [handed
    /// over](super::Replica::hand_over), which a [successor](super::Replica::into_successor) goes on with.
    pub fn of_successor(world: &World, config: PublisherConfig) -> Self {
        let mut publisher = Publisher::new(Viewer::Everything, config);
        publisher.lineage = world.lineage;
        publisher.known = world.slots.iter().map(ReceiverState::given).collect();
        let slots = (0..).zip(&publisher.known);
        slots.filter(|(_, known)| known.is_present).for_each(|(slot, _)| publisher.present.insert(slot));
        publisher
    }

    /// The same, whose packets are numbered from `first` on: whoever makes several publishers one after
    /// another, and cannot tell which of them a late fate belongs to, gives each numbers of its own.
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

    /// Who the receiver is.
    pub const fn viewer(&self) -> Viewer {
        self.viewer
    }

    /// How much it may send.
    pub const fn config(&self) -> PublisherConfig {
        self.config
    }

    /// Sets how much it may send from now on.
    pub fn set_config(&mut self, config: PublisherConfig) {
        if config.is_plain != self.config.is_plain {
            // Bodies of a plan that was begun are of the other form.
            self.planned = None;
        }
        self.config = config;
    }

    /// The entity in a slot comes into the receiver's sight.
    pub fn enter(&mut self, world: &World, slot: u16) {
        self.known_mut(slot).entered = true;
        self.look(world, slot);
    }

    /// The entity in a slot goes out of the receiver's sight.
    pub fn leave(&mut self, world: &World, slot: u16) {
        self.known_mut(slot).entered = false;
        self.look(world, slot);
    }

    /// Whether the receiver sees the entity in a slot, as far as that was looked at.
    pub fn sees(&self, slot: u16) -> bool {
        self.known.get(usize::from(slot)).is_some_and(|known| known.is_present)
    }

    /// [`World::hash`] of what the receiver sees, which its settled replica has too.
    pub fn hash(&self, world: &World) -> u64 {
        world.hash_of(self.viewer, |slot| self.sees(slot))
    }

    /// Whether something waits to be sent, first or again.
    pub fn is_due(&mut self, world: &World) -> bool {
        self.scan(world);
        !self.pending.is_empty() || self.owes_last(world)
    }

    /// The receiver has nothing any more, and packets under way to it do not count.
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

    /// Continuity ends, because another authority goes on with the state: like [`restart`](Self::restart),
    /// with packets that say so until the receiver is known to have one.
    pub fn begin_transfer(&mut self) {
        self.restart();
        self.is_transfer = true;
    }

    /// The number of the first packet that the receiver must have, of those up to the newest, to have all of
    /// this world as it was when that one was made; `None` if something was still to be sent.
    pub const fn told_floor(&self) -> Option<u64> {
        self.last_floor
    }

    /// The next packet, if there is anything to say and the receiver may be sent so much; and its number.
    pub fn poll(&mut self, world: &World, encodings: &mut Encodings, now: Instant) -> Option<(Bytes, Sent)> {
        self.poll_near(world, encodings, now, |_| NEARNESS_MAX)
    }

    /// As [`poll`](Self::poll), where `nearness` says of a slot how near it is to the receiver: its priority
    /// is multiplied by that, in parts of [`NEARNESS_MAX`]. It is asked only if not everything can be sent.
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
        if self.done == self.plan.entries.len() || self.planned != Some((world.log.end(), tick)) {
            self.make_plan(world, tick, nearness);
        }
        if self.plan.entries.is_empty() && !(self.pending.is_empty() && self.owes_last(world)) {
            return None;
        }
        Some(self.next_packet(world, encodings, tick))
    }

    /// A packet arrived. Repeated and unknown numbers change nothing.
    pub fn delivered(&mut self, sent: Sent) {
        let Some(flight) = self.flights.take(sent.0) else {
            self.figures.unknown += 1;
            return;
        };
        // The receiver may have ignored it: so much newer is what it may have got before.
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

    /// A packet was lost. Repeated and unknown numbers change nothing.
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
            // Whatever was sent since brings all that this one brought.
            if known.number == flight.number && known.generation == entry.generation {
                known.resend = true;
                self.pending.insert(entry.slot);
                self.planned = None;
            }
        }
        self.lost_max = self.lost_max.max(Some(flight.number));
        self.flights.recycle(flight.entries);
    }

    /// Whether the receiver must be told that it has all there is.
    fn owes_last(&mut self, world: &World) -> bool {
        let floor = self.floor().unwrap_or(self.next);
        let is_told = self.last_floor.is_some_and(|told| {
            // While an older packet is under way a new floor would be no better.
            let is_in_vain = self.lost_max.is_some_and(|lost| told <= lost);
            !is_in_vain || self.lost_max >= Some(floor)
        });
        !is_told && world.complete && world.tick.is_some()
    }

    /// The lowest packet that the receiver must have to be up to date, of those whose fate is not known.
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

    /// Looks at what changed since the last time.
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

    /// Looks at what changed of one slot.
    #[inline]
    fn look_at(&mut self, world: &World, change: Change) {
        if !change.is_of_values {
            return self.look(world, change.slot);
        }
        // Should the receiver have that already, the plan finds out.
        if self.present.contains(change.slot) {
            self.pending.insert(change.slot);
            self.planned = None;
        }
    }

    /// Looks at one slot: whether something of it is to be sent.
    #[inline]
    fn look(&mut self, world: &World, slot: u16) {
        let is_due = match self.looks_due(world, slot) {
            Some(is_due) => is_due,
            None => self.look_closely(world, slot),
        };
        self.pending.set(slot, is_due);
        self.planned = None;
    }

    /// Whether something is to be sent of an entity that the receiver sees as others do, and did before;
    /// `None` if that is not how it is.
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

    /// The newest tick up to which it is known what became of all packets. `None` if a packet is missing
    /// where newer ones arrived, or none did.
    pub(super) fn all_known_until(&self) -> Option<u32> {
        let until = self.flights.oldest_tick().map_or(self.newest, |tick| tick.saturating_sub(1));
        (until.saturating_add(1) >= self.arrived?).then_some(until)
    }

    /// Distinguishes most receivers that do not see the same, as of the last plan.
    pub(super) fn view_digest(&self) -> u64 {
        self.plan.view_digest
    }

    pub(super) fn in_flight_bytes(&self) -> usize {
        self.flights.bytes()
    }

    /// Bytes that may be sent at this moment, roughly.
    pub(super) fn budget_bytes(&self) -> usize {
        let tokens = usize::try_from(self.tokens / 1_000_000).unwrap_or(0);
        tokens.min(self.config.in_flight_bytes_max.saturating_sub(self.flights.bytes()))
    }

    /// Bytes that must be free for a packet to be made: what waits, or a full packet. A budget that is used
    /// up would otherwise be spent in crumbs, as often as somebody asks.
    fn worth_sending_bytes(&self) -> usize {
        let waiting = self.pending.len() * self.entry_bytes / 16;
        waiting.min(self.config.packet_bytes).clamp(1, self.config.in_flight_bytes_max.max(1))
    }

    fn make_plan(&mut self, world: &World, tick: u32, nearness: impl Fn(u16) -> u16) {
        self.plan.clear();
        (self.done, self.place, self.planned) = (0, None, Some((world.log.end(), tick)));
        let is_new_tick = self.aged.replace(tick) != Some(tick);
        let mut allows_large = !self.flights.has_large();
        let fits = self.budget_bytes() * 16 / self.entry_bytes.max(1) + 1;
        if self.pending.len() > fits && is_new_tick {
            self.grow_urgencies(world, nearness);
        }
        if self.pending.len() <= fits {
            for word in 0..self.pending.words() {
                for slot in self.pending.slots_of(word) {
                    self.plan_slot(world, tick, slot, &mut allows_large);
                }
            }
        } else {
            let mut chosen = core::mem::take(&mut self.chosen);
            chosen.clear();
            chosen.extend(self.pending.iter().map(|slot| (self.known[usize::from(slot)].urgency, slot)));
            // The most urgent first; of equal ones the lower slot.
            chosen.select_nth_unstable_by_key(fits - 1, |(urgency, slot)| {
                (core::cmp::Reverse(*urgency), *slot)
            });
            chosen.truncate(fits);
            chosen.sort_unstable_by_key(|(_, slot)| *slot);
            chosen.iter().for_each(|(_, slot)| self.plan_slot(world, tick, *slot, &mut allows_large));
            self.chosen = chosen;
        }
    }

    /// Everything that waits becomes more urgent, once for each tick in which not all of it can be sent.
    fn grow_urgencies(&mut self, world: &World, nearness: impl Fn(u16) -> u16) {
        for slot in self.pending.iter() {
            let known = &mut self.known[usize::from(slot)];
            let row = world.row_seen(slot, self.viewer).filter(|_| known.is_present);
            // That something is gone takes few bytes.
            let priority = row.map_or(u32::from(u16::MAX), |(_, mask)| world.priority(mask));
            let weight = (priority * u32::from(nearness(slot)) / u32::from(NEARNESS_MAX)).max(1);
            known.urgency = known.urgency.saturating_add(weight);
        }
    }

    /// Puts what is to be said of a slot into the plan.
    fn plan_slot(&mut self, world: &World, tick: u32, slot: u16, allows_large: &mut bool) {
        let known = &self.known[usize::from(slot)];
        if !known.is_present {
            return self.plan.push(slot, Shape::FAREWELL);
        }
        let brief = world.brief(slot, self.viewer == Viewer::Everything);
        let seen = brief.map(|brief| (brief.label, brief.mask));
        let Some((label, mask)) = seen.or_else(|| world.row_seen(slot, self.viewer)) else { return };
        if !known.needs(label) {
            self.pending.remove(slot);
            return;
        }
        let bytes_bad = brief.map_or_else(|| world.bytes_bad(slot, mask), |brief| brief.bytes_bad);
        if bytes_bad as usize > self.config.packet_bytes {
            if !*allows_large {
                return;
            }
            *allows_large = false;
        }
        let cause = brief.and_then(|brief| Some((known.cause(tick, label, mask)?, brief.meta_label)));
        let until = self.rows_until;
        let is_planned = cause.is_some_and(|(cause, meta_label)| {
            self.plan.push_found(slot, cause, meta_label, |cause| {
                let settled = cause.without_newer(tick, until);
                (settled, settled.update(tick))
            })
        });
        if !is_planned {
            self.plan.push(slot, known.shape(world, self.viewer, tick, slot, (label, mask)));
        }
    }

    fn next_packet(&mut self, world: &World, encodings: &mut Encodings, tick: u32) -> (Bytes, Sent) {
        let everything = self.viewer == Viewer::Everything;
        let form = BodyForm {
            everything,
            is_plain: everything && self.config.is_plain,
            bytes_max: self.config.packet_bytes.saturating_sub(HEAD_BYTES_MAX),
        };
        let from = self.done;
        let body = encodings.next_body(world, form, &self.plan, &mut self.place);
        let number = self.next;
        let mut entries = self.flights.room();
        // Most entries of a packet have one shape, and stand side by side.
        for alike in self.plan.entries[from..body.until].chunk_by(|a, b| a.shape == b.shape) {
            let shape = self.plan.shape(alike[0]);
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
