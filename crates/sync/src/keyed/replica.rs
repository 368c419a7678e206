//! The state as a reader holds it.

use super::{
    Change, Changes, Outcome, Source, StateSequence, Store, Update, UpdateError, UpdateHead, state_hash,
};
use crate::keyed::{Hints, KeyId};
use crate::value::Value;
use bytes::Bytes;
use parlor_proto::limits::STATE_VALUE_BYTES_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The values that a reader may see, at one sequence of the authority.
#[derive(Clone, Debug)]
pub struct Replica {
    store: Store,
    values: BTreeMap<KeyId, Arc<Value>>,
    /// Whether only a complete update will do, and whatever its sequence.
    fresh: bool,
    /// The last transfer, to tell its repetition from another one at the same sequence.
    transferred: Option<StateSequence>,
    counters: ReplicaCounters,
}

/// An update that a replica took in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// What it says beside its keys: sequence, source, tick, room time, input acks.
    pub head: UpdateHead,
    /// What it changed.
    pub changes: Changes,
}

/// What became of the updates that a replica was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaCounters {
    /// Taken in.
    pub taken: u64,
    /// Repeated, or overtaken by another.
    pub old: u64,
    /// Building on what is not there.
    pub gaps: u64,
    /// Breaking the protocol.
    pub refused: u64,
}

impl Default for Replica {
    fn default() -> Self {
        Replica::new()
    }
}

impl Replica {
    /// A replica that waits for its first, complete update.
    #[must_use]
    pub fn new() -> Self {
        Replica {
            store: Store::new(),
            values: BTreeMap::new(),
            fresh: true,
            transferred: None,
            counters: ReplicaCounters::default(),
        }
    }

    /// Takes in an update.
    ///
    /// # Errors
    /// [`UpdateError`] if it breaks the protocol. Nothing changed then.
    pub fn apply(&mut self, bytes: Bytes) -> Result<Outcome<Applied>, UpdateError> {
        let outcome = Update::decode(bytes).and_then(|update| self.take(update));
        let counter = match &outcome {
            Ok(Outcome::Taken(_)) => &mut self.counters.taken,
            Ok(Outcome::Old) => &mut self.counters.old,
            Ok(Outcome::Gap { .. }) => &mut self.counters.gaps,
            Err(_) => &mut self.counters.refused,
        };
        *counter += 1;
        outcome
    }

    /// The next complete update replaces everything, whatever its sequence; until then nothing is taken in and the
    /// values stay readable. For a change of authority behind which this replica may be ahead.
    pub fn restart(&mut self) {
        self.fresh = true;
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.shared(key).map(|value| &**value)
    }

    /// The value of a key, to keep without copying it.
    #[must_use]
    pub fn shared(&self, key: &str) -> Option<&Arc<Value>> {
        self.values.get(self.store.names.get(key)?)
    }

    /// How the value of a key moves between updates.
    #[must_use]
    pub fn hints(&self, key: &str) -> Option<&Hints> {
        Some(&self.store.entries[self.store.names.get(key)?].content.hints)
    }

    /// All keys with their values, in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Arc<Value>)> {
        self.store.names.iter().map(|(name, id)| (name, &self.values[id]))
    }

    /// Count of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The sequence whose state this is. [`StateSequence::EMPTY`] before the first update, and after
    /// [`restart`](Self::restart) until the next complete one.
    #[must_use]
    pub fn sequence(&self) -> StateSequence {
        if self.fresh { StateSequence::EMPTY } else { self.store.sequence() }
    }

    /// What became of the updates so far.
    #[must_use]
    pub fn counters(&self) -> ReplicaCounters {
        self.counters
    }

    /// The [`state_hash`] of the values as they were decoded. The authority has the same for this reader's view at
    /// this sequence; if not, the two have come apart.
    #[must_use]
    pub fn hash(&self) -> u64 {
        let encoded =
            |value: &Value| value.encode(STATE_VALUE_BYTES_MAX).expect("it was decoded from as much");
        state_hash(self.iter().map(|(name, value)| (&**name, encoded(value))))
    }

    /// The state to write on, for a reader that becomes the authority and was given everything.
    #[must_use]
    pub fn into_store(self) -> Store {
        self.store
    }

    fn take(&mut self, update: Update) -> Result<Outcome<Applied>, UpdateError> {
        let (sequence, source) = (update.head.sequence, update.head.source);
        let outcome = if self.fresh && source == Source::Delta {
            Outcome::Gap { baseline: update.head.baseline, own: StateSequence::EMPTY }
        } else if self.fresh || self.is_new_transfer(&update.head) {
            self.replace(&update)?
        } else {
            self.store.adopt(&update)?
        };
        let changes = match outcome {
            Outcome::Taken(changes) => changes,
            Outcome::Old => return Ok(Outcome::Old),
            Outcome::Gap { baseline, own } => return Ok(Outcome::Gap { baseline, own }),
        };
        if source == Source::Transfer {
            self.transferred = Some(sequence);
        }
        self.values.retain(|id, _| self.store.entries.contains_key(id));
        for entry in update.entries {
            if self.values.get(&entry.id).is_none_or(|value| **value != entry.value) {
                self.values.insert(entry.id, Arc::new(entry.value));
            }
        }
        Ok(Outcome::Taken(Applied { head: update.head, changes }))
    }

    fn is_new_transfer(&self, head: &UpdateHead) -> bool {
        let sequence = self.store.sequence();
        head.source == Source::Transfer
            && (head.sequence > sequence || head.sequence == sequence && self.transferred != Some(sequence))
    }

    /// Takes in a complete update as if nothing had been there. Numbers of keys may mean other keys than before.
    fn replace(&mut self, update: &Update) -> Result<Outcome<Changes>, UpdateError> {
        let mut store = Store::new();
        let outcome = store.adopt(update)?;
        if let Outcome::Taken(_) = outcome {
            let before = core::mem::replace(&mut self.store, store);
            self.fresh = false;
            return Ok(Outcome::Taken(self.changes_from(&before)));
        }
        Ok(outcome)
    }

    fn changes_from(&self, before: &Store) -> Changes {
        let mut gone: BTreeSet<Arc<str>> = before.names.keys().cloned().collect();
        let mut changed = Vec::new();
        for (id, entry) in &self.store.entries {
            let known = before.names.get(&entry.name).map(|known| &before.entries[known].content);
            gone.remove(&entry.name);
            let same = known
                .is_some_and(|it| it.encoded == entry.content.encoded && it.hints == entry.content.hints);
            if !same {
                changed.push(Change { id: *id, key: Arc::clone(&entry.name), created: known.is_none() });
            }
        }
        Changes { changed, removed: gone.into_iter().collect() }
    }
}

#[cfg(test)]
mod tests;
