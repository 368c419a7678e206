//! Players who are connected to nodes of a cluster, for their friends at other nodes. The statements are PostgreSQL's.
//!
//! Nothing of it outlives a crash of the database: the nodes write theirs again. What a node wrote counts while it
//! serves under the same incarnation.

use super::Store;
use super::error::StoreError;
use super::ids::AccountId;
use super::sql::{Done, TableRow, is_of_serving, params};
use parlor_server::realm::Realm;
use serde::{Deserialize, Serialize};

/// What a player says of itself to friends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Saying {
    /// For people, without control characters.
    pub(crate) status: String,
    /// How friends come to the player, without control characters.
    pub(crate) join: Option<String>,
    /// Whether friends see the player at all.
    pub(crate) is_visible: bool,
    /// When the player said it, in milliseconds since 1970; 0 if it has said nothing.
    pub(crate) said_ms: u64,
}

/// A player who is connected to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PresenceRow {
    pub(crate) account: AccountId,
    pub(crate) node: String,
    pub(crate) saying: Saying,
}

/// Texts of rows, for one parameter: lines, each behind a sign, because PostgreSQL takes an empty text for no line. No
/// text has a control character.
pub(super) fn lines<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.map(|text| format!("-{text}")).collect::<Vec<_>>().join("\n")
}

