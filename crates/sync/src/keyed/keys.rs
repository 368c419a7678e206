//! Keyed state on the authority's side.

use super::{Hints, Taken, lanes_report, report_lanes, state_hash};
use crate::audience::{Audience, Viewer};
use crate::inputs::Report;
use crate::limits::{AUDIENCE_MEMBERS_MAX, DECLARATIONS_MAX, KEY_OVERHEAD_BYTES};
use crate::schema::{INPUT_ACK, KEYED_KEY};
use crate::value::{Value, ValueError};
use crate::world::{World, WorldError};
use bytes::Bytes;
use parlor_proto::limits::{STATE_BYTES_MAX, STATE_KEY_BYTES_MAX, STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX};
use parlor_proto::text::Quoted;
use parlor_proto::wire::cursor::varint_width;
use parlor_proto::{EntityId, MemberId};
use parlor_proto::{OrderedMap, OrderedSet};
use std::sync::Arc;
use thiserror::Error;

/// The keys of a [`World`] that this process writes.
///
/// Pass the same world to all calls; nothing else may write these entities. Changes are visible in
/// [`get`](Self::get) and [`iter`](Self::iter) at once. Receivers see them from the world's next commit; call
/// [`close`](Self::close) before it.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    entries: OrderedMap<Arc<str>, Entry>,
    /// Names that changed since the last commit.
    touched: OrderedSet<Arc<str>>,
    declarations: OrderedMap<String, Hints>,
    /// The size including uncommitted changes, to which the limits apply.
    size: Size,
    acks: OrderedMap<MemberId, Ack>,
    /// The entity that reports the taken messages.
    taken: Option<(EntityId, Taken)>,
}

/// A key from [`Keys::iter`].
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its name.
    pub key: &'a str,
    /// The encoding of its value.
    pub encoded: &'a Bytes,
    /// Its audience.
    pub audience: &'a Audience,
    /// Its interpolation hints.
    pub hints: &'a Hints,
}

/// Why a change of the state was rejected. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum StateError {
    /// A key or prefix is empty or too long.
    #[error("the key {} has {} bytes: 1 to {STATE_KEY_BYTES_MAX} are allowed", Quoted(.key), .key.len())]
    KeyLength {
        /// The key.
        key: String,
    },
    /// A value cannot be sent.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// The room has the maximum number of keys.
    #[error("a room has at most {STATE_KEYS_MAX} keys")]
    TooManyKeys,
    /// The state would exceed its maximum size.
    #[error(
        "the room's state would have {bytes} bytes: at most {STATE_BYTES_MAX} are allowed, keys, audiences and \
         hints included"
    )]
    TooManyBytes {
        /// The resulting size.
        bytes: usize,
    },
    /// An audience names too many members.
    #[error("an audience of {members} members: at most {AUDIENCE_MEMBERS_MAX} are allowed")]
    AudienceTooLarge {
        /// The number of members that it names.
        members: usize,
    },
    /// Hints were declared for the maximum number of prefixes.
    #[error("hints for at most {DECLARATIONS_MAX} prefixes")]
    TooManyDeclarations,
    /// The world that holds the keys is full.
    #[error(transparent)]
    World(#[from] WorldError),
}

#[derive(Clone, Debug)]
struct Entry {
    entity: EntityId,
    /// Its name and hints, as blobs of its component.
    name: Bytes,
    hints: Bytes,
    /// `None` once it is removed, until its entity is despawned at the next commit.
    content: Option<Content>,
    before: Before,
}

/// A key's state at the last commit.
#[derive(Clone, Debug)]
enum Before {
    /// Its current content.
    Same,
    /// It did not exist.
    Absent,
    /// Another content.
    Was(Content),
}

#[derive(Clone, Debug, PartialEq)]
struct Content {
    encoded: Bytes,
    audience: Audience,
    hints: Hints,
}

/// The entity with a member's input acknowledgment.
#[derive(Clone, Copy, Debug)]
struct Ack {
    entity: EntityId,
    report: Report,
}

impl Keys {
    /// Creates an empty set of keys.
    pub fn new() -> Self {
        Keys::default()
    }

