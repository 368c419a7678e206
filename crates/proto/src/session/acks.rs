//! Acknowledgement of packets: the receiver's window, and the sender's packets in flight.

use super::DeliveryId;
use crate::OrderedMap;
use crate::error::PeerMisbehaved;
use crate::limits;
use crate::time::Instant;
use crate::wire::header::{Ack, expand};
use core::time::Duration;
use std::collections::VecDeque;

/// The received packets, and which of them to acknowledge.
#[derive(Debug, Default)]
pub(super) struct Received {
    highest: Option<u64>,
    /// The [`limits::REPLAY_WINDOW`] packets before the highest: bit `i` of the whole stands for
    /// `highest − 1 − i`.
    before: [u64; WORDS],
    /// The content of an acknowledgement. A packet with a dropped part was received but is not in it.
    taken: Option<Taken>,
    /// The lowest number taken since the last acknowledgement was written.
    unwritten: Option<u64>,
    /// Acknowledgements that must be sent beside newer ones: their content is beyond those 32 bits.
    snapshots: VecDeque<Ack>,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    newest: u64,
    /// Bit `i` stands for `newest − 1 − i`.
    bits: u32,
}

const WORDS: usize = (limits::REPLAY_WINDOW / 64) as usize;

/// Maximum number of such acknowledgements. A sender tracks no more packets than they cover.
const SNAPSHOTS_MAX: usize = limits::IN_FLIGHT_MAX / 32;

/// How a packet's number relates to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Not received before.
    New,
    /// A duplicate, or too old for the window.
    Repeated,
}

impl Received {
    /// Returns the full number of a packet with the low half `wire`.
    pub(super) fn expand(&self, wire: u16) -> u64 {
        expand(wire, self.highest.unwrap_or(0))
    }

    /// Records a packet.
    pub(super) fn note(&mut self, number: u64) -> Arrival {
        match self.highest {
            None => self.highest = Some(number),
            Some(highest) if number > highest => {
                self.shift(number - highest);
                self.highest = Some(number);
            }
            Some(highest) => {
                let Some(behind) = (highest - number).checked_sub(1) else { return Arrival::Repeated };
                if behind >= limits::REPLAY_WINDOW || self.bit(behind) {
                    return Arrival::Repeated;
                }
                self.before[(behind / 64) as usize] |= 1 << (behind % 64);
            }
        }
        Arrival::New
    }

    /// Records that a packet must be acknowledged: no part of it was dropped.
    #[allow(clippy::cast_possible_truncation)] // 32 bits is what the wire carries
    pub(super) fn take(&mut self, number: u64) {
        let Some(mut taken) = self.taken else {
            self.taken = Some(Taken { newest: number, bits: 0 });
            self.unwritten = Some(number);
            return;
        };
        if self.unwritten.is_some_and(|lowest| number.saturating_sub(lowest) > 32) {
            self.snapshots.extend(self.ack());
            self.unwritten = None;
            if self.snapshots.len() > SNAPSHOTS_MAX {
                self.snapshots.pop_front();
            }
        }
        match number.checked_sub(taken.newest) {
            Some(0) => return,
            Some(by @ 1..=32) => {
                taken = Taken { newest: number, bits: ((u64::from(taken.bits) << 1 | 1) << (by - 1)) as u32 };
            }
            Some(_) => taken = Taken { newest: number, bits: 0 },
            None if taken.newest - number <= 32 => taken.bits |= 1 << (taken.newest - number - 1),
            None => return,
        }
        self.taken = Some(taken);
        self.unwritten = Some(self.unwritten.map_or(number, |lowest| lowest.min(number)));
    }

    fn bit(&self, behind: u64) -> bool {
        self.before[(behind / 64) as usize] & (1 << (behind % 64)) != 0
    }

    /// Moves the window up; the old highest becomes bit `by − 1`.
    fn shift(&mut self, by: u64) {
        if by > limits::REPLAY_WINDOW {
            self.before = [0; WORDS];
            return;
        }
        let (words, bits) = ((by / 64) as usize, by % 64);
        for at in (0..WORDS).rev() {
            let from = |index: Option<usize>| index.map_or(0, |index| self.before[index]);
            let low = from(at.checked_sub(words));
            let carry = from(at.checked_sub(words + 1));
            self.before[at] = if bits == 0 { low } else { low << bits | carry >> (64 - bits) };
        }
        self.before[((by - 1) / 64) as usize] |= 1 << ((by - 1) % 64);
    }

