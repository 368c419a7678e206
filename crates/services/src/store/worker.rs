//! The threads with connections: one that commits, and some that read.
//!
//! The committing thread takes all waiting writes, runs them in one transaction, commits, and only then
//! answers them. So one sync of the disk serves many writes.
//!
//! Nearly every rejected write fails before it has changed anything; then the others of its group continue.
//! If one fails later, the transaction is rolled back and all are repeated, each in its own savepoint. A
//! savepoint for each write would cost SQLite a copy of every changed page, and PostgreSQL two more round
//! trips.

use super::error::StoreError;
use super::limits::{Gauge, Size};
use super::line::{Job, Line};
use super::sql::{BatchResult, BatchStatement, Done, Fault, Param, RowPage, Sql};
use super::webhooks::Outboxes;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of writes of one transaction, so that its duration is bounded.
const GROUP_MAX: usize = 512;
/// Maximum number of tries of a write that another server interferes with.
const TRIES_MAX: u32 = 8;

/// Opens a connection.
pub(super) type Connect = Box<dyn Fn() -> Done<Box<dyn Sql>> + Send>;

/// Commit-thread counters.
pub(super) struct Pulse {
    born: Instant,
    /// Start of the current commit, in microseconds since `born` and never 0. 0 between groups.
    began_us: AtomicU64,
    pub(super) groups: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
    /// Total duration of all groups.
    pub(super) busy_us: AtomicU64,
    /// Time of the last failed group, unless one was committed since. 0 for none.
    failed_us: AtomicU64,
    /// Counts commits of which nobody knows, from 1: a server before this one may have left one under way.
    unsure: AtomicU64,
    /// How many of them are known to be over.
    settled: AtomicU64,
    pub(super) size: Size,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse {
            born: Instant::now(),
            began_us: AtomicU64::new(0),
            groups: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            busy_us: AtomicU64::new(0),
            failed_us: AtomicU64::new(0),
            unsure: AtomicU64::new(1),
            settled: AtomicU64::new(0),
            size: Size::default(),
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn begin(&self) {
        self.began_us.store(self.now_us(), Ordering::Relaxed);
    }

    fn end(&self) {
        let began_us = self.began_us.swap(0, Ordering::Relaxed);
        self.busy_us.fetch_add(self.now_us().saturating_sub(began_us), Ordering::Relaxed);
    }

    /// The number of commits of which nobody knows, if some may be under way.
    pub(super) fn unsettled(&self) -> Option<u64> {
        let unsure = self.unsure.load(Ordering::SeqCst);
        (self.settled.load(Ordering::SeqCst) < unsure).then_some(unsure)
    }

    /// So many of them are over.
    pub(super) fn settle(&self, count: u64) {
        self.settled.fetch_max(count, Ordering::SeqCst);
    }

    /// Whether the last group failed within this time.
    pub(super) fn has_failed_within(&self, time: Duration) -> bool {
        let failed_us = self.failed_us.load(Ordering::Relaxed);
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        failed_us != 0 && self.now_us().saturating_sub(failed_us) <= time_us
    }

    /// Whether the current group has taken longer than this.
    pub(super) fn is_stalled(&self, limit: Duration) -> bool {
        let began_us = self.began_us.load(Ordering::Relaxed);
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        began_us != 0 && self.now_us().saturating_sub(began_us) > limit_us
    }
}

/// A thread's connection. It is opened on demand, and opened again after a fault of the database.
pub(super) struct Connection {
    connect: Connect,
    open: Option<Box<dyn Sql>>,
}

impl Connection {
    pub(super) fn new(connect: Connect) -> Connection {
        Connection { connect, open: None }
    }

    pub(super) fn get(&mut self) -> Done<&mut dyn Sql> {
        let open = match self.open.take() {
            Some(open) => open,
            None => (self.connect)()?,
        };
        Ok(self.open.insert(open).as_mut())
    }

    fn drop_it(&mut self) {
        self.open = None;
    }

