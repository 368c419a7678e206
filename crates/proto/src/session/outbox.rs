//! The sending half: queues, and how they are packed into packets.
//!
//! Unreliable messages are queued here and not in a library, so that a newer sequenced message can replace an
//! older one that was not sent yet. Reliable messages stay until they are acknowledged, across connections.

use super::acks::{Fate, InFlight, Part};
use super::{DeliveryId, release};
use crate::OrderedMap;
use crate::channel::{Channel, Lane};
use crate::ids::ChannelId;
use crate::limits;
use crate::link::{Carrier, Packet};
use crate::wire::cursor::{ReadError, Reader, VARINT_MAX, Write};
use crate::wire::frame::{Fragment, Frame};
use crate::wire::header::Header;
use bytes::Bytes;
use std::collections::VecDeque;

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The channel.
    pub channel: ChannelId,
    /// The key: on the sequenced lane only messages with the same key replace each other; other lanes ignore
    /// it.
    pub key: u32,
    /// The payload.
    pub payload: Bytes,
    /// If set, the fate of an unreliable message is reported under this id.
    pub delivery_id: Option<DeliveryId>,
}

impl Outgoing {
    /// Creates a message without key and delivery id.
    pub fn new(channel: ChannelId, payload: Bytes) -> Self {
        Outgoing { channel, key: 0, payload, delivery_id: None }
    }
}

#[derive(Debug)]
struct Waiting {
    frame: Frame,
    delivery_id: Option<DeliveryId>,
}

#[derive(Debug)]
struct Retained {
    frame: Frame,
    bytes: usize,
}

impl Retained {
    fn waiting_bytes(&self) -> usize {
        self.bytes - FRAME_HEAD_BYTES_MAX + limits::WAITING_MESSAGE_BYTES
    }

    fn is_unordered(&self) -> bool {
        matches!(self.frame, Frame::Reliable { .. })
    }
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Session frames; they are sent first.
    pub(super) control: VecDeque<Frame>,
    unreliable: VecDeque<Waiting>,
    /// Queued bytes of unreliable messages and of the current fragments.
    unreliable_bytes: usize,
    /// Reliable messages in the order of their numbers, from `retained_from` on.
    retained: VecDeque<Retained>,
    retained_from: u64,
    retained_bytes: usize,
    /// The next number to send on the present connection.
    give_next: u64,
    /// Numbers from here on were never sent on any connection.
    never_given: u64,
    /// Numbers from here on are not sent on any connection.
    sealed_at: Option<u64>,
    orders: OrderedMap<ChannelId, u64>,
    /// The remaining fragments of one message.
    fragments: VecDeque<Fragment>,
    fragments_tracked: bool,
    next_fragment_id: u16,
    /// Unreliable messages dropped because the queue was full.
    pub(super) dropped: u64,
    /// Unreliable messages replaced by a newer one before they were sent.
    pub(super) replaced: u64,
}

/// The reliable messages of an outbox.
#[derive(Debug, Default)]
pub(super) struct Sent {
    retained: VecDeque<Retained>,
    retained_from: u64,
    retained_bytes: usize,
    orders: OrderedMap<ChannelId, u64>,
}

impl Sent {
    fn push(&mut self, frame: Frame, payload_bytes: usize) {
        self.retained.push_back(Retained { frame, bytes: payload_bytes + FRAME_HEAD_BYTES_MAX });
        self.retained_bytes += payload_bytes + limits::WAITING_MESSAGE_BYTES;
    }

