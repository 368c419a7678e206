//! Test programs: built in one call of cargo, and run some at a time, because most tests wait.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::invocation::Invocation;
use crate::process::{Failure, heard, seconds, silence_max};

/// What builds the tests of the workspace. All steps that run some build the same, so only the first waits for it.
pub(crate) const BUILD: &str =
    "test --workspace --all-features --no-run --message-format json-render-diagnostics";

/// Tests that a step runs.
#[derive(Debug)]
pub(crate) struct Tests {
    pub(crate) of: Packages,
    /// Variables of their environment.
    pub(crate) env: Vec<(&'static str, String)>,
}

/// The packages whose tests run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packages {
    /// All but these, whose tests another step runs; with the tests in the documentation.
    AllBut(&'static [&'static str]),
    /// These alone.
    Only(&'static [&'static str]),
}

impl Packages {
    fn has(self, package: &str) -> bool {
        match self {
            Packages::AllBut(others) => !others.contains(&package),
            Packages::Only(names) => names.contains(&package),
        }
    }
}

/// A program with tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) package: String,
    /// `lib` for the unit tests of a library, `bin` for those of a binary, otherwise the name of an integration test.
    pub(crate) target: String,
    pub(crate) file: PathBuf,
    /// The folder of its package, in which it runs.
    pub(crate) folder: PathBuf,
}

/// Builds the tests and runs them; the error is how to repeat what failed.
pub(crate) fn run(root: &Path, tests: &Tests) -> Result<(), Failure> {
    let build = Invocation::cargo(BUILD);
    println!("    $ {build}");
    let programs = built(root, &build)?;
    let chosen = programs.into_iter().filter(|program| tests.of.has(&program.package));
    let mut runs: Vec<Run> = chosen.map(|program| Run::of(program, &tests.env)).collect();
    if let Packages::AllBut(others) = tests.of {
        if !others.is_empty() {
            println!("    another step runs the tests of {}", others.join(", "));
        }
        // It compiles most of its time, and is the longest.
        let documented = Invocation::cargo("test --workspace --all-features --doc --no-fail-fast");
        runs.insert(
            0,
            Run {
                name: "documentation".to_owned(),
                again: documented.to_string(),
                folder: root.into(),
                invocation: documented,
            },
        );
    }
    if runs.is_empty() {
        let excerpt = vec![format!("there are no tests: {:?}", tests.of)];
        return Err(Failure { why: build.to_string(), excerpt });
    }
    let printing = Mutex::new(());
    Failure::all(side_by_side(runs, |run| perform(&run, &printing)))
}

/// Builds test programs; the error has what the compiler said.
pub(crate) fn built(root: &Path, build: &Invocation) -> Result<Vec<Program>, Failure> {
    let (messages, failure) =
        (Mutex::new(String::new()), |excerpt| Failure { why: build.to_string(), excerpt });
    let take = |line: &str| {
        if line.starts_with('{') {
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            messages.push_str(line);
            messages.push('\n');
        } else {
            eprintln!("{line}");
        }
    };
    match heard(root, build, silence_max(), &take) {
        Ok((true, _)) => Ok(programs(&messages.into_inner().unwrap_or_else(PoisonError::into_inner))),
        Ok((false, excerpt)) => Err(failure(excerpt)),
        Err(error) => Err(failure(vec![format!("it could not be started: {error}")])),
    }
}

/// A program to run, and what repeats it.
struct Run {
    name: String,
    invocation: Invocation,
    folder: PathBuf,
    again: String,
}

