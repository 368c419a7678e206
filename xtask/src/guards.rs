//! Mutation check of the threat tests: removes each guard of `guards.toml` from a copy of the tree; the test
//! that covers it must fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::runner::Failure;
use crate::steps::Invocation;

/// The list, in the workspace's root.
const LIST: &str = "xtask/guards.toml";
/// A test that runs longer without its guard counts as hung, which is not a visible failure.
const TEST_TIME_MAX: Duration = Duration::from_secs(300);

/// A guard and the test that covers it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Guard {
    threat: i64,
    file: String,
    find: String,
    replace: String,
    test: Test,
}

/// A test, as cargo selects it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    package: String,
    target: String,
    name: String,
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

/// `cargo xtask test --only guards`; the error is how to repeat it.
pub(crate) fn run(root: &Path) -> Result<(), Failure> {
    let outcome = check(root);
    if let Err(why) = &outcome {
        println!("guards: {why}");
    }
    outcome.map_err(|faults| Failure {
        why: "cargo xtask test --only guards".to_owned(),
        excerpt: faults.lines().map(str::to_owned).collect(),
    })
}

fn check(root: &Path) -> Result<(), String> {
    let mut guards = list(root)?;
    // Sorted by what is built together: restoring a guard costs as much as removing it.
    guards.sort_by(|a, b| (&a.file, &a.test).cmp(&(&b.file, &b.test)));
    let benches = Bench::pair(root)?;
    benches[0].warm(&guards[0].test);
    benches[0].lend_target(&benches[1])?;
    // Crates build one after the other here, which keeps one core busy. Two rows keep two busy.
    let (ours, theirs) = guards.split_at(guards.len() / 2);
    let faults = std::thread::scope(|scope| {
        let other = scope.spawn(|| benches[1].faults(theirs));
        let mut faults = benches[0].faults(ours)?;
        faults.extend(other.join().map_err(|_| "a thread panicked".to_owned())??);
        Ok::<_, String>(faults)
    })?;
    if std::env::var_os("CI").is_some() {
        // The copies are not reused, and the next step needs the disk space.
        benches.iter().for_each(Bench::remove);
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// A copy of the tree, and where it is built.
struct Bench {
    tree: PathBuf,
    target: PathBuf,
}

impl Bench {
    fn pair(root: &Path) -> Result<[Bench; 2], String> {
        let benches = ["0", "1"].map(|name| {
            let folder = root.join("target/guards").join(name);
            Bench { tree: folder.join("tree"), target: folder.join("target") }
        });
        for bench in &benches {
            copy_tree(root, &bench.tree)?;
        }
        Ok(benches)
    }

    /// Frees its disk space. What cannot be removed stays until `cargo clean`.
    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.target);
        let _ = fs::remove_dir_all(&self.tree);
    }

    /// Builds a test, and with it most of what the others need.
    fn warm(&self, test: &Test) {
        if self.build(test).is_none() {
            println!("    {} does not build; what comes says so again", test.name);
        }
    }

    /// Copies this bench's build to another one without a build: the dependencies are the same there.
    fn lend_target(&self, other: &Bench) -> Result<(), String> {
        if other.target.exists() {
            return Ok(());
        }
        let copied = Command::new("cp").arg("-a").args([&self.target, &other.target]).status();
        let is_copied = copied.is_ok_and(|status| status.success());
        if is_copied { Ok(()) } else { Err(format!("{} could not be copied", self.target.display())) }
    }

    /// Faults of the guards and their tests, one per line.
    fn faults(&self, guards: &[Guard]) -> Result<Vec<String>, String> {
        let mut faults = Vec::new();
        let tests: BTreeSet<&Test> = guards.iter().map(|guard| &guard.test).collect();
        for test in tests {
            let ended = self.run_test(test);
            println!("    {ended:?} with all guards: {}", test.name);
            if ended != Ended::Passed {
                faults.push(format!("{} does not pass with all guards in place", test.name));
            }
        }
        for guard in guards {
            let ended = self.without(guard)?;
            println!("    {ended:?} without a guard of threat {}: {}", guard.threat, guard.test.name);
            if ended != Ended::Failed {
                let Guard { test, find, file, .. } = guard;
                faults.push(format!("{} {ended:?} without `{find}` in {file}", test.name));
            }
        }
        Ok(faults)
    }

    fn without(&self, guard: &Guard) -> Result<Ended, String> {
        let file = self.tree.join(&guard.file);
        let fault = |error: std::io::Error| format!("{}: {error}", file.display());
        let source = fs::read_to_string(&file).map_err(fault)?;
        write(&file, mutated(guard, &source)?.as_bytes()).map_err(fault)?;
        let ended = self.run_test(&guard.test);
        write(&file, source.as_bytes()).map_err(fault)?;
        Ok(ended)
    }

    /// Builds the program that a test is in; `None` if nothing compiles.
    fn build(&self, test: &Test) -> Option<PathBuf> {
        let target =
            if test.target == "lib" { "--lib".to_owned() } else { format!("--test {}", test.target) };
        let invocation = Invocation::cargo(&format!("test --no-run -p {} {target}", test.package));
        let invocation = invocation.env("CARGO_TARGET_DIR", &self.target.to_string_lossy());
        // Its output and backtraces are not read.
        let invocation = invocation.env("RUSTFLAGS", "-A warnings").env("CARGO_PROFILE_DEV_DEBUG", "0");
        // The same crate changes by one line each time.
        let invocation = invocation.env("CARGO_INCREMENTAL", "1");
        let mut command = invocation.command(&self.tree);
        let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output().ok()?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { executable(&said) } else { None }
    }

    fn run_test(&self, test: &Test) -> Ended {
        let Some(program) = self.build(test) else { return Ended::NotRun };
        let folder = test.package.strip_prefix("parlor-").unwrap_or("client");
        let places = ["crates", "tests", "tools"].map(|place| self.tree.join(place).join(folder));
        let Some(folder) = places.into_iter().find(|place| place.is_dir()) else { return Ended::NotRun };
        let program = |more: &[&str]| {
            let mut command = Command::new(&program);
            command.current_dir(&folder).arg("--exact").args(more).arg(&test.name);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let listed = program(&["--list"]).stdout(Stdio::piped()).output();
        let is_there = format!("{}: test", test.name);
        if !listed
            .is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == is_there))
        {
            return Ended::NotRun;
        }
        let Ok(mut running) = program(&[]).spawn() else { return Ended::NotRun };
        let began = Instant::now();
        while began.elapsed() < TEST_TIME_MAX {
            match running.try_wait() {
                Ok(Some(status)) if status.success() => return Ended::Passed,
                Ok(Some(_)) => return Ended::Failed,
                Ok(None) => std::thread::sleep(Duration::from_millis(20)),
                Err(_) => return Ended::NotRun,
            }
        }
        let _ = running.kill();
        Ended::TimedOut
    }
}

