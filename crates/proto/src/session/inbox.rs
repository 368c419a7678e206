//! The receiving half: ordering, deduplication and reassembly of messages.

use crate::error::PeerMisbehaved;
use crate::ids::ChannelId;
use crate::limits;
use crate::time::Instant;
use crate::wire::cursor::{ReadError, Reader, VARINT_MAX, Write};
use crate::wire::frame::Fragment;
use crate::wire::header::expand;
use crate::{OrderedMap, OrderedSet};
use bytes::Bytes;

/// Reliable messages: each is delivered once; those of an ordered channel wait for the ones before them.
#[derive(Debug, Default)]
pub(super) struct Reliable {
    /// All lower numbers were received.
    next: u64,
    /// Received numbers beyond it; at most [`limits::RELIABLE_WINDOW`].
    beyond: OrderedSet<u64>,
    channels: OrderedMap<ChannelId, Ordered>,
    held_bytes: usize,
}

#[derive(Debug, Default)]
struct Ordered {
    next: u64,
    /// By order, with their numbers.
    held: OrderedMap<u64, (u64, Bytes)>,
}

/// Upper bounds of what an entry of these maps takes in memory: its key, its value, and the free slots around it.
const NUMBER_BYTES: usize = 32;
const HELD_MESSAGE_BYTES: usize = 160;
const SEQUENCED_KEY_BYTES: usize = 64;
const FRAGMENT_ENTRY_BYTES: usize = 128;

impl Reliable {
    /// Bytes of memory that messages and numbers which came too early take.
    pub(super) fn memory_bytes(&self) -> usize {
        let held: usize = self.channels.values().map(|ordered| ordered.held.len()).sum();
        self.held_bytes + held * HELD_MESSAGE_BYTES + self.beyond.len() * NUMBER_BYTES
    }

    /// Every number below was received.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Records a number. Returns false if it was received before.
    pub(super) fn note(&mut self, number: u64) -> Result<bool, PeerMisbehaved> {
        if number >= self.next + limits::RELIABLE_WINDOW {
            return Err(PeerMisbehaved::BeyondWindow);
        }
        if number < self.next || !self.beyond.insert(number) {
            return Ok(false);
        }
        while self.beyond.remove(&self.next) {
            self.next += 1;
        }
        Ok(true)
    }

    /// Adds an ordered message. Passes all messages that are next in order to `deliver`, each with its
    /// number.
    pub(super) fn order(
        &mut self,
        channel: ChannelId,
        (order, number): (u64, u64),
        payload: Bytes,
        mut deliver: impl FnMut(u64, Bytes),
    ) -> Result<(), PeerMisbehaved> {
        let ordered = self.channels.get_or_insert_with(channel, Default::default);
        let ahead = order.checked_sub(ordered.next).ok_or(PeerMisbehaved::BeyondWindow)?;
        if ahead >= limits::RELIABLE_WINDOW || ordered.held.contains_key(&order) {
            return Err(PeerMisbehaved::BeyondWindow);
        }
        if ahead > 0 {
            self.held_bytes += payload.len();
            if self.held_bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
                return Err(PeerMisbehaved::BeyondWindow);
            }
            // A copy, so that a small message does not keep its whole packet in memory.
            ordered.held.insert(order, (number, Bytes::copy_from_slice(&payload)));
            return Ok(());
        }
        deliver(number, payload);
        ordered.next += 1;
        while let Some((number, payload)) = ordered.held.remove(&ordered.next) {
            self.held_bytes -= payload.len();
            deliver(number, payload);
            ordered.next += 1;
        }
        Ok(())
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.next);
        out.put_varint(self.beyond.len() as u64);
        self.beyond.iter().for_each(|number| out.put_varint(number - self.next));
        out.put_varint(self.channels.len() as u64);
        for (channel, ordered) in self.channels.iter() {
            out.put_u8(channel.0);
            out.put_varint(ordered.next);
            out.put_varint(ordered.held.len() as u64);
            for (order, (number, payload)) in ordered.held.iter() {
                out.put_varint(order - ordered.next);
                out.put_varint(*number);
                out.put_bytes(payload);
            }
        }
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let mut read = Reliable { next: body.varint()?, ..Reliable::default() };
        let numbers_max = VARINT_MAX / 2;
        if read.next > numbers_max {
            return Err(ReadError::OutOfRange { field: "next message" });
        }
        for _ in 0..body.varint_max("number count", limits::RELIABLE_WINDOW)? {
            let ahead = body.varint_max("number", limits::RELIABLE_WINDOW)?;
            read.beyond.insert(read.next + ahead);
        }
        for _ in 0..body.varint_max("channel count", u8::MAX.into())? {
            let channel = ChannelId(body.u8()?);
            let mut ordered = Ordered { next: body.varint_max("order", numbers_max)?, ..Ordered::default() };
            for _ in 0..body.varint_max("message count", limits::RELIABLE_WINDOW)? {
                let order = ordered.next + body.varint_max("order", limits::RELIABLE_WINDOW)?;
                let number = body.varint()?;
                let payload = body.bytes_max("message", limits::PAYLOAD_BYTES_MAX)?;
                read.held_bytes += payload.len();
                if read.held_bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
                    return Err(ReadError::OutOfRange { field: "messages" });
                }
                let payload = Bytes::copy_from_slice(&payload);
                ordered.held.insert(order, (number, payload));
            }
            read.channels.insert(channel, ordered);
        }
        Ok(read)
    }
}

