//! Keyed state on a reader's side.

use super::{Hints, lanes_report, state_hash};
use crate::inputs::Report;
use crate::schema::{INPUT_ACK, KEYED_KEY};
use crate::value::Value;
use crate::world::{Applied, World};
use bytes::Bytes;
use parlor_proto::OrderedMap;
use parlor_proto::limits::{STATE_KEY_BYTES_MAX, STATE_VALUE_BYTES_MAX};
use parlor_proto::{EntityId, Tick};
use std::sync::Arc;

/// The keys of a world that this process reads, decoded.
#[derive(Clone, Debug, Default)]
pub struct KeyReader {
    held: OrderedMap<EntityId, Held>,
    /// By name, oldest first: the last one counts. There is more than one while the removal of an older one
    /// has not arrived.
    names: OrderedMap<Arc<str>, Vec<EntityId>>,
    /// The entity with this reader's input acknowledgment, and its report.
    ack: Option<(EntityId, Report)>,
    unreadable: u64,
}

/// The changes of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Keys that are new or changed their value or hints, in ascending order.
    pub changed: Vec<Change>,
    /// Removed keys, in ascending order.
    pub removed: Vec<Arc<str>>,
    /// Whether another input of this reader was used.
    pub acknowledged: bool,
}

/// A changed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name.
    pub key: Arc<str>,
    /// The tick at whose end it was committed with this value.
    pub tick: Tick,
    /// Whether it is a new key, not the previous one of its name: readers then snap to its value.
    pub created: bool,
}

/// A key as it is shown.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Its value.
    pub value: &'a Arc<Value>,
    /// Its interpolation hints.
    pub hints: &'a Hints,
}

#[derive(Clone, Debug)]
struct Held {
    name: Arc<str>,
    encoded: Bytes,
    value: Arc<Value>,
    hints: Hints,
    tick: Tick,
}

impl Changes {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty() && !self.acknowledged
    }
}

/// For each affected name, what was shown before an update.
type Before = OrderedMap<Arc<str>, Option<(EntityId, Held)>>;

impl KeyReader {
    /// Creates a reader of an empty world.
    pub fn new() -> Self {
        KeyReader::default()
    }

    /// Takes in the changes of an update in `world`.
    pub fn observe(&mut self, world: &World, applied: &Applied) -> Changes {
        let (mut before, mut changes) = (Before::new(), Changes::default());
        for entity in &applied.despawned {
            self.forget(*entity, &mut before);
        }
        let wanted = KEYED_KEY.bit() | INPUT_ACK.bit();
        for (entity, _) in applied.changed.iter().filter(|(_, mask)| mask & wanted != 0) {
            let entity = *entity;
            let mask = world.mask(entity).unwrap_or(0);
            if mask & KEYED_KEY.bit() != 0 {
                self.read_key(world, entity, &mut before);
            } else {
                self.forget(entity, &mut before);
            }
            if mask & INPUT_ACK.bit() != 0 {
                changes.acknowledged |= self.read_ack(world, entity);
            }
        }
        for (key, before) in before {
            let after = self.shown_held(&key);
            match (before, after) {
                (None, None) => {}
                (Some(_), None) => changes.removed.push(key),
                (before, Some((entity, held))) => {
                    let known = before.filter(|(known, _)| *known == entity);
                    let is_same = known
                        .as_ref()
                        .is_some_and(|(_, it)| it.encoded == held.encoded && it.hints == held.hints);
                    if !is_same {
                        changes.changed.push(Change { key, tick: held.tick, created: known.is_none() });
                    }
                }
            }
        }
        changes
    }

