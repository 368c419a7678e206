//! What operators define beside boards: statistics, achievements, ladders and queues.

use super::Store;
use super::error::StoreError;
use super::limits::Growth;
use super::sql::{Done, Sql, TableRow, params, unknown_word};
use super::types::check_size;
use parlor_server::realm::Realm;
use parlor_social::Name;

/// Maximum number of definitions of one kind in a realm.
pub const DEFINITIONS_MAX: usize = 1000;
/// Maximum bytes of a definition.
pub const DEFINITION_BYTES_MAX: usize = 16 << 10;

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionKind {
    /// A number of each player.
    Statistic,
    /// Something to unlock.
    Achievement,
    /// Ratings of players.
    Ladder,
    /// Where players search a match.
    Queue,
}

impl DefinitionKind {
    /// All kinds.
    pub const ALL: [DefinitionKind; 4] = [
        DefinitionKind::Statistic,
        DefinitionKind::Achievement,
        DefinitionKind::Ladder,
        DefinitionKind::Queue,
    ];

    /// Its word in the store and in operators' files.
    pub fn as_str(self) -> &'static str {
        match self {
            DefinitionKind::Statistic => "statistic",
            DefinitionKind::Achievement => "achievement",
            DefinitionKind::Ladder => "ladder",
            DefinitionKind::Queue => "queue",
        }
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A stored definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredDefinition {
    /// Its kind.
    pub kind: DefinitionKind,
    /// Its name.
    pub name: Name,
    /// Counts its definitions, from 1.
    pub version: u64,
    /// The definition as JSON.
    pub document: Vec<u8>,
}

impl Store {
    /// Stores a definition, and returns its version. With `version`, only that version is changed; 0 for a name that is
    /// not defined. `is_operators`: a full store takes it too.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] for another version; [`StoreError::Quota`] beyond [`DEFINITIONS_MAX`] of a kind.
    pub async fn put_definition(
        &self,
        realm: &Realm,
        (kind, name): (DefinitionKind, &Name),
        document: Vec<u8>,
        version: Option<u64>,
        (now_ms, is_operators): (u64, bool),
    ) -> Result<u64, StoreError> {
        check_size("the definition", document.len(), DEFINITION_BYTES_MAX)?;
        let (realm, name, bytes) = (realm.clone(), name.clone(), document.len());
        let growth = if is_operators { Growth::Spares } else { Growth::Adds };
        self.write_as(growth, bytes, move |sql| put(sql, &realm, (kind, &name), &document, version, now_ms))
            .await
    }

    /// Deletes a definition. What players have of it stays.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is none.
    pub async fn delete_definition(
        &self,
        realm: &Realm,
        kind: DefinitionKind,
        name: &Name,
    ) -> Result<(), StoreError> {
        let (realm, name) = (realm.clone(), name.clone());
        self.write_sparing(move |sql| {
            let gone = sql.change(
                "DELETE FROM definitions WHERE realm = $1 AND kind = $2 AND name = $3",
                params![&realm, kind.as_str(), name.as_str()],
            )?;
            if gone == 0 {
                return Err(StoreError::Missing { what: "definition" }.into());
            }
            count_change(sql, &realm)
        })
        .await
    }

    /// Counts the changes of a realm's definitions by the nodes of a cluster.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn definition_changes(&self, realm: &Realm) -> Result<u64, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let mut rows =
                sql.rows("SELECT number FROM definition_changes WHERE realm = $1", params![&realm])?;
            rows.first_mut().map_or(Ok(0), |row| row.number(0))
        })
        .await
    }

    /// All definitions of a realm, ordered by kind and name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn definitions(&self, realm: &Realm) -> Result<Vec<StoredDefinition>, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT kind, name, version, document FROM definitions WHERE realm = $1 ORDER BY kind, name LIMIT $2",
                params![&realm, DEFINITIONS_MAX * DefinitionKind::ALL.len()],
            )?;
            rows.into_iter().map(|mut row| read(&mut row)).collect()
        })
        .await
    }
}

/// Counts a change of a realm's definitions, boards among them, so that other nodes read them again. A server alone
/// counts nothing.
pub(super) fn count_change(sql: &mut dyn Sql, realm: &Realm) -> Done<()> {
    if !sql.is_shared() {
        return Ok(());
    }
    sql.later(
        "INSERT INTO definition_changes (realm, number) VALUES ($1, 1)
         ON CONFLICT (realm) DO UPDATE SET number = definition_changes.number + 1",
        params![realm],
    )
}

fn read(row: &mut TableRow) -> Done<StoredDefinition> {
    let word = row.text(0)?;
    let kind = DefinitionKind::from_word(&word).ok_or_else(|| unknown_word("kind of definition", &word))?;
    Ok(StoredDefinition { kind, name: name(row, 1)?, version: row.number(2)?, document: row.bytes(3)? })
}

/// A stored name.
pub(super) fn name(row: &mut TableRow, column: usize) -> Done<Name> {
    Name::new(&row.text(column)?).map_err(|error| StoreError::Damaged(error.to_string()).into())
}

fn put(
    sql: &mut dyn Sql,
    realm: &Realm,
    (kind, name): (DefinitionKind, &Name),
    document: &[u8],
    version: Option<u64>,
    now_ms: u64,
) -> Done<u64> {
    let mut rows = sql.rows(
        "SELECT version FROM definitions WHERE realm = $1 AND kind = $2 AND name = $3",
        params![realm, kind.as_str(), name.as_str()],
    )?;
    let current = rows.first_mut().map_or(Ok(0), |row| row.number(0))?;
    if version.is_some_and(|version| version != current) {
        return Err(StoreError::Stale { current }.into());
    }
    if current == 0 {
        let others = sql.rows(
            "SELECT name FROM definitions WHERE realm = $1 AND kind = $2 LIMIT $3",
            params![realm, kind.as_str(), DEFINITIONS_MAX],
        )?;
        if others.len() >= DEFINITIONS_MAX {
            let sentence = format!(
                "an app's environment may have {DEFINITIONS_MAX} of the kind {}; delete one that is not used",
                kind.as_str()
            );
            return Err(StoreError::Quota { what: "the definitions", sentence }.into());
        }
    }
    count_change(sql, realm)?;
    sql.change(
        "INSERT INTO definitions (realm, kind, name, version, changed_ms, document) VALUES ($1, $2, $3, $4, $5, $6)
         ON CONFLICT (realm, kind, name) DO UPDATE SET version = $4, changed_ms = $5, document = $6",
        params![realm, kind.as_str(), name.as_str(), current + 1, now_ms, document],
    )?;
    Ok(current + 1)
}
