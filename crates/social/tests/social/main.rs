//! Boards without a server: ranks against a sorted list, submissions against ten plain lines, seasons against calendars.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod boards;
mod lobbies;
mod matching;
mod progress;
mod ranks;
mod seasons;