    /// Reads what [`Outbox::write_sent`] wrote.
    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let retained_from = body.varint_max("first message", VARINT_MAX / 2)?;
        let mut sent = Sent { retained_from, ..Sent::default() };
        for number in 0..body.varint_max("message count", limits::RELIABLE_QUEUE_BYTES_MAX as u64)? {
            let (is_ordered, channel) = (body.bool("ordered")?, ChannelId(body.u8()?));
            let order = if is_ordered { Some(body.varint()?) } else { None };
            let payload = body.bytes_max("message", limits::PAYLOAD_BYTES_MAX)?;
            let number = retained_from + number;
            let bytes = payload.len();
            sent.push(
                match order {
                    Some(order) => Frame::Ordered { channel, number, order, payload },
                    None => Frame::Reliable { channel, number, payload },
                },
                bytes,
            );
            if sent.retained_bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
                return Err(ReadError::OutOfRange { field: "messages" });
            }
        }
        for _ in 0..body.varint_max("channel count", u8::MAX.into())? {
            sent.orders.insert(ChannelId(body.u8()?), body.varint()?);
        }
        Ok(sent)
    }
}

/// A packet being built.
#[derive(Debug)]
pub(super) struct Packing {
    carrier: Carrier,
    bytes: Vec<u8>,
    head: usize,
    frames: usize,
}

impl Packing {
    pub(super) fn new(carrier: Carrier, header: &Header) -> Self {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        Packing { carrier, head: bytes.len(), bytes, frames: 0 }
    }

    pub(super) fn put(&mut self, frame: &Frame) {
        frame.write(&mut self.bytes);
        self.frames += 1;
    }

    /// Whether a frame of this size may follow. A stream packet beyond its target size takes no more, so that
    /// any message fits one that has little else.
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        let len = self.bytes.len();
        self.frames < limits::FRAMES_PER_PACKET_MAX
            && match self.carrier {
                Carrier::Datagram => len + bytes <= limits::DATAGRAM_BYTES_MAX,
                Carrier::Stream | Carrier::Isolated => {
                    len < limits::STREAM_PACKET_BYTES_TARGET && len + bytes <= limits::STREAM_PACKET_BYTES_MAX
                }
            }
    }

    /// Whether a frame of this size never fits such a packet.
    fn must_fragment(&self, bytes: usize) -> bool {
        self.carrier == Carrier::Datagram && self.head + bytes > limits::DATAGRAM_BYTES_MAX
    }

    pub(super) fn finish(self) -> Packet {
        Packet { carrier: self.carrier, bytes: self.bytes.into() }
    }
}

/// The reliable queue exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// Maximum bytes that a frame adds to a payload.
const FRAME_HEAD_BYTES_MAX: usize = 1 + 4 + 1 + 8 + 8;

impl Outbox {
    /// Queues a message.
    pub(super) fn push(
        &mut self,
        channel: &Channel,
        message: Outgoing,
        in_flight: &mut InFlight,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Overflow> {
        match channel.lane {
            Lane::ReliableOrdered | Lane::ReliableUnordered => self.push_reliable(channel.lane, message)?,
            Lane::Unreliable => {
                let frame = Frame::Unreliable { channel: message.channel, payload: message.payload };
                self.push_unreliable(Waiting { frame, delivery_id: message.delivery_id });
            }
            Lane::UnreliableSequenced => self.push_sequenced(message, fates),
        }
        self.shed(in_flight, fates);
        Ok(())
    }

    fn push_reliable(&mut self, lane: Lane, message: Outgoing) -> Result<(), Overflow> {
        let bytes = message.payload.len() + FRAME_HEAD_BYTES_MAX;
        let waiting_bytes = message.payload.len() + limits::WAITING_MESSAGE_BYTES;
        if self.retained_bytes + waiting_bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
            return Err(Overflow);
        }
        let number = self.retained_from + self.retained.len() as u64;
        let Outgoing { channel, payload, .. } = message;
        let frame = if lane == Lane::ReliableOrdered {
            let next = self.orders.get_or_insert_with(channel, Default::default);
            let order = *next;
            *next += 1;
            Frame::Ordered { channel, number, order, payload }
        } else {
            Frame::Reliable { channel, number, payload }
        };
        self.retained_bytes += waiting_bytes;
        self.retained.push_back(Retained { frame, bytes });
        Ok(())
    }

