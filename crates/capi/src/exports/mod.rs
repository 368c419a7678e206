//! The functions, in the groups in which the header has them.
//!
//! Each is one call on the room or its core. What is unsafe in them is the pointers of rule 1 of the preamble, which
//! they pass on to the functions of `boundary`.

pub mod library;
pub mod messages;
pub mod opening;
pub mod play;
pub mod reading;
pub mod state;
pub mod worlds;
