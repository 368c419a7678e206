//! The outbox: calls of webhooks that wait until they are answered or dropped.

use super::Store;
use super::error::StoreError;
use super::sql::{Done, Sql, params};
use super::types::{NewWebhook, OUTBOX_BYTES_MAX, OUTBOX_MAX, Outbox, PAGE_MAX, Webhook, stored_realm};
use parlor_server::realm::Realm;

impl Store {
    /// Returns calls of all realms that are due, the longest overdue first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn due_webhooks(&self, now_ms: u64, limit: usize) -> Result<Vec<Webhook>, StoreError> {
        let limit = limit.min(PAGE_MAX);
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT id, realm, target, body, attempts, due_ms FROM webhooks WHERE due_ms <= $1
                 ORDER BY due_ms, id LIMIT $2",
                params![now_ms, limit],
            )?;
            let due = rows.into_iter().map(|mut row| {
                Ok(Webhook {
                    id: row.number(0)?,
                    realm: stored_realm(&row.text(1)?)?,
                    target: row.text(2)?,
                    body: row.bytes(3)?,
                    attempts: row.number(4)?,
                    due_ms: row.number(5)?,
                })
            });
            due.collect()
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
            // The outboxes have counts, so the calls need not be counted.
            let mut rows = sql.rows("SELECT waiting FROM outboxes WHERE waiting > 0", &[])?;
            rows.iter_mut().map(|row| row.number(0)).sum()
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
                sql.change(
                    "UPDATE outboxes SET waiting = waiting - 1, bytes = bytes - $1 WHERE realm = $2",
                    params![row.number(0)?, &realm],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Records a failed attempt. The call is due again at this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn webhook_retry(&self, realm: &Realm, id: u64, due_ms: u64) -> Result<(), StoreError> {
        let realm = realm.clone();
        self.write_sparing(move |sql| {
            sql.change(
                "UPDATE webhooks SET attempts = attempts + 1, due_ms = $1 WHERE realm = $2 AND id = $3",
                params![due_ms, &realm, id],
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
            let mut rows =
                sql.rows("SELECT waiting, dropped FROM outboxes WHERE realm = $1", params![&realm])?;
            let Some(row) = rows.first_mut() else { return Ok(Outbox::default()) };
            Ok(Outbox { waiting: row.number(0)?, dropped: row.number(1)? })
        })
        .await
    }
}

/// Puts a call into the outbox of its realm. A call beyond its cause's share is dropped if half of the outbox
/// is taken. If there are too many other calls, the oldest is dropped. All dropped calls are counted.
pub(super) fn put(sql: &mut dyn Sql, realm: &Realm, webhook: &NewWebhook) -> Done<()> {
    let mut rows = sql.rows(
        "INSERT INTO outboxes (realm, waiting, dropped, bytes) VALUES ($1, 1, 0, $2)
         ON CONFLICT (realm) DO UPDATE SET waiting = outboxes.waiting + 1, bytes = outboxes.bytes + $2
         RETURNING waiting, bytes",
        params![realm, webhook.body.len()],
    )?;
    let (waiting, mut bytes) = match rows.first_mut() {
        Some(row) => (row.number(0)?, row.number(1)?),
        None => (0, 0),
    };
    let is_half_full = waiting > OUTBOX_MAX / 2 || bytes > OUTBOX_BYTES_MAX / 2;
    if webhook.is_beyond_share && is_half_full {
        return count_dropped(sql, realm, webhook.body.len() as u64);
    }
    sql.later(
        "INSERT INTO webhooks (realm, target, body, attempts, due_ms) VALUES ($1, $2, $3, 0, $4)",
        params![realm, &webhook.target, &webhook.body, webhook.due_ms],
    )?;
    let mut is_over = waiting > OUTBOX_MAX;
    while is_over || bytes > OUTBOX_BYTES_MAX {
        let mut gone = sql.rows(
            "DELETE FROM webhooks WHERE id = (SELECT MIN(id) FROM webhooks WHERE realm = $1)
             RETURNING CAST(length(body) AS BIGINT)",
            params![realm],
        )?;
        let Some(row) = gone.first_mut() else { break };
        let size = row.number(0)?;
        count_dropped(sql, realm, size)?;
        (is_over, bytes) = (false, bytes.saturating_sub(size));
    }
    Ok(())
}

/// Subtracts a dropped call of this size, and counts it.
fn count_dropped(sql: &mut dyn Sql, realm: &Realm, bytes: u64) -> Done<()> {
    sql.change(
        "UPDATE outboxes SET waiting = waiting - 1, dropped = dropped + 1, bytes = bytes - $1 WHERE realm = $2",
        params![bytes, realm],
    )?;
    Ok(())
}
