//! Options of `parlor doctor`.

use super::ServeArgs;
use clap::Args;
use parlor_transport::discovery::ServerAddress;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Examine this server as a player reaches it, and not this machine: HOST, HOST:PORT or HOST:PORT#FINGERPRINT
    #[arg(long, value_name = "SERVER")]
    pub server: Option<ServerAddress>,
    /// Root certificates (PEM) that verify it
    #[arg(long, env = "PARLOR_CA", value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Only ask whether the server answers and takes players: the health check of a container
    #[arg(long)]
    pub quick: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    #[command(
        flatten,
        next_help_heading = "Settings of the server, as of `parlor serve`; not with --server"
    )]
    pub serve: ServeArgs,
}