    /// Returns the acknowledgement for the next packet.
    #[allow(clippy::cast_possible_truncation)] // the wire carries the low halves
    pub(super) fn ack(&self) -> Option<Ack> {
        self.taken.map(|taken| Ack { newest: taken.newest as u16, bits: taken.bits })
    }

    /// Takes an older acknowledgement that must still be sent, on a packet of its own.
    pub(super) fn take_snapshot(&mut self) -> Option<Ack> {
        self.snapshots.pop_front()
    }

    /// Records that [`ack`](Self::ack) was sent.
    pub(super) fn acked(&mut self) {
        self.unwritten = None;
        self.snapshots.clear();
    }
}

/// A tracked part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A whole tracked message.
    Whole(DeliveryId),
    /// A fragment of a tracked message, by the message's fragment id.
    Fragment(u16),
}

#[derive(Debug)]
struct Sent {
    number: u64,
    at: Instant,
    parts: Vec<Part>,
}

/// The fate of a tracked message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Delivered(DeliveryId),
    Lost(DeliveryId),
}

/// Sent packets whose fate is not known.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    next: u64,
    /// In ascending order. Only packets with tracked parts are kept.
    sent: VecDeque<Sent>,
    /// The number of unacknowledged fragments of each tracked message.
    fragments: OrderedMap<u16, (DeliveryId, usize)>,
    arrivals: Arrivals,
}

/// Which numbered packets arrived, according to the peer, whatever their content.
#[derive(Debug, Default)]
struct Arrivals {
    /// All packets below this one are decided.
    judged: u64,
    /// Bit `i` stands for packet `judged + i`, which arrived.
    arrived: u64,
    /// Packets that the peer can no longer acknowledge.
    lost: u64,
}

/// An acknowledgement covers its newest packet and this many before it.
const ACK_SPAN: u64 = 32;

impl Arrivals {
    /// Takes in an acknowledgement whose newest packet has the full number `newest`.
    fn note(&mut self, newest: u64, bits: u32, in_order: bool) {
        if in_order {
            self.judged = self.judged.max(newest + 1);
            return;
        }
        // Packets beyond its span can no longer be acknowledged.
        while self.judged + ACK_SPAN < newest {
            self.lost += u64::from(self.arrived & 1 == 0);
            self.arrived >>= 1;
            self.judged += 1;
        }
        let covered = u64::from(bits) << 1 | 1;
        for behind in (0..=ACK_SPAN).filter(|behind| covered & (1 << behind) != 0) {
            let at = newest.checked_sub(behind).and_then(|number| number.checked_sub(self.judged));
            self.arrived |= at.map_or(0, |at| 1 << at);
        }
    }
}

/// A packet counts as lost when one this much newer is acknowledged and it is not (RFC 9002 §6.1.1).
const REORDERING: u64 = 3;

impl InFlight {
    /// The number of the next packet.
    pub(super) fn next_number(&self) -> u64 {
        self.next
    }

    /// Records that the next packet was sent with these parts.
    pub(super) fn note(&mut self, at: Instant, parts: Vec<Part>, fates: &mut Vec<Fate>) {
        let number = self.next;
        self.next += 1;
        if parts.is_empty() {
            return;
        }
        self.sent.push_back(Sent { number, at, parts });
        if self.sent.len() > limits::IN_FLIGHT_MAX {
            self.lose(0, fates);
        }
    }

    /// Records that the fragments of a tracked message are about to be sent.
    pub(super) fn expect_fragments(
        &mut self,
        id: u16,
        delivery_id: DeliveryId,
        count: usize,
        fates: &mut Vec<Fate>,
    ) {
        if let Some((old, _)) = self.fragments.insert(id, (delivery_id, count)) {
            fates.push(Fate::Lost(old));
        }
    }

    /// Records that the remaining fragments of a message will never be sent.
    pub(super) fn give_up_fragments(&mut self, id: u16, fates: &mut Vec<Fate>) {
        fates.extend(self.fragments.remove(&id).map(|(delivery_id, _)| Fate::Lost(delivery_id)));
    }

    /// Packets that count as lost, whatever their content.
    pub(super) fn lost(&self) -> u64 {
        self.arrivals.lost
    }

