//! The steps of `cargo xtask test`: commands and prerequisites.

use std::path::Path;

use crate::guards::Extent;
use crate::invocation::Invocation;
use crate::plan::{
    Level, Missing, Step, Work, documentation, long, need, need_environments, or_from_environment, step,
    weekly,
};
use crate::programs::{Packages, Tests};
use crate::{dist, nat, peers, sdk, site, wasm};

/// How many random cases a run tries. The tests have small defaults of their own.
struct Chance {
    /// Seeds of whole worlds of the simulator. Scenarios of one topic run with a fraction: see
    /// `tests/sim/src/seeds.rs`.
    seeds: &'static str,
    /// Cases per property; proptest's default is 256.
    proptest_cases: &'static str,
    /// Processes that the store's kill loops kill, in each loop.
    kills: &'static str,
}

impl Chance {
    const fn of(level: Level) -> Chance {
        match level {
            Level::Weekly => Chance { seeds: "10000", proptest_cases: "4096", kills: "200" },
            Level::Quick | Level::Long => Chance { seeds: "2000", proptest_cases: "1024", kills: "40" },
        }
    }
}

/// The crates that users link, and the program that they install. All others have `publish = false`.
const PUBLISHED: [&str; 14] = [
    "parlor",
    "parlor-bevy",
    "parlor-cli",
    "parlor-client-core",
    "parlor-hub",
    "parlor-impair",
    "parlor-proto",
    "parlor-server",
    "parlor-services",
    "parlor-social",
    "parlor-sync",
    "parlor-terminal",
    "parlor-transport",
    "parlor-turn",
];

/// The packages with many random tests.
const RANDOM: [&str; 8] = [
    "parlor-client-core",
    "parlor-hub",
    "parlor-impair",
    "parlor-proto",
    "parlor-sim",
    "parlor-social",
    "parlor-sync",
    "parlor-turn",
];

/// Duration of the soak.
const SOAK_MINUTES: &str = "30";

/// All steps in order: cheap ones that fail early come first.
pub(crate) const STEPS: &[Step] = &[
    step("tidy", "rules of the house: dependencies, purity, sizes, documents", plan_tidy),
    step("fmt", "the code is formatted", plan_fmt),
    step("test", "unit, integration and doc tests, the kept fuzz corpus, few seeds", plan_test),
    step("python", "a decoder written from PROTOCOL.md alone reads the golden vectors", plan_python),
    long("clippy", "no warnings, lints included, in any target", plan_clippy),
    long("doc", "the documentation builds without warnings", plan_doc),
    long("deny", "licences, sources and duplicates of the dependencies", plan_deny),
    long("wasm", "what a page loads builds, and is within its limit of size", wasm::plan),
    long(
        "seeds",
        "what chance decides again: 2,000 seeded worlds (--weekly: 10,000), more cases of each property",
        plan_seeds,
    ),
    long("sdk", "the TypeScript SDK: types, unit tests, reference, sizes, and rooms in Node", sdk::plan),
    long(
        "examples",
        "the guide's first program and a game of each template, built outside and played (--weekly: in a window)",
        plan_examples,
    ).beside(),
    long(
        "dist",
        "archive, Debian and npm packages and container: made, installed into empty systems, and played (--weekly: also the archive for ARM)",
        plan_dist,
    ).beside(),
    long("fuzz", "the fuzz targets compile on stable", plan_fuzz).beside(),
    long(
        "package",
        "each crate that users link, and the program, has what is published (--weekly: all are compiled from that)",
        plan_package,
    ),
    long("web", "the pages built anew: types, unit tests and sizes, and played in Chromium", sdk::plan_web),
    long(
        "browser",
        "the embedded pages and pages of the SDK in Chromium, with native players",
        sdk::plan_browser,
    ),
    long(
        "packaging",
        "the packed SDK in apps of esbuild, Vite and Node, a game of its template (--weekly: all of both)",
        sdk::plan_packaging,
    ),
    long(
        "site",
        "the documents as a site, with pictures of what the programs show, references, and no dead link",
        site::plan,
    ),
    long("nat", "members behind real NATs, and forged packets, in network namespaces", nat::plan),
    long("store", "the store on both databases, 40 kills in each loop (--weekly: 200)", plan_store),
    long("cluster", "several servers on one PostgreSQL", plan_cluster),
    long(
        "cluster-model",
        "every state of a small cluster with three faults (--weekly: also of three nodes)",
        plan_cluster_model,
    ),
    long(
        "manifests",
        "deploy/kubernetes against Kubernetes' schemas, and deploy/compose.yaml",
        plan_manifests,
    ),
    long("schemathesis", "every operation, for every role, against the OpenAPI document", plan_schemathesis),
    // What it builds has the names of what the other steps share.
    long(
        "guards",
        "a third of the guards against threats: each, taken out, is missed by its test (--weekly: all)",
        plan_guards,
    ),
    weekly("semver", "the crates against the last version that has a tag", plan_semver),
    weekly("peers", "what Parlor is measured against compiles, and Colyseus starts", peers::plan),
    weekly(
        "godot",
        "the Godot extension, compiled and played without a screen, its example with the one in C",
        plan_godot,
    ),
    weekly("firefox", "pages over WebTransport and Magpies in Firefox ESR", sdk::plan_firefox),
    weekly("measure", "figures of pages in Chromium: docs/performance.md", sdk::plan_measure),
    weekly("soak", "half an hour of everything with an attacker: all levels off", plan_soak),
];

