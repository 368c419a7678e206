//! Histories of turn rooms: the last messages of each, in a ring of places, so that a new one overwrites the oldest.

use super::Store;
use super::error::StoreError;
use super::ids::{AccountId, RoomId};
use super::sql::{Done, Sql, TableRow, params};
use super::types::{PAGE_BYTES_MAX, PAGE_MAX, Page, invalid};
use parlor_server::realm::Realm;
use parlor_turn::limits::HISTORY_MAX;

/// Bytes that a message is counted with, beside its body.
const ROW_BYTES: u64 = 128;

/// A message for a room's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewMessage {
    /// Its number in the room: one more than that of the message before.
    pub number: u64,
    /// When it was sent, in milliseconds since 1970.
    pub at_ms: u64,
    /// The player that sent it.
    pub account: AccountId,
    /// The message, as its reader gets it.
    pub body: Vec<u8>,
}

/// A message of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMessage {
    /// Its room.
    pub room: RoomId,
    /// The message.
    pub message: NewMessage,
}

/// The rows that tell what a room's messages are counted with: that of the newest message, and the one that the next message
/// overwrites.
pub(super) const COUNTED: &str = "SELECT place, bytes, held FROM room_messages WHERE realm = $1 AND room = $2 AND (place = $3 OR place = $4)";

/// The places of the message with this number, and of the one before it.
pub(super) fn places(number: u64) -> (u64, u64) {
    (number % HISTORY_MAX, number.saturating_sub(1) % HISTORY_MAX)
}

/// Stores a message. `counted` are the rows of [`COUNTED`] for its number. Returns the bytes that the room's messages are
/// counted with from here on.
pub(super) fn put(
    sql: &mut dyn Sql,
    (realm, room): (&Realm, &RoomId),
    message: &NewMessage,
    counted: &mut [TableRow],
) -> Done<u64> {
    let (place, before) = places(message.number);
    let (mut held, mut replaced) = (0, 0);
    for row in counted {
        let of = row.number(0)?;
        if of == place {
            replaced = row.number(1)?;
        }
        if of == before {
            held = row.number(2)?;
        }
    }
    let bytes = ROW_BYTES.saturating_add(message.body.len() as u64);
    let held = held.saturating_add(bytes).saturating_sub(replaced);
    sql.later(
        "INSERT INTO room_messages (realm, room, place, number, at_ms, account, body, bytes, held)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (realm, room, place) DO UPDATE SET number = $4, at_ms = $5, account = $6, body = $7, bytes = $8, held = $9",
        params![
            realm,
            room,
            place,
            message.number,
            message.at_ms,
            &message.account,
            &message.body,
            bytes,
            held
        ],
    )?;
    Ok(held)
}

/// What the messages of a room are counted with whose newest has this number.
pub(super) fn held(number: u64, counted: &mut [TableRow]) -> Done<u64> {
    for row in counted {
        if row.number(0)? == places(number).0 {
            return row.number(2);
        }
    }
    Ok(0)
}

/// Deletes the history of a room.
pub(super) fn delete(sql: &mut dyn Sql, realm: &Realm, room: &RoomId) -> Done<()> {
    sql.later("DELETE FROM room_messages WHERE realm = $1 AND room = $2", params![realm, room])
}

/// Erases what an account said. Returns the number of messages.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    sql.change(
        "UPDATE room_messages SET account = '', body = $1 WHERE realm = $2 AND account = $3",
        params![&Vec::new(), realm, account],
    )
}

impl Store {
    /// The messages of a room, the newest first. `after` is the cursor of the page before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn messages(
        &self,
        realm: &Realm,
        room: &RoomId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<NewMessage>, StoreError> {
        let before = after.map_or(Ok(i64::MAX.unsigned_abs()), str::parse).map_err(|_| bad_cursor())?;
        let (realm, room, limit) = (realm.clone(), room.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT number, at_ms, account, body FROM room_messages
                 WHERE realm = $1 AND room = $2 AND number < $3 AND account <> '' ORDER BY number DESC LIMIT $4",
                params![&realm, &room, before, limit + 1],
                PAGE_BYTES_MAX,
            )?;
            let has_more = part.is_cut || part.rows.len() > limit;
            let rows = part.rows.into_iter().take(limit);
            let items = rows.map(|mut row| read(&mut row)).collect::<Done<Vec<_>>>()?;
            let next = items.last().filter(|_| has_more).map(|last| last.number.to_string());
            Ok(Page { items, next })
        })
        .await
    }

    /// What an account has said in rooms, as far as their histories have it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if `after` is not from an earlier page.
    pub async fn messages_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<StoredMessage>, StoreError> {
        let (room, number) = after.map(place_of).transpose()?.unwrap_or_default();
        let (realm, account, limit) = (realm.clone(), account.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let part = sql.rows_within(
                "SELECT number, at_ms, account, body, room FROM room_messages
                 WHERE realm = $1 AND account = $2 AND (room, number) > ($3, $4) ORDER BY room, number LIMIT $5",
                params![&realm, &account, &room, number, limit + 1],
                PAGE_BYTES_MAX,
            )?;
            let has_more = part.is_cut || part.rows.len() > limit;
            let stored = |mut row: TableRow| {
                Ok(StoredMessage { message: read(&mut row)?, room: RoomId::new(&row.text(4)?)? })
            };
            let items = part.rows.into_iter().take(limit).map(stored).collect::<Done<Vec<_>>>()?;
            let cursor = |last: &StoredMessage| format!("{}.{}", last.message.number, last.room.as_str());
            let next = items.last().filter(|_| has_more).map(cursor);
            Ok(Page { items, next })
        })
        .await
    }
}

fn read(row: &mut TableRow) -> Done<NewMessage> {
    Ok(NewMessage {
        number: row.number(0)?,
        at_ms: row.number(1)?,
        account: AccountId::new(&row.text(2)?)?,
        body: row.bytes(3)?,
    })
}

/// The room and the number of a cursor.
fn place_of(after: &str) -> Result<(String, u64), StoreError> {
    let (number, room) = after.split_once('.').ok_or_else(bad_cursor)?;
    RoomId::new(room).map_err(|_| bad_cursor())?;
    Ok((room.to_owned(), number.parse().map_err(|_| bad_cursor())?))
}

fn bad_cursor() -> StoreError {
    invalid("the page's beginning", "give back what the page before gave, or nothing")
}
