//! Deletes the rows of nodes that are gone, some time after they have gone. One node does it for all.

use super::Directory;
use crate::store::{Owner, StoreError};
use core::time::Duration;
use parlor_hub::cluster::placement;
use std::collections::BTreeMap;
use tokio::time::Instant;

/// Interval of looks at the rows.
const EVERY: Duration = Duration::from_secs(5);
/// How long the rows of a node stay that is gone: as long as its members may come back.
const GRACE: Duration = Duration::from_secs(30);

impl Directory {
    pub(super) async fn sweep(self) {
        let mut gone_since = BTreeMap::new();
        loop {
            tokio::time::sleep(EVERY).await;
            if let Err(error) = self.sweep_once(&mut gone_since).await {
                tracing::debug!(%error, "rows of nodes that are gone could not be deleted yet");
            }
        }
    }

    async fn sweep_once(&self, gone_since: &mut BTreeMap<Owner, Instant>) -> Result<(), StoreError> {
        let nodes = self.0.nodes.get();
        let working = nodes.working().map(|node| node.id.as_str());
        if placement::home(b"sweep of live rooms", working) != Some(self.0.node.as_str()) {
            gone_since.clear();
            return Ok(());
        }
        let is_served = |owner: &Owner| {
            nodes
                .serving()
                .any(|node| node.id.as_str() == owner.node && node.incarnation == owner.incarnation)
        };
        let owners = self.0.store.live_room_owners().await?;
        let gone: Vec<Owner> = owners.into_iter().filter(|owner| !is_served(owner)).collect();
        gone_since.retain(|owner, _| gone.contains(owner));
        for owner in gone {
            let since = *gone_since.entry(owner.clone()).or_insert_with(Instant::now);
            if since.elapsed() < GRACE {
                continue;
            }
            let deleted = self.0.store.forget_live_rooms(&owner).await?;
            tracing::info!(node = %owner.node, incarnation = owner.incarnation, deleted, "rooms of a node that is gone are found no more");
        }
        Ok(())
    }
}
