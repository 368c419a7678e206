//! Inboxes: the notices of each player, in order, until the player acknowledges them.
//!
//! The notices of one commit for one player are one table row, in one of the inbox's slots (the column
//! `place`). Slots are used in turn: a new row overwrites the oldest one, so a commit deletes nothing and
//! changes one page of each inbox. A large body, or one for several players, is stored once in the room's
//! event (`events.rs`), and the row refers to it.

use super::Store;
use super::error::StoreError;
use super::events::EventBodies;
use super::ids::{AccountId, RoomId};
use super::sql::{BatchResult, BatchStatement, Done, Fault, Sql, TableRow, params, unexpected};
use super::types::{INBOX_MAX, Inbox, NewNotice, Notice, PAGE_BYTES_MAX, PAGE_MAX};
use super::worker::unavailable;
use core::fmt::Write;
use core::time::Duration;
use parlor_server::realm::Realm;
use std::collections::BTreeMap;

/// Maximum number of tries to read a page whose first row vanishes meanwhile.
const READS_MAX: usize = 4;
/// Time to retry after the last try.
const RETRY_AFTER: Duration = Duration::from_millis(100);

impl Store {
    /// Notices of a player with numbers beyond `after`: at most `limit`, and about [`PAGE_BYTES_MAX`]. More
    /// follow if `newest` exceeds the number of the last one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn read_inbox(
        &self,
        realm: &Realm,
        player: &AccountId,
        after: u64,
        limit: usize,
    ) -> Result<Inbox, StoreError> {
        let (realm, player, limit) = (realm.clone(), player.clone(), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            // A commit may delete the page's rows between the two statements.
            for _ in 0..READS_MAX {
                if let Some(inbox) = read_page(sql, &realm, &player, after, limit)? {
                    return Ok(inbox);
                }
            }
            Err(unavailable("its rows change faster than they are read", RETRY_AFTER).into())
        })
        .await
    }

    /// The number of the newest notice of each of these players that ever had one. In a cluster: the statement is
    /// PostgreSQL's.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn newest_in_inboxes(
        &self,
        players: &[(Realm, AccountId)],
    ) -> Result<Vec<((Realm, AccountId), u64)>, StoreError> {
        // No id has a control character.
        let realms = players.iter().map(|(realm, _)| realm.path()).collect::<Vec<_>>().join("\n");
        let accounts = players.iter().map(|(_, account)| account.as_str()).collect::<Vec<_>>().join("\n");
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT i.realm, i.account, i.newest
                 FROM unnest(string_to_array($1, E'\\n'), string_to_array($2, E'\\n')) AS p (realm, account)
                 JOIN inboxes i ON i.realm = p.realm AND i.account = p.account",
                params![&realms, &accounts],
            )?;
            let read = |mut row: TableRow| {
                let key = (Realm::from_path(&row.text(0)?)?, AccountId::new(&row.text(1)?)?);
                Ok((key, row.number(2)?))
            };
            rows.into_iter().map(read).collect()
        })
        .await
    }

    /// Deletes a player's notices up to this number.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn acknowledge(&self, realm: &Realm, player: &AccountId, up_to: u64) -> Result<(), StoreError> {
        let (realm, player) = (realm.clone(), player.clone());
        self.write_sparing(move |sql| {
            // Future notices are not acknowledged: the newest number is the largest that counts.
            sql.change(
                "UPDATE inboxes SET oldest = (CASE WHEN $1 < newest THEN $1 ELSE newest END) + 1,
                     dropped = dropped + (SELECT CAST(COALESCE(SUM(n.shared), 0) AS BIGINT) FROM notices n
                         WHERE n.realm = inboxes.realm AND n.account = inboxes.account AND n.newest >= inboxes.oldest
                         AND n.newest <= $1 AND n.shared > 0 AND NOT EXISTS (SELECT 1 FROM room_events e
                             WHERE e.realm = n.realm AND e.room = n.room AND e.version = n.version))
                 WHERE realm = $2 AND account = $3 AND oldest <= $1",
                params![up_to, &realm, &player],
            )?;
            sql.change(
                "DELETE FROM notices WHERE realm = $1 AND account = $2 AND newest <= $3",
                params![&realm, &player, up_to],
            )?;
            Ok(())
        })
        .await
    }
}

