//! The step in which a real Chromium plays against the binary `parlor`, with `tests/browser`.

use crate::steps::{Invocation, Level, Missing, Work, need, or_from_environment};
use std::path::Path;

const FOLDER: &str = "tests/browser";

/// Builds the binary as the tests do, so that what these built is used again.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    need("node --version", "the browser's tests want node", "apt-get install nodejs npm")?;
    need("npm --version", "the browser's tests want npm", "apt-get install npm")?;
    let browser = or_from_environment("CHROMIUM", "/usr/bin/chromium");
    need(&format!("{browser} --version"), "there is no Chromium", "apt-get install chromium")?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor");
    let install = Invocation::new("npm").args("ci --no-audit --no-fund --prefix").args(FOLDER);
    Ok(Work::Run(vec![build, install, Invocation::new("npm").args("test --prefix").args(FOLDER)]))
}
