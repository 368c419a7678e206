//! Retention of rooms: how long each is kept, and what its owner is charged. Also the deletion of old table
//! rows, in small parts beside the traffic.
//!
//! Each room has a time after which it may be deleted. Commits move that time in whole days, so few commits
//! write a table row for it. Rows to delete are found by an index, a few at a time. After a restart the
//! deletion continues.

use super::entries::EntryChange;
use super::error::StoreError;
use super::holdings::{Charge, charge};
use super::ids::{AccountId, RoomId};
use super::limits::{Growth, Limits};
use super::sql::{Done, Sql, TableRow, params};
use super::types::stored_realm;
use super::{Store, accounts, events, messages, rooms, webhooks};
use parlor_server::realm::Realm;

/// The charge for a room's document and summary grows in steps of this size.
const STEP_BYTES: u64 = 16 << 10;
/// The charge for a room's events and messages grows in steps of this size.
const EVENT_STEP_BYTES: u64 = 64 << 10;
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// Maximum number of rows that one transaction deletes, because it delays other writes.
const ROWS: usize = 200;
/// Maximum number of rooms that one transaction deletes.
const ROOMS: usize = 20;
/// Maximum bytes of rooms or webhooks that one transaction deletes, except for the last of them.
const PART_BYTES: u64 = 1 << 20;
/// Maximum number of inbox rows that one transaction deletes, except for those of the last inbox.
const NOTICES: u64 = 512;

/// The retention of a room, and the account that is charged for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomLife {
    /// Its creator.
    pub owner: Option<AccountId>,
    /// Whether it has not ended.
    pub is_open: bool,
    /// When it may be deleted, in milliseconds since 1970. Each commit sets it again.
    pub until_ms: u64,
}

/// The result of one part of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Deleted rows.
    pub rows: u64,
    /// Whether more rows may remain.
    pub is_more: bool,
}

/// Times for the deletion of unused accounts: those without a sign-in since, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unseen {
    /// For guests: accounts without a credential.
    pub guests_ms: u64,
    /// For accounts with device ids as their only credentials.
    pub devices_ms: u64,
}

/// A room's table row before a commit.
struct RetentionRow {
    account: String,
    is_open: bool,
    bytes: u64,
    until_ms: u64,
}

pub(super) const LIFE: &str =
    "SELECT account, is_open, bytes, until_ms FROM room_lives WHERE realm = $1 AND room = $2";

/// Begins the retention of a room. `size` is that of its document and summary, in bytes.
pub(super) fn begin(
    sql: &mut dyn Sql,
    (realm, room): (&Realm, &RoomId),
    life: &RoomLife,
    size: usize,
    limits: &Limits,
) -> Done<()> {
    let next = next(life, life.owner.as_ref().map_or("", AccountId::as_str), size, 0);
    charge(sql, realm, &next.account, difference(None, &next), Some(limits))?;
    put(sql, realm, room, &next)
}

/// Records the next state of a room: the bytes of its document and summary, of its events if the commit has
/// one, and of its messages. Without `judged_by` the owner is charged beyond its quota.
pub(super) fn go_on(
    sql: &mut dyn Sql,
    (realm, room): (&Realm, &RoomId),
    life: &RoomLife,
    (size, event_bytes, message_bytes): (usize, Option<u64>, u64),
    rows: &mut [TableRow],
    judged_by: Option<&Limits>,
) -> Done<()> {
    let before = rows.first_mut().map(read).transpose()?;
    let event_bytes = match event_bytes {
        Some(bytes) => bytes,
        // The charge for events never shrinks. So a room has events or messages only if its charge exceeds that of
        // its document.
        None if before.as_ref().is_some_and(|before| before.bytes > stepped(size, 0)) => {
            events::held(sql, realm, room)?
        }
        None => 0,
    };
    let account = before.as_ref().map_or("", |before| before.account.as_str());
    let next = next(life, account, size, event_bytes.saturating_add(message_bytes));
    if before.as_ref().is_some_and(|before| before.is_as(&next)) {
        return Ok(());
    }
    let difference = difference(before.as_ref(), &next);
    if !difference.is_nothing() {
        charge(sql, realm, &next.account, difference, judged_by)?;
    }
    put(sql, realm, room, &next)
}

