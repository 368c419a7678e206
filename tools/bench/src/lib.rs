//! `parlor-bench`: reproducible figures of this build on this machine.
//!
//! The server is a process on its own core; the operating system reports its processor time. The generator is
//! this process: one thread with many raw sessions. docs/performance.md explains each bench.
//!
//! Linux only: figures come from `/proc`, and both ends are pinned to cores.

#![cfg(target_os = "linux")]

mod account;
mod args;
mod boards;
mod capacity;
mod cluster;
mod crowd;
mod cubes;
mod feel;
mod generator;
mod histogram;
mod host_world;
mod hostloss;
mod http;
mod idle;
mod instructions;
mod join;
mod latency;
mod load;
mod lobbies;
mod loss;
mod machine;
mod matchmaker;
mod member;
mod moves;
mod network;
mod notices;
mod output;
mod pace;
mod pacer;
mod parts;
mod peers;
mod player;
mod ranks;
mod recording;
mod relay;
mod replicate;
mod rollback;
mod rooms;
mod server;
mod soak;
mod spread;
mod stamp;
mod stand;
mod table;
mod tally;
mod turns;
mod valgrind;

use anyhow::Context;
use args::{Bench, BenchArgs};
use clap::Parser;
use machine::Cores;
// `recording` takes it from beside itself, as it does among the peers.
pub(crate) use parlor_sim::walkers;
use std::io::Write;
use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match run(&BenchArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // A terminal that has gone away is no fault.
            let _ = writeln!(std::io::stderr(), "parlor-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one bench. A figure that counts for nothing is no error; its row says so.
fn run(args: &BenchArgs) -> anyhow::Result<()> {
    match &args.bench {
        Bench::Relay(args) => on_one_thread(async |cores| relay::run(cores, args).await),
        Bench::Latency(args) => on_one_thread(async |cores| latency::run(cores, args).await),
        Bench::Idle(args) => on_one_thread(async |cores| idle::run(cores, args).await),
        Bench::Join(args) => on_one_thread(async |cores| join::run(cores, args).await),
        Bench::Capacity(args) => on_one_thread(async |cores| capacity::run(cores, args).await),
        Bench::Turns(args) => on_one_thread(async |cores| turns::run(cores, args).await),
        Bench::Cluster(args) => on_one_thread(async |cores| cluster::run(cores, args).await),
        Bench::Moves(args) => on_one_thread(async |cores| moves::run(cores, args).await),
        Bench::Boards(args) => on_one_thread(async |cores| boards::run(cores, args).await),
        Bench::Ranks(args) => ranks::run(args),
        Bench::Matchmaker(args) => matchmaker::run(args),
        Bench::Lobbies(args) => lobbies::run(args),
        Bench::Rooms(args) => rooms::run(args),
        Bench::Instructions(args) => instructions::run(args),
        Bench::Replicate(args) => replicate::run(args),
        Bench::ServeWalkers(args) => replicate::serve(args),
        Bench::Crowd(args) => crowd::run(args),
        Bench::Cubes(args) => cubes::run(args),
        Bench::Loss(args) => loss::run(args),
        Bench::Feel(args) => feel::run(args),
        Bench::Hostloss(args) => hostloss::run(args),
        Bench::Rollback(args) => rollback::run(args),
        Bench::Soak(args) => on_one_thread(async |cores| soak::run(cores, args).await),
        Bench::DriveHub(args) => rooms::drive(args),
        Bench::PlayRoom(args) => instructions::play(args),
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
