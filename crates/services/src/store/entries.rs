//! Entries of boards.
//!
//! Entries are found by their keys; their order is in memory. The committing thread reports each commit's
//! changes to the [`EntryWatch`], which keeps that order: after the commit, in the order of the commits, and
//! before the answer. If the callers' tasks reported them, an older score could replace a newer one.

use super::board_log;
use super::boards::{BoardNumber, begin_season, must_have_order};
use super::error::StoreError;
use super::ids::AccountId;
use super::limits::Growth;
use super::progress::marks;
use super::sql::{Done, Sql, TableRow, params};
use super::types::{Page, check_size};
use super::{Store, accounts, once};
use parlor_server::realm::Realm;
use parlor_social::limits::EXTRA_BYTES_MAX;
use parlor_social::{Board, Entry, Key, Refused, Season, Submission, Verdict};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of scores of one write.
pub const SCORES_MAX: usize = 100;
/// Number of entries that are loaded in one part.
pub const LOADED_MAX: usize = 10_000;

/// A score to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewScore {
    /// The board.
    pub board: BoardNumber,
    /// Its definition, which decides.
    pub rules: Arc<Board>,
    /// The season in which the score counts.
    pub season: Season,
    /// When that season ends, if the board tells its end.
    pub ends_ms: Option<u64>,
    /// The receipt that lets a player submit it, which is good once.
    pub receipt: Option<Receipt>,
    /// Whose it is.
    pub account: AccountId,
    /// The score.
    pub submission: Submission,
}

/// What is used up by a score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its id.
    pub id: String,
    /// When it is good no more, in milliseconds since 1970: it is remembered until then.
    pub expires_ms: u64,
}

impl Receipt {
    /// Its id among all that counts once.
    fn key(&self) -> String {
        format!("receipt/{}", self.id)
    }
}

/// Why a score is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreRefusal {
    /// The board does not take it.
    Rules(Refused),
    /// The season has all the players that it may have.
    Seats(u64),
    /// There is no such account, so nothing would delete its entry.
    Account,
    /// Its receipt was used for another score.
    Used,
}

/// The result of a write of scores: a verdict for each, or the first that was refused; then none is stored.
pub type Scored = Result<Vec<Verdict>, (usize, ScoreRefusal)>;

/// An entry with what its page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryDetails {
    /// The display name of its account, if the store has the account.
    pub name: Option<String>,
    /// Submissions that counted.
    pub tries: u64,
    /// What the player said with the score.
    pub extra: Option<Vec<u8>>,
}

/// An entry of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnEntry {
    /// The board's name.
    pub board: String,
    /// The board's definition.
    pub document: Vec<u8>,
    /// The season.
    pub season: Season,
    /// The entry.
    pub entry: Entry,
}

/// A commit's effect on an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryChange {
    /// The board.
    pub board: BoardNumber,
    /// The season.
    pub season: Season,
    /// Whose entry it is.
    pub account: AccountId,
    /// Its key from here on; `None` if it is deleted.
    pub key: Option<Key>,
    /// Counts the changes of the season in the order of their commits, where several nodes write.
    pub number: Option<u64>,
}

/// Is told of committed changes of entries, by the committing thread and in the order of the commits. It must
/// not block: all writes wait for it.
pub trait EntryWatch: Send + Sync {
    /// These were committed.
    fn committed(&self, changes: &[EntryChange]);
    /// Nobody knows whether these were committed.
    fn unsure(&self, changes: &[EntryChange]);
}

impl Store {
    /// Sets the watch that hears of committed changes of entries. Only the first call counts.
    pub fn watch_entries(&self, watch: Arc<dyn EntryWatch>) {
        // Another one is there already.
        let _ = self.inner.watch.set(watch);
    }

    /// Stores scores, all or none, and gives what each has made of its entry. Judges each by what is stored
    /// then, so concurrent scores of an account count one after the other.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for more than [`SCORES_MAX`], or too much beside a score.
    pub async fn submit_scores(&self, realm: &Realm, scores: Vec<NewScore>) -> Result<Scored, StoreError> {
        self.submit_as(Growth::Adds, realm, scores).await
    }

    /// The same for scores whose accounts have entries there already. They replace rows, so a store that takes
    /// no new ones takes them.
    ///
    /// # Errors
    ///
    /// As [`submit_scores`](Self::submit_scores).
    pub async fn submit_known_scores(
        &self,
        realm: &Realm,
        scores: Vec<NewScore>,
    ) -> Result<Scored, StoreError> {
        self.submit_as(Growth::Continues, realm, scores).await
    }