fn next(life: &RoomLife, account: &str, size: usize, event_bytes: u64) -> RetentionRow {
    RetentionRow {
        account: account.to_owned(),
        is_open: life.is_open,
        bytes: stepped(size, event_bytes),
        until_ms: life.until_ms.div_ceil(DAY_MS).saturating_mul(DAY_MS),
    }
}

fn stepped(size: usize, event_bytes: u64) -> u64 {
    let document = (size as u64).div_ceil(STEP_BYTES).saturating_mul(STEP_BYTES);
    document.saturating_add(event_bytes.div_ceil(EVENT_STEP_BYTES).saturating_mul(EVENT_STEP_BYTES))
}

impl RetentionRow {
    fn is_as(&self, other: &RetentionRow) -> bool {
        (self.is_open, self.bytes, self.until_ms) == (other.is_open, other.bytes, other.until_ms)
    }
}

impl Charge {
    fn is_nothing(&self) -> bool {
        (self.log_bytes, self.room_bytes, self.open_rooms) == (0, 0, 0)
    }
}

fn difference(before: Option<&RetentionRow>, next: &RetentionRow) -> Charge {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let open = |is_open: bool| i64::from(is_open);
    Charge {
        log_bytes: 0,
        room_bytes: signed(next.bytes) - before.map_or(0, |before| signed(before.bytes)),
        open_rooms: open(next.is_open) - before.map_or(0, |before| open(before.is_open)),
        save_bytes: 0,
        object_bytes: 0,
    }
}

fn put(sql: &mut dyn Sql, realm: &Realm, room: &RoomId, life: &RetentionRow) -> Done<()> {
    sql.later(
        "INSERT INTO room_lives (realm, room, account, is_open, bytes, until_ms) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (realm, room) DO UPDATE SET is_open = $4, bytes = $5, until_ms = $6",
        params![realm, room, &life.account, life.is_open, life.bytes, life.until_ms],
    )
}

fn read(row: &mut TableRow) -> Done<RetentionRow> {
    Ok(RetentionRow {
        account: row.text(0)?,
        is_open: row.number(1)? == 1,
        bytes: row.number(2)?,
        until_ms: row.number(3)?,
    })
}

impl Store {
    /// Deletes a room: its document, its events and its charges. Its pending notices stay.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such room.
    pub async fn delete_room(&self, realm: &Realm, id: &RoomId) -> Result<(), StoreError> {
        let (realm, id) = (realm.clone(), id.clone());
        self.write_sparing(move |sql| {
            if delete(sql, &realm, &id)? { Ok(()) } else { Err(StoreError::Missing { what: "room" }.into()) }
        })
        .await
    }

