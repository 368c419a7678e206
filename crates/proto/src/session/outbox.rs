//! The sending half: what waits, and how it is packed.
//!
//! Unreliable messages wait here and not in a library's queue, so that a newer sequenced message can take the place
//! of an older one that has not left yet. Reliable messages stay until they are acknowledged, whatever connection
//! carried them.

use super::Tag;
use super::acks::{Fate, InFlight, Part};
use crate::channel::{Channel, Lane};
use crate::ids::ChannelId;
use crate::limits;
use crate::wire::frame::{Fragment, Frame};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// On which channel.
    pub channel: ChannelId,
    /// Sequenced messages replace each other only if they have the same key; other lanes ignore it.
    pub key: u32,
    /// The message.
    pub payload: Bytes,
    /// If set, an unreliable message's fate is reported under it.
    pub tag: Option<Tag>,
}

impl Outgoing {
    /// A message without key and tag.
    #[must_use]
    pub fn new(channel: ChannelId, payload: Bytes) -> Self {
        Outgoing { channel, key: 0, payload, tag: None }
    }
}

#[derive(Debug)]
struct Waiting {
    frame: Frame,
    tag: Option<Tag>,
}

#[derive(Debug)]
struct Retained {
    frame: Frame,
    bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// Session frames; they leave before anything else.
    pub(super) control: VecDeque<Frame>,
    unreliable: VecDeque<Waiting>,
    unreliable_bytes: usize,
    sequences: BTreeMap<(ChannelId, u32), u16>,
    /// Reliable messages in the order of their numbers, from `retained_from` on.
    retained: VecDeque<Retained>,
    retained_from: u64,
    retained_bytes: usize,
    /// How many of them the present connection was given.
    given: usize,
    orders: BTreeMap<ChannelId, u64>,
    /// Fragments of one message that are under way.
    fragments: VecDeque<Fragment>,
    fragments_tagged: bool,
    next_fragment_id: u16,
    /// Unreliable messages that were dropped because too many waited.
    pub(super) dropped: u64,
    /// Unreliable messages that a newer one replaced before they left.
    pub(super) replaced: u64,
}

/// More reliable bytes wait than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// Bytes that a frame adds around a payload, at the most.
const FRAME_HEAD_BYTES_MAX: usize = 1 + 4 + 1 + 8 + 8;

impl Outbox {
    /// Puts a message in.
    pub(super) fn push(
        &mut self,
        channel: &Channel,
        message: Outgoing,
        fates: &mut Vec<Fate>,
    ) -> Result<(), Overflow> {
        match channel.lane {
            Lane::ReliableOrdered | Lane::ReliableUnordered => self.push_reliable(channel.lane, message),
            Lane::Unreliable => {
                let frame = Frame::Unreliable { channel: message.channel, payload: message.payload };
                self.push_unreliable(Waiting { frame, tag: message.tag }, fates);
                Ok(())
            }
            Lane::UnreliableSequenced => {
                self.push_sequenced(message, fates);
                Ok(())
            }
        }
    }

