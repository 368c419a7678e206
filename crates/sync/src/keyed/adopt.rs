//! Taking in the updates of an authority, with its sequences and numbers of keys.

use super::store::{Content, Size};
use super::{Hints, KeyId, Source, StateSequence, Store, Update, UpdateEntry, UpdateError};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What became of an update that keeps to the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// It was taken in.
    Taken(T),
    /// It is no newer than what is there: repeated, or overtaken by another. Nothing changed.
    Old,
    /// It builds on a sequence that is not there. Nothing changed; a complete update is needed.
    Gap {
        /// What it builds on.
        baseline: StateSequence,
        /// What is there.
        own: StateSequence,
    },
}

/// What an update changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys that are new or have another value or other hints, by ascending number.
    pub changed: Vec<Change>,
    /// Keys that are gone and did not come back in the same update.
    pub removed: Vec<Arc<str>>,
}

/// A key that an update changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub id: KeyId,
    /// Its name.
    pub key: Arc<str>,
    /// Whether it is another thing than whatever had its name before: readers snap to it.
    pub created: bool,
}

impl Store {
    /// Takes in an update from whoever writes the state. The store then is at the update's sequence and its
    /// publishers go on from there, so that "state 300" means the same at the authority, here and at the members.
    /// Without audiences in the update all keys have [`Audience::All`](super::Audience::All).
    ///
    /// # Errors
    /// [`UpdateError`], and nothing changed.
    pub fn adopt(&mut self, update: &Update) -> Result<Outcome<Changes>, UpdateError> {
        let head = &update.head;
        if self.has_staged() {
            return Err(UpdateError::OwnChanges);
        }
        if head.sequence <= self.sequence {
            return Ok(Outcome::Old);
        }
        if head.baseline > self.sequence {
            return Ok(Outcome::Gap { baseline: head.baseline, own: self.sequence });
        }
        let plan = self.plan(update)?;

        self.sequence = head.sequence;
        (self.tick, self.server_time) = (head.tick, head.server_time);
        self.put_acks(head.input_acks.iter().copied());
        let mut removed: BTreeSet<Arc<str>> = BTreeSet::new();
        for id in plan.gone {
            removed.insert(Arc::clone(&self.entries[&id].name));
            self.bury(id);
        }
        let mut changed = Vec::new();
        for (id, name, content) in plan.puts {
            let before = self.entries.get(&id);
            let shown = before
                .is_none_or(|it| it.content.encoded != content.encoded || it.content.hints != content.hints);
            if shown {
                changed.push(Change { id, key: Arc::clone(&name), created: before.is_none() });
            }
            removed.remove(&name);
            self.put(id, &name, content);
        }
        self.size = plan.size;
        self.next_key = plan.next_key;
        Ok(Outcome::Taken(Changes { changed, removed: removed.into_iter().collect() }))
    }

    /// Checks all of an update and works out what it does, before anything is done.
    fn plan(&self, update: &Update) -> Result<Plan, UpdateError> {
        let mut plan = Plan {
            gone: self.gone(update),
            puts: Vec::new(),
            size: self.size,
            next_key: self.next_key.max(update.head.next_key.unwrap_or(KeyId(0))),
        };
        for id in &plan.gone {
            let entry = &self.entries[id];
            plan.size = plan.size.without(&entry.name, &entry.content);
        }
        let mut declared: BTreeSet<&str> = BTreeSet::new();
        for entry in &update.entries {
            let before = self.entries.get(&entry.id);
            let name = self.name_of(entry, update)?;
            if entry.declared.is_some() {
                let taken = self.names.get(&name).filter(|id| **id != entry.id);
                let taken = taken.is_some_and(|id| plan.gone.binary_search(id).is_err());
                if taken || !declared.insert(entry.declared.as_ref().map_or("", |it| it.name.as_str())) {
                    return Err(UpdateError::NameTaken { id: entry.id });
                }
            }
            let content = content(entry, before.map(|it| &it.content));
            plan.size = plan.size.with(&name, &content);
            if let Some(before) = before {
                plan.size = plan.size.without(&name, &before.content);
            }
            plan.next_key = plan.next_key.max(KeyId(entry.id.0 + 1));
            if before.is_none_or(|it| it.content != content) {
                plan.puts.push((entry.id, name, content));
            }
        }
        if !plan.size.is_allowed() {
            return Err(UpdateError::TooMuch { keys: plan.size.keys, bytes: plan.size.bytes });
        }
        Ok(plan)
    }

    /// Keys that are there and go, ascending.
    fn gone(&self, update: &Update) -> Vec<KeyId> {
        let listed = |id: &KeyId| update.entries.binary_search_by_key(id, |entry| entry.id).is_ok();
        if update.head.source == Source::Delta {
            update.removed.iter().copied().filter(|id| self.entries.contains_key(id)).collect()
        } else {
            self.entries.keys().copied().filter(|id| !listed(id)).collect()
        }
    }

    fn name_of(&self, entry: &UpdateEntry, update: &Update) -> Result<Arc<str>, UpdateError> {
        let id = entry.id;
        match (self.entries.get(&id), &entry.declared) {
            (Some(known), None) => Ok(Arc::clone(&known.name)),
            (Some(known), Some(declared)) if *known.name == *declared.name => Ok(Arc::clone(&known.name)),
            (Some(_), Some(_)) => Err(UpdateError::Renamed { id }),
            (None, None) => Err(UpdateError::Undeclared { id }),
            // Whoever sees everything has seen all keys that are older than `next_key`: an unknown one among them
            // has gone. A member may be shown a key that it had lost sight of.
            (None, Some(_)) if update.head.next_key.is_some() && id < self.next_key => {
                Err(UpdateError::Reused { id })
            }
            (None, Some(declared)) => Ok(declared.name.as_str().into()),
        }
    }
}

struct Plan {
    gone: Vec<KeyId>,
    puts: Vec<(KeyId, Arc<str>, Content)>,
    size: Size,
    next_key: KeyId,
}

fn content(entry: &UpdateEntry, before: Option<&Content>) -> Content {
    let hints = match (&entry.declared, before) {
        (Some(declared), _) => declared.hints.clone(),
        (None, Some(before)) => before.hints.clone(),
        (None, None) => Hints::none(),
    };
    let encoded = match before {
        Some(before) if before.encoded == entry.encoded => before.encoded.clone(),
        // A copy, because the slice would keep the whole update alive for as long as the key stands.
        _ => Bytes::copy_from_slice(&entry.encoded),
    };
    Content { encoded, audience: entry.audience.clone().unwrap_or_default(), hints }
}

#[cfg(test)]
mod tests;