    /// The account that opened a room, if known.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn room_owner(&self, realm: &Realm, id: &RoomId) -> Result<Option<AccountId>, StoreError> {
        let (realm, id) = (realm.clone(), id.clone());
        self.read(move |sql| {
            let mut rows = sql.rows(LIFE, params![&realm, &id])?;
            let owner = rows.first_mut().map_or(Ok(String::new()), |row| row.text(0))?;
            Ok(if owner.is_empty() { None } else { Some(AccountId::new(&owner)?) })
        })
        .await
    }

    /// Rooms of all realms that may be deleted at this time, the longest overdue first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rooms_over(&self, now_ms: u64) -> Result<Vec<(Realm, RoomId)>, StoreError> {
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT realm, room FROM room_lives WHERE until_ms > 0 AND until_ms <= $1 ORDER BY until_ms LIMIT $2",
                params![now_ms, ROOMS],
            )?;
            rows.into_iter().map(|mut row| named(&mut row)).collect()
        })
        .await
    }

    /// Rooms of an older layout without a time at which they may be deleted, with their summaries.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rooms_unjudged(&self) -> Result<Vec<(Realm, RoomId, Vec<u8>)>, StoreError> {
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT l.realm, l.room, r.summary FROM room_lives l
                 JOIN rooms r ON r.realm = l.realm AND r.id = l.room WHERE l.until_ms = 0 LIMIT $1",
                params![ROWS],
            )?;
            rows.into_iter()
                .map(|mut row| {
                    let (realm, room) = named(&mut row)?;
                    Ok((realm, room, row.bytes(2)?))
                })
                .collect()
        })
        .await
    }

    /// Sets the time at which these rooms may be deleted.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn judge_rooms(&self, judged: Vec<(Realm, RoomId, u64)>) -> Result<(), StoreError> {
        self.write_sparing(move |sql| {
            for (realm, room, until_ms) in &judged {
                sql.later(
                    "UPDATE room_lives SET until_ms = $1 WHERE realm = $2 AND room = $3 AND until_ms = 0",
                    params![(*until_ms).max(1), realm, room],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Deletes the first of these rooms, about 1 MiB, except for rooms that a commit has prolonged. Returns
    /// the number of deleted rooms.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn delete_rooms_over(
        &self,
        over: Vec<(Realm, RoomId)>,
        now_ms: u64,
    ) -> Result<u64, StoreError> {
        self.write_sparing(move |sql| {
            let (mut count, mut bytes) = (0, 0_u64);
            for (realm, room) in &over {
                let mut rows = sql.rows(LIFE, params![realm, room])?;
                let Some(life) = rows.first_mut().map(read).transpose()? else { continue };
                if bytes >= PART_BYTES {
                    break;
                }
                if (1..=now_ms).contains(&life.until_ms) {
                    count += u64::from(delete(sql, realm, room)?);
                    bytes = bytes.saturating_add(life.bytes);
                }
            }
            Ok(count)
        })
        .await
    }

    /// Deletes a part of the expired sign-ins.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_sign_ins(&self, now_ms: u64) -> Result<Swept, StoreError> {
        self.write_sparing(move |sql| {
            let rows = sql.rows(
                "SELECT realm, id FROM sign_ins WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2",
                params![now_ms, ROWS],
            )?;
            delete_each(sql, rows, "DELETE FROM sign_ins WHERE realm = $1 AND id = $2")
        })
        .await
    }

    /// Deletes a part of the expired bans of deleted accounts.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_bans(&self, now_ms: u64) -> Result<Swept, StoreError> {
        self.write_sparing(move |sql| {
            let rows = sql.rows(
                "SELECT b.realm, b.account FROM bans b WHERE b.until_ms <= $1 AND NOT EXISTS
                     (SELECT 1 FROM accounts a WHERE a.realm = b.realm AND a.id = b.account) LIMIT $2",
                params![now_ms, ROWS],
            )?;
            delete_each(sql, rows, "DELETE FROM bans WHERE realm = $1 AND account = $2")
        })
        .await
    }

    /// Deletes a part of the webhooks that were due before this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_webhooks(&self, due_before_ms: u64) -> Result<Swept, StoreError> {
        self.write_sparing(move |sql| {
            let rows = sql.rows(
                "SELECT id, realm, CAST(length(body) AS BIGINT) FROM webhooks WHERE due_ms < $1 ORDER BY due_ms, id LIMIT $2",
                params![due_before_ms, ROWS],
            )?;
            let found = rows.len();
            let (mut count, mut deleted) = (0, 0_u64);
            for mut row in rows {
                if deleted >= PART_BYTES {
                    break;
                }
                let (id, realm, bytes) = (row.number(0)?, row.text(1)?, row.number(2)?);
                (count, deleted) = (count + 1, deleted.saturating_add(bytes));
                sql.later("DELETE FROM webhooks WHERE id = $1", params![id])?;
                let realm = stored_realm(&realm)?;
                sql.outboxes().lose(&realm, bytes);
                webhooks::count_dropped(sql, &realm, 1)?;
            }
            Ok(Swept { rows: count as u64, is_more: count < found || found == ROWS })
        })
        .await
    }

    /// Examines a part of the accounts, ordered by id, and deletes unused ones: those of players in no room,
    /// without a sign-in since `unseen`. `is_more` is false after the last account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_accounts(&self, now_ms: u64, unseen: Unseen) -> Result<Swept, StoreError> {
        self.write_told(Growth::Spares, 0, move |sql| sweep_accounts(sql, now_ms, unseen)).await
    }

    /// Deletes a part of the inboxes of deleted accounts.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_inboxes(&self) -> Result<Swept, StoreError> {
        self.write_sparing(sweep_inboxes).await
    }

    /// Number of table rows of each kind, for metrics.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rows(&self) -> Result<Vec<(&'static str, u64)>, StoreError> {
        self.read(|sql| {
            let count = |(kind, statement): &(&'static str, &'static str)| {
                let mut rows = sql.rows(statement, params![])?;
                Ok((*kind, rows.first_mut().map_or(Ok(0), |row| row.number(0))?))
            };
            COUNTS.iter().map(count).collect()
        })
        .await
    }
}