/// Sequenced messages: none is delivered after a newer one of the same channel and key. The packet number
/// determines which is newer: a message is sent once, and the newer of two is later in the same packet or in
/// a later one.
#[derive(Debug, Default)]
pub(super) struct Sequenced {
    newest: OrderedMap<(ChannelId, u32), u64>,
}

impl Sequenced {
    /// Bytes of memory that the remembered keys take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.newest.len() * SEQUENCED_KEY_BYTES
    }

    /// Whether no newer message came before this one, from the packet with this number.
    pub(super) fn is_newest(&mut self, channel: ChannelId, key: u32, number: u64) -> bool {
        if let Some(newest) = self.newest.get_mut(&(channel, key)) {
            let is_newest = number >= *newest;
            *newest = number.max(*newest);
            return is_newest;
        }
        if self.newest.len() >= limits::SEQUENCED_KEYS_MAX {
            self.forget_older_half();
        }
        self.newest.insert((channel, key), number);
        true
    }

    /// Drops the least recently used keys. Half of them at once, so that a peer with ever new keys does not
    /// cause a search for each.
    fn forget_older_half(&mut self) {
        let mut numbers: Vec<u64> = self.newest.values().copied().collect();
        numbers.sort_unstable();
        let middle = numbers[numbers.len() / 2];
        self.newest.retain(|_, number| *number > middle);
    }
}

/// Partly received messages.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    /// By the message's number among the fragmented ones.
    partial: OrderedMap<u64, Partial>,
    bytes: usize,
    highest: u64,
    /// Messages below this number will not be reassembled any more.
    given_up_below: u64,
    /// Messages dropped before they were complete.
    pub(super) abandoned: u64,
}

#[derive(Debug)]
struct Partial {
    began: Instant,
    count: u8,
    parts: OrderedMap<u8, Bytes>,
    bytes: usize,
}

/// The result of a fragment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assembly {
    /// It is kept until the others arrive.
    Kept,
    /// It was the last one; this is the whole message.
    Whole(Bytes),
    /// It belongs to a dropped message. Its packet must not be acknowledged: the sender would consider the
    /// message delivered.
    Dropped,
}

impl Fragments {
    /// Bytes of memory that unfinished messages take.
    pub(super) fn memory_bytes(&self) -> usize {
        let parts: usize = self.partial.values().map(|partial| partial.parts.len()).sum();
        self.bytes + parts * FRAGMENT_ENTRY_BYTES
    }