    async fn submit_as(
        &self,
        growth: Growth,
        realm: &Realm,
        scores: Vec<NewScore>,
    ) -> Result<Scored, StoreError> {
        check_size("the scores of one write", scores.len(), SCORES_MAX)?;
        let extra = |score: &NewScore| score.submission.extra.as_ref().map_or(0, Vec::len);
        for score in &scores {
            check_size("what is said with a score", extra(score), EXTRA_BYTES_MAX)?;
        }
        let (realm, bytes) = (realm.clone(), scores.iter().map(extra).sum());
        self.write_told(growth, bytes, move |sql| submit(sql, &realm, &scores)).await
    }

    /// Deletes the entry of an account.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is none.
    pub async fn remove_entry(
        &self,
        board: BoardNumber,
        season: Season,
        account: &AccountId,
    ) -> Result<(), StoreError> {
        let account = account.clone();
        self.write_told(Growth::Spares, 0, move |sql| {
            if delete_entry(sql, board, season, &account)? {
                let account = account.clone();
                let mut gone = [EntryChange { board, season, account, key: None, number: None }];
                board_log::append(sql, &mut gone)?;
                Ok(((), gone.into()))
            } else {
                Err(StoreError::Missing { what: "entry" }.into())
            }
        })
        .await
    }

    /// Deletes the entries of an account on all boards of the realm, and returns how many there were.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn remove_entries_of(&self, realm: &Realm, account: &AccountId) -> Result<usize, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        self.write_told(Growth::Spares, 0, move |sql| {
            let gone = erase(sql, &realm, &account)?;
            Ok((gone.len(), gone))
        })
        .await
    }

    /// A part of a season's entries, ordered by account: at most [`LOADED_MAX`], beyond `after`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn load_entries(
        &self,
        board: BoardNumber,
        season: Season,
        after: &str,
    ) -> Result<Vec<(String, Key)>, StoreError> {
        let after = after.to_owned();
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT account, score, sub, at_ms FROM board_entries
                 WHERE board = $1 AND season = $2 AND account > $3 ORDER BY account LIMIT $4",
                params![board.0, season.0, &after, LOADED_MAX],
            )?;
            rows.into_iter()
                .map(|mut row| {
                    let key = Key { score: row.signed(1)?, sub: row.signed(2)?, at_ms: row.number(3)? };
                    Ok((row.text(0)?, key))
                })
                .collect()
        })
        .await
    }

    /// An entry as it is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn entry(
        &self,
        board: BoardNumber,
        season: Season,
        account: &AccountId,
    ) -> Result<Option<Entry>, StoreError> {
        let account = account.clone();
        self.read(move |sql| entry(sql, board, season, &account)).await
    }

    /// What a page shows of these entries. `None` for those that are not stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn entry_details(
        &self,
        realm: &Realm,
        board: BoardNumber,
        season: Season,
        accounts: Vec<AccountId>,
    ) -> Result<Vec<Option<EntryDetails>>, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let mut details = |account: &AccountId| {
                let mut rows = sql.rows(
                    "SELECT tries, extra FROM board_entries WHERE board = $1 AND season = $2 AND account = $3",
                    params![board.0, season.0, account],
                )?;
                let Some(row) = rows.first_mut() else { return Ok(None) };
                let (tries, extra) = (row.number(0)?, row.optional_bytes(1)?);
                let name = accounts::account(sql, &realm, account)?.map(|account| account.display_name);
                Ok(Some(EntryDetails { name, tries, extra }))
            };
            accounts.iter().map(&mut details).collect()
        })
        .await
    }

    /// Entries of an account on all boards of the realm, ordered by board and season, beyond `after`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn entries_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        after: Option<(BoardNumber, Season)>,
        limit: usize,
    ) -> Result<Page<OwnEntry>, StoreError> {
        let (realm, account) = (realm.clone(), account.clone());
        let (board, season) = after.unwrap_or((BoardNumber(0), Season(0)));
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT e.score, e.sub, e.at_ms, e.tries, e.extra, e.id1, e.id2, e.id3, e.id4, e.board, e.season, b.name, b.document
                 FROM board_entries e JOIN boards b ON b.number = e.board
                 WHERE e.account = $1 AND (e.board, e.season) > ($2, $3) AND b.realm = $4 AND b.name IS NOT NULL
                 ORDER BY e.board, e.season LIMIT $5",
                params![&account, board.0, season.0, &realm, limit + 1],
            )?;
            let has_more = rows.len() > limit;
            let (mut items, mut last) = (Vec::new(), None);
            for mut row in rows.into_iter().take(limit) {
                let entry = read_entry(&mut row)?;
                let (number, season) = (row.number(9)?, row.number(10)?);
                last = Some(format!("{number}-{season}"));
                let (board, document) = (row.text(11)?, row.bytes(12)?);
                items.push(OwnEntry { board, document, season: Season(season), entry });
            }
            Ok(Page { items, next: last.filter(|_| has_more) })
        })
        .await
    }
}

