//! Keyed state: one authority writes values under string keys, and every reader holds what it may see of them.
//!
//! A key is an entity of the room's [`World`](crate::world::World) with the built-in component
//! [`KEYED_KEY`](crate::schema::KEYED_KEY): its name, its hints and its encoded value, with the audience of the entity. So keys
//! share the packets, the loss and the views of all entities, and an unchanged key costs nothing.
//!
//! - The authority writes through [`Keys`], and closes a batch right before it commits the world.
//! - A reader gives a [`KeyReader`] what each packet changed, and has the values decoded.
//!
//! A batch is known by the tick under which it was committed. A reader whose replica is settled at that tick has the same
//! [`state_hash`] as the authority, as far as it may see the keys.
//!
//! What a member is told of its inputs is told in the same way: by an entity with the component
//! [`INPUT_ACK`](crate::schema::INPUT_ACK) that only this member sees. One that nobody sees tells the hub which reliable messages
//! were [`Taken`].

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

/// Bits of the number of a tick that its lane holds.
const ACK_MASK: u32 = FIELD_SPAN_MAX;
const _: () = assert!(ACK_MASK == u32::MAX >> 1);

/// The lane of a tick whose input was used.
fn ack_lane(tick: Tick) -> i32 {
    (tick.0 & ACK_MASK).cast_signed()
}

/// The tick nearest to `near` whose lane this is.
fn ack_tick(lane: i32, near: Tick) -> Tick {
    let ahead = lane.cast_unsigned().wrapping_sub(near.0) & ACK_MASK;
    let is_behind = ahead > ACK_MASK / 2;
    Tick(near.0.wrapping_add(ahead).wrapping_sub(if is_behind { ACK_MASK + 1 } else { 0 }))
}

/// The lanes of a report.
fn report_lanes(report: Report) -> [i32; 3] {
    let margin_ms = report.margin_ms.clamp(-INPUT_MARGIN_MS_MAX, INPUT_MARGIN_MS_MAX);
    let margin = i32::from(margin_ms) + i32::from(INPUT_MARGIN_MS_MAX);
    [ack_lane(report.tick), margin, i32::from(report.late)]
}

/// The report that these are the lanes of, as of a tick that is near its own; `None` if they are of none.
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
