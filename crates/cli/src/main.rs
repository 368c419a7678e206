//! The binary `parlor`: a server for rooms, a game to see them work, and members to fill them.

mod arena;
mod args;
#[cfg(target_os = "linux")]
mod bench;
mod commands;
mod costs;
mod draughts;
mod dump;
mod events;
mod game;
mod headless;
mod lan;
mod logging;
mod own_server;
mod party;
mod playback;
mod reach;
mod report;
mod seat;
mod services;
mod talk;
mod typed;
mod view;
mod walkers;

use args::{Cli, Command};
use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Play(args) => commands::play::run(&args),
        Command::Bots(args) => commands::bots::run(&args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Rooms(args) => commands::rooms::run(&args),
        Command::Token(args) => commands::token::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Dump(args) => commands::dump::run(&args),
        Command::Walkers(args) => commands::walkers::run(&args),
        Command::Arena(args) => commands::arena::run(&args),
        Command::Admin(args) => commands::admin::run(&args),
        Command::Draughts(args) => commands::draughts::run(&args),
        Command::Match(args) => commands::matches::run(&args),
        Command::Impair(args) => commands::impair::run(&args),
        #[cfg(target_os = "linux")]
        Command::Bench(args) => bench::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Causes on one line, each said once.
            let _ = writeln!(std::io::stderr(), "parlor: {error:#}");
            ExitCode::FAILURE
        }
    }
}