impl Run {
    fn of(program: Program, env: &[(&'static str, String)]) -> Run {
        let Program { package, target, file, folder } = program;
        let of = |invocation: Invocation| {
            env.iter().fold(invocation, |invocation, (name, value)| invocation.env(name, value))
        };
        let again = of(Invocation::cargo("test --workspace --all-features")).args(&match target.as_str() {
            "lib" => format!("-p {package} --lib"),
            "bin" => format!("-p {package} --bins"),
            target => format!("--test {target}"),
        });
        let invocation = of(Invocation::new(&file.to_string_lossy()));
        Run { name: format!("{package} {target}"), again: again.to_string(), invocation, folder }
    }
}

/// Runs a program. Of one that passes, the counts and the tests that it ignores are shown; of another, all it prints.
fn perform(run: &Run, printing: &Mutex<()>) -> Option<Failure> {
    let start = Instant::now();
    let lines = Mutex::new(Vec::new());
    let take = |line: &str| lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
    let (succeeded, excerpt) = match heard(&run.folder, &run.invocation, silence_max(), &take) {
        Ok(ran) => ran,
        Err(error) => (false, vec![format!("it could not be started: {error}")]),
    };
    let lines = lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    let _in_turn = printing.lock();
    let said = if succeeded { "passed" } else { "FAILED" };
    println!("    {}: {said} in {}", run.name, seconds(start.elapsed()));
    lines.iter().filter(|line| !succeeded || is_told(line)).for_each(|line| println!("        {line}"));
    (!succeeded).then(|| Failure { why: run.again.clone(), excerpt })
}

/// Whether a line of a program that passes is shown.
fn is_told(line: &str) -> bool {
    let ran_none = line.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored");
    line.starts_with("test ") && line.contains("... ignored") || line.starts_with("test result:") && !ran_none
}

/// Does `work` for all items, as many at a time as there are cores; what it gave, in no order.
pub(crate) fn side_by_side<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> Option<R> + Sync) -> Vec<R> {
    let items = Mutex::new(items.into_iter());
    let found = Mutex::new(Vec::new());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(item) = next() {
                    let faults = work(item);
                    found.lock().unwrap_or_else(PoisonError::into_inner).extend(faults);
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The programs among cargo's messages, one of which is on each line.
fn programs(messages: &str) -> Vec<Program> {
    messages.lines().filter_map(program).collect()
}

fn program(message: &str) -> Option<Program> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let text = |name: &str| message.pointer(name).and_then(serde_json::Value::as_str);
    let file = text("/executable")?.into();
    let folder = Path::new(text("/manifest_path")?).parent()?.to_owned();
    // `path+file:///folder#package@version`
    let (_, id) = text("/package_id")?.rsplit_once('#')?;
    let (package, _) = id.split_once('@')?;
    let target = match text("/target/kind/0")? {
        "test" => text("/target/name")?,
        "bin" => "bin",
        _ => "lib",
    };
    message.pointer("/profile/test")?.as_bool()?.then_some(())?;
    Some(Program { package: package.to_owned(), target: target.to_owned(), file, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_named_by_cargo() {
        let lib = r#"{"reason":"compiler-artifact","package_id":"path+file:///t/crates/a#parlor-a@0.2.0",
            "manifest_path":"/t/crates/a/Cargo.toml","target":{"kind":["lib"],"name":"parlor_a"},
            "profile":{"test":true},"executable":"/deps/parlor_a-1"}"#;
        let messages = [
            lib.replace('\n', ""),
            lib.replace('\n', "").replace(r#"["lib"],"name":"parlor_a""#, r#"["test"],"name":"room""#),
            lib.replace('\n', "").replace("lib", "bin"),
            // A binary that the tests start, and what is no program.
            lib.replace('\n', "").replace("true", "false").replace("lib", "bin"),
            lib.replace('\n', "").replace(r#""/deps/parlor_a-1""#, "null"),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = programs(&messages.join("\n"));
        let names: Vec<&str> = found.iter().map(|program| program.target.as_str()).collect();
        assert_eq!(names, ["lib", "room", "bin"]);
        let (file, folder) = ("/deps/parlor_a-1".into(), "/t/crates/a".into());
        let first = Program { package: "parlor-a".to_owned(), target: "lib".to_owned(), file, folder };
        assert_eq!(found[0], first);
    }

    #[test]
    fn a_failed_program_names_the_command_that_repeats_it() {
        let program = |target: &str| Program {
            package: "parlor-a".to_owned(),
            target: target.to_owned(),
            file: "/no/such/program".into(),
            folder: "/".into(),
        };
        let run = Run::of(program("room"), &[("PARLOR_SEEDS", "7".to_owned())]);
        let failure = perform(&run, &Mutex::new(())).expect("it cannot be started");
        assert_eq!(failure.why, "PARLOR_SEEDS=7 cargo test --workspace --all-features --test room");
        assert!(failure.excerpt.concat().contains("could not be started"));
        assert!(Run::of(program("lib"), &[]).again.ends_with("-p parlor-a --lib"));
    }

    #[test]
    fn of_a_program_that_passes_what_was_ignored_and_the_counts_are_told() {
        assert!(is_told("test a::b ... ignored, it needs root"));
        assert!(is_told("test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured"));
        assert!(!is_told("test a::b ... ok"));
        assert!(!is_told("test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured"));
    }

    #[test]
    fn each_package_is_of_one_of_two_steps_that_share_them() {
        let names = &["parlor-a"];
        for package in ["parlor-a", "parlor-b"] {
            assert_ne!(Packages::Only(names).has(package), Packages::AllBut(names).has(package), "{package}");
            assert!(Packages::AllBut(&[]).has(package));
        }
    }

    #[test]
    fn all_work_is_done_once() {
        let mut found =
            side_by_side((0..50).collect(), |it: u32| it.is_multiple_of(2).then(|| format!("{it:02}")));
        found.sort_unstable();
        assert_eq!(found, (0..25).map(|it| format!("{:02}", it * 2)).collect::<Vec<_>>());
    }
}
