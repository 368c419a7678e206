//! The locks of turn rooms, and the memory of the rooms that they hold.
//!
//! A room is charged before its document is parsed, by the maximum that its JSON can take. The sum is
//! bounded: idle rooms are dropped, the longest unused first. A room that does not fit beside the rooms in
//! use is refused.

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
use tokio::sync::{Mutex as AsyncMutex, MutexGuard, Notify};

/// Maximum number of cached rooms. Beyond it the longest unused one is dropped, if its lock is free.
const HELD_MAX: usize = 4_096;
/// Maximum number of operations that wait for one room.
const WAITING_MAX: usize = 128;

type Key = (Realm, RoomId);

/// The locks of all rooms of a server.
#[derive(Debug)]
pub(crate) struct RoomLocks {
    locks: Mutex<HashMap<Key, Arc<RoomLock>>>,
    /// Bytes of all cached rooms, and their limit.
    bytes: Arc<AtomicUsize>,
    bytes_max: usize,
    /// Counts the uses of all locks.
    uses: AtomicU64,
    /// The next known deadline of any room; `u64::MAX` for none.
    deadline_ms: AtomicU64,
    deadline_changed: Notify,
}

impl RoomLocks {
    /// Creates locks whose rooms may take `bytes_max` bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        RoomLocks {
            locks: Mutex::default(),
            bytes: Arc::default(),
            bytes_max,
            uses: AtomicU64::new(0),
            deadline_ms: AtomicU64::new(u64::MAX),
            deadline_changed: Notify::new(),
        }
    }

    /// Returns the bytes of cached rooms.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Charges the memory of a room with this document, before it is parsed or after it changed. The caller
    /// holds the lock. Drops idle rooms to make room.
    ///
    /// # Errors
    /// It does not fit beside the rooms in use.
    pub(crate) fn weigh(&self, entry: &QueueEntry, document: &[u8]) -> Result<(), Failure> {
        let bytes = parsed_bytes_max(document);
        self.count(&entry.0, bytes);
        if self.bytes() <= self.bytes_max {
            return Ok(());
        }
        let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = locks.iter().filter(|(_, room_lock)| room_lock.inside.load(Ordering::Relaxed) == 0);
        let mut idle: Vec<(u64, Key)> =
            idle.map(|(key, room_lock)| (room_lock.used.load(Ordering::Relaxed), key.clone())).collect();
        idle.sort_unstable_by_key(|(used, _)| *used);
        // Drops more than needed, so that not every new room searches all of them.
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
        self.count(&entry.0, 0);
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
    room: AsyncMutex<Option<TurnRoom>>,
    /// Bytes of the room, and the sum that includes them.
    bytes: AtomicUsize,
    all: Arc<AtomicUsize>,
    inside: AtomicUsize,
    used: AtomicU64,
}

/// An entry of the queue for a lock.
#[derive(Debug)]
pub(crate) struct QueueEntry(Arc<RoomLock>);

/// The lock, held until this is dropped.
#[derive(Debug)]
pub(crate) struct LockedRoom<'a> {
    room: MutexGuard<'a, Option<TurnRoom>>,
    room_lock: &'a RoomLock,
}

impl RoomLocks {
    /// Returns an entry of the queue for a room. The server always gets one, because its timers must run
    /// however many players wait. It uses a bounded number of rooms at once.
    pub(crate) fn of(&self, realm: &Realm, id: &RoomId, is_server: bool) -> Result<QueueEntry, Failure> {
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
        // Under the lock of the map, so that no lock is dropped between lookup and entry.
        room_lock.inside.fetch_add(1, Ordering::Relaxed);
        Ok(QueueEntry(room_lock))
    }

    /// Returns the number of operations in a room or waiting for it.
    pub(crate) fn waiting_for(&self, realm: &Realm, id: &RoomId) -> usize {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        let room_lock = locks.get(&(realm.clone(), id.clone()));
        room_lock.map_or(0, |room_lock| room_lock.inside.load(Ordering::Relaxed))
    }

    /// Drops a deleted room from its lock, once the lock is free.
    pub(crate) async fn forget(&self, realm: &Realm, id: &RoomId) {
        let key = (realm.clone(), id.clone());
        let room_lock = self.locks.lock().unwrap_or_else(PoisonError::into_inner).get(&key).map(Arc::clone);
        if let Some(room_lock) = room_lock {
            *room_lock.room.lock().await = None;
        }
    }

    /// Records the next deadline of a room, if it has one.
    pub(crate) fn has_deadline(&self, at_ms: Option<u64>) {
        let Some(at_ms) = at_ms else { return };
        if self.deadline_ms.fetch_min(at_ms, Ordering::Relaxed) > at_ms {
            self.deadline_changed.notify_one();
        }
    }

    /// Forgets the known deadlines: from here on each new earliest deadline ends a wait. Call this before
    /// querying the store for the next deadline, so that a deadline set meanwhile is noticed.
    pub(crate) fn expect_deadlines(&self) {
        self.deadline_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// Waits for an earlier deadline than those since [`expect_deadlines`](Self::expect_deadlines). May be
    /// cancelled.
    pub(crate) async fn deadline_changed(&self) {
        self.deadline_changed.notified().await;
    }
}

impl QueueEntry {
    /// Waits for the lock.
    pub(crate) async fn enter(&self) -> LockedRoom<'_> {
        LockedRoom { room: self.0.room.lock().await, room_lock: &self.0 }
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for LockedRoom<'_> {
    type Target = Option<TurnRoom>;

    fn deref(&self) -> &Self::Target {
        &self.room
    }
}

impl DerefMut for LockedRoom<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.room
    }
}

impl Drop for LockedRoom<'_> {
    fn drop(&mut self) {
        if self.room.is_none() {
            self.room_lock.forget();
        }
    }
}

impl RoomLock {
    fn new(all: Arc<AtomicUsize>) -> Self {
        RoomLock {
            room: AsyncMutex::default(),
            bytes: AtomicUsize::new(0),
            all,
            inside: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Removes its room from the sum.
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
        // The store is queried here, and does not have the next deadline yet.
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
        let entries: Vec<QueueEntry> =
            (0..WAITING_MAX).map(|_| locks.of(&realm, &id, false).unwrap()).collect();
        assert!(locks.of(&realm, &id, false).is_err());
        assert!(locks.of(&realm, &id, true).is_ok());
        assert_eq!(locks.waiting_for(&realm, &id), WAITING_MAX);
        drop(entries);
        assert_eq!(locks.waiting_for(&realm, &id), 0);
        assert!(locks.of(&realm, &id, false).is_ok());
    }
}
