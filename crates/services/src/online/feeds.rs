//! Live feeds: connected devices of a player receive its notices and news at once.
//!
//! A feed is a hint, the inbox is the truth: a device that missed notices reads its inbox from the last number that
//! it knows. News are about what is in memory only, such as presence (`news.rs`). A feed lasts no longer than the
//! right to it: it ends with its sign-in, with its access token (`socket.rs`), and with a ban.

use super::news::{News, Topic};
use super::rooms::Subscriptions;
use super::unread::{Share, Unread};
use crate::store::{AccountId, SignInId};
use core::cmp::Ordering as Relation;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use parlor_hub::Origin;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::mpsc;

/// Maximum number of notices that wait for one device. A slower device is cut off, and reads its inbox later.
const WAITING_MAX: usize = 64;
/// Maximum number of feeds of one player. The oldest is cut off.
const DEVICES_MAX: usize = 16;

pub(super) type Key = (Realm, AccountId);

/// The devices of one player.
#[derive(Debug)]
struct Devices {
    open: Vec<Device>,
    /// In a cluster: the number of the newest notice that they were told, or that was there before them.
    told: u64,
}

/// What became of a notice of a cluster's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// The player's devices have it, or the player has none.
    Done,
    /// Earlier ones are to be read first.
    AfterGap,
}

#[derive(Debug)]
struct Device {
    /// The number of its feed.
    number: u64,
    origin: Origin,
    /// The sign-in of its access token.
    sign_in: Option<SignInId>,
    waiting: mpsc::Sender<Heard>,
    news: Arc<News>,
    /// Its shortest measured round trip in milliseconds; `u32::MAX` before the first.
    rtt_ms: Arc<AtomicU32>,
    /// Set before it is removed, unless it is cut off.
    end: Arc<OnceLock<End>>,
}

/// Why a feed ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The device was too slow, or its player has too many or is banned. The answer to its next request says
    /// which.
    CutOff,
    /// The sign-in of its access token ended.
    SignedOut,
}

/// The owner of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FeedOwner {
    pub(super) realm: Realm,
    pub(super) player: AccountId,
    pub(super) sign_in: Option<SignInId>,
}

/// What a device is sent.
#[derive(Debug)]
pub(super) enum Heard {
    /// A notice of the inbox.
    Notice(PendingNotice),
    /// A notice of a room that the device has subscribed to.
    Watched(PendingNotice),
    /// Something that is so now.
    News(PendingNotice),
}

impl Heard {
    /// The message of the socket.
    pub(super) fn message(&self) -> String {
        let (kind, PendingNotice { text, .. }) = match self {
            Heard::Notice(notice) => ("event", notice),
            Heard::Watched(notice) => ("watched", notice),
            Heard::News(news) => ("news", news),
        };
        format!("{{\"{kind}\":{text}}}")
    }
}

/// A text that waits for a device, and its charge to the memory of the device's address.
#[derive(Debug)]
pub(super) struct PendingNotice {
    pub(super) text: Arc<str>,
    #[expect(dead_code, reason = "it is held, not used")]
    pub(super) share: Share,
}

/// All feeds of a server.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    open: Mutex<HashMap<Key, Devices>>,
    opened: core::sync::atomic::AtomicU64,
    /// The rooms that feeds have subscribed to.
    pub(super) subscriptions: Subscriptions,
}

/// The feed of one device. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Feed {
    notices: mpsc::Receiver<Heard>,
    news: Arc<News>,
    rtt_ms: Arc<AtomicU32>,
    feeds: super::Services,
    owner: FeedOwner,
    number: u64,
    end: Arc<OnceLock<End>>,
}

