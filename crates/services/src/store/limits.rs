//! Limits of a store: in all, and for one account or app.
//!
//! The committing thread reads the database's size, adds the most that earlier writes may take, and rejects
//! growing writes at the bound ([`StoreError::Full`]). Part of the bound is a reserve. New accounts, rooms
//! and logs leave it alone; moves in existing rooms may use most of it, ends of games all of it. Deletions,
//! acknowledgements and administration are always done.

use super::error::StoreError;
use super::sql::{Done, Sql};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Bytes of a store, unless the configuration says otherwise.
pub const DATA_MAX: u64 = 10 << 30;
/// The least bound of a store: the empty tables take a part of it.
pub const DATA_MIN: u64 = 2 << 20;
/// Bytes of the logs of one account's kept matches, unless the configuration says otherwise.
pub const LOG_BYTES: u64 = 64 << 20;
/// Bytes of the rooms that one account opened, unless the configuration says otherwise.
pub const ROOM_BYTES: u64 = 64 << 20;
/// Rooms of one account that have not ended, unless the configuration says otherwise.
pub const OPEN_ROOMS: u64 = 256;

/// What a write takes beside its bytes, about: rows in several indexes, each with a page that may be split.
const WRITE_BYTES: u64 = 4 << 10;
/// The size is asked for again after writes of so many bytes.
const ASK_AFTER_BYTES: u64 = 1 << 20;
/// And, before a write is refused, if it was asked for longer ago than this.
const ASK_AFTER: Duration = Duration::from_millis(100);

/// How much a store may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole store. [`DATA_MIN`] at least.
    pub data_max: u64,
    /// Bytes of the logs of one account's kept matches.
    pub log_bytes: u64,
    /// Bytes of the rooms that one account opened, until they are deleted.
    pub room_bytes: u64,
    /// Rooms of one account that have not ended.
    pub open_rooms: u64,
    /// Bytes of the rooms and logs of one app's environment; without it as many as the whole store may have.
    pub app_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            data_max: DATA_MAX,
            log_bytes: LOG_BYTES,
            room_bytes: ROOM_BYTES,
            open_rooms: OPEN_ROOMS,
            app_bytes: None,
        }
    }
}

/// What a write does to the size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It adds something that was not there: an account, a room, a log.
    Adds,
    /// It continues existing data: a move, a sign-in.
    Continues,
    /// It ends something that is there.
    Ends,
    /// It deletes, acknowledges or administers.
    Spares,
}

impl Limits {
    /// Up to how many bytes writes of this kind are done.
    fn of(&self, growth: Growth) -> Option<u64> {
        let max = self.data_max.max(DATA_MIN);
        match growth {
            Growth::Adds => Some(max - max / 8),
            Growth::Continues => Some(max - max / 32),
            Growth::Ends => Some(max),
            Growth::Spares => None,
        }
    }
}

/// What is known of the size of a store, for its operator.
#[derive(Debug, Default)]
pub(super) struct Size {
    /// Bytes when the database was asked last.
    pub(super) bytes: AtomicU64,
    /// Writes that were refused because the store was full.
    pub(super) refused_full: AtomicU64,
    /// Writes that were refused because an account or app had too much.
    pub(super) refused_quota: AtomicU64,
}

/// Judges writes before they are done. The committing thread has it.
#[derive(Debug)]
pub(super) struct Gauge {
    limits: Limits,
    /// The size when it was asked for last, and when that was.
    asked: Option<(u64, Instant)>,
    /// What writes may have added since.
    since: u64,
}

impl Gauge {
    pub(super) fn new(limits: Limits) -> Gauge {
        Gauge { limits, asked: None, since: 0 }
    }

    /// Whether a write of so many bytes may be done.
    pub(super) fn judge(
        &mut self,
        sql: &mut dyn Sql,
        size: &Size,
        (growth, bytes): (Growth, usize),
    ) -> Done<Result<(), StoreError>> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let weight = bytes.saturating_add(bytes / 8).saturating_add(WRITE_BYTES);
        let most = self.limits.of(growth).unwrap_or(u64::MAX);
        let fits = |gauge: &Gauge| gauge.bytes().saturating_add(weight) <= most;
        let is_old = self.asked.is_none_or(|(_, at)| at.elapsed() >= ASK_AFTER);
        if self.asked.is_none() || self.since >= ASK_AFTER_BYTES || (is_old && !fits(self)) {
            self.ask(sql, size)?;
        }
        if !fits(self) {
            size.refused_full.fetch_add(1, Ordering::Relaxed);
            return Ok(Err(StoreError::Full { max_bytes: self.limits.data_max.max(DATA_MIN) }));
        }
        self.since = self.since.saturating_add(weight);
        Ok(Ok(()))
    }

    fn bytes(&self) -> u64 {
        self.asked.map_or(0, |(bytes, _)| bytes).saturating_add(self.since)
    }

    fn ask(&mut self, sql: &mut dyn Sql, size: &Size) -> Done<()> {
        let bytes = sql.used_bytes()?;
        self.asked = Some((bytes, Instant::now()));
        self.since = 0;
        size.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}
