//! The command line.

use clap::Parser;
use parlor_terminal::connect_options::{ConnectArgs, JoinArgs};
use parlor_terminal::run_until::parse_seconds;
use std::path::PathBuf;

/// Drive and shoot in an arena, with switches for prediction, interpolation and a bad network.
#[derive(Debug, Parser)]
#[command(name = "arena", version)]
pub(crate) struct ArenaArgs {
    #[command(flatten)]
    pub join: JoinArgs,
    /// Bots in this process, beside the player at the screen
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u16).range(0..=7))]
    pub bots: u16,
    /// Targets without a driver, for the host
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=8), conflicts_with_all = ["room", "join"])]
    pub drones: u8,
    /// Seed of the bots
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Start without prediction, as after the key P
    #[arg(long)]
    pub no_prediction: bool,
    /// Start without interpolation, as after the key I
    #[arg(long)]
    pub no_interpolation: bool,
    /// Record the room into this file, for its host: see `parlor replay`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["room", "join"])]
    pub record: Option<PathBuf>,
    /// Port of the server that a host without --server starts inside itself [default: any free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true, conflicts_with_all = ["room", "join", "server"])]
    pub port: u16,
    #[command(flatten)]
    pub connect: ConnectArgs,
    /// Without a screen: bots alone
    #[arg(long)]
    pub headless: bool,
    /// Without a screen: stop when every player here has run this many steps
    #[arg(long, value_name = "N", requires = "headless", value_parser = clap::value_parser!(u64).range(1..))]
    pub steps: Option<u64>,
    /// Stop after this many seconds; otherwise when the room ends or Ctrl-C is pressed
    #[arg(long, value_name = "N", value_parser = parse_seconds)]
    pub seconds: Option<f64>,
    /// Print one JSON object at the end
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        ArenaArgs::command().debug_assert();
    }
}
