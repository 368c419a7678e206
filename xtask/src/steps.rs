//! The steps of `cargo xtask test`: what each runs, and what it needs to be able to run.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{nat, wasm};

/// Whole worlds of the simulator in the long run; the tests have a short default of their own. Scenarios of one topic
/// run with a share of them, which `crates/sim/src/seeds.rs` says.
const LONG_SEEDS: &str = "10000";
/// Cases per property in the long run; proptest's default is 256.
const LONG_PROPTEST_CASES: &str = "4096";

/// Processes that the store's kill loops kill in the long run, in each loop.
const LONG_KILLS: &str = "200";

/// One step.
pub(crate) struct Step {
    /// What `--only` calls it.
    pub(crate) name: &'static str,
    /// What it shows, for `--list`.
    pub(crate) what: &'static str,
    /// Part of `--all` alone, because it takes long or needs more than Rust, git and a C linker.
    pub(crate) long: bool,
    /// Decides how it runs on this machine.
    pub(crate) plan: fn(&Path) -> Result<Work, Missing>,
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum Work {
    /// The rules of [`crate::tidy`], in this process.
    Tidy,
    /// The guards of [`crate::guards`], in this process.
    Guards,
    /// Programs, one after another. A failed one does not stop those after it.
    Run(Vec<Invocation>),
}

/// Why a step cannot run here, and what a person does about it.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) hint: String,
}

/// A program to run in the workspace's root. Its `Display` can be pasted into a shell.
#[derive(Debug)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(&'static str, String)>,
}

/// All steps in their order: what fails soonest and costs least comes first.
pub(crate) fn steps(root: &Path) -> Vec<Step> {
    let mut steps = vec![
        step("tidy", "rules of the house: dependencies, purity, sizes, documents", plan_tidy),
        step("fmt", "the code is formatted", plan_fmt),
        step("test", "unit, integration and doc tests, the kept fuzz corpus, few seeds", plan_test),
        step("python", "a decoder written from PROTOCOL.md alone reads the golden vectors", plan_python),
        long("clippy", "no warnings, lints included, in any target", plan_clippy),
        long("doc", "the documentation builds without warnings", plan_doc),
        long("deny", "licences, sources and duplicates of the dependencies", plan_deny),
        long("wasm", "proto, sync and the client's core compile to wasm32", wasm::plan),
        long("seeds", "what chance decides again: 10,000 seeded worlds, the full count of cases", plan_seeds),
    ];
    steps.push(long("guards", "each guard against a threat, taken out, is missed by its test", |_| {
        Ok(Work::Guards)
    }));
    steps.push(long("nat", "members behind real NATs, and forged packets, in network namespaces", nat::plan));
    steps.push(long("store", "the store on both databases, 200 kills in each loop", plan_store));
    steps.push(long(
        "schemathesis",
        "every operation, for every role, against the OpenAPI document",
        plan_schemathesis,
    ));
    if root.join("fuzz/Cargo.toml").exists() {
        steps.push(long("fuzz", "the fuzz targets compile on stable", plan_fuzz));
    }
    steps
}

/// What no step covers, and how to get it. Said at the end of every run of all steps, so that nobody counts on it.
pub(crate) const NOT_COVERED: &str = "advisories: no step asks for them, because RustSec's database is fetched \
     from github.com; where that is reachable: `cargo deny check advisories`";

const fn step(name: &'static str, what: &'static str, plan: fn(&Path) -> Result<Work, Missing>) -> Step {
    Step { name, what, long: false, plan }
}

const fn long(name: &'static str, what: &'static str, plan: fn(&Path) -> Result<Work, Missing>) -> Step {
    Step { name, what, long: true, plan }
}

fn plan_tidy(_: &Path) -> Result<Work, Missing> {
    Ok(Work::Tidy)
}

fn plan_fmt(_: &Path) -> Result<Work, Missing> {
    need("cargo fmt --version", "rustfmt is not installed", "rustup component add rustfmt")?;
    Ok(Work::one(Invocation::cargo("fmt --all --check")))
}

fn plan_clippy(_: &Path) -> Result<Work, Missing> {
    need("cargo clippy --version", "clippy is not installed", "rustup component add clippy")?;
    Ok(Work::one(Invocation::cargo("clippy --workspace --all-features --all-targets -- -D warnings")))
}

fn plan_test(_: &Path) -> Result<Work, Missing> {
    Ok(Work::one(Invocation::cargo("test --workspace --all-features --no-fail-fast")))
}

/// The tests run it too, but cannot say by their result that they did without it.
fn plan_python(_: &Path) -> Result<Work, Missing> {
    need("python3 --version", "python3 is not installed", "apt-get install python3")?;
    Ok(Work::one(Invocation::cargo("test --workspace --all-features --test python")))
}

