//! The authority's report, for the hub and later authorities, of the reliable messages that it processed.

use super::ACK_MASK;
use crate::audience::Audience;
use crate::limits::INPUT_MARGIN_MS_MAX;
use crate::schema::INPUT_ACK;
use crate::world::Replica;
use parlor_proto::{Epoch, Tick};

/// The reliable messages of its session that an authority has processed: those below a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Under which epoch it is the authority. The lowest 8 bits of it are told.
    pub epoch: Epoch,
    /// The number. The lowest 31 bits of it are told.
    pub number: u64,
}

impl Taken {
    /// What `replica` says of the authority of `epoch` as of a tick of its history, the number nearest to
    /// `near`: 0 if nothing.
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

/// The number nearest to `near` whose lane this is.
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
