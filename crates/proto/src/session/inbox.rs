//! The receiving half: order, repetition and fragments of messages.

use crate::error::PeerMisbehaved;
use crate::ids::ChannelId;
use crate::limits;
use crate::time::Instant;
use crate::wire::frame::Fragment;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Reliable messages: each is taken once; those of an ordered channel wait for the ones before them.
#[derive(Debug, Default)]
pub(super) struct Reliable {
    /// Every number below was received.
    next: u64,
    /// Numbers received beyond it; at most [`limits::RELIABLE_WINDOW`].
    beyond: BTreeSet<u64>,
    channels: BTreeMap<ChannelId, Ordered>,
    held_bytes: usize,
}

#[derive(Debug, Default)]
struct Ordered {
    next: u64,
    held: BTreeMap<u64, Bytes>,
}

impl Reliable {
    /// Every number below was received.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Notes a number; false if it was received before.
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

    /// Takes an ordered message in and gives those whose turn it is, through `deliver`.
    pub(super) fn order(
        &mut self,
        channel: ChannelId,
        order: u64,
        payload: Bytes,
        mut deliver: impl FnMut(Bytes),
    ) -> Result<(), PeerMisbehaved> {
        let ordered = self.channels.entry(channel).or_default();
        let ahead = order.checked_sub(ordered.next).ok_or(PeerMisbehaved::BeyondWindow)?;
        if ahead >= limits::RELIABLE_WINDOW || ordered.held.contains_key(&order) {
            return Err(PeerMisbehaved::BeyondWindow);
        }
        if ahead > 0 {
            self.held_bytes += payload.len();
            if self.held_bytes > limits::RELIABLE_QUEUE_BYTES_MAX {
                return Err(PeerMisbehaved::BeyondWindow);
            }
            ordered.held.insert(order, payload);
            return Ok(());
        }
        deliver(payload);
        ordered.next += 1;
        while let Some(payload) = ordered.held.remove(&ordered.next) {
            self.held_bytes -= payload.len();
            deliver(payload);
            ordered.next += 1;
        }
        Ok(())
    }
}

/// Sequenced messages: none is taken after a newer one of the same channel and key.
#[derive(Debug, Default)]
pub(super) struct Sequenced {
    newest: BTreeMap<(ChannelId, u32), u16>,
    /// Keys in the order in which they were first seen, to forget the oldest of too many.
    seen: VecDeque<(ChannelId, u32)>,
}

impl Sequenced {
    /// Whether the message is newer than all that came before.
    #[allow(clippy::cast_possible_wrap)] // the distance on a circle of 2¹⁶
    pub(super) fn is_newest(&mut self, channel: ChannelId, key: u32, sequence: u16) -> bool {
        if let Some(newest) = self.newest.get_mut(&(channel, key)) {
            let is_newer = sequence.wrapping_sub(*newest) as i16 > 0;
            if is_newer {
                *newest = sequence;
            }
            return is_newer;
        }
        if self.seen.len() >= limits::SEQUENCED_KEYS_MAX
            && let Some(oldest) = self.seen.pop_front()
        {
            self.newest.remove(&oldest);
        }
        self.seen.push_back((channel, key));
        self.newest.insert((channel, key), sequence);
        true
    }
}

/// Messages of which some fragments came.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    partial: Vec<Partial>,
    /// Messages that were given up unfinished.
    pub(super) abandoned: u64,
}

#[derive(Debug)]
struct Partial {
    id: u16,
    began: Instant,
    parts: Vec<Option<Bytes>>,
    left: usize,
}

