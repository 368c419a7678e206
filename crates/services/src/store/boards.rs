//! Boards: their definitions and seasons. Entries are in `entries.rs`.

use super::definitions;
use super::error::StoreError;
use super::limits::Growth;
use super::lives::Swept;
use super::sql::{Done, Sql, TableRow, params};
use super::types::{NewWebhook, check_size, stored_realm};
use super::{Store, webhooks};
use parlor_server::realm::Realm;
use parlor_social::{Board, Name, Season};
use std::sync::Arc;

/// Maximum number of boards of one realm.
pub const BOARDS_MAX: usize = 1000;
/// Maximum bytes of a board's definition.
pub const BOARD_BYTES_MAX: usize = 16 << 10;

/// Maximum number of entries that one transaction deletes, because it delays other writes.
const SWEEP: usize = 1000;
/// Time from the deletion of a board to that of its rows: writes that were under way have ended then.
const GONE_FOR_MS: u64 = 60_000;

/// The number of a board, which is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BoardNumber(pub u64);

/// A defined board.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBoard {
    /// Its number.
    pub number: BoardNumber,
    /// Its name.
    pub name: Name,
    /// Counts its definitions, from 1.
    pub version: u64,
    /// Its definition.
    pub document: Vec<u8>,
    /// When it was defined as it is, in milliseconds since 1970.
    pub changed_ms: u64,
    /// The newest season that has or had entries, if there is one.
    pub newest: Option<Season>,
}

/// A season with entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSeason {
    /// Which.
    pub season: Season,
    /// Number of its entries.
    pub entries: u64,
}

/// A season that has ended, and whose webhook is not queued yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSeason {
    /// The realm of its board.
    pub realm: Realm,
    /// The board's name.
    pub name: Name,
    /// The board.
    pub board: BoardNumber,
    /// The season.
    pub season: Season,
    /// When it ended, in milliseconds since 1970.
    pub ends_ms: u64,
    /// Number of its entries.
    pub entries: u64,
}

impl Store {
    /// Defines a board, or changes its definition, for an operator. It is a [`Board`] as JSON. Its entries stay. With
    /// `version`, only that version is changed; 0 is a board that does not exist. `running` is the season at this
    /// time by the definition before: if the board has had any season, it is stored, so that it goes on. `ends_ms` is
    /// when that season ends by the new definition; `None` if its end calls no webhook.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if the version is another one; [`StoreError::Quota`] beyond [`BOARDS_MAX`];
    /// [`StoreError::Invalid`] for another order of a board with entries.
    pub async fn put_board(
        &self,
        realm: &Realm,
        name: &Name,
        document: Vec<u8>,
        version: Option<u64>,
        (now_ms, running, ends_ms): (u64, Season, Option<u64>),
    ) -> Result<StoredBoard, StoreError> {
        check_size("the board's definition", document.len(), BOARD_BYTES_MAX)?;
        let (realm, name) = (realm.clone(), name.clone());
        let bytes = document.len();
        let put =
            move |sql: &mut dyn Sql| put(sql, &realm, &name, &document, version, (now_ms, running, ends_ms));
        self.write_as(Growth::Spares, bytes, put).await
    }

    /// Defines a board that there is not yet, for somebody who is no operator: a full store refuses it.
    ///
    /// # Errors
    ///
    /// As [`put_board`](Self::put_board), and [`StoreError::Full`].
    pub async fn make_board(
        &self,
        realm: &Realm,
        name: &Name,
        document: Vec<u8>,
        now_ms: u64,
    ) -> Result<StoredBoard, StoreError> {
        check_size("the board's definition", document.len(), BOARD_BYTES_MAX)?;
        let (realm, name, bytes) = (realm.clone(), name.clone(), document.len());
        let put =
            move |sql: &mut dyn Sql| put(sql, &realm, &name, &document, Some(0), (now_ms, Season(0), None));
        self.write(bytes, put).await
    }