/// What no step covers, and how to check it. Printed at the end of every full run, so that the gap is known.
pub(crate) const NOT_COVERED: &str = "advisories: no step asks for them, because RustSec's database is fetched \
     from github.com; where that is reachable: `cargo deny check advisories`";

fn plan_tidy(_: &Path, _: Level) -> Result<Work, Missing> {
    Ok(Work::Tidy)
}

fn plan_fmt(_: &Path, _: Level) -> Result<Work, Missing> {
    need("cargo fmt --version", "rustfmt is not installed", "rustup component add rustfmt")?;
    Ok(Work::one(Invocation::cargo("fmt --all --check")))
}

/// What fences a node stands in statements of PostgreSQL.
fn plan_guards(_: &Path, level: Level) -> Result<Work, Missing> {
    need_postgres()?;
    let extent = if level == Level::Weekly { Extent::All } else { Extent::Part };
    Ok(Work::Guards(extent))
}

fn plan_clippy(_: &Path, _: Level) -> Result<Work, Missing> {
    need("cargo clippy --version", "clippy is not installed", "rustup component add clippy")?;
    Ok(Work::one(Invocation::cargo("clippy --workspace --all-features --all-targets -- -D warnings")))
}

/// Where the step `seeds` follows, it runs its packages' tests, with more cases.
fn plan_test(_: &Path, level: Level) -> Result<Work, Missing> {
    let others: &[&str] = if level == Level::Quick { &[] } else { &RANDOM };
    Ok(Work::Tests(Tests { of: Packages::AllBut(others), env: Vec::new() }))
}

/// The tests run it too, but skip it silently where it is missing.
fn plan_python(_: &Path, _: Level) -> Result<Work, Missing> {
    need("python3 --version", "python3 is not installed", "apt-get install python3")?;
    Ok(Work::one(Invocation::cargo("test --workspace --all-features --test python")))
}

fn plan_doc(_: &Path, _: Level) -> Result<Work, Missing> {
    Ok(Work::Run(documentation().into()))
}

fn plan_deny(_: &Path, _: Level) -> Result<Work, Missing> {
    need("cargo deny --version", "cargo-deny is not installed", "cargo install cargo-deny --locked")?;
    Ok(Work::one(Invocation::cargo("deny check --hide-inclusion-graph licenses bans sources")))
}

fn plan_seeds(_: &Path, level: Level) -> Result<Work, Missing> {
    let chance = Chance::of(level);
    let seeds = or_from_environment("PARLOR_SEEDS", chance.seeds);
    let cases = or_from_environment("PROPTEST_CASES", chance.proptest_cases);
    let env = vec![("PARLOR_SEEDS", seeds), ("PROPTEST_CASES", cases)];
    Ok(Work::Tests(Tests { of: Packages::Only(&RANDOM), env }))
}

fn need_postgres() -> Result<(), Missing> {
    need("find /usr/lib/postgresql -name initdb", "there is no PostgreSQL", "apt-get install postgresql")
}

/// Without PostgreSQL the tests run on SQLite alone, and do not report the difference.
fn plan_store(_: &Path, level: Level) -> Result<Work, Missing> {
    need_postgres()?;
    let script = Invocation::new("sh").args("xtask/scratch-postgres.sh");
    // With all features, so that the build of the tests is reused.
    let tests = script.args("cargo test --workspace --all-features --test store");
    let kills = or_from_environment("PARLOR_KILLS", Chance::of(level).kills);
    Ok(Work::one(tests.env("PARLOR_KILLS", &kills)))
}

/// In a test of every day it has two faults.
fn plan_cluster_model(_: &Path, level: Level) -> Result<Work, Missing> {
    let extent = if level == Level::Weekly { "weekly" } else { "long" };
    let extent = or_from_environment("PARLOR_MODEL", extent);
    let env = vec![("PARLOR_MODEL", extent)];
    Ok(Work::Tests(Tests { of: Packages::Only(&["parlor-cluster-model"]), env }))
}

/// Buses over NATS are tested where its programs are: the script names those that are missing.
fn plan_cluster(_: &Path, _: Level) -> Result<Work, Missing> {
    need_postgres()?;
    need("find /usr/lib -name libfaketimeMT.so.1", "there is no libfaketime", "apt-get install faketime")?;
    let run = |tests: &str| {
        let scripts = Invocation::new("sh").args("xtask/scratch-postgres.sh sh xtask/scratch-nats.sh");
        // Most of them wait.
        scripts.args("cargo test --workspace --all-features").args(tests).env("RUST_TEST_THREADS", "4")
    };
    // Tests of nodes as processes run the program.
    let program = Invocation::new("cargo").args("build --workspace --all-features --bin parlor");
    Ok(Work::Run(vec![program, run("--test cluster"), run("--lib cluster::")]))
}