/// The program's path in cargo's output: `Executable tests/a.rs (/target/debug/deps/a-12)`.
fn executable(said: &str) -> Option<PathBuf> {
    let line = said.lines().rfind(|line| line.trim_start().starts_with("Executable "))?;
    let (_, path) = line.rsplit_once('(')?;
    Some(path.trim_end().strip_suffix(')')?.into())
}

fn list(root: &Path) -> Result<Vec<Guard>, String> {
    let text = fs::read_to_string(root.join(LIST)).map_err(|error| format!("{LIST}: {error}"))?;
    parse(&text)
}

fn parse(text: &str) -> Result<Vec<Guard>, String> {
    let list: toml::Table = text.parse().map_err(|error| format!("{LIST}: {error}"))?;
    let guards = list.get("guard").and_then(toml::Value::as_array);
    let guards = guards.ok_or_else(|| format!("{LIST} has no [[guard]]"))?;
    guards.iter().enumerate().map(|(at, guard)| parse_guard(guard).map_err(|why| fault(at, &why))).collect()
}

fn fault(at: usize, why: &str) -> String {
    format!("{LIST}: guard {} {why}", at + 1)
}

fn parse_guard(guard: &toml::Value) -> Result<Guard, String> {
    let may_be_empty = |name: &str| {
        let text = guard.get(name).and_then(toml::Value::as_str);
        text.map(str::to_owned).ok_or_else(|| format!("has no `{name}`"))
    };
    let text = |name: &str| {
        may_be_empty(name)
            .and_then(|text| if text.is_empty() { Err(format!("has an empty `{name}`")) } else { Ok(text) })
    };
    let threat = guard.get("threat").and_then(toml::Value::as_integer);
    let test = Test { package: text("package")?, target: text("target")?, name: text("test")? };
    let (find, replace) = (text("find")?, may_be_empty("replace")?);
    if find == replace {
        return Err("replaces its text with the same".to_owned());
    }
    Ok(Guard { threat: threat.ok_or("has no `threat`")?, file: text("file")?, find, replace, test })
}

/// The text of a file without the guard.
fn mutated(guard: &Guard, source: &str) -> Result<String, String> {
    match source.matches(&guard.find).count() {
        1 => Ok(source.replacen(&guard.find, &guard.replace, 1)),
        count => Err(format!("`{}` stands {count} times in {}, not once", guard.find, guard.file)),
    }
}

