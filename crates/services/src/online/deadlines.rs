//! Deadlines of turn rooms: runs due timers, whether players are connected or not.
//!
//! If a room's timer cannot run, the room is put off in the store, each time for twice as long. It delays no
//! other room, also after a restart. If the store cannot record that, the room is put off in memory. Rooms
//! run concurrently, so a slow one delays no other.

use super::failure::Failure;
use super::{Services, rooms};
use crate::store::{DueRoom, PAGE_MAX, RoomId};
use core::time::Duration;
use parlor_server::realm::Realm;
use std::collections::{BTreeMap, BTreeSet};
use tokio::task::JoinSet;

/// Maximum number of rooms that run at once.
const AT_ONCE: usize = 32;
/// Maximum number of rooms that are put off in memory.
const REMEMBERED_MAX: usize = 512;
/// Longest interval between two queries of the store.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// Longest interval between two queries in a cluster, where other nodes set deadlines. It bounds the delay of a
/// deadline whose node has died.
const LOOK_AGAIN_IN_CLUSTER: Duration = Duration::from_secs(1);
/// Wait after a query that the store did not answer.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// First and longest delay of a room that is put off.
const PUT_OFF: Duration = Duration::from_secs(1);
const PUT_OFF_MAX: Duration = Duration::from_secs(600);
/// Longest delay of a room that is put off in memory. Once the store accepts writes again, all timers run
/// soon.
const REMEMBERED_FOR_MAX: Duration = Duration::from_secs(10);
/// Time after a start in which no earlier deadline is enforced. The time of day may have been wrong before or
/// after the start, and players whose time ran out meanwhile have a moment to return.
const AFTER_START: Duration = Duration::from_secs(10);

// One page of the store covers the rooms that run or are put off, and as many that can begin.
const _: () = assert!(3 * AT_ONCE + REMEMBERED_MAX <= PAGE_MAX);

type Key = (Realm, RoomId);

/// Runs as long as the services.
pub(super) async fn watch(services: Services) {
    wait_after_start(&services).await;
    let mut doing = Doing::default();
    loop {
        // Before the query: a deadline that is set during it ends the wait.
        services.room_locks().expect_deadlines();
        let wait = match doing.begin(&services).await {
            Ok(wait) => wait,
            Err(failure) => {
                tracing::debug!(?failure, "deadlines of rooms could not be looked after");
                AFTER_FAILURE
            }
        };
        doing.wait(&services, wait).await;
    }
}

/// Waits before earlier deadlines are enforced. Returns at once if the store has no deadline.
async fn wait_after_start(services: &Services) {
    let until = services.time().steady() + AFTER_START;
    while matches!(services.store().next_deadline(0).await, Ok(Some(_)) | Err(_)) {
        let left = until.saturating_sub(services.time().steady());
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(left) => {}
            () = services.time().moved() => {}
        }
    }
}

/// Rooms that run, and rooms that are put off in memory.
#[derive(Default)]
struct Doing {
    tasks: JoinSet<(Key, Ended)>,
    rooms: BTreeSet<Key>,
    remembered: Remembered,
    /// Whether more rooms were due than could begin.
    is_full: bool,
}

/// The result of a room's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Its timer ran, or the store has its next deadline.
    Stored,
    /// The store recorded nothing. The room is tried again after this time.
    NotStored { again_in: Duration },
}

impl Doing {
    /// Starts due rooms. Returns the time until the next room can be due.
    async fn begin(&mut self, services: &Services) -> Result<Duration, Failure> {
        let (now, now_ms) = (services.time().steady(), services.time().now_ms());
        self.is_full = false;
        self.remembered.forget_until(now);
        if let Some(wait) = self.remembered.wait_if_full(now) {
            return Ok(wait);
        }
        // Rooms that run or are put off in memory are still due in the store, and may come first.
        let not_now = self.rooms.len() + self.remembered.0.len();
        let due = services.store().due_rooms(now_ms, AT_ONCE + not_now).await?;
        for room in due {
            let key = (room.realm.clone(), room.room.clone());
            if self.rooms.contains(&key) || self.remembered.0.contains_key(&key) {
                continue;
            }
            if self.rooms.len() >= AT_ONCE {
                self.is_full = true;
                break;
            }
            self.rooms.insert(key.clone());
            let services = services.clone();
            self.tasks.spawn(async move { (key, keep(&services, &room).await) });
        }
        let next = services.store().next_deadline(now_ms).await?;
        let wait = next.map(|next| Duration::from_millis(next.saturating_sub(services.time().now_ms())));
        let look_again = if services.cluster().is_some() { LOOK_AGAIN_IN_CLUSTER } else { LOOK_AGAIN };
        let wait = wait.unwrap_or(look_again).min(self.remembered.wait(now).unwrap_or(look_again));
        Ok(wait.clamp(Duration::from_millis(1), look_again))
    }

