//! Despawned entities that readers still remember.

use crate::limits::HISTORY_TICKS;
use std::collections::VecDeque;

/// Rows of recently despawned entities. Readers keep them as long as packets may build on them, so they count
/// against the lane limit for that time.
#[derive(Clone, Debug, Default)]
pub(super) struct Resting {
    /// By the tick of the despawn.
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

    /// Sets the current tick to `now`: older despawns no longer count.
    pub(super) fn forget(&mut self, now: u32) {
        while let Some((_, lanes)) = self.by_tick.pop_front_if(|(tick, _)| now - *tick >= HISTORY_TICKS) {
            self.lanes -= lanes;
        }
    }
}
