//! The commands of the binary.

pub(crate) mod bots;
pub(crate) mod play;
pub(crate) mod replay;
pub(crate) mod serve;

use serde::Serialize;
use std::io::Write;

/// Prints a value as one line of JSON, as [`say`] does.
fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints a line to standard output. A reader that has gone away is no fault.
fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