    /// Takes a fragment in. Memory is bounded by [`limits::FRAGMENTED_MESSAGES_MAX`] messages of
    /// [`limits::FRAGMENT_BUFFER_BYTES_MAX`] bytes together (threat 14); beyond either, the oldest message gives way.
    pub(super) fn add(&mut self, fragment: Fragment, now: Instant) -> Assembly {
        self.expire(now);
        let number = expand(fragment.id, self.highest);
        self.highest = self.highest.max(number);
        if number < self.given_up_below {
            return Assembly::Dropped;
        }
        let partial = self.partial.get_or_insert_with(number, || Partial {
            began: now,
            count: fragment.count,
            parts: OrderedMap::new(),
            bytes: 0,
        });
        if partial.count != fragment.count || partial.parts.contains_key(&fragment.index) {
            return Assembly::Dropped;
        }
        partial.bytes += fragment.part.len();
        self.bytes += fragment.part.len();
        // A copy, so that a fragment does not keep the buffer of its packet in memory.
        partial.parts.insert(fragment.index, Bytes::copy_from_slice(&fragment.part));
        if partial.parts.len() == usize::from(partial.count) {
            return self.partial.remove(&number).map_or(Assembly::Dropped, |partial| {
                self.bytes -= partial.bytes;
                let parts: Vec<Bytes> = partial.parts.into_values().collect();
                Assembly::Whole(parts.concat().into())
            });
        }
        while self.partial.len() > limits::FRAGMENTED_MESSAGES_MAX
            || self.bytes > limits::FRAGMENT_BUFFER_BYTES_MAX
        {
            let Some(oldest) = self.partial.keys().next().copied() else { break };
            self.give_up(oldest);
        }
        if self.partial.contains_key(&number) { Assembly::Kept } else { Assembly::Dropped }
    }

    fn give_up(&mut self, number: u64) {
        if let Some(partial) = self.partial.remove(&number) {
            self.bytes -= partial.bytes;
            self.abandoned += 1;
            self.given_up_below = self.given_up_below.max(number + 1);
        }
    }