impl Store {
    /// Stores who is connected to a node and what they say, and who is so no longer.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn write_presence(
        &self,
        (node, incarnation): (&str, u64),
        changes: &[((Realm, AccountId), Option<Saying>)],
    ) -> Result<(), StoreError> {
        let here: Vec<(&Realm, &AccountId, &Saying)> = changes
            .iter()
            .filter_map(|((realm, account), saying)| Some((realm, account, saying.as_ref()?)))
            .collect();
        let gone: Vec<&(Realm, AccountId)> =
            changes.iter().filter(|(_, saying)| saying.is_none()).map(|(key, _)| key).collect();
        let columns = [
            lines(here.iter().map(|(realm, ..)| realm.path())),
            lines(here.iter().map(|(_, account, _)| account.as_str())),
            lines(here.iter().map(|(.., saying)| saying.status.as_str())),
            lines(here.iter().map(|(.., saying)| saying.join.as_deref().unwrap_or_default())),
            lines(here.iter().map(|(.., saying)| if saying.is_visible { "1" } else { "0" })),
            here.iter().map(|(.., saying)| saying.said_ms.to_string()).collect::<Vec<_>>().join("\n"),
        ];
        let away = [
            lines(gone.iter().map(|(realm, _)| realm.path())),
            lines(gone.iter().map(|(_, account)| account.as_str())),
        ];
        let (node, has_here, has_gone) = (node.to_owned(), !here.is_empty(), !gone.is_empty());
        self.write_sparing(move |sql| {
            if has_here {
                let [realms, accounts, statuses, joins, visible, said] = &columns;
                sql.change(
                    "INSERT INTO presence (realm, account, status, join_text, is_visible, said_ms, node, incarnation)
                     SELECT substr(p.realm, 2), substr(p.account, 2), substr(p.status, 2), substr(p.join_text, 2),
                         substr(p.is_visible, 2)::bigint, p.said_ms::bigint, $7::text, $8::bigint
                     FROM unnest(string_to_array($1, E'\\n'), string_to_array($2, E'\\n'), string_to_array($3, E'\\n'),
                         string_to_array($4, E'\\n'), string_to_array($5, E'\\n'), string_to_array($6, E'\\n'))
                         AS p (realm, account, status, join_text, is_visible, said_ms)
                     ON CONFLICT (realm, account, node) DO UPDATE SET status = excluded.status,
                         join_text = excluded.join_text, is_visible = excluded.is_visible,
                         said_ms = excluded.said_ms, incarnation = excluded.incarnation",
                    params![realms, accounts, statuses, joins, visible, said, &node, incarnation],
                )?;
            }
            if has_gone {
                let [realms, accounts] = &away;
                sql.change(
                    "DELETE FROM presence p USING unnest(string_to_array($1, E'\\n'), string_to_array($2, E'\\n'))
                         AS g (realm, account)
                     WHERE p.realm = substr(g.realm, 2) AND p.account = substr(g.account, 2) AND p.node = $3",
                    params![realms, accounts, &node],
                )?;
            }
            Ok(())
        })
        .await
    }

    /// Where these players are connected, at nodes that serve.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn presence_of(
        &self,
        realm: &Realm,
        accounts: &[AccountId],
    ) -> Result<Vec<PresenceRow>, StoreError> {
        let (realm, accounts) = (realm.clone(), lines(accounts.iter().map(AccountId::as_str)));
        self.read(move |sql| {
            let rows = sql.rows(
                concat!(
                    "SELECT p.account, p.node, p.status, p.join_text, p.is_visible, p.said_ms
                     FROM unnest(string_to_array($1, E'\\n')) AS k (account)
                     JOIN presence p ON p.realm = $2 AND p.account = substr(k.account, 2)
                     JOIN nodes n ON ",
                    is_of_serving!("p")
                ),
                params![&accounts, &realm],
            )?;
            rows.into_iter().map(|mut row| read(&mut row)).collect()
        })
        .await
    }

    /// Changes what a player says at every node to which it is connected. Returns whether it is connected to any.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn say(
        &self,
        realm: &Realm,
        account: &AccountId,
        saying: &Saying,
    ) -> Result<bool, StoreError> {
        let (realm, account, saying) = (realm.clone(), account.clone(), saying.clone());
        self.write_sparing(move |sql| {
            let join = saying.join.as_deref().unwrap_or_default();
            let changed = sql.change(
                concat!(
                    "UPDATE presence p SET status = $1, join_text = $2, is_visible = $3, said_ms = $4
                     FROM nodes n WHERE p.realm = $5 AND p.account = $6 AND ",
                    is_of_serving!("p")
                ),
                params![&saying.status, join, saying.is_visible, saying.said_ms, &realm, &account],
            )?;
            Ok(changed > 0)
        })
        .await
    }

    /// How many players are connected to a node, as the store has it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn presence_count(&self, (node, incarnation): (&str, u64)) -> Result<u64, StoreError> {
        let node = node.to_owned();
        self.read(move |sql| {
            let mut rows = sql.rows(
                "SELECT COUNT(*) FROM presence WHERE node = $1 AND incarnation = $2",
                params![&node, incarnation],
            )?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }

    /// Deletes what a node wrote of players other than these.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn keep_presence(
        &self,
        node: &str,
        players: &[(Realm, AccountId)],
    ) -> Result<(), StoreError> {
        let realms = lines(players.iter().map(|(realm, _)| realm.path()));
        let accounts = lines(players.iter().map(|(_, account)| account.as_str()));
        let node = node.to_owned();
        self.write_sparing(move |sql| {
            sql.change(
                "DELETE FROM presence p WHERE p.node = $1 AND NOT EXISTS (SELECT 1
                     FROM unnest(string_to_array($2, E'\\n'), string_to_array($3, E'\\n')) AS k (realm, account)
                     WHERE p.realm = substr(k.realm, 2) AND p.account = substr(k.account, 2))",
                params![&node, &realms, &accounts],
            )
            .map(|_| ())
        })
        .await
    }

    /// Deletes what nodes wrote that do not serve. Returns how many.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub(crate) async fn sweep_presence(&self) -> Result<u64, StoreError> {
        self.write_sparing(|sql| {
            sql.change(
                concat!(
                    "DELETE FROM presence p WHERE NOT EXISTS (SELECT 1 FROM nodes n WHERE ",
                    is_of_serving!("p"),
                    ")"
                ),
                &[],
            )
        })
        .await
    }
}

fn read(row: &mut TableRow) -> Done<PresenceRow> {
    Ok(PresenceRow {
        account: AccountId::new(&row.text(0)?)?,
        node: row.text(1)?,
        saying: Saying {
            status: row.text(2)?,
            join: Some(row.text(3)?).filter(|join| !join.is_empty()),
            is_visible: row.number(4)? == 1,
            said_ms: row.number(5)?,
        },
    })
}
