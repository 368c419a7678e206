//! The threads that have connections: one that commits, and some that read.
//!
//! The committing thread takes all writes that wait, does each in a savepoint of one transaction, commits, and only then
//! answers all of them. A disk that needs a millisecond for a sync is asked once for many writes.

use super::error::StoreError;
use super::line::{Job, Line};
use super::sql::{Done, Fault, Sql};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Writes that one transaction takes at most, so that its length has a bound.
const GROUP_MAX: usize = 512;
/// How often a write is tried that another server is in the way of.
const TRIES_MAX: u32 = 8;

/// Makes a connection.
pub(super) type Connect = Box<dyn Fn() -> Done<Box<dyn Sql>> + Send>;

/// What a committing thread did, and since when it is at it.
pub(super) struct Pulse {
    born: Instant,
    /// When the group that is being committed began, in microseconds since `born` and never 0. 0 between groups.
    began_us: AtomicU64,
    pub(super) groups: AtomicU64,
    pub(super) writes: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) refused: AtomicU64,
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
        }
    }

    fn now_us(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_micros()).unwrap_or(u64::MAX).max(1)
    }

    fn begin(&self) {
        self.began_us.store(self.now_us(), Ordering::Relaxed);
    }

    fn end(&self) {
        self.began_us.store(0, Ordering::Relaxed);
    }

    /// Whether a group has been under way for longer than this.
    pub(super) fn is_stalled(&self, limit: Duration) -> bool {
        let began_us = self.began_us.load(Ordering::Relaxed);
        let limit_us = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
        began_us != 0 && self.now_us().saturating_sub(began_us) > limit_us
    }
}

/// A thread's connection. It is made when it is needed, and made again after a fault of the database.
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
}

/// Commits what waits, until the line is closed.
pub(super) fn commit_all(
    line: &Line,
    pulse: &Arc<Pulse>,
    connection: &mut Connection,
    retry_after: Duration,
) {
    while let Some(group) = line.take(GROUP_MAX) {
        pulse.begin();
        // Whoever gave up waiting was told that nothing is sure; what was not begun is better not done.
        let wanted: Vec<Box<dyn Job>> = group.into_iter().filter(|job| job.is_wanted()).collect();
        commit_group(wanted, pulse, connection, retry_after);
        pulse.end();
    }
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
        Ok(()) => {
            pulse.groups.fetch_add(1, Ordering::Relaxed);
            pulse.writes.fetch_add(group.len() as u64, Ordering::Relaxed);
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

fn fail(group: Vec<Box<dyn Job>>, fault: Fault, pulse: &Pulse, retry_after: Duration) {
    pulse.failed.fetch_add(group.len() as u64, Ordering::Relaxed);
    let error = match fault {
        Fault::Refused(error) => error,
        Fault::Storage(reason) | Fault::Again(reason) => unavailable(&reason, retry_after),
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

fn try_group(group: &mut [Box<dyn Job>], connection: &mut Connection) -> Done<()> {
    let mut tries = 1;
    loop {
        let done = connection.get().and_then(|sql| transaction(group, sql));
        match done {
            Err(Fault::Again(_)) if group.len() == 1 && tries < TRIES_MAX => tries += 1,
            Err(fault) => {
                // What the connection's transaction has come to is not known: closing it ends it for sure.
                if !matches!(fault, Fault::Again(_)) {
                    connection.drop_it();
                }
                return Err(fault);
            }
            Ok(()) => return Ok(()),
        }
    }
}

fn transaction(group: &mut [Box<dyn Job>], sql: &mut dyn Sql) -> Done<()> {
    sql.step("BEGIN")?;
    let done = run_jobs(group, sql).and_then(|()| sql.step("COMMIT"));
    if done.is_err() {
        // SQLite may have rolled back by itself, and then there is nothing to roll back.
        let _ = sql.step("ROLLBACK");
    }
    done
}

fn run_jobs(group: &mut [Box<dyn Job>], sql: &mut dyn Sql) -> Done<()> {
    for job in group {
        sql.step("SAVEPOINT job")?;
        match job.run(sql) {
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

/// Reads what is asked for, until the line is closed.
pub(super) fn read_all(line: &Line, connection: &mut Connection, retry_after: Duration) {
    while let Some(jobs) = line.take(1) {
        for mut job in jobs.into_iter().filter(|job| job.is_wanted()) {
            match connection.get().and_then(|sql| job.run(sql)) {
                Ok(()) | Err(Fault::Refused(_)) => job.answer(),
                Err(Fault::Storage(reason) | Fault::Again(reason)) => {
                    connection.drop_it();
                    job.fail(unavailable(&reason, retry_after));
                }
            }
        }
    }
}