/// The binary `parlor` and the library `parlor` have their pages in one place: the binary's are made first, so that the
/// library's remain.
fn plan_doc(_: &Path) -> Result<Work, Missing> {
    let strict = |args| Invocation::cargo(args).env("RUSTDOCFLAGS", "-D warnings");
    let others = strict("doc --no-deps --workspace --all-features --exclude parlor-cli");
    Ok(Work::Run(vec![strict("doc --no-deps --package parlor-cli"), others]))
}

fn plan_deny(_: &Path) -> Result<Work, Missing> {
    need("cargo deny --version", "cargo-deny is not installed", "cargo install cargo-deny --locked")?;
    Ok(Work::one(Invocation::cargo("deny check --hide-inclusion-graph licenses bans sources")))
}

/// Optimized, because ten thousand seeds take long without it, but with the debug profile's assertions
/// and overflow checks. Other crates have next to nothing that chance decides, and take long to build.
fn plan_seeds(_: &Path) -> Result<Work, Missing> {
    let tests = Invocation::cargo("test --tests --no-fail-fast --config profile.dev.opt-level=2")
        .args("-p parlor-proto -p parlor-sync -p parlor-hub -p parlor-impair -p parlor-sim");
    let seeds = or_from_environment("PARLOR_SEEDS", LONG_SEEDS);
    let cases = or_from_environment("PROPTEST_CASES", LONG_PROPTEST_CASES);
    Ok(Work::one(tests.env("PARLOR_SEEDS", &seeds).env("PROPTEST_CASES", &cases)))
}

/// Without PostgreSQL the tests run on SQLite alone, and cannot say so by their result.
fn plan_store(_: &Path) -> Result<Work, Missing> {
    need("find /usr/lib/postgresql -name initdb", "there is no PostgreSQL", "apt-get install postgresql")?;
    let script = Invocation::new("sh").args("xtask/scratch-postgres.sh");
    let tests = script.args("cargo test --package parlor-server --test store");
    Ok(Work::one(tests.env("PARLOR_KILLS", &or_from_environment("PARLOR_KILLS", LONG_KILLS))))
}

/// Its versions are pinned with their hashes, and installed below target/.
fn plan_schemathesis(_: &Path) -> Result<Work, Missing> {
    let venv = "python3 cannot make environments of its own";
    need("python3 -m ensurepip --version", venv, "apt-get install python3 python3-venv")?;
    let build = Invocation::cargo("build --workspace --all-features --bin parlor");
    let run =
        Invocation::new("python3").args("xtask/schemathesis/run.py target/debug/parlor target/schemathesis");
    Ok(Work::Run(vec![build, run]))
}

fn plan_fuzz(_: &Path) -> Result<Work, Missing> {
    // libfuzzer-sys compiles libFuzzer, which is C++.
    let compiler = or_from_environment("CXX", "c++");
    need(&format!("{compiler} --version"), "there is no C++ compiler", "apt-get install g++")?;
    Ok(Work::one(Invocation::cargo("check --manifest-path fuzz/Cargo.toml")))
}

fn or_from_environment(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Whether `probe`, a program with its arguments, runs and succeeds.
pub(crate) fn need(probe: &str, why: &str, hint: &str) -> Result<(), Missing> {
    if Invocation::parse(probe).succeeds_quietly() {
        return Ok(());
    }
    Err(Missing { why: why.to_owned(), hint: format!("`{hint}`") })
}

impl Work {
    fn one(invocation: Invocation) -> Work {
        Work::Run(vec![invocation])
    }
}

impl Invocation {
    /// `program` with no arguments yet.
    pub(crate) fn new(program: &str) -> Invocation {
        Invocation { program: program.to_owned(), args: Vec::new(), env: Vec::new() }
    }

    /// Cargo with `args`, which are split at spaces.
    pub(crate) fn cargo(args: &str) -> Invocation {
        Invocation::new("cargo").args(args)
    }

    fn parse(line: &str) -> Invocation {
        let (program, args) = line.split_once(' ').unwrap_or((line, ""));
        Invocation::new(program).args(args)
    }

    /// Adds `args`, which are split at spaces.
    pub(crate) fn args(mut self, args: &str) -> Invocation {
        self.args.extend(args.split_whitespace().map(str::to_owned));
        self
    }

    /// Sets a variable of the program's environment.
    pub(crate) fn env(mut self, name: &'static str, value: &str) -> Invocation {
        self.env.push((name, value.to_owned()));
        self
    }

    /// The command, ready to spawn. It has no stdin, so nothing can wait for an answer that nobody gives.
    pub(crate) fn command(&self, root: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(root).stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn succeeds_quietly(&self) -> bool {
        let mut command = self.command(Path::new("."));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_owned() } else { format!("'{word}'") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let doc = Invocation::cargo("doc --no-deps").env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(doc.to_string(), "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps");
    }

    #[test]
    fn a_missing_program_is_reported_with_its_hint() {
        let missing = need("no-such-program --version", "it is not there", "get it").unwrap_err();
        assert_eq!((missing.why.as_str(), missing.hint.as_str()), ("it is not there", "`get it`"));
    }
}