const COUNTS: &[(&str, &str)] = &[
    ("accounts", "SELECT COUNT(*) FROM accounts"),
    ("sign_ins", "SELECT COUNT(*) FROM sign_ins"),
    ("rooms", "SELECT COUNT(*) FROM room_lives"),
    ("inboxes", "SELECT COUNT(*) FROM inboxes"),
    ("matches", "SELECT COUNT(*) FROM match_owners"),
    ("board_entries", "SELECT CAST(COALESCE(SUM(entries), 0) AS BIGINT) FROM board_seasons"),
    ("saves", "SELECT COUNT(*) FROM saves"),
    ("statistics", "SELECT COUNT(*) FROM statistics"),
    ("achievements", "SELECT COUNT(*) FROM achievements"),
    ("objects", "SELECT CAST(COALESCE(SUM(objects), 0) AS BIGINT) FROM object_owners"),
    ("friends", "SELECT COUNT(*) FROM friends"),
    ("webhooks", "SELECT COUNT(*) FROM webhooks"),
];

fn named(row: &mut TableRow) -> Done<(Realm, RoomId)> {
    Ok((stored_realm(&row.text(0)?)?, RoomId::new(&row.text(1)?)?))
}

fn delete_each(sql: &mut dyn Sql, rows: Vec<TableRow>, statement: &'static str) -> Done<Swept> {
    let count = rows.len();
    for mut row in rows {
        let (realm, id) = (row.text(0)?, row.text(1)?);
        sql.later(statement, params![&realm, &id])?;
    }
    Ok(Swept { rows: count as u64, is_more: count == ROWS })
}

/// Deletes a room with its events and charges. Returns whether it existed.
fn delete(sql: &mut dyn Sql, realm: &Realm, room: &RoomId) -> Done<bool> {
    let mut rows = sql.rows(LIFE, params![realm, room])?;
    let life = rows.first_mut().map(read).transpose()?;
    rooms::let_go_of_players(sql, realm, room)?;
    messages::delete(sql, realm, room)?;
    sql.later("DELETE FROM room_events WHERE realm = $1 AND room = $2", params![realm, room])?;
    sql.later("DELETE FROM room_lives WHERE realm = $1 AND room = $2", params![realm, room])?;
    if let Some(life) = life {
        let nothing =
            RetentionRow { account: life.account.clone(), is_open: false, bytes: 0, until_ms: life.until_ms };
        charge(sql, realm, &life.account, difference(Some(&life), &nothing), None)?;
    }
    Ok(sql.change("DELETE FROM rooms WHERE realm = $1 AND id = $2", params![realm, room])? > 0)
}

