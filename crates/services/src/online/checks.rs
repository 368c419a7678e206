//! Checks of a configuration, without a start.

use super::games::Games;
use super::{OnlineConfig, OnlineError, webhook};
use parlor_server::embed::read_public;

impl OnlineConfig {
    /// Checks what a start checks beside the store: games, webhook, the operator's key. `is_development` says
    /// whether the server has a development identity.
    ///
    /// # Errors
    /// As of [`start`](crate::start).
    pub fn check(&self, is_development: bool) -> Result<(), OnlineError> {
        Games::open(self.games.as_deref(), is_development, &self.rules)?;
        self.webhook.as_ref().map(webhook::Target::new).transpose()?;
        self.operator_key.as_deref().map(read_public).transpose()?;
        Ok(())
    }
}
