//! The binary, as people run it.

mod rooms;
mod support;
mod wrong_input;
