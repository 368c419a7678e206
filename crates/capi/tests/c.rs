//! C programs on the built library, compiled by the system's compilers with all warnings as errors, and once with
//! AddressSanitizer: what engines do, what they do wrong, and the example.
#![cfg(target_os = "linux")] // the flags of the compilers; the functions are the same everywhere

use parlor_testing::Hall;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Only a fault takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const SANITIZER: &[&str] = &["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder with `libparlor_capi.so`: that of this test, for which cargo built it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("it is in a folder").to_owned();
    assert!(folder.join("libparlor_capi.so").exists(), "cargo leaves the library in {}", folder.display());
    folder
}

/// Compiles a program, and returns where it is.
fn compile(compiler: &str, standard: &str, source: &Path, extra: &[&str], folder: &TempDir) -> PathBuf {
    let program = folder.path().join(source.file_stem().expect("a source has a name"));
    let library = library();
    let mut cc = Command::new(compiler);
    cc.args([standard, "-Wall", "-Wextra", "-Werror", "-pthread"]).args(extra).arg("-I");
    cc.arg(repository().join("crates/capi/include")).arg(source).arg("-L").arg(&library).arg("-lparlor_capi");
    cc.arg(format!("-Wl,-rpath,{}", library.display())).arg("-o").arg(&program);
    let output = cc.output().unwrap_or_else(|error| panic!("{compiler} cannot be run: {error}"));
    assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program of `tests/c` to its end, with a server.
fn run(compiler: &str, standard: &str, source: &str, extra: &[&str]) {
    let (folder, hall) = (TempDir::new().expect("a temporary folder"), Hall::start());
    let source = repository().join("crates/capi/tests/c").join(source);
    let program = compile(compiler, standard, &source, extra, &folder);
    let output = Command::new(program).env("PARLOR_SERVER", hall.address()).output().expect("it can be run");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {}\n{said}", source.display(), output.status);
}

#[test]
fn rooms_worlds_and_matches_are_played_from_c() {
    run("cc", "-std=c11", "play.c", &[]);
    run("cc", "-std=c11", "play.c", SANITIZER);
}

#[test]
fn wrong_calls_are_refused_and_change_nothing() {
    run("cc", "-std=c11", "wrong.c", &[]);
    run("cc", "-std=c11", "wrong.c", SANITIZER);
}

#[test]
fn the_header_is_one_of_cpp_too() {
    run("c++", "-std=c++17", "header.cpp", &[]);
}

#[test]
fn two_play_the_example() {
    play_the_example(&[]);
    play_the_example(SANITIZER);
}

fn play_the_example(extra: &[&str]) {
    let (folder, hall) = (TempDir::new().expect("a temporary folder"), Hall::start());
    let source = repository().join("examples/c/dots.c");
    let program = compile("cc", "-std=c11", &source, extra, &folder);
    let mut host = Player::start(&program, &[], &hall);
    let room = host.wait_for("room ");
    let code = room.strip_prefix("room ").expect("it begins so");
    let mut guest = Player::start(&program, &[code], &hall);
    host.wait_for("joined 1");
    guest.press("d ");
    host.wait_for("honks 1");
    guest.wait_for("dot 1 at 21 8");
    host.wait_for("dot 1 at 21 8");
    host.press("w");
    guest.wait_for("dot 0 at 20 7");
    guest.press("q");
    host.wait_for("left 1");
    guest.end();
    host.press("q");
    host.end();
}

/// A process of the example.
struct Player {
    process: Child,
    lines: Receiver<String>,
}

impl Player {
    fn start(program: &Path, args: &[&str], hall: &Hall) -> Self {
        let mut command = Command::new(program);
        command.args(args).env("PARLOR_SERVER", hall.address());
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = piped.spawn().expect("it can be run");
        let output = process.stdout.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // It is heard until the test ends.
                let _ = sender.send(line);
            }
        });
        Player { process, lines }
    }

    fn press(&mut self, keys: &str) {
        let input = self.process.stdin.as_mut().expect("it is piped");
        input.write_all(keys.as_bytes()).expect("it runs");
    }

    /// The next line that begins so.
    fn wait_for(&mut self, begin: &str) -> String {
        let due = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(line) if line.starts_with(begin) => return line,
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => panic!("no line begins with {begin:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended before a line began with {begin:?}"),
            }
        }
    }

    fn end(&mut self) {
        let status = self.process.wait().expect("it is our child");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        // After a failed test it may run still.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
