//! Prediction at a member: its own entities run ahead of what the authority has told, and go back when that was wrong.
//!
//! A [`Predictor`] lays rows of its own over those of a replica: the predicted components of the entities that the member
//! owns. The game's steps read and write these rows as the authority's steps do its world. What they were after each step is
//! kept, and when the authority tells what it had at one of these steps, both are compared. If they are the same, the step is
//! confirmed. If not, that is a *correction*: the rows go back to what the authority had, and the steps that came after are
//! run again, with the inputs that were recorded for them (rewind and replay, as Quake III and its heirs do it; a
//! description is Gabriel Gambetta's "Fast-paced multiplayer").
//!
//! What a correction moved is shown to the eye a little later than it is true: [`Predictor::show`] puts what was displaced on
//! top of the rows and lets it fade. Nothing of that gets into the rows.
//!
//! [`Once`] tells which one-shot effects of steps that are run again have been shown.

mod once;
mod predictor;
mod shown;
mod track;

pub use once::Once;
pub use predictor::{PredictionCounters, Predictor, Rerun};
pub use shown::{Frame, Smoothing};
