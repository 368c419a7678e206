//! Rooms with a due timer, and rooms whose timer could not run.

use super::Store;
use super::error::StoreError;
use super::ids::RoomId;
use super::sql::params;
use super::types::{DueRoom, PAGE_MAX, stored_realm};

impl Store {
    /// Rooms of all realms with a due timer, the longest overdue first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn due_rooms(&self, now_ms: u64, limit: usize) -> Result<Vec<DueRoom>, StoreError> {
        let limit = limit.min(PAGE_MAX);
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT realm, id, deadline_ms, failures FROM rooms WHERE deadline_ms <= $1
                 ORDER BY deadline_ms LIMIT $2",
                params![now_ms, limit],
            )?;
            let due = rows.into_iter().map(|mut row| {
                Ok(DueRoom {
                    realm: stored_realm(&row.text(0)?)?,
                    room: RoomId::new(&row.text(1)?)?,
                    deadline_ms: row.number(2)?,
                    failures: row.number(3)?,
                })
            });
            due.collect()
        })
        .await
    }

    /// The first deadline after this time, in all realms.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn next_deadline(&self, after_ms: u64) -> Result<Option<u64>, StoreError> {
        self.read(move |sql| {
            let mut rows =
                sql.rows("SELECT MIN(deadline_ms) FROM rooms WHERE deadline_ms > $1", params![after_ms])?;
            rows.first_mut().map_or(Ok(None), |row| row.optional_number(0))
        })
        .await
    }

    /// Puts off a room whose timer could not run, unless the room has changed. Returns whether it did. The room's next
    /// commit resets the count of failures.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn put_off_room(&self, due: &DueRoom, until_ms: u64) -> Result<bool, StoreError> {
        let due = due.clone();
        // Also in a full store: a room that cannot be put off would delay the others.
        self.write_sparing(move |sql| {
            let put_off = sql.change(
                "UPDATE rooms SET deadline_ms = $1, failures = failures + 1
                 WHERE realm = $2 AND id = $3 AND deadline_ms = $4",
                params![until_ms, &due.realm, &due.room, due.deadline_ms],
            )?;
            Ok(put_off == 1)
        })
        .await
    }

    /// Number of rooms of all realms that are put off.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rooms_put_off(&self) -> Result<u64, StoreError> {
        self.read(|sql| {
            let mut rows = sql.rows("SELECT COUNT(*) FROM rooms WHERE failures > 0", &[])?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }
}