    /// Takes in an acknowledgement. On a link that is `in_order`, all packets up to the newest have arrived.
    /// On another link, packets well below it that it leaves out are lost.
    pub(super) fn acked(
        &mut self,
        ack: Ack,
        in_order: bool,
        fates: &mut Vec<Fate>,
    ) -> Result<(), PeerMisbehaved> {
        let Some(last) = self.next.checked_sub(1) else {
            return Err(PeerMisbehaved::AckedTheFuture { what: "packet" });
        };
        let newest = expand(ack.newest, last);
        if newest > last {
            return Err(PeerMisbehaved::AckedTheFuture { what: "packet" });
        }
        self.arrivals.note(newest, ack.bits, in_order);
        let covered = |number: u64| {
            in_order
                || number == newest
                || number < newest && newest - number <= 32 && ack.bits & (1 << (newest - number - 1)) != 0
        };
        let mut at = 0;
        while at < self.sent.len() && self.sent[at].number <= newest {
            let number = self.sent[at].number;
            if covered(number) {
                let sent = self.sent.remove(at).expect("the index is below the length");
                sent.parts.into_iter().for_each(|part| self.part_arrived(part, fates));
            } else if number + REORDERING <= newest {
                self.lose(at, fates);
            } else {
                at += 1;
            }
        }
        Ok(())
    }

    /// Counts every packet as lost that was sent longer than `after` ago.
    pub(super) fn expire(&mut self, now: Instant, after: Duration, fates: &mut Vec<Fate>) {
        while self.sent.front().is_some_and(|sent| sent.at + after <= now) {
            self.lose(0, fates);
        }
    }

    /// Counts all packets as lost: the connection is gone, or the session is over.
    pub(super) fn lose_all(&mut self, fates: &mut Vec<Fate>) {
        while !self.sent.is_empty() {
            self.lose(0, fates);
        }
        // The rest has fragments that were never sent.
        let unsent = std::mem::take(&mut self.fragments);
        fates.extend(unsent.into_values().map(|(delivery_id, _)| Fate::Lost(delivery_id)));
    }

