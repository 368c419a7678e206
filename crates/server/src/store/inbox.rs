//! Inboxes: what players are told, in order, until they say that they know it.
//!
//! What a commit tells a player is one row, in one of the inbox's places. They are used in turn, so that an inbox which nobody reads
//! writes over what it lets go of: no commit deletes anything, and each changes one page for each inbox.

use super::Store;
use super::error::StoreError;
use super::sql::{Done, Fault, Param, Row, Sql, params, unexpected};
use super::types::{AccountId, INBOX_MAX, Inbox, NewNotice, Notice, PAGE_MAX, Realm};
use core::fmt::Write;
use std::collections::BTreeMap;

impl Store {
    /// Notices of a player with numbers beyond `after`.
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
            let rows = sql.rows(
                "SELECT i.newest, i.dropped, i.oldest, n.newest, n.parts, n.body
                 FROM inboxes i LEFT JOIN notices n ON n.realm = i.realm AND n.account = i.account AND n.newest > $1
                      AND n.newest >= i.oldest
                 WHERE i.realm = $2 AND i.account = $3 ORDER BY n.newest LIMIT $4",
                params![after, &realm, &player, limit],
            )?;
            let mut inbox = Inbox::default();
            for mut row in rows {
                (inbox.newest, inbox.dropped) = (row.number(0)?, row.number(1)?);
                let first = row.number(2)?.max(after.saturating_add(1));
                if let Some(newest) = row.optional_number(3)? {
                    let told = unpack(newest, &row.text(4)?, &row.bytes(5)?)?;
                    inbox.notices.extend(told.into_iter().filter(|notice| notice.seq >= first));
                }
            }
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
        self.write(0, move |sql| {
            // What is not there yet cannot be known, so the number is at most the newest one's.
            sql.change(
                "UPDATE inboxes SET oldest = (CASE WHEN $1 < newest THEN $1 ELSE newest END) + 1
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
            let (parts, body) = pack(kept);
            // Notices that are still there have numbers that are less than this apart, and so places of their own.
            let place = newest % INBOX_MAX;
            sql.later(PUT, params![realm, *account, place, newest, &parts, &body])?;
        }
        Ok(numbers)
    }
}

/// What one commit tells a player as one row: of each notice its size in bytes, when it was made and its kind, in lines; and the
/// bodies, one after the other.
fn pack<'a>(notices: impl Iterator<Item = &'a NewNotice>) -> (String, Vec<u8>) {
    let (mut parts, mut body) = (String::new(), Vec::new());
    for notice in notices {
        let line = if parts.is_empty() { "" } else { "\n" };
        // Nothing is refused by a text.
        let _ = write!(parts, "{line}{} {} {}", notice.body.len(), notice.at_ms, notice.kind);
        body.extend_from_slice(&notice.body);
    }
    (parts, body)
}

/// The notices of a row whose last one has the number `newest`.
fn unpack(newest: u64, parts: &str, mut body: &[u8]) -> Done<Vec<Notice>> {
    let first = (newest + 1).saturating_sub(parts.split('\n').count() as u64);
    let read = |(seq, part): (u64, &str)| {
        let mut words = part.splitn(3, ' ');
        let size = words.next()?.parse().ok()?;
        let at_ms = words.next()?.parse().ok()?;
        let kind = words.next()?.to_owned();
        let (own, rest) = body.split_at_checked(size)?;
        body = rest;
        Some(Notice { seq, kind, body: own.to_vec(), at_ms })
    };
    let notices: Option<Vec<Notice>> = (first..).zip(parts.split('\n')).map(read).collect();
    notices.ok_or_else(|| unexpected(4, "no list of notices"))
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

const PUT: &str = "INSERT INTO notices (realm, account, place, newest, parts, body)
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (realm, account, place) DO UPDATE SET
         newest = $4, parts = $5, body = $6";

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
        let (parts, body) = pack(told.map(notice).iter());
        let read = unpack(20, &parts, &body).unwrap();
        let again = |(seq, (kind, body, at_ms)): (u64, (&str, &str, u64))| Notice {
            seq,
            kind: kind.to_owned(),
            body: body.as_bytes().to_vec(),
            at_ms,
        };
        assert_eq!(read, (17..).zip(told).map(again).collect::<Vec<_>>());
        for damaged in ["", "2 9", "x 9 kind", "100 9 kind"] {
            assert!(unpack(20, damaged, &body).is_err(), "{damaged:?}");
        }
    }
}
