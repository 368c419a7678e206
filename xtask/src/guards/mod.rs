//! Mutation check of the threat tests: takes each guard of `guards.toml` out of a copy of the tree; the test that
//! covers it must fail.
//!
//! Almost all guards get a switch ([`switches`]) and share one build. The others are built one by one.

mod list;
mod postgres;
mod switches;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use self::list::{Guard, Test};
use self::postgres::Postgres;
use self::switches::Removal;
use crate::invocation::Invocation;
use crate::process::{Failure, heard};
use crate::programs::{self, Program, side_by_side};

/// A test that runs longer without its guard counts as hung, which is not a visible failure.
const TEST_TIME_MAX: Duration = Duration::from_secs(300);

/// `cargo xtask test --only guards`; the error is how to repeat it.
pub(crate) fn run(root: &Path, extent: Extent) -> Result<(), Failure> {
    let outcome = check(root, extent);
    if let Err(why) = &outcome {
        println!("guards: {why}");
    }
    outcome.map_err(|faults| Failure {
        why: "cargo xtask test --only guards".to_owned(),
        excerpt: faults.lines().map(str::to_owned).collect(),
    })
}

/// Which guards are taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// One [part](part_of) of those with a switch, which share one build. The newest commit chooses the part.
    Part,
    /// All, also those that are built one by one.
    All,
}

/// Into how many parts the guards are divided.
const PARTS: u64 = 3;

/// The part of a guard. The tests of a part are in programs that no other part builds.
fn part_of(test: &Test) -> u64 {
    match (test.target.as_str(), test.package.as_str()) {
        ("lib", _) => 0,
        (_, "parlor-services") => 1,
        _ => 2,
    }
}

fn check(root: &Path, extent: Extent) -> Result<(), String> {
    let guards = list::list(root)?;
    let sources = Sources::of(root, &guards)?;
    let bench = Bench::new(root, &sources, extent)?;
    let faults = bench.faults(&guards, &sources);
    // What was built of the copy has the names of what is built of the checkout. While its sources are there, cargo
    // takes the one for the other.
    let _ = fs::remove_dir_all(&bench.tree);
    let faults = faults?;
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// The files with guards.
struct Sources {
    /// As they are in the checkout.
    plain: BTreeMap<PathBuf, String>,
    /// With switches.
    changed: BTreeMap<PathBuf, String>,
    /// The guards that can have no switch, by their place in the list.
    without_switch: Vec<usize>,
}

impl Sources {
    fn of(root: &Path, guards: &[Guard]) -> Result<Sources, String> {
        let mut by_file: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, guard) in guards.iter().enumerate() {
            by_file.entry(&guard.file).or_default().push(number);
        }
        let mut sources =
            Sources { plain: BTreeMap::new(), changed: BTreeMap::new(), without_switch: Vec::new() };
        for (file, numbers) in by_file {
            let source = read(root, file)?;
            let removals: Vec<Removal> = numbers
                .iter()
                .map(|&number| {
                    let guard = &guards[number];
                    Ok(Removal { number, at: list::place(guard, &source)?, replace: guard.replace.clone() })
                })
                .collect::<Result<_, String>>()?;
            let (text, without) =
                switches::switched(&source, &removals).map_err(|error| format!("{file}: {error}"))?;
            sources.without_switch.extend(without);
            sources.changed.insert(file.into(), text);
            sources.plain.insert(file.into(), source);
        }
        sources.add_helpers(root)?;
        Ok(sources)
    }

    /// Appends what the switches call to the `lib.rs` of each crate that has some.
    fn add_helpers(&mut self, root: &Path) -> Result<(), String> {
        let libraries: BTreeSet<String> = self
            .changed
            .keys()
            .filter_map(|file| file.to_str()?.split_once("/src/"))
            .map(|(folder, _)| format!("{folder}/src/lib.rs"))
            .collect();
        for file in libraries {
            let text = match self.changed.remove(Path::new(&file)) {
                Some(text) => text,
                None => read(root, &file)?,
            };
            self.changed.insert(file.into(), text + switches::HELPER);
        }
        Ok(())
    }
}

fn read(root: &Path, file: &str) -> Result<String, String> {
    fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Passed,
    Failed,
    /// It was not run: no such test, or nothing that compiles.
    NotRun,
    TimedOut,
}

