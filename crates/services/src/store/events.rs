//! Shared bodies of a commit: a table row of the room, to which the notices in several inboxes refer.
//!
//! A move may have 65 kB and 64 receivers. A room keeps its newest rows, bounded in number and in bytes. A
//! notice whose body is gone counts as dropped, like an overwritten one.

use super::ids::RoomId;
use super::sql::{Done, Sql, TableRow, params};
use super::types::NewNotice;
use parlor_server::realm::Realm;
use std::collections::BTreeMap;

/// Maximum number of event rows of a room.
pub(super) const EVENTS_MAX: u64 = 256;
/// Maximum bytes of them, except for the newest.
pub(super) const EVENT_BYTES_MAX: u64 = 1 << 20;
/// Maximum size of a shared body that is copied into each inbox. So a small commit changes no more table rows
/// than without events.
const INLINE_BYTES: usize = 512;
/// Maximum size of a body with one receiver in its inbox. Without it an inbox could hold 256 bodies of the
/// largest moves.
const INLINE_BYTES_ALONE: usize = 4096;

/// The bodies of a commit that its room's event holds.
pub(super) struct EventBodies<'a> {
    /// The offset of each body.
    begins: BTreeMap<&'a [u8], usize>,
    body: Vec<u8>,
}

impl<'a> EventBodies<'a> {
    pub(super) fn of(notices: &'a [NewNotice]) -> EventBodies<'a> {
        let mut told: BTreeMap<&[u8], usize> = BTreeMap::new();
        for notice in notices.iter().filter(|notice| notice.body.len() > INLINE_BYTES) {
            *told.entry(&notice.body).or_default() += 1;
        }
        told.retain(|body, count| *count > 1 || body.len() > INLINE_BYTES_ALONE);
        let mut bytes = Vec::new();
        for (body, begin) in &mut told {
            *begin = bytes.len();
            bytes.extend_from_slice(body);
        }
        EventBodies { begins: told, body: bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.begins.is_empty()
    }

    /// The offset of a body in the event. `None` if the event does not have it.
    pub(super) fn begin(&self, body: &[u8]) -> Option<usize> {
        self.begins.get(body).copied()
    }

    /// Stores the event of a room's version, and deletes events that are too old. Returns the bytes of events
    /// that the room is charged with from here on.
    pub(super) fn put(&self, sql: &mut dyn Sql, realm: &Realm, room: &RoomId, version: u64) -> Done<u64> {
        let mut rows = sql.rows(
            "SELECT number, bytes_upto FROM room_events WHERE realm = $1 AND room = $2 ORDER BY version DESC LIMIT 1",
            params![realm, room],
        )?;
        let (number, bytes) = match rows.first_mut() {
            Some(row) => (row.number(0)?, row.number(1)?),
            None => (0, 0),
        };
        let (number, bytes) = (number + 1, bytes.saturating_add(self.body.len() as u64));
        sql.later(
            "INSERT INTO room_events (realm, room, version, number, bytes_upto, body) VALUES ($1, $2, $3, $4, $5, $6)",
            params![realm, room, version, number, bytes, &self.body],
        )?;
        if number > EVENTS_MAX || bytes > EVENT_BYTES_MAX {
            sql.later(
                "DELETE FROM room_events WHERE realm = $1 AND room = $2 AND version < $3
                 AND (number <= $4 OR bytes_upto <= $5)",
                params![
                    realm,
                    room,
                    version,
                    number.saturating_sub(EVENTS_MAX),
                    bytes.saturating_sub(EVENT_BYTES_MAX)
                ],
            )?;
        }
        Ok(bytes.min(EVENT_BYTES_MAX).max(self.body.len() as u64))
    }
}

/// Bytes of the events that a room is charged with.
pub(super) fn held(sql: &mut dyn Sql, realm: &Realm, room: &RoomId) -> Done<u64> {
    let mut rows = sql.rows(
        "SELECT bytes_upto FROM room_events WHERE realm = $1 AND room = $2 ORDER BY version DESC LIMIT 1",
        params![realm, room],
    )?;
    let bytes = rows.first_mut().map_or(Ok(0), |row: &mut TableRow| row.number(0))?;
    Ok(bytes.min(EVENT_BYTES_MAX))
}
