//! What a step is, and how it says what it needs.

use std::path::Path;

use crate::guards::Extent;
use crate::invocation::Invocation;
use crate::process::Failure;
use crate::programs::Tests;

/// One step.
pub(crate) struct Step {
    /// Its name for `--only`.
    pub(crate) name: &'static str,
    /// What it checks, for `--list`.
    pub(crate) what: &'static str,
    /// The level of runs that include it.
    pub(crate) level: Level,
    /// Whether it runs beside the steps that follow, in a run of all of them: it compiles into a folder of its own
    /// while they wait for what they test.
    pub(crate) is_beside: bool,
    /// Decides how it runs on this machine.
    pub(crate) plan: fn(&Path, Level) -> Result<Work, Missing>,
}

impl Step {
    /// The same, beside the steps that follow.
    pub(crate) const fn beside(self) -> Step {
        Step { is_beside: true, ..self }
    }
}

/// When a step runs without being named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// Always.
    Quick,
    /// With `--all`: it takes long, or needs more than Rust, git and a C linker.
    Long,
    /// With `--weekly`: it needs what others wrote, or an hour.
    Weekly,
}

impl Level {
    /// The option that asks for it.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Level::Quick => "",
            Level::Long => "--all",
            Level::Weekly => "--weekly",
        }
    }
}

/// What a step does.
#[derive(Debug)]
pub(crate) enum Work {
    /// The rules of [`crate::tidy`], in this process.
    Tidy,
    /// Test programs, some at a time.
    Tests(Tests),
    /// The guards of [`crate::guards`], in this process.
    Guards(Extent),
    /// The build and size of [`crate::web`].
    Web(Invocation),
    /// Programs, one after another. A failed one does not stop those after it.
    Run(Vec<Invocation>),
}

/// Why a step cannot run here, and how to make it run.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) why: String,
    pub(crate) hint: String,
}

impl From<Missing> for Failure {
    fn from(Missing { why, hint }: Missing) -> Failure {
        Failure::of(format!("{why}: {hint}"))
    }
}

pub(crate) const fn step(
    name: &'static str,
    what: &'static str,
    plan: fn(&Path, Level) -> Result<Work, Missing>,
) -> Step {
    Step { name, what, level: Level::Quick, is_beside: false, plan }
}

pub(crate) const fn long(
    name: &'static str,
    what: &'static str,
    plan: fn(&Path, Level) -> Result<Work, Missing>,
) -> Step {
    Step { name, what, level: Level::Long, is_beside: false, plan }
}

pub(crate) const fn weekly(
    name: &'static str,
    what: &'static str,
    plan: fn(&Path, Level) -> Result<Work, Missing>,
) -> Step {
    Step { name, what, level: Level::Weekly, is_beside: false, plan }
}

pub(crate) fn or_from_environment(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

/// Whether `probe`, a program with its arguments, runs and succeeds.
pub(crate) fn need(probe: &str, why: &str, hint: &str) -> Result<(), Missing> {
    if Invocation::parse(probe).succeeds_quietly() {
        return Ok(());
    }
    Err(Missing { why: why.to_owned(), hint: format!("`{hint}`") })
}

/// Whether this machine makes the environments of `xtask/pinned.sh`.
pub(crate) fn need_environments() -> Result<(), Missing> {
    let why = "python3 cannot make environments of its own";
    need("python3 -m ensurepip --version", why, "apt-get install python3 python3-venv")
}

/// The binary `parlor` and the library `parlor` share a documentation folder: the binary's pages are made
/// first, so that the library's remain.
pub(crate) fn documentation() -> [Invocation; 2] {
    let strict = |args| Invocation::cargo(args).env("RUSTDOCFLAGS", "-D warnings");
    let others = strict("doc --no-deps --workspace --all-features --exclude parlor-cli");
    [strict("doc --no-deps --package parlor-cli"), others]
}

impl Work {
    pub(crate) fn one(invocation: Invocation) -> Work {
        Work::Run(vec![invocation])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_reported_with_its_hint() {
        let missing = need("no-such-program --version", "it is not there", "get it").unwrap_err();
        assert_eq!((missing.why.as_str(), missing.hint.as_str()), ("it is not there", "`get it`"));
    }
}