fn read_entry(row: &mut TableRow) -> Done<Entry> {
    let key = Key { score: row.signed(0)?, sub: row.signed(1)?, at_ms: row.number(2)? };
    Ok(Entry { key, tries: row.number(3)?, extra: row.optional_bytes(4)?, recent: marks(row, 5)? })
}

fn entry(sql: &mut dyn Sql, board: BoardNumber, season: Season, account: &AccountId) -> Done<Option<Entry>> {
    let mut rows = sql.rows(
        "SELECT score, sub, at_ms, tries, extra, id1, id2, id3, id4 FROM board_entries
         WHERE board = $1 AND season = $2 AND account = $3",
        params![board.0, season.0, account],
    )?;
    rows.first_mut().map(read_entry).transpose()
}

/// An entry that a write has read, and what the write has made of it.
struct Judged<'a> {
    score: &'a NewScore,
    is_new: bool,
    entry: Entry,
    is_changed: bool,
}

/// Judges all before the first change: a refusal must not affect the other writes of the group.
pub(super) fn submit(
    sql: &mut dyn Sql,
    realm: &Realm,
    scores: &[NewScore],
) -> Done<(Scored, Vec<EntryChange>)> {
    let mut judged: BTreeMap<(BoardNumber, Season, &AccountId), Judged<'_>> = BTreeMap::new();
    let mut verdicts = Vec::with_capacity(scores.len());
    let mut seats: BTreeMap<(BoardNumber, Season), u64> = BTreeMap::new();
    let mut receipts = BTreeSet::new();
    for (at, score) in scores.iter().enumerate() {
        let (board, season) = (score.board, score.season);
        let key = (board, season, &score.account);
        let stored = match judged.get(&key) {
            Some(_) => None,
            None => entry(sql, board, season, &score.account)?,
        };
        let is_new = judged.get(&key).map_or(stored.is_none(), |judged| judged.is_new);
        let before = judged.get(&key).map(|judged| &judged.entry).or(stored.as_ref());
        if before.is_none() && accounts::account(sql, realm, &score.account)?.is_none() {
            return Ok((Err((at, ScoreRefusal::Account)), Vec::new()));
        }
        if let (Some(max), None) = (score.rules.seats, before) {
            let taken = match seats.get(&(board, season)) {
                Some(taken) => *taken,
                None => entries(sql, board, season)?,
            };
            if taken >= max {
                return Ok((Err((at, ScoreRefusal::Seats(max))), Vec::new()));
            }
            seats.insert((board, season), taken + 1);
        }
        let verdict = match score.rules.submit(before, &score.submission) {
            Ok(verdict) => verdict,
            Err(refused) => return Ok((Err((at, ScoreRefusal::Rules(refused))), Vec::new())),
        };
        if let Some(receipt) = score.receipt.as_ref().filter(|_| !verdict.again) {
            let id = receipt.key();
            if !receipts.insert(id.clone()) || once::is_used(sql, realm, &id)? {
                return Ok((Err((at, ScoreRefusal::Used)), Vec::new()));
            }
        }
        let was_changed = judged.get(&key).is_some_and(|judged| judged.is_changed);
        let is_changed = verdict.is_changed || was_changed;
        judged.insert(key, Judged { score, is_new, entry: verdict.entry.clone(), is_changed });
        verdicts.push(verdict);
    }
    for score in scores {
        if let Some(receipt) = &score.receipt {
            once::remember(sql, realm, &receipt.key(), (score.submission.at_ms, receipt.expires_ms))?;
        }
    }
    let mut changes = Vec::with_capacity(judged.len());
    for judged in judged.into_values().filter(|judged| judged.is_changed) {
        write(sql, &judged)?;
        let NewScore { board, season, account, .. } = judged.score;
        let key = Some(judged.entry.key);
        let (board, season, account) = (*board, *season, account.clone());
        changes.push(EntryChange { board, season, account, key, number: None });
    }
    board_log::append(sql, &mut changes)?;
    Ok((Ok(verdicts), changes))
}

