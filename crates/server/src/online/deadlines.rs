//! Deadlines of turn rooms: what is due is done, whether anybody is connected or not.

use super::{Services, rooms};
use crate::system::unix_ms;
use core::time::Duration;
use parlor_hub::turn::{Actor, Op};

/// Rooms that are looked after at once.
const BATCH: usize = 64;
/// How long until it is looked again at most: the store may be another server's too.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// How long until it is tried again after something failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Runs as long as the services do.
pub(super) async fn watch(services: Services) {
    loop {
        let wait = match look(&services).await {
            Ok(wait) => wait,
            Err(failure) => {
                tracing::debug!(?failure, "deadlines of rooms could not be looked after");
                AFTER_FAILURE
            }
        };
        // A commit that brings an earlier deadline ends the wait.
        let _ = tokio::time::timeout(wait, services.lanes().deadline_changed()).await;
    }
}

/// Does what is due, and says how long there is nothing to do.
async fn look(services: &Services) -> Result<Duration, super::Failure> {
    let due = services.store().due_rooms(unix_ms(), BATCH).await?;
    let is_full = due.len() == BATCH;
    for room in due {
        let done = rooms::change(services, &room.realm, &room.room, &Actor::Server, Op::Expire).await;
        if let Err(failure) = done {
            // The others have their turn; this one comes again after a pause.
            tracing::warn!(room = %room.room, realm = ?room.realm, ?failure, "a room's deadline could not be kept");
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    }
    if is_full {
        return Ok(Duration::ZERO);
    }
    let next = services.store().next_deadline().await?;
    let wait = next.map(|next| Duration::from_millis(next.saturating_sub(unix_ms())));
    Ok(wait.unwrap_or(LOOK_AGAIN).clamp(Duration::from_millis(1), LOOK_AGAIN))
}
