//! Friends of accounts, and the codes by which they are found.

use super::Store;
use super::accounts::account;
use super::error::StoreError;
use super::ids::AccountId;
use super::sql::{Done, Sql, TableRow, params, unknown_word};
use super::types::{Page, check_text};
use parlor_server::realm::Realm;
use parlor_social::limits::FRIENDS_MAX;
use parlor_social::{FriendCounts, FriendRefused, FriendState, FriendStep, Relation};

/// Another account, as an account has it on its list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Friend {
    /// The other.
    pub account: AccountId,
    /// Its display name.
    pub name: String,
    /// What it is to the account.
    pub state: FriendState,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
}

/// What a step has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FriendChange {
    /// What both were to each other.
    pub before: Relation,
    /// What they are from here on.
    pub after: Relation,
}

impl Store {
    /// Does a step of an account towards another.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn befriend(
        &self,
        realm: &Realm,
        (me, other): (&AccountId, &AccountId),
        step: FriendStep,
        now_ms: u64,
    ) -> Result<Result<FriendChange, FriendRefused>, StoreError> {
        let (realm, me, other) = (realm.clone(), me.clone(), other.clone());
        let work = move |sql: &mut dyn Sql| {
            // A block outlives the other's account: its id is given to nobody else.
            let has_no_other = account(sql, &realm, &other)?.is_none();
            let ends = matches!(step, FriendStep::Remove | FriendStep::Unblock);
            if account(sql, &realm, &me)?.is_none() || has_no_other && !ends {
                return Ok(Err(FriendRefused::NoSuchPlayer));
            }
            let before =
                Relation { mine: state(sql, &realm, &me, &other)?, theirs: state(sql, &realm, &other, &me)? };
            let counted = (counts(sql, &realm, &me)?, counts(sql, &realm, &other)?);
            let after = match before.step(step, &counted.0, &counted.1) {
                Ok(after) => after,
                Err(refused) => return Ok(Err(refused)),
            };
            // In the order of the accounts, so that two servers cannot lock each other out.
            let mut rows =
                [(&me, &other, before.mine, after.mine), (&other, &me, before.theirs, after.theirs)];
            rows.sort_by_key(|(account, ..)| account.as_str());
            for (account, other, before, after) in rows {
                if before != after {
                    put(sql, &realm, (account, other), after, now_ms)?;
                }
            }
            Ok(Ok(FriendChange { before, after }))
        };
        match step {
            FriendStep::Ask | FriendStep::Accept => self.write(0, work).await,
            FriendStep::Remove | FriendStep::Block | FriendStep::Unblock => self.write_sparing(work).await,
        }
    }

    /// The list of an account in the order of the others' ids, beyond `after`; those in one state only if it is given.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn friends_of(
        &self,
        realm: &Realm,
        me: &AccountId,
        only: Option<FriendState>,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<Friend>, StoreError> {
        let (realm, me, after) = (realm.clone(), me.clone(), after.unwrap_or_default().to_owned());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT f.other, f.state, f.changed_ms, a.display_name FROM friends f
                 LEFT JOIN accounts a ON a.realm = f.realm AND a.id = f.other
                 WHERE f.realm = $1 AND f.account = $2 AND f.other > $3
                 AND (f.state = $4 OR CAST($5 AS BIGINT) = 1) ORDER BY f.other LIMIT $6",
                params![&realm, &me, &after, only.map_or("", FriendState::as_str), only.is_none(), limit + 1],
            )?;
            let is_cut = rows.len() > limit;
            let items: Vec<Friend> = rows.into_iter().take(limit).map(read).collect::<Done<_>>()?;
            let next = items.last().filter(|_| is_cut).map(|last| last.account.to_string());
            Ok(Page { items, next })
        })
        .await
    }

    /// The ids of an account's friends.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn friend_ids(&self, realm: &Realm, me: &AccountId) -> Result<Vec<AccountId>, StoreError> {
        let (realm, me) = (realm.clone(), me.clone());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT other FROM friends WHERE realm = $1 AND account = $2 AND state = $3 ORDER BY other LIMIT $4",
                params![&realm, &me, FriendState::Friend.as_str(), FRIENDS_MAX],
            )?;
            rows.into_iter().map(|mut row| Ok(AccountId::new(&row.text(0)?)?)).collect()
        })
        .await
    }

    /// The accounts between which and this one there is a block, of either side.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn blocked_with(&self, realm: &Realm, me: &AccountId) -> Result<Vec<AccountId>, StoreError> {
        let (realm, me) = (realm.clone(), me.clone());
        self.read(move |sql| {
            let mine = sql.rows(
                "SELECT other FROM friends WHERE realm = $1 AND account = $2 AND state = $3",
                params![&realm, &me, FriendState::Blocked.as_str()],
            )?;
            let theirs = sql.rows(
                "SELECT account FROM friends WHERE realm = $1 AND other = $2 AND state = $3 LIMIT $4",
                params![&realm, &me, FriendState::Blocked.as_str(), BLOCKERS_MAX],
            )?;
            let id = |mut row: TableRow| Ok(AccountId::new(&row.text(0)?)?);
            mine.into_iter().chain(theirs).map(id).collect()
        })
        .await
    }

    /// The code of an account. Without one it gets the proposed one; with `replace` in any case.
    ///
    /// # Errors
    ///
    /// [`StoreError::Taken`] if another account has the proposed one; [`StoreError::Missing`] without the account.
    pub async fn friend_code(
        &self,
        realm: &Realm,
        me: &AccountId,
        proposed: &str,
        replace: bool,
    ) -> Result<String, StoreError> {
        check_text("the code", proposed)?;
        let (realm, me, proposed) = (realm.clone(), me.clone(), proposed.to_owned());
        self.write(0, move |sql| {
            super::accounts::must_exist(sql, &realm, &me)?;
            let mut rows = sql.rows(
                "SELECT code FROM friend_codes WHERE realm = $1 AND account = $2",
                params![&realm, &me],
            )?;
            if let Some(row) = rows.first_mut().filter(|_| !replace) {
                return row.text(0);
            }
            let other = code_owner(sql, &realm, &proposed)?;
            if other.is_some() {
                return Err(StoreError::Taken { what: "code" }.into());
            }
            sql.later("DELETE FROM friend_codes WHERE realm = $1 AND account = $2", params![&realm, &me])?;
            sql.later(
                "INSERT INTO friend_codes (realm, code, account) VALUES ($1, $2, $3)",
                params![&realm, &proposed, &me],
            )?;
            Ok(proposed.clone())
        })
        .await
    }

    /// The account with this code.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn friend_code_owner(
        &self,
        realm: &Realm,
        code: &str,
    ) -> Result<Option<AccountId>, StoreError> {
        let (realm, code) = (realm.clone(), code.to_owned());
        self.read(move |sql| code_owner(sql, &realm, &code)).await
    }
}

