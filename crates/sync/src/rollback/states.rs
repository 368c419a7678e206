//! Saved states, in a ring.

use super::config::Config;
use parlor_proto::Tick;

/// A ring with as many saved states as a session can request. Saving overwrites the oldest by
/// [`Clone::clone_from`], which reuses its memory: a state of vectors allocates nothing once the ring is
/// full.
#[derive(Clone, Debug)]
pub struct States<S> {
    slots: Vec<Option<(Tick, S)>>,
}

impl<S: Clone> States<S> {
    /// Creates an empty ring for a session.
    pub fn new(config: &Config) -> Self {
        // All states of the window, and the one being saved.
        States { slots: vec![None; config.window as usize + 2] }
    }

    fn slot(&self, tick: Tick) -> usize {
        tick.0 as usize % self.slots.len()
    }

    /// Saves a state before step `tick`.
    pub fn save(&mut self, tick: Tick, state: &S) {
        let slot = self.slot(tick);
        match &mut self.slots[slot] {
            Some((at, kept)) => {
                *at = tick;
                kept.clone_from(state);
            }
            empty => *empty = Some((tick, state.clone())),
        }
    }

    /// All states that are there.
    pub fn iter(&self) -> impl Iterator<Item = &S> {
        self.slots.iter().flatten().map(|(_, state)| state)
    }

    /// Returns the state before step `tick`, if it is still there.
    pub fn load(&self, tick: Tick) -> Option<&S> {
        self.slots[self.slot(tick)].as_ref().filter(|(at, _)| *at == tick).map(|(_, state)| state)
    }
}
