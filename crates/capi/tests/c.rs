//! C programs on the built library, compiled by the system's compilers with all warnings as errors, and once with
//! AddressSanitizer: what engines do, what they do wrong, and the example.
#![cfg(target_os = "linux")] // the flags of the compilers; the functions are the same everywhere

use parlor_testing::Hall;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Only a fault takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const NOW_AND_THEN: Duration = Duration::from_millis(300);
/// Lines that may wait to be looked at; the example waits with the next one then.
const LINES_MAX: usize = 1024;
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

/// As they stand: what a block does not declare is there before it.
#[test]
fn the_programs_of_the_documents_compile() {
    let document = std::fs::read_to_string(repository().join("docs/engines.md")).expect("it is there");
    let blocks: Vec<&str> =
        document.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(blocks.len() >= 2, "the document shows the functions in C");
    let mut source =
        "#include <stdio.h>\n#include \"parlor.h\"\nparlor_room room;\nint32_t player;\n".to_owned();
    for (number, block) in blocks.iter().enumerate() {
        let block = block.replace("#include \"parlor.h\"", "");
        source += &format!("int program_{number}(void) {{\n{block}\nreturn 0;\n}}\n");
    }
    let folder = TempDir::new().expect("a temporary folder");
    let file = folder.path().join("engines.c");
    std::fs::write(&file, source + "int main(void) { return 0; }\n").expect("the folder is ours");
    compile("cc", "-std=c11", &file, &[], &folder);
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
    let room = host.wait_for(|line| line.starts_with("room "));
    let mut guest = Player::start(&program, &[&room["room ".len()..]], &hall);
    host.wait_for(|line| line == "joined 1");
    guest.wait_for(|line| line == "joined 1");
    let moved = |line: &str| line.starts_with("dot 1 at ") && line != "dot 1 at 20 8";
    host.wait_while(&mut guest, "d", moved);
    guest.wait_for(moved);
    host.wait_while(&mut guest, " ", |line| line == "honks 1");
    guest.wait_while(&mut host, "w", |line| line.starts_with("dot 0 at 20 ") && line != "dot 0 at 20 8");
    guest.press("q");
    host.wait_for(|line| line == "left 1");
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
        let (sender, lines) = sync_channel(LINES_MAX);
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

    /// The next line that is one of these.
    #[track_caller]
    fn wait_for(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        self.wait(is_it, || {})
    }

    /// The same, while another player presses keys now and then: an input that comes late is not used.
    #[track_caller]
    fn wait_while(&mut self, other: &mut Player, keys: &str, is_it: impl Fn(&str) -> bool) -> String {
        other.press(keys);
        self.wait(is_it, || other.press(keys))
    }

    #[track_caller]
    fn wait(&mut self, is_it: impl Fn(&str) -> bool, mut meanwhile: impl FnMut()) -> String {
        let (due, mut before) = (Instant::now() + PATIENCE, Vec::new());
        while Instant::now() < due {
            match self.lines.recv_timeout(NOW_AND_THEN) {
                Ok(line) if is_it(&line) => return line,
                Ok(line) => before.push(line),
                Err(RecvTimeoutError::Timeout) => meanwhile(),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended after {before:?}"),
            }
        }
        panic!("it did not come, but {before:?}")
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