    /// Returns a key.
    pub fn shown(&self, key: &str) -> Option<Shown<'_>> {
        let (_, held) = self.shown_held(key)?;
        Some(Shown { value: &held.value, hints: &held.hints })
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.shown(key).map(|shown| &**shown.value)
    }

    /// Iterates over all keys and values, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<Value>)> {
        self.names.iter().map(|(name, entities)| {
            let newest = entities.last().expect("a name without entities is removed");
            (name, &self.held[newest].value)
        })
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the newest tick whose input was used, for the reading member.
    pub fn input_ack(&self) -> Option<Tick> {
        self.input_report().map(|report| report.tick)
    }

    /// Returns the authority's report about the reading member's inputs.
    pub fn input_report(&self) -> Option<Report> {
        self.ack.map(|(_, report)| report)
    }

    /// The number of unreadable keys received, counted at each arrival. Their writer is at fault.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }

    /// The [`state_hash`] of the decoded values. Once the world is settled at a tick, it equals the
    /// authority's hash for this reader's view at that tick's commit. A difference means that the two have
    /// diverged.
    pub fn hash(&self) -> u64 {
        let encoded =
            |value: &Value| value.encode(STATE_VALUE_BYTES_MAX).expect("it was decoded from as much");
        state_hash(self.iter().map(|(name, value)| (&**name, encoded(value))))
    }

    fn shown_held(&self, key: &str) -> Option<(EntityId, &Held)> {
        let newest = *self.names.get(key)?.last()?;
        Some((newest, &self.held[&newest]))
    }

    fn note(&self, key: &Arc<str>, before: &mut Before) {
        if !before.contains_key(key) {
            let shown = self.shown_held(key).map(|(entity, held)| (entity, held.clone()));
            before.insert(Arc::clone(key), shown);
        }
    }

    fn forget(&mut self, entity: EntityId, before: &mut Before) {
        self.ack.take_if(|(known, _)| *known == entity);
        let Some(name) = self.held.get(&entity).map(|held| Arc::clone(&held.name)) else { return };
        self.note(&name, before);
        self.held.remove(&entity);
        if let Some(entities) = self.names.get_mut(&name) {
            entities.retain(|other| *other != entity);
            if entities.is_empty() {
                self.names.remove(&name);
            }
        }
    }

    fn read_key(&mut self, world: &World, entity: EntityId, before: &mut Before) {
        let row = world.read_row(entity, KEYED_KEY).ok().flatten().zip(world.label(entity, KEYED_KEY));
        let read = row.and_then(|((_, blobs), tick)| self.decode(entity, blobs, tick));
        let Some(held) = read else {
            self.unreadable += 1;
            return self.forget(entity, before);
        };
        if self.held.get(&entity).is_some_and(|known| known.name != held.name) {
            self.forget(entity, before);
        }
        self.note(&held.name, before);
        let entities = self.names.get_or_insert_with(Arc::clone(&held.name), Default::default);
        entities.retain(|other| *other != entity);
        // A later entity has a higher label: a name is reused only after its old entity is gone.
        let at = entities.partition_point(|other| !self.held[other].tick.is_newer_than(held.tick));
        entities.insert(at, entity);
        self.held.insert(entity, held);
    }

    /// Decodes the component of a key; `None` if it is invalid.
    fn decode(&self, entity: EntityId, blobs: &[Bytes], tick: Tick) -> Option<Held> {
        let [name, hints, encoded] = blobs else { return None };
        let known = self.held.get(&entity);
        let name = match known.filter(|known| known.name.as_bytes() == &name[..]) {
            Some(known) => Arc::clone(&known.name),
            None if name.is_empty() || name.len() > STATE_KEY_BYTES_MAX => return None,
            None => Arc::from(std::str::from_utf8(name).ok()?),
        };
        let hints = Hints::from_blob(hints).ok()?;
        let value = match known.filter(|known| known.encoded == *encoded) {
            Some(known) => Arc::clone(&known.value),
            None => Arc::new(Value::decode(encoded.clone()).ok()?),
        };
        Some(Held { name, encoded: encoded.clone(), value, hints, tick })
    }

    /// Reads the acknowledgment. Returns whether it changed.
    fn read_ack(&mut self, world: &World, entity: EntityId) -> bool {
        let Ok(Some((lanes, _))) = world.read_row(entity, INPUT_ACK) else { return false };
        let Some(report) = lanes_report(lanes, world.tick().unwrap_or_default()) else { return false };
        let is_news = self.input_ack() != Some(report.tick);
        self.ack = Some((entity, report));
        is_news
    }
}

#[cfg(test)]
mod tests;
