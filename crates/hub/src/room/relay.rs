//! Messages between members, and inputs on their way to the authority.

use super::budget::SENDER_WAITING_BYTES_MAX;
use super::{Output, Room};
use bytes::Bytes;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::Action;
use parlor_proto::wire::control::{PlayerData, ToMember};
use parlor_proto::wire::cursor::ReadError;
use parlor_proto::wire::envelope::{Downward, ENVELOPE_BYTES_MAX, Recipient, Sender, Upward};
use parlor_proto::{ChannelId, Instant, Lane, MemberId, PeerMisbehaved, channel, limits};
use std::collections::{BTreeMap, VecDeque};

/// A reliable message of a member that reaches others.
#[derive(Clone, Debug)]
pub(super) enum Held {
    Message {
        channel: ChannelId,
        key: u32,
        upward: Upward,
    },
    Data(PlayerData),
    Action(Action),
    /// An answer of the authority to one member.
    Answer {
        member: MemberId,
        answer: ToMember,
    },
}

impl Held {
    fn bytes(&self) -> usize {
        match self {
            Held::Message { upward, .. } => upward.payload.len() + ENVELOPE_BYTES_MAX_DOWN,
            Held::Data(data) => data.key.len() + data.value.as_ref().map_or(0, Bytes::len),
            Held::Action(action) => action.name.len() + action.value.len() + ENVELOPE_BYTES_MAX_DOWN,
            Held::Answer { answer, .. } => answer.encode().len() + ENVELOPE_BYTES_MAX_DOWN,
        }
    }

    /// Copies its bytes, so that a small message does not keep the whole packet that it came in.
    fn detached(self) -> Self {
        let copy = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        match self {
            Held::Message { channel, key, upward } => {
                let upward = Upward { payload: copy(&upward.payload), ..upward };
                Held::Message { channel, key, upward }
            }
            Held::Data(data) => {
                let value = data.value.as_ref().map(copy);
                Held::Data(PlayerData { value, ..data })
            }
            Held::Action(action) => Held::Action(Action { value: copy(&action.value), ..action }),
            // It has no bytes of the packet.
            held @ Held::Answer { .. } => held,
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.bytes() + limits::WAITING_MESSAGE_BYTES
    }
}

/// Messages that wait for their receivers' budgets, in order per sender.
#[derive(Debug, Default)]
pub(super) struct Queues {
    by_sender: BTreeMap<MemberId, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    held: VecDeque<Held>,
    bytes: usize,
}

impl Queues {
    pub(super) fn is_empty(&self) -> bool {
        self.by_sender.is_empty()
    }

    pub(super) fn remove(&mut self, sender: MemberId) {
        self.by_sender.remove(&sender);
    }

    /// Returns the waiting bytes of one sender.
    fn bytes_of(&self, sender: MemberId) -> usize {
        self.by_sender.get(&sender).map_or(0, |queue| queue.bytes)
    }

    fn has(&self, sender: MemberId) -> bool {
        self.by_sender.contains_key(&sender)
    }

    fn push(&mut self, sender: MemberId, held: Held) -> Result<(), PeerMisbehaved> {
        let queue = self.by_sender.entry(sender).or_default();
        let waiting = queue.bytes + held.waiting_bytes();
        if waiting > SENDER_WAITING_BYTES_MAX {
            return Err(PeerMisbehaved::Flooded { waiting });
        }
        queue.bytes = waiting;
        queue.held.push_back(held.detached());
        Ok(())
    }

    fn first(&self, sender: MemberId) -> Option<&Held> {
        self.by_sender.get(&sender).and_then(|queue| queue.held.front())
    }

    fn pop(&mut self, sender: MemberId) -> Option<Held> {
        let queue = self.by_sender.get_mut(&sender)?;
        let held = queue.held.pop_front()?;
        queue.bytes -= held.waiting_bytes();
        if queue.held.is_empty() {
            self.by_sender.remove(&sender);
        }
        Some(held)
    }
}

impl Room {
    /// Relays a message between members.
    pub(super) fn relay_from(
        &mut self,
        from: MemberId,
        channel: ChannelId,
        key: u32,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        let malformed = |error| PeerMisbehaved::Malformed { what: "the envelope of a message", error };
        let upward = Upward::decode(payload).map_err(malformed)?;
        if upward.payload.len() > RELAYED_BYTES_MAX {
            return Err(malformed(ReadError::OutOfRange { field: "length" }));
        }
        let lane = self.setup.channels.get(channel).map_or(Lane::ReliableOrdered, |row| row.lane);
        let upward = Self::check_data(channel, lane, upward)?;
        if !lane.is_reliable() {
            self.relay_unreliable(from, channel, key, upward, now);
            return Ok(());
        }
        self.reliable_from(from, Held::Message { channel, key, upward }, now)
    }

