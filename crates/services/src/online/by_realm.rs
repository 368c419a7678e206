//! Pure machines in memory, one for each realm in which there is something.

use core::time::Duration;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use std::collections::HashMap;
use std::sync::Mutex;

/// A machine of a realm.
pub(super) trait Machine: Default {
    /// Whether it holds nothing, and may be dropped.
    fn is_empty(&self) -> bool;
    /// When it has something to do.
    fn next_timeout(&self) -> Option<Duration>;
}

/// The machines of all realms. An empty one takes no memory.
pub(super) struct ByRealm<M>(Mutex<HashMap<Realm, M>>);

impl<M> Default for ByRealm<M> {
    fn default() -> Self {
        ByRealm(Mutex::default())
    }
}

impl<M: Machine> ByRealm<M> {
    /// Works on a realm's machine, under the lock of all: what `work` tells comes in the order of the changes.
    pub(super) fn with<T>(&self, realm: &Realm, work: impl FnOnce(&mut M) -> T) -> T {
        let mut machines = lock(&self.0);
        let machine = machines.entry(realm.clone()).or_default();
        let done = work(machine);
        if machine.is_empty() {
            machines.remove(realm);
        }
        done
    }

    /// Reads a realm's machine; `None` if there is nothing in the realm.
    pub(super) fn read<T>(&self, realm: &Realm, read: impl FnOnce(&M) -> T) -> Option<T> {
        lock(&self.0).get(realm).map(read)
    }

    /// Drops what is in a realm.
    pub(super) fn drop_realm(&self, realm: &Realm) {
        lock(&self.0).remove(realm);
    }

    /// Whether there is something in a realm.
    pub(super) fn has(&self, realm: &Realm) -> bool {
        lock(&self.0).contains_key(realm)
    }

    /// Realms with something to do by now.
    pub(super) fn due(&self, now: Duration) -> Vec<Realm> {
        let machines = lock(&self.0);
        let is_due = |machine: &M| machine.next_timeout().is_some_and(|at| at <= now);
        machines.iter().filter(|(_, machine)| is_due(machine)).map(|(realm, _)| realm.clone()).collect()
    }

    /// When the first of all has something to do.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        lock(&self.0).values().filter_map(M::next_timeout).min()
    }
}