    /// Deletes a board. Its entries are deleted afterwards, by [`sweep_boards`](Self::sweep_boards).
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no such board.
    pub async fn delete_board(
        &self,
        realm: &Realm,
        name: &Name,
        now_ms: u64,
    ) -> Result<BoardNumber, StoreError> {
        let (realm, name) = (realm.clone(), name.clone());
        self.write_sparing(move |sql| {
            let board = board(sql, &realm, &name)?.ok_or(StoreError::Missing { what: "board" })?;
            definitions::count_change(sql, &realm)?;
            sql.later(
                "UPDATE boards SET name = NULL, changed_ms = $1 WHERE number = $2",
                params![now_ms, board.number.0],
            )?;
            sql.later("UPDATE board_seasons SET gone = 1 WHERE board = $1", params![board.number.0])?;
            Ok(board.number)
        })
        .await
    }

    /// Waits for the writes that came before, also for those whose callers have been told that the store is
    /// unavailable. What is read afterwards has what they have done.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`]: some may still be under way.
    pub async fn behind_writes(&self) -> Result<(), StoreError> {
        let pulse = Arc::clone(&self.inner.pulse);
        // Only after a commit of unknown outcome: otherwise this would wait for a database clean-up, too.
        let wait = move |sql: &mut dyn Sql| {
            let unsettled = pulse.unsettled();
            unsettled.map_or(Ok(()), |_| sql.await_others())?;
            Ok(unsettled)
        };
        if let Some(count) = self.write_sparing(wait).await? {
            self.inner.pulse.settle(count);
        }
        Ok(())
    }

    /// A board by its name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn board(&self, realm: &Realm, name: &Name) -> Result<Option<StoredBoard>, StoreError> {
        let (realm, name) = (realm.clone(), name.clone());
        self.read(move |sql| board(sql, &realm, &name)).await
    }

    /// All boards of a realm, ordered by name.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn boards(&self, realm: &Realm) -> Result<Vec<StoredBoard>, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT number, name, version, document, changed_ms,
                 CAST((SELECT MAX(season) FROM board_seasons s WHERE s.board = number) AS BIGINT)
                 FROM boards WHERE realm = $1 AND name IS NOT NULL ORDER BY name LIMIT $2",
                params![&realm, BOARDS_MAX],
            )?;
            rows.into_iter().map(|mut row| read_board(&mut row)).collect()
        })
        .await
    }

    /// The seasons of a board that have or had entries, the newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn board_seasons(&self, board: BoardNumber) -> Result<Vec<StoredSeason>, StoreError> {
        self.read(move |sql| seasons(sql, board)).await
    }

    /// Seasons that ended until a time and still need their webhook call, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn ended_seasons(&self, until_ms: u64, limit: usize) -> Result<Vec<EndedSeason>, StoreError> {
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT b.realm, b.name, s.board, s.season, s.ends_ms, s.entries FROM board_seasons s
                 JOIN boards b ON b.number = s.board
                 WHERE s.ends_ms <= $1 AND s.gone = 0 AND b.name IS NOT NULL ORDER BY s.ends_ms LIMIT $2",
                params![until_ms, limit],
            )?;
            let ended = |mut row: TableRow| {
                let name = row.text(1)?;
                Ok(EndedSeason {
                    realm: stored_realm(&row.text(0)?)?,
                    name: Name::new(&name).map_err(|error| StoreError::Damaged(error.to_string()))?,
                    board: BoardNumber(row.number(2)?),
                    season: Season(row.number(3)?),
                    ends_ms: row.number(4)?,
                    entries: row.number(5)?,
                })
            };
            rows.into_iter().map(ended).collect()
        })
        .await
    }

    /// Ends a season, once. Queues this webhook, if there is one, in the same commit. With `later_ms` the season
    /// continues until then. Returns whether its end was not recorded before.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn tell_season(
        &self,
        ended: &EndedSeason,
        webhook: Option<NewWebhook>,
        later_ms: Option<u64>,
    ) -> Result<bool, StoreError> {
        let ended = ended.clone();
        let bytes = webhook.as_ref().map_or(0, |webhook| webhook.body.len());
        self.write_as(Growth::Ends, bytes, move |sql| {
            let told = sql.change(
                "UPDATE board_seasons SET ends_ms = $1 WHERE board = $2 AND season = $3 AND ends_ms = $4",
                params![later_ms, ended.board.0, ended.season.0, ended.ends_ms],
            )?;
            if told > 0
                && let Some(webhook) = &webhook
            {
                webhooks::put(sql, &ended.realm, webhook)?;
            }
            Ok(told > 0)
        })
        .await
    }

    /// Deletes a part of the entries of seasons and boards that are gone.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_boards(&self, now_ms: u64) -> Result<Swept, StoreError> {
        self.write_sparing(move |sql| sweep(sql, now_ms)).await
    }
}

