//! The command line of `parlor lobby`.

use super::signed_in::SignedInArgs;
use clap::{Args, Subcommand};

/// Gathers players in a lobby. Each line that you type is said to all; /ready, /kick NAME, /give NAME, /room CODE and
/// /leave are commands.
#[derive(Debug, Args)]
pub(crate) struct LobbyArgs {
    #[command(flatten)]
    pub who: SignedInArgs,
    #[command(subcommand)]
    pub what: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List the lobbies that you may join
    Find {
        /// Only those of this bucket
        #[arg(long, value_name = "BUCKET")]
        bucket: Option<String>,
    },
    /// Open a lobby
    Open {
        /// Its title, as others see it
        #[arg(value_name = "TITLE", default_value = "")]
        title: String,
        /// Its bucket
        #[arg(long, value_name = "BUCKET")]
        bucket: Option<String>,
        /// Seats
        #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=64))]
        max: u16,
    },
    /// Join a lobby by its code
    Join {
        /// Its code
        code: String,
    },
}
