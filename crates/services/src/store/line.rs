//! The work queue of a thread: bounded in number and in bytes.

use super::error::StoreError;
use super::limits::Growth;
use super::sql::{Done, Sql};
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Work for a thread with a connection.
pub(super) trait Job: Send {
    /// Runs the job, and keeps its result. Can be repeated if its transaction failed. If `settles`, no
    /// statement is deferred when this returns.
    fn run(&mut self, sql: &mut dyn Sql, settles: bool) -> Done<()>;

    /// Its transaction was committed; `is_sure` is false if nobody knows that. Called in the order of the
    /// commits, before the answer, and whether or not a caller still waits.
    fn committed(&mut self, is_sure: bool);

    /// Sends the result to the caller.
    fn answer(self: Box<Self>);

    /// Sends a failure to the caller.
    fn fail(self: Box<Self>, error: StoreError);

    /// Whether a caller still waits for it.
    fn is_wanted(&self) -> bool;

    /// Its effect on the size of the store, and its bytes.
    fn weight(&self) -> (Growth, usize);
}

/// What the committing thread does with a result that is committed; the second argument is false if nobody
/// knows that.
pub(super) type Then<T> = Box<dyn FnOnce(&T, bool) + Send>;

/// A job with a waiting caller.
pub(super) struct PendingJob<T, F> {
    work: F,
    then: Option<Then<T>>,
    weight: (Growth, usize),
    made: Option<Result<T, StoreError>>,
    asker: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> PendingJob<T, F> {
    pub(super) fn new(weight: (Growth, usize), work: F) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (asker, answer) = oneshot::channel();
        (PendingJob { work, then: None, weight, made: None, asker }, answer)
    }

    /// Adds what the committing thread does after the commit. It must not block.
    pub(super) fn then(self, then: Option<Then<T>>) -> Self {
        PendingJob { then, ..self }
    }
}

impl<T, F> Job for PendingJob<T, F>
where
    T: Send,
    F: FnMut(&mut dyn Sql) -> Done<T> + Send,
{
    fn run(&mut self, sql: &mut dyn Sql, settles: bool) -> Done<()> {
        let done = (self.work)(sql);
        match if settles { done.and_then(|made| sql.settle().map(|()| made)) } else { done } {
            Ok(made) => {
                self.made = Some(Ok(made));
                Ok(())
            }
            Err(fault) => {
                if let super::sql::Fault::Refused(error) = &fault {
                    self.made = Some(Err(error.clone()));
                }
                Err(fault)
            }
        }
    }

    fn committed(&mut self, is_sure: bool) {
        if let (Some(then), Some(Ok(made))) = (self.then.take(), &self.made) {
            then(made, is_sure);
        }
    }

    fn answer(self: Box<Self>) {
        if let Some(made) = self.made {
            // The caller may be gone; then the answer is dropped.
            let _ = self.asker.send(made);
        }
    }

    fn fail(self: Box<Self>, error: StoreError) {
        let _ = self.asker.send(Err(error));
    }

    fn is_wanted(&self) -> bool {
        !self.asker.is_closed()
    }

    fn weight(&self) -> (Growth, usize) {
        self.weight
    }
}

/// Jobs in the order of their arrival.
pub(super) struct Line {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    jobs_max: usize,
    bytes_max: usize,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<(Box<dyn Job>, usize)>,
    bytes: usize,
    is_closed: bool,
}

impl Line {
    pub(super) fn new(jobs_max: usize, bytes_max: usize) -> Line {
        Line { waiting: Mutex::default(), changed: Condvar::new(), jobs_max, bytes_max }
    }

    /// Appends a job of this size, unless the queue is full or closed.
    pub(super) fn put(&self, job: Box<dyn Job>, bytes: usize) -> bool {
        let mut waiting = self.lock();
        let is_full =
            waiting.jobs.len() >= self.jobs_max || waiting.bytes.saturating_add(bytes) > self.bytes_max;
        if waiting.is_closed || is_full {
            return false;
        }
        waiting.bytes += bytes;
        waiting.jobs.push_back((job, bytes));
        drop(waiting);
        self.changed.notify_one();
        true
    }

    /// Waits for jobs. False once the queue is closed and empty.
    pub(super) fn wait(&self) -> bool {
        self.waited().is_some()
    }

    /// Waits for jobs, and takes up to `most` from the front. `None` once the queue is closed and empty.
    pub(super) fn take(&self, most: usize) -> Option<Vec<Box<dyn Job>>> {
        let mut waiting = self.waited()?;
        let count = waiting.jobs.len().min(most.max(1));
        let taken: Vec<(Box<dyn Job>, usize)> = waiting.jobs.drain(..count).collect();
        waiting.bytes -= taken.iter().map(|(_, bytes)| bytes).sum::<usize>();
        Some(taken.into_iter().map(|(job, _)| job).collect())
    }

    fn waited(&self) -> Option<MutexGuard<'_, Waiting>> {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        Some(waiting)
    }

    /// Accepts no more jobs. Queued jobs are still run.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// The number of queued jobs.
    pub(super) fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    /// A panic under the lock leaves nothing half done: each change is one statement.
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
