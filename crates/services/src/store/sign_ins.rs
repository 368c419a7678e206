//! Sign-ins and hashes of their refresh tokens.
//!
//! A sign-in has one valid token at a time. Each use returns the next one, which is derived from the
//! presented one. For a short time the previous token returns the same successor again: two windows of a
//! player may refresh at once, and an answer may be lost. Any older token shows that two parties have it, and
//! ends the sign-in for both.

use super::Store;
use super::accounts::{account, must_exist, saw};
use super::error::StoreError;
use super::ids::{AccountId, SignInId};
use super::limits::Growth;
use super::orders::OrderKind;
use super::sql::{Done, Sql, params};
use super::types::{EndedSignIn, Rotated, Rotation, SIGN_INS_MAX, SignIn};
use parlor_server::realm::Realm;

impl Store {
    /// Begins a sign-in. If the account has too many, the one unused for longest ends.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such account, [`StoreError::Taken`] if the id is in use.
    pub async fn begin_sign_in(&self, realm: &Realm, sign_in: &SignIn) -> Result<(), StoreError> {
        let (realm, sign_in) = (realm.clone(), sign_in.clone());
        self.write_as(Growth::Continues, 0, move |sql| begin(sql, &realm, &sign_in)).await
    }

    /// Exchanges a refresh token for the next one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn rotate_token(&self, realm: &Realm, rotation: &Rotation) -> Result<Rotated, StoreError> {
        let (realm, rotation, orders) = (realm.clone(), rotation.clone(), self.orders());
        self.write_sparing(move |sql| {
            let rotated = rotate(sql, &realm, &rotation)?;
            if let Rotated::Reused(account) = &rotated {
                let sign_in = Some(rotation.sign_in.clone());
                orders.give(sql, (&realm, account), &OrderKind::SignOut(sign_in))?;
            }
            Ok(rotated)
        })
        .await
    }

    /// The last use and the expiry of each sign-in of an account, in milliseconds since 1970.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sign_ins_of(
        &self,
        realm: &Realm,
        account: &AccountId,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT rotated_ms, expires_ms FROM sign_ins WHERE realm = $1 AND account = $2 ORDER BY rotated_ms",
                params![&realm, &account],
            )?;
            rows.into_iter().map(|mut row| Ok((row.number(0)?, row.number(1)?))).collect()
        })
        .await
    }

    /// Ends the sign-in of a refresh token, given by the hash of its newest token or of the one before. Then
    /// none of its tokens is valid.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn end_sign_in(
        &self,
        realm: &Realm,
        sign_in: &SignInId,
        presented_hash: &[u8; 32],
    ) -> Result<EndedSignIn, StoreError> {
        let (realm, sign_in, presented_hash) = (realm.clone(), sign_in.clone(), *presented_hash);
        let orders = self.orders();
        self.write_sparing(move |sql| {
            let ended = end(sql, &realm, &sign_in, &presented_hash)?;
            if let EndedSignIn::Ended(account) = &ended {
                orders.give(sql, (&realm, account), &OrderKind::SignOut(Some(sign_in.clone())))?;
            }
            Ok(ended)
        })
        .await
    }

    /// Ends all sign-ins of an account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn end_sign_ins_of(&self, realm: &Realm, account: &AccountId) -> Result<(), StoreError> {
        let (realm, account, orders) = (realm.clone(), account.clone(), self.orders());
        self.write_sparing(move |sql| {
            end_all(sql, &realm, &account)?;
            orders.give(sql, (&realm, &account), &OrderKind::SignOut(None))
        })
        .await
    }
}

fn begin(sql: &mut dyn Sql, realm: &Realm, sign_in: &SignIn) -> Done<()> {
    must_exist(sql, realm, &sign_in.account)?;
    saw(sql, realm, &sign_in.account, sign_in.now_ms)?;
    sql.change(
        "DELETE FROM sign_ins WHERE realm = $1 AND account = $2 AND expires_ms <= $3",
        params![realm, &sign_in.account, sign_in.now_ms],
    )?;
    sql.change(
        "DELETE FROM sign_ins WHERE realm = $1 AND id IN (
             SELECT id FROM sign_ins WHERE realm = $1 AND account = $2 ORDER BY rotated_ms DESC, id LIMIT $3 OFFSET $4)",
        // Keeps the newest ones, and leaves a place for the new sign-in.
        params![realm, &sign_in.account, i64_max(), SIGN_INS_MAX - 1],
    )?;
    let made = sql.change(
        "INSERT INTO sign_ins (realm, id, account, token_hash, before_hash, rotated_ms, expires_ms)
         VALUES ($1, $2, $3, $4, NULL, $5, $6) ON CONFLICT DO NOTHING",
        params![
            realm,
            &sign_in.id,
            &sign_in.account,
            &sign_in.token_hash,
            sign_in.now_ms,
            sign_in.expires_ms
        ],
    )?;
    if made == 0 { Err(StoreError::Taken { what: "sign-in's id" }.into()) } else { Ok(()) }
}