/// The table rows of a page: their slots and sizes. It reads no bodies, because the database sorts these rows
/// in memory.
const PAGE: &str = "SELECT i.newest, i.dropped, i.oldest, n.newest, n.place,
         CAST(length(n.body) + COALESCE(length(e.body), 0) AS BIGINT)
     FROM inboxes i LEFT JOIN notices n ON n.realm = i.realm AND n.account = i.account AND n.newest > $1
          AND n.newest >= i.oldest
     LEFT JOIN room_events e ON e.realm = n.realm AND e.room = n.room AND e.version = n.version
     WHERE i.realm = $2 AND i.account = $3 ORDER BY n.newest LIMIT $4";

/// One table row with its bodies.
const TABLE_ROW: &str = "SELECT n.parts, n.body, e.body FROM notices n
     LEFT JOIN room_events e ON e.realm = n.realm AND e.room = n.room AND e.version = n.version
     WHERE n.realm = $1 AND n.account = $2 AND n.place = $3 AND n.newest = $4";

/// Reads a page. `None` if a commit deleted its first row between the two statements.
fn read_page(
    sql: &mut dyn Sql,
    realm: &Realm,
    player: &AccountId,
    after: u64,
    limit: usize,
) -> Done<Option<Inbox>> {
    let rows = sql.rows(PAGE, params![after, realm, player, limit])?;
    let (mut inbox, mut first, mut bytes) = (Inbox::default(), 0, 0_u64);
    let mut page = Vec::new();
    for mut row in rows {
        (inbox.newest, inbox.dropped) = (row.number(0)?, row.number(1)?);
        first = row.number(2)?.max(after.saturating_add(1));
        let Some(newest) = row.optional_number(3)? else { break };
        if bytes >= PAGE_BYTES_MAX as u64 {
            break;
        }
        page.push((newest, row.number(4)?));
        bytes = bytes.saturating_add(row.number(5)?);
    }
    let asked =
        |(newest, slot): &(u64, u64)| BatchStatement::rows(TABLE_ROW, params![realm, player, *slot, *newest]);
    let found = sql.batch(&page.iter().map(asked).collect::<Vec<_>>())?;
    if found.first().is_some_and(|row| row.rows.is_empty()) {
        return Ok(None);
    }
    let (mut gone, mut bytes) = (0, 0);
    // A vanished row ends the page; the next page counts the dropped notices.
    for ((newest, _), mut row) in
        page.into_iter().zip(found.into_iter().map_while(|row| row.rows.into_iter().next()))
    {
        let (parts, body, event) = (row.text(0)?, row.bytes(1)?, row.optional_bytes(2)?);
        let told = unpack(newest, &parts, &body, event.as_deref())?;
        gone += told.gone.iter().filter(|seq| **seq >= first).count() as u64;
        let told = told.notices.into_iter().filter(|notice| notice.seq >= first);
        inbox.notices.extend(told.take_while(|notice| {
            // One row may hold many notices.
            let has_room = bytes < PAGE_BYTES_MAX;
            bytes += notice.body.len();
            has_room
        }));
    }
    inbox.dropped = inbox.dropped.saturating_add(gone);
    inbox.notices.truncate(limit);
    Ok(Some(inbox))
}

