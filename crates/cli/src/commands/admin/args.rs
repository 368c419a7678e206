//! The command line of `parlor admin`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Looks after the rooms, accounts and backups of a server: see docs/accounts.md for its operator's key.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// The server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT; the one on this machine if not given
    #[arg(long, env = "PARLOR_SERVER", value_name = "SERVER", global = true)]
    pub server: Option<String>,
    /// The operator's private key, whose public half the server has as --operator-key
    #[arg(long, env = "PARLOR_OPERATOR", value_name = "FILE", global = true)]
    pub key: Option<PathBuf>,
    /// The game
    #[arg(long, value_name = "APP", global = true)]
    pub app: Option<String>,
    /// Its environment, if it is not production
    #[arg(long, value_name = "NAME", global = true)]
    pub environment: Option<String>,
    /// Who the server's log shall say it was
    #[arg(long, value_name = "NAME", default_value = "operator", global = true)]
    pub by: String,
    /// File with certificates (PEM) that may vouch for the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,
    /// Print what the server answers, as JSON; one line for each part of a list
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub what: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List all rooms of the game: those in memory (live), and turn rooms
    Rooms,
    /// Show a room and who is in it
    Room {
        /// The code of a live room, or the id of a turn room
        room: String,
    },
    /// End a live room, or the game in a turn room
    End {
        /// The code of a live room, or the id of a turn room
        room: String,
        /// Why; its players are told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Turn a player out of a room: of a turn room for good, of a live one until it joins again
    Kick {
        /// The code of a live room, or the id of a turn room
        room: String,
        /// The member's number in a live room, or the player's account
        player: String,
        /// Why; all in the room are told
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Keep an account out, at once, and end its sign-ins
    Ban {
        /// The account
        account: String,
        /// Why; whoever has the account is told
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// For how long, in hours; for ever if not given
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        hours: Option<u64>,
    },
    /// Let a banned account in again
    Lift {
        /// The account
        account: String,
    },
    /// List who is banned
    Bans,
    /// Say what the store and the webhooks do
    Status,
    /// Copy the store, while it runs, into the server's folder for backups
    Backup,
    /// Put a backup in the place of the store, on the server's machine while no server runs; the old store is kept beside it
    Restore(RestoreArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The folder that the server has as --data
    #[arg(long, env = "PARLOR_DATA", value_name = "FOLDER")]
    pub data: Option<PathBuf>,
    /// The file that the server has as --store, if it has one
    #[arg(long, env = "PARLOR_STORE", value_name = "FILE")]
    pub store: Option<String>,
    /// The backup, as `parlor admin backup` named it
    #[arg(value_name = "BACKUP")]
    pub backup: PathBuf,
}
