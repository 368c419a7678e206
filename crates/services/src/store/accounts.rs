//! Accounts and their credentials.

use super::Store;
use super::entries::{self, EntryChange};
use super::error::StoreError;
use super::ids::AccountId;
use super::limits::Growth;
use super::orders::OrderKind;
use super::sql::{Done, Sql, TableRow, params, unknown_word};
use super::types::{
    Account, AccountKind, CREDENTIALS_MAX, Credential, CredentialKind, CredentialOwner, Role, check_text,
};
use super::{friends, messages, objects, progress, saves};
use parlor_server::realm::Realm;

/// Why an account that is deleted is put out everywhere.
const DELETED: &str = "the account was deleted";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

impl Store {
    /// Creates an account, with its first credential if it has one.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] for a used id or credential.
    pub async fn create_account(
        &self,
        realm: &Realm,
        account: &Account,
        credential: Option<&Credential>,
    ) -> Result<(), StoreError> {
        check_text("the display name", &account.display_name)?;
        credential.map_or(Ok(()), check_credential)?;
        let (realm, account, credential) = (realm.clone(), account.clone(), credential.cloned());
        self.write(0, move |sql| {
            let made = sql.change(
                "INSERT INTO accounts (realm, id, kind, role, display_name, created_ms, seen_ms)
                 VALUES ($1, $2, $3, $4, $5, $6, $6) ON CONFLICT DO NOTHING",
                params![
                    &realm,
                    &account.id,
                    account.kind.as_str(),
                    account.role.as_str(),
                    &account.display_name,
                    account.created_ms
                ],
            )?;
            if made == 0 {
                return Err(StoreError::Taken { what: "account's id" }.into());
            }
            credential.as_ref().map_or(Ok(()), |credential| link(sql, &realm, &account.id, credential))
        })
        .await
    }

    /// The account with this id.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn account(&self, realm: &Realm, id: &AccountId) -> Result<Option<Account>, StoreError> {
        let (realm, id) = (realm.clone(), id.clone());
        self.read(move |sql| account(sql, &realm, &id)).await
    }

    /// The account with this credential.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn credential_owner(
        &self,
        realm: &Realm,
        kind: CredentialKind,
        value: &str,
    ) -> Result<Option<CredentialOwner>, StoreError> {
        let (realm, value) = (realm.clone(), value.to_owned());
        self.read(move |sql| {
            let mut rows = sql.rows(
                "SELECT a.id, a.kind, a.role, a.display_name, a.created_ms, c.secret_hash
                 FROM credentials c JOIN accounts a ON a.realm = c.realm AND a.id = c.account
                 WHERE c.realm = $1 AND c.kind = $2 AND c.value = $3",
                params![&realm, kind.as_str(), &value],
            )?;
            let Some(row) = rows.first_mut() else { return Ok(None) };
            Ok(Some(CredentialOwner { account: read_account(row)?, secret_hash: row.optional_text(5)? }))
        })
        .await
    }

    /// The account's credentials, at most [`CREDENTIALS_MAX`]. An account of an older layout may have more.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn credentials(
        &self,
        realm: &Realm,
        account: &AccountId,
    ) -> Result<Vec<(CredentialKind, String)>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT kind, value FROM credentials WHERE realm = $1 AND account = $2 ORDER BY kind, value LIMIT $3",
                params![&realm, &account, CREDENTIALS_MAX],
            )?;
            rows.into_iter().map(|mut row| Ok((credential_kind(&row.text(0)?)?, row.text(1)?))).collect()
        })
        .await
    }

    /// Adds a credential to the account, or replaces the secret of one that it has.
    ///
    /// # Errors
    ///
    /// [`StoreError::TooManyCredentials`] if the account has [`CREDENTIALS_MAX`] others,
    /// [`StoreError::Taken`] if it is another account's, [`StoreError::Missing`] if there is no such account.
    pub async fn link_credential(
        &self,
        realm: &Realm,
        account: &AccountId,
        credential: &Credential,
    ) -> Result<(), StoreError> {
        check_credential(credential)?;
        let (realm, account, credential) = (realm.clone(), account.clone(), credential.clone());
        self.write(0, move |sql| {
            must_exist(sql, &realm, &account)?;
            check_count(sql, &realm, &account, &credential)?;
            link(sql, &realm, &account, &credential)
        })
        .await
    }

    /// Removes a credential of the account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if it is not the account's, [`StoreError::LastCredential`] if the account has
    /// no other.
    pub async fn unlink_credential(
        &self,
        realm: &Realm,
        account: &AccountId,
        kind: CredentialKind,
        value: &str,
    ) -> Result<(), StoreError> {
        let (realm, account, value) = (realm.clone(), account.clone(), value.to_owned());
        self.write_sparing(move |sql| {
            lock(sql, &realm, &account)?;
            let gone = sql.change(
                "DELETE FROM credentials WHERE realm = $1 AND account = $2 AND kind = $3 AND value = $4",
                params![&realm, &account, kind.as_str(), &value],
            )?;
            if gone == 0 {
                return Err(StoreError::Missing { what: "credential of this account" }.into());
            }
            let left = sql.rows(
                "SELECT kind FROM credentials WHERE realm = $1 AND account = $2 LIMIT 1",
                params![&realm, &account],
            )?;
            if left.is_empty() { Err(StoreError::LastCredential.into()) } else { Ok(()) }
        })
        .await
    }

    /// Changes the display name of the account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such account.
    pub async fn rename_account(
        &self,
        realm: &Realm,
        account: &AccountId,
        name: &str,
    ) -> Result<(), StoreError> {
        check_text("the display name", name)?;
        let (realm, account, name) = (realm.clone(), account.clone(), name.to_owned());
        self.write_sparing(move |sql| {
            let changed = sql.change(
                "UPDATE accounts SET display_name = $1 WHERE realm = $2 AND id = $3",
                params![&name, &realm, &account],
            )?;
            found(changed)
        })
        .await
    }

    /// Changes the role of the account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such account.
    pub async fn set_role(&self, realm: &Realm, account: &AccountId, role: Role) -> Result<(), StoreError> {
        let (realm, account, orders) = (realm.clone(), account.clone(), self.orders());
        self.write_sparing(move |sql| {
            let changed = sql.change(
                "UPDATE accounts SET role = $1 WHERE realm = $2 AND id = $3",
                params![role.as_str(), &realm, &account],
            )?;
            found(changed)?;
            orders.give(sql, (&realm, &account), &OrderKind::Role)
        })
        .await
    }
}

