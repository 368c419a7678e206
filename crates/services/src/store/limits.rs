//! Limits of a store: in all, for each account and for each app.
//!
//! The committing thread queries the database for its size, adds what later writes may have taken, and
//! refuses writes beyond the limit with [`StoreError::Full`]. An eighth of the limit is a reserve. New
//! accounts, rooms and logs must leave it free. Moves in existing rooms may use most of it, and ends and
//! timers all of it. Deletions, acknowledgements and operators' writes are never refused.

use super::error::StoreError;
use super::sql::{Done, Sql};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::time::Instant;

/// Default of [`Limits::data_max`].
pub const DATA_MAX: u64 = 10 << 30;
/// Minimum limit of a store: empty tables take a part of it.
pub const DATA_MIN: u64 = 2 << 20;
/// Default of [`Limits::log_bytes`].
pub const LOG_BYTES: u64 = 64 << 20;
/// Default of [`Limits::room_bytes`].
pub const ROOM_BYTES: u64 = 64 << 20;
/// Default of [`Limits::open_rooms`].
pub const OPEN_ROOMS: u64 = 256;
/// Default of [`Limits::save_bytes`].
pub const SAVE_BYTES: u64 = 4 << 20;
/// Default of [`Limits::object_bytes`].
pub const OBJECT_BYTES: u64 = 8 << 20;
/// Default of [`Limits::guest_bytes`].
pub const GUEST_BYTES: u64 = 4 << 20;

/// Estimated bytes of a write beside its data: table rows in several indexes, each with a page that may be
/// split.
const WRITE_BYTES: u64 = 4 << 10;
/// The size is read again after writes of this many bytes.
const ASK_AFTER_BYTES: u64 = 1 << 20;
/// The size is read again before a refusal if it is older than this.
const ASK_AFTER: Duration = Duration::from_millis(100);

/// The limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole store, at least [`DATA_MIN`].
    pub data_max: u64,
    /// Bytes of the logs of one account's kept matches.
    pub log_bytes: u64,
    /// Bytes of the rooms that one account opened, until they are deleted.
    pub room_bytes: u64,
    /// Rooms of one account that have not ended.
    pub open_rooms: u64,
    /// Bytes of one account's saves, with the versions before.
    pub save_bytes: u64,
    /// Bytes of one account's objects, and of those of the game itself.
    pub object_bytes: u64,
    /// Bytes of the rooms of a guest, and as many of its logs, of its saves and of its objects, if other accounts may
    /// have more. A guest is an account without a credential.
    pub guest_bytes: u64,
    /// Bytes of the rooms, logs, saves and objects of one app's environment. Default: those of the whole store.
    pub app_bytes: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            data_max: DATA_MAX,
            log_bytes: LOG_BYTES,
            room_bytes: ROOM_BYTES,
            open_rooms: OPEN_ROOMS,
            save_bytes: SAVE_BYTES,
            object_bytes: OBJECT_BYTES,
            guest_bytes: GUEST_BYTES,
            app_bytes: None,
        }
    }
}

/// The effect of a write on the size of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// It adds an account, a room or a log.
    Adds,
    /// It continues something: a move, a sign-in.
    Continues,
    /// It ends something, or runs a timer.
    Ends,
    /// It deletes, acknowledges or administers.
    Spares,
}

impl Limits {
    /// The size of the store up to which such writes are accepted. `None` for no limit.
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

/// The size of a store, for its operator.
#[derive(Debug, Default)]
pub(super) struct Size {
    /// Bytes when the size was last read.
    pub(super) bytes: AtomicU64,
    /// Writes that were refused because the store was full.
    pub(super) refused_full: AtomicU64,
    /// Writes that were refused by a quota.
    pub(super) refused_quota: AtomicU64,
}

/// Judges writes before they are done, on the committing thread.
#[derive(Debug)]
pub(super) struct Gauge {
    limits: Limits,
    /// The size when it was last read, and when that was.
    asked: Option<(u64, Instant)>,
    /// Bytes that writes may have added since.
    since: u64,
}

impl Gauge {
    pub(super) fn new(limits: Limits) -> Gauge {
        Gauge { limits, asked: None, since: 0 }
    }

    /// Judges a write of this many bytes.
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