/// Makes `tree` equal to the checkout's tracked and unignored files. Equal files are left alone and copies
/// keep their time, so that cargo builds only what has changed.
fn copy_tree(root: &Path, tree: &Path) -> Result<(), String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git could not be started: {error}"))?;
    let names = String::from_utf8_lossy(&listing.stdout);
    let files: BTreeSet<PathBuf> =
        names.split('\0').filter(|name| !name.is_empty()).map(|name| tree.join(name)).collect();
    for to in &files {
        let from = root.join(to.strip_prefix(tree).expect("it was just joined"));
        // A tracked file may have been removed.
        if from.is_file() {
            copy(&from, to).map_err(|error| format!("{}: {error}", to.display()))?;
        }
    }
    remove_others(tree, &|file| {
        let from = root.join(file.strip_prefix(tree).expect("it stands in the tree"));
        files.contains(file) && from.is_file()
    })
    .map_err(|error| format!("{}: {error}", tree.display()))
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let bytes = fs::read(from)?;
    if fs::read(to).is_ok_and(|before| before == bytes) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    // With its old time it would look as if it had been built already.
    write(to, &bytes)
}

/// Writes a file so that cargo sees the change.
#[allow(clippy::disallowed_methods, reason = "times of files are times of day")]
fn write(to: &Path, bytes: &[u8]) -> std::io::Result<()> {
    fs::write(to, bytes)?;
    fs::File::options().write(true).open(to)?.set_modified(SystemTime::now())
}

/// Removes files that are not kept, and folders left empty: cargo takes a folder among the workspace's
/// members for a crate.
fn remove_others(folder: &Path, is_kept: &dyn Fn(&Path) -> bool) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            remove_others(&path, is_kept)?;
            if fs::read_dir(&path)?.next().is_none() {
                fs::remove_dir(&path)?;
            }
        } else if !is_kept(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"
        [[guard]]
        threat = 4
        file = "a.rs"
        find = "if it {"
        replace = "if false {"
        package = "p"
        target = "lib"
        test = "t"
    "#;

    #[test]
    fn a_list_is_read() {
        let guards = parse(ONE).unwrap();
        let test = Test { package: "p".into(), target: "lib".into(), name: "t".into() };
        let (file, find, replace) = ("a.rs".into(), "if it {".into(), "if false {".into());
        assert_eq!(guards, [Guard { threat: 4, file, find, replace, test }]);
    }

    #[test]
    fn what_a_list_lacks_is_named() {
        for name in ["threat", "file", "find", "replace", "package", "target", "test"] {
            let lines = ONE.lines().filter(|line| !line.trim_start().starts_with(&format!("{name} =")));
            let why = parse(&lines.collect::<Vec<&str>>().join("\n")).unwrap_err();
            assert!(why.contains("guard 1") && why.contains(name), "{why}");
        }
        assert!(parse("").is_err() && parse("guard =").is_err());
        assert!(parse(&ONE.replace("if false {", "if it {")).unwrap_err().contains("the same"));
    }

    #[test]
    fn the_program_is_named_by_cargo() {
        let said = "   Compiling a\n  Executable unittests src/lib.rs (/t/deps/a-1)\n";
        assert_eq!(executable(said), Some("/t/deps/a-1".into()));
        assert_eq!(executable("error: no"), None);
    }

    #[test]
    fn a_text_that_is_not_there_once_is_refused() {
        let guard = &parse(ONE).unwrap()[0];
        assert_eq!(mutated(guard, "x if it { y").unwrap(), "x if false { y");
        assert!(mutated(guard, "x").unwrap_err().contains("0 times"));
        assert!(mutated(guard, "if it { if it {").unwrap_err().contains("2 times"));
    }

    #[test]
    fn each_guard_of_the_list_stands_once_in_its_file_and_its_test_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let guards = list(root).unwrap();
        for guard in &guards {
            let source = fs::read_to_string(root.join(&guard.file)).unwrap();
            mutated(guard, &source).unwrap_or_else(|why| panic!("threat {}: {why}", guard.threat));
            let number = format!("threat_{:02}_", guard.threat);
            assert!(guard.test.name.contains(&number), "{} is for threat {}", guard.test.name, guard.threat);
        }
        for threat in [2, 3, 4, 7, 10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 27, 28, 29, 30] {
            assert!(guards.iter().any(|guard| guard.threat == threat), "no guard for threat {threat}");
        }
    }
}
