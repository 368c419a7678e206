//! Inboxes: players' notices, in order, until they acknowledge them.
//!
//! Each commit writes one row a player, in one of the inbox's places. They are used in turn, so an unread
//! inbox overwrites its oldest notices. No commit deletes anything, and each changes one page for each inbox.
//! Large or shared bodies are in the room's event (`events.rs`), to which the row refers.

use super::Store;
use super::error::StoreError;
use super::events::Shared;
use super::ids::{AccountId, RoomId};
use super::sql::{Done, Fault, Param, Part, Row, Sql, params, unexpected};
use super::types::{INBOX_MAX, Inbox, NewNotice, Notice, PAGE_BYTES_MAX, PAGE_MAX};
use core::fmt::Write;
use parlor_server::realm::Realm;
use std::collections::BTreeMap;

impl Store {
    /// Notices of a player with numbers beyond `after`: at most `limit`, and about [`PAGE_BYTES_MAX`]. Whether more
    /// follow, the newest number says.
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
            // One statement, so that no commit comes between the inbox and its notices.
            let Part { rows, .. } = sql.rows_within(
                "SELECT i.newest, i.dropped, i.oldest, n.newest, n.parts, n.body, e.body
                 FROM inboxes i LEFT JOIN notices n ON n.realm = i.realm AND n.account = i.account AND n.newest > $1
                      AND n.newest >= i.oldest
                 LEFT JOIN room_events e ON e.realm = n.realm AND e.room = n.room AND e.version = n.version
                 WHERE i.realm = $2 AND i.account = $3 ORDER BY n.newest LIMIT $4",
                params![after, &realm, &player, limit],
                PAGE_BYTES_MAX,
            )?;
            let (mut inbox, mut gone, mut bytes) = (Inbox::default(), 0, 0);
            for mut row in rows {
                (inbox.newest, inbox.dropped) = (row.number(0)?, row.number(1)?);
                let first = row.number(2)?.max(after.saturating_add(1));
                if let Some(newest) = row.optional_number(3)? {
                    let (parts, body, event) = (row.text(4)?, row.bytes(5)?, row.optional_bytes(6)?);
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
            }
            inbox.dropped = inbox.dropped.saturating_add(gone);
            inbox.notices.truncate(limit);
            Ok(inbox)
        })
        .await
    }

    /// Forgets a player's notices up to this number, which it knows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn acknowledge(&self, realm: &Realm, player: &AccountId, up_to: u64) -> Result<(), StoreError> {
        let (realm, player) = (realm.clone(), player.clone());
        self.write_sparing(move |sql| {
            // What is not there yet cannot be known, so the number is at most the newest one's.
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

/// What is told to whom, in the order of accounts: servers that write into the same inboxes wait for each other, and never in a
/// circle. Each notice stands beside its place among all.
pub(super) struct Told<'a>(BTreeMap<&'a AccountId, Vec<(usize, &'a NewNotice)>>);

impl<'a> Told<'a> {
    pub(super) fn of(notices: &'a [NewNotice]) -> Told<'a> {
        let mut told: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (at, notice) in notices.iter().enumerate() {
            told.entry(&notice.to).or_default().push((at, notice));
        }
        Told(told)
    }

    /// What to ask so that each inbox counts its new notices: of too many the oldest go.
    pub(super) fn asks<'p>(
        &'p self,
        realm: &'p Realm,
    ) -> impl Iterator<Item = (&'static str, Vec<Param<'p>>)> + 'p {
        self.0.iter().map(move |(account, told)| {
            let count = told.len() as u64;
            let too_many = count.saturating_sub(INBOX_MAX);
            let params = params![realm, *account, too_many + 1, count, too_many, INBOX_MAX].to_vec();
            (COUNT_MORE, params)
        })
    }

    /// Puts the notices into inboxes that have counted them, as `answers` say, and gives the number of each in its own.
    pub(super) fn put(
        &self,
        sql: &mut dyn Sql,
        realm: &Realm,
        event: &Event<'_>,
        answers: impl Iterator<Item = Vec<Row>>,
    ) -> Done<Vec<u64>> {
        let mut numbers = vec![0; self.0.values().map(Vec::len).sum()];
        for ((account, told), mut rows) in self.0.iter().zip(answers) {
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
            // Notices that are still there have numbers that are less than this apart, and so places of their own.
            let place = newest % INBOX_MAX;
            sql.later(PUT, params![realm, *account, place, newest, &parts, &body, room, version, shared])?;
        }
        Ok(numbers)
    }
}

/// What stands once for all who are told by a commit, and where.
pub(super) struct Event<'a> {
    pub(super) room: &'a RoomId,
    pub(super) version: u64,
    pub(super) shared: &'a Shared<'a>,
}

/// What one commit tells a player, as one row.
struct Packed {
    /// Of each notice a line: its size in bytes, with `@` and a place in the event if it stands there; when it was made; its kind.
    parts: String,
    /// The other bodies, one after the other.
    body: Vec<u8>,
    /// How many stand in the event.
    shared: u64,
}

fn pack<'a>(notices: impl Iterator<Item = &'a NewNotice>, event: &Shared<'_>) -> Packed {
    let mut packed = Packed { parts: String::new(), body: Vec::new(), shared: 0 };
    for notice in notices {
        let line = if packed.parts.is_empty() { "" } else { "\n" };
        let size = notice.body.len();
        let place = match event.begin(&notice.body) {
            Some(begin) => {
                packed.shared += 1;
                format!("{size}@{begin}")
            }
            None => {
                packed.body.extend_from_slice(&notice.body);
                size.to_string()
            }
        };
        // Nothing is refused by a text.
        let _ = write!(packed.parts, "{line}{place} {} {}", notice.at_ms, notice.kind);
    }
    packed
}

/// What is left of a row.
#[derive(Default)]
struct Unpacked {
    notices: Vec<Notice>,
    /// The numbers of those whose event is gone.
    gone: Vec<u64>,
}

/// The notices of a row whose last one has the number `newest`.
fn unpack(newest: u64, parts: &str, mut body: &[u8], event: Option<&[u8]>) -> Done<Unpacked> {
    let first = (newest + 1).saturating_sub(parts.split('\n').count() as u64);
    let mut unpacked = Unpacked::default();
    let mut read = |(seq, part): (u64, &str)| {
        let mut words = part.splitn(3, ' ');
        let place = words.next()?;
        let at_ms = words.next()?.parse().ok()?;
        let kind = words.next()?.to_owned();
        let own = match place.split_once('@') {
            None => {
                let (own, rest) = body.split_at_checked(place.parse().ok()?)?;
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

/// Its values are the newest notice's number and that of the oldest which is kept.
const COUNT_MORE: &str = "INSERT INTO inboxes (realm, account, oldest, newest, dropped)
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (realm, account) DO UPDATE SET
         newest = inboxes.newest + $4,
         oldest = CASE WHEN inboxes.newest + $4 - inboxes.oldest < $6 THEN inboxes.oldest
                  ELSE inboxes.newest + $4 - $6 + 1 END,
         dropped = CASE WHEN inboxes.newest + $4 - inboxes.oldest < $6 THEN inboxes.dropped
                   ELSE inboxes.dropped + inboxes.newest + $4 - $6 + 1 - inboxes.oldest END
     RETURNING newest, oldest";

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
        let Packed { parts, body, shared } = pack(told_notices.iter(), &Shared::of(&told_notices));
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
        let event = Shared::of(&told);
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
