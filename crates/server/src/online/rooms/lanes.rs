//! Lanes: who holds which room.

use crate::online::failure::Failure;
use crate::store::{Realm, RoomId};
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use parlor_hub::turn::TurnRoom;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Waiting, MutexGuard, Notify};

/// Rooms whose documents are held. The one that was not used for the longest goes, if nobody is in its lane.
const HELD_MAX: usize = 4_096;
/// How many may wait for one room.
const WAITING_MAX: usize = 128;

type Key = (Realm, RoomId);

/// All lanes of a server.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Mutex<HashMap<Key, Arc<Lane>>>,
    /// Counts the uses of all.
    uses: AtomicU64,
    /// The next deadline of any room, as far as it is known; `u64::MAX` for none.
    deadline_ms: AtomicU64,
    deadline_changed: Notify,
    /// Who looks for a room or opens one, of one game at a time: else two who look at once would each open one.
    matching: Vec<Waiting<()>>,
}

/// How many games can look for rooms at the same time.
const MATCHING: usize = 64;

impl Default for Lanes {
    fn default() -> Self {
        Lanes {
            lanes: Mutex::default(),
            uses: AtomicU64::new(0),
            deadline_ms: AtomicU64::new(u64::MAX),
            deadline_changed: Notify::new(),
            matching: (0..MATCHING).map(|_| Waiting::new(())).collect(),
        }
    }
}

/// The lane of one room.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    room: Waiting<Option<TurnRoom>>,
    inside: AtomicUsize,
    used: AtomicU64,
}

/// A place in the line of a lane.
#[derive(Debug)]
pub(crate) struct Place(Arc<Lane>);

/// The lane is one's own until this is dropped.
#[derive(Debug)]
pub(crate) struct Held<'a>(MutexGuard<'a, Option<TurnRoom>>);

impl Lanes {
    /// A place in the lane of a room.
    pub(crate) fn of(&self, realm: &Realm, id: &RoomId) -> Result<Place, Failure> {
        let key = (realm.clone(), id.clone());
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if lanes.len() >= HELD_MAX && !lanes.contains_key(&key) {
            let idle = lanes.iter().filter(|(_, lane)| lane.inside.load(Ordering::Relaxed) == 0);
            let oldest =
                idle.min_by_key(|(_, lane)| lane.used.load(Ordering::Relaxed)).map(|(key, _)| key.clone());
            let busy = || {
                Failure::unavailable("too many rooms are in use at once: ask again", Duration::from_secs(1))
            };
            lanes.remove(&oldest.ok_or_else(busy)?);
        }
        let lane = Arc::clone(lanes.entry(key).or_default());
        lane.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        if lane.inside.load(Ordering::Relaxed) >= WAITING_MAX {
            return Err(Failure::unavailable(
                "too many wait for this room: ask again",
                Duration::from_millis(200),
            ));
        }
        // Under the lock of the map, so that no lane is taken out between being found and being entered.
        lane.inside.fetch_add(1, Ordering::Relaxed);
        Ok(Place(lane))
    }

    /// A room has its next deadline then, if it has one.
    pub(crate) fn has_deadline(&self, at_ms: Option<u64>) {
        let Some(at_ms) = at_ms else { return };
        if self.deadline_ms.fetch_min(at_ms, Ordering::Relaxed) > at_ms {
            self.deadline_changed.notify_one();
        }
    }

    /// Waits until a room has an earlier deadline than those before. May be cancelled.
    pub(crate) async fn deadline_changed(&self) {
        self.deadline_ms.store(u64::MAX, Ordering::Relaxed);
        self.deadline_changed.notified().await;
    }

    /// Whoever looks for a room of a game, or else opens one, does so alone.
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
        Held(self.0.room.lock().await)
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
        &self.0
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
