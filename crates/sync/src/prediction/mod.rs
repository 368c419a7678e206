//! Client prediction: a member runs its own entities ahead of the authority's state and corrects them when it
//! was wrong.
//!
//! A [`Predictor`] overlays its own rows on those of a replica: the predicted components of the entities that
//! the member owns. The game's steps read and write these rows as the authority's steps do its world. The
//! result of each step is kept and compared with the authority's state for that step. If they are equal, the
//! step is confirmed. If not, that is a *correction*: the rows are set back to the authority's, and the later
//! steps are run again with their recorded inputs. (Rewind and replay, as in Quake III; see Gabriel
//! Gambetta's "Fast-paced multiplayer".)
//!
//! Corrections are smoothed for display only: [`Predictor::show`] adds the displacement to the rows and fades
//! it out. The rows themselves never contain it.
//!
//! [`Once`] remembers which one-shot effects were already shown, for steps that are run again.

mod once;
mod predictor;
mod shown;
mod track;

pub use once::Once;
pub use predictor::{PredictionCounters, Predictor, Rerun};
pub use shown::{Frame, Smoothing};
