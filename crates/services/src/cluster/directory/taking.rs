//! One at a time takes a room: its members ask at the same time.

use parlor_server::embed::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::OwnedMutexGuard;

/// A lock for each room that is being taken, by the room's name.
#[derive(Debug, Default)]
pub(super) struct Taking(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Taking {
    /// Waits until nobody else takes the room, until the guard is dropped.
    pub(super) async fn lock(&self, uid: &str) -> OwnedMutexGuard<()> {
        let of_room = {
            let mut all = lock(&self.0);
            all.retain(|_, of_room| Arc::strong_count(of_room) > 1);
            Arc::clone(all.entry(uid.to_owned()).or_default())
        };
        of_room.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn one_room_has_one_taker_and_a_lock_that_nobody_has_is_forgotten() {
        let taking = Taking::default();
        let first = taking.lock("a").await;
        assert!(taking.lock("a").now_or_never().is_none(), "it is taken");
        let _other = taking.lock("b").await;
        drop(first);
        assert!(taking.lock("a").now_or_never().is_some());
        drop(taking.lock("c").await);
        assert!(lock(&taking.0).len() <= 2, "{:?}", taking.0);
    }
}
