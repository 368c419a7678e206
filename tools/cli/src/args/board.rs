//! The command line of `parlor board`.

use super::signed_in::SignedInArgs;
use clap::{Args, Subcommand};

/// Shows the boards of a game and their ranks, and submits scores as a player.
#[derive(Debug, Args)]
pub(crate) struct BoardArgs {
    #[command(flatten)]
    pub who: SignedInArgs,
    #[command(subcommand)]
    pub what: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List the boards of the game
    List,
    /// Show the best entries of a board
    Top {
        /// The board
        board: String,
        /// Position of the first entry
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        from: u64,
        /// Number of entries
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
        count: u64,
        /// A past season, as `seasons` lists it [default: the current one]
        #[arg(long, value_name = "SEASON")]
        season: Option<u64>,
    },
    /// Show the entries around your own
    Around {
        /// The board
        board: String,
        /// Number of entries
        #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u64).range(1..=100))]
        count: u64,
        /// A past season, as `seasons` lists it [default: the current one]
        #[arg(long, value_name = "SEASON")]
        season: Option<u64>,
    },
    /// Show your own entry and those of your friends
    Friends {
        /// The board
        board: String,
        /// A past season, as `seasons` lists it [default: the current one]
        #[arg(long, value_name = "SEASON")]
        season: Option<u64>,
    },
    /// Submit a score to a board that players write
    Submit {
        /// The board
        board: String,
        /// The score; on a board of sums, what is added
        #[arg(allow_negative_numbers = true)]
        score: i64,
        /// Decides between equal scores
        #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
        sub: i64,
        /// What the game's own service signed, for a board that it writes: docs/boards.md
        #[arg(long, value_name = "TEXT")]
        receipt: Option<String>,
    },
    /// List the seasons of a board
    Seasons {
        /// The board
        board: String,
    },
    /// Remove your own entry from a board that players write
    Remove {
        /// The board
        board: String,
    },
}