    /// Takes over the keys of a predecessor's world (see
    /// [`Replica::into_successor`](crate::world::Replica::into_successor)). Also returns each member's last
    /// input report. Unreadable keys are removed, and so are the acknowledgments of inputs and messages: the
    /// first [`acknowledge`](Self::acknowledge) creates them again.
    ///
    /// # Errors
    /// [`StateError`] if the keys exceed the limits of a room: their writer ignored them.
    pub fn of_world(world: &mut World) -> Result<(Self, OrderedMap<MemberId, Report>), StateError> {
        let mut keys = Keys::new();
        let mut reports = OrderedMap::new();
        let now = world.tick().unwrap_or_default();
        let entities: Vec<EntityId> = world.entities().collect();
        for entity in entities {
            if world.has(entity, KEYED_KEY) {
                if !keys.adopt(world, entity)? {
                    world.despawn(entity)?;
                }
            } else if let Some((lanes, _)) = world.read_row(entity, INPUT_ACK)? {
                let report = lanes_report(lanes, now);
                if let (Audience::Members(members), Some(report)) = (world.audience(entity)?, report) {
                    reports.extend(members.first().map(|member| (*member, report)));
                }
                world.despawn(entity)?;
            }
        }
        keys.size.check()?;
        Ok((keys, reports))
    }

    /// Takes over the key that an entity carries. Returns false if it carries none, or one with the name of
    /// another key.
    fn adopt(&mut self, world: &World, entity: EntityId) -> Result<bool, StateError> {
        let Some((_, [name, hints, encoded])) = world.read_row(entity, KEYED_KEY)? else { return Ok(false) };
        let key = core::str::from_utf8(name).ok().filter(|key| check_key(key).is_ok());
        let read = key.zip(Hints::from_blob(hints).ok()).filter(|_| Value::decode(encoded.clone()).is_ok());
        let Some((key, moves)) = read.filter(|(key, _)| !self.entries.contains_key(*key)) else {
            return Ok(false);
        };
        let audience = world.audience(entity)?.clone();
        let content = Content { encoded: encoded.clone(), audience, hints: moves };
        self.size = self.size.with(key, &content);
        let entry = Entry {
            entity,
            name: name.clone(),
            hints: hints.clone(),
            content: Some(content),
            before: Before::Same,
        };
        self.entries.insert(key.into(), entry);
        Ok(true)
    }

    /// Sets a key with its audience. Returns whether that changed anything; an unchanged key costs nothing on
    /// the wire. A key that was removed since the last commit counts as the same key again.
    ///
    /// # Errors
    /// [`StateError`]; the key is unchanged then.
    pub fn set(
        &mut self,
        world: &mut World,
        key: &str,
        value: &Value,
        audience: Audience,
    ) -> Result<bool, StateError> {
        check_key(key)?;
        if audience.named() > AUDIENCE_MEMBERS_MAX {
            return Err(StateError::AudienceTooLarge { members: audience.named() });
        }
        let encoded = value.encode(STATE_VALUE_BYTES_MAX).map_err(|error| error.in_field(key))?;
        let current = self.content(key);
        let hints = match self.declared_hints(key) {
            Some(hints) => hints.clone(),
            None => current.map(|content| content.hints.clone()).unwrap_or_default(),
        };
        let content = Content { encoded, audience, hints };
        if current == Some(&content) {
            return Ok(false);
        }
        let grown = self.size.with(key, &content);
        let size = current.map_or(grown, |current| grown.without(key, current));
        size.check()?;
        self.put(world, key, content)?;
        self.size = size;
        Ok(true)
    }

    /// Removes a key. Returns whether it existed.
    ///
    /// # Errors
    /// [`WorldError`] if its entity is missing because it was despawned elsewhere.
    pub fn remove(&mut self, world: &mut World, key: &str) -> Result<bool, WorldError> {
        let Some(entry) = self.entries.get_mut(key) else { return Ok(false) };
        let Some(content) = entry.content.take() else { return Ok(false) };
        self.size = self.size.without(key, &content);
        match &entry.before {
            Before::Absent => {
                let entity = entry.entity;
                self.entries.remove(key);
                self.touched.remove(key);
                world.despawn(entity)?;
            }
            Before::Was(_) => {}
            Before::Same => {
                entry.before = Before::Was(content);
                self.touch(key);
            }
        }
        Ok(true)
    }

