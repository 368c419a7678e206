//! Locks and cached documents of rooms.
//!
//! A cached room's memory is counted before its document is read, by the most that its JSON can take, and
//! bounded in all. Unused rooms are dropped, the longest unused first. A room that does not fit beside those
//! in use is rejected.

use crate::online::failure::Failure;
use crate::online::json::parsed_bytes_max;
use crate::store::RoomId;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_turn::TurnRoom;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Waiting, MutexGuard, Notify};

/// Rooms whose documents are held. The longest unused one is dropped, unless its lock is held.
const HELD_MAX: usize = 4_096;
/// How many may wait for one room.
const WAITING_MAX: usize = 128;

type Key = (Realm, RoomId);

/// The locks of all rooms of a server.
#[derive(Debug)]
pub(crate) struct RoomLocks {
    locks: Mutex<HashMap<Key, Arc<RoomLock>>>,
    /// Bytes that the rooms of all locks take, and may take.
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
    /// Counts the uses of all.
    uses: AtomicU64,
    /// The next deadline of any room, as far as it is known; `u64::MAX` for none.
    deadline_ms: AtomicU64,
    deadline_changed: Notify,
    /// Serializes searches and openings of one game: otherwise two simultaneous searches would each open a
    /// room.
    matching: Vec<Waiting<()>>,
}

/// How many games can look for rooms at the same time.
const MATCHING: usize = 64;

impl RoomLocks {
    /// No locks yet, whose rooms may take so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        RoomLocks {
            locks: Mutex::default(),
            bytes: Arc::default(),
            bytes_max,
            uses: AtomicU64::new(0),
            deadline_ms: AtomicU64::new(u64::MAX),
            deadline_changed: Notify::new(),
            matching: (0..MATCHING).map(|_| Waiting::new(())).collect(),
        }
    }

    /// Bytes that rooms at hand take.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts the memory of a room whose document has this text, before it is parsed or after it changed. The
    /// caller holds the lock. Unused rooms are dropped for it.
    ///
    /// # Errors
    /// It does not fit beside the rooms that are in use.
    pub(crate) fn weigh(&self, place: &Place, document: &[u8]) -> Result<(), Failure> {
        let bytes = parsed_bytes_max(document);
        self.count(&place.0, bytes);
        if self.bytes() <= self.bytes_max {
            return Ok(());
        }
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = locks.iter().filter(|(_, room_lock)| room_lock.inside.load(Ordering::Relaxed) == 0);
        let mut idle: Vec<(u64, Key)> =
            idle.map(|(key, room_lock)| (room_lock.used.load(Ordering::Relaxed), key.clone())).collect();
        idle.sort_unstable_by_key(|(used, _)| *used);
        // A little more than is needed, so that not each room that comes looks through all of them.
        for (_, key) in idle {
            if self.bytes() <= self.bytes_max - self.bytes_max / 8 {
                break;
            }
            locks.remove(&key);
        }
        drop(locks);
        if self.bytes() <= self.bytes_max || self.bytes() == bytes {
            return Ok(());
        }
        self.count(&place.0, 0);
        let sentence =
            "the rooms that are in use at once take all the memory that there is for them: ask again";
        Err(Failure::unavailable(sentence, Duration::from_secs(1)))
    }

    fn count(&self, room_lock: &RoomLock, bytes: usize) {
        let before = room_lock.bytes.swap(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(before, Ordering::Relaxed);
    }
}

/// The lock of one room.
#[derive(Debug)]
pub(crate) struct RoomLock {
    room: Waiting<Option<TurnRoom>>,
    /// Bytes that the room takes, and where they are counted.
    bytes: AtomicUsize,
    all: Arc<AtomicUsize>,
    inside: AtomicUsize,
    used: AtomicU64,
}

/// A place in the queue for a lock.
#[derive(Debug)]
pub(crate) struct Place(Arc<RoomLock>);

/// The lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    room: MutexGuard<'a, Option<TurnRoom>>,
    room_lock: &'a RoomLock,
}

