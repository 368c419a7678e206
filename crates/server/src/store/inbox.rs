//! Inboxes: what players are told, in order, until they say that they know it.

use super::Store;
use super::error::StoreError;
use super::sql::{Done, Fault, Param, Row, Sql, params};
use super::types::{AccountId, INBOX_MAX, Inbox, NewNotice, Notice, PAGE_MAX, Realm};
use std::collections::BTreeMap;

/// Notices that a full inbox has let go of are deleted together, so that not each new one changes a page at either end. They
/// are below the inbox's `oldest` until then, and nobody reads them.
const GONE_AT_ONCE: u64 = 32;

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
                "SELECT i.newest, i.dropped, n.seq, n.kind, n.body, n.at_ms
                 FROM inboxes i LEFT JOIN notices n ON n.realm = i.realm AND n.account = i.account AND n.seq > $1
                      AND n.seq >= i.oldest
                 WHERE i.realm = $2 AND i.account = $3 ORDER BY n.seq LIMIT $4",
                params![after, &realm, &player, limit],
            )?;
            let mut inbox = Inbox::default();
            for mut row in rows {
                (inbox.newest, inbox.dropped) = (row.number(0)?, row.number(1)?);
                if let Some(seq) = row.optional_number(2)? {
                    let (kind, body, at_ms) = (row.text(3)?, row.bytes(4)?, row.number(5)?);
                    inbox.notices.push(Notice { seq, kind, body, at_ms });
                }
            }
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
                "DELETE FROM notices WHERE realm = $1 AND account = $2 AND seq <= $3",
                params![&realm, &player, up_to],
            )?;
            Ok(())
        })
        .await
    }
}

/// How many notices are for whom, in the order of accounts: servers that write into the same inboxes wait for each other, and
/// never in a circle.
pub(super) struct Counts<'a>(BTreeMap<&'a AccountId, u64>);

impl<'a> Counts<'a> {
    pub(super) fn of(notices: &'a [NewNotice]) -> Counts<'a> {
        let mut counts = BTreeMap::new();
        for notice in notices {
            *counts.entry(&notice.to).or_default() += 1;
        }
        Counts(counts)
    }

    /// What to ask so that each inbox counts its new notices: of too many the oldest go.
    pub(super) fn asks<'p>(
        &'p self,
        realm: &'p Realm,
    ) -> impl Iterator<Item = (&'static str, Vec<Param<'p>>)> + 'p {
        self.0.iter().map(move |(account, count)| {
            let too_many = count.saturating_sub(INBOX_MAX);
            let params = params![realm, *account, too_many + 1, *count, too_many, INBOX_MAX].to_vec();
            (COUNT_MORE, params)
        })
    }
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

/// Puts notices into inboxes that have counted them, as `answers` say, and gives the number of each in its own.
pub(super) fn put(
    sql: &mut dyn Sql,
    realm: &Realm,
    notices: &[NewNotice],
    counts: &Counts<'_>,
    answers: impl Iterator<Item = Vec<Row>>,
) -> Done<Vec<u64>> {
    let mut next = BTreeMap::new();
    for ((account, count), mut rows) in counts.0.iter().zip(answers) {
        let row = rows.first_mut().ok_or_else(not_made)?;
        let (newest, oldest) = (row.number(0)?, row.number(1)?);
        // Each time a full inbox has let go of so many more.
        let (gone, gone_before) = (oldest.saturating_sub(1), oldest.saturating_sub(1 + *count));
        let is_full = newest.saturating_sub(oldest) + 1 >= INBOX_MAX;
        if is_full && gone / GONE_AT_ONCE > gone_before / GONE_AT_ONCE {
            sql.later(
                "DELETE FROM notices WHERE realm = $1 AND account = $2 AND seq < $3",
                params![realm, *account, oldest],
            )?;
        }
        next.insert(*account, (newest.saturating_sub(*count) + 1, oldest));
    }
    let mut numbers = Vec::with_capacity(notices.len());
    for notice in notices {
        let (seq, oldest) = next.get_mut(&notice.to).ok_or_else(not_made)?;
        numbers.push(*seq);
        if *seq >= *oldest {
            sql.later(
                "INSERT INTO notices (realm, account, seq, kind, body, at_ms) VALUES ($1, $2, $3, $4, $5, $6)",
                params![realm, &notice.to, *seq, &*notice.kind, &*notice.body, notice.at_ms],
            )?;
        }
        *seq += 1;
    }
    Ok(numbers)
}

fn not_made() -> Fault {
    StoreError::Damaged("an inbox was not made".to_owned()).into()
}