    /// Gives up a turn that no transaction had.
    fn give_up_turn(&mut self) {
        if self.open.as_mut().is_some_and(|open| open.give_up_turn().is_err()) {
            self.drop_it();
        }
    }
}

/// Commits waiting writes, until the queue is closed.
pub(super) fn commit_all(
    line: &Line,
    pulse: &Arc<Pulse>,
    connection: &mut Connection,
    mut gauge: Gauge,
    retry_after: Duration,
) {
    while line.wait() {
        pulse.begin();
        // While other nodes have their turns, more writes come to the group.
        let turn = connection.get().and_then(Sql::take_turn);
        let group = line.take(GROUP_MAX).unwrap_or_default();
        // A caller that gave up knows that the result is uncertain. A write that was not begun is skipped.
        let wanted: Vec<Box<dyn Job>> = group.into_iter().filter(|job| job.is_wanted()).collect();
        match turn {
            Ok(()) => {
                let admitted = admit(wanted, pulse, connection, &mut gauge, retry_after);
                commit_group(admitted, pulse, connection, retry_after);
                connection.give_up_turn();
            }
            Err(fault) => {
                connection.drop_it();
                fail(wanted, fault, pulse, retry_after);
            }
        }
        pulse.end();
    }
}

/// Refuses the writes that exceed the store's limit, and returns the others.
fn admit(
    group: Vec<Box<dyn Job>>,
    pulse: &Pulse,
    connection: &mut Connection,
    gauge: &mut Gauge,
    retry_after: Duration,
) -> Vec<Box<dyn Job>> {
    let mut admitted = Vec::with_capacity(group.len());
    let mut group = group.into_iter();
    while let Some(job) = group.next() {
        match connection.get().and_then(|sql| gauge.judge(sql, &pulse.size, job.weight())) {
            Ok(Ok(())) => admitted.push(job),
            Ok(Err(full)) => job.fail(full),
            Err(fault) => {
                connection.drop_it();
                admitted.push(job);
                admitted.extend(group);
                fail(admitted, fault, pulse, retry_after);
                return Vec::new();
            }
        }
    }
    admitted
}

fn commit_group(
    mut group: Vec<Box<dyn Job>>,
    pulse: &Pulse,
    connection: &mut Connection,
    retry_after: Duration,
) {
    if group.is_empty() {
        return;
    }
    match try_group(&mut group, connection) {
        Ok(has_changed) => {
            // A transaction that only read does not show whether the database accepts writes.
            if has_changed {
                pulse.failed_us.store(0, Ordering::Relaxed);
            }
            pulse.groups.fetch_add(1, Ordering::Relaxed);
            pulse.writes.fetch_add(group.len() as u64, Ordering::Relaxed);
            group.iter_mut().for_each(|job| job.committed(true));
            group.into_iter().for_each(Job::answer);
        }
        Err(Fault::Again(_)) if group.len() > 1 => {
            for job in group {
                commit_group(vec![job], pulse, connection, retry_after);
            }
        }
        Err(fault) => fail(group, fault, pulse, retry_after),
    }
}

fn fail(mut group: Vec<Box<dyn Job>>, fault: Fault, pulse: &Pulse, retry_after: Duration) {
    pulse.failed.fetch_add(group.len() as u64, Ordering::Relaxed);
    if matches!(fault, Fault::Storage(_) | Fault::Unsure(_)) {
        pulse.failed_us.store(pulse.now_us(), Ordering::Relaxed);
    }
    if matches!(fault, Fault::Unsure(_)) {
        pulse.unsure.fetch_add(1, Ordering::SeqCst);
        group.iter_mut().for_each(|job| job.committed(false));
    }
    let error = match fault {
        Fault::Refused(error) => error,
        Fault::Storage(reason) | Fault::Again(reason) | Fault::Unsure(reason) => {
            unavailable(&reason, retry_after)
        }
    };
    tracing::warn!(writes = group.len(), %error, "a group of writes was not stored");
    for job in group {
        job.fail(error.clone());
    }
}

pub(super) fn unavailable(reason: &str, retry_after: Duration) -> StoreError {
    let retry_after_ms = u64::try_from(retry_after.as_millis()).unwrap_or(u64::MAX);
    StoreError::Unavailable { retry_after_ms, reason: reason.to_owned() }
}

/// Runs and commits a group. Returns whether that changed anything, as far as known.
fn try_group(group: &mut [Box<dyn Job>], connection: &mut Connection) -> Done<bool> {
    let mut tries = 1;
    loop {
        let done = connection.get().and_then(|sql| {
            if let TransactionResult::Through { has_changed } = transaction(group, sql, Writes::Together)? {
                return Ok(has_changed);
            }
            transaction(group, sql, Writes::Apart).map(|_| true)
        });
        match done {
            Err(Fault::Again(_)) if group.len() == 1 && tries < TRIES_MAX => tries += 1,
            Err(fault) => {
                // The state of the connection's transaction is unknown: closing the connection ends it for
                // sure.
                if !matches!(fault, Fault::Again(_)) {
                    connection.drop_it();
                }
                return Err(fault);
            }
            Ok(has_changed) => return Ok(has_changed),
        }
    }
}

/// How a group's writes share their transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// If a write is refused after it changed something, the transaction is rolled back.
    Together,
    /// Each write has its own savepoint.
    Apart,
}

