//! `parlor bench`: what this build does on this machine, in figures that others can measure again.
//!
//! The server is a process of its own on a core of its own; its processor time is what the operating system says. The
//! generator is this process: one thread, a [`generator`] of raw sessions. What each bench means stands in
//! docs/performance.md.

mod account;
pub(crate) mod args;
mod crowd;
mod cubes;
mod feel;
mod generator;
mod hostloss;
mod http;
mod idle;
mod join;
mod latency;
mod load;
mod loss;
mod machine;
mod member;
mod network;
mod pace;
mod pacer;
mod peers;
mod recording;
mod relay;
mod replicate;
mod rollback;
mod rooms;
mod server;
mod stamp;
mod stand;
mod table;
mod tally;
mod turns;

use crate::commands::{print_json, say};
use anyhow::Context;
use args::{Bench, BenchArgs};
use machine::Cores;
use parlor_sim::walkers;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use table::Table;

/// Runs the command.
///
/// # Errors
/// What kept the bench from measuring. A figure that counts for nothing is no error; its row says so.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.bench {
        Bench::Relay(args) => on_one_thread(async |cores| relay::run(cores, args).await),
        Bench::Latency(args) => on_one_thread(async |cores| latency::run(cores, args).await),
        Bench::Idle(args) => on_one_thread(async |cores| idle::run(cores, args).await),
        Bench::Join(args) => on_one_thread(async |cores| join::run(cores, args).await),
        Bench::Turns(args) => on_one_thread(async |cores| turns::run(cores, args).await),
        Bench::Rooms(args) => rooms::run(args),
        Bench::Replicate(args) => replicate::run(args),
        Bench::ServeWalkers(args) => replicate::serve(args),
        Bench::Crowd(args) => crowd::run(args),
        Bench::Cubes(args) => cubes::run(args),
        Bench::Loss(args) => loss::run(args),
        Bench::Feel(args) => feel::run(args),
        Bench::Hostloss(args) => hostloss::run(args),
        Bench::Rollback(args) => rollback::run(args),
        Bench::DriveHub(args) => rooms::drive(args),
    }
}

/// Runs a bench on the generator's core.
fn on_one_thread(bench: impl AsyncFnOnce(Cores) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let cores = Cores::take()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("the generator's runtime could not be started")?;
    tokio::task::LocalSet::new().block_on(&runtime, bench(cores))
}

/// How this binary was built. Ours is also the server that is measured.
const BUILD: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// What a bench prints with `--json`.
#[derive(Debug, Serialize)]
struct Report<'a, R> {
    bench: &'static str,
    version: &'static str,
    /// `debug` or `release`.
    build: &'static str,
    /// What is not in the rows and must be known to read them.
    #[serde(flatten)]
    setting: &'a serde_json::Value,
    rows: &'a [R],
}

/// Prints what was measured.
fn print<R: Serialize>(
    bench: &'static str,
    is_json: bool,
    setting: &serde_json::Value,
    rows: &[R],
    notes: &[String],
    table: &Table,
) -> anyhow::Result<()> {
    if is_json {
        return print_json(&Report {
            bench,
            version: env!("CARGO_PKG_VERSION"),
            build: BUILD,
            setting,
            rows,
        });
    }
    say(&table.render());
    notes.iter().for_each(|note| say(note));
    if BUILD == "debug" {
        say("this is a debug build, and only a release build shows what the code can do");
    }
    Ok(())
}

/// Says at a terminal what is being measured: a bench takes minutes.
fn tell(what: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // A terminal that has gone away is no fault.
        let _ = writeln!(stderr, "measuring {what}");
    }
}