impl Store {
    /// Deletes an account with all that is its own. Rooms and logs of
    /// matches keep its id; a ban stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such account.
    pub async fn delete_account(&self, realm: &Realm, account: &AccountId) -> Result<(), StoreError> {
        let (realm, account, orders) = (realm.clone(), account.clone(), self.orders());
        self.write_told(Growth::Spares, 0, move |sql| {
            must_exist(sql, &realm, &account)?;
            let mut changes = Vec::new();
            erase(sql, &realm, &account, &mut changes)?;
            orders.give(sql, (&realm, &account), &OrderKind::Ban(DELETED.to_owned()))?;
            Ok(((), changes))
        })
        .await
    }
}

fn check_credential(credential: &Credential) -> Result<(), StoreError> {
    check_text("the credential", &credential.value)?;
    credential.secret_hash.as_deref().map_or(Ok(()), |hash| check_text("the hash of the secret", hash))
}

fn found(changed: u64) -> Done<()> {
    if changed == 0 { Err(StoreError::Missing { what: "account" }.into()) } else { Ok(()) }
}

fn link(sql: &mut dyn Sql, realm: &Realm, account: &AccountId, credential: &Credential) -> Done<()> {
    let linked = sql.change(
        "INSERT INTO credentials (realm, kind, value, account, secret_hash) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (realm, kind, value) DO UPDATE SET secret_hash = excluded.secret_hash
         WHERE credentials.account = excluded.account",
        params![realm, credential.kind.as_str(), &credential.value, account, credential.secret_hash.as_ref()],
    )?;
    if linked == 0 { Err(StoreError::Taken { what: "credential" }.into()) } else { Ok(()) }
}

