//! Members' own states: each is sent to the room once and distributed, to nearer members more often.

use super::budget::Budgets;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{DeliveryId, Outgoing};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{Instant, MemberId, PeerMisbehaved, TickRate, channel, limits};
use parlor_sync::audience::Viewer;
use parlor_sync::interest::{NEARNESS_MAX, nearness_at};
use parlor_sync::replicator::{Form, Introduction, check_own_state, interval_ticks};
use parlor_sync::schema::{ComponentId, Kind, RowReader, Schema};
use parlor_sync::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The own states of all members that send one.
#[derive(Debug)]
pub(super) struct Replicas {
    sources: BTreeMap<MemberId, Source>,
    rate: TickRate,
    /// Beyond this distance states are sent at the lowest rate, unless they say another; `None` if distance does not
    /// count.
    radius: Option<f64>,
    /// The source served first in the next flush: rotates, so that small budgets reach all sources.
    first: usize,
    /// Blocked members: they get the newest state when they unblock.
    blocked: BTreeSet<MemberId>,
    /// Sources and receivers between which states go over a path.
    direct: BTreeSet<(MemberId, MemberId)>,
    /// The first packet number of streams of members that were lost: late fates of their earlier streams, and what
    /// receivers remember of those, must not be mistaken for the new ones.
    first_numbers: BTreeMap<MemberId, u64>,
    /// Bytes of memory of all sources.
    bytes: usize,
}

/// The state of one member.
#[derive(Debug)]
struct Source {
    /// The encoded schema, to be passed on.
    schema: Bytes,
    form: Form,
    replica: Replica,
    /// The number of the first packet to each receiver.
    first_number: u64,
    /// The field with the position, and the state's own radius.
    position_field: Option<usize>,
    radius: Option<f64>,
    position: Option<[f64; 3]>,
    receivers: BTreeMap<MemberId, Receiver>,
    encodings: Encodings,
    /// Whether some receiver may need an update now.
    due: bool,
    /// Whether some receiver gets an update later.
    is_waiting: bool,
    /// Its memory in bytes when last counted.
    bytes: usize,
}

/// One receiver's progress with one state.
#[derive(Debug)]
struct Receiver {
    publisher: Publisher,
    introduction: Introduction,
    /// The number of its next packet.
    next: u64,
    /// When it got the last update.
    sent_at: Option<Instant>,
    /// The highest priority of what changed since then, and of what it got then.
    urgency: u16,
    sent_urgency: u16,
}

/// One state's maximum rate per receiver. Its changes are small, and the sum over all states is bounded too.
const BYTES_PER_SECOND: u32 = 32 * 1024;
const _: () = assert!(BYTES_PER_SECOND as usize <= limits::OWN_STATE_BYTES_PER_SECOND);

