//! The command line of `parlor admin`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Looks after the rooms, accounts and backups of a server: see docs/accounts.md for its operator's key.
#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    /// Server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT [default: the one on this machine]
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
    /// Your name, for the server's log
    #[arg(long, value_name = "NAME", default_value = "operator", global = true)]
    pub by: String,
    /// Root certificates (PEM) that verify the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,
    /// Print the server's answers as JSON, one line for each page of a list
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub what: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// List all rooms of the game: those in memory (live), and turn rooms
    Rooms,
    /// Show a room and its members
    Room {
        /// The code of a live room, or the id of a turn room
        room: String,
    },
    /// End a live room, or the game in a turn room
    End {
        /// The code of a live room, or the id of a turn room
        room: String,
        /// Reason, shown to its players
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Kick a player: from a turn room for good, from a live one until it joins again
    Kick {
        /// The code of a live room, or the id of a turn room
        room: String,
        /// The member's number in a live room, or the player's account
        player: String,
        /// Reason, shown to all in the room
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Ban an account at once and end its sign-ins; or refuse an operator's tokens
    Ban {
        /// The account, or with --operator the name (`sub`) in an operator's tokens
        account: String,
        /// It is the name of an operator
        #[arg(long)]
        operator: bool,
        /// Reason, shown to the account's player
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// Remove its entries from all boards, too
        #[arg(long, conflicts_with = "operator")]
        scores: bool,
        /// Hours [default: for ever]
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
        hours: Option<u64>,
    },
    /// Unban an account
    Lift {
        /// The account
        account: String,
    },
    /// List bans
    Bans,
    /// Define boards, statistics, achievements, ladders and queues, or change their definitions; what players have
    /// stays
    Define {
        /// TOML with a table `[board.NAME]`, `[statistic.NAME]`, `[achievement.NAME]`, `[ladder.NAME]` or
        /// `[queue.NAME]` for each: docs/boards.md, docs/progress.md and docs/matchmaking.md have the fields
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Delete the definition of a statistic, an achievement, a ladder or a queue; what players have of it stays
    Undefine {
        /// statistic, achievement, ladder or queue
        kind: String,
        /// Its name
        name: String,
    },
    /// Delete a board with all its entries
    DeleteBoard {
        /// The board
        board: String,
    },
    /// List the nodes of the cluster that the server is one of
    Nodes,
    /// Let a node of the cluster take no more rooms: new ones open at the others, and those that it has move there
    Drain {
        /// Its name
        node: String,
    },
    /// Let a draining node take rooms again
    Undrain {
        /// Its name
        node: String,
    },
    /// Move a live room to another node, with its members
    Move {
        /// Its code
        room: String,
        /// The node; the least busy one without it
        #[arg(long, value_name = "NODE")]
        to: Option<String>,
    },
    /// Show which node of the cluster has a live room
    Where {
        /// Its code
        room: String,
    },
    /// Show the status of store and webhooks
    Status,
    /// Back up the running store into the server's folder for backups
    Backup,
    /// Restore a backup, on the server's machine while no server runs; keeps the old store beside it
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
