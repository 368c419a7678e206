//! The current network conditions.

use parlor_impair::Impairment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The network conditions of all sockets created with them. They may change while sockets are open; packets
/// in flight keep their fate. A clone shares the same conditions.
#[derive(Clone, Debug)]
pub struct Conditions(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    impairment: Mutex<Impairment>,
    /// The number of changes.
    version: AtomicU64,
    /// The number of sockets so far.
    flows: AtomicU64,
}

impl Conditions {
    /// Creates initial conditions.
    pub fn new(impairment: Impairment) -> Self {
        Conditions(Arc::new(Shared {
            impairment: Mutex::new(impairment),
            version: AtomicU64::new(0),
            flows: AtomicU64::new(0),
        }))
    }

    /// Sets the conditions. The random numbers restart from the seed, and outages count from now on.
    pub fn set(&self, impairment: Impairment) {
        *self.lock() = impairment;
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the conditions.
    pub fn get(&self) -> Impairment {
        *self.lock()
    }

    /// The number of the next socket or connection: each has its own random numbers from the seed.
    pub(super) fn next_flow(&self) -> u64 {
        self.0.flows.fetch_add(1, Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Impairment> {
        self.0.impairment.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Detects changes of conditions.
#[derive(Debug)]
pub(super) struct Watch {
    conditions: Conditions,
    seen: u64,
}

impl Watch {
    pub(super) fn new(conditions: &Conditions) -> Self {
        // Read before the conditions: a change in between is seen twice, and never missed.
        let seen = conditions.0.version.load(Ordering::Acquire);
        Watch { conditions: conditions.clone(), seen }
    }

    /// Returns the conditions, if they changed since the last call.
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
