//! Keyed state: one authority writes values under string keys, and every reader holds what it may see of
//! them.
//!
//! A key is an entity of the room's [`World`](crate::world::World) with the built-in component
//! [`KEYED_KEY`](crate::schema::KEYED_KEY): its name, hints and encoded value. The entity's audience is the
//! key's. So keys share packets, loss handling and views with all entities, and an unchanged key costs
//! nothing.
//!
//! - The authority writes through [`Keys`], and closes a batch right before it commits the world.
//! - A reader gives a [`KeyReader`] what each packet changed, and has the values decoded.
//!
//! A batch is identified by the tick at which it was committed. A reader whose replica is settled at that
//! tick has the authority's [`state_hash`], restricted to the keys that the reader may see.
//!
//! Input acknowledgments use the same path: an entity with the component
//! [`INPUT_ACK`](crate::schema::INPUT_ACK) that only the acknowledged member sees. One with an empty audience
//! tells the hub which reliable messages were [`Taken`].

mod hash;
mod hints;
mod keys;
mod reader;
mod taken;

pub use crate::audience::{Audience, Viewer};
pub use hash::state_hash;
pub use hints::{Hint, HintError, Hints, Interp};
pub use keys::{Item, Keys, StateError};
pub use reader::{Change, Changes, KeyReader, Shown};
pub use taken::Taken;

use crate::inputs::Report;
use crate::limits::{FIELD_SPAN_MAX, INPUT_MARGIN_MS_MAX};
use parlor_proto::Tick;

/// Bits of a tick's number that fit its lane.
const ACK_MASK: u32 = FIELD_SPAN_MAX;
const _: () = assert!(ACK_MASK == u32::MAX >> 1);

/// Returns the lane for a tick whose input was used.
fn ack_lane(tick: Tick) -> i32 {
    (tick.0 & ACK_MASK).cast_signed()
}

/// Returns the tick nearest to `near` that has this lane.
fn ack_tick(lane: i32, near: Tick) -> Tick {
    let ahead = lane.cast_unsigned().wrapping_sub(near.0) & ACK_MASK;
    let is_behind = ahead > ACK_MASK / 2;
    Tick(near.0.wrapping_add(ahead).wrapping_sub(if is_behind { ACK_MASK + 1 } else { 0 }))
}

/// Returns the lanes of a report.
fn report_lanes(report: Report) -> [i32; 3] {
    let margin_ms = report.margin_ms.clamp(-INPUT_MARGIN_MS_MAX, INPUT_MARGIN_MS_MAX);
    let margin = i32::from(margin_ms) + i32::from(INPUT_MARGIN_MS_MAX);
    [ack_lane(report.tick), margin, i32::from(report.late)]
}

/// Decodes a report from its lanes, given a tick near its own; `None` if the lanes are not valid.
fn lanes_report(lanes: &[i32], near: Tick) -> Option<Report> {
    let [tick, margin, late] = lanes else { return None };
    let margin_ms = i16::try_from(margin - i32::from(INPUT_MARGIN_MS_MAX)).ok()?;
    Some(Report { tick: ack_tick(*tick, near), margin_ms, late: u8::try_from(*late).ok()? })
}

#[cfg(test)]
mod ack_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ticks_near_the_authoritys_come_back(near: u32, off in -1_000_000i32..1_000_000) {
            let tick = Tick(near).offset(off);
            prop_assert_eq!(ack_tick(ack_lane(tick), Tick(near)), tick);
        }

        #[test]
        fn a_report_comes_back(near: u32, off in -1_000i32..1_000, margin_ms in -500i16..=500, late: u8) {
            let report = Report { tick: Tick(near).offset(off), margin_ms, late };
            prop_assert_eq!(lanes_report(&report_lanes(report), Tick(near)), Some(report));
        }
    }
}
