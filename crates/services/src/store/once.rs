//! Ids of what counts once, such as results and receipts, until nobody sends them again.

use super::sql::{Done, Sql, params};
use parlor_server::realm::Realm;

/// Expired ids that each use deletes.
const SWEEP: usize = 64;

pub(super) fn is_used(sql: &mut dyn Sql, realm: &Realm, id: &str) -> Done<bool> {
    let rows = sql.rows("SELECT id FROM used_once WHERE realm = $1 AND id = $2", params![realm, id])?;
    Ok(!rows.is_empty())
}

/// Remembers an id until it expires, and forgets some that have expired.
pub(super) fn remember(
    sql: &mut dyn Sql,
    realm: &Realm,
    id: &str,
    (now_ms, expires_ms): (u64, u64),
) -> Done<()> {
    let expired = sql.rows(
        "SELECT realm, id FROM used_once WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2",
        params![now_ms, SWEEP],
    )?;
    for mut row in expired {
        let (realm, id) = (row.text(0)?, row.text(1)?);
        sql.later("DELETE FROM used_once WHERE realm = $1 AND id = $2", params![&realm, &id])?;
    }
    sql.later(
        "INSERT INTO used_once (realm, id, expires_ms) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
        params![realm, id, expires_ms],
    )
}
