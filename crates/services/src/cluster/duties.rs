//! What one node at a time does for all: periodic work on the whole store, by locks of it.
//!
//! Each duty is harmless if two nodes do it at once. Its lock lasts longer than the pause between two turns of the
//! work, so one node keeps it. After that node's death another one has it within that time.

use crate::store::{Store, StoreError};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

/// Periodic work on the whole store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Deletes what nobody uses.
    Lives,
    /// Deletes old kept matches.
    Matches,
    /// Tells the ends of seasons.
    Seasons,
}

impl Duty {
    fn name(self) -> &'static str {
        match self {
            Duty::Lives => "duty/lives",
            Duty::Matches => "duty/matches",
            Duty::Seasons => "duty/seasons",
        }
    }

    /// How long a node has it after it was last at it.
    fn time(self) -> Duration {
        Duration::from_secs(match self {
            Duty::Lives => 660,
            Duty::Matches => 90,
            Duty::Seasons => 15,
        })
    }
}

/// This process among those that hold locks.
#[derive(Debug)]
pub(super) struct Holder {
    name: String,
    taken: AtomicU64,
}

impl Holder {
    /// `name` is unlike that of any other process, also of an earlier one of this node.
    pub(super) fn new(name: String) -> Self {
        Holder { name, taken: AtomicU64::new(0) }
    }

    /// Takes a duty or keeps it. Returns whether this node has it.
    pub(super) async fn has(&self, store: &Store, duty: Duty) -> Result<bool, StoreError> {
        store.take_lock(duty.name(), &self.name, duty.time()).await
    }

    /// A name for one lock of one task of this process.
    pub(super) fn of_task(&self) -> String {
        format!("{}/{}", self.name, self.taken.fetch_add(1, Ordering::Relaxed))
    }
}
