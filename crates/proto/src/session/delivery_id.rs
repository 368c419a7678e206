//! Ids of unreliable messages whose fate is tracked.

use crate::ids::{Epoch, MemberId};

/// Identifies an unreliable message whose fate is reported to the sender:
/// [`Event::Delivered`](super::Event::Delivered) or [`Event::Lost`](super::Event::Lost).
///
/// It also identifies a stream of state. A packet of the room's stream has its number alone; a packet of a
/// member's own state has the member above the [`NUMBER_BITS`](Self::NUMBER_BITS) bits of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

impl DeliveryId {
    /// Bits of a packet's number in a delivery id; no stream lives long enough to exceed them.
    pub const NUMBER_BITS: u32 = 40;

    /// Bits of that number that count the packets of one epoch; the others are the lowest 16 of the epoch.
    const NUMBER_BITS_OF_EPOCH: u32 = 24;

    /// The number of a stream's first packet under an epoch. It is higher than all of the epoch before. It
    /// repeats after 2^16 epochs, when the oldest streams are long forgotten.
    pub const fn first_number(epoch: Epoch) -> u64 {
        (epoch.0 as u64 & 0xffff) << Self::NUMBER_BITS_OF_EPOCH
    }

    /// The delivery id of a packet of the room's state.
    pub const fn of_state(number: u64) -> Self {
        DeliveryId(number & Self::NUMBERS)
    }

    /// The delivery id of a packet of the own state of `source`. Member ids have fewer than 24 bits: a room
    /// never has more members.
    pub const fn of_replica(source: MemberId, number: u64) -> Self {
        DeliveryId((source.0 as u64 + 1) << Self::NUMBER_BITS | number & Self::NUMBERS)
    }

    /// The owner of the packet's stream, `None` for the room's, and its number in it.
    #[allow(clippy::cast_possible_truncation)] // what is left are 24 bits
    pub const fn stream(self) -> (Option<MemberId>, u64) {
        let number = self.0 & Self::NUMBERS;
        match (self.0 >> Self::NUMBER_BITS).checked_sub(1) {
            Some(source) => (Some(MemberId(source as u32)), number),
            None => (None, number),
        }
    }

    const NUMBERS: u64 = (1 << Self::NUMBER_BITS) - 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_do_not_share_ids() {
        for number in [0, 1, 77, DeliveryId::NUMBERS] {
            assert_eq!(DeliveryId::of_state(number).stream(), (None, number));
            for source in [0, 1, 255, 0xffff] {
                let source = MemberId(source);
                assert_eq!(DeliveryId::of_replica(source, number).stream(), (Some(source), number));
            }
        }
    }
}