impl Feeds {
    /// Opens a feed of a player. In a cluster, `newest` is the number of the newest notice of its inbox before this.
    pub(super) fn open(services: &super::Services, owner: FeedOwner, origin: Origin, newest: u64) -> Feed {
        let feeds = services.feeds();
        let number = feeds.opened.fetch_add(1, Ordering::Relaxed);
        let (sender, notices) = mpsc::channel(WAITING_MAX);
        let end = Arc::<OnceLock<End>>::default();
        let news = Arc::<News>::default();
        let mut open = feeds.lock();
        let devices = open.entry(owner.key()).or_insert_with(|| Devices { open: Vec::new(), told: newest });
        if devices.open.len() >= DEVICES_MAX {
            devices.open.remove(0);
        }
        let sign_in = owner.sign_in.clone();
        let (kept, end_of) = (Arc::clone(&news), Arc::clone(&end));
        let rtt_ms = Arc::new(AtomicU32::new(u32::MAX));
        let measured = Arc::clone(&rtt_ms);
        devices.open.push(Device {
            number,
            origin,
            sign_in,
            waiting: sender,
            news: kept,
            rtt_ms: measured,
            end: end_of,
        });
        drop(open);
        services.has_come(&owner.realm, &owner.player);
        Feed { notices, news, rtt_ms, feeds: services.clone(), owner, number, end }
    }

    /// The shortest round trip that was measured over the connections of a player, in milliseconds.
    pub(super) fn rtt_ms(&self, realm: &Realm, player: &AccountId) -> Option<u32> {
        let open = self.lock();
        let devices = open.get(&(realm.clone(), player.clone()))?;
        let measured = devices.open.iter().map(|device| device.rtt_ms.load(Ordering::Relaxed)).min()?;
        (measured < u32::MAX).then_some(measured)
    }

    /// Whether a player has a feed.
    pub(super) fn has(&self, realm: &Realm, player: &AccountId) -> bool {
        let open = self.lock();
        !open.is_empty() && open.contains_key(&(realm.clone(), player.clone()))
    }