/// Stores scores that the rules of a game award, and leaves out those that are refused: the game has ended all the
/// same.
pub(super) fn award(sql: &mut dyn Sql, realm: &Realm, awards: &[NewScore]) -> Done<Vec<EntryChange>> {
    let mut changes = Vec::new();
    for award in awards {
        let (scored, changed) = submit(sql, realm, core::slice::from_ref(award))?;
        if let Err((_, refusal)) = scored {
            tracing::debug!(account = %award.account, ?refusal, "an award was refused");
        }
        changes.extend(changed);
    }
    Ok(changes)
}

fn entries(sql: &mut dyn Sql, board: BoardNumber, season: Season) -> Done<u64> {
    let mut rows = sql.rows(
        "SELECT entries FROM board_seasons WHERE board = $1 AND season = $2",
        params![board.0, season.0],
    )?;
    rows.first_mut().map_or(Ok(0), |row| row.number(0))
}

fn write(sql: &mut dyn Sql, judged: &Judged<'_>) -> Done<()> {
    let NewScore { board, season, account, .. } = judged.score;
    let Entry { key, tries, extra, recent: [id1, id2, id3, id4] } = &judged.entry;
    if judged.is_new {
        sql.later(
            "INSERT INTO board_entries (board, season, account, score, sub, at_ms, tries, id1, id2, id3, id4, extra)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
            params![
                board.0, season.0, account, key.score, key.sub, key.at_ms, *tries, *id1, *id2, *id3, *id4,
                extra.as_ref()
            ],
        )?;
        return count_in(sql, judged.score);
    }
    sql.later(
        "UPDATE board_entries SET score = $1, sub = $2, at_ms = $3, tries = $4, id1 = $5, id2 = $6, id3 = $7, id4 = $8,
         extra = $9 WHERE board = $10 AND season = $11 AND account = $12",
        params![
            key.score, key.sub, key.at_ms, *tries, *id1, *id2, *id3, *id4, extra.as_ref(), board.0, season.0,
            account
        ],
    )
}

/// Counts a new entry. The first one begins the season, and ends those that the board no longer keeps.
fn count_in(sql: &mut dyn Sql, score: &NewScore) -> Done<()> {
    let NewScore { board, season, rules, ends_ms, .. } = score;
    if sql.is_shared() && entries(sql, *board, *season)? == 0 {
        must_have_order(sql, *board, rules)?;
    }
    let counted = sql.change(
        "UPDATE board_seasons SET entries = entries + 1 WHERE board = $1 AND season = $2",
        params![board.0, season.0],
    )?;
    if counted > 0 {
        return Ok(());
    }
    begin_season(sql, (*board, *season, *ends_ms), 1, rules)
}

/// Returns whether there was one.
fn delete_entry(sql: &mut dyn Sql, board: BoardNumber, season: Season, account: &AccountId) -> Done<bool> {
    let gone = sql.change(
        "DELETE FROM board_entries WHERE board = $1 AND season = $2 AND account = $3",
        params![board.0, season.0, account],
    )?;
    if gone > 0 {
        sql.later(
            "UPDATE board_seasons SET entries = entries - 1 WHERE board = $1 AND season = $2 AND entries > 0",
            params![board.0, season.0],
        )?;
    }
    Ok(gone > 0)
}

/// Deletes the entries of an account on all boards of a realm, by as many statements however many they are.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<Vec<EntryChange>> {
    let rows = sql.rows(
        "SELECT e.board, e.season FROM board_entries e JOIN boards b ON b.number = e.board
         WHERE e.account = $1 AND b.realm = $2",
        params![account, realm],
    )?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    sql.later(
        "UPDATE board_seasons SET entries = entries - 1 WHERE entries > 0 AND (board, season) IN
         (SELECT e.board, e.season FROM board_entries e JOIN boards b ON b.number = e.board
          WHERE e.account = $1 AND b.realm = $2)",
        params![account, realm],
    )?;
    sql.later(
        "DELETE FROM board_entries WHERE account = $1 AND board IN (SELECT number FROM boards WHERE realm = $2)",
        params![account, realm],
    )?;
    let change = |mut row: TableRow| {
        let (board, season) = (BoardNumber(row.number(0)?), Season(row.number(1)?));
        Ok(EntryChange { board, season, account: account.clone(), key: None, number: None })
    };
    let mut changes = rows.into_iter().map(change).collect::<Done<Vec<_>>>()?;
    board_log::append(sql, &mut changes)?;
    Ok(changes)
}