fn read_board(row: &mut TableRow) -> Done<StoredBoard> {
    let name = row.text(1)?;
    let name = Name::new(&name).map_err(|error| StoreError::Damaged(error.to_string()))?;
    let (number, version, document) = (BoardNumber(row.number(0)?), row.number(2)?, row.bytes(3)?);
    let (changed_ms, newest) = (row.number(4)?, row.optional_number(5)?.map(Season));
    Ok(StoredBoard { number, name, version, document, changed_ms, newest })
}

fn board(sql: &mut dyn Sql, realm: &Realm, name: &Name) -> Done<Option<StoredBoard>> {
    let mut rows = sql.rows(
        "SELECT number, name, version, document, changed_ms,
         CAST((SELECT MAX(season) FROM board_seasons s WHERE s.board = number) AS BIGINT)
         FROM boards WHERE realm = $1 AND name = $2",
        params![realm, name.as_str()],
    )?;
    rows.first_mut().map(read_board).transpose()
}

fn put(
    sql: &mut dyn Sql,
    realm: &Realm,
    name: &Name,
    document: &[u8],
    version: Option<u64>,
    (now_ms, running, ends_ms): (u64, Season, Option<u64>),
) -> Done<StoredBoard> {
    let before = board(sql, realm, name)?;
    let current = before.as_ref().map_or(0, |before| before.version);
    if version.is_some_and(|version| version != current) {
        return Err(StoreError::Stale { current }.into());
    }
    if let Some(before) = before {
        let (old, new) = (read_definition(&before.document)?, read_definition(document)?);
        must_keep_order(sql, before.number, (&old, &new))?;
        definitions::count_change(sql, realm)?;
        sql.later(
            "UPDATE boards SET version = $1, changed_ms = $2, document = $3 WHERE number = $4",
            params![current + 1, now_ms, document, before.number.0],
        )?;
        if before.newest.is_some_and(|newest| newest < running) {
            begin_season(sql, (before.number, running, ends_ms), 0, &new)?;
        } else {
            sql.later(
                "UPDATE board_seasons SET ends_ms = $1 WHERE board = $2 AND season = $3",
                params![ends_ms, before.number.0, running.0],
            )?;
        }
        let newest = before.newest.map(|newest| newest.max(running));
        let document = document.to_vec();
        return Ok(StoredBoard { version: current + 1, document, changed_ms: now_ms, newest, ..before });
    }
    let others = sql.rows(
        "SELECT number FROM boards WHERE realm = $1 AND name IS NOT NULL LIMIT $2",
        params![realm, BOARDS_MAX],
    )?;
    if others.len() >= BOARDS_MAX {
        let sentence = format!("an app's environment may have {BOARDS_MAX}; delete one that is not used");
        return Err(StoreError::Quota { what: "the boards", sentence }.into());
    }
    definitions::count_change(sql, realm)?;
    sql.change(
        "INSERT INTO boards (realm, name, version, changed_ms, document) VALUES ($1, $2, $3, $4, $5)",
        params![realm, name.as_str(), 1_u64, now_ms, document],
    )?;
    board(sql, realm, name)?.ok_or_else(|| StoreError::Missing { what: "board" }.into())
}

fn read_definition(document: &[u8]) -> Done<Board> {
    let board = serde_json::from_slice(document);
    board.map_err(|error| StoreError::Damaged(format!("the definition of a board: {error}")).into())
}