    /// When the oldest packet was sent.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.sent.front().map(|sent| sent.at)
    }

    fn lose(&mut self, at: usize, fates: &mut Vec<Fate>) {
        let Some(sent) = self.sent.remove(at) else { return };
        for part in sent.parts {
            match part {
                Part::Whole(delivery_id) => fates.push(Fate::Lost(delivery_id)),
                Part::Fragment(id) => {
                    fates.extend(self.fragments.remove(&id).map(|(delivery_id, _)| Fate::Lost(delivery_id)));
                }
            }
        }
    }

    fn part_arrived(&mut self, part: Part, fates: &mut Vec<Fate>) {
        match part {
            Part::Whole(delivery_id) => fates.push(Fate::Delivered(delivery_id)),
            Part::Fragment(id) => {
                // A missing entry belongs to a message with another lost fragment.
                let Some((delivery_id, left)) = self.fragments.get_mut(&id) else { return };
                *left -= 1;
                if *left == 0 {
                    fates.push(Fate::Delivered(*delivery_id));
                    self.fragments.remove(&id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Threat 4: a packet is accepted once, compared with a model that remembers every number.
        #[test]
        fn threat_04_a_packet_is_taken_once(steps in proptest::collection::vec(-300i64..300, 1..400)) {
            let (mut received, mut model, mut highest) = (Received::default(), BTreeSet::new(), None);
            let mut at = 1_000i64;
            for step in steps {
                at = (at + step).max(0);
                let number = u64::try_from(at).unwrap();
                #[allow(clippy::cast_possible_truncation)]
                let expanded = received.expand(number as u16);
                prop_assert!(highest.is_none() || expanded == number);
                let in_window = highest.is_none_or(|h: u64| number > h || h - number <= limits::REPLAY_WINDOW);
                let fresh = in_window && model.insert(number);
                prop_assert_eq!(received.note(number) == Arrival::New, fresh);
                if fresh {
                    received.take(number);
                }
                highest = highest.max(Some(number));
                let ack = received.ack().unwrap();
                for bit in 0..32 {
                    let said = ack.bits & (1 << bit) != 0;
                    let meant = highest.unwrap().checked_sub(bit + 1).is_some_and(|n| model.contains(&n));
                    prop_assert_eq!(said, meant, "bit {}", bit);
                }
            }
        }

        /// Every tracked message has exactly one fate, whatever is lost.
        #[test]
        fn each_tag_has_one_fate(arrives in proptest::collection::vec(any::<bool>(), 1..200)) {
            let (mut sender, mut receiver, mut fates) = (InFlight::default(), Received::default(), Vec::new());
            for (delivery_id, arrives) in arrives.iter().enumerate() {
                let number = sender.next_number();
                sender.note(Instant::ZERO, vec![Part::Whole(DeliveryId(delivery_id as u64))], &mut fates);
                if *arrives {
                    receiver.take(number);
                    sender.acked(receiver.ack().unwrap(), false, &mut fates).unwrap();
                }
            }
            sender.lose_all(&mut fates);
            let mut seen = BTreeSet::new();
            for fate in &fates {
                let (Fate::Delivered(delivery_id) | Fate::Lost(delivery_id)) = fate;
                prop_assert!(seen.insert(delivery_id.0));
                let arrived = arrives[usize::try_from(delivery_id.0).unwrap()];
                prop_assert_eq!(matches!(fate, Fate::Delivered(_)), arrived);
            }
            prop_assert_eq!(seen.len(), arrives.len());
        }
    }

    proptest! {
        /// Loss is counted for untracked packets, too.
        #[test]
        fn each_packet_that_is_lost_is_counted_once(arrives in proptest::collection::vec(any::<bool>(), 64..400)) {
            let (mut sender, mut receiver, mut fates) = (InFlight::default(), Received::default(), Vec::new());
            for arrives in &arrives {
                let number = sender.next_number();
                sender.note(Instant::ZERO, Vec::new(), &mut fates);
                if *arrives {
                    receiver.take(number);
                    sender.acked(receiver.ack().unwrap(), false, &mut fates).unwrap();
                }
            }
            // The last ones that arrived move all before them beyond the span.
            for _ in 0..=ACK_SPAN {
                receiver.take(sender.next_number());
                sender.note(Instant::ZERO, Vec::new(), &mut fates);
                sender.acked(receiver.ack().unwrap(), false, &mut fates).unwrap();
            }
            prop_assert_eq!(sender.lost(), arrives.iter().filter(|arrives| !**arrives).count() as u64);
        }
    }

    #[test]
    fn a_peer_cannot_acknowledge_what_was_never_sent() {
        let mut sender = InFlight::default();
        let ack = Ack { newest: 0, bits: 0 };
        assert!(sender.acked(ack, false, &mut Vec::new()).is_err());
        sender.note(Instant::ZERO, Vec::new(), &mut Vec::new());
        assert!(sender.acked(ack, false, &mut Vec::new()).is_ok());
        assert!(sender.acked(Ack { newest: 1, bits: 0 }, false, &mut Vec::new()).is_err());
    }

    #[test]
    fn a_burst_beyond_the_ack_bits_is_acknowledged_in_full() {
        // Each packet, and every third: 32 bits cover a span of numbers, not a count of packets.
        for step in [1, 3] {
            let (mut sender, mut receiver, mut fates) =
                (InFlight::default(), Received::default(), Vec::new());
            for delivery_id in 0..500 {
                if delivery_id % step == 0 {
                    receiver.take(sender.next_number());
                }
                sender.note(Instant::ZERO, vec![Part::Whole(DeliveryId(delivery_id))], &mut fates);
            }
            while let Some(ack) = receiver.take_snapshot() {
                sender.acked(ack, false, &mut fates).unwrap();
            }
            sender.acked(receiver.ack().unwrap(), false, &mut fates).unwrap();
            let delivered = fates.iter().filter(|fate| matches!(fate, Fate::Delivered(_))).count();
            assert_eq!(delivered as u64, 500u64.div_ceil(step));
        }
    }

    #[test]
    fn acknowledgements_that_nobody_takes_are_bounded() {
        let mut receiver = Received::default();
        (0..1_000_000).for_each(|number| receiver.take(number));
        assert!(receiver.snapshots.len() <= SNAPSHOTS_MAX);
    }

    #[test]
    fn a_link_in_order_needs_no_bits() {
        let (mut sender, mut fates) = (InFlight::default(), Vec::new());
        for delivery_id in 0..100 {
            sender.note(Instant::ZERO, vec![Part::Whole(DeliveryId(delivery_id))], &mut fates);
        }
        sender.acked(Ack { newest: 98, bits: 0 }, true, &mut fates).unwrap();
        assert_eq!(
            fates,
            (0..99).map(|delivery_id| Fate::Delivered(DeliveryId(delivery_id))).collect::<Vec<_>>()
        );
    }

    #[test]
    fn fragments_that_never_left_have_a_fate_too() {
        let (mut sender, mut fates) = (InFlight::default(), Vec::new());
        sender.expect_fragments(0, DeliveryId(7), 3, &mut fates);
        sender.lose_all(&mut fates);
        sender.lose_all(&mut fates);
        assert_eq!(fates, [Fate::Lost(DeliveryId(7))]);
    }
}
