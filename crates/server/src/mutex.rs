//! Mutexes whose every change is one step.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks it. What it guards stays right if somebody panicked while it was held, because each change is one step.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