/// Rejects a new credential of an account that has [`CREDENTIALS_MAX`]. It counts in the link's own
/// transaction, so concurrent links do not exceed the limit.
fn check_count(sql: &mut dyn Sql, realm: &Realm, account: &AccountId, new: &Credential) -> Done<()> {
    let others = sql.rows(
        "SELECT kind FROM credentials WHERE realm = $1 AND account = $2 AND NOT (kind = $3 AND value = $4) LIMIT $5",
        params![realm, account, new.kind.as_str(), &new.value, CREDENTIALS_MAX],
    )?;
    if others.len() as u64 >= CREDENTIALS_MAX {
        return Err(StoreError::TooManyCredentials { max: CREDENTIALS_MAX }.into());
    }
    Ok(())
}

/// Locks the account's table row until the transaction ends, so that two servers cannot unlink its last two
/// credentials at once.
fn lock(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<()> {
    found(
        sql.change("UPDATE accounts SET role = role WHERE realm = $1 AND id = $2", params![realm, account])?,
    )
}

/// Records a sign-in, once a day.
pub(super) fn saw(sql: &mut dyn Sql, realm: &Realm, account: &AccountId, now_ms: u64) -> Done<()> {
    sql.later(
        "UPDATE accounts SET seen_ms = $1 WHERE realm = $2 AND id = $3 AND seen_ms < $4",
        params![now_ms, realm, account, now_ms.saturating_sub(DAY_MS)],
    )
}

pub(super) fn must_exist(sql: &mut dyn Sql, realm: &Realm, id: &AccountId) -> Done<()> {
    match account(sql, realm, id)? {
        Some(_) => Ok(()),
        None => Err(StoreError::Missing { what: "account" }.into()),
    }
}

pub(super) fn account(sql: &mut dyn Sql, realm: &Realm, id: &AccountId) -> Done<Option<Account>> {
    let mut rows = sql.rows(
        "SELECT id, kind, role, display_name, created_ms FROM accounts WHERE realm = $1 AND id = $2",
        params![realm, id],
    )?;
    rows.first_mut().map(read_account).transpose()
}

/// Reads an account from the first five columns.
fn read_account(row: &mut TableRow) -> Done<Account> {
    let (kind, role) = (row.text(1)?, row.text(2)?);
    Ok(Account {
        id: AccountId::new(&row.text(0)?)?,
        kind: AccountKind::from_word(&kind).ok_or_else(|| unknown_word("kind of account", &kind))?,
        role: Role::from_word(&role).ok_or_else(|| unknown_word("role", &role))?,
        display_name: row.text(3)?,
        created_ms: row.number(4)?,
    })
}

fn credential_kind(word: &str) -> Done<CredentialKind> {
    CredentialKind::from_word(word).ok_or_else(|| unknown_word("kind of credential", word))
}

/// Deletes an account with its credentials, sign-ins, inbox, entries of boards, places in matches, saves, objects,
/// progress and friends. Its ban stays. Adds what has become of the entries to `changes`, and returns the number of
/// deleted table rows, apart from those that every account has.
pub(super) fn erase(
    sql: &mut dyn Sql,
    realm: &Realm,
    account: &AccountId,
    changes: &mut Vec<EntryChange>,
) -> Done<u64> {
    let mut gone = entries::erase(sql, realm, account)?;
    let count = gone.len() as u64;
    changes.append(&mut gone);
    sql.later("DELETE FROM credentials WHERE realm = $1 AND account = $2", params![realm, account])?;
    sql.later("DELETE FROM sign_ins WHERE realm = $1 AND account = $2", params![realm, account])?;
    sql.later("DELETE FROM match_players WHERE realm = $1 AND account = $2", params![realm, account])?;
    let own = saves::erase(sql, realm, account)?
        + objects::erase(sql, realm, account)?
        + progress::erase(sql, realm, account)?
        + friends::erase(sql, realm, account)?
        + messages::erase(sql, realm, account)?;
    let notices = erase_inbox(sql, realm, account)?;
    sql.later("DELETE FROM accounts WHERE realm = $1 AND id = $2", params![realm, account])?;
    Ok(notices + count + own)
}

/// Deletes an inbox. Returns its number of table rows.
pub(super) fn erase_inbox(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    let notices =
        sql.change("DELETE FROM notices WHERE realm = $1 AND account = $2", params![realm, account])?;
    sql.later("DELETE FROM inboxes WHERE realm = $1 AND account = $2", params![realm, account])?;
    Ok(notices)
}
