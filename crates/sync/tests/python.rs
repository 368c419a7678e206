//! Runs the Python decoder, which was written from PROTOCOL.md alone, on the golden vectors. It shows that
//! the document is complete and matches the code.
//!
//! It has a `main` of its own, because a test of the usual harness can pass or fail, but not report that it
//! cannot run. Without `python3` it reports itself as ignored, and `cargo xtask test` lists its step as
//! skipped.
#![allow(clippy::print_stdout, reason = "it says what passed, as a harness does")]

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

const TESTS: [(&str, &[&str]); 2] = [
    ("python_decodes_every_vector_to_what_it_says", &[]),
    ("python_misses_every_vector_with_a_byte_changed", &["--tamper"]),
];

fn main() -> ExitCode {
    let there = python().arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        for (name, _) in TESTS {
            println!("test {name} ... ignored, python3 is not installed");
        }
        return ExitCode::SUCCESS;
    }
    let failed = TESTS.iter().filter(|(name, args)| !passes(name, args)).count();
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn python() -> Command {
    Command::new("python3")
}

/// Runs the decoder from the workspace's root; its output is shown.
fn passes(name: &str, args: &[&str]) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files = ["testdata/delta.txt", "testdata/world.txt"];
    let status = python().arg("testdata/decode.py").args(args).args(files).current_dir(root).status();
    let passed = status.is_ok_and(|status| status.success());
    println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
    passed
}
