//! Quotas: the data of each account, and of each app's environment. The transaction that changes it counts
//! and judges it, so concurrent requests do not exceed a quota.

use super::Store;
use super::error::StoreError;
use super::ids::AccountId;
use super::limits::Limits;
use super::sql::{Done, Sql, TableRow, params};
use parlor_server::realm::Realm;

/// The id of the table row with the sums of a realm. No account has it.
const REALM: &str = "";

/// The data of an account or a realm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Bytes of logs of kept matches.
    pub log_bytes: u64,
    /// Bytes of rooms.
    pub room_bytes: u64,
    /// Rooms that have not ended.
    pub open_rooms: u64,
    /// Bytes of saves, with the versions before.
    pub save_bytes: u64,
    /// Bytes of objects.
    pub object_bytes: u64,
}

/// The growth of a holding; negative for a refund.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Charge {
    pub(super) log_bytes: i64,
    pub(super) room_bytes: i64,
    pub(super) open_rooms: i64,
    pub(super) save_bytes: i64,
    pub(super) object_bytes: i64,
}

impl Store {
    /// The holding of an account, or without an account that of the realm.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn holding(&self, realm: &Realm, account: Option<&AccountId>) -> Result<Holding, StoreError> {
        let (realm, account) = (realm.clone(), account.map_or(REALM.to_owned(), AccountId::to_string));
        self.read(move |sql| holding(sql, &realm, &account)).await
    }
}

/// Charges an account and its realm. With `judged_by`, a charge beyond these limits is refused; without, it
/// is always made.
pub(super) fn charge(
    sql: &mut dyn Sql,
    realm: &Realm,
    account: &str,
    charge: Charge,
    judged_by: Option<&Limits>,
) -> Done<()> {
    // Both are read and judged before any change: a refusal must not affect the other writes of the group.
    let next = holding(sql, realm, account)?.charged(charge);
    let of_realm = holding(sql, realm, REALM)?.charged(charge);
    if let Some(limits) = judged_by {
        if !account.is_empty() {
            let limits = limits_of(sql, realm, account, &next, limits)?;
            judge(charge, &next, &limits)?;
        }
        judge_realm(charge, &of_realm, limits)?;
    }
    if !account.is_empty() {
        put(sql, realm, account, &next)?;
    }
    put(sql, realm, REALM, &of_realm)
}

impl Holding {
    /// All bytes.
    fn all(&self) -> u64 {
        self.log_bytes
            .saturating_add(self.room_bytes)
            .saturating_add(self.save_bytes)
            .saturating_add(self.object_bytes)
    }

    /// The bytes of the kind that has most.
    fn most(&self) -> u64 {
        self.log_bytes.max(self.room_bytes).max(self.save_bytes).max(self.object_bytes)
    }

    /// Stops at 0: rooms older than the quotas are refunded without a charge.
    fn charged(self, charge: Charge) -> Holding {
        Holding {
            log_bytes: self.log_bytes.saturating_add_signed(charge.log_bytes),
            room_bytes: self.room_bytes.saturating_add_signed(charge.room_bytes),
            open_rooms: self.open_rooms.saturating_add_signed(charge.open_rooms),
            save_bytes: self.save_bytes.saturating_add_signed(charge.save_bytes),
            object_bytes: self.object_bytes.saturating_add_signed(charge.object_bytes),
        }
    }
}

/// The limits of an account. One address can create hundreds of guests, so each has a low limit.
fn limits_of(
    sql: &mut dyn Sql,
    realm: &Realm,
    account: &str,
    next: &Holding,
    limits: &Limits,
) -> Done<Limits> {
    // Only an account beyond a guest's limits is looked up.
    if next.most() <= limits.guest_bytes {
        return Ok(*limits);
    }
    // A user of the game's own service has no account here, and is not a guest.
    let guest = sql.rows(
        "SELECT a.id FROM accounts a WHERE a.realm = $1 AND a.id = $2 AND NOT EXISTS
             (SELECT 1 FROM credentials c WHERE c.realm = a.realm AND c.account = a.id)",
        params![realm, account],
    )?;
    let most = if guest.is_empty() { u64::MAX } else { limits.guest_bytes };
    Ok(Limits {
        room_bytes: limits.room_bytes.min(most),
        log_bytes: limits.log_bytes.min(most),
        save_bytes: limits.save_bytes.min(most),
        object_bytes: limits.object_bytes.min(most),
        ..*limits
    })
}