    /// Declares the hints of all keys that begin with `prefix`, existing and future ones. The longest
    /// matching prefix counts. A new authority must repeat its predecessor's declarations.
    ///
    /// # Errors
    /// [`StateError`]; nothing is declared then.
    pub fn declare(&mut self, world: &mut World, prefix: &str, hints: Hints) -> Result<(), StateError> {
        if prefix.len() > STATE_KEY_BYTES_MAX {
            return Err(StateError::KeyLength { key: prefix.to_owned() });
        }
        let known = self.declarations.contains_key(prefix);
        if !known && self.declarations.len() == DECLARATIONS_MAX {
            return Err(StateError::TooManyDeclarations);
        }
        let before = self.declarations.insert(prefix.to_owned(), hints);
        let moved: Vec<(Arc<str>, Content)> = self
            .entries
            .iter()
            .filter_map(|(key, entry)| {
                let (content, hints) = (entry.content.as_ref()?, self.declared_hints(key)?);
                let content = Content { hints: hints.clone(), ..content.clone() };
                (entry.content.as_ref() != Some(&content)).then(|| (Arc::clone(key), content))
            })
            .collect();
        let size = moved.iter().fold(self.size, |size, (key, content)| {
            size.with(key, content).without(key, self.content(key).expect("it is there"))
        });
        if let Err(error) = size.check() {
            match before {
                Some(before) => self.declarations.insert(prefix.to_owned(), before),
                None => self.declarations.remove(prefix),
            };
            return Err(error);
        }
        for (key, content) in moved {
            self.put(world, &key, content)?;
        }
        self.size = size;
        Ok(())
    }

    /// Sets each member's input acknowledgment; members left out have none. Each member sees only its own.
    ///
    /// # Errors
    /// [`WorldError`] if the world is full.
    pub fn acknowledge(
        &mut self,
        world: &mut World,
        reports: &OrderedMap<MemberId, Report>,
    ) -> Result<(), WorldError> {
        let gone: Vec<MemberId> = self.acks.keys().copied().filter(|it| !reports.contains_key(it)).collect();
        for member in gone {
            if let Some(ack) = self.acks.remove(&member) {
                world.despawn(ack.entity)?;
            }
        }
        for (member, report) in reports {
            let known = self.acks.get(member).copied();
            if known.is_some_and(|ack| ack.report == *report) {
                continue;
            }
            let entity = match known {
                Some(ack) => ack.entity,
                None => {
                    let entity = world.spawn(None)?;
                    world.set_audience(entity, Audience::members([*member]))?;
                    entity
                }
            };
            self.acks.insert(*member, Ack { entity, report: *report });
            world.write_row(entity, INPUT_ACK, &report_lanes(*report), &[])?;
        }
        Ok(())
    }

    /// Reports to the hub which reliable messages were processed. Their effects must be in the same batch or
    /// in one before.
    ///
    /// # Errors
    /// [`WorldError`] if the world is full.
    pub fn note_taken(&mut self, world: &mut World, taken: Taken) -> Result<(), WorldError> {
        if self.taken.is_some_and(|(_, known)| known == taken) {
            return Ok(());
        }
        let entity = match self.taken {
            Some((entity, _)) => entity,
            None => {
                let entity = world.spawn(None)?;
                world.set_audience(entity, Audience::members([]))?;
                entity
            }
        };
        world.write_row(entity, INPUT_ACK, &taken.lanes(), &[])?;
        self.taken = Some((entity, taken));
        Ok(())
    }

    /// Returns the last value of [`note_taken`](Self::note_taken).
    pub fn taken(&self) -> Option<Taken> {
        self.taken.map(|(_, taken)| taken)
    }

    /// Ends a batch: despawns the entities of removed keys. Call it right before the world's commit.
    ///
    /// # Errors
    /// [`WorldError`] if the entity of a key was despawned elsewhere.
    pub fn close(&mut self, world: &mut World) -> Result<(), WorldError> {
        for key in std::mem::take(&mut self.touched) {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            entry.before = Before::Same;
            if entry.content.is_none() {
                let entity = entry.entity;
                self.entries.remove(&key);
                world.despawn(entity)?;
            }
        }
        Ok(())
    }

    /// Decodes the value of a key.
    pub fn get(&self, key: &str) -> Option<Value> {
        let content = self.content(key)?;
        Some(Value::decode(content.encoded.clone()).expect("it was encoded from a value"))
    }

