//! The outbox: calls of webhooks that wait until they are answered or dropped.

use super::Store;
use super::error::StoreError;
use super::sql::{Done, Sql, params};
use super::types::{NewWebhook, OUTBOX_BYTES_MAX, OUTBOX_MAX, Outbox, PAGE_MAX, Webhook, stored_realm};
use core::time::Duration;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::time::Instant;

impl Store {
    /// Whether any call is due.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn are_webhooks_due(&self, now_ms: u64) -> Result<bool, StoreError> {
        self.read(move |sql| {
            let rows = sql.rows("SELECT id FROM webhooks WHERE due_ms <= $1 LIMIT 1", params![now_ms])?;
            Ok(!rows.is_empty())
        })
        .await
    }

    /// Takes calls of all realms that are due, of them the longest overdue: until the given time they are no other
    /// server's. A server that ends before it has told what became of a call leaves it due then.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn claim_webhooks(
        &self,
        now_ms: u64,
        until_ms: u64,
        limit: usize,
    ) -> Result<Vec<Webhook>, StoreError> {
        let limit = limit.min(PAGE_MAX);
        self.write_sparing(move |sql| {
            // The second condition is for a server that waited for another one's claim.
            let rows = sql.rows(
                "UPDATE webhooks SET due_ms = $1 WHERE due_ms <= $2 AND id IN
                     (SELECT id FROM webhooks WHERE due_ms <= $2 ORDER BY due_ms, id LIMIT $3)
                 RETURNING id, realm, target, body, attempts, due_ms",
                params![until_ms, now_ms, limit],
            )?;
            let claimed = rows.into_iter().map(|mut row| {
                Ok(Webhook {
                    id: row.number(0)?,
                    realm: stored_realm(&row.text(1)?)?,
                    target: row.text(2)?,
                    body: row.bytes(3)?,
                    attempts: row.number(4)?,
                    due_ms: row.number(5)?,
                })
            });
            claimed.collect()
        })
        .await
    }

    /// Returns the number of waiting calls, in all realms.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn webhooks_waiting(&self) -> Result<u64, StoreError> {
        self.read(|sql| {
            let mut rows = sql.rows("SELECT COUNT(*) FROM webhooks", &[])?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }

    /// Removes a call that was answered or is given up.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn webhook_done(&self, realm: &Realm, id: u64) -> Result<(), StoreError> {
        let realm = realm.clone();
        self.write_sparing(move |sql| {
            let mut gone = sql.rows(
                "DELETE FROM webhooks WHERE realm = $1 AND id = $2 RETURNING CAST(length(body) AS BIGINT)",
                params![&realm, id],
            )?;
            if let Some(row) = gone.first_mut() {
                let bytes = row.number(0)?;
                sql.outboxes().lose(&realm, bytes);
            }
            Ok(())
        })
        .await
    }

    /// Records a failed attempt at a claimed call, unless another server has claimed it since. The call is due again at
    /// this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn webhook_retry(&self, claimed: &Webhook, due_ms: u64) -> Result<(), StoreError> {
        let (realm, id, claimed_ms) = (claimed.realm.clone(), claimed.id, claimed.due_ms);
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE webhooks SET attempts = attempts + 1, due_ms = $1
                 WHERE realm = $2 AND id = $3 AND due_ms = $4",
                params![due_ms, &realm, id, claimed_ms],
            )?;
            Ok(())
        })
        .await
    }

    /// Returns the numbers of the realm's waiting and dropped calls.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn outbox(&self, realm: &Realm) -> Result<Outbox, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let waiting = count(sql, &realm)?.waiting;
            let mut rows = sql.rows("SELECT dropped FROM outboxes WHERE realm = $1", params![&realm])?;
            Ok(Outbox { waiting, dropped: rows.first_mut().map_or(Ok(0), |row| row.number(0))? })
        })
        .await
    }
}

/// What the outboxes of realms hold, as the committing thread knows it. A count in the store would be a row that all
/// nodes of a cluster change with each call. Other nodes put and answer calls too, so it is counted again.
#[derive(Debug, Default)]
pub(super) struct Outboxes(HashMap<Realm, Counted>);

