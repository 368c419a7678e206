//! Inputs of single steps: as their member records and sends them, and as the authority holds them.
//!
//! ```text
//!  message   tick: 4 bytes, of the first entry · count: 1 byte, from 1 on · entries, each of the tick before the one before it
//!  entry     view: 2 bytes · length: varint · that many bytes          a length of 0: the same bytes as the entry before it
//! ```
//!
//! A member says of every step what it wants, in each message once more until the authority has used it: a message that is
//! lost costs nothing if the next one comes in time. The authority takes one input for each step, however many come
//! (threat 21), and none for a step that is long over or far away (threat 23).
//!
//! *View* says how far behind its step the moment was that the member drew when it made the input, in parts of 1/64 step:
//! what it aimed at it saw there.

mod buffer;
mod own;

pub use buffer::{Arrival, Counters, InputBuffer, InputError, Report, Runs};
pub use own::OwnInputs;

use crate::limits::VIEW_PARTS;
use bytes::Bytes;
use core::time::Duration;
use parlor_proto::{Instant, Tick, TickRate};

/// What a member wants in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The step.
    pub tick: Tick,
    /// Which moment of the room the member drew when it made the input; none if it drew nothing, or did not run this step.
    pub view: Option<View>,
    /// The encoding of a [`Value`](crate::value::Value).
    pub encoded: Bytes,
}

/// How far behind a step a moment is, in parts of 1/[`VIEW_PARTS`] step: 0 to [`View::PARTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View(u16);

/// On the wire: nothing was drawn.
const DREW_NOTHING: u16 = u16::MAX;

impl View {
    /// The farthest that can be said: some 1,024 steps.
    pub const PARTS_MAX: u16 = DREW_NOTHING - 1;

    /// How far behind the begin of `tick` the moment `drawn` of room time is: at most what can be said, and zero if it is not
    /// behind.
    #[must_use]
    pub fn behind(tick: Tick, drawn: Instant, rate: TickRate) -> View {
        let behind_us = rate.begins(tick).saturating_since(drawn).as_micros();
        let parts = (behind_us * u128::from(rate.hz()) * u128::from(VIEW_PARTS) + 500_000) / 1_000_000;
        View(u16::try_from(parts).unwrap_or(Self::PARTS_MAX).min(Self::PARTS_MAX))
    }

    /// The moment of room time that is so far behind the begin of `tick`; the room's opening if that was later.
    #[must_use]
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
