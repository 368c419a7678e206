//! Statistics and achievements of players. A write changes statistics, what they add up to, the boards that follow them
//! and the achievements that they unlock in one transaction.

use super::Store;
use super::accounts::must_exist;
use super::definitions::name;
use super::entries::{self, EntryChange, NewScore};
use super::error::StoreError;
use super::ids::AccountId;
use super::limits::Growth;
use super::sql::{Done, Sql, TableRow, params};
use super::types::{Page, check_size};
use parlor_server::realm::Realm;
use parlor_social::limits::IDS;
use parlor_social::{
    Goal, Name, Progress, ProgressRefused, ProgressWrite, Statistic, StatisticRefused, StatisticValue,
    StatisticWrite,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of statistics of one write.
pub const STATISTICS_MAX: usize = 32;
/// Days that totals are kept for.
pub const TOTAL_DAYS: u64 = 90;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The row of [`achievement_totals`] that counts players with any progress. No achievement has this name.
const PLAYERS: &str = "";

/// A statistic to write.
#[derive(Clone, Debug)]
pub struct NewStatistic {
    /// Its name.
    pub name: Name,
    /// Its definition.
    pub rules: Arc<Statistic>,
    /// What is written.
    pub write: StatisticWrite,
    /// The score that it is on the board that follows. The value after the write takes the place of the number.
    pub follows: Option<NewScore>,
    /// The achievements that it may unlock, and from which value on.
    pub unlocks: Vec<(Name, i64)>,
}

/// A statistic of a player.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnStatistic {
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: i64,
    /// When it was written, in milliseconds since 1970.
    pub changed_ms: u64,
}

/// What a write of statistics has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenStatistics {
    /// The value of each, in the order of the writes, and whether the write was known.
    pub values: Vec<(i64, bool)>,
    /// Achievements that were unlocked by it.
    pub unlocked: Vec<Name>,
}

/// The result of a write of statistics: all are stored, or the first that was refused; then none is.
pub type Written = Result<WrittenStatistics, (usize, StatisticRefused)>;

/// What the values of all players add up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// The day, counted from 1970; 0 for all time.
    pub day: u64,
    /// Players who have written.
    pub players: u64,
    /// Writes.
    pub writes: u64,
    /// Growth of all values together.
    pub total: i64,
}

impl Store {
    /// Writes statistics of a player, all or none.
    ///
    /// # Errors
    ///
    /// [`StoreError::Invalid`] for more than [`STATISTICS_MAX`]; [`StoreError::Missing`] without the account.
    pub async fn write_statistics(
        &self,
        realm: &Realm,
        account: &AccountId,
        writes: Vec<NewStatistic>,
        now_ms: u64,
    ) -> Result<Written, StoreError> {
        check_size("the statistics of one write", writes.len(), STATISTICS_MAX)?;
        let (realm, account) = (realm.clone(), account.clone());
        self.write_told(Growth::Adds, 0, move |sql| write(sql, (&realm, &account), &writes, now_ms)).await
    }

    /// Writes the progress of a player, and tells whether the achievement was unlocked by that.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] without the account.
    pub async fn write_progress(
        &self,
        realm: &Realm,
        account: &AccountId,
        (achievement, goal): (&Name, Goal),
        (write, id): (ProgressWrite, Option<u64>),
        now_ms: u64,
    ) -> Result<Result<(Progress, bool), ProgressRefused>, StoreError> {
        let (realm, account, achievement) = (realm.clone(), account.clone(), achievement.clone());
        self.write(0, move |sql| {
            must_exist(sql, &realm, &account)?;
            let player = (&realm, &account);
            let before = progress(sql, player, &achievement)?;
            let held = before.clone().unwrap_or_default();
            let (next, is_unlocked) = match held.write(&goal, write, id, now_ms) {
                Ok(written) => written,
                Err(refused) => return Ok(Err(refused)),
            };
            if before.as_ref() != Some(&next) {
                put_progress(sql, player, &achievement, &held, before.is_none(), &next)?;
            }
            Ok(Ok((next, is_unlocked)))
        })
        .await
    }

