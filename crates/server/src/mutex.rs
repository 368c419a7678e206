//! Mutexes whose changes are single steps.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it. Its data stays consistent after a panic, because each change is one step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
