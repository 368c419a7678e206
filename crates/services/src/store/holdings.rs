//! Quotas of accounts and of an app's environment: counted and checked in the transaction that changes them,
//! so parallel requests cannot exceed them.

use super::Store;
use super::error::StoreError;
use super::ids::AccountId;
use super::limits::Limits;
use super::sql::{Done, Row, Sql, params};
use parlor_server::realm::Realm;

/// The row that has the sums of a realm. No account has this id.
const REALM: &str = "";

/// What an account, or all of a realm, holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Bytes of logs of kept matches.
    pub log_bytes: u64,
    /// Bytes of rooms.
    pub room_bytes: u64,
    /// Rooms that have not ended.
    pub open_rooms: u64,
}

/// What becomes more, or less.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charge {
    pub(super) log_bytes: i64,
    pub(super) room_bytes: i64,
    pub(super) open_rooms: i64,
}

impl Store {
    /// What an account holds; without one what all of the realm do.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn holding(&self, realm: &Realm, account: Option<&AccountId>) -> Result<Holding, StoreError> {
        let (realm, account) = (realm.clone(), account.map_or(REALM.to_owned(), AccountId::to_string));
        self.read(move |sql| holding(sql, &realm, &account)).await
    }
}

/// Counts for an account, and for its realm. What is more than there may be is refused.
pub(super) fn charge(
    sql: &mut dyn Sql,
    realm: &Realm,
    account: &str,
    charge: Charge,
    limits: &Limits,
) -> Done<()> {
    // Both are read and judged before anything is changed: what is refused then spoils nothing for the others of its group.
    let next = holding(sql, realm, account)?.charged(charge);
    let of_realm = holding(sql, realm, REALM)?.charged(charge);
    if !account.is_empty() {
        judge(charge, &next, limits)?;
    }
    let bytes = of_realm.log_bytes.saturating_add(of_realm.room_bytes);
    if let Some(max) = limits.app_bytes.filter(|max| bytes > *max)
        && (charge.log_bytes > 0 || charge.room_bytes > 0)
    {
        let sentence = format!(
            "the rooms and logs of this app's environment may have {max} bytes; wait until old ones are deleted, or have \
             the operator raise --app-bytes"
        );
        return Err(StoreError::Quota { what: "the bytes of this app", sentence }.into());
    }
    if !account.is_empty() {
        put(sql, realm, account, &next)?;
    }
    put(sql, realm, REALM, &of_realm)
}

impl Holding {
    /// What was there before it was counted is given back without having been charged: nothing falls below 0 by it.
    fn charged(self, charge: Charge) -> Holding {
        Holding {
            log_bytes: self.log_bytes.saturating_add_signed(charge.log_bytes),
            room_bytes: self.room_bytes.saturating_add_signed(charge.room_bytes),
            open_rooms: self.open_rooms.saturating_add_signed(charge.open_rooms),
        }
    }
}

fn judge(charge: Charge, holding: &Holding, limits: &Limits) -> Result<(), StoreError> {
    let (what, sentence) = if charge.open_rooms > 0 && holding.open_rooms > limits.open_rooms {
        let sentence = format!(
            "an account may have {} rooms that it opened and that have not ended; end one of them, or wait until one has ended",
            limits.open_rooms
        );
        ("the rooms of this account", sentence)
    } else if charge.room_bytes > 0 && holding.room_bytes > limits.room_bytes {
        let sentence = format!(
            "the rooms that an account opened may have {} bytes; delete those that have ended (turn.delete)",
            limits.room_bytes
        );
        ("the bytes of this account's rooms", sentence)
    } else if charge.log_bytes > 0 && holding.log_bytes > limits.log_bytes {
        let sentence = format!(
            "the logs of an account's matches may have {} bytes; wait until old ones are deleted",
            limits.log_bytes
        );
        ("the bytes of this account's kept matches", sentence)
    } else {
        return Ok(());
    };
    Err(StoreError::Quota { what, sentence })
}

fn holding(sql: &mut dyn Sql, realm: &Realm, account: &str) -> Done<Holding> {
    let mut rows = sql.rows(
        "SELECT log_bytes, room_bytes, open_rooms FROM holdings WHERE realm = $1 AND account = $2",
        params![realm, account],
    )?;
    rows.first_mut().map_or(Ok(Holding::default()), read)
}

fn put(sql: &mut dyn Sql, realm: &Realm, account: &str, holding: &Holding) -> Done<()> {
    let Holding { log_bytes, room_bytes, open_rooms } = *holding;
    if *holding == Holding::default() {
        return sql.later("DELETE FROM holdings WHERE realm = $1 AND account = $2", params![realm, account]);
    }
    sql.later(
        "INSERT INTO holdings (realm, account, log_bytes, room_bytes, open_rooms) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (realm, account) DO UPDATE SET log_bytes = $3, room_bytes = $4, open_rooms = $5",
        params![realm, account, log_bytes, room_bytes, open_rooms],
    )
}

fn read(row: &mut Row) -> Done<Holding> {
    Ok(Holding { log_bytes: row.number(0)?, room_bytes: row.number(1)?, open_rooms: row.number(2)? })
}