/// Scores are stored as the order has them: with another one, those that there are would be upside down.
fn must_keep_order(sql: &mut dyn Sql, number: BoardNumber, (old, new): (&Board, &Board)) -> Done<()> {
    if old.order != new.order && seasons(sql, number)?.iter().any(|season| season.entries > 0) {
        let sentence = "a board with entries keeps its order: delete the board first".to_owned();
        return Err(StoreError::Invalid { what: "another order", sentence }.into());
    }
    Ok(())
}

/// A node may judge the first entry of a season by a definition that another node has just changed.
pub(super) fn must_have_order(sql: &mut dyn Sql, number: BoardNumber, rules: &Board) -> Done<()> {
    let mut rows = sql.rows("SELECT document FROM boards WHERE number = $1", params![number.0])?;
    let Some(row) = rows.first_mut() else { return Ok(()) };
    if read_definition(&row.bytes(0)?)?.order == rules.order {
        return Ok(());
    }
    let reason = "another node has just defined the board with another order".to_owned();
    Err(StoreError::Unavailable { retry_after_ms: 1_000, reason }.into())
}

/// Stores a season that is new, and ends those that the board no longer keeps.
pub(super) fn begin_season(
    sql: &mut dyn Sql,
    (board, season, ends_ms): (BoardNumber, Season, Option<u64>),
    entries: u64,
    rules: &Board,
) -> Done<()> {
    sql.change(
        "INSERT INTO board_seasons (board, season, entries, gone, ends_ms) VALUES ($1, $2, $3, 0, $4)",
        params![board.0, season.0, entries, ends_ms],
    )?;
    let kept = usize::try_from(rules.seasons()).unwrap_or(usize::MAX).saturating_add(1);
    for old in seasons(sql, board)?.into_iter().skip(kept) {
        sql.later(
            "UPDATE board_seasons SET gone = 1 WHERE board = $1 AND season = $2",
            params![board.0, old.season.0],
        )?;
    }
    Ok(())
}

pub(super) fn seasons(sql: &mut dyn Sql, board: BoardNumber) -> Done<Vec<StoredSeason>> {
    let rows = sql.rows(
        "SELECT season, entries FROM board_seasons WHERE board = $1 AND gone = 0 ORDER BY season DESC",
        params![board.0],
    )?;
    rows.into_iter()
        .map(|mut row| Ok(StoredSeason { season: Season(row.number(0)?), entries: row.number(1)? }))
        .collect()
}

fn sweep(sql: &mut dyn Sql, now_ms: u64) -> Done<Swept> {
    let mut gone = sql.rows("SELECT board, season FROM board_seasons WHERE gone = 1 LIMIT 1", params![])?;
    if let Some(row) = gone.first_mut() {
        return sweep_season(sql, row.number(0)?, row.number(1)?);
    }
    let mut boards = sql.rows(
        "SELECT number FROM boards WHERE name IS NULL AND changed_ms <= $1 LIMIT 1",
        params![now_ms.saturating_sub(GONE_FOR_MS)],
    )?;
    let Some(row) = boards.first_mut() else { return Ok(Swept::default()) };
    let number = row.number(0)?;
    // A score that was under way when the board was deleted may have begun a season.
    let left = sql.change("UPDATE board_seasons SET gone = 1 WHERE board = $1", params![number])?;
    if left == 0 {
        sql.change("DELETE FROM boards WHERE number = $1", params![number])?;
    }
    Ok(Swept { rows: 0, is_more: true })
}

fn sweep_season(sql: &mut dyn Sql, board: u64, season: u64) -> Done<Swept> {
    let rows = sql.rows(
        "SELECT account FROM board_entries WHERE board = $1 AND season = $2 LIMIT $3",
        params![board, season, SWEEP],
    )?;
    let count = rows.len();
    for mut row in rows {
        let account = row.text(0)?;
        sql.later(
            "DELETE FROM board_entries WHERE board = $1 AND season = $2 AND account = $3",
            params![board, season, &account],
        )?;
    }
    if count < SWEEP {
        sql.later("DELETE FROM board_seasons WHERE board = $1 AND season = $2", params![board, season])?;
    }
    Ok(Swept { rows: count as u64, is_more: true })
}