    fn push_sequenced(&mut self, message: Outgoing, fates: &mut Vec<Fate>) {
        let Outgoing { channel, key, payload, delivery_id } = message;
        let waiting = Waiting { frame: Frame::Sequenced { channel, key, payload }, delivery_id };
        let older = self.unreliable.iter().position(|other| {
            matches!(other.frame, Frame::Sequenced { channel: c, key: k, .. } if (c, k) == (channel, key))
        });
        if let Some(at) = older {
            let older = self.unreliable.remove(at).expect("the index was just found");
            self.unreliable_bytes -= waiting_bytes(&older.frame);
            self.replaced += 1;
            fates.extend(older.delivery_id.map(Fate::Lost));
        }
        self.push_unreliable(waiting);
    }

    fn push_unreliable(&mut self, waiting: Waiting) {
        self.unreliable_bytes += waiting_bytes(&waiting.frame);
        self.unreliable.push_back(waiting);
    }

    /// Drops unreliable messages, oldest first, until the queue is within its bounds. If some fragments of
    /// the oldest were sent already, it is lost without the others.
    fn shed(&mut self, in_flight: &mut InFlight, fates: &mut Vec<Fate>) {
        let beside_reliable = limits::RELIABLE_QUEUE_BYTES_MAX - self.retained_bytes;
        while self.unreliable_bytes > limits::UNRELIABLE_QUEUE_BYTES_MAX.min(beside_reliable) {
            if let Some(fragment) = self.fragments.front() {
                in_flight.give_up_fragments(fragment.id, fates);
                self.unreliable_bytes -= self.fragments.iter().map(fragment_bytes).sum::<usize>();
                self.fragments.clear();
            } else {
                let oldest = self.take_first();
                fates.extend(oldest.delivery_id.map(Fate::Lost));
            }
            self.dropped += 1;
        }
    }

    /// Records that the peer received all reliable messages below `number`. Returns false if that many were
    /// never sent.
    pub(super) fn acked(&mut self, number: u64) -> bool {
        if number > self.never_given {
            return false;
        }
        while self.retained_from < number {
            let done = self.retained.pop_front().expect("what was given is retained until now");
            self.retained_bytes -= done.waiting_bytes();
            self.retained_from += 1;
        }
        // An earlier connection may have delivered more than was acknowledged on it.
        self.give_next = self.give_next.max(number);
        true
    }

    /// All unacknowledged messages must be sent again on the next connection.
    pub(super) fn detached(&mut self, fates: &mut Vec<Fate>) {
        self.give_next = self.retained_from;
        self.control.clear();
        self.drop_unreliable(fates);
    }

    /// Writes the reliable messages, for [`Sent::read`].
    pub(super) fn write_sent(&self, out: &mut Vec<u8>) {
        out.put_varint(self.retained_from);
        out.put_varint(self.retained.len() as u64);
        for Retained { frame, .. } in &self.retained {
            let (order, channel, payload) = match frame {
                Frame::Ordered { channel, order, payload, .. } => (Some(*order), channel, payload),
                Frame::Reliable { channel, payload, .. } => (None, channel, payload),
                _ => unreachable!("other frames are not retained"),
            };
            out.put_bool(order.is_some());
            out.put_u8(channel.0);
            order.into_iter().for_each(|order| out.put_varint(order));
            out.put_bytes(payload);
        }
        out.put_varint(self.orders.len() as u64);
        for (channel, next) in self.orders.iter() {
            out.put_u8(channel.0);
            out.put_varint(*next);
        }
    }

    /// Takes out the reliable messages.
    pub(super) fn take_sent(&mut self) -> Sent {
        let Outbox { retained, retained_from, retained_bytes, orders, .. } = core::mem::take(self);
        Sent { retained, retained_from, retained_bytes, orders }
    }

    /// Goes on with the reliable messages of another outbox. All of them are sent again, and may have been sent before.
    pub(super) fn go_on_with(&mut self, sent: Sent) {
        let Sent { retained, retained_from, retained_bytes, orders } = sent;
        self.never_given = retained_from + retained.len() as u64;
        (self.give_next, self.orders) = (retained_from, orders);
        (self.retained, self.retained_from, self.retained_bytes) = (retained, retained_from, retained_bytes);
    }

