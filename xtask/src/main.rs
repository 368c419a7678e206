//! `cargo xtask`: the checks of this repository, in Rust, so that a checkout needs only Rust, git and a C
//! linker.
//!
//! - `cargo xtask test`: everything that must hold before a change goes in ([`steps`] names the steps)
//! - `cargo xtask web`: what a page loads ([`web`])
//! - `cargo xtask dist`: what a release consists of ([`dist`])
//! - `cargo xtask peers`: what the benches compare Parlor with ([`peers`])
//! - `cargo xtask tidy`: the rules no compiler knows ([`tidy`]); also a test, so `cargo test` runs it

#![allow(clippy::print_stdout, reason = "it reports to a person at a terminal")]

mod cross;
mod dist;
mod excerpt;
mod guards;
mod invocation;
mod nat;
mod options;
mod peers;
mod plan;
mod process;
mod programs;
mod runner;
mod sdk;
mod site;
mod steps;
mod tidy;
mod wasm;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use options::{Command, TestOptions};

const USAGE: &str = "\
cargo xtask test [--all | --weekly] [--only STEP]... [--list]
    Runs the steps that need only Rust, git and a C linker.
      --all    adds the long runs, and makes every skipped step a failure
      --weekly adds what needs an hour more, or what others wrote: the peers of the benches, the soak, all seeds and kills
      --only   runs just the steps named; a step that is named must be able to run
      --list   prints the steps and what they do
cargo xtask tidy
    Checks the rules of the house alone.
cargo xtask web
    Builds what a page loads, target/wasm/wasm32-unknown-unknown/web/parlor_wasm.wasm, as the step `wasm` does.
cargo xtask peers
    Builds what `parlor-bench` compares Parlor with: bench/peers/README.md.
cargo xtask dist [--no-npm] [--target MACHINE]
    Makes what a release has for this machine, in target/dist: archive, Debian and npm packages, and their checksums.
      --no-npm leaves out the npm packages, which need Node
      --target adds what belongs to another machine: `aarch64` or `x86_64`
cargo xtask help
    Prints this.";

fn main() -> ExitCode {
    let root = workspace_root();
    match options::parse(std::env::args().skip(1)) {
        Ok(Command::Help) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Ok(Command::Tidy) => runner::tidy(&root),
        Ok(Command::Web) => {
            runner::test(&root, &TestOptions { only: vec!["wasm".to_owned()], ..TestOptions::default() })
        }
        Ok(Command::Dist(options)) => runner::dist(&root, &options),
        Ok(Command::Peers) => runner::peers(&root),
        Ok(Command::Test(options)) => runner::test(&root, &options),
        Err(misuse) => {
            println!("{misuse}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The checkout this binary was built from.
fn workspace_root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().expect("xtask stands in the workspace's root").to_path_buf()
}
