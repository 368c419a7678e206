//! Deadlines of turn rooms: due timers are applied, with or without connected players.
//!
//! A room whose timer fails is deferred in the store, for twice as long each time. So it delays no other
//! room, not after a restart either. Rooms are processed in parallel, so a slow one delays no other.

use super::failure::Failure;
use super::{Services, rooms};
use crate::store::{DueRoom, RoomId};
use core::time::Duration;
use parlor_server::realm::Realm;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

/// Rooms that are done at once.
const AT_ONCE: usize = 32;
/// How long until it is looked again at most.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long until it is tried again when the store does not answer.
const AFTER_FAILURE: Duration = Duration::from_secs(1);
/// For how long a room is put off first, and at most.
const PUT_OFF: Duration = Duration::from_secs(1);
const PUT_OFF_MAX: Duration = Duration::from_secs(600);
/// How long after a start nothing is done that was set before it: the time of day may have been wrong on one side of it, and players whose time ran
/// out while the server was away have a moment to come back.
const AFTER_START: Duration = Duration::from_secs(10);

type Key = (Realm, RoomId);

/// Runs as long as the services do.
pub(super) async fn watch(services: Services) {
    wait_after_start(&services).await;
    let mut doing = Doing::default();
    loop {
        // Before the store is asked: a deadline that is set while it answers ends the wait.
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

/// Lets deadlines of before the start be, for a moment. A store without any is not waited for.
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

/// Rooms that are being done.
#[derive(Default)]
struct Doing {
    tasks: JoinSet<Key>,
    rooms: BTreeSet<Key>,
    /// Whether more were due than could be begun.
    is_full: bool,
}

impl Doing {
    /// Begins what is due, and says how long nothing else will be.
    async fn begin(&mut self, services: &Services) -> Result<Duration, Failure> {
        let now_ms = services.time().now_ms();
        // Those that are being done are due still, and may come first.
        let due = services.store().due_rooms(now_ms, AT_ONCE + self.rooms.len()).await?;
        self.is_full = false;
        for room in due {
            let key = (room.realm.clone(), room.room.clone());
            if self.rooms.contains(&key) {
                continue;
            }
            if self.rooms.len() >= AT_ONCE {
                self.is_full = true;
                break;
            }
            self.rooms.insert(key.clone());
            let services = services.clone();
            self.tasks.spawn(async move {
                keep(&services, &room).await;
                key
            });
        }
        let next = services.store().next_deadline(now_ms).await?;
        let wait = next.map(|next| Duration::from_millis(next.saturating_sub(services.time().now_ms())));
        Ok(wait.unwrap_or(LOOK_AGAIN).clamp(Duration::from_millis(1), LOOK_AGAIN))
    }

    /// Waits until something may be due that is not being done, or there is place for more.
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
                        Ok(key) => {
                            self.rooms.remove(&key);
                        }
                        // None is cancelled, and `keep` does not panic. What it was about is found due again.
                        Err(_) => self.forget_all().await,
                    }
                    // Not for each one: half of them are asked for at once.
                    if self.is_full && self.rooms.len() <= AT_ONCE / 2 || self.rooms.is_empty() {
                        return;
                    }
                }
            }
        }
    }

    /// Which room a task was about that panicked is not known.
    async fn forget_all(&mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.rooms.clear();
    }
}

/// Does what is due in a room, or puts the room off.
async fn keep(services: &Services, due: &DueRoom) {
    let (with, realm, room) = (services.clone(), due.realm.clone(), due.room.clone());
    // A task of its own, so that a room in which something panics is put off like any other.
    let done = tokio::spawn(async move { rooms::expire(&with, &realm, &room).await }).await;
    let sentence = match done {
        Ok(Ok(true)) => return,
        // The store and the document disagree about when something is due.
        Ok(Ok(false)) => "nothing is due in it".to_owned(),
        Ok(Err(failure)) => failure.to_json().to_string(),
        Err(error) => error.to_string(),
    };
    let doublings = u32::try_from(due.failures).unwrap_or(u32::MAX);
    let delay = PUT_OFF.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(PUT_OFF_MAX);
    tracing::warn!(room = %due.room, realm = ?due.realm, failures = due.failures + 1, again_in = ?delay, why = %sentence,
        "what was due in a room could not be done");
    let until_ms =
        services.time().now_ms().saturating_add(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    if let Err(error) = services.store().put_off_room(due, until_ms).await {
        // Then no room can be stored, and none is held up by this one.
        tracing::debug!(room = %due.room, %error, "a room could not be put off");
        tokio::time::sleep(AFTER_FAILURE).await;
    }
}