    /// Statistics of a player in the order of their names, beyond `after`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn statistics_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<OwnStatistic>, StoreError> {
        let (realm, account, after) = (realm.clone(), account.clone(), after.unwrap_or_default().to_owned());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT name, value, changed_ms FROM statistics WHERE realm = $1 AND account = $2 AND name > $3
                 ORDER BY name LIMIT $4",
                params![&realm, &account, &after, limit + 1],
            )?;
            let read = |mut row: TableRow| {
                Ok(OwnStatistic {
                    name: name(&mut row, 0)?,
                    value: row.signed(1)?,
                    changed_ms: row.number(2)?,
                })
            };
            page(rows, limit, read, |own| &own.name)
        })
        .await
    }

    /// A player's progress in the order of the achievements' names, beyond `after`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn progress_of(
        &self,
        realm: &Realm,
        account: &AccountId,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<(Name, Progress)>, StoreError> {
        let (realm, account, after) = (realm.clone(), account.clone(), after.unwrap_or_default().to_owned());
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT name, steps, unlocked_ms, id1, id2, id3, id4 FROM achievements
                 WHERE realm = $1 AND account = $2 AND name > $3 ORDER BY name LIMIT $4",
                params![&realm, &account, &after, limit + 1],
            )?;
            let read = |mut row: TableRow| Ok((name(&mut row, 0)?, read_progress(&mut row, 1)?));
            page(rows, limit, read, |(name, _)| name)
        })
        .await
    }

    /// Players who have unlocked each achievement, and under the empty name players with any progress.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn achievement_totals(&self, realm: &Realm) -> Result<BTreeMap<String, u64>, StoreError> {
        let realm = realm.clone();
        self.read(move |sql| {
            let rows = sql.rows(
                "SELECT name, players FROM achievement_totals WHERE realm = $1 ORDER BY name LIMIT $2",
                params![&realm, super::definitions::DEFINITIONS_MAX + 1],
            )?;
            rows.into_iter().map(|mut row| Ok((row.text(0)?, row.number(1)?))).collect()
        })
        .await
    }

    /// The total of a statistic for all time, and for each of the last `days` days on which there was a write, the
    /// newest first.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`].
    pub async fn statistic_totals(
        &self,
        realm: &Realm,
        statistic: &Name,
        days: u64,
        now_ms: u64,
    ) -> Result<(Total, Vec<Total>), StoreError> {
        let (realm, statistic) = (realm.clone(), statistic.clone());
        self.read(move |sql| {
            let since = day_of(now_ms).saturating_sub(days.min(TOTAL_DAYS)).saturating_add(1);
            let rows = sql.rows(
                "SELECT day, players, writes, total FROM statistic_totals
                 WHERE realm = $1 AND name = $2 AND day >= $3 ORDER BY day DESC LIMIT $4",
                params![&realm, statistic.as_str(), since, days.min(TOTAL_DAYS)],
            )?;
            let days = rows.into_iter().map(|mut row| read_total(&mut row)).collect::<Done<_>>()?;
            Ok((total(sql, &realm, &statistic, 0)?, days))
        })
        .await
    }
}

fn page<T>(
    rows: Vec<TableRow>,
    limit: usize,
    read: impl Fn(TableRow) -> Done<T>,
    name: impl Fn(&T) -> &Name,
) -> Done<Page<T>> {
    let is_cut = rows.len() > limit;
    let items: Vec<T> = rows.into_iter().take(limit).map(read).collect::<Done<_>>()?;
    let next = items.last().filter(|_| is_cut).map(|last| name(last).to_string());
    Ok(Page { items, next })
}

fn day_of(now_ms: u64) -> u64 {
    // Day 0 is all time.
    (now_ms / DAY_MS).max(1)
}

/// Reads the marks of the newest writes from their columns.
pub(super) fn marks(row: &mut TableRow, first: usize) -> Done<[u64; IDS]> {
    let mut recent = [0; IDS];
    for (at, mark) in recent.iter_mut().enumerate() {
        *mark = row.number(first + at)?;
    }
    Ok(recent)
}

/// Reads a progress from six columns.
fn read_progress(row: &mut TableRow, first: usize) -> Done<Progress> {
    Ok(Progress {
        steps: row.number(first)?,
        unlocked_ms: row.optional_number(first + 1)?,
        recent: marks(row, first + 2)?,
    })
}

fn read_total(row: &mut TableRow) -> Done<Total> {
    Ok(Total { day: row.number(0)?, players: row.number(1)?, writes: row.number(2)?, total: row.signed(3)? })
}

fn value(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    name: &Name,
) -> Done<Option<(StatisticValue, u64)>> {
    let mut rows = sql.rows(
        "SELECT value, changed_ms, id1, id2, id3, id4 FROM statistics
         WHERE realm = $1 AND account = $2 AND name = $3",
        params![realm, account, name.as_str()],
    )?;
    let read = |row: &mut TableRow| {
        let value = StatisticValue { value: row.signed(0)?, recent: marks(row, 2)? };
        Ok((value, row.number(1)?))
    };
    rows.first_mut().map(read).transpose()
}

fn progress(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    name: &Name,
) -> Done<Option<Progress>> {
    let mut rows = sql.rows(
        "SELECT steps, unlocked_ms, id1, id2, id3, id4 FROM achievements
         WHERE realm = $1 AND account = $2 AND name = $3",
        params![realm, account, name.as_str()],
    )?;
    rows.first_mut().map(|row| read_progress(row, 0)).transpose()
}