/// By package and target, as a [`Test`] has them.
type Programs = BTreeMap<(String, String), Program>;

/// A copy of the tree, and where it is built.
struct Bench {
    tree: PathBuf,
    target: PathBuf,
    /// A number that the newest commit decides.
    commit: u64,
    extent: Extent,
    postgres: Postgres,
}

impl Bench {
    fn new(root: &Path, sources: &Sources, extent: Extent) -> Result<Bench, String> {
        let tree = root.join("target/guards/tree");
        tree::copy_tree(root, &tree, &sources.changed)?;
        // The target of all other steps: what comes from outside is built there already.
        Ok(Bench {
            tree,
            target: root.join("target"),
            commit: commit(root)?,
            extent,
            postgres: Postgres::start(root)?,
        })
    }

    fn faults(&self, guards: &[Guard], sources: &Sources) -> Result<Vec<String>, String> {
        match self.extent {
            Extent::All => {
                let mut faults = self.faults_together(guards, sources, (0..guards.len()).collect())?;
                for &number in &sources.without_switch {
                    faults.extend(self.fault_alone(&guards[number], sources)?);
                }
                Ok(faults)
            }
            Extent::Part => {
                let part = self.commit % PARTS;
                println!(
                    "    part {} of {PARTS}, which the newest commit chooses; --weekly has all, and {} without a switch",
                    part + 1,
                    sources.without_switch.len()
                );
                let is_chosen = |number: &usize| part_of(&guards[*number].test) == part;
                self.faults_together(guards, sources, (0..guards.len()).filter(is_chosen).collect())
            }
        }
    }

    /// Faults of the guards with a switch and of their tests.
    fn faults_together(
        &self,
        guards: &[Guard],
        sources: &Sources,
        chosen: Vec<usize>,
    ) -> Result<Vec<String>, String> {
        let targets = chosen.iter().map(|&number| guards[number].test.target.as_str()).collect();
        let programs = self.build(&targets)?;
        let tests = by_program(chosen.iter().map(|&number| &guards[number]));
        let whole = side_by_side(tests, |(name, tests)| self.faults_of_whole(&programs, name, &tests));
        let numbers: Vec<usize> =
            chosen.into_iter().filter(|number| !sources.without_switch.contains(number)).collect();
        let without = side_by_side(numbers, |number| {
            fault_of(&guards[number], self.run_test(&programs, &guards[number].test, Some(number)))
        });
        Ok(whole.into_iter().flatten().chain(without).collect())
    }

    /// The fault of a guard without a switch, if it has one. Its file is changed, built and restored.
    fn fault_alone(&self, guard: &Guard, sources: &Sources) -> Result<Option<String>, String> {
        let mut source = sources.plain[Path::new(&guard.file)].clone();
        source.replace_range(list::place(guard, &source)?, &guard.replace);
        let file = self.tree.join(&guard.file);
        let fault = |error: std::io::Error| format!("{}: {error}", file.display());
        // The other switches of the crate still call it.
        if guard.file.ends_with("/src/lib.rs") {
            source.push_str(switches::HELPER);
        }
        tree::write(&file, source.as_bytes()).map_err(fault)?;
        let ended = match self.build(&BTreeSet::from([guard.test.target.as_str()])) {
            Ok(programs) => self.run_test(&programs, &guard.test, None),
            Err(_) => Ended::NotRun,
        };
        tree::write(&file, sources.changed[Path::new(&guard.file)].as_bytes()).map_err(fault)?;
        Ok(fault_of(guard, ended))
    }

    /// Builds the programs of the targets; the error is what the compiler said.
    fn build(&self, targets: &BTreeSet<&str>) -> Result<Programs, String> {
        let mut cargo = Invocation::cargo(programs::BUILD);
        for target in targets {
            cargo = if *target == "lib" { cargo.args("--lib") } else { cargo.args("--test").args(target) };
        }
        cargo = cargo.env("CARGO_TARGET_DIR", &self.target.to_string_lossy());
        // Of a guard without a switch, one line of a crate changes.
        let cargo = cargo.env("CARGO_INCREMENTAL", if self.extent == Extent::All { "1" } else { "0" });
        let built = programs::built(&self.tree, &cargo)
            .map_err(|failure| format!("the tests do not build:\n{}", failure.excerpt.join("\n")))?;
        let by_name = |program: Program| ((program.package.clone(), program.target.clone()), program);
        Ok(built.into_iter().map(by_name).collect())
    }

