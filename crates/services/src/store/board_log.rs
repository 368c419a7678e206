//! The log of boards, from which a node of a cluster learns what other nodes have written. A server alone writes
//! nothing to it.
//!
//! Each transaction that changes entries first changes the row of their season, which counts the changes. So the numbers
//! of a season's changes are in the order of the commits and without a gap: whoever has read a change has read all
//! before it. Numbers of one sequence for all seasons would become visible out of order.

use super::Store;
use super::boards::BoardNumber;
use super::entries::EntryChange;
use super::error::StoreError;
use super::ids::AccountId;
use super::sql::{BatchStatement, Done, Sql, TableRow, params};
use core::time::Duration;
use parlor_social::{Key, Season};
use std::collections::BTreeMap;

/// Maximum number of changes that are read at once.
const READ_MAX: usize = 1_000;
/// Maximum number of rows that one transaction deletes.
const SWEEP: usize = 5_000;

/// Changes of a season, as they were logged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedChanges {
    /// How many changes there were before these were read; `None` if the season has no row.
    pub logged: Option<u64>,
    /// Their numbers and accounts, in their order, each with the entry as it is when this is read.
    pub changes: Vec<(u64, AccountId, Option<Key>)>,
    /// Whether more of them may follow.
    pub is_cut: bool,
}

impl Store {
    /// The changes of a season beyond a number, the oldest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn logged_changes(
        &self,
        board: BoardNumber,
        season: Season,
        after: u64,
    ) -> Result<LoggedChanges, StoreError> {
        self.read(move |sql| {
            // In this order: a change that comes between both is only among the second.
            let mut answers = sql.batch(&[
                BatchStatement::rows(
                    "SELECT logged FROM board_seasons WHERE board = $1 AND season = $2",
                    params![board.0, season.0],
                ),
                BatchStatement::rows(
                    "SELECT l.number, l.account, e.score, e.sub, e.at_ms FROM board_log l
                     LEFT JOIN board_entries e ON e.board = l.board AND e.season = l.season AND e.account = l.account
                     WHERE l.board = $1 AND l.season = $2 AND l.number > $3 ORDER BY l.number LIMIT $4",
                    params![board.0, season.0, after, READ_MAX],
                ),
            ])?
            .into_iter();
            let mut rows = || answers.next().map(|answer| answer.rows).unwrap_or_default();
            let logged = rows().first_mut().map(|row| row.number(0)).transpose()?;
            let changes = rows().into_iter().map(read).collect::<Done<Vec<_>>>()?;
            Ok(LoggedChanges { logged, is_cut: changes.len() == READ_MAX, changes })
        })
        .await
    }

    /// Deletes changes that were logged longer ago than this, by the database's clock. Returns whether there may be
    /// more.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn sweep_board_log(&self, older_than: Duration) -> Result<bool, StoreError> {
        let age_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        self.write_sparing(move |sql| {
            // Several nodes may do this at the same time: each deletes what the others do not.
            let gone = sql.change(
                "DELETE FROM board_log WHERE (board, season, number) IN
                 (SELECT board, season, number FROM board_log
                  WHERE at_ms < CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) - CAST($1 AS BIGINT)
                  ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)",
                params![age_ms, SWEEP],
            )?;
            Ok(gone == SWEEP as u64)
        })
        .await
    }
}

fn read(mut row: TableRow) -> Done<(u64, AccountId, Option<Key>)> {
    let (number, account) = (row.number(0)?, AccountId::new(&row.text(1)?)?);
    let key = match row.optional_number(4)? {
        Some(at_ms) => Some(Key { score: row.signed(2)?, sub: row.signed(3)?, at_ms }),
        None => None,
    };
    Ok((number, account, key))
}

/// Logs changes of entries, and gives each its number.
pub(super) fn append(sql: &mut dyn Sql, changes: &mut [EntryChange]) -> Done<()> {
    if !sql.is_shared() {
        return Ok(());
    }
    let mut seasons: BTreeMap<(BoardNumber, Season), Vec<&mut EntryChange>> = BTreeMap::new();
    for change in changes {
        seasons.entry((change.board, change.season)).or_default().push(change);
    }
    for ((board, season), changes) in seasons {
        let mut logged = sql.rows(
            "UPDATE board_seasons SET logged = logged + $1 WHERE board = $2 AND season = $3 RETURNING logged",
            params![changes.len(), board.0, season.0],
        )?;
        // A season whose row is gone has no ranks anywhere.
        let Some(row) = logged.first_mut() else { continue };
        let before = row.number(0)?.saturating_sub(changes.len() as u64);
        for (number, change) in (before + 1..).zip(changes) {
            change.number = Some(number);
            sql.later(
                "INSERT INTO board_log (board, season, number, account, at_ms)
                 VALUES ($1, $2, $3, $4, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT))",
                params![board.0, season.0, number, &change.account],
            )?;
        }
    }
    Ok(())
}
