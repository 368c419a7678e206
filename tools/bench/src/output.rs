//! Output of the benches.

use super::table::Table;
use parlor_terminal::print::{print_json, say};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// How this binary was built. Ours is also the server that is measured.
const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// What a bench prints with `--json`.
#[derive(Debug, Serialize)]
struct Report<'a, R> {
    bench: &'static str,
    version: &'static str,
    /// `debug` or `release`.
    build: &'static str,
    /// What is not in the rows and must be known to read them.
    #[serde(flatten)]
    setting: &'a serde_json::Value,
    rows: &'a [R],
}

/// Prints what was measured.
pub(crate) fn print<R: Serialize>(
    bench: &'static str,
    is_json: bool,
    setting: &serde_json::Value,
    rows: &[R],
    notes: &[String],
    table: &Table,
) -> anyhow::Result<()> {
    if is_json {
        return print_json(&Report {
            bench,
            version: env!("CARGO_PKG_VERSION"),
            build: BUILD,
            setting,
            rows,
        });
    }
    say(&table.render());
    notes.iter().for_each(|note| say(note));
    if BUILD == "debug" {
        say("this is a debug build, and only a release build shows what the code can do");
    }
    Ok(())
}

/// Says at a terminal what is being measured: a bench takes minutes.
pub(crate) fn tell(what: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // A terminal that has gone away is no fault.
        let _ = writeln!(stderr, "measuring {what}");
    }
}