    /// Sends a notice to all devices of a player. A device whose address is over its memory limit is cut off.
    pub(super) fn tell(&self, unread: &Unread, realm: &Realm, player: &AccountId, notice: &Arc<str>) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.tell(unread, notice);
        if devices.open.is_empty() {
            open.remove(&key);
        }
    }

    /// Tells the feeds of a player the notice with this number, in a cluster: each notice once, and in order.
    pub(super) fn tell_next(&self, unread: &Unread, key: &Key, (seq, notice): (u64, &Arc<str>)) -> Told {
        let mut open = self.lock();
        let Some(devices) = open.get_mut(key) else { return Told::Done };
        match seq.cmp(&devices.told.saturating_add(1)) {
            Relation::Less => return Told::Done,
            Relation::Greater => return Told::AfterGap,
            Relation::Equal => {}
        }
        devices.told = seq;
        devices.tell(unread, notice);
        if devices.open.is_empty() {
            open.remove(key);
        }
        Told::Done
    }

    /// Tells notices that were read from the inbox. All up to `read_to` are among them, or were dropped. Returns how many
    /// had not been told.
    pub(super) fn tell_read(
        &self,
        unread: &Unread,
        key: &Key,
        (notices, read_to): (&[(u64, Arc<str>)], u64),
    ) -> usize {
        let mut open = self.lock();
        let Some(devices) = open.get_mut(key) else { return 0 };
        let told = devices.told;
        devices.told = told.max(read_to);
        let missing: Vec<_> = notices.iter().filter(|(seq, _)| *seq > told).collect();
        for (_, notice) in &missing {
            devices.tell(unread, notice);
        }
        if devices.open.is_empty() {
            open.remove(key);
        }
        missing.len()
    }

    /// The number of the newest notice that a player's devices were told; `None` if it has none.
    pub(super) fn told(&self, key: &Key) -> Option<u64> {
        self.lock().get(key).map(|devices| devices.told)
    }

    /// All players with devices, each with the number of the newest notice that they were told.
    pub(super) fn all_told(&self) -> Vec<(Key, u64)> {
        self.lock().iter().map(|(key, devices)| (key.clone(), devices.told)).collect()
    }

    /// Whether this feed of a player is open.
    pub(super) fn is_open(&self, realm: &Realm, player: &AccountId, number: u64) -> bool {
        let open = self.lock();
        let devices = open.get(&(realm.clone(), player.clone()));
        devices.is_some_and(|devices| devices.open.iter().any(|device| device.number == number))
    }

    /// Sends a notice of a room to one device that has subscribed to it. A device that is too slow, or whose address is over
    /// its memory limit, is cut off.
    pub(super) fn tell_one(
        &self,
        unread: &Unread,
        (realm, player, number): (&Realm, &AccountId, u64),
        notice: &Arc<str>,
    ) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.open.retain(|device| {
            let share = (device.number == number).then(|| unread.take(device.origin, notice.len()));
            share.is_none_or(|share| {
                share.is_ok_and(|share| {
                    let pending = PendingNotice { text: Arc::clone(notice), share };
                    device.waiting.try_send(Heard::Watched(pending)).is_ok()
                })
            })
        });
        if devices.open.is_empty() {
            open.remove(&key);
        }
    }

    /// Sends news to all devices of a player. What waits of the same topic is replaced. A device whose address is over
    /// its memory limit, or that has too many topics, is cut off.
    pub(super) fn tell_news(
        &self,
        unread: &Unread,
        (realm, player): (&Realm, &AccountId),
        topic: &Topic,
        text: &Arc<str>,
    ) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.open.retain(|device| {
            let share = unread.take(device.origin, text.len());
            share.is_ok_and(|share| {
                device.news.put(topic.clone(), PendingNotice { text: Arc::clone(text), share })
            })
        });
        if devices.open.is_empty() {
            open.remove(&key);
        }
    }

    /// Cuts off one device of a player.
    pub(super) fn cut_off(&self, realm: &Realm, player: &AccountId, number: u64) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.open.retain(|device| device.number != number);
        if devices.open.is_empty() {
            open.remove(&key);
        }
    }

    /// Cuts off all devices of a player.
    pub(super) fn close(&self, realm: &Realm, player: &AccountId) {
        self.lock().remove(&(realm.clone(), player.clone()));
    }

    /// Ends the feeds of a sign-in, or of all sign-ins of a player.
    pub(super) fn sign_out(&self, realm: &Realm, player: &AccountId, sign_in: Option<&SignInId>) {
        let mut open = self.lock();
        let key = (realm.clone(), player.clone());
        let Some(devices) = open.get_mut(&key) else { return };
        devices.open.retain(|device| {
            let stays = sign_in.is_some() && device.sign_in.as_ref() != sign_in;
            if !stays {
                let _ = device.end.set(End::SignedOut);
            }
            stays
        });
        if devices.open.is_empty() {
            open.remove(&key);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Devices>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Devices {
    /// Sends a notice to all of them. One that is too slow, or whose address is over its memory limit, is cut off.
    fn tell(&mut self, unread: &Unread, notice: &Arc<str>) {
        self.open.retain(|device| {
            let share = unread.take(device.origin, notice.len());
            share.is_ok_and(|share| {
                let pending = PendingNotice { text: Arc::clone(notice), share };
                device.waiting.try_send(Heard::Notice(pending)).is_ok()
            })
        });
    }
}

impl FeedOwner {
    fn key(&self) -> Key {
        (self.realm.clone(), self.player.clone())
    }
}

impl Feed {
    /// Returns the next notice, or news if none waits. Cancel safe.
    ///
    /// # Errors
    /// [`End`], even if notices wait: they are no longer for this device.
    pub(super) async fn next(&mut self) -> Result<Heard, End> {
        let heard = tokio::select! {
            biased;
            notice = self.notices.recv() => notice,
            news = self.news.next() => Some(Heard::News(news)),
        };
        match self.end.get() {
            Some(end) => Err(*end),
            None => heard.ok_or(End::CutOff),
        }
    }

    /// Its number: no other feed of the server has it.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Records a measured round trip of its device.
    pub(super) fn measured(&self, rtt: Duration) {
        let rtt_ms = u32::try_from(rtt.as_millis()).unwrap_or(u32::MAX - 1);
        self.rtt_ms.fetch_min(rtt_ms, Ordering::Relaxed);
    }

    /// Whether it is the feed of this player, by this sign-in.
    pub(super) fn is_of(&self, owner: &FeedOwner) -> bool {
        self.owner == *owner
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The player counts as present for another minute.
        self.feeds.was_here(&self.owner.realm, &self.owner.player);
        let mut open = self.feeds.feeds().lock();
        let key = self.owner.key();
        if let Some(devices) = open.get_mut(&key) {
            devices.open.retain(|device| device.number != self.number);
            if devices.open.is_empty() {
                open.remove(&key);
            }
        }
        drop(open);
        self.feeds.subscriptions().end_feed(self.number);
        self.feeds.may_have_gone(&self.owner.realm, &self.owner.player);
    }
}

impl core::fmt::Debug for super::Services {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