impl Fragments {
    /// Takes a fragment in; gives the whole if it was the last. Memory is bounded by
    /// [`limits::FRAGMENTED_MESSAGES_MAX`] messages of [`limits::FRAGMENTS_MAX`] parts (threat 14).
    pub(super) fn add(&mut self, fragment: Fragment, now: Instant) -> Option<Bytes> {
        self.expire(now);
        let count = usize::from(fragment.count);
        let at = match self.partial.iter().position(|partial| partial.id == fragment.id) {
            Some(at) if self.partial[at].parts.len() == count => at,
            Some(at) => {
                // Another message under the same id: the number has wrapped, and the older will not be finished.
                self.partial.remove(at);
                self.abandoned += 1;
                self.begin(fragment.id, count, now)
            }
            None => self.begin(fragment.id, count, now),
        };
        let partial = &mut self.partial[at];
        let slot = partial.parts.get_mut(usize::from(fragment.index))?;
        if slot.is_none() {
            *slot = Some(fragment.part);
            partial.left -= 1;
        }
        if partial.left > 0 {
            return None;
        }
        let partial = self.partial.remove(at);
        let parts: Vec<Bytes> = partial.parts.into_iter().flatten().collect();
        Some(parts.concat().into())
    }

    fn begin(&mut self, id: u16, count: usize, now: Instant) -> usize {
        if self.partial.len() >= limits::FRAGMENTED_MESSAGES_MAX {
            self.partial.remove(0);
            self.abandoned += 1;
        }
        self.partial.push(Partial { id, began: now, parts: vec![None; count], left: count });
        self.partial.len() - 1
    }

    /// Gives up what is older than [`limits::FRAGMENT_TTL`].
    pub(super) fn expire(&mut self, now: Instant) {
        let before = self.partial.len();
        self.partial.retain(|partial| partial.began + limits::FRAGMENT_TTL > now);
        self.abandoned += (before - self.partial.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fragment(id: u16, index: u8, count: u8) -> Fragment {
        Fragment { id, index, count, part: vec![index; 10].into() }
    }

    #[test]
    fn first_fragments_only_leave_bounded_memory() {
        let mut fragments = Fragments::default();
        for id in 0..10_000 {
            assert_eq!(fragments.add(fragment(id, 0, 72), Instant::ZERO), None);
            assert!(fragments.partial.len() <= limits::FRAGMENTED_MESSAGES_MAX);
        }
        assert_eq!(fragments.abandoned, 10_000 - limits::FRAGMENTED_MESSAGES_MAX as u64);
        fragments.expire(Instant::ZERO + limits::FRAGMENT_TTL);
        assert!(fragments.partial.is_empty());
    }

    proptest! {
        #[test]
        fn fragments_come_together_in_any_order(order in Just((0u8..9).collect::<Vec<_>>()).prop_shuffle()) {
            let (mut fragments, mut wholes) = (Fragments::default(), Vec::new());
            for index in order {
                prop_assert!(wholes.is_empty());
                // Each comes twice; only the last that was missing completes the message.
                wholes.extend(fragments.add(fragment(7, index, 9), Instant::ZERO));
                if wholes.is_empty() {
                    wholes.extend(fragments.add(fragment(7, index, 9), Instant::ZERO));
                }
            }
            let meant: Vec<u8> = (0..9).flat_map(|index| [index; 10]).collect();
            prop_assert_eq!(wholes, vec![Bytes::from(meant)]);
        }

        #[test]
        fn ordered_messages_come_in_order_and_once(order in Just((0u64..40).collect::<Vec<_>>()).prop_shuffle()) {
            let (mut reliable, mut got) = (Reliable::default(), Vec::new());
            for number in order {
                for _ in 0..2 {
                    if reliable.note(number).unwrap() {
                        reliable.order(ChannelId(3), number, Bytes::from(vec![u8::try_from(number).unwrap()]), |b| got.push(b[0])).unwrap();
                    }
                }
            }
            prop_assert_eq!(got, (0u8..40).collect::<Vec<_>>());
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
            assert!(sequenced.is_newest(ChannelId(2), key, 0));
        }
        assert!(sequenced.newest.len() <= limits::SEQUENCED_KEYS_MAX);
        assert!(!sequenced.is_newest(ChannelId(2), 9_999, 0));
        assert!(!sequenced.is_newest(ChannelId(2), 9_999, u16::MAX));
        assert!(sequenced.is_newest(ChannelId(2), 9_999, 1));
    }
}
