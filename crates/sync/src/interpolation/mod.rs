//! Interpolation: values are shown a little behind the newest update, between the two samples around the
//! moment shown.
//!
//! A [`Playout`] receives what a replica applied. Its [`Timeline`] decides which moment of the room to show.
//! Its tracks hold the last samples of each key, and [`interpolate`] mixes two of them. Nothing is
//! extrapolated: without newer samples, the newest value stays.
//!
//! - Numbers move in a straight line, whole numbers in whole steps. Use the hint
//!   [`Interp::Snap`](crate::keyed::Interp::Snap) for counts and ids, where values in between are wrong.
//! - Angles, if a hint marks them as such, take the shorter way around.
//! - Lists of equal length and maps are interpolated part by part.
//! - Everything else keeps the older value until the newer sample is due.
//!
//! A [`Sample`] does the same for the components of entities, as their schema defines it; it extrapolates on
//! request. It finds the rows around a moment in a world ([`Sample::take_moment`]): a replica's, to draw it,
//! or the authority's, to look up what a member drew.

mod mix;
mod moment;
mod playout;
mod rows;
mod timeline;
mod track;

pub use mix::{WholeNumbers, interpolate};
pub use moment::Between;
pub use playout::{Playout, PlayoutMetrics};
pub use rows::{Row, Sample};
pub use timeline::{RenderDelay, Timeline};

#[cfg(test)]
mod tests;
