//! Steps and the clock: lead, prediction, rewinding, rollback, and interpolation.

mod actions;
mod clock;
mod effects;
mod game_time;
mod inputs;
mod interpolation;
mod lead;
mod prediction;
mod rewind;
mod rollback;
mod tuning;