    /// Takes out the unacknowledged messages, with their numbers.
    pub(super) fn take_retained(&mut self) -> Vec<(u64, Outgoing)> {
        let messages = self.retained().collect();
        self.retained_from += self.retained.len() as u64;
        self.retained.clear();
        (self.retained_bytes, self.give_next) = (0, self.retained_from);
        messages
    }

    /// Iterates over the unacknowledged messages, in the order of their numbers.
    pub(super) fn retained(&self) -> impl Iterator<Item = (u64, Outgoing)> + '_ {
        (self.retained_from..).zip(&self.retained).filter_map(|(number, retained)| match &retained.frame {
            Frame::Reliable { channel, payload, .. } | Frame::Ordered { channel, payload, .. } => {
                Some((number, Outgoing::new(*channel, payload.clone())))
            }
            _ => None,
        })
    }

    /// The Close frame is on the main stream and could overtake messages on streams of their own, if the link
    /// has such. Those that may be in flight are sent again, before it; a receiver accepts each number once.
    pub(super) fn closing(&mut self, has_isolated: bool, fates: &mut Vec<Fate>) {
        let isolated = self.retained.iter().position(|retained| retained.is_unordered());
        if let Some(at) = isolated.filter(|_| has_isolated) {
            self.give_next = self.give_next.min(self.retained_from + at as u64);
        }
        self.drop_unreliable(fates);
    }

    fn drop_unreliable(&mut self, fates: &mut Vec<Fate>) {
        self.fragments.clear();
        self.unreliable_bytes = 0;
        let waiting = std::mem::take(&mut self.unreliable);
        fates.extend(waiting.into_iter().filter_map(|waiting| waiting.delivery_id).map(Fate::Lost));
    }

    /// Gives back the memory of empty queues.
    pub(super) fn release(&mut self) {
        release(&mut self.control);
        release(&mut self.unreliable);
        release(&mut self.retained);
        release(&mut self.fragments);
    }

    /// Whether all reliable messages are acknowledged.
    pub(super) fn is_reliable_settled(&self) -> bool {
        self.retained.is_empty()
    }

    /// Bytes of reliable messages that are not acknowledged, as [`limits::RELIABLE_QUEUE_BYTES_MAX`] counts them.
    pub(super) fn retained_bytes(&self) -> usize {
        self.retained_bytes
    }

    /// What unreliable messages and the fragments under way count in the queue.
    pub(super) fn unreliable_bytes(&self) -> usize {
        self.unreliable_bytes
    }

    /// Whether a reliable message was not sent on the connection yet.
    pub(super) fn has_ungiven(&self) -> bool {
        self.give_next < self.next_number().min(self.sealed_at.unwrap_or(u64::MAX))
    }

    /// The number of the next message.
    fn next_number(&self) -> u64 {
        self.retained_from + self.retained.len() as u64
    }

    /// Keeps back the messages that follow, or sends them again.
    pub(super) fn set_sealed(&mut self, is_sealed: bool) {
        self.sealed_at = is_sealed.then(|| self.next_number());
    }

    /// Returns the next reliable message for the connection, if the window has room for it.
    fn next_reliable(&self) -> Option<&Retained> {
        let given = self.give_next - self.retained_from;
        let is_open = given < limits::RELIABLE_WINDOW && self.has_ungiven();
        usize::try_from(given).ok().filter(|_| is_open).and_then(|given| self.retained.get(given))
    }

    /// Whether a reliable message can be sent now.
    pub(super) fn has_reliable(&self) -> bool {
        self.next_reliable().is_some()
    }

    /// Whether the next one may have a stream of its own.
    pub(super) fn next_is_unordered(&self) -> bool {
        self.next_reliable().is_some_and(Retained::is_unordered)
    }

    /// Whether an unreliable message or a fragment is queued.
    pub(super) fn has_unreliable(&self) -> bool {
        !self.unreliable.is_empty() || !self.fragments.is_empty()
    }

    /// Appends reliable messages. With `isolate`, it stops before one that may have a stream of its own.
    pub(super) fn fill_reliable(&mut self, packing: &mut Packing, isolate: bool) {
        while let Some(next) = self.next_reliable() {
            if isolate && next.is_unordered() || !packing.has_room(next.bytes) {
                break;
            }
            packing.put(&next.frame);
            self.gave_one();
        }
    }

    /// Appends only the next reliable message.
    pub(super) fn fill_isolated(&mut self, packing: &mut Packing) {
        if let Some(next) = self.next_reliable() {
            packing.put(&next.frame);
            self.gave_one();
        }
    }

    fn gave_one(&mut self) {
        self.give_next += 1;
        self.never_given = self.never_given.max(self.give_next);
    }

    /// Appends unreliable messages as long as there is room. A message too large for a datagram is
    /// fragmented. Returns the tracked parts.
    pub(super) fn fill_unreliable(
        &mut self,
        packing: &mut Packing,
        in_flight: &mut InFlight,
        fates: &mut Vec<Fate>,
    ) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            if let Some(fragment) = self.fragments.front() {
                if !packing.has_room(fragment.part.len() + limits::FRAGMENT_HEAD_BYTES_MAX) {
                    return parts;
                }
                let fragment = self.fragments.pop_front().expect("there is a first");
                self.unreliable_bytes -= fragment_bytes(&fragment);
                parts.extend(self.fragments_tracked.then_some(Part::Fragment(fragment.id)));
                packing.put(&Frame::Fragment(fragment));
                continue;
            }
            let Some(next) = self.unreliable.front() else { return parts };
            let bytes = size(&next.frame);
            if packing.must_fragment(bytes) {
                let whole = self.take_first();
                self.fragment(whole, in_flight, fates);
                continue;
            }
            if !packing.has_room(bytes) {
                return parts;
            }
            let next = self.take_first();
            packing.put(&next.frame);
            parts.extend(next.delivery_id.map(Part::Whole));
        }
    }

    fn take_first(&mut self) -> Waiting {
        let first = self.unreliable.pop_front().expect("there is a first");
        self.unreliable_bytes -= waiting_bytes(&first.frame);
        first
    }

    fn fragment(&mut self, whole: Waiting, in_flight: &mut InFlight, fates: &mut Vec<Fate>) {
        let mut bytes = Vec::new();
        whole.frame.write(&mut bytes);
        let bytes = Bytes::from(bytes);
        let id = self.next_fragment_id;
        self.next_fragment_id = id.wrapping_add(1);
        let count = bytes.len().div_ceil(limits::FRAGMENT_BYTES);
        for index in 0..count {
            let start = index * limits::FRAGMENT_BYTES;
            let part = bytes.slice(start..bytes.len().min(start + limits::FRAGMENT_BYTES));
            #[allow(clippy::cast_possible_truncation)] // limits relates the largest message to FRAGMENTS_MAX
            self.fragments.push_back(Fragment { id, index: index as u8, count: count as u8, part });
        }
        self.unreliable_bytes += self.fragments.iter().map(fragment_bytes).sum::<usize>();
        self.fragments_tracked = whole.delivery_id.is_some();
        if let Some(delivery_id) = whole.delivery_id {
            in_flight.expect_fragments(id, delivery_id, count, fates);
        }
    }
}

/// Queued bytes of an unreliable message.
fn waiting_bytes(frame: &Frame) -> usize {
    size(frame) - FRAME_HEAD_BYTES_MAX + limits::WAITING_MESSAGE_BYTES
}

/// Queued bytes of a fragment.
fn fragment_bytes(fragment: &Fragment) -> usize {
    fragment.part.len() + limits::WAITING_MESSAGE_BYTES
}

/// Maximum bytes of a message frame in a packet.
fn size(frame: &Frame) -> usize {
    match frame {
        Frame::Unreliable { payload, .. } | Frame::Sequenced { payload, .. } => {
            payload.len() + FRAME_HEAD_BYTES_MAX
        }
        _ => 0,
    }
}
