//! Live feeds: what goes into a player's inbox is told at once to whoever of that player's devices is connected.
//!
//! A feed is a hint, the inbox is the truth: a device that is behind or was away reads its inbox from the last number that it
//! knows.

use crate::store::{AccountId, Realm};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Notices that wait for one device. One that takes none is cut off, and reads its inbox when it comes again.
const WAITING_MAX: usize = 64;
/// Devices of one player that are told at once. The one that was there first goes.
const DEVICES_MAX: usize = 8;

type Key = (Realm, AccountId);
/// A player's devices, each with the number of its feed.
type Devices = Vec<(u64, mpsc::Sender<Arc<str>>)>;

/// All feeds of a server.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    open: Mutex<HashMap<Key, Devices>>,
    opened: core::sync::atomic::AtomicU64,
}

/// One device's feed, until it is dropped.
#[derive(Debug)]
pub(super) struct Feed {
    notices: mpsc::Receiver<Arc<str>>,
    feeds: super::Services,
    key: Key,
    number: u64,
}

impl Feeds {
    /// Opens a feed of a player.
    pub(super) fn open(services: &super::Services, realm: Realm, player: AccountId) -> Feed {
        let feeds = services.feeds();
        let number = feeds.opened.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        let (sender, notices) = mpsc::channel(WAITING_MAX);
        let key = (realm, player);
        let mut open = feeds.lock();
        let devices = open.entry(key.clone()).or_default();
        if devices.len() >= DEVICES_MAX {
            devices.remove(0);
        }
        devices.push((number, sender));
        drop(open);
        Feed { notices, feeds: services.clone(), key, number }
    }

    /// Whether any device of a player is connected.
    pub(super) fn has(&self, realm: &Realm, player: &AccountId) -> bool {
        let open = self.lock();
        !open.is_empty() && open.contains_key(&(realm.clone(), player.clone()))
    }

    /// Tells all devices of a player.
    pub(super) fn tell(&self, realm: &Realm, player: &AccountId, notice: &Arc<str>) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.retain(|(_, device)| device.try_send(Arc::clone(notice)).is_ok());
        if devices.is_empty() {
            open.remove(&key);
        }
    }

    /// Cuts all devices of a player off.
    pub(super) fn close(&self, realm: &Realm, player: &AccountId) {
        self.lock().remove(&(realm.clone(), player.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Devices>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Feed {
    /// The next notice; `None` once the device is cut off. May be cancelled.
    pub(super) async fn next(&mut self) -> Option<Arc<str>> {
        self.notices.recv().await
    }

    /// Whose feed it is.
    pub(super) fn is_of(&self, realm: &Realm, player: &AccountId) -> bool {
        self.key.0 == *realm && self.key.1 == *player
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let mut open = self.feeds.feeds().lock();
        if let Some(devices) = open.get_mut(&self.key) {
            devices.retain(|(number, _)| *number != self.number);
            if devices.is_empty() {
                open.remove(&self.key);
            }
        }
    }
}

impl core::fmt::Debug for super::Services {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
