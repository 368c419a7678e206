//! `arena`, a demo: drive and shoot, with switches for prediction, interpolation and a bad network.

mod args;
mod demo_host;
mod demo_loop;
mod picture;
mod player;
mod run;

use args::ArenaArgs;
use clap::Parser;
use parlor_terminal::error_text;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run::run(&ArenaArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "arena: {}", error_text::sentence(&error));
            ExitCode::FAILURE
        }
    }
}
