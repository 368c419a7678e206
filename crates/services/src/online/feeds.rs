//! Live feeds: new notices of a player's inbox go at once to its connected devices.
//!
//! A feed is a hint, and the inbox the truth: a device that was away reads its inbox from its last known
//! number.

use super::unread::{Share, Unread};
use crate::store::AccountId;
use parlor_hub::Origin;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Notices that wait for one device. One that takes none is cut off, and reads its inbox when it comes again.
const WAITING_MAX: usize = 64;
/// Most connected devices of one player. Beyond it the oldest feed ends.
const DEVICES_MAX: usize = 8;

type Key = (Realm, AccountId);
/// A player's devices, each with the number of its feed.
type Devices = Vec<Device>;

#[derive(Debug)]
struct Device {
    number: u64,
    origin: Origin,
    waiting: mpsc::Sender<Waiting>,
}

/// A notice that waits for a device, with its share of what may be held for the device's address.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) text: Arc<str>,
    #[expect(dead_code, reason = "it is held, not used")]
    share: Share,
}

/// All feeds of a server.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    open: Mutex<HashMap<Key, Devices>>,
    opened: core::sync::atomic::AtomicU64,
}

/// One device's feed, until it is dropped.
#[derive(Debug)]
pub(super) struct Feed {
    notices: mpsc::Receiver<Waiting>,
    feeds: super::Services,
    key: Key,
    number: u64,
}

impl Feeds {
    /// Opens a feed of a player.
    pub(super) fn open(services: &super::Services, realm: Realm, player: AccountId, origin: Origin) -> Feed {
        let feeds = services.feeds();
        let number = feeds.opened.fetch_add(1, core::sync::atomic::Ordering::Relaxed);
        let (sender, notices) = mpsc::channel(WAITING_MAX);
        let key = (realm, player);
        let mut open = feeds.lock();
        let devices = open.entry(key.clone()).or_default();
        if devices.len() >= DEVICES_MAX {
            devices.remove(0);
        }
        devices.push(Device { number, origin, waiting: sender });
        drop(open);
        Feed { notices, feeds: services.clone(), key, number }
    }

    /// Whether any device of a player is connected.
    pub(super) fn has(&self, realm: &Realm, player: &AccountId) -> bool {
        let open = self.lock();
        !open.is_empty() && open.contains_key(&(realm.clone(), player.clone()))
    }

    /// Tells all devices of a player. One for whose address too much waits already is cut off.
    pub(super) fn tell(&self, unread: &Unread, realm: &Realm, player: &AccountId, notice: &Arc<str>) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.retain(|device| {
            let share = unread.take(device.origin, notice.len());
            share.is_ok_and(|share| {
                device.waiting.try_send(Waiting { text: Arc::clone(notice), share }).is_ok()
            })
        });
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
    pub(super) async fn next(&mut self) -> Option<Waiting> {
        self.notices.recv().await
    }

    /// Whose feed it is.
    pub(super) fn is_of(&self, realm: &Realm, player: &AccountId) -> bool {
        self.key.0 == *realm && self.key.1 == *player
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Who hangs up is away a minute from here on.
        self.feeds.was_here(&self.key.0, &self.key.1);
        let mut open = self.feeds.feeds().lock();
        if let Some(devices) = open.get_mut(&self.key) {
            devices.retain(|device| device.number != self.number);
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