/// Accounts that have blocked an account, of which a search takes notice.
const BLOCKERS_MAX: usize = 10_000;

fn code_owner(sql: &mut dyn Sql, realm: &Realm, code: &str) -> Done<Option<AccountId>> {
    let mut rows =
        sql.rows("SELECT account FROM friend_codes WHERE realm = $1 AND code = $2", params![realm, code])?;
    rows.first_mut().map(|row| Ok(AccountId::new(&row.text(0)?)?)).transpose()
}

fn read(mut row: TableRow) -> Done<Friend> {
    let word = row.text(1)?;
    Ok(Friend {
        account: AccountId::new(&row.text(0)?)?,
        state: read_state(&word)?,
        since_ms: row.number(2)?,
        name: row.optional_text(3)?.unwrap_or_default(),
    })
}

fn read_state(word: &str) -> Done<FriendState> {
    FriendState::from_word(word).ok_or_else(|| unknown_word("state of a friend", word))
}

fn state(sql: &mut dyn Sql, realm: &Realm, me: &AccountId, other: &AccountId) -> Done<Option<FriendState>> {
    let mut rows = sql.rows(
        "SELECT state FROM friends WHERE realm = $1 AND account = $2 AND other = $3",
        params![realm, me, other],
    )?;
    rows.first_mut().map(|row| read_state(&row.text(0)?)).transpose()
}

fn counts(sql: &mut dyn Sql, realm: &Realm, me: &AccountId) -> Done<FriendCounts> {
    let rows = sql.rows(
        "SELECT state, CAST(COUNT(*) AS BIGINT) FROM friends WHERE realm = $1 AND account = $2 GROUP BY state",
        params![realm, me],
    )?;
    let mut counts = FriendCounts::default();
    for mut row in rows {
        let count = usize::try_from(row.number(1)?).unwrap_or(usize::MAX);
        match read_state(&row.text(0)?)? {
            FriendState::Friend => counts.friends = count,
            FriendState::Asked => counts.asked = count,
            FriendState::Asks => counts.asks = count,
            FriendState::Blocked => counts.blocked = count,
        }
    }
    Ok(counts)
}

fn put(
    sql: &mut dyn Sql,
    realm: &Realm,
    (me, other): (&AccountId, &AccountId),
    state: Option<FriendState>,
    now_ms: u64,
) -> Done<()> {
    match state {
        None => sql.later(
            "DELETE FROM friends WHERE realm = $1 AND account = $2 AND other = $3",
            params![realm, me, other],
        ),
        Some(state) => sql.later(
            "INSERT INTO friends (realm, account, other, state, changed_ms) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (realm, account, other) DO UPDATE SET state = $4, changed_ms = $5",
            params![realm, me, other, state.as_str(), now_ms],
        ),
    }
}

/// Deletes an account from all lists of friends, with its own list and code. Returns the number of rows.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    sql.later("DELETE FROM friend_codes WHERE realm = $1 AND account = $2", params![realm, account])?;
    let others =
        sql.change("DELETE FROM friends WHERE realm = $1 AND other = $2", params![realm, account])?;
    let own = sql.change("DELETE FROM friends WHERE realm = $1 AND account = $2", params![realm, account])?;
    Ok(own + others)
}
