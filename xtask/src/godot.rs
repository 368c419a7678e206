//! The step that plays the Godot extension.

use std::path::Path;

use crate::invocation::Invocation;
use crate::steps::{Level, Missing, Work, need, or_from_environment};

/// The extension is compiled with the header of the engine that then loads it.
pub(crate) fn plan(root: &Path, _: Level) -> Result<Work, Missing> {
    need("make --version", "make is not installed", "apt-get install make")?;
    let installed = root.join("target/godot/godot");
    let godot = or_from_environment("GODOT", &installed.to_string_lossy());
    let probe = format!("{godot} --headless --version");
    need(&probe, "there is no Godot 4", "sh xtask/godot/install.sh target/godot")?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor --lib");
    let run = Invocation::new("python3").args("xtask/godot/run.py . target/godot target/debug").args(&godot);
    Ok(Work::Run(vec![build, run]))
}
