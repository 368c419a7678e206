//! Retention of unused data, and the task that deletes it in small parts, beside the traffic.
//!
//! A [`Sweep`] visits the kinds of data, one part in each step. It has no clock and waits for the store
//! alone. A new one continues where the last one was dropped.

use super::Services;
use super::config::Lives;
use crate::cluster::Duty;
use crate::store::{AccountId, RoomId, RoomLife, Store, StoreError, Swept, Unseen};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_turn::{Phase, TurnRoom};
use serde::Deserialize;
use tokio::time::Instant;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// How long it is stored who was seen: longer than anybody asks.
const SEEN_MS: u64 = 600_000;
/// Wait between two sweeps.
const EVERY: Duration = Duration::from_secs(600);
/// Rest after each part, in multiples of the part's duration: deletions take at most a fifth of the store's
/// time.
const REST: u32 = 4;

impl Lives {
    /// The life of a room after a commit.
    pub(super) fn of(&self, room: &TurnRoom, owner: Option<AccountId>, now_ms: u64) -> RoomLife {
        let phase = if is_open(room) { room.phase() } else { Phase::Ended };
        RoomLife { owner, is_open: phase != Phase::Ended, until_ms: self.until_ms(phase, now_ms) }
    }

    fn until_ms(&self, phase: Phase, now_ms: u64) -> u64 {
        let days = match phase {
            Phase::Waiting => self.waiting_rooms_days,
            Phase::Playing => self.playing_rooms_days,
            Phase::Ended => self.ended_rooms_days,
        };
        now_ms.saturating_add(days.saturating_mul(DAY_MS))
    }
}

/// Whether a room counts as open: it has players, and its game has not ended.
pub(super) fn is_open(room: &TurnRoom) -> bool {
    !room.players().is_empty() && room.phase() != Phase::Ended
}

/// The kinds of data, in the order of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OldRooms,
    Rooms,
    SignIns,
    Webhooks,
    Accounts,
    Inboxes,
    Bans,
    Boards,
    Seen,
}

const KINDS: [Kind; 9] = [
    Kind::OldRooms,
    Kind::Rooms,
    Kind::SignIns,
    Kind::Webhooks,
    Kind::Accounts,
    Kind::Inboxes,
    Kind::Bans,
    Kind::Boards,
    Kind::Seen,
];

/// Rows deleted since the start, by kind.
#[derive(Debug, Default)]
pub(crate) struct SweptRows {
    rooms: AtomicU64,
    sign_ins: AtomicU64,
    webhooks: AtomicU64,
    accounts: AtomicU64,
    inboxes: AtomicU64,
    bans: AtomicU64,
    board_entries: AtomicU64,
}

impl SweptRows {
    /// Each kind and its number of rows.
    pub(crate) fn counts(&self) -> [(&'static str, u64); 7] {
        [
            ("rooms", &self.rooms),
            ("sign_ins", &self.sign_ins),
            ("webhooks", &self.webhooks),
            ("accounts", &self.accounts),
            ("inboxes", &self.inboxes),
            ("bans", &self.bans),
            ("board_entries", &self.board_entries),
        ]
        .map(|(kind, count)| (kind, count.load(Ordering::Relaxed)))
    }

    fn count(&self, kind: Kind, rows: u64) {
        let counter = match kind {
            Kind::OldRooms | Kind::Seen => return,
            Kind::Rooms => &self.rooms,
            Kind::SignIns => &self.sign_ins,
            Kind::Webhooks => &self.webhooks,
            Kind::Accounts => &self.accounts,
            Kind::Inboxes => &self.inboxes,
            Kind::Bans => &self.bans,
            Kind::Boards => &self.board_entries,
        };
        counter.fetch_add(rows, Ordering::Relaxed);
    }
}

/// One sweep through all kinds.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    at: usize,
}

