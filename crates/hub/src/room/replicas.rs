//! What members say of themselves: each sends its own state up once, and every other member is sent it from here, the more
//! often the nearer the two are.

use super::budget::Budgets;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::{Outgoing, Tag};
use parlor_proto::wire::replica::{OwnState, StateOf};
use parlor_proto::{Instant, MemberId, PeerMisbehaved, TickRate, channel, limits};
use parlor_sync::audience::Viewer;
use parlor_sync::interest::{NEARNESS_MAX, nearness_at};
use parlor_sync::replicator::{Form, Introduction, interval_ticks};
use parlor_sync::schema::{ComponentId, Kind, RowReader, Schema};
use parlor_sync::world::{Encodings, Outcome, Publisher, PublisherConfig, Replica, Sent};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The states of all members that send one.
#[derive(Debug)]
pub(super) struct Replicas {
    sources: BTreeMap<MemberId, Source>,
    rate: TickRate,
    /// Beyond it others are sent as seldom as can be; none if distance does not count.
    radius: Option<f64>,
    /// Who is served first in the next flush, so that a receiver whose budget is small gets something of everybody.
    first: usize,
    /// Members whose connections take nothing for now: they are sent the newest when they do.
    blocked: BTreeSet<MemberId>,
}

/// The state of one member.
#[derive(Debug)]
struct Source {
    /// As it came, to be passed on.
    schema: Bytes,
    form: Form,
    replica: Replica,
    position: Option<[f64; 3]>,
    receivers: BTreeMap<MemberId, Receiver>,
    encodings: Encodings,
    /// Somebody may have to be sent something.
    due: bool,
    /// Somebody is to be sent something later.
    is_waiting: bool,
}

/// How far one receiver is with one state.
#[derive(Debug)]
struct Receiver {
    publisher: Publisher,
    introduction: Introduction,
    /// When it may be sent the state again.
    not_before: Instant,
}

/// What one state may take of a receiver's link: its changes are small, and the sum over all states is bounded too.
const BYTES_PER_SECOND: u32 = 32 * 1024;
const _: () = assert!(BYTES_PER_SECOND as usize <= limits::OWN_STATE_BYTES_PER_SECOND);

impl Replicas {
    pub(super) fn new(rate: TickRate, radius: Option<f64>) -> Self {
        Replicas { sources: BTreeMap::new(), rate, radius, first: 0, blocked: BTreeSet::new() }
    }

    /// A member may receive the states of others.
    pub(super) fn add(&mut self, member: MemberId) {
        self.sources.values_mut().for_each(|source| source.add(member));
    }

    pub(super) fn remove(&mut self, member: MemberId) {
        self.sources.remove(&member);
        self.blocked.remove(&member);
        self.sources.values_mut().for_each(|source| {
            source.receivers.remove(&member);
        });
    }