impl Replicas {
    pub(super) fn new(rate: TickRate, radius: Option<f64>) -> Self {
        Replicas {
            sources: BTreeMap::new(),
            rate,
            radius,
            first: 0,
            blocked: BTreeSet::new(),
            direct: BTreeSet::new(),
            first_numbers: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// Adds a receiver.
    pub(super) fn add(&mut self, member: MemberId) {
        self.sources.values_mut().for_each(|source| source.add(member));
        self.count();
    }

    /// Returns its memory in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the member whose state takes the most memory.
    pub(super) fn most(&self) -> Option<MemberId> {
        let of = |(id, source): (&MemberId, &Source)| (source.bytes, *id);
        self.sources.iter().map(of).max().map(|(_, member)| member)
    }

    fn count(&mut self) {
        self.sources.values_mut().for_each(|source| source.bytes = source.memory_bytes());
        self.bytes = self.sources.values().map(|source| source.bytes).sum();
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.first_numbers.remove(&member);
        self.sources.remove(&member);
        self.blocked.remove(&member);
        self.direct.retain(|(source, receiver)| *source != member && *receiver != member);
        self.sources.values_mut().for_each(|source| {
            source.receivers.remove(&member);
        });
        self.count();
    }

    /// Returns the number from which on a stream of a member has no packet yet.
    pub(super) fn next_number(&self, member: MemberId) -> u64 {
        let known = self.first_numbers.get(&member).copied().unwrap_or(0);
        let receivers = self.sources.get(&member).into_iter().flat_map(|source| source.receivers.values());
        receivers.map(|receiver| receiver.next).fold(known, u64::max)
    }

    /// Sets the first packet number of a member's next stream.
    pub(super) fn number_from(&mut self, member: MemberId, first: u64) {
        if first > 0 {
            self.first_numbers.insert(member, first);
        }
    }

    /// Forgets a member that does not return.
    pub(super) fn forget(&mut self, member: MemberId) {
        self.first_numbers.remove(&member);
    }

    /// Resets a member whose process restarted: it has no state of others, and its own stream starts anew. `receives`
    /// says whether it is sent states.
    pub(super) fn restarted(&mut self, member: MemberId, receives: bool) {
        self.blocked.remove(&member);
        let over =
            self.direct.iter().copied().filter(|(source, other)| *source == member || *other == member);
        over.collect::<Vec<_>>().into_iter().for_each(|(source, other)| self.direct(source, other, false));
        for (id, source) in &mut self.sources {
            if *id == member {
                source.replica.restart();
            } else if receives {
                source.add(member);
            }
        }
    }

    /// Sets whether a member gets another one's states over a path. If so, the room sends it none of them. Otherwise
    /// its stream begins anew.
    pub(super) fn direct(&mut self, source: MemberId, receiver: MemberId, is_direct: bool) {
        let pair = (source, receiver);
        let is_news = if is_direct { self.direct.insert(pair) } else { self.direct.remove(&pair) };
        let Some(source) = self.sources.get_mut(&source).filter(|_| is_news && !is_direct) else { return };
        if let Some(receiver) = source.receivers.get_mut(&receiver) {
            receiver.publisher.restart();
            receiver.introduction.restart();
            source.due = true;
        }
    }

    /// Sends all states from here on, because all paths are over.
    pub(super) fn relay_all(&mut self) {
        let all = self.direct.clone();
        all.into_iter().for_each(|(source, receiver)| self.direct(source, receiver, false));
    }

    pub(super) fn writable(&mut self, member: MemberId, writable: bool) {
        if writable {
            self.blocked.remove(&member);
            self.sources.values_mut().for_each(|source| source.due = true);
        } else {
            self.blocked.insert(member);
        }
    }

    pub(super) fn fate(&mut self, member: MemberId, source: MemberId, number: u64, delivered: bool) {
        let Some(source) = self.sources.get_mut(&source) else { return };
        let Some(receiver) = source.receivers.get_mut(&member) else { return };
        if delivered {
            receiver.introduction.delivered(Sent(number));
            receiver.publisher.delivered(Sent(number));
        } else {
            receiver.publisher.lost(Sent(number));
            receiver.urgency = receiver.urgency.max(receiver.sent_urgency);
        }
        source.due |= !delivered || source.is_waiting;
    }

    /// Whether an update is waiting for time to pass.
    pub(super) fn is_waiting(&self) -> bool {
        self.sources.values().any(|source| source.is_waiting)
    }

    /// Applies a packet of a member's own state. `others` are the possible receivers.
    fn take(
        &mut self,
        from: MemberId,
        state: OwnState,
        others: impl Iterator<Item = MemberId>,
    ) -> Result<(), PeerMisbehaved> {
        let source = match (self.sources.get_mut(&from), state.schema) {
            (None, None) => return Err(bad("its first packet does not say what it is made of")),
            (None, Some(schema)) => {
                let first_number = self.first_numbers.get(&from).copied().unwrap_or(0);
                let mut source = Source::new(schema, self.rate, first_number)?;
                others.for_each(|member| source.add(member));
                self.sources.entry(from).or_insert(source)
            }
            (Some(source), Some(schema)) if source.schema != schema => {
                return Err(bad("it is made of something else than before"));
            }
            (Some(source), _) => source,
        };
        source.take(state.packet)?;
        let bytes = source.memory_bytes();
        self.bytes = self.bytes + bytes - core::mem::replace(&mut source.bytes, bytes);
        Ok(())
    }

    /// Returns the earliest time at which `receiver`, which is `member`, gets the state of `source` again.
    fn not_before(&self, source: &Source, member: MemberId, receiver: &Receiver) -> Instant {
        let Some(sent_at) = receiver.sent_at else { return Instant::ZERO };
        let there = self.sources.get(&member).and_then(|own| own.position);
        let nearness = match (source.radius.or(self.radius), source.position, there) {
            (Some(radius), Some(a), Some(b)) => nearness_at(distance(a, b), radius),
            _ => NEARNESS_MAX,
        };
        let interval = self.rate.interval() * interval_ticks(nearness, receiver.urgency, self.rate);
        // Half a step early is in time: steps of different members are not aligned.
        sent_at + interval - self.rate.interval() / 2
    }

    fn flush(&mut self, budgets: &mut Budgets, now: Instant, mut send: impl FnMut(MemberId, Outgoing)) {
        let is_due = |source: &Source| source.due || source.is_waiting;
        let due = self.sources.iter().filter(|(_, source)| is_due(source));
        let mut ids: Vec<MemberId> = due.map(|(id, _)| *id).collect();
        let count = ids.len().max(1);
        ids.rotate_left(self.first % count);
        self.first = (self.first + 1) % count;
        for id in ids {
            let Some(mut source) = self.sources.remove(&id) else { continue };
            (source.due, source.is_waiting) = (false, false);
            let mut receivers = std::mem::take(&mut source.receivers);
            for (member, receiver) in &mut receivers {
                if self.blocked.contains(member)
                    || self.direct.contains(&(id, *member))
                    || !receiver.publisher.is_due(source.replica.world())
                {
                    continue;
                }
                if now < self.not_before(&source, *member, receiver)
                    || !budgets.has_room_for_states(*member, now)
                {
                    source.is_waiting = true;
                    continue;
                }
                let bytes = source.send(id, *member, receiver, now, &mut send);
                if bytes > 0 {
                    receiver.sent_at = Some(now);
                    receiver.sent_urgency = core::mem::take(&mut receiver.urgency);
                    budgets.charge_states(*member, bytes, now);
                }
                source.is_waiting |= receiver.publisher.is_due(source.replica.world());
            }
            source.receivers = receivers;
            self.sources.insert(id, source);
        }
    }
}

impl Source {
    fn new(schema: Bytes, rate: TickRate, first_number: u64) -> Result<Self, PeerMisbehaved> {
        let decoded = Schema::decode(schema.clone()).map_err(|error| bad(&error.to_string()))?;
        let form = Form::new(Arc::new(decoded)).map_err(|error| bad(&error.to_string()))?;
        let interest = form.schema().interest();
        let (radius, named) =
            (interest.map(|interest| interest.radius), interest.map(|interest| interest.field));
        Ok(Source {
            position_field: named.or_else(|| first_position(&form)),
            radius,
            schema: Bytes::copy_from_slice(&schema),
            replica: Replica::of_everything(Arc::clone(form.schema()), rate),
            form,
            first_number,
            position: None,
            receivers: BTreeMap::new(),
            encodings: Encodings::default(),
            due: false,
            is_waiting: false,
            bytes: 0,
        })
    }

    fn add(&mut self, member: MemberId) {
        let config = PublisherConfig::new(BYTES_PER_SECOND);
        let publisher = Publisher::new(Viewer::Member(member), config).numbered_from(self.first_number);
        let introduction = Introduction::new(self.schema.clone());
        let next = self.first_number;
        let receiver = Receiver { publisher, introduction, next, sent_at: None, urgency: 0, sent_urgency: 0 };
        self.receivers.insert(member, receiver);
        self.due = true;
    }

    /// Returns its memory in bytes.
    fn memory_bytes(&self) -> usize {
        self.replica.memory_bytes()
            + self.receivers_bytes()
            + self.encodings.memory_bytes(self.replica.world())
    }

    /// Returns the memory of its receivers in bytes; all know the same number of entities.
    fn receivers_bytes(&self) -> usize {
        let one = self.receivers.values().next().map_or(0, |receiver| receiver.publisher.memory_bytes());
        self.receivers.len() * (size_of::<Receiver>() + 2 * one)
    }

    fn take(&mut self, packet: Bytes) -> Result<(), PeerMisbehaved> {
        let before = self.row().map(|(lanes, blobs)| (lanes.to_vec(), blobs.to_vec()));
        let outcome = self.replica.apply(packet).map_err(|error| bad(&error.to_string()))?;
        let encodings = self.encodings.memory_bytes(self.replica.world());
        check_own_state(&self.replica, encodings).map_err(|error| bad(&error.to_string()))?;
        if matches!(outcome, Outcome::Taken(_)) {
            self.due = true;
            self.position = self.read_position();
            let before = before.as_ref().map(|(lanes, blobs)| (&lanes[..], &blobs[..]));
            let urgency = self.row().map_or(0, |after| self.form.urgency(before, after));
            self.receivers.values_mut().for_each(|receiver| receiver.urgency = receiver.urgency.max(urgency));
        }
        Ok(())
    }

    /// The state.
    fn row(&self) -> Option<(&[i32], &[Bytes])> {
        let world = self.replica.world();
        world.read_row(world.entities().next()?, ComponentId(0)).ok()?
    }

    /// Returns the member's position.
    fn read_position(&self) -> Option<[f64; 3]> {
        let (field, (lanes, blobs)) = (self.position_field?, self.row()?);
        // A two-dimensional vector has no third component; it reads as 0.
        Some(RowReader::new(self.form.component(), lanes, blobs).field(field).array())
    }

    /// Sends a receiver what is due; returns the number of bytes.
    fn send(
        &mut self,
        id: MemberId,
        member: MemberId,
        receiver: &mut Receiver,
        now: Instant,
        send: &mut impl FnMut(MemberId, Outgoing),
    ) -> usize {
        let mut bytes = 0;
        while let Some((packet, sent)) =
            receiver.publisher.poll(self.replica.world(), &mut self.encodings, now)
        {
            receiver.next = sent.0 + 1;
            let state = receiver.introduction.wrap(packet, sent);
            let payload = StateOf { source: id, state }.encode();
            bytes += payload.len();
            let delivery_id = Some(DeliveryId::of_replica(id, sent.0));
            send(member, Outgoing { channel: channel::REPLICAS, key: 0, payload, delivery_id });
        }
        bytes
    }
}

/// The first field with a position.
fn first_position(form: &Form) -> Option<usize> {
    let has_position =
        |kind: &Kind| matches!(kind, Kind::Vector { .. } | Kind::Transform { .. } | Kind::Body { .. });
    form.component().fields().iter().position(|field| has_position(&field.kind))
}

fn bad(detail: &str) -> PeerMisbehaved {
    PeerMisbehaved::BadState { detail: format!("its own: {detail}") }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let square = |index: usize| (a[index] - b[index]) * (a[index] - b[index]);
    (square(0) + square(1) + square(2)).sqrt()
}

impl Room {
    /// Applies a packet of a member's own state. Packets build on each other, so none can be dropped:
    /// exceeding the budget is a violation.
    pub(super) fn own_state_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        if !self.budgets.take_own_state(from, payload.len(), now) {
            return Err(PeerMisbehaved::TooMuchState);
        }
        let malformed = |error| PeerMisbehaved::Malformed { what: "a member's own state", error };
        let state = OwnState::decode(payload).map_err(malformed)?;
        let mut others = self.seers_of(from);
        others.retain(|member| self.sends_to(*member));
        self.replicas.take(from, state, others.into_iter())?;
        self.counters.own_states += 1;
        Ok(())
    }

    /// Sends every member the updates of others' own states that are due.
    pub(super) fn flush_replicas(&mut self, now: Instant) {
        let outputs = &mut self.outputs;
        self.replicas.flush(&mut self.budgets, now, |member, message| {
            outputs.push_back(Output::Send { to: vec![member], message });
        });
    }
}