/// Its versions are pinned with their hashes, and installed below target/.
fn plan_schemathesis(_: &Path, _: Level) -> Result<Work, Missing> {
    need_environments()?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor");
    let run =
        Invocation::new("python3").args("xtask/schemathesis/run.py target/debug/parlor target/schemathesis");
    Ok(Work::Run(vec![build, run]))
}

fn plan_manifests(_: &Path, _: Level) -> Result<Work, Missing> {
    need_environments()?;
    Ok(Work::one(Invocation::new("sh").args("xtask/kubernetes/check.sh")))
}

/// In one call: cargo takes siblings from the crates that it packages, and looks for others at crates.io.
fn plan_package(_: &Path, level: Level) -> Result<Work, Missing> {
    let package = Invocation::new("sh").args("xtask/package.sh --locked --allow-dirty --quiet");
    let package = if level == Level::Weekly { package } else { package.args("--no-verify") };
    Ok(Work::one(PUBLISHED.iter().fold(package, |package, name| package.args("-p").args(name))))
}

fn plan_semver(_: &Path, _: Level) -> Result<Work, Missing> {
    let tool = "cargo install cargo-semver-checks --locked";
    need("cargo semver-checks --version", "cargo-semver-checks is not installed", tool)?;
    Ok(Work::one(Invocation::new("sh").args("xtask/semver.sh")))
}

/// It needs root: each try has a root file system and a network of its own.
fn plan_dist(_: &Path, level: Level) -> Result<Work, Missing> {
    need("python3 --version", "python3 is not installed", "apt-get install python3")?;
    need("unshare --net true", "this is not root on Linux", "sudo")?;
    need("ip -V", "iproute2 is not installed", "apt-get install iproute2")?;
    need("buildah --version", "buildah is not installed", "apt-get install buildah")?;
    let mut run = vec![Invocation::cargo("xtask dist")];
    if level == Level::Weekly {
        run.push(Invocation::cargo("xtask dist --target aarch64"));
    }
    run.push(Invocation::new("python3").args("xtask/dist/play.py").args(dist::FOLDER));
    Ok(Work::Run(run))
}

fn plan_examples(_: &Path, level: Level) -> Result<Work, Missing> {
    need("python3 --version", "python3 is not installed", "apt-get install python3")?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor");
    let mut run =
        Invocation::new("python3").args("xtask/examples/run.py . target/examples target/debug/parlor");
    if level == Level::Weekly {
        let install = "apt-get install pkg-config libasound2-dev libudev-dev libwayland-dev";
        need(
            "pkg-config --exists alsa libudev wayland-client",
            "Bevy's libraries are not installed",
            install,
        )?;
        run = run.args("--window");
    }
    Ok(Work::Run(vec![build, run]))
}

/// The extension is compiled with the header of the engine that then loads it.
fn plan_godot(root: &Path, _: Level) -> Result<Work, Missing> {
    need("make --version", "make is not installed", "apt-get install make")?;
    let installed = root.join("target/godot/godot");
    let godot = or_from_environment("GODOT", &installed.to_string_lossy());
    let probe = format!("{godot} --headless --version");
    need(&probe, "there is no Godot 4", "sh xtask/godot/install.sh target/godot")?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor --lib");
    let run = Invocation::new("python3").args("xtask/godot/run.py . target/godot target/debug").args(&godot);
    Ok(Work::Run(vec![build, run]))
}

fn plan_fuzz(_: &Path, _: Level) -> Result<Work, Missing> {
    // libfuzzer-sys compiles libFuzzer, which is C++.
    let compiler = or_from_environment("CXX", "c++");
    need(&format!("{compiler} --version"), "there is no C++ compiler", "apt-get install g++")?;
    Ok(Work::one(Invocation::cargo("check --manifest-path fuzz/Cargo.toml")))
}

/// Optimized: the timing of a debug build says little about the delays of honest clients.
fn plan_soak(_: &Path, _: Level) -> Result<Work, Missing> {
    if !cfg!(target_os = "linux") {
        let hint = "run it on Linux: it reads what a process takes from /proc".to_owned();
        return Err(Missing { why: "benches run on Linux alone".to_owned(), hint });
    }
    let minutes = or_from_environment("PARLOR_SOAK_MINUTES", SOAK_MINUTES);
    let build = Invocation::cargo("build --release -p parlor-cli -p parlor-bench");
    let soak = Invocation::new("target/release/parlor-bench").args("soak --minutes").args(&minutes);
    Ok(Work::Run(vec![build, soak]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_packaged_unless_it_is_not_published() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask has a parent");
        let folders =
            ["crates", "tests", "tools"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let manifests = folders.into_iter().flatten().map(|folder| folder.unwrap().path().join("Cargo.toml"));
        let manifests = manifests.filter_map(|path| std::fs::read_to_string(path).ok());
        let published = manifests.filter(|manifest| !manifest.contains("\npublish = false\n"));
        let names = published.map(|manifest| {
            let name = manifest.lines().find_map(|line| line.strip_prefix("name = ")).expect("it has a name");
            name.trim_matches('"').to_owned()
        });
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        assert_eq!(names, PUBLISHED);
    }
}
