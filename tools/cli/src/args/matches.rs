//! The command line of `parlor match`.

use clap::Args;
use parlor_terminal::connect_options::{ConnectArgs, JoinArgs};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    #[command(flatten)]
    pub join: JoinArgs,
    /// Your name, as others see it
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// The game
    #[arg(long, value_name = "APP", default_value = "lines")]
    pub app: String,
    /// Label of a new match in lists
    #[arg(long, value_name = "TEXT", default_value = "", conflicts_with_all = ["room", "join"])]
    pub label: String,
    /// Maximum number of players of a new match
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(2..=256), conflicts_with_all = ["room", "join"])]
    pub max_players: u16,
    /// Keep the log of a new match on the server
    #[arg(long, conflicts_with_all = ["room", "join"])]
    pub keep: bool,
    /// List open matches, with --label only those; needs a server with --data
    #[arg(long, conflicts_with_all = ["room", "join", "log", "keep", "token"])]
    pub list: bool,
    /// Print the log of a kept match, for those who joined it with --account
    #[arg(long, value_name = "ID", conflicts_with_all = ["room", "join", "keep", "label", "token"])]
    pub log: Option<String>,
    /// Join with the account of --session, which the others and the log see; needs a server with --data
    #[arg(long, conflicts_with = "token")]
    pub account: bool,
    /// File of the player's sign-in, for --account, --list and --log [default: one for each server and name, in the user's state folder]
    #[arg(long, env = "PARLOR_SESSION", value_name = "FILE")]
    pub session: Option<PathBuf>,
    /// Op code of the lines
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    pub op: i64,
    /// Admission token; valid once
    #[arg(long, env = "PARLOR_TOKEN", value_name = "TOKEN")]
    pub token: Option<String>,
    #[command(flatten)]
    pub connect: ConnectArgs,
}
