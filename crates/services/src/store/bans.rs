//! Bans.

use super::error::StoreError;
use super::ids::AccountId;
use super::orders::OrderKind;
use super::sign_ins::end_all;
use super::sql::{Done, RowPage, Sql, TableRow, params};
use super::types::{Ban, PAGE_BYTES_MAX, PAGE_MAX, Page, Role, check_text};
use super::{Store, accounts};
use parlor_server::realm::Realm;

impl Store {
    /// Bans a user and ends its sign-ins. Replaces an existing ban.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] if a text is too long.
    pub async fn ban(&self, realm: &Realm, ban: &Ban) -> Result<(), StoreError> {
        check_text("the reason", &ban.reason)?;
        check_text("who decided it", &ban.by)?;
        let (realm, ban, orders) = (realm.clone(), ban.clone(), self.orders());
        self.write_sparing(move |sql| {
            sql.change(
                "INSERT INTO bans (realm, account, reason, decided_by, at_ms, until_ms) VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT (realm, account) DO UPDATE SET reason = excluded.reason,
                 decided_by = excluded.decided_by, at_ms = excluded.at_ms, until_ms = excluded.until_ms",
                params![&realm, &ban.account, &ban.reason, &ban.by, ban.at_ms, ban.until_ms],
            )?;
            end_all(sql, &realm, &ban.account)?;
            orders.give(sql, (&realm, &ban.account), &OrderKind::Ban(ban.reason.clone()))
        })
        .await
    }

    /// Lifts a ban.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such ban.
    pub async fn lift_ban(&self, realm: &Realm, account: &AccountId) -> Result<(), StoreError> {
        let (realm, account, orders) = (realm.clone(), account.clone(), self.orders());
        self.write_sparing(move |sql| {
            let gone =
                sql.change("DELETE FROM bans WHERE realm = $1 AND account = $2", params![&realm, &account])?;
            if gone == 0 {
                return Err(StoreError::Missing { what: "ban" }.into());
            }
            orders.give(sql, (&realm, &account), &OrderKind::LiftBan)
        })
        .await
    }

    /// Returns the ban in force at this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn ban_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        now_ms: u64,
    ) -> Result<Option<Ban>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| ban_of(sql, &realm, &account, now_ms)).await
    }

    /// Returns the ban in force at this time, and the account's role; none without an account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn standing_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        now_ms: u64,
    ) -> Result<(Option<Ban>, Option<Role>), StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| {
            let ban = ban_of(sql, &realm, &account, now_ms)?;
            let found = accounts::account(sql, &realm, &account)?;
            Ok((ban, found.map(|account| account.role)))
        })
        .await
    }

    /// Bans of a realm with accounts beyond `after`, ordered by account, including expired ones.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn bans(
        &self,
        realm: &Realm,
        after: Option<&AccountId>,
        limit: usize,
    ) -> Result<Page<Ban>, StoreError> {
        let realm = realm.clone();
        let (after, limit) = (after.map_or(String::new(), AccountId::to_string), limit.clamp(1, PAGE_MAX));
        self.read(move |sql| {
            let RowPage { rows, is_cut } = sql.rows_within(
                "SELECT account, reason, decided_by, at_ms, until_ms FROM bans
                 WHERE realm = $1 AND account > $2 ORDER BY account LIMIT $3",
                params![&realm, &after, limit + 1],
                PAGE_BYTES_MAX,
            )?;
            let mut items = rows.into_iter().map(|mut row| read_ban(&mut row)).collect::<Done<Vec<_>>>()?;
            let has_more = is_cut || items.len() > limit;
            items.truncate(limit);
            let next = items.last().filter(|_| has_more).map(|last| last.account.to_string());
            Ok(Page { items, next })
        })
        .await
    }
}

fn ban_of(sql: &mut dyn Sql, realm: &Realm, account: &AccountId, now_ms: u64) -> Done<Option<Ban>> {
    let mut rows = sql.rows(
        "SELECT account, reason, decided_by, at_ms, until_ms FROM bans
         WHERE realm = $1 AND account = $2 AND (until_ms IS NULL OR until_ms > $3)",
        params![realm, account, now_ms],
    )?;
    rows.first_mut().map(read_ban).transpose()
}

fn read_ban(row: &mut TableRow) -> Done<Ban> {
    Ok(Ban {
        account: AccountId::new(&row.text(0)?)?,
        reason: row.text(1)?,
        by: row.text(2)?,
        at_ms: row.number(3)?,
        until_ms: row.optional_number(4)?,
    })
}
