//! The step `peers`: compiles the engines that Parlor is compared with. They are outside its workspace, so no
//! other step notices when they fail to compile.

use std::path::Path;

use crate::invocation::Invocation;
use crate::steps::{Level, Missing, Work, need};

/// The Node that Colyseus installs.
const NODE: &str = "bench/peers/colyseus/node_modules/.bin/node";

/// Builds each of `bench/peers` into a shared folder, and starts and stops Colyseus.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    need("npm --version", "npm is not installed", "apt-get install npm")?;
    let check = Invocation::cargo("check --locked --manifest-path bench/peers/Cargo.toml --workspace");
    let modules = Invocation::new("npm").args("ci --no-fund --no-audit --prefix bench/peers/colyseus");
    let load = Invocation::new(NODE).args("--check bench/peers/colyseus/load.mjs");
    let server = Invocation::new(NODE).args("bench/peers/colyseus/server.mjs --once");
    Ok(Work::Run(vec![check, modules, load, server]))
}