/// The notices of a commit by player, ordered by account: two servers that write to the same inboxes cannot
/// deadlock. Each notice has its index among all.
pub(super) struct ByReceiver<'a>(BTreeMap<&'a AccountId, Vec<(usize, &'a NewNotice)>>);

impl<'a> ByReceiver<'a> {
    pub(super) fn of(notices: &'a [NewNotice]) -> ByReceiver<'a> {
        let mut told: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (at, notice) in notices.iter().enumerate() {
            told.entry(&notice.to).or_default().push((at, notice));
        }
        ByReceiver(told)
    }

    /// The statements by which each inbox counts its new notices. Notices beyond the limit are dropped, the
    /// oldest first.
    pub(super) fn asks<'p>(&'p self, realm: &'p Realm) -> impl Iterator<Item = BatchStatement<'p>> + 'p {
        self.0.iter().flat_map(move |(account, told)| {
            let count = told.len() as u64;
            let too_many = count.saturating_sub(INBOX_MAX);
            let params = params![realm, *account, too_many + 1, count, too_many, INBOX_MAX];
            [
                BatchStatement::change(COUNT_MORE, params),
                BatchStatement::rows(COUNTED, params![realm, *account]),
            ]
        })
    }

    /// Stores the notices in inboxes that have counted them, by `answers`. Returns the number of each notice
    /// in its inbox.
    pub(super) fn put(
        &self,
        sql: &mut dyn Sql,
        realm: &Realm,
        event: &Event<'_>,
        mut answers: impl Iterator<Item = BatchResult>,
    ) -> Done<Vec<u64>> {
        let mut numbers = vec![0; self.0.values().map(Vec::len).sum()];
        for (account, told) in &self.0 {
            let (_, counted) = (answers.next(), answers.next());
            let mut rows = counted.unwrap_or_default().rows;
            let row = rows.first_mut().ok_or_else(not_made)?;
            let (newest, oldest) = (row.number(0)?, row.number(1)?);
            let first = (newest + 1).saturating_sub(told.len() as u64);
            for (seq, (at, _)) in (first..).zip(told) {
                numbers[*at] = seq;
            }
            let kept = (first..).zip(told).filter(|(seq, _)| *seq >= oldest).map(|(_, (_, notice))| *notice);
            let Packed { parts, body, shared } = pack(kept, event.shared);
            let (room, version) =
                if shared > 0 { (Some(event.room), Some(event.version)) } else { (None, None) };
            // The numbers of kept notices differ by less than this, so each has its own slot.
            let slot = newest % INBOX_MAX;
            sql.later(PUT, params![realm, *account, slot, newest, &parts, &body, room, version, shared])?;
        }
        Ok(numbers)
    }
}

/// The event of a commit, and where it is stored.
pub(super) struct Event<'a> {
    pub(super) room: &'a RoomId,
    pub(super) version: u64,
    pub(super) shared: &'a EventBodies<'a>,
}

/// The notices of one commit for one player, as a table row.
struct Packed {
    /// A line for each notice: its size in bytes, with `@` and its offset if it is in the event; its time;
    /// its kind.
    parts: String,
    /// The bodies that are not in the event, concatenated.
    body: Vec<u8>,
    /// Number of bodies in the event.
    shared: u64,
}

fn pack<'a>(notices: impl Iterator<Item = &'a NewNotice>, event: &EventBodies<'_>) -> Packed {
    let mut packed = Packed { parts: String::new(), body: Vec::new(), shared: 0 };
    for notice in notices {
        let line = if packed.parts.is_empty() { "" } else { "\n" };
        let size = notice.body.len();
        let extent = match event.begin(&notice.body) {
            Some(begin) => {
                packed.shared += 1;
                format!("{size}@{begin}")
            }
            None => {
                packed.body.extend_from_slice(&notice.body);
                size.to_string()
            }
        };
        // Writing into a string does not fail.
        let _ = write!(packed.parts, "{line}{extent} {} {}", notice.at_ms, notice.kind);
    }
    packed
}

/// The notices of a row.
#[derive(Default)]
struct Unpacked {
    notices: Vec<Notice>,
    /// The numbers of notices whose event was deleted.
    gone: Vec<u64>,
}

/// The notices of a row whose last one has the number `newest`.
fn unpack(newest: u64, parts: &str, mut body: &[u8], event: Option<&[u8]>) -> Done<Unpacked> {
    let first = (newest + 1).saturating_sub(parts.split('\n').count() as u64);
    let mut unpacked = Unpacked::default();
    let mut read = |(seq, part): (u64, &str)| {
        let mut words = part.splitn(3, ' ');
        let extent = words.next()?;
        let at_ms = words.next()?.parse().ok()?;
        let kind = words.next()?.to_owned();
        let own = match extent.split_once('@') {
            None => {
                let (own, rest) = body.split_at_checked(extent.parse().ok()?)?;
                body = rest;
                own
            }
            Some((size, begin)) => {
                let (size, begin): (usize, usize) = (size.parse().ok()?, begin.parse().ok()?);
                let Some(event) = event else {
                    unpacked.gone.push(seq);
                    return Some(());
                };
                event.get(begin..begin.checked_add(size)?)?
            }
        };
        unpacked.notices.push(Notice { seq, kind, body: own.to_vec(), at_ms });
        Some(())
    };
    let all: Option<()> = (first..).zip(parts.split('\n')).try_for_each(&mut read);
    all.ok_or_else(|| unexpected(4, "no list of notices"))?;
    Ok(unpacked)
}

