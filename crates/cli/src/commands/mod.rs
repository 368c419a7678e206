//! The commands of the binary.

pub(crate) mod admin;
pub(crate) mod arena;
pub(crate) mod bots;
pub(crate) mod draughts;
pub(crate) mod dump;
pub(crate) mod impair;
pub(crate) mod matches;
pub(crate) mod play;
mod playback;
pub(crate) mod replay;
pub(crate) mod rooms;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod walkers;

use serde::Serialize;
use std::io::Write;

/// Prints a value as one line of JSON, as [`say`] does.
pub(crate) fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints a line to standard output. A reader that has gone away is no fault.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