/// Refuses bytes beyond the limit of an app's environment.
fn judge_realm(charge: Charge, holding: &Holding, limits: &Limits) -> Result<(), StoreError> {
    let bytes = holding.all();
    let grows = [charge.log_bytes, charge.room_bytes, charge.save_bytes, charge.object_bytes]
        .iter()
        .any(|it| *it > 0);
    let Some(max) = limits.app_bytes.filter(|max| grows && bytes > *max) else { return Ok(()) };
    let sentence = format!(
        "the rooms, logs, saves and objects of this app's environment may have {max} bytes; wait until old ones are deleted, or have \
         the operator raise --app-max"
    );
    Err(StoreError::Quota { what: "the bytes of this app", sentence })
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
            "the rooms that an account opened may have {} bytes; delete those that have ended (turn.delete); a guest may have more \
             once it has linked a way to sign in (account.link)",
            limits.room_bytes
        );
        ("the bytes of this account's rooms", sentence)
    } else if charge.log_bytes > 0 && holding.log_bytes > limits.log_bytes {
        let sentence = format!(
            "the logs of an account's matches may have {} bytes; wait until old ones are deleted; a guest may have more once \
             it has linked a way to sign in (account.link)",
            limits.log_bytes
        );
        ("the bytes of this account's kept matches", sentence)
    } else if charge.save_bytes > 0 && holding.save_bytes > limits.save_bytes {
        let sentence = format!(
            "the saves of an account may have {} bytes, with the versions before; write smaller ones; a guest may have more \
             once it has linked a way to sign in (account.link)",
            limits.save_bytes
        );
        ("the bytes of this account's saves", sentence)
    } else if charge.object_bytes > 0 && holding.object_bytes > limits.object_bytes {
        let sentence = format!(
            "the objects of an account may have {} bytes; remove those that are not used (storage.remove); a guest may have \
             more once it has linked a way to sign in (account.link)",
            limits.object_bytes
        );
        ("the bytes of this account's objects", sentence)
    } else {
        return Ok(());
    };
    Err(StoreError::Quota { what, sentence })
}

fn holding(sql: &mut dyn Sql, realm: &Realm, account: &str) -> Done<Holding> {
    let mut rows = sql.rows(
        "SELECT log_bytes, room_bytes, open_rooms, save_bytes, object_bytes FROM holdings WHERE realm = $1 AND account = $2",
        params![realm, account],
    )?;
    rows.first_mut().map_or(Ok(Holding::default()), read)
}

fn put(sql: &mut dyn Sql, realm: &Realm, account: &str, holding: &Holding) -> Done<()> {
    let Holding { log_bytes, room_bytes, open_rooms, save_bytes, object_bytes } = *holding;
    if *holding == Holding::default() {
        return sql.later("DELETE FROM holdings WHERE realm = $1 AND account = $2", params![realm, account]);
    }
    sql.later(
        "INSERT INTO holdings (realm, account, log_bytes, room_bytes, open_rooms, save_bytes, object_bytes)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (realm, account) DO UPDATE
         SET log_bytes = $3, room_bytes = $4, open_rooms = $5, save_bytes = $6, object_bytes = $7",
        params![realm, account, log_bytes, room_bytes, open_rooms, save_bytes, object_bytes],
    )
}

fn read(row: &mut TableRow) -> Done<Holding> {
    Ok(Holding {
        log_bytes: row.number(0)?,
        room_bytes: row.number(1)?,
        open_rooms: row.number(2)?,
        save_bytes: row.number(3)?,
        object_bytes: row.number(4)?,
    })
}