/// Counts new notices. The oldest beyond the bound are dropped.
const COUNT_MORE: &str = "INSERT INTO inboxes (realm, account, oldest, newest, dropped)
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (realm, account) DO UPDATE SET
         newest = inboxes.newest + $4,
         oldest = CASE WHEN inboxes.newest + $4 - inboxes.oldest < $6 THEN inboxes.oldest
                  ELSE inboxes.newest + $4 - $6 + 1 END,
         dropped = CASE WHEN inboxes.newest + $4 - inboxes.oldest < $6 THEN inboxes.dropped
                   ELSE inboxes.dropped + inboxes.newest + $4 - $6 + 1 - inboxes.oldest END";

/// The numbers of the newest and of the oldest kept notice.
const COUNTED: &str = "SELECT newest, oldest FROM inboxes WHERE realm = $1 AND account = $2";

const PUT: &str = "INSERT INTO notices (realm, account, place, newest, parts, body, room, version, shared)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (realm, account, place) DO UPDATE SET
         newest = $4, parts = $5, body = $6, room = $7, version = $8, shared = $9";

fn not_made() -> Fault {
    StoreError::Damaged("an inbox was not made".to_owned()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_one_row_is_read_as_it_was_told() {
        let told = [("your_turn", "{}", 9), ("two words", "", 10), ("", "\n", 11), ("returns\r", "x", 12)];
        let notice = |(kind, body, at_ms): (&'static str, &str, u64)| NewNotice {
            to: AccountId::new("ada").unwrap(),
            kind: kind.into(),
            body: body.as_bytes().into(),
            at_ms,
        };
        let told_notices = told.map(notice);
        let Packed { parts, body, shared } = pack(told_notices.iter(), &EventBodies::of(&told_notices));
        assert_eq!(shared, 0, "what is small stands in the row");
        let read = unpack(20, &parts, &body, None).unwrap().notices;
        let again = |(seq, (kind, body, at_ms)): (u64, (&str, &str, u64))| Notice {
            seq,
            kind: kind.to_owned(),
            body: body.as_bytes().to_vec(),
            at_ms,
        };
        assert_eq!(read, (17..).zip(told).map(again).collect::<Vec<_>>());
        for damaged in ["", "2 9", "x 9 kind", "100 9 kind"] {
            assert!(unpack(20, damaged, &body, None).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn what_is_large_is_read_from_the_event_and_counted_where_that_is_gone() {
        let notice = |body: &str, at_ms| NewNotice {
            to: AccountId::new("ada").unwrap(),
            kind: "moved".into(),
            body: body.as_bytes().into(),
            at_ms,
        };
        let (large, small) = ("l".repeat(5000), "s".repeat(400));
        let told = [notice(&small, 1), notice(&large, 2), notice(&large, 3)];
        let event = EventBodies::of(&told);
        let Packed { parts, body, shared } = pack(told.iter(), &event);
        assert_eq!((shared, body.len()), (2, 400));
        let read = unpack(9, &parts, &body, Some(large.as_bytes())).unwrap();
        let sizes: Vec<usize> = read.notices.iter().map(|notice| notice.body.len()).collect();
        assert_eq!((sizes, read.gone), (vec![400, 5000, 5000], vec![]));
        let read = unpack(9, &parts, &body, None).unwrap();
        assert_eq!((read.notices.len(), read.gone), (1, vec![8, 9]));
        assert!(unpack(9, &parts, &body, Some(b"short")).is_err());
    }
}
