//! The engines that Parlor is compared with: `cargo xtask peers` builds them, and the step `peers` checks that they
//! compile. They are outside the workspace, so no other step notices when they fail to.

use crate::invocation::Invocation;
use crate::plan::{Level, Missing, Work, need};
use crate::process::{Failure, spawn};
use std::path::Path;

/// The folder of Colyseus, the Node that it installs, and what drives it.
const COLYSEUS: &str = "bench/peers/colyseus";
const NODE: &str = "bench/peers/colyseus/node_modules/.bin/node";
const LOADS: [&str; 3] = ["measure.mjs", "load.mjs", "capacity.mjs"];
/// Packages that are built together. Built all at once, each would get features of its dependencies that others ask
/// for.
const PACKAGES: [&str; 5] = [
    "-p quinn-relay",
    "-p replicon-walkers -p lightyear-walkers",
    "-p ggrs-rollback",
    "-p indexset-ranks",
    "-p cubes-scene",
];

/// Cargo in the workspace of the peers.
fn cargo(what: &str) -> Invocation {
    Invocation::cargo(what).args("--locked --manifest-path bench/peers/Cargo.toml")
}

fn install_colyseus() -> Result<Invocation, Missing> {
    need("npm --version", "npm is not installed", "apt-get install npm")?;
    Ok(Invocation::new("npm").args("ci --no-fund --no-audit --prefix").args(COLYSEUS))
}

/// The step: checks each of `bench/peers`, and starts and stops Colyseus.
pub(crate) fn plan(_: &Path, _: Level) -> Result<Work, Missing> {
    let node = |args: &str| Invocation::new(NODE).args(args);
    let mut work = vec![cargo("check --workspace"), install_colyseus()?];
    work.extend(LOADS.map(|file| node("--check").args(&format!("{COLYSEUS}/{file}"))));
    work.push(node(&format!("{COLYSEUS}/server.mjs --once")));
    Ok(Work::Run(work))
}

/// The command: builds all of them for `parlor-bench`.
pub(crate) fn build(root: &Path) -> Result<(), Failure> {
    let colyseus = install_colyseus()?;
    for packages in PACKAGES {
        spawn(root, &cargo("build --release").args(packages))?;
    }
    spawn(root, &colyseus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_of_colyseus_is_checked() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(COLYSEUS);
        let entries = std::fs::read_dir(&root).expect("Colyseus has a folder").flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut scripts: Vec<String> = names.filter(|name| name.ends_with(".mjs")).collect();
        scripts.sort();
        let mut wanted = [&LOADS[..], &["server.mjs"]].concat();
        wanted.sort_unstable();
        assert_eq!(scripts, wanted);
    }

    #[test]
    fn every_package_of_the_peers_is_built() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/peers");
        let mut found = 0;
        for entry in std::fs::read_dir(&root).expect("the peers are there").flatten() {
            let Ok(manifest) = std::fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
            let name =
                manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("a package has a name");
            let is_program = entry.path().join("src/main.rs").is_file();
            let is_built =
                PACKAGES.iter().any(|line| line.split(' ').any(|word| word == name.trim_matches('"')));
            assert!(is_built || !is_program, "{name} is not built");
            found += usize::from(is_program);
        }
        assert!(found >= 5, "{found} programs");
    }
}