/// The result of a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TransactionResult {
    /// Committed.
    Through { has_changed: bool },
    /// Rolled back: the writes must run apart.
    ToNothing,
}

/// Runs and commits a group.
fn transaction(group: &mut [Box<dyn Job>], sql: &mut dyn Sql, writes: Writes) -> Done<TransactionResult> {
    sql.step("BEGIN")?;
    let done = match writes {
        Writes::Together => run_together(group, sql),
        Writes::Apart => run_apart(group, sql).map(|()| TransactionResult::Through { has_changed: true }),
    };
    let done = done.and_then(|result| {
        if result != TransactionResult::ToNothing {
            sql.step("COMMIT").map_err(|fault| match fault {
                Fault::Storage(reason) => Fault::Unsure(reason),
                other => other,
            })?;
        }
        Ok(result)
    });
    if !matches!(done, Ok(TransactionResult::Through { .. })) {
        // SQLite may have rolled back by itself; then there is nothing to roll back.
        let _ = sql.step("ROLLBACK");
    }
    done
}

fn run_together(group: &mut [Box<dyn Job>], sql: &mut dyn Sql) -> Done<TransactionResult> {
    let mut has_changed = false;
    for job in group {
        let mut watched = Watched { sql: &mut *sql, has_changed: false };
        match job.run(&mut watched, false) {
            Ok(()) => {}
            Err(Fault::Refused(_)) if !watched.has_changed => {}
            Err(Fault::Refused(_)) => return Ok(TransactionResult::ToNothing),
            Err(fault) => return Err(fault),
        }
        has_changed |= watched.has_changed;
    }
    match sql.settle() {
        Ok(()) => Ok(TransactionResult::Through { has_changed }),
        Err(Fault::Refused(_)) => Ok(TransactionResult::ToNothing),
        Err(fault) => Err(fault),
    }
}