    /// Drops messages older than [`limits::FRAGMENT_TTL`].
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((&number, _)) =
            self.partial.iter().find(|(_, partial)| partial.began + limits::FRAGMENT_TTL <= now)
        {
            self.give_up(number);
        }
    }

    /// When [`expire`](Self::expire) is due.
    pub(super) fn expires(&self) -> Option<Instant> {
        self.partial.values().map(|partial| partial.began + limits::FRAGMENT_TTL).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fragment(id: u16, index: u8, count: u8) -> Fragment {
        Fragment { id, index, count, part: vec![index; 966].into() }
    }

    #[test]
    fn threat_14_first_fragments_only_leave_bounded_memory() {
        let mut fragments = Fragments::default();
        for id in 0..20_000u16 {
            assert_eq!(fragments.add(fragment(id, 0, 72), Instant::ZERO), Assembly::Kept);
            assert!(fragments.partial.len() <= limits::FRAGMENTED_MESSAGES_MAX);
        }
        assert_eq!(fragments.abandoned, 20_000 - limits::FRAGMENTED_MESSAGES_MAX as u64);
        assert_eq!(fragments.expires(), Some(Instant::ZERO + limits::FRAGMENT_TTL));
        fragments.expire(Instant::ZERO + limits::FRAGMENT_TTL);
        assert_eq!((fragments.partial.len(), fragments.bytes, fragments.expires()), (0, 0, None));
    }

    #[test]
    fn threat_14_two_that_are_almost_whole_leave_bounded_memory() {
        let mut fragments = Fragments::default();
        for id in 0..100u16 {
            for index in 0..68 {
                fragments.add(fragment(id, index, 69), Instant::ZERO);
                assert!(fragments.bytes <= limits::FRAGMENT_BUFFER_BYTES_MAX);
                assert_eq!(fragments.bytes, fragments.partial.values().map(|p| p.bytes).sum::<usize>());
            }
        }
    }

    #[test]
    fn what_was_given_up_is_not_taken_for_whole() {
        let mut fragments = Fragments::default();
        for id in 0..3 {
            assert_eq!(fragments.add(fragment(id, 0, 2), Instant::ZERO), Assembly::Kept);
        }
        assert!(matches!(fragments.add(fragment(1, 1, 2), Instant::ZERO), Assembly::Whole(_)));
        // There is room again, but the first half is gone.
        assert_eq!(fragments.add(fragment(0, 1, 2), Instant::ZERO), Assembly::Dropped);
        assert!(matches!(fragments.add(fragment(2, 1, 2), Instant::ZERO), Assembly::Whole(_)));
    }

    #[test]
    fn numbers_of_fragmented_messages_wrap() {
        let mut fragments = Fragments::default();
        for number in 0..200_000u32 {
            let id = u16::try_from(number % 65_536).unwrap();
            assert_eq!(fragments.add(fragment(id, 0, 2), Instant::ZERO), Assembly::Kept);
            // Some are never completed, and are dropped.
            if number % 7 > 0 {
                assert!(matches!(fragments.add(fragment(id, 1, 2), Instant::ZERO), Assembly::Whole(_)));
            }
        }
    }

    proptest! {
        #[test]
        fn fragments_come_together_in_any_order(order in Just((0u8..9).collect::<Vec<_>>()).prop_shuffle()) {
            let (mut fragments, mut whole) = (Fragments::default(), None);
            for index in order {
                prop_assert_eq!(&whole, &None);
                match fragments.add(fragment(7, index, 9), Instant::ZERO) {
                    Assembly::Whole(bytes) => whole = Some(bytes),
                    Assembly::Kept => {
                        // A duplicate changes nothing.
                        prop_assert_eq!(fragments.add(fragment(7, index, 9), Instant::ZERO), Assembly::Dropped);
                    }
                    Assembly::Dropped => prop_assert!(false, "nothing was given up"),
                }
            }
            let meant: Vec<u8> = (0..9).flat_map(|index| [index; 966]).collect();
            prop_assert_eq!(whole, Some(Bytes::from(meant)));
        }

        #[test]
        fn ordered_messages_come_in_order_and_once(order in Just((0u64..40).collect::<Vec<_>>()).prop_shuffle()) {
            let (mut reliable, mut got) = (Reliable::default(), Vec::new());
            for number in order {
                for _ in 0..2 {
                    if reliable.note(number).unwrap() {
                        let payload = Bytes::from(vec![u8::try_from(number).unwrap()]);
                        let places = (number, number);
                        reliable.order(ChannelId(3), places, payload, |number, _| got.push(number)).unwrap();
                    }
                }
            }
            prop_assert_eq!(got, (0u64..40).collect::<Vec<_>>());
            prop_assert_eq!((reliable.next(), reliable.held_bytes, reliable.beyond.len()), (40, 0, 0));
        }
    }

    #[test]
    fn a_number_beyond_the_window_is_refused() {
        let mut reliable = Reliable::default();
        assert_eq!(reliable.note(limits::RELIABLE_WINDOW), Err(PeerMisbehaved::BeyondWindow));
        assert_eq!(reliable.note(limits::RELIABLE_WINDOW - 1), Ok(true));
    }

    #[test]
    fn no_key_is_remembered_for_ever() {
        let mut sequenced = Sequenced::default();
        for key in 0..10_000 {
            assert!(sequenced.is_newest(ChannelId(2), key, u64::from(key) + 5));
            assert!(sequenced.newest.len() <= limits::SEQUENCED_KEYS_MAX);
        }
        assert!(!sequenced.is_newest(ChannelId(2), 9_999, 10_003));
        assert!(sequenced.is_newest(ChannelId(2), 9_999, 10_004));
        // The more recent half is always known.
        assert!(!sequenced.is_newest(ChannelId(2), 9_999 - 200, 0));
    }

    #[test]
    fn a_held_message_does_not_keep_its_packet() {
        let mut reliable = Reliable::default();
        let packet = Bytes::from(vec![0; 60_000]);
        reliable.order(ChannelId(3), (1, 1), packet.slice(0..1), |_, _| ()).unwrap();
        assert!(packet.is_unique());
    }
}