    /// The process of a member began anew: it has nothing of others, and what it sends builds on nothing.
    pub(super) fn restarted(&mut self, member: MemberId) {
        self.blocked.remove(&member);
        for (id, source) in &mut self.sources {
            if *id == member {
                source.replica.restart();
            } else {
                source.add(member);
            }
        }
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
        }
        source.due |= !delivered || source.is_waiting;
    }

    /// Whether something waits for time to pass.
    pub(super) fn is_waiting(&self) -> bool {
        self.sources.values().any(|source| source.is_waiting)
    }

    /// Takes in a packet of a member's own state. `others` are those who may receive it.
    fn take(
        &mut self,
        from: MemberId,
        state: OwnState,
        others: impl Iterator<Item = MemberId>,
    ) -> Result<(), PeerMisbehaved> {
        let source = match (self.sources.get_mut(&from), state.schema) {
            (None, None) => return Err(bad("its first packet does not say what it is made of")),
            (None, Some(schema)) => {
                let mut source = Source::new(schema, self.rate)?;
                others.for_each(|member| source.add(member));
                self.sources.entry(from).or_insert(source)
            }
            (Some(source), Some(schema)) if source.schema != schema => {
                return Err(bad("it is made of something else than before"));
            }
            (Some(source), _) => source,
        };
        source.take(state.packet)
    }

    /// How often the state of `source` is sent to `member`, in steps.
    fn interval_ticks(&self, source: &Source, member: MemberId) -> u32 {
        let there = self.sources.get(&member).and_then(|own| own.position);
        let nearness = match (self.radius, source.position, there) {
            (Some(radius), Some(a), Some(b)) => nearness_at(distance(a, b), radius),
            _ => NEARNESS_MAX,
        };
        interval_ticks(nearness, source.form.component().priority(), self.rate)
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
                if self.blocked.contains(member) || !receiver.publisher.is_due(source.replica.world()) {
                    continue;
                }
                if now < receiver.not_before || !budgets.has_room_for_states(*member, now) {
                    source.is_waiting = true;
                    continue;
                }
                let interval = self.rate.interval() * self.interval_ticks(&source, *member);
                let bytes = source.send(id, *member, receiver, now, &mut send);
                if bytes > 0 {
                    // Half a step early is in time: steps of different members do not meet.
                    receiver.not_before = now + interval - self.rate.interval() / 2;
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
    fn new(schema: Bytes, rate: TickRate) -> Result<Self, PeerMisbehaved> {
        let decoded = Schema::decode(schema.clone()).map_err(|error| bad(&error.to_string()))?;
        let form = Form::new(Arc::new(decoded)).map_err(|error| bad(&error.to_string()))?;
        Ok(Source {
            schema: Bytes::copy_from_slice(&schema),
            replica: Replica::of_everything(Arc::clone(form.schema()), rate),
            form,
            position: None,
            receivers: BTreeMap::new(),
            encodings: Encodings::default(),
            due: false,
            is_waiting: false,
        })
    }

    fn add(&mut self, member: MemberId) {
        let config = PublisherConfig::new(BYTES_PER_SECOND);
        let publisher = Publisher::new(Viewer::Member(member), config);
        let introduction = Introduction::new(self.schema.clone());
        let receiver = Receiver { publisher, introduction, not_before: Instant::ZERO };
        self.receivers.insert(member, receiver);
        self.due = true;
    }

    fn take(&mut self, packet: Bytes) -> Result<(), PeerMisbehaved> {
        let outcome = self.replica.apply(packet).map_err(|error| bad(&error.to_string()))?;
        if self.replica.world().entities().nth(1).is_some() {
            return Err(bad("it has more than one entity"));
        }
        if matches!(outcome, Outcome::Taken(_)) {
            self.due = true;
            self.position = self.read_position();
        }
        Ok(())
    }

    /// Where the member is: its first field that has a position.
    fn read_position(&self) -> Option<[f64; 3]> {
        let component = self.form.component();
        let has_position =
            |kind: &Kind| matches!(kind, Kind::Vector { .. } | Kind::Transform { .. } | Kind::Body { .. });
        let field = component.fields().iter().position(|field| has_position(&field.kind))?;
        let world = self.replica.world();
        let entity = world.entities().next()?;
        let (lanes, blobs) = world.read_row(entity, ComponentId(0)).ok()??;
        // A vector of two numbers has no third, which reads as 0.
        Some(RowReader::new(component, lanes, blobs).field(field).array())
    }

    /// Sends a receiver what is due; says how many bytes that were.
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
            let state = receiver.introduction.wrap(packet, sent);
            let payload = StateOf { source: id, state }.encode();
            bytes += payload.len();
            let tag = Some(Tag::of_replica(id, sent.0));
            send(member, Outgoing { channel: channel::REPLICAS, key: 0, payload, tag });
        }
        bytes
    }
}

fn bad(detail: &str) -> PeerMisbehaved {
    PeerMisbehaved::BadState { detail: format!("its own: {detail}") }
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    let square = |index: usize| (a[index] - b[index]) * (a[index] - b[index]);
    (square(0) + square(1) + square(2)).sqrt()
}

impl Room {
    /// Takes a packet of a member's own state in. Packets build on each other, so none can be dropped: who sends too much is
    /// at fault.
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
        let others = self.seers_of(from);
        self.replicas.take(from, state, others.into_iter())?;
        self.counters.own_states += 1;
        Ok(())
    }

    /// Gives every member what is due of the others' own states.
    pub(super) fn flush_replicas(&mut self, now: Instant) {
        let outputs = &mut self.outputs;
        self.replicas.flush(&mut self.budgets, now, |member, message| {
            outputs.push_back(Output::Send { to: vec![member], message });
        });
    }
}
