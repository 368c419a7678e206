//! Deferred acknowledgements: reliable messages that the host consumed, but whose effect the hub does not
//! have yet.
//!
//! In a room that migrates, the host's state records up to which message it has consumed them. The host
//! acknowledges a message once the hub has all of that state. The next host receives the rest again, so each
//! message counts once even if packets were lost. A message is consumed when the game polls or steps again
//! after reading it.

use parlor_proto::Tick;
use std::collections::VecDeque;

/// Bytes that may stay unacknowledged. Above the limit all are acknowledged: a host whose game is stalled
/// then keeps its connection, but gives up exactly-once delivery.
const DEFERRED_BYTES_MAX: usize = 64 * 1024;

/// Overhead counted for each message.
const MESSAGE_BYTES: usize = 64;

/// Ticks recorded one by one at most.
const RECORDED_MAX: usize = 64;

/// The state machine. See the [module](self).
#[derive(Clone, Debug, Default)]
pub(crate) struct DeferredAcks {
    /// Bytes of all unacknowledged messages.
    bytes: usize,
    /// Bytes of those that the state records as consumed.
    recorded_bytes: usize,
    /// Messages that the game has read: an exclusive upper bound of their numbers, and their bytes not
    /// counted as recorded.
    read: Option<(u64, usize)>,
    /// Messages that the state records as consumed: from which tick on, an exclusive upper bound of their
    /// numbers, and their bytes beyond the previous entry.
    recorded: VecDeque<(Tick, u64, usize)>,
}

impl DeferredAcks {
    /// Notes a received message that the game has not read. Returns whether its acknowledgement may be
    /// deferred.
    pub(crate) fn came(&mut self, bytes: usize) -> bool {
        self.bytes += bytes + MESSAGE_BYTES;
        self.bytes <= DEFERRED_BYTES_MAX
    }

    /// Notes that every message below number `received` is queued as an event, or held: `held` has the number
    /// and the bytes of each of those.
    pub(crate) fn has_read(&mut self, received: u64, held: impl Iterator<Item = (u64, usize)>) {
        let mut waiting = self.bytes - self.recorded_bytes;
        let mut below = received;
        for (number, bytes) in held {
            below = below.min(number);
            // What came before this process was the host is not counted.
            waiting = waiting.saturating_sub(bytes + MESSAGE_BYTES);
        }
        self.read = (waiting > 0).then_some((below, waiting));
    }

    /// The exclusive upper bound of the messages that the game has read; `None` if no acknowledgement is
    /// owed.
    pub(crate) fn read(&self) -> Option<u64> {
        self.read.map(|(number, _)| number)
    }

    /// Notes that the state of `tick` records every message below `number` as consumed.
    pub(crate) fn recorded(&mut self, number: u64, tick: Tick) {
        if let Some((number, bytes)) = self.read.take_if(|(read, _)| *read <= number) {
            self.recorded_bytes += bytes;
            // When the list is full, the newest entries are merged.
            let is_full = self.recorded.len() == RECORDED_MAX;
            let last = self.recorded.pop_back_if(|_| is_full);
            let bytes = bytes + last.map_or(0, |(.., bytes)| bytes);
            self.recorded.push_back((tick, number, bytes));
        }
    }

    /// Notes that the hub has all of the state of `tick`. Returns the new exclusive upper bound to
    /// acknowledge, if it grew. The inner `None` stands for all received messages, because too many bytes
    /// wait.
    pub(crate) fn release(&mut self, tick: Tick) -> Option<Option<u64>> {
        let mut below = None;
        while let Some((_, number, bytes)) = self.recorded.pop_front_if(|(of, ..)| !of.is_newer_than(tick)) {
            self.bytes -= bytes;
            self.recorded_bytes -= bytes;
            below = Some(number);
        }
        below.map(|below| (self.bytes <= DEFERRED_BYTES_MAX).then_some(below))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threat_25_a_message_that_is_held_is_neither_read_nor_forgotten() {
        let mut acks = DeferredAcks::default();
        for _ in 0..3 {
            assert!(acks.came(10));
        }
        acks.has_read(8, [(6, 10), (7, 10)].into_iter());
        assert_eq!(acks.read(), Some(6), "of 5, 6 and 7 the game has one");
        acks.recorded(6, Tick(1));
        acks.has_read(8, [(6, 10), (7, 10)].into_iter());
        assert_eq!((acks.read(), acks.release(Tick(1))), (None, Some(Some(6))));
        acks.has_read(8, core::iter::empty());
        assert_eq!(acks.read(), Some(8));
        acks.recorded(8, Tick(2));
        assert_eq!(acks.release(Tick(2)), Some(Some(8)));
    }
}
