//! Inboxes: what players are told, in order, until they say that they know it.

use super::Store;
use super::error::StoreError;
use super::sql::{Done, Sql, params};
use super::types::{AccountId, INBOX_MAX, Inbox, NewNotice, Notice, PAGE_MAX, Realm};

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

/// Puts a notice into an inbox, and says which number it has there.
pub(super) fn put(sql: &mut dyn Sql, realm: &Realm, notice: &NewNotice) -> Done<u64> {
    let mut rows = sql.rows(
        "INSERT INTO inboxes (realm, account, oldest, newest, dropped) VALUES ($1, $2, 1, 1, 0)
         ON CONFLICT (realm, account) DO UPDATE SET newest = inboxes.newest + 1 RETURNING newest, oldest",
        params![realm, &notice.to],
    )?;
    let row = rows.first_mut().ok_or_else(|| StoreError::Damaged("an inbox was not made".to_owned()))?;
    let (seq, oldest) = (row.number(0)?, row.number(1)?);
    sql.change(
        "INSERT INTO notices (realm, account, seq, kind, body, at_ms) VALUES ($1, $2, $3, $4, $5, $6)",
        params![realm, &notice.to, seq, &notice.kind, &notice.body, notice.at_ms],
    )?;
    if seq - oldest.min(seq) >= INBOX_MAX {
        sql.change(
            "DELETE FROM notices WHERE realm = $1 AND account = $2 AND seq = $3",
            params![realm, &notice.to, oldest],
        )?;
        sql.change(
            "UPDATE inboxes SET oldest = oldest + 1, dropped = dropped + 1 WHERE realm = $1 AND account = $2",
            params![realm, &notice.to],
        )?;
    }
    Ok(seq)
}
