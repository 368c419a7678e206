//! Hashes of the state at sequences that every member can name, to compare what members decoded.

use super::shared::Shared;
use std::collections::VecDeque;
use std::num::NonZeroU64;

/// Hashes that are kept.
const MARKS_MAX: usize = 256;

/// Keeps the hash of the state at every sequence that a number divides. A member that did not have all of the state at a
/// sequence, because something of it was lost or overtaken, has no hash for it.
#[derive(Debug)]
pub(super) struct Marks {
    every: Option<NonZeroU64>,
    kept: VecDeque<(u64, u64)>,
}

impl Marks {
    pub(super) fn new(every: Option<NonZeroU64>) -> Self {
        Marks { every, kept: VecDeque::new() }
    }

    /// Notes that the state has changed.
    pub(super) fn note(&mut self, state: &Shared) {
        let Some(every) = self.every else { return };
        if state.settled().is_none_or(|sequence| sequence % every != 0) {
            return;
        }
        let Some(mark) = state.hash() else { return };
        if self.kept.back().is_some_and(|(sequence, _)| *sequence == mark.0) {
            return;
        }
        self.kept.push_back(mark);
        if self.kept.len() > MARKS_MAX {
            self.kept.pop_front();
        }
    }

    /// Sequences and the hashes of the state at them, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.kept.iter().copied()
    }
}
