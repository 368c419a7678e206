//! Inputs of steps: recorded and sent by members, buffered by the authority.
//!
//! ```text
//!  message   tick: 4 bytes, of the first entry · count: 1 byte, from 1 on · entries, each of the tick before the one before it
//!  entry     view: 2 bytes · length: varint · that many bytes          a length of 0: the same bytes as the entry before it
//! ```
//!
//! Each message repeats the inputs of recent steps until the authority has used them, so a lost message costs
//! nothing if the next arrives in time. The authority uses one input for each step, however many arrive
//! (threat 21). It ignores inputs for steps long past or far ahead (threat 23).
//!
//! An input may carry [predicted actions](Acted) of its step.
//!
//! The *view* is how far behind its step the moment was that the member drew when it made the input, in 1/64
//! step. The authority judges its aim by that moment.

mod actions;
mod buffer;
mod own;

pub use actions::{Acted, encode_with_actions};
pub use buffer::{Arrival, Counters, InputBuffer, InputError, Report, Runs};
pub use own::OwnInputs;

use crate::limits::VIEW_PARTS;
use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{Instant, Tick, TickRate};

/// What a player wants in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The step.
    pub tick: Tick,
    /// The moment that the member drew when it made the input. `None` if it drew nothing or did not run this
    /// step.
    pub view: Option<View>,
    /// The encoding of a [`Value`](crate::value::Value).
    pub encoded: Bytes,
}

/// How far a drawn moment is behind a step, in 1/[`VIEW_PARTS`] step: 0 to [`View::PARTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View(u16);

/// Wire value for "nothing was drawn".
const DREW_NOTHING: u16 = u16::MAX;

impl View {
    /// The largest value: about 1,024 steps.
    pub const PARTS_MAX: u16 = DREW_NOTHING - 1;

    /// Returns how far the moment `drawn` of room time is behind the start of `tick`: zero if not behind,
    /// [`PARTS_MAX`](Self::PARTS_MAX) at most.
    pub fn behind(tick: Tick, drawn: Instant, rate: TickRate) -> View {
        let behind_us = rate.begins(tick).saturating_since(drawn).as_micros();
        let parts = (behind_us * u128::from(rate.hz()) * u128::from(VIEW_PARTS) + 500_000) / 1_000_000;
        View(u16::try_from(parts).unwrap_or(Self::PARTS_MAX).min(Self::PARTS_MAX))
    }

    /// Returns the moment of room time that this view is behind the start of `tick`, not before the room's
    /// opening.
    pub fn moment(self, tick: Tick, rate: TickRate) -> Instant {
        let behind_us = u64::from(self.0) * 1_000_000 / (u64::from(rate.hz()) * u64::from(VIEW_PARTS));
        rate.begins(tick) - Duration::from_micros(behind_us)
    }

    fn to_wire(view: Option<View>) -> u16 {
        view.map_or(DREW_NOTHING, |view| view.0)
    }

    fn from_wire(parts: u16) -> Option<View> {
        (parts != DREW_NOTHING).then_some(View(parts))
    }
}

#[cfg(test)]
mod tests;