/// A statistic that a write has read, and what the write has made of it.
struct Judged<'a> {
    job: &'a NewStatistic,
    /// The day of the write before; `None` for a new statistic.
    day_before: Option<u64>,
    value: StatisticValue,
    growth: i64,
    writes: u64,
}

/// Judges all before the first change: a refusal must not affect the other writes of the group.
fn write(
    sql: &mut dyn Sql,
    player: (&Realm, &AccountId),
    writes: &[NewStatistic],
    now_ms: u64,
) -> Done<(Written, Vec<EntryChange>)> {
    must_exist(sql, player.0, player.1)?;
    let mut judged: BTreeMap<&Name, Judged<'_>> = BTreeMap::new();
    let mut values = Vec::with_capacity(writes.len());
    for (at, job) in writes.iter().enumerate() {
        let (held, day_before) = match judged.get(&job.name) {
            Some(judged) => (Some(judged.value.clone()), judged.day_before),
            None => value(sql, player, &job.name)?
                .map_or((None, None), |(value, changed_ms)| (Some(value), Some(day_of(changed_ms)))),
        };
        let written = match job.rules.write(held.as_ref(), job.write) {
            Ok(written) => written,
            Err(refused) => return Ok((Err((at, refused)), Vec::new())),
        };
        values.push((written.value.value, written.again));
        if written.is_changed {
            let entry = judged.entry(&job.name).or_insert(Judged {
                job,
                day_before,
                value: StatisticValue::default(),
                growth: 0,
                writes: 0,
            });
            entry.value = written.value;
            entry.growth = entry.growth.saturating_add(written.growth);
            entry.writes += 1;
        }
    }
    let mut outcome = WrittenStatistics { values, unlocked: Vec::new() };
    let mut changes = Vec::new();
    for judged in judged.into_values() {
        if judged.day_before.is_none() {
            count_player(sql, player)?;
        }
        put_value(sql, player, &judged, now_ms)?;
        if judged.job.rules.totals {
            add_up(sql, player.0, &judged, now_ms)?;
        }
        changes.append(&mut follow(sql, player.0, &judged)?);
        unlock(sql, player, &judged, now_ms, &mut outcome.unlocked)?;
    }
    Ok((Ok(outcome), changes))
}

fn put_value(
    sql: &mut dyn Sql,
    (realm, account): (&Realm, &AccountId),
    judged: &Judged<'_>,
    now_ms: u64,
) -> Done<()> {
    let StatisticValue { value, recent: [id1, id2, id3, id4] } = judged.value;
    sql.later(
        "INSERT INTO statistics (realm, account, name, value, changed_ms, id1, id2, id3, id4)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (realm, account, name) DO UPDATE
         SET value = $4, changed_ms = $5, id1 = $6, id2 = $7, id3 = $8, id4 = $9",
        params![realm, account, judged.job.name.as_str(), value, now_ms, id1, id2, id3, id4],
    )
}

fn total(sql: &mut dyn Sql, realm: &Realm, statistic: &Name, day: u64) -> Done<Total> {
    let mut rows = sql.rows(
        "SELECT day, players, writes, total FROM statistic_totals WHERE realm = $1 AND name = $2 AND day = $3",
        params![realm, statistic.as_str(), day],
    )?;
    rows.first_mut().map_or(Ok(Total { day, ..Total::default() }), read_total)
}

/// Adds a write to the totals of all time and of its day.
fn add_up(sql: &mut dyn Sql, realm: &Realm, judged: &Judged<'_>, now_ms: u64) -> Done<()> {
    let (name, today) = (&judged.job.name, day_of(now_ms));
    let is_new_day = judged.day_before.is_none_or(|before| before < today);
    for (day, is_first) in [(0, judged.day_before.is_none()), (today, is_new_day)] {
        let before = total(sql, realm, name, day)?;
        let players = before.players.saturating_add(is_first.into());
        let (writes, sum) =
            (before.writes.saturating_add(judged.writes), before.total.saturating_add(judged.growth));
        if before.writes == 0 && day > 0 {
            sql.later(
                "DELETE FROM statistic_totals WHERE realm = $1 AND name = $2 AND day > $3 AND day < $4",
                params![realm, name.as_str(), 0_u64, today.saturating_sub(TOTAL_DAYS)],
            )?;
        }
        sql.later(
            "INSERT INTO statistic_totals (realm, name, day, players, writes, total) VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (realm, name, day) DO UPDATE SET players = $4, writes = $5, total = $6",
            params![realm, name.as_str(), day, players, writes, sum],
        )?;
    }
    Ok(())
}

