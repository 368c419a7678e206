//! What readers still remember of entities that went.

use crate::limits::HISTORY_TICKS;
use std::collections::VecDeque;

/// Rows of entities that went lately. Readers remember them as long as packets may come that build on them,
/// so they count against the limit of lanes that long.
#[derive(Clone, Debug, Default)]
pub(super) struct Resting {
    /// By the tick at which they went.
    by_tick: VecDeque<(u32, usize)>,
    pub(super) lanes: usize,
}

impl Resting {
    pub(super) fn add(&mut self, tick: u32, lanes: usize) {
        self.lanes += lanes;
        match self.by_tick.back_mut() {
            Some((last, sum)) if *last == tick => *sum += lanes,
            _ => self.by_tick.push_back((tick, lanes)),
        }
    }

    /// It is tick `now`: what went long ago counts no more.
    pub(super) fn forget(&mut self, now: u32) {
        while let Some((_, lanes)) = self.by_tick.pop_front_if(|(tick, _)| now - *tick >= HISTORY_TICKS) {
            self.lanes -= lanes;
        }
    }
}
