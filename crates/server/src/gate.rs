//! How many may be in at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Lets a limited number in, and counts those who found it full.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    places: Arc<Semaphore>,
    places_max: usize,
    turned_away: Arc<AtomicU64>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Pass(#[expect(dead_code, reason = "it is held, not used")] OwnedSemaphorePermit);

impl Gate {
    pub(crate) fn new(places_max: usize) -> Self {
        let places_max = places_max.min(Semaphore::MAX_PERMITS);
        Gate { places: Arc::new(Semaphore::new(places_max)), places_max, turned_away: Arc::default() }
    }

    /// A place, if one is free.
    pub(crate) fn enter(&self) -> Option<Pass> {
        let pass = Arc::clone(&self.places).try_acquire_owned().ok();
        if pass.is_none() {
            self.turn_away();
        }
        pass.map(Pass)
    }

    /// Counts somebody who is not let in for another reason than that it is full.
    pub(crate) fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets nobody in from here on.
    pub(crate) fn shut(&self) {
        self.places.close();
    }

    /// Places that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.places_max - self.places.available_permits()
    }

    /// How many were not let in.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_gate_counts_whom_it_turns_away_and_opens_again() {
        let gate = Gate::new(1);
        let pass = gate.enter().expect("it is empty");
        assert!(gate.enter().is_none());
        assert_eq!((gate.taken(), gate.turned_away()), (1, 1));
        drop(pass);
        assert!(gate.enter().is_some());
        gate.shut();
        assert!(gate.enter().is_none());
    }
}
