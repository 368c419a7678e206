//! Playing values out smoothly: a little behind the newest update, between the two samples around the moment shown.
//!
//! A [`Playout`] is fed with what a replica took in. Its [`Timeline`] says which moment of the room to show, its
//! tracks hold the last samples of each key, and [`interpolate`] mixes two of them. Nothing is extrapolated: when
//! samples run out, the newest stands.
//!
//! - Numbers move in a straight line; whole numbers through the whole numbers in between. The hint
//!   [`Interp::Snap`](crate::keyed::Interp::Snap) is for counts and ids, of which half a step is a lie.
//! - Angles, if a hint says that they are, take the shorter way around.
//! - Lists of one length and maps move part by part.
//! - Everything else stays what it was until the newer sample is due.
//!
//! A [`Sample`] does the same for the components of entities, as their schema says; it extrapolates if it is asked to. It finds
//! the rows around a moment in a world ([`Sample::take_moment`]): a replica's, to draw it, or the authority's, to look up what a
//! member drew.

mod mix;
mod moment;
mod playout;
mod rows;
mod timeline;
mod track;

pub use mix::interpolate;
pub use playout::{Playout, PlayoutMetrics};
pub use rows::{Row, Sample};
pub use timeline::Timeline;

#[cfg(test)]
mod tests;