    /// Returns a key with its encoded value.
    pub fn item(&self, key: &str) -> Option<Item<'_>> {
        let (name, entry) = self.entries.get_key_value(key)?;
        Some(entry.content.as_ref()?.item(name))
    }

    /// Iterates over all keys, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        self.entries.iter().filter_map(|(name, entry)| Some(entry.content.as_ref()?.item(name)))
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.size.keys
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.size.keys == 0
    }

    /// Bytes that count towards [`STATE_BYTES_MAX`]: values, keys, audiences, hints and their overhead.
    pub fn bytes(&self) -> usize {
        self.size.bytes
    }

    /// The [`state_hash`] of the last closed batch, restricted to what `viewer` sees. A reader that is
    /// settled at that batch's commit has the same hash.
    pub fn hash(&self, viewer: Viewer) -> u64 {
        let closed = self.entries.iter().filter_map(|(name, entry)| {
            let content = match &entry.before {
                Before::Same => entry.content.as_ref()?,
                Before::Was(content) => content,
                Before::Absent => return None,
            };
            content.audience.admits(viewer).then_some((name, &content.encoded))
        });
        state_hash(closed)
    }

    fn content(&self, key: &str) -> Option<&Content> {
        self.entries.get(key).and_then(|entry| entry.content.as_ref())
    }

    fn declared_hints(&self, key: &str) -> Option<&Hints> {
        let fitting = self.declarations.iter().filter(|(prefix, _)| key.starts_with(prefix.as_str()));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, hints)| hints)
    }

    fn touch(&mut self, key: &str) {
        if let Some((name, _)) = self.entries.get_key_value(key) {
            self.touched.insert(Arc::clone(name));
        }
    }

    /// Sets a key's content, from the next commit on.
    fn put(&mut self, world: &mut World, key: &str, content: Content) -> Result<(), WorldError> {
        let Some(entry) = self.entries.get_mut(key) else { return self.create(world, key, content) };
        if entry.content.as_ref().is_none_or(|current| current.hints != content.hints) {
            entry.hints = content.hints.to_blob();
        }
        let row = [entry.name.clone(), entry.hints.clone(), content.encoded.clone()];
        world.write_row(entry.entity, KEYED_KEY, &[], &row)?;
        world.set_audience(entry.entity, content.audience.clone())?;
        let current = entry.content.replace(content);
        entry.before = match (std::mem::replace(&mut entry.before, Before::Absent), current) {
            (Before::Same, Some(current)) => Before::Was(current),
            (Before::Was(was), _) if entry.content.as_ref() == Some(&was) => Before::Same,
            (before, _) => before,
        };
        if matches!(entry.before, Before::Same) {
            self.touched.remove(key);
        } else {
            self.touch(key);
        }
        Ok(())
    }

    fn create(&mut self, world: &mut World, key: &str, content: Content) -> Result<(), WorldError> {
        let entity = world.spawn(None)?;
        let (name, hints) = (Bytes::copy_from_slice(key.as_bytes()), content.hints.to_blob());
        let row = [name.clone(), hints.clone(), content.encoded.clone()];
        let written = world
            .set_audience(entity, content.audience.clone())
            .and_then(|()| world.write_row(entity, KEYED_KEY, &[], &row));
        if let Err(error) = written {
            world.despawn(entity)?;
            return Err(error);
        }
        let entry = Entry { entity, name, hints, content: Some(content), before: Before::Absent };
        self.entries.insert(key.into(), entry);
        self.touch(key);
        Ok(())
    }
}

impl Content {
    fn item<'a>(&'a self, key: &'a str) -> Item<'a> {
        Item { key, encoded: &self.encoded, audience: &self.audience, hints: &self.hints }
    }

    /// Bytes that it counts towards [`STATE_BYTES_MAX`].
    fn counted_bytes(&self, name: &str) -> usize {
        let sized = |len: usize| varint_width(len as u64) + len;
        let audience = self.audience.named() * size_of::<MemberId>();
        KEY_OVERHEAD_BYTES + sized(name.len()) + self.hints.wire_len() + audience + sized(self.encoded.len())
    }
}

/// The total size of the keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Size {
    keys: usize,
    bytes: usize,
}

impl Size {
    fn with(self, key: &str, content: &Content) -> Size {
        Size { keys: self.keys + 1, bytes: self.bytes + content.counted_bytes(key) }
    }

    fn without(self, key: &str, content: &Content) -> Size {
        let was_counted = "it was counted when it came";
        let keys = self.keys.checked_sub(1).expect(was_counted);
        Size { keys, bytes: self.bytes.checked_sub(content.counted_bytes(key)).expect(was_counted) }
    }

    fn check(self) -> Result<(), StateError> {
        if self.keys > STATE_KEYS_MAX {
            return Err(StateError::TooManyKeys);
        }
        if self.bytes > STATE_BYTES_MAX {
            return Err(StateError::TooManyBytes { bytes: self.bytes });
        }
        Ok(())
    }
}

fn check_key(key: &str) -> Result<(), StateError> {
    if key.is_empty() || key.len() > STATE_KEY_BYTES_MAX {
        return Err(StateError::KeyLength { key: key.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