/// How long a count is good for, if other nodes use the store.
const GOOD_FOR: Duration = Duration::from_secs(10);
/// Calls after which it is counted again: so many more may wait for each other node.
const GOOD_FOR_CALLS: u64 = 256;
/// Maximum number of counted realms. Beyond it all are counted again.
const REALMS_MAX: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Counted {
    waiting: u64,
    bytes: u64,
    at: Instant,
    calls: u64,
}

impl Outboxes {
    /// Nothing is known any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// A call of this size is gone.
    pub(super) fn lose(&mut self, realm: &Realm, bytes: u64) {
        if let Some(counted) = self.0.get_mut(realm) {
            counted.waiting = counted.waiting.saturating_sub(1);
            counted.bytes = counted.bytes.saturating_sub(bytes);
        }
    }

    fn known(&self, realm: &Realm) -> Option<Counted> {
        let is_good = |counted: &&Counted| counted.at.elapsed() < GOOD_FOR && counted.calls < GOOD_FOR_CALLS;
        self.0.get(realm).filter(is_good).copied()
    }

    fn know(&mut self, realm: &Realm, counted: Counted) {
        if self.0.len() >= REALMS_MAX {
            self.0.clear();
        }
        self.0.insert(realm.clone(), counted);
    }
}

fn count(sql: &mut dyn Sql, realm: &Realm) -> Done<Counted> {
    let mut rows = sql.rows(
        "SELECT COUNT(*), CAST(COALESCE(SUM(length(body)), 0) AS BIGINT) FROM webhooks WHERE realm = $1",
        params![realm],
    )?;
    let (waiting, bytes) = match rows.first_mut() {
        Some(row) => (row.number(0)?, row.number(1)?),
        None => (0, 0),
    };
    Ok(Counted { waiting, bytes, at: Instant::now(), calls: 0 })
}

/// Puts a call into the outbox of its realm. A call beyond its cause's share is dropped if half of the outbox
/// is taken. If there are too many other calls, the oldest is dropped. All dropped calls are counted.
pub(super) fn put(sql: &mut dyn Sql, realm: &Realm, webhook: &NewWebhook) -> Done<()> {
    let mut counted = match sql.outboxes().known(realm) {
        Some(counted) => counted,
        None => count(sql, realm)?,
    };
    let size = webhook.body.len() as u64;
    counted.calls += 1;
    let is_half_full =
        counted.waiting >= OUTBOX_MAX / 2 || counted.bytes.saturating_add(size) > OUTBOX_BYTES_MAX / 2;
    if webhook.is_beyond_share && is_half_full {
        sql.outboxes().know(realm, counted);
        return count_dropped(sql, realm, 1);
    }
    sql.later(
        "INSERT INTO webhooks (realm, target, body, attempts, due_ms) VALUES ($1, $2, $3, 0, $4)",
        params![realm, &webhook.target, &webhook.body, webhook.due_ms],
    )?;
    (counted.waiting, counted.bytes) = (counted.waiting + 1, counted.bytes.saturating_add(size));
    let mut dropped = 0;
    while counted.waiting > OUTBOX_MAX || counted.bytes > OUTBOX_BYTES_MAX {
        let mut gone = sql.rows(
            "DELETE FROM webhooks WHERE id = (SELECT MIN(id) FROM webhooks WHERE realm = $1)
             RETURNING CAST(length(body) AS BIGINT)",
            params![realm],
        )?;
        let Some(row) = gone.first_mut() else { break };
        (counted.waiting, counted.bytes) =
            (counted.waiting - 1, counted.bytes.saturating_sub(row.number(0)?));
        dropped += 1;
    }
    sql.outboxes().know(realm, counted);
    if dropped > 0 { count_dropped(sql, realm, dropped) } else { Ok(()) }
}

/// Counts dropped calls.
pub(super) fn count_dropped(sql: &mut dyn Sql, realm: &Realm, calls: u64) -> Done<()> {
    sql.later(
        "INSERT INTO outboxes (realm, waiting, dropped, bytes) VALUES ($1, 0, $2, 0)
         ON CONFLICT (realm) DO UPDATE SET dropped = outboxes.dropped + $2",
        params![realm, calls],
    )
}
