//! What is wrong with a network at this moment.

use parlor_impair::Impairment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is wrong with the network of all sockets that were given these conditions. It may change while they are open;
/// what is under way by then arrives as it was decided before. A clone is the same conditions.
#[derive(Clone, Debug)]
pub struct Conditions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    impairment: Mutex<Impairment>,
    /// How often it changed.
    version: AtomicU64,
    /// Sockets so far.
    flows: AtomicU64,
}

impl Conditions {
    /// Conditions to begin with.
    pub fn new(impairment: Impairment) -> Self {
        Conditions(Arc::new(Shared {
            impairment: Mutex::new(impairment),
            version: AtomicU64::new(0),
            flows: AtomicU64::new(0),
        }))
    }

    /// Changes them. Chance begins again with the seed, and outages are counted from this moment on.
    pub fn set(&self, impairment: Impairment) {
        *self.lock() = impairment;
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// What they are.
    pub fn get(&self) -> Impairment {
        *self.lock()
    }

    /// The number of one more socket or connection: each has its own chance of the one seed.
    pub(super) fn next_flow(&self) -> u64 {
        self.0.flows.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Impairment> {
        self.0.impairment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after conditions for changes.
#[derive(Debug)]
pub(super) struct Watch {
    conditions: Conditions,
    seen: u64,
}

impl Watch {
    pub(super) fn new(conditions: &Conditions) -> Self {
        // Read before the conditions are: a change in between is seen once more, and never missed.
        let seen = conditions.0.version.load(Ordering::Acquire);
        Watch { conditions: conditions.clone(), seen }
    }

    /// The conditions, if they changed since this was last asked.
    pub(super) fn news(&mut self) -> Option<Impairment> {
        let version = self.conditions.0.version.load(Ordering::Acquire);
        (version != self.seen).then(|| {
            self.seen = version;
            self.conditions.get()
        })
    }

    pub(super) fn get(&self) -> Impairment {
        self.conditions.get()
    }
}