    /// Waits until another room may be due, or until a running one ends.
    async fn wait(&mut self, services: &Services, wait: Duration) {
        let sleep = tokio::time::sleep(wait);
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                () = &mut sleep => return,
                () = services.room_locks().deadline_changed() => return,
                () = services.time().moved() => return,
                Some(done) = self.tasks.join_next() => {
                    match done {
                        Ok((key, ended)) => {
                            self.rooms.remove(&key);
                            if let Ended::NotStored { again_in } = ended {
                                self.remembered.0.insert(key, services.time().steady() + again_in);
                            }
                        }
                        // No task is cancelled, and `keep` does not panic. The room is found due again.
                        Err(_) => self.forget_all().await,
                    }
                    // Not for each single room: half of them are fetched at once.
                    if self.is_full && self.rooms.len() <= AT_ONCE / 2 || self.rooms.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    /// Forgets all running rooms, because it is unknown which one panicked.
    async fn forget_all(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.rooms.clear();
    }
}

/// Rooms that could neither run nor be put off in the store, each with the steady time of its next try.
#[derive(Debug, Default)]
struct Remembered(BTreeMap<Key, Duration>);

impl Remembered {
    /// Forgets rooms whose next try is due.
    fn forget_until(&mut self, now: Duration) {
        self.0.retain(|_, until| *until > now);
    }

    /// The time until the next try of any room.
    fn wait(&self, now: Duration) -> Option<Duration> {
        self.0.values().min().map(|until| until.saturating_sub(now))
    }

    /// The time until any other room may begin, if too many are put off: then the store accepts no writes at
    /// all.
    fn wait_if_full(&self, now: Duration) -> Option<Duration> {
        self.wait(now).filter(|_| self.0.len() >= REMEMBERED_MAX)
    }
}

/// The delay of a room after this many failures.
fn delay(failures: u64) -> Duration {
    let doublings = u32::try_from(failures).unwrap_or(u32::MAX);
    PUT_OFF.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(PUT_OFF_MAX)
}

/// Runs the timer of a room, or puts the room off.
async fn keep(services: &Services, due: &DueRoom) -> Ended {
    let (with, realm, room) = (services.clone(), due.realm.clone(), due.room.clone());
    // Its own task, so that a room that panics is put off like any other.
    let done = tokio::spawn(async move { rooms::expire(&with, &realm, &room).await }).await;
    let sentence = match done {
        Ok(Ok(true)) => return Ended::Stored,
        // The store and the document disagree about the deadline.
        Ok(Ok(false)) => "nothing is due in it".to_owned(),
        Ok(Err(failure)) => failure.to_json().to_string(),
        Err(error) => error.to_string(),
    };
    let delay = delay(due.failures);
    let until_ms =
        services.time().now_ms().saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    match services.store().put_off_room(due, until_ms).await {
        // Another node of the cluster was faster.
        Ok(false) => Ended::Stored,
        Ok(true) => {
            tracing::warn!(room = %due.room, realm = ?due.realm, failures = due.failures + 1, again_in = ?delay, why = %sentence,
                "the timer of a room could not be run");
            Ended::Stored
        }
        Err(error) => {
            // The room ends here: the caller remembers it, and other timers run meanwhile.
            tracing::warn!(room = %due.room, %error, why = %sentence,
                "the timer of a room could not be run, and the room not be put off in the store");
            Ended::NotStored { again_in: delay.min(REMEMBERED_FOR_MAX) }
        }
    }
}