    /// Relays a reliable message, at once or when budgets allow it.
    pub(super) fn reliable_from(
        &mut self,
        from: MemberId,
        held: Held,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        if self.queues.has(from) || !self.may_go(from, &held, now) {
            return self.queues.push(from, held);
        }
        self.pass_on(from, held)
    }

    /// Whether a sender has too much waiting and must pause. Its session then withholds acknowledgements; a
    /// sender that continues anyway is disconnected.
    pub fn holds_back(&self, member: MemberId) -> bool {
        self.queues.bytes_of(member) > HOLD_BYTES
    }

    /// Relays waiting messages round-robin, one per sender, so that no sender waits for all of another's.
    pub(super) fn release(&mut self, now: Instant) -> Result<(), (MemberId, PeerMisbehaved)> {
        loop {
            let mut is_done = true;
            let senders: Vec<MemberId> = self.queues.by_sender.keys().copied().collect();
            for from in senders {
                let Some(first) = self.queues.first(from).cloned() else { continue };
                if self.may_go(from, &first, now)
                    && let Some(held) = self.queues.pop(from)
                {
                    is_done = false;
                    self.pass_on(from, held).map_err(|how| (from, how))?;
                }
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Relays all waiting messages. Those of one sender stay in their order.
    pub(super) fn pass_on_all(&mut self) -> Result<(), (MemberId, PeerMisbehaved)> {
        let senders: Vec<MemberId> = self.queues.by_sender.keys().copied().collect();
        for from in senders {
            while let Some(held) = self.queues.pop(from) {
                self.pass_on(from, held).map_err(|how| (from, how))?;
            }
        }
        Ok(())
    }

    fn may_go(&mut self, from: MemberId, held: &Held, now: Instant) -> bool {
        let mut to = match held {
            Held::Message { upward, .. } => self.receivers(from, &upward.to).0,
            Held::Data(data) => self.told_of(data),
            Held::Action(_) => self.authority.member().into_iter().collect(),
            Held::Answer { member, .. } => vec![*member],
        };
        if to.is_empty() && self.keeps(held) {
            to.push(from);
        }
        self.budgets.take_reliable(&to, held.bytes(), now)
    }

    fn pass_on(&mut self, from: MemberId, held: Held) -> Result<(), PeerMisbehaved> {
        match held {
            Held::Data(data) => self.set_data(data),
            Held::Message { channel, key, upward } => {
                let to = self.present(from, &upward.to);
                self.relay(from, channel, key, upward, to);
                Ok(())
            }
            Held::Action(action) => {
                self.pass_on_action(from, action);
                Ok(())
            }
            Held::Answer { member, answer } => {
                self.answer_action(member, &answer);
                Ok(())
            }
        }
    }

    /// Relays an unreliable message. Drops it for receivers whose budget is used up; reports that once.
    fn relay_unreliable(
        &mut self,
        from: MemberId,
        channel: ChannelId,
        key: u32,
        upward: Upward,
        now: Instant,
    ) {
        let bytes = upward.payload.len() + ENVELOPE_BYTES_MAX_DOWN;
        let mut to = self.present(from, &upward.to);
        let count = to.len();
        to.retain(|member| self.budgets.take_unreliable(from, *member, bytes, now));
        let dropped = (count - to.len()) as u64;
        self.counters.over_budget += dropped;
        if dropped > 0 && self.budgets.is_news(from) {
            self.control(vec![from], &ToMember::Throttled);
        }
        self.relay(from, channel, key, upward, to);
    }

    /// Encodes a message once for all receivers.
    fn relay(&mut self, from: MemberId, channel: ChannelId, key: u32, upward: Upward, to: Vec<MemberId>) {
        // Logged data gets its number even without receivers.
        if to.is_empty() && channel != channel::MATCH_DATA {
            return;
        }
        let order = upward.stamp.then(|| {
            self.stamped += 1;
            self.stamped - 1
        });
        self.keep_data(from, order, &upward.payload, &to);
        let authority_of = (upward.to == Recipient::Authority).then_some(self.epoch);
        let message = Outgoing {
            channel,
            key: relayed_key(from, key),
            payload: Downward { from: Sender::Member(from), order, authority_of, payload: upward.payload }
                .encode(),
            delivery_id: None,
        };
        self.counters.relayed += to.len() as u64;
        if to.is_empty() {
            return;
        }
        self.outputs.push_back(Output::Send { to, message });
    }

    /// Returns the members that a message reaches. Counts those that have left: the sender may not know yet.
    fn present(&mut self, from: MemberId, to: &Recipient) -> Vec<MemberId> {
        let (reached, gone) = self.receivers(from, to);
        self.counters.unreachable += gone;
        reached
    }

    /// Returns the members that a message reaches, and how many named ones have left.
    fn receivers(&self, from: MemberId, to: &Recipient) -> (Vec<MemberId>, u64) {
        let sees = |member: &MemberId| self.view(*member).sees_member(from);
        let mut named = match to {
            Recipient::Authority => match self.authority.member() {
                Some(authority) => vec![authority],
                None => return (Vec::new(), 1),
            },
            Recipient::Others => return (self.seers_of(from), 0),
            Recipient::Everyone => return (self.members.ids().filter(sees).collect(), 0),
            Recipient::Except(members) => {
                let is_named = |member: &MemberId| members.binary_search(member).is_err();
                return (self.members.ids().filter(is_named).filter(sees).collect(), 0);
            }
            Recipient::Primary => self.primary.primary().into_iter().collect(),
            Recipient::Member(member) => vec![*member],
            Recipient::Members(members) => members.clone(),
        };
        let count = named.len();
        named.retain(|member| self.members.get(*member).is_some() && self.view(*member).sees_member(from));
        let gone = (count - named.len()) as u64;
        (named, gone)
    }

    /// Passes an input message on to the authority, keyed by its sender. A newer input thus replaces only an
    /// older one of the same sender that still waits.
    ///
    /// The hub limits its size and its rate (one per step), as the host's link carries it (threat 21).
    pub(super) fn input_from(
        &mut self,
        from: MemberId,
        payload: Bytes,
        now: Instant,
    ) -> Result<(), PeerMisbehaved> {
        if payload.len() > limits::INPUT_MESSAGE_BYTES_MAX {
            let error = ReadError::OutOfRange { field: "length" };
            return Err(PeerMisbehaved::Malformed { what: "an input", error });
        }
        let Some(authority) = self.authority.member().filter(|authority| *authority != from) else {
            return Ok(());
        };
        if !self.budgets.take_input(from, now) {
            self.counters.inputs_over_budget += 1;
            return Ok(());
        }
        self.counters.inputs += 1;
        let message = Outgoing { channel: channel::INPUT, key: from.0, payload, delivery_id: None };
        self.outputs.push_back(Output::Send { to: vec![authority], message });
        Ok(())
    }
}

/// Waiting bytes of a member beyond which it is paused.
const HOLD_BYTES: usize = 32 * 1024;
const _: () = assert!(
    HOLD_BYTES + limits::RELIABLE_QUEUE_BYTES_MAX * 6 / 5 <= SENDER_WAITING_BYTES_MAX,
    "what a sender has under way when it is held back fits, with the envelopes"
);

/// Largest relayed payload: with any envelope it still fits into a message frame.
const RELAYED_BYTES_MAX: usize = limits::PAYLOAD_BYTES_MAX - ENVELOPE_BYTES_MAX;
/// Largest envelope of a relayed message: sender, order and epoch.
const ENVELOPE_BYTES_MAX_DOWN: usize = 1 + 8 + 8 + 8;

/// Adds the sender to the key: sequenced messages of different senders must not replace each other.
fn relayed_key(from: MemberId, key: u32) -> u32 {
    from.0 << 16 | key & 0xffff
}

const _: () = assert!(RELAYED_BYTES_MAX > limits::MESSAGE_BYTES_MAX + limits::LABEL_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{Input, Setup};
    use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
    use parlor_proto::{ChannelTable, Epoch, LinkKind, RoomId};

    fn room(members: u16) -> Room {
        let code = "K7QM".parse().unwrap();
        let mut room = Room::new(Setup {
            id: RoomId(1),
            code,
            app: "tanks".into(),
            environment: String::new(),
            settings: RoomSettings { code: Some(code), ..RoomSettings::new(RoomKind::PlayerHosted, members) },
            channels: ChannelTable::default(),
            opened: Instant::ZERO,
            state_bytes_per_second: 192 * 1024,
            spectators: 0,
        })
        .unwrap();
        for number in 0..members {
            let join = Input::Join {
                name: format!("member {number}"),
                user: None,
                link: LinkKind::Memory,
                spectates: false,
            };
            room.handle(join, Instant::ZERO).unwrap();
        }
        room
    }

    #[test]
    fn threat_12_whoever_sends_on_although_held_back_is_at_fault() {
        let mut room = room(3);
        let upward = Upward { to: Recipient::Others, stamp: false, payload: vec![7; 20_000].into() };
        let say = || Input::Message {
            from: MemberId(1),
            channel: channel::MESSAGE_ORDERED,
            key: 0,
            payload: upward.encode(),
            epoch: Epoch(0),
        };
        let mut said = 0;
        let how = loop {
            match room.handle(say(), Instant::ZERO) {
                Ok(()) => said += 1,
                Err((member, how)) => {
                    assert_eq!(member, MemberId(1));
                    break how;
                }
            }
        };
        let PeerMisbehaved::Flooded { waiting } = how else { panic!("{how:?}") };
        assert!(waiting > SENDER_WAITING_BYTES_MAX && waiting < SENDER_WAITING_BYTES_MAX + 21_000);
        assert!(room.holds_back(MemberId(1)) && !room.holds_back(MemberId(2)));
        // What passed at once, plus what waits.
        assert!((96 + 256) * 1_024 / 20_300 >= said && said > 256 * 1_024 / 20_300, "{said}");
    }
}
