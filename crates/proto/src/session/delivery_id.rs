//! Ids of unreliable messages whose fate their sender wants to know.

use crate::ids::{Epoch, MemberId};

/// Names an unreliable message whose fate its sender wants to know: [`Event::Delivered`](super::Event::Delivered) or
/// [`Event::Lost`](super::Event::Lost).
///
/// Streams of state are told apart by it: a packet of the room's has its number, one of a member's own state has the member
/// above [`NUMBER_BITS`](Self::NUMBER_BITS) bits of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryId(pub u64);

impl DeliveryId {
    /// Bits that the number of a packet has in a delivery id; no stream lives to send so many.
    pub const NUMBER_BITS: u32 = 40;

    /// Bits of that number that count the packets of one epoch; the others are the epoch's lowest 16.
    const NUMBER_BITS_OF_EPOCH: u32 = 24;

    /// The number that the first packet of a stream has under an epoch: higher than all of the epoch before, until 2^16 epochs later, when
    /// the oldest streams are long forgotten.
    pub const fn first_number(epoch: Epoch) -> u64 {
        (epoch.0 as u64 & 0xffff) << Self::NUMBER_BITS_OF_EPOCH
    }

    /// The delivery id of a packet of the room's state.
    pub const fn of_state(number: u64) -> Self {
        DeliveryId(number & Self::NUMBERS)
    }

    /// The delivery id of a packet of the own state of `source`. Ids of members have fewer than 24 bits: a room does not seat more.
    pub const fn of_replica(source: MemberId, number: u64) -> Self {
        DeliveryId((source.0 as u64 + 1) << Self::NUMBER_BITS | number & Self::NUMBERS)
    }

    /// Whose stream a packet is of, `None` for the room's, and its number in it.
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
