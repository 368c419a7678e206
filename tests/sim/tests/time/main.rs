//! Steps and the clock: lead, prediction, rewinding, rollback, and interpolation.

mod clock;
mod inputs;
mod interpolation;
mod lead;
mod prediction;
mod rewind;
mod rollback;