/// SQLite requires a limit before an offset.
fn i64_max() -> u64 {
    i64::MAX.unsigned_abs()
}

fn rotate(sql: &mut dyn Sql, realm: &Realm, rotation: &Rotation) -> Done<Rotated> {
    let mut rows = sql.rows(
        "UPDATE sign_ins SET before_hash = token_hash, token_hash = $1, rotated_ms = $2, expires_ms = $3
         WHERE realm = $4 AND id = $5 AND token_hash = $6 AND expires_ms > $2 RETURNING account",
        params![
            &rotation.next_hash,
            rotation.now_ms,
            rotation.expires_ms,
            realm,
            &rotation.sign_in,
            &rotation.presented_hash
        ],
    )?;
    match rows.first_mut() {
        Some(row) => next(sql, realm, &row.text(0)?, rotation.now_ms),
        None => rotate_again(sql, realm, rotation),
    }
}

/// Handles a token that is not the current one. If it is the previous one, the current one is its successor,
/// and nothing changes.
fn rotate_again(sql: &mut dyn Sql, realm: &Realm, rotation: &Rotation) -> Done<Rotated> {
    let mut rows = sql.rows(
        "SELECT account FROM sign_ins WHERE realm = $1 AND id = $2 AND before_hash = $3 AND token_hash = $4
         AND rotated_ms > $5 AND expires_ms > $6",
        params![
            realm,
            &rotation.sign_in,
            &rotation.presented_hash,
            &rotation.next_hash,
            rotation.now_ms.saturating_sub(rotation.grace_ms),
            rotation.now_ms
        ],
    )?;
    if let Some(row) = rows.first_mut().filter(|_| rotation.grace_ms > 0) {
        return next(sql, realm, &row.text(0)?, rotation.now_ms);
    }
    let mut rows = sql.rows(
        "DELETE FROM sign_ins WHERE realm = $1 AND id = $2 RETURNING account, expires_ms",
        params![realm, &rotation.sign_in],
    )?;
    let Some(row) = rows.first_mut() else { return Ok(Rotated::Unknown) };
    let is_over = row.number(1)? <= rotation.now_ms;
    if is_over { Ok(Rotated::Unknown) } else { Ok(Rotated::Reused(AccountId::new(&row.text(0)?)?)) }
}

fn next(sql: &mut dyn Sql, realm: &Realm, id: &str, now_ms: u64) -> Done<Rotated> {
    let id = AccountId::new(id)?;
    saw(sql, realm, &id, now_ms)?;
    Ok(account(sql, realm, &id)?.map_or(Rotated::Unknown, Rotated::Next))
}

fn end(sql: &mut dyn Sql, realm: &Realm, sign_in: &SignInId, presented_hash: &[u8; 32]) -> Done<EndedSignIn> {
    let mut rows = sql.rows(
        "DELETE FROM sign_ins WHERE realm = $1 AND id = $2 AND (token_hash = $3 OR before_hash = $3) RETURNING account",
        params![realm, sign_in, presented_hash],
    )?;
    if let Some(row) = rows.first_mut() {
        return Ok(EndedSignIn::Ended(AccountId::new(&row.text(0)?)?));
    }
    let others =
        sql.rows("SELECT account FROM sign_ins WHERE realm = $1 AND id = $2", params![realm, sign_in])?;
    Ok(if others.is_empty() { EndedSignIn::Unknown } else { EndedSignIn::OtherToken })
}

pub(super) fn end_all(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<()> {
    sql.change("DELETE FROM sign_ins WHERE realm = $1 AND account = $2", params![realm, account]).map(|_| ())
}