/// Submits the value to the board that follows. A board that does not take it stays as it is.
fn follow(sql: &mut dyn Sql, realm: &Realm, judged: &Judged<'_>) -> Done<Vec<EntryChange>> {
    let Some(mut score) = judged.job.follows.clone() else { return Ok(Vec::new()) };
    score.submission.score = judged.value.value;
    Ok(entries::submit(sql, realm, &[score])?.1)
}

fn unlock(
    sql: &mut dyn Sql,
    player: (&Realm, &AccountId),
    judged: &Judged<'_>,
    now_ms: u64,
    unlocked: &mut Vec<Name>,
) -> Done<()> {
    for (achievement, at) in &judged.job.unlocks {
        if !judged.job.rules.has_reached(judged.value.value, *at) {
            continue;
        }
        let before = progress(sql, player, achievement)?;
        let held = before.clone().unwrap_or_default();
        let (next, is_unlocked) = held.follow(true, now_ms);
        if is_unlocked {
            put_progress(sql, player, achievement, &held, before.is_none(), &next)?;
            unlocked.push(achievement.clone());
        }
    }
    Ok(())
}

fn put_progress(
    sql: &mut dyn Sql,
    player: (&Realm, &AccountId),
    achievement: &Name,
    before: &Progress,
    is_new: bool,
    next: &Progress,
) -> Done<()> {
    if is_new {
        count_player(sql, player)?;
    }
    let ((realm, account), [id1, id2, id3, id4]) = (player, next.recent);
    sql.later(
        "INSERT INTO achievements (realm, account, name, steps, unlocked_ms, id1, id2, id3, id4)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (realm, account, name) DO UPDATE
         SET steps = $4, unlocked_ms = $5, id1 = $6, id2 = $7, id3 = $8, id4 = $9",
        params![realm, account, achievement.as_str(), next.steps, next.unlocked_ms, id1, id2, id3, id4],
    )?;
    match (before.unlocked_ms, next.unlocked_ms) {
        (None, Some(_)) => count(sql, realm, achievement.as_str(), true),
        (Some(_), None) => count(sql, realm, achievement.as_str(), false),
        _ => Ok(()),
    }
}

/// Counts a player at its first statistic or achievement.
fn count_player(sql: &mut dyn Sql, (realm, account): (&Realm, &AccountId)) -> Done<()> {
    if has_any(sql, (realm, account))? { Ok(()) } else { count(sql, realm, PLAYERS, true) }
}

fn has_any(sql: &mut dyn Sql, (realm, account): (&Realm, &AccountId)) -> Done<bool> {
    let statistics = sql.rows(
        "SELECT name FROM statistics WHERE realm = $1 AND account = $2 LIMIT 1",
        params![realm, account],
    )?;
    if !statistics.is_empty() {
        return Ok(true);
    }
    let achievements = sql.rows(
        "SELECT name FROM achievements WHERE realm = $1 AND account = $2 LIMIT 1",
        params![realm, account],
    )?;
    Ok(!achievements.is_empty())
}

/// Counts one player more or less.
fn count(sql: &mut dyn Sql, realm: &Realm, name: &str, is_more: bool) -> Done<()> {
    if is_more {
        sql.later(
            "INSERT INTO achievement_totals (realm, name, players) VALUES ($1, $2, 1)
             ON CONFLICT (realm, name) DO UPDATE SET players = achievement_totals.players + 1",
            params![realm, name],
        )
    } else {
        sql.later(
            "UPDATE achievement_totals SET players = players - 1 WHERE realm = $1 AND name = $2 AND players > 0",
            params![realm, name],
        )
    }
}

/// Deletes the statistics, achievements and ratings of an account. Totals of statistics stay. Returns the number of
/// rows.
pub(super) fn erase(sql: &mut dyn Sql, realm: &Realm, account: &AccountId) -> Done<u64> {
    if has_any(sql, (realm, account))? {
        count(sql, realm, PLAYERS, false)?;
    }
    sql.later(
        "UPDATE achievement_totals SET players = players - 1 WHERE realm = $1 AND players > 0 AND name IN
         (SELECT name FROM achievements WHERE realm = $1 AND account = $2 AND unlocked_ms IS NOT NULL)",
        params![realm, account],
    )?;
    let achievements =
        sql.change("DELETE FROM achievements WHERE realm = $1 AND account = $2", params![realm, account])?;
    let ratings =
        sql.change("DELETE FROM ratings WHERE realm = $1 AND account = $2", params![realm, account])?;
    let statistics =
        sql.change("DELETE FROM statistics WHERE realm = $1 AND account = $2", params![realm, account])?;
    Ok(achievements + ratings + statistics)
}