fn run_apart(group: &mut [Box<dyn Job>], sql: &mut dyn Sql) -> Done<()> {
    for job in group {
        sql.step("SAVEPOINT job")?;
        match job.run(sql, true) {
            Ok(()) => sql.step("RELEASE SAVEPOINT job")?,
            Err(Fault::Refused(_)) => {
                sql.step("ROLLBACK TO SAVEPOINT job")?;
                sql.step("RELEASE SAVEPOINT job")?;
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// Detects whether a write has changed anything, as far as known: a failed statement may have.
struct Watched<'a> {
    sql: &'a mut dyn Sql,
    has_changed: bool,
}

impl Watched<'_> {
    fn note<T>(&mut self, done: Done<T>, has_changed: impl FnOnce(&T) -> bool) -> Done<T> {
        self.has_changed |= done.as_ref().map_or(true, has_changed);
        done
    }
}

impl Sql for Watched<'_> {
    fn change(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<u64> {
        let done = self.sql.change(statement, params);
        self.note(done, |rows| *rows > 0)
    }

    fn later(&mut self, statement: &'static str, params: &[Param<'_>]) -> Done<()> {
        let done = self.sql.later(statement, params);
        self.note(done, |()| true)
    }

    fn settle(&mut self) -> Done<()> {
        let done = self.sql.settle();
        self.note(done, |()| false)
    }

    fn rows_within(
        &mut self,
        statement: &'static str,
        params: &[Param<'_>],
        bytes_max: usize,
    ) -> Done<RowPage> {
        let done = self.sql.rows_within(statement, params, bytes_max);
        self.note(done, |_| !only_reads(statement))
    }

    fn batch(&mut self, asked: &[BatchStatement<'_>]) -> Done<Vec<BatchResult>> {
        let done = self.sql.batch(asked);
        let changed = |(asked, answer): (&BatchStatement<'_>, &BatchResult)| {
            if asked.is_change { answer.changed > 0 } else { !only_reads(asked.statement) }
        };
        self.note(done, |answers| asked.iter().zip(answers).any(changed))
    }

    fn control(&mut self, statements: &str) -> Done<()> {
        self.has_changed = true;
        self.sql.control(statements)
    }

    fn is_shared(&self) -> bool {
        self.sql.is_shared()
    }

    fn await_others(&mut self) -> Done<()> {
        self.sql.await_others()
    }

    fn outboxes(&mut self) -> &mut Outboxes {
        self.sql.outboxes()
    }

    fn step(&mut self, statement: &'static str) -> Done<()> {
        self.sql.step(statement)
    }

    fn clock_us(&mut self) -> Done<u64> {
        self.sql.clock_us()
    }

    fn used_bytes(&mut self) -> Done<u64> {
        self.sql.used_bytes()
    }
}

fn only_reads(statement: &str) -> bool {
    statement.starts_with("SELECT ")
}

/// Runs waiting reads, until the queue is closed.
pub(super) fn read_all(line: &Line, connection: &mut Connection, retry_after: Duration) {
    while let Some(jobs) = line.take(1) {
        for mut job in jobs.into_iter().filter(|job| job.is_wanted()) {
            match connection.get().and_then(|sql| job.run(sql, true)) {
                Ok(()) | Err(Fault::Refused(_)) => job.answer(),
                Err(Fault::Storage(reason) | Fault::Again(reason) | Fault::Unsure(reason)) => {
                    connection.drop_it();
                    job.fail(unavailable(&reason, retry_after));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::limits::Growth;
    use super::super::line::PendingJob;
    use super::super::sql::params;
    use super::super::{Durability, sqlite};
    use super::*;

    const WEIGHT: (Growth, usize) = (Growth::Adds, 0);

    /// Puts a secret, and is then refused or not.
    fn put(name: &'static str, refused: Option<StoreError>) -> impl FnMut(&mut dyn Sql) -> Done<u64> + Send {
        move |sql| {
            let made = sql.change("INSERT INTO names (name) VALUES ($1)", params![name])?;
            refused.clone().map_or(Ok(made), |refused| Err(refused.into()))
        }
    }

    /// A store with an empty table of names.
    fn names() -> (tempfile::TempDir, sqlite::Owned, Connection) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("parlor.db");
        let owned = sqlite::own(&path).unwrap();
        sqlite::writer(&path, Durability::Full)
            .unwrap()
            .control("CREATE TABLE names (name TEXT PRIMARY KEY)")
            .unwrap();
        let connection = Connection::new(Box::new(move || sqlite::writer(&path, Durability::Full)));
        (folder, owned, connection)
    }

    #[test]
    fn what_is_refused_leaves_nothing_and_the_others_of_its_group_are_done_once() {
        let (_folder, owned, mut connection) = names();
        let refusal = || StoreError::Missing { what: "friend" };
        let (first, first_done) = PendingJob::new(WEIGHT, put("ada", None));
        let (late, late_done) = PendingJob::new(WEIGHT, put("bob", Some(refusal())));
        // A statement that fails, because the name exists.
        let (twice, twice_done) = PendingJob::new(WEIGHT, put("ada", None));
        let (early, early_done) =
            PendingJob::new(WEIGHT, move |_: &mut dyn Sql| Done::<u64>::Err(refusal().into()));
        let (last, last_done) = PendingJob::new(WEIGHT, put("cyd", None));
        let group: Vec<Box<dyn Job>> =
            vec![Box::new(first), Box::new(late), Box::new(twice), Box::new(early), Box::new(last)];
        commit_group(group, &Pulse::new(), &mut connection, Duration::from_secs(1));
        assert_eq!((first_done.blocking_recv(), last_done.blocking_recv()), (Ok(Ok(1)), Ok(Ok(1))));
        for refused in [late_done, early_done] {
            assert_eq!(refused.blocking_recv(), Ok(Err(refusal())));
        }
        assert!(matches!(twice_done.blocking_recv(), Ok(Err(StoreError::Damaged(_)))));
        let mut rows = connection.get().unwrap().rows("SELECT name FROM names ORDER BY name", &[]).unwrap();
        let names: Vec<String> = rows.iter_mut().map(|row| row.text(0).unwrap()).collect();
        assert_eq!(names, ["ada", "cyd"]);
        drop(owned);
    }

    #[test]
    fn t3_whoever_keeps_an_order_is_told_in_the_order_of_the_commits_before_the_answers() {
        let (_folder, owned, mut connection) = names();
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut answers = Vec::new();
        let mut group: Vec<Box<dyn Job>> = Vec::new();
        for (name, refused) in
            [("ada", None), ("bob", Some(StoreError::Missing { what: "friend" })), ("cyd", None)]
        {
            let (job, answer) = PendingJob::new(WEIGHT, put(name, refused));
            let told = std::sync::Arc::clone(&told);
            group.push(Box::new(job.then(Some(Box::new(move |_: &u64, is_sure| {
                told.lock().unwrap().push((name, is_sure));
            })))));
            answers.push(answer);
        }
        // Nobody waits for the last one. Its change is reported all the same.
        drop(answers.pop());
        commit_group(group, &Pulse::new(), &mut connection, Duration::from_secs(1));
        assert_eq!(*told.lock().unwrap(), [("ada", true), ("cyd", true)]);

        // A commit of unknown outcome is reported as such. A write that failed before is not reported.
        for (fault, expected) in
            [(Fault::Unsure("gone".into()), vec![("dan", false)]), (Fault::Storage("full".into()), vec![])]
        {
            told.lock().unwrap().clear();
            let (job, _answer) = PendingJob::new(WEIGHT, put("dan", None));
            let seen = std::sync::Arc::clone(&told);
            let mut job = job.then(Some(Box::new(move |_: &u64, is_sure| {
                seen.lock().unwrap().push(("dan", is_sure));
            })));
            let sql = connection.get().unwrap();
            sql.step("BEGIN").unwrap();
            job.run(sql, true).unwrap();
            sql.step("ROLLBACK").unwrap();
            fail(vec![Box::new(job)], fault, &Pulse::new(), Duration::from_secs(1));
            assert_eq!(*told.lock().unwrap(), expected);
        }
        drop(owned);
    }

    #[test]
    fn a_write_that_changes_nothing_does_not_say_that_the_database_takes_writes() {
        let (_folder, owned, mut connection) = names();
        let pulse = Pulse::new();
        pulse.failed_us.store(pulse.now_us(), Ordering::Relaxed);
        let looks = |sql: &mut dyn Sql| sql.rows("SELECT name FROM names", &[]).map(|rows| rows.len() as u64);
        let (looking, looked) = PendingJob::new(WEIGHT, looks);
        commit_group(vec![Box::new(looking)], &pulse, &mut connection, Duration::from_secs(1));
        assert_eq!(looked.blocking_recv(), Ok(Ok(0)));
        assert!(pulse.has_failed_within(Duration::from_secs(60)));
        let (putting, done) = PendingJob::new(WEIGHT, put("ada", None));
        commit_group(vec![Box::new(putting)], &pulse, &mut connection, Duration::from_secs(1));
        assert_eq!(done.blocking_recv(), Ok(Ok(1)));
        assert!(!pulse.has_failed_within(Duration::from_secs(60)));
        drop(owned);
    }
}
