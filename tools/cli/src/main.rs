//! The binary `parlor`: a server for rooms, a game to try them, and bots.

mod args;
mod bounds;
mod commands;
mod draughts;
mod dump;
mod events;
mod find;
mod game;
mod headless;
mod logging;
mod meant;
mod pages;
mod playback;
mod player;
mod report;
mod services;
mod talk;
mod trace;
mod typed;
mod view;
mod web;

use args::Command;
use parlor_terminal::error_text;
use std::io::Write;
use std::process::ExitCode;

/// musl's own allocator has one lock for all threads.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match meant::parse().command {
        Command::Play(args) => commands::play::run(&args),
        Command::Bots(args) => commands::bots::run(&args),
        Command::New(args) => commands::new::run(&args),
        Command::Serve(args) => commands::serve::run(args),
        Command::Doctor(args) => commands::doctor::run(*args),
        Command::Rooms(args) => commands::rooms::run(&args),
        Command::Token(args) => commands::token::run(&args),
        Command::Replay(args) => commands::replay::run(&args),
        Command::Dump(args) => commands::dump::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Admin(args) => commands::admin::run(&args),
        Command::Draughts(args) => commands::draughts::run(&args),
        Command::Match(args) => commands::matches::run(&args),
        Command::Board(args) => commands::board::run(&args),
        Command::Lobby(args) => commands::lobby::run(&args),
        Command::Impair(args) => commands::impair::run(&args),
        Command::Completions(args) => commands::manual::completions(&args),
        Command::Man(args) => commands::manual::pages(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "parlor: {}", error_text::sentence(&error));
            ExitCode::FAILURE
        }
    }
}
