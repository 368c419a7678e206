//! Players who made requests at nodes of a cluster lately, so that the other nodes know who is here. The statements are
//! PostgreSQL's.

use super::Store;
use super::error::StoreError;
use super::ids::AccountId;
use super::lives::Swept;
use super::presence::lines;
use super::sql::{is_of_serving, params};
use parlor_server::realm::Realm;

/// Maximum number of rows that one transaction deletes.
const ROWS: u64 = 200;

impl Store {
    /// Stores that a player was seen at this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn was_seen(
        &self,
        realm: &Realm,
        player: &AccountId,
        at_ms: u64,
    ) -> Result<(), StoreError> {
        let (realm, player) = (realm.clone(), player.clone());
        self.write_sparing(move |sql| {
            sql.later(
                "INSERT INTO players_seen (realm, account, at_ms) VALUES ($1, $2, $3)
                 ON CONFLICT (realm, account) DO UPDATE SET at_ms = $3",
                params![&realm, &player, at_ms],
            )
        })
        .await
    }

    /// Those of these players who were seen since this time at any node, or are connected to one that serves.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn seen_of(
        &self,
        realm: &Realm,
        players: &[AccountId],
        since_ms: u64,
    ) -> Result<Vec<AccountId>, StoreError> {
        let (realm, players) = (realm.clone(), lines(players.iter().map(AccountId::as_str)));
        self.read(move |sql| {
            let rows = sql.rows(
                concat!(
                    "SELECT k.account FROM (SELECT substr(line, 2) AS account
                     FROM unnest(string_to_array($1, E'\\n')) AS l (line)) AS k
                 WHERE EXISTS (SELECT 1 FROM players_seen s
                         WHERE s.realm = $2 AND s.account = k.account AND s.at_ms >= $3)
                     OR EXISTS (SELECT 1 FROM presence p JOIN nodes n ON ",
                    is_of_serving!("p"),
                    " WHERE p.realm = $2 AND p.account = k.account)"
                ),
                params![&players, &realm, since_ms],
            )?;
            rows.into_iter().map(|mut row| Ok(AccountId::new(&row.text(0)?)?)).collect()
        })
        .await
    }

    /// Deletes a part of what was stored before this time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn sweep_seen(&self, before_ms: u64) -> Result<Swept, StoreError> {
        self.write_sparing(move |sql| {
            let rows = sql.change(
                "DELETE FROM players_seen WHERE (realm, account) IN
                     (SELECT realm, account FROM players_seen WHERE at_ms < $1 LIMIT $2)",
                params![before_ms, ROWS],
            )?;
            Ok(Swept { rows, is_more: rows == ROWS })
        })
        .await
    }
}