    /// Runs tests of one program with all guards in place. The error has those that do not pass.
    fn faults_of_whole(
        &self,
        programs: &Programs,
        name: (String, String),
        tests: &BTreeSet<&Test>,
    ) -> Option<Vec<String>> {
        let passed = Mutex::new(BTreeSet::new());
        let take = |line: &str| {
            let name = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... ok"));
            passed.lock().unwrap_or_else(PoisonError::into_inner).extend(name.map(str::to_owned));
        };
        if let Some(program) = programs.get(&name) {
            // No number: all guards are in place.
            let exactly =
                Invocation::new(&program.file.to_string_lossy()).args("--exact").env(switches::VARIABLE, "");
            let postgres = tests.iter().find_map(|test| self.postgres.env(test));
            let exactly = postgres.iter().fold(exactly, |run, (name, value)| run.env(name, value));
            let run = tests.iter().fold(exactly, |run, test| run.args(&test.name));
            // What it could not run is missing among what passed.
            let _ = heard(&program.folder, &run, Some(TEST_TIME_MAX), &take);
        }
        let passed = passed.into_inner().unwrap_or_else(PoisonError::into_inner);
        println!("    {} of {} tests pass with all guards: {} {}", passed.len(), tests.len(), name.0, name.1);
        let missing = tests.iter().filter(|test| !passed.contains(&test.name));
        let faults: Vec<String> =
            missing.map(|test| format!("{} does not pass with all guards in place", test.name)).collect();
        (!faults.is_empty()).then_some(faults)
    }

    /// Runs one test, without the guard `out` if it has a switch.
    fn run_test(&self, programs: &Programs, test: &Test, out: Option<usize>) -> Ended {
        let Some(program) = programs.get(&(test.package.clone(), test.target.clone())) else {
            return Ended::NotRun;
        };
        let command = |more: &[&str]| {
            let mut command = Command::new(&program.file);
            command.current_dir(&program.folder).arg("--exact").args(more).arg(&test.name);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
                .env_remove(switches::VARIABLE)
                .envs(out.map(|number| (switches::VARIABLE, number.to_string())))
                .envs(self.postgres.env(test));
            command
        };
        let listed = command(&["--list"]).stdout(Stdio::piped()).output();
        let is_there = format!("{}: test", test.name);
        if !listed
            .is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == is_there))
        {
            return Ended::NotRun;
        }
        let Ok(mut running) = command(&[]).spawn() else { return Ended::NotRun };
        let began = Instant::now();
        while began.elapsed() < TEST_TIME_MAX {
            match running.try_wait() {
                Ok(Some(status)) if status.success() => return Ended::Passed,
                Ok(Some(_)) => return Ended::Failed,
                Ok(None) => thread::sleep(Duration::from_millis(20)),
                Err(_) => return Ended::NotRun,
            }
        }
        let _ = running.kill();
        Ended::TimedOut
    }
}

/// The first digits of the newest commit's name.
fn commit(root: &Path) -> Result<u64, String> {
    let output = Command::new("git").current_dir(root).args(["rev-parse", "HEAD"]).output();
    let output = output.map_err(|error| format!("git could not be started: {error}"))?;
    let name = String::from_utf8_lossy(&output.stdout);
    let digits = name.get(..8).and_then(|digits| u64::from_str_radix(digits, 16).ok());
    digits.ok_or_else(|| format!("git knows no commit in {}", root.display()))
}

/// The tests of each program.
fn by_program<'a>(guards: impl Iterator<Item = &'a Guard>) -> Vec<((String, String), BTreeSet<&'a Test>)> {
    let mut programs: BTreeMap<_, BTreeSet<&Test>> = BTreeMap::new();
    for Guard { test, .. } in guards {
        programs.entry((test.package.clone(), test.target.clone())).or_default().insert(test);
    }
    programs.into_iter().collect()
}

fn fault_of(guard: &Guard, ended: Ended) -> Option<String> {
    println!("    {ended:?} without a guard of threat {}: {}", guard.threat, guard.test.name);
    let Guard { test, find, file, .. } = guard;
    (ended != Ended::Failed).then(|| format!("{} {ended:?} without `{find}` in {file}", test.name))
}
