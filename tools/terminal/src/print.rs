//! Lines on standard output.

use serde::Serialize;
use std::io::Write;

/// Prints a value as one line of JSON, as [`say`] does.
///
/// # Errors
/// If the value has no JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    say(&serde_json::to_string(value)?);
    Ok(())
}

/// Prints a line to standard output. A reader that has gone away is no fault.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
