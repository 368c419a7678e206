//! What a caller calls an unreliable message whose fate it wants to know.

use crate::ids::MemberId;

/// A caller's name for an unreliable message whose fate it wants to know.
///
/// Streams of state are told apart by it: a packet of the room's has its number, one of a member's own state has the member
/// above [`NUMBER_BITS`](Self::NUMBER_BITS) bits of number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// Bits that the number of a packet has in a tag; no stream lives to send so many.
    pub const NUMBER_BITS: u32 = 40;

    /// The tag of a packet of the room's state.
    #[must_use]
    pub const fn of_state(number: u64) -> Self {
        Tag(number & Self::NUMBERS)
    }

    /// The tag of a packet of the own state of `source`. Ids of members have fewer than 24 bits: a room does not seat more.
    #[must_use]
    pub const fn of_replica(source: MemberId, number: u64) -> Self {
        Tag((source.0 as u64 + 1) << Self::NUMBER_BITS | number & Self::NUMBERS)
    }

    /// Whose stream a packet is of, `None` for the room's, and its number in it.
    #[must_use]
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
    fn streams_do_not_share_tags() {
        for number in [0, 1, 77, Tag::NUMBERS] {
            assert_eq!(Tag::of_state(number).stream(), (None, number));
            for source in [0, 1, 255, 0xffff] {
                let source = MemberId(source);
                assert_eq!(Tag::of_replica(source, number).stream(), (Some(source), number));
            }
        }
    }
}
