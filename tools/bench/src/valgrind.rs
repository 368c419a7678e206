//! Runs this binary under valgrind, which counts instructions. A shared machine does not disturb the counts.

use anyhow::{Context, ensure};
use serde::de::DeserializeOwned;
use std::process::Command;

/// Runs this binary under a tool of valgrind. Returns what the binary printed, read as JSON, and what valgrind said.
///
/// # Errors
/// There is no valgrind, or the run failed.
pub(crate) fn run<T: DeserializeOwned>(tool: &[&str], args: &[String]) -> anyhow::Result<(T, String)> {
    let binary = std::env::current_exe().context("this binary's own path is not known")?;
    let mut command = Command::new("valgrind");
    command.args(tool).arg(binary).args(args);
    let output = command
        .output()
        .context("valgrind cannot be started: install it (Debian, Ubuntu: apt install valgrind)")?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default();
    ensure!(output.status.success(), "{} failed under valgrind: {last}", args.join(" "));
    let printed = serde_json::from_slice(&output.stdout).context("the counted run printed no result")?;
    Ok((printed, said))
}
