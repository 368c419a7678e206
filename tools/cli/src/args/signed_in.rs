//! Options of commands for a player who signs in.

use crate::services;
use clap::Args;
use parlor::online::Account;
use parlor_terminal::connect_options;
use std::path::PathBuf;

/// Who asks which server about which game.
#[derive(Debug, Args)]
pub(crate) struct SignedInArgs {
    /// Server: HOST, HOST:PORT or HOST:PORT#FINGERPRINT [default: the one on this machine]
    #[arg(long, env = "PARLOR_SERVER", value_name = "SERVER", global = true)]
    pub server: Option<String>,
    /// The game
    #[arg(long, value_name = "APP", default_value = "lines", global = true)]
    pub app: String,
    /// Your name, as others see it
    #[arg(long, env = "PARLOR_NAME", value_name = "NAME", global = true)]
    pub name: Option<String>,
    /// File of the player's sign-in [default: one for each server and name, in the user's state folder]
    #[arg(long, env = "PARLOR_SESSION", value_name = "FILE", global = true)]
    pub session: Option<PathBuf>,
    /// Root certificates (PEM) that verify the server
    #[arg(long, env = "PARLOR_CA", value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,
}

impl SignedInArgs {
    /// The player's account. The server is not asked yet.
    ///
    /// # Errors
    /// What is wrong with an option.
    pub(crate) fn account(&self) -> anyhow::Result<Account> {
        let name = connect_options::name(self.name.as_deref());
        let files = (self.session.as_deref(), self.ca.as_deref());
        services::account(self.server.as_deref(), &self.app, &name, files)
    }
}