    fn push_reliable(&mut self, lane: Lane, message: Outgoing) -> Result<(), Overflow> {
        let bytes = message.payload.len() + FRAME_HEAD_BYTES_MAX;
        if self.retained_bytes + bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
            return Err(Overflow);
        }
        let number = self.retained_from + self.retained.len() as u64;
        let Outgoing { channel, payload, .. } = message;
        let frame = if lane == Lane::ReliableOrdered {
            let next = self.orders.entry(channel).or_default();
            let order = *next;
            *next += 1;
            Frame::Ordered { channel, number, order, payload }
        } else {
            Frame::Reliable { channel, number, payload }
        };
        self.retained_bytes += bytes;
        self.retained.push_back(Retained { frame, bytes });
        Ok(())
    }

    fn push_sequenced(&mut self, message: Outgoing, fates: &mut Vec<Fate>) {
        let Outgoing { channel, key, payload, tag } = message;
        let next = self.sequences.entry((channel, key)).or_default();
        let sequence = *next;
        *next = next.wrapping_add(1);
        let waiting = Waiting { frame: Frame::Sequenced { channel, key, sequence, payload }, tag };
        let older = self.unreliable.iter().position(|other| {
            matches!(other.frame, Frame::Sequenced { channel: c, key: k, .. } if (c, k) == (channel, key))
        });
        if let Some(at) = older {
            let older = self.unreliable.remove(at).expect("the index was just found");
            self.unreliable_bytes -= size(&older.frame);
            self.replaced += 1;
            fates.extend(older.tag.map(Fate::Lost));
        }
        self.push_unreliable(waiting, fates);
    }

    fn push_unreliable(&mut self, waiting: Waiting, fates: &mut Vec<Fate>) {
        self.unreliable_bytes += size(&waiting.frame);
        self.unreliable.push_back(waiting);
        while self.unreliable_bytes > limits::UNRELIABLE_QUEUE_BYTES_MAX {
            let oldest = self.unreliable.pop_front().expect("bytes are waiting");
            self.unreliable_bytes -= size(&oldest.frame);
            self.dropped += 1;
            fates.extend(oldest.tag.map(Fate::Lost));
        }
    }

    /// The peer received every reliable message below `number`; false if that many were never sent.
    pub(super) fn acked(&mut self, number: u64) -> bool {
        let Some(count) = number.checked_sub(self.retained_from) else { return true };
        if count > self.given as u64 {
            return false;
        }
        for _ in 0..count {
            let done = self.retained.pop_front().expect("as many were given to the connection");
            self.retained_bytes -= done.bytes;
            self.given -= 1;
        }
        self.retained_from = number;
        true
    }

    /// Everything that was not acknowledged must be given to the next connection again.
    pub(super) fn detached(&mut self, fates: &mut Vec<Fate>) {
        self.given = 0;
        self.fragments.clear();
        self.control.clear();
        let waiting = std::mem::take(&mut self.unreliable);
        self.unreliable_bytes = 0;
        fates.extend(waiting.into_iter().filter_map(|waiting| waiting.tag).map(Fate::Lost));
    }

    /// Whether every reliable message was acknowledged.
    pub(super) fn is_reliable_settled(&self) -> bool {
        self.retained.is_empty()
    }

    /// Whether a reliable message waits to be given to the connection.
    pub(super) fn has_reliable(&self) -> bool {
        self.given < self.retained.len() && (self.given as u64) < limits::RELIABLE_WINDOW
    }

    /// Whether an unreliable message or a fragment waits.
    pub(super) fn has_unreliable(&self) -> bool {
        !self.unreliable.is_empty() || !self.fragments.is_empty()
    }

    /// Appends reliable messages up to a packet's target size, at least one. With `isolate`, it stops before one that
    /// can have a stream of its own.
    pub(super) fn fill_reliable(&mut self, out: &mut Vec<u8>, isolate: bool) {
        let mut is_first = true;
        while self.has_reliable() {
            let next = &self.retained[self.given];
            if isolate && matches!(next.frame, Frame::Reliable { .. }) {
                break;
            }
            if !is_first && out.len() + next.bytes > limits::STREAM_PACKET_BYTES_TARGET {
                break;
            }
            next.frame.write(out);
            self.given += 1;
            is_first = false;
        }
    }

    /// Whether the next reliable message can have a stream of its own.
    pub(super) fn next_is_isolated(&self) -> bool {
        self.has_reliable() && matches!(self.retained[self.given].frame, Frame::Reliable { .. })
    }

    /// Appends the next reliable message alone.
    pub(super) fn fill_isolated(&mut self, out: &mut Vec<u8>) {
        self.retained[self.given].frame.write(out);
        self.given += 1;
    }

    /// Appends unreliable messages until `out` holds `limit` bytes, fragmenting one that fits no packet of that size,
    /// and says what of it was tagged. `from` is where the frames of the packet begin.
    pub(super) fn fill_unreliable(
        &mut self,
        out: &mut Vec<u8>,
        limit: usize,
        from: usize,
        in_flight: &mut InFlight,
        fates: &mut Vec<Fate>,
    ) -> Vec<Part> {
        let mut parts = Vec::new();
        loop {
            if let Some(fragment) = self.fragments.front() {
                if out.len() + fragment.part.len() + limits::FRAGMENT_HEAD_BYTES_MAX > limit {
                    return parts;
                }
                let fragment = self.fragments.pop_front().expect("there is a first");
                parts.extend(self.fragments_tagged.then_some(Part::Fragment(fragment.id)));
                Frame::Fragment(fragment).write(out);
                continue;
            }
            let Some(next) = self.unreliable.front() else { return parts };
            let bytes = size(&next.frame);
            if out.len() + bytes > limit {
                if from + bytes <= limit {
                    return parts;
                }
                let whole = self.take_first();
                self.fragment(whole, in_flight, fates);
                continue;
            }
            let next = self.take_first();
            next.frame.write(out);
            parts.extend(next.tag.map(Part::Whole));
        }
    }

    fn take_first(&mut self) -> Waiting {
        let first = self.unreliable.pop_front().expect("there is a first");
        self.unreliable_bytes -= size(&first.frame);
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
        self.fragments_tagged = whole.tag.is_some();
        if let Some(tag) = whole.tag {
            in_flight.expect_fragments(id, tag, count, fates);
        }
    }

    /// Appends session frames.
    pub(super) fn fill_control(&mut self, out: &mut Vec<u8>) {
        self.control.drain(..).for_each(|frame| frame.write(out));
    }
}

/// Bytes that a message frame takes in a packet, at the most.
fn size(frame: &Frame) -> usize {
    match frame {
        Frame::Unreliable { payload, .. } | Frame::Sequenced { payload, .. } => {
            payload.len() + FRAME_HEAD_BYTES_MAX
        }
        _ => 0,
    }
}
