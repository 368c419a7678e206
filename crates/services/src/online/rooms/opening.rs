//! The right to open a room of a game, among all nodes of a cluster. Seekers at two nodes find the same room by it.

use super::seekers::OpeningLock;
use crate::cluster::Cluster;
use crate::online::failure::Failure;
use crate::store::Store;
use core::time::Duration;
use tokio::time::Instant;

/// How long a node has the right, and how long a seeker waits for it. A node that ends meanwhile is replaced.
const TIME: Duration = Duration::from_secs(2);
/// Wait before another try.
const AGAIN: Duration = Duration::from_millis(15);
/// Time to retry for a seeker that waited in vain.
const RETRY_AFTER: Duration = Duration::from_millis(500);
/// A room is stored by then that a node opened while it had the right: a store that takes longer refuses.
pub(super) const STORED_WITHIN_MS: u64 = 6_000;

/// The right, until it is given back or its time is over.
pub(super) struct Right<'a> {
    store: &'a Store,
    /// The lock's name and holder; `None` for a server alone, which needs none.
    lock: Option<(String, String)>,
    began: Instant,
}

impl<'a> Right<'a> {
    /// Waits for the right.
    ///
    /// # Errors
    /// Unavailable, if it is not to be had in bounded time.
    pub(super) async fn take(
        store: &'a Store,
        cluster: Option<&Cluster>,
        opening_lock: &OpeningLock,
    ) -> Result<Self, Failure> {
        let Some(cluster) = cluster else {
            return Ok(Right { store, lock: None, began: Instant::now() });
        };
        let (name, holder) = (opening_lock.name(), cluster.holder());
        let until = Instant::now() + TIME;
        loop {
            let began = Instant::now();
            if store.take_lock(&name, &holder, TIME).await? {
                return Ok(Right { store, lock: Some((name, holder)), began });
            }
            if Instant::now() >= until {
                return Err(busy());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Checks that no other node can have it yet.
    ///
    /// # Errors
    /// Unavailable.
    pub(super) fn must_last(&self) -> Result<(), Failure> {
        if self.lock.is_some() && self.began.elapsed() >= TIME { Err(busy()) } else { Ok(()) }
    }

    /// Gives it back.
    pub(super) async fn give_back(self) {
        let Some((name, holder)) = self.lock else { return };
        if let Err(error) = self.store.release_lock(&name, &holder).await {
            tracing::debug!(%error, "the right to open a room ends by its time");
        }
    }
}

fn busy() -> Failure {
    Failure::unavailable("many players look for a room of this game at once: ask again", RETRY_AFTER)
}