impl RoomLocks {
    /// A place in the queue for a room. The server itself always gets one: how many wait for a room is the players' doing, and its timers must be kept
    /// all the same. It asks for a bounded number of rooms at once.
    pub(crate) fn of(&self, realm: &Realm, id: &RoomId, is_server: bool) -> Result<Place, Failure> {
        let key = (realm.clone(), id.clone());
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        if locks.len() >= HELD_MAX && !locks.contains_key(&key) {
            let idle = locks.iter().filter(|(_, room_lock)| room_lock.inside.load(Ordering::Relaxed) == 0);
            let oldest = idle
                .min_by_key(|(_, room_lock)| room_lock.used.load(Ordering::Relaxed))
                .map(|(key, _)| key.clone());
            let busy = || {
                Failure::unavailable("too many rooms are in use at once: ask again", Duration::from_secs(1))
            };
            match oldest {
                Some(oldest) => drop(locks.remove(&oldest)),
                None if is_server => {}
                None => return Err(busy()),
            }
        }
        let new = || Arc::new(RoomLock::new(Arc::clone(&self.bytes)));
        let room_lock = Arc::clone(locks.entry(key).or_insert_with(new));
        room_lock.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if !is_server && room_lock.inside.load(Ordering::Relaxed) >= WAITING_MAX {
            return Err(Failure::unavailable(
                "too many wait for this room: ask again",
                Duration::from_millis(200),
            ));
        }
        // Under the lock of the map, so that no lock is taken out between being found and being entered.
        room_lock.inside.fetch_add(1, Ordering::Relaxed);
        Ok(Place(room_lock))
    }

    /// A room is deleted: its cached document is dropped, once the lock is free.
    pub(crate) async fn forget(&self, realm: &Realm, id: &RoomId) {
        let key = (realm.clone(), id.clone());
        let room_lock = self.locks.lock().unwrap_or_else(PoisonError::into_inner).get(&key).map(Arc::clone);
        if let Some(room_lock) = room_lock {
            *room_lock.room.lock().await = None;
        }
    }

    /// A room has its next deadline then, if it has one.
    pub(crate) fn has_deadline(&self, at_ms: Option<u64>) {
        let Some(at_ms) = at_ms else { return };
        if self.deadline_ms.fetch_min(at_ms, Ordering::Relaxed) > at_ms {
            self.deadline_changed.notify_one();
        }
    }

    /// From here on each deadline is news, and each that is earlier than those before ends a wait. To be called before the store is asked for the
    /// next one: of a deadline that it does not say, this hears.
    pub(crate) fn expect_deadlines(&self) {
        self.deadline_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// Waits until a room has an earlier deadline than those since [`expect_deadlines`](Self::expect_deadlines). May be cancelled.
    pub(crate) async fn deadline_changed(&self) {
        self.deadline_changed.notified().await;
    }

    /// Searches and openings of a game run one after another.
    pub(crate) async fn match_alone(&self, realm: &Realm, game: &str) -> MutexGuard<'_, ()> {
        use core::hash::{Hash, Hasher};
        let mut hasher = rustc_hash::FxHasher::default();
        (realm, game).hash(&mut hasher);
        let at = usize::try_from(hasher.finish() % MATCHING as u64).unwrap_or(0);
        self.matching[at].lock().await
    }
}

impl Place {
    /// Waits for its turn.
    pub(crate) async fn enter(&self) -> Held<'_> {
        Held { room: self.0.room.lock().await, room_lock: &self.0 }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for Held<'_> {
    type Target = Option<TurnRoom>;

    fn deref(&self) -> &Self::Target {
        &self.room
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.room
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.room.is_none() {
            self.room_lock.forget();
        }
    }
}

impl RoomLock {
    fn new(all: Arc<AtomicUsize>) -> Self {
        RoomLock {
            room: Waiting::default(),
            bytes: AtomicUsize::new(0),
            all,
            inside: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Its room is not at hand.
    fn forget(&self) {
        self.all.fetch_sub(self.bytes.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Drop for RoomLock {
    fn drop(&mut self) {
        self.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_deadline_that_is_set_while_the_store_answers_ends_the_wait() {
        let locks = RoomLocks::new(usize::MAX);
        locks.has_deadline(Some(3));
        assert!(locks.deadline_changed().now_or_never().is_some());
        // The store is asked here, and has not heard of the next one.
        locks.expect_deadlines();
        locks.has_deadline(Some(5));
        assert!(locks.deadline_changed().now_or_never().is_some());
        locks.has_deadline(Some(6));
        assert!(locks.deadline_changed().now_or_never().is_none(), "what is later is no reason to look");
    }

    #[test]
    fn the_server_gets_into_a_lane_that_is_full() {
        let locks = RoomLocks::new(usize::MAX);
        let (realm, id) = (Realm::new("tanks", "production").unwrap(), RoomId::new("r1").unwrap());
        let places: Vec<Place> = (0..WAITING_MAX).map(|_| locks.of(&realm, &id, false).unwrap()).collect();
        assert!(locks.of(&realm, &id, false).is_err());
        assert!(locks.of(&realm, &id, true).is_ok());
        drop(places);
        assert!(locks.of(&realm, &id, false).is_ok());
    }
}
