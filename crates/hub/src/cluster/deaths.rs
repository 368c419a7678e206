//! Which nodes are dead, as their locks and leases in the store say.

use super::tenure::Incarnation;
use super::timing::Timing;
use core::time::Duration;
use std::collections::BTreeMap;

/// A node as a look at the store found it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Looked<N> {
    /// The node.
    pub node: N,
    /// Its incarnation in its row.
    pub incarnation: Incarnation,
    /// Whether the store holds its lock.
    pub has_lock: bool,
    /// Whether its lease is over on the store's clock.
    pub is_over: bool,
}

/// Finds dead nodes. A node is dead if its lease is over, or if its lock is missing at two looks, [`Timing::death`]
/// apart and not much more. A node's lock is missing for a moment when its connection is replaced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Deaths<N: Ord> {
    timing: Timing,
    /// How long locks were missing that are missing.
    missing: BTreeMap<(N, Incarnation), Duration>,
}

impl<N: Ord + Clone> Deaths<N> {
    /// Returns the watch of a node that has looked at nothing yet.
    pub fn new(timing: Timing) -> Self {
        Deaths { timing, missing: BTreeMap::new() }
    }

    /// Handles a look at all other nodes that are not gone, and returns those that are dead. The look was sent
    /// `elapsed` after the last one was answered. The node that looks [may judge](super::tenure::Tenure::may_judge);
    /// otherwise [`forget`](Self::forget) what it saw.
    pub fn look(
        &mut self,
        elapsed: Duration,
        nodes: impl IntoIterator<Item = Looked<N>>,
    ) -> Vec<(N, Incarnation)> {
        let mut before = core::mem::take(&mut self.missing);
        if elapsed >= self.timing.looks_apart() {
            // In between the lock may have been there.
            before.clear();
        }
        let mut dead = Vec::new();
        for Looked { node, incarnation, has_lock, is_over } in nodes {
            let key = (node, incarnation);
            let missing = before.get(&key).map(|time| time.saturating_add(elapsed).min(self.timing.death));
            if is_over || !has_lock && missing.is_some_and(|time| time >= self.timing.death) {
                dead.push(key);
            } else if !has_lock {
                self.missing.insert(key, missing.unwrap_or_default());
            }
        }
        dead
    }

    /// Forgets all looks: the store was restarted, or this node may not judge.
    pub fn forget(&mut self) {
        self.missing.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALIVE: Looked<&str> =
        Looked { node: "a", incarnation: Incarnation(1), has_lock: true, is_over: false };

    fn after(deaths: &mut Deaths<&'static str>, ms: u64, looked: Looked<&'static str>) -> bool {
        !deaths.look(Duration::from_millis(ms), [looked]).is_empty()
    }

    #[test]
    fn a_lock_that_is_missing_at_two_looks_is_that_of_a_dead_node() {
        let missing = Looked { has_lock: false, ..ALIVE };
        let mut deaths = Deaths::new(Timing::default());
        assert!(!after(&mut deaths, 250, missing.clone()));
        assert!(!after(&mut deaths, 249, missing.clone()), "the two looks are too close");
        assert!(after(&mut deaths, 1, missing));
    }

    #[test]
    fn a_lock_that_comes_back_and_another_incarnation_begin_anew() {
        let missing = Looked { has_lock: false, ..ALIVE };
        let mut deaths = Deaths::new(Timing::default());
        assert!(!after(&mut deaths, 0, missing.clone()));
        assert!(!after(&mut deaths, 250, ALIVE));
        assert!(!after(&mut deaths, 250, missing.clone()));
        let next = Looked { incarnation: Incarnation(2), ..missing.clone() };
        assert!(!after(&mut deaths, 250, next.clone()));
        deaths.forget();
        assert!(!after(&mut deaths, 250, next));
    }

    #[test]
    fn looks_that_are_too_far_apart_say_nothing_together() {
        let missing = Looked { has_lock: false, ..ALIVE };
        let mut deaths = Deaths::new(Timing::default());
        assert!(!after(&mut deaths, 250, missing.clone()));
        assert!(!after(&mut deaths, 500, missing.clone()));
        assert!(after(&mut deaths, 499, missing));
    }

    #[test]
    fn a_node_whose_lease_is_over_is_dead_although_it_has_its_lock() {
        assert!(after(&mut Deaths::new(Timing::default()), 0, Looked { is_over: true, ..ALIVE }));
    }
}
