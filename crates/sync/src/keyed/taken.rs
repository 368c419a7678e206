//! The authority's report, for the hub and later authorities, of the reliable messages that it processed.

use super::ACK_MASK;
use crate::audience::Audience;
use crate::limits::INPUT_MARGIN_MS_MAX;
use crate::schema::INPUT_ACK;
use crate::world::Replica;
use parlor_proto::{Epoch, Tick};

/// The number of reliable messages of its session that an authority has processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The epoch of the authority. Its lowest 8 bits are sent.
    pub epoch: Epoch,
    /// All messages below this number were processed. Its lowest 31 bits are sent.
    pub number: u64,
}

impl Taken {
    /// Returns the number that `replica` has for the authority of `epoch` at a tick of its history, resolved
    /// to the value nearest to `near`; 0 if none.
    pub fn told(replica: &Replica, at: Tick, epoch: Epoch, near: u64) -> u64 {
        let world = replica.world();
        let nobody = Audience::members([]);
        let is_hubs = |entity: &_| world.has(*entity, INPUT_ACK) && world.audience(*entity) == Ok(&nobody);
        let told = world.entities().filter(is_hubs).filter_map(|entity| {
            let (lanes, _) = replica.read_row_at(entity, INPUT_ACK, at)?;
            let [number, _, of] = lanes else { return None };
            (*of == epoch_lane(epoch)).then(|| number_near(*number, near))
        });
        told.max().unwrap_or(0)
    }

    pub(super) fn lanes(self) -> [i32; 3] {
        let low = u32::try_from(self.number & u64::from(ACK_MASK)).expect("it is masked");
        [low.cast_signed(), i32::from(INPUT_MARGIN_MS_MAX), epoch_lane(self.epoch)]
    }
}

fn epoch_lane(epoch: Epoch) -> i32 {
    (epoch.0 & 0xff).cast_signed()
}

/// Returns the number nearest to `near` with this lane.
fn number_near(lane: i32, near: u64) -> u64 {
    let span = u64::from(ACK_MASK) + 1;
    let ahead = u64::from(lane.cast_unsigned()).wrapping_sub(near) & u64::from(ACK_MASK);
    let number = near.saturating_add(ahead);
    if ahead >= span / 2 { number.checked_sub(span).unwrap_or(number) } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_near_one_come_back(near in 0..u64::MAX / 2, off in -1_000_000i64..1_000_000) {
            let number = near.saturating_add_signed(off);
            let [lane, ..] = Taken { epoch: Epoch(0), number }.lanes();
            prop_assert_eq!(number_near(lane, near), number);
        }
    }
}
