//! What the services are made of, for their operations.

use super::bans::Bans;
use super::boards::Boards;
use super::charges::Charges;
use super::config::Lives;
use super::feeds::Feeds;
use super::games::Games;
use super::goodbye::Goodbye;
use super::live::Live;
use super::lives::SweptRows;
use super::outbox_shares::OutboxShares;
use super::password::Passwords;
use super::rooms::{RoomLocks, Seekers, Subscriptions};
use super::secrets::{RefreshKey, RoomIdKey};
use super::seen::Seen;
use super::tickets::TicketKeys;
use super::tokens::Tokens;
use super::{Services, webhook};
use crate::cluster::{Cluster, Duty};
use crate::store::Store;
use core::time::Duration;
use parlor_server::Time;
use parlor_server::embed::Access;
use parlor_turn::RuleSets;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;

impl Services {
    pub(super) fn handle(&self) -> &Handle {
        &self.0.handle
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Whether this server does this periodic work: a server alone does all, and one node of a cluster each.
    pub(super) async fn has_duty(&self, duty: Duty) -> bool {
        let Some(cluster) = self.cluster() else { return true };
        cluster.has(self.store(), duty).await.unwrap_or_else(|error| {
            tracing::debug!(?duty, %error, "whose duty it is could not be read");
            false
        })
    }

    /// This server as a node of a cluster; `None` for a server alone.
    pub(crate) fn cluster(&self) -> Option<&Arc<Cluster>> {
        self.0.cluster.as_ref()
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.0.tokens
    }

    pub(super) fn tickets(&self) -> &TicketKeys {
        &self.0.tickets
    }

    pub(super) fn refresh_key(&self) -> &RefreshKey {
        &self.0.refresh_key
    }

    pub(super) fn room_ids(&self) -> &RoomIdKey {
        &self.0.room_ids
    }

    pub(super) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(super) fn passwords(&self) -> &Passwords {
        &self.0.passwords
    }

    /// The debts of addresses for accounts that they created.
    pub(super) fn new_accounts(&self) -> &Charges {
        &self.0.new_accounts
    }

    pub(super) fn room_locks(&self) -> &RoomLocks {
        &self.0.room_locks
    }

    pub(super) fn seekers(&self) -> &Seekers {
        &self.0.seekers
    }

    pub(super) fn feeds(&self) -> &Feeds {
        &self.0.feeds
    }

    pub(super) fn subscriptions(&self) -> &Subscriptions {
        &self.0.feeds.subscriptions
    }

    pub(super) fn goodbye(&self) -> &Goodbye {
        &self.0.goodbye
    }

    pub(super) fn sign_in_time(&self) -> Duration {
        self.0.sign_in_time
    }

    pub(super) fn bans(&self) -> &Bans {
        &self.0.bans
    }

    pub(super) fn boards(&self) -> &Boards {
        &self.0.boards
    }

    pub(super) fn time(&self) -> &Time {
        &self.0.time
    }

    pub(super) fn seen(&self) -> &Seen {
        &self.0.seen
    }

    pub(super) fn live(&self) -> &Live {
        &self.0.live
    }

    pub(super) fn webhook(&self) -> Option<&webhook::Target> {
        self.0.webhook.as_deref()
    }

    pub(super) fn outbox_shares(&self) -> &OutboxShares {
        &self.0.outbox_shares
    }

    pub(super) fn backups(&self) -> Option<&Path> {
        self.0.backups.as_deref()
    }

    pub(super) fn rules(&self) -> &RuleSets {
        &self.0.rules
    }

    pub(super) fn games(&self) -> &Games {
        &self.0.games
    }

    /// Numbers of deleted unused rows.
    pub(crate) fn swept(&self) -> &SweptRows {
        &self.0.swept
    }

    pub(super) fn lives(&self) -> &Lives {
        &self.0.lives
    }

    pub(super) fn is_open(&self) -> bool {
        self.0.is_open
    }
}
