//! The queues between a game and its background task: bounded in bytes, and never blocking the game.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Overhead charged for each item, so that empty ones are bounded as well.
const ITEM_BYTES: usize = 64;

/// A queue with one writer and one reader: one is the game, the other a task.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    bytes_max: usize,
    /// An item was added, or the writer is done.
    filled: Notify,
    /// An item was removed, or the reader is done.
    drained: Notify,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<(usize, T)>,
    bytes: usize,
    /// The writer adds no more items.
    is_ended: bool,
    /// The reader takes no more items.
    is_dropped: bool,
}

/// Why an item was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotPut {
    /// The queue is full.
    Full,
    /// One of the ends is done.
    Over,
}

impl<T> Queue<T> {
    /// `bytes_max` bounds the queued bytes. An empty queue accepts one item of any size.
    pub(super) fn new(bytes_max: usize) -> Self {
        let state = State { items: VecDeque::new(), bytes: 0, is_ended: false, is_dropped: false };
        Queue { state: Mutex::new(state), bytes_max, filled: Notify::new(), drained: Notify::new() }
    }

    /// Adds an item, if there is room.
    pub(super) fn try_put(&self, item: T, bytes: usize) -> Result<(), NotPut> {
        self.offer(item, bytes).map_err(|(why, _)| why)
    }

    /// Adds an item as soon as there is room. Returns false once the queue is over.
    pub(super) async fn put(&self, mut item: T, bytes: usize) -> bool {
        loop {
            match self.offer(item, bytes) {
                Ok(()) => return true,
                Err((NotPut::Over, _)) => return false,
                Err((NotPut::Full, back)) => item = back,
            }
            self.drained.notified().await;
        }
    }

    fn offer(&self, item: T, bytes: usize) -> Result<(), (NotPut, T)> {
        let mut state = self.lock();
        if state.is_ended || state.is_dropped {
            return Err((NotPut::Over, item));
        }
        let bytes = bytes.saturating_add(ITEM_BYTES);
        if !state.items.is_empty() && state.bytes.saturating_add(bytes) > self.bytes_max {
            return Err((NotPut::Full, item));
        }
        state.push(item, bytes);
        drop(state);
        self.filled.notify_one();
        Ok(())
    }

    /// Adds a last item, even to a full queue: each queue ends once.
    pub(super) fn end_with(&self, item: T) {
        let mut state = self.lock();
        if !state.is_ended && !state.is_dropped {
            state.push(item, ITEM_BYTES);
        }
        drop(state);
        self.end();
    }

    /// Marks the writer as done; queued items stay.
    pub(super) fn end(&self) {
        self.lock().is_ended = true;
        self.filled.notify_one();
        self.drained.notify_one();
    }

    /// Marks the reader as done; queued items are dropped.
    pub(super) fn drop_rest(&self) {
        let mut state = self.lock();
        state.is_dropped = true;
        let rest = std::mem::take(&mut state.items);
        state.bytes = 0;
        drop(state);
        drop(rest);
        self.drained.notify_one();
    }

    /// Takes the oldest item.
    pub(super) fn try_take(&self) -> Option<T> {
        let (taken, _) = self.look();
        taken
    }

    /// Takes the oldest item as soon as there is one. Returns `None` once the writer is done and the queue is
    /// empty.
    pub(super) async fn take(&self) -> Option<T> {
        loop {
            match self.look() {
                (Some(item), _) => return Some(item),
                (None, true) => return None,
                (None, false) => self.filled.notified().await,
            }
        }
    }

    /// Whether the writer is done and the queue is empty.
    pub(super) fn is_over(&self) -> bool {
        let state = self.lock();
        state.is_ended && state.items.is_empty()
    }

    /// Returns the oldest item, and whether the writer is done.
    fn look(&self) -> (Option<T>, bool) {
        let mut state = self.lock();
        let is_ended = state.is_ended;
        let taken = state.items.pop_front().map(|(bytes, item)| {
            state.bytes -= bytes;
            item
        });
        drop(state);
        if taken.is_some() {
            self.drained.notify_one();
        }
        (taken, is_ended)
    }

    /// While it is held, only the `drop` of an item can panic, and then the state is intact.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn push(&mut self, item: T, bytes: usize) {
        self.items.push_back((bytes, item));
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_takes_nothing_until_something_was_taken() {
        let queue = Queue::new(3 * ITEM_BYTES);
        assert_eq!(queue.try_put(1, ITEM_BYTES), Ok(()));
        assert_eq!(queue.try_put(2, 0), Ok(()));
        assert_eq!(queue.try_put(3, 0), Err(NotPut::Full));
        assert_eq!(queue.try_take(), Some(1));
        assert_eq!(queue.try_put(4, 0), Ok(()));
        queue.end_with(5);
        assert_eq!(queue.try_put(6, 0), Err(NotPut::Over));
        assert_eq!(
            [queue.try_take(), queue.try_take(), queue.try_take(), queue.try_take()],
            [Some(2), Some(4), Some(5), None]
        );
    }

    #[test]
    fn an_item_that_is_larger_than_the_queue_passes_alone() {
        let queue = Queue::new(10);
        assert_eq!(queue.try_put(1, 1_000), Ok(()));
        assert_eq!(queue.try_put(2, 0), Err(NotPut::Full));
        assert_eq!(queue.try_take(), Some(1));
        assert_eq!(queue.try_put(3, usize::MAX), Ok(()));
    }

    #[tokio::test]
    async fn whoever_waits_is_told_of_the_end() {
        let queue = Queue::new(10);
        let (put, ()) = tokio::join!(
            async {
                assert!(queue.put(1, 1).await);
                queue.put(2, 1).await
            },
            async { queue.drop_rest() }
        );
        assert!(!put, "nobody takes it");
        let queue = Queue::<u8>::new(10);
        let (taken, ()) = tokio::join!(queue.take(), async { queue.end() });
        assert_eq!(taken, None);
    }
}