fn sweep_accounts(sql: &mut dyn Sql, now_ms: u64, unseen: Unseen) -> Done<(Swept, Vec<EntryChange>)> {
    let mut changes = Vec::new();
    let (realm, id) = mark(sql, "accounts")?;
    let rows = sql.rows(
        "SELECT a.realm, a.id, a.seen_ms, CAST(CASE
             WHEN a.role <> 'player' THEN 0
             WHEN EXISTS (SELECT 1 FROM room_players p WHERE p.realm = a.realm AND p.account = a.id) THEN 0
             WHEN NOT EXISTS (SELECT 1 FROM credentials c WHERE c.realm = a.realm AND c.account = a.id) THEN 1
             WHEN NOT EXISTS (SELECT 1 FROM credentials c WHERE c.realm = a.realm AND c.account = a.id AND c.kind <> 'device')
             THEN 2 ELSE 0 END AS BIGINT)
         FROM accounts a WHERE (a.realm, a.id) > ($1, $2) ORDER BY a.realm, a.id LIMIT $3",
        params![&realm, &id, ROWS],
    )?;
    let mut is_more = rows.len() == ROWS;
    let (mut count, mut notices, mut last) = (0, 0, (String::new(), String::new()));
    for mut row in rows {
        if notices >= NOTICES {
            is_more = true;
            break;
        }
        let (realm, id) = (row.text(0)?, row.text(1)?);
        let (of, account) = (stored_realm(&realm)?, AccountId::new(&id)?);
        let (seen_ms, kind) = (row.number(2)?, row.number(3)?);
        let before_ms = match kind {
            1 => unseen.guests_ms,
            2 => unseen.devices_ms,
            _ => 0,
        };
        if seen_ms == 0 {
            // An account of an older layout: its time starts now.
            accounts::saw(sql, &of, &account, now_ms)?;
        } else if seen_ms < before_ms {
            notices += accounts::erase(sql, &of, &account, &mut changes)?;
            count += 1;
        }
        last = (realm, id);
    }
    set_mark(sql, "accounts", is_more.then_some(last))?;
    Ok((Swept { rows: count, is_more }, changes))
}

/// The last row that a sweep has examined.
fn mark(sql: &mut dyn Sql, name: &str) -> Done<(String, String)> {
    let mut rows = sql.rows("SELECT realm, id FROM sweep_marks WHERE name = $1", params![name])?;
    rows.first_mut().map_or(Ok(Default::default()), |row| Ok((row.text(0)?, row.text(1)?)))
}

/// Sets that row. `None` starts from the beginning.
fn set_mark(sql: &mut dyn Sql, name: &str, last: Option<(String, String)>) -> Done<()> {
    let Some((realm, id)) = last else {
        return sql.later("DELETE FROM sweep_marks WHERE name = $1", params![name]);
    };
    sql.later(
        "INSERT INTO sweep_marks (name, realm, id) VALUES ($1, $2, $3)
         ON CONFLICT (name) DO UPDATE SET realm = $2, id = $3",
        params![name, &realm, &id],
    )
}

fn sweep_inboxes(sql: &mut dyn Sql) -> Done<Swept> {
    let (realm, id) = mark(sql, "inboxes")?;
    let rows = sql.rows(
        "SELECT i.realm, i.account, CAST(CASE WHEN EXISTS (SELECT 1 FROM accounts a WHERE a.realm = i.realm AND a.id = i.account)
             THEN 0 ELSE 1 END AS BIGINT)
         FROM inboxes i WHERE (i.realm, i.account) > ($1, $2) ORDER BY i.realm, i.account LIMIT $3",
        params![&realm, &id, ROWS],
    )?;
    let mut is_more = rows.len() == ROWS;
    let (mut count, mut notices, mut last) = (0, 0, (String::new(), String::new()));
    for mut row in rows {
        if notices >= NOTICES {
            is_more = true;
            break;
        }
        let (realm, id) = (row.text(0)?, row.text(1)?);
        if row.number(2)? == 1 {
            notices += accounts::erase_inbox(sql, &stored_realm(&realm)?, &AccountId::new(&id)?)?;
            count += 1;
        }
        last = (realm, id);
    }
    set_mark(sql, "inboxes", is_more.then_some(last))?;
    Ok(Swept { rows: count, is_more })
}
