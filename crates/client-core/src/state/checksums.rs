//! Hashes of the state at agreed sequences, to compare what members decoded.

use super::SharedState;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Hashes that are kept.
const CHECKSUMS_MAX: usize = 256;

/// Keeps the hash of the state at every sequence that a number divides. A member that lacked part of the
/// state at a sequence, through loss or reordering, has no hash for it.
#[derive(Debug)]
pub(crate) struct Checksums {
    every: Option<NonZeroU64>,
    kept: VecDeque<(u64, u64)>,
}

impl Checksums {
    pub(crate) fn new(every: Option<NonZeroU64>) -> Self {
        Checksums { every, kept: VecDeque::new() }
    }

    /// Notes that the state has changed.
    pub(crate) fn note(&mut self, state: &SharedState) {
        let Some(every) = self.every else { return };
        if state.settled().is_none_or(|sequence| sequence % every != 0) {
            return;
        }
        let Some(mark) = state.hash() else { return };
        if self.kept.back().is_some_and(|(sequence, _)| *sequence == mark.0) {
            return;
        }
        self.kept.push_back(mark);
        if self.kept.len() > CHECKSUMS_MAX {
            self.kept.pop_front();
        }
    }

    /// Sequences and the hashes of the state at them, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.kept.iter().copied()
    }
}