impl Sweep {
    /// Deletes one part. Returns whether more is left.
    pub(super) async fn step(&mut self, services: &Services, now_ms: u64) -> Result<bool, StoreError> {
        let Some(kind) = KINDS.get(self.at).copied() else { return Ok(false) };
        let swept = self.part(services, kind, now_ms).await?;
        services.swept().count(kind, swept.rows);
        if !swept.is_more {
            self.at += 1;
        }
        Ok(self.at < KINDS.len())
    }

    async fn part(&self, services: &Services, kind: Kind, now_ms: u64) -> Result<Swept, StoreError> {
        let (store, lives) = (services.store(), services.lives());
        let before = |days: u64| now_ms.saturating_sub(days.saturating_mul(DAY_MS));
        match kind {
            Kind::OldRooms => judge(store, lives, now_ms).await,
            Kind::Rooms => delete_rooms(services, now_ms).await,
            Kind::SignIns => store.sweep_sign_ins(now_ms).await,
            Kind::Webhooks => store.sweep_webhooks(before(lives.webhooks_days)).await,
            Kind::Accounts => {
                let (guests_ms, devices_ms) = (before(lives.guests_days), before(lives.devices_days));
                store.sweep_accounts(now_ms, Unseen { guests_ms, devices_ms }).await
            }
            Kind::Inboxes => store.sweep_inboxes().await,
            Kind::Bans => store.sweep_bans(now_ms).await,
            Kind::Boards => store.sweep_boards(now_ms).await,
            // Of a cluster alone.
            Kind::Seen if services.cluster().is_none() => Ok(Swept::default()),
            Kind::Seen => store.sweep_seen(now_ms.saturating_sub(SEEN_MS)).await,
        }
    }
}

/// The phase in a room's summary.
#[derive(Deserialize)]
struct Stage {
    phase: Phase,
}

/// Sets how long rooms of an older layout are kept, from now on.
async fn judge(store: &Store, lives: &Lives, now_ms: u64) -> Result<Swept, StoreError> {
    let unjudged = store.rooms_unjudged().await?;
    let is_more = !unjudged.is_empty();
    let judged = unjudged.into_iter().map(|(realm, room, summary)| {
        let phase = serde_json::from_slice(&summary).map_or(Phase::Playing, |Stage { phase }| phase);
        (realm, room, lives.until_ms(phase, now_ms))
    });
    store.judge_rooms(judged.collect()).await?;
    Ok(Swept { rows: 0, is_more })
}

async fn delete_rooms(services: &Services, now_ms: u64) -> Result<Swept, StoreError> {
    let over = services.store().rooms_over(now_ms).await?;
    let is_more = !over.is_empty();
    let rooms: Vec<(Realm, RoomId)> = over.clone();
    let rows = services.store().delete_rooms_over(over, now_ms).await?;
    for (realm, room) in &rooms {
        services.room_locks().forget(realm, room).await;
    }
    Ok(Swept { rows, is_more })
}

/// Runs as long as the services.
pub(super) async fn look_after(services: Services) {
    loop {
        let mut sweep = Sweep::default();
        // Asked again before each part: a sweep may take longer than another node waits for it.
        while services.has_duty(Duty::Lives).await {
            let began = Instant::now();
            match sweep.step(&services, services.time().now_ms()).await {
                Ok(true) => rest_since(began).await,
                Ok(false) => break,
                Err(error) => {
                    tracing::debug!(%error, "what nobody uses could not be deleted");
                    break;
                }
            }
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// Rests after a part that began at this time, so that other writes have most of the store's time.
pub(super) async fn rest_since(began: Instant) {
    tokio::time::sleep(began.elapsed() * REST).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn threat_43_a_deletion_rests_for_four_times_as_long_as_each_of_its_parts_takes() {
        const PART: Duration = Duration::from_millis(7);
        let began = Instant::now();
        tokio::time::advance(PART).await;
        rest_since(began).await;
        assert!(began.elapsed() >= PART * 5, "{:?}", began.elapsed());
    }
}
