//! The state as its authority writes it, and as the hub keeps it.

use super::{Audience, Hints, KeyId, StateSequence, Viewer, state_hash};
use crate::limits::{
    AUDIENCE_MEMBERS_MAX, DECLARATIONS_MAX, KEY_ID_BYTES_MAX, KEY_ID_MAX, STATE_SEQUENCE_MAX, TOMBSTONES_MAX,
};
use crate::value::{Value, ValueError};
use bytes::Bytes;
use parlor_proto::limits::{STATE_BYTES_MAX, STATE_KEY_BYTES_MAX, STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX};
use parlor_proto::wire::cursor::varint_width;
use parlor_proto::{Instant, MemberId, Tick};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use thiserror::Error;

/// Values under string keys, each with its audience.
///
/// What is set or removed shows in [`get`](Self::get) and [`iter`](Self::iter) at once, and to publishers from the
/// next [`commit`](Self::commit) on. Values are kept encoded, once for all receivers.
#[derive(Clone, Debug, Default)]
pub struct Store {
    pub(super) sequence: StateSequence,
    pub(super) tick: Tick,
    pub(super) server_time: Instant,
    pub(super) acks: BTreeMap<MemberId, InputAck>,
    /// When an acknowledgement changed or went last.
    pub(super) acks_changed: StateSequence,
    pub(super) names: BTreeMap<Arc<str>, KeyId>,
    pub(super) entries: BTreeMap<KeyId, Entry>,
    /// Every key by its last change, removed ones included as far as `tombstones` has them.
    by_change: BTreeSet<(StateSequence, KeyId)>,
    tombstones: VecDeque<(StateSequence, KeyId)>,
    /// Removals up to here may have been forgotten.
    pub(super) forgotten: StateSequence,
    pub(super) next_key: KeyId,
    /// What the next commit changes; `None` removes.
    staged: BTreeMap<Arc<str>, Option<Content>>,
    declarations: BTreeMap<String, Hints>,
    /// Size with what is staged, which the limits hold for.
    pub(super) size: Size,
}

/// What belongs to a commit beside the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateStamp {
    /// The authority's tick.
    pub tick: Tick,
    /// Room time, less than 2⁶² µs.
    pub server_time: Instant,
    /// For each member the newest tick whose input was used. A member that is left out has none.
    pub input_acks: BTreeMap<MemberId, Tick>,
}

/// A key as [`Store::iter`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct Item<'a> {
    /// Its name.
    pub key: &'a str,
    /// The encoding of its value.
    pub encoded: &'a Bytes,
    /// Who may see it.
    pub audience: &'a Audience,
    /// How its value moves.
    pub hints: &'a Hints,
}

/// The state cannot be what the caller asked for. Nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// A key or prefix is empty or too long.
    #[error("the key {key:?} has {} bytes: 1 to {STATE_KEY_BYTES_MAX} are allowed", .key.len())]
    KeyLength {
        /// The key.
        key: String,
    },
    /// A value cannot be sent.
    #[error(transparent)]
    Value(#[from] ValueError),
    /// There are as many keys as a room may have.
    #[error("a room has at most {STATE_KEYS_MAX} keys")]
    TooManyKeys,
    /// The state is as large as a room may have it.
    #[error(
        "the room's state would have {bytes} bytes: at most {STATE_BYTES_MAX} are allowed, keys, audiences and \
         hints included"
    )]
    TooManyBytes {
        /// What it would have.
        bytes: usize,
    },
    /// As many keys were created as a room may ever have.
    #[error("no more keys can be created in this room: set keys that exist instead of new ones")]
    KeysSpent,
    /// An audience names too many members.
    #[error("an audience of {members} members: at most {AUDIENCE_MEMBERS_MAX} are allowed")]
    AudienceTooLarge {
        /// Members that it names.
        members: usize,
    },
    /// A commit acknowledges the inputs of too many members.
    #[error("inputs of {members} members: at most {AUDIENCE_MEMBERS_MAX} are allowed")]
    TooManyAcks {
        /// Members whose inputs it acknowledges.
        members: usize,
    },
    /// Hints were declared for as many prefixes as a store keeps.
    #[error("hints for at most {DECLARATIONS_MAX} prefixes")]
    TooManyDeclarations,
    /// The sequence is as high as it can be.
    #[error("no further commit is possible in this room")]
    SequenceSpent,
}

impl Store {
    /// The empty state.
    #[must_use]
    pub fn new() -> Self {
        Store::default()
    }

    /// Sets a key for those who may see it. Says whether that changed anything; if not, it costs nothing on the
    /// wire. A key that was removed since the last commit is the same key again.
    ///
    /// # Errors
    /// [`StateError`]; the key then is what it was.
    pub fn set(&mut self, key: &str, value: &Value, audience: Audience) -> Result<bool, StateError> {
        check_key(key)?;
        if let Audience::Members(members) = &audience
            && members.len() > AUDIENCE_MEMBERS_MAX
        {
            return Err(StateError::AudienceTooLarge { members: members.len() });
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
        self.stage(key, content)?;
        Ok(true)
    }

    /// Removes a key. Says whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        if self.content(key).is_none() {
            return false;
        }
        self.stage_unchecked(key, None);
        true
    }

    /// Declares how the values of all keys that begin with `prefix` move, those that exist and those to come.
    /// The longest prefix that fits a key counts. A new authority declares again, as its predecessor did.
    ///
    /// # Errors
    /// [`StateError`]; nothing is then declared.
    pub fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), StateError> {
        if prefix.len() > STATE_KEY_BYTES_MAX {
            return Err(StateError::KeyLength { key: prefix.to_owned() });
        }
        let known = self.declarations.contains_key(prefix);
        if !known && self.declarations.len() == DECLARATIONS_MAX {
            return Err(StateError::TooManyDeclarations);
        }
        let before = self.declarations.insert(prefix.to_owned(), hints);
        let moved: Vec<(String, Content)> = self
            .current()
            .filter(|(key, content)| self.declared_hints(key).is_some_and(|hints| *hints != content.hints))
            .map(|(key, content)| (key.to_owned(), content.clone()))
            .map(|(key, content)| {
                let hints = self.declared_hints(&key).cloned().unwrap_or_default();
                (key, Content { hints, ..content })
            })
            .collect();
        let size = moved.iter().fold(self.size, |size, (key, content)| {
            size.with(key, content).without(key, self.content(key).expect("it is current"))
        });
        if let Err(error) = size.check() {
            match before {
                Some(before) => self.declarations.insert(prefix.to_owned(), before),
                None => self.declarations.remove(prefix),
            };
            return Err(error);
        }
        for (key, content) in moved {
            self.stage_unchecked(&key, Some(content));
        }
        Ok(())
    }

    /// Closes the batch: what changed since the last commit gets one new sequence, which is returned. Without any
    /// change there is none. An acknowledgement that moved is a change, since its member waits for it.
    ///
    /// # Errors
    /// [`StateError::TooManyAcks`], [`StateError::SequenceSpent`].
    pub fn commit(&mut self, stamp: StateStamp) -> Result<Option<StateSequence>, StateError> {
        if stamp.input_acks.len() > AUDIENCE_MEMBERS_MAX {
            return Err(StateError::TooManyAcks { members: stamp.input_acks.len() });
        }
        let acks = stamp.input_acks.iter().map(|(member, tick)| (*member, *tick));
        let acked = self.acks.iter().map(|(member, ack)| (*member, ack.tick));
        if self.staged.is_empty() && acks.eq(acked) {
            return Ok(None);
        }
        if self.sequence.0 >= STATE_SEQUENCE_MAX {
            return Err(StateError::SequenceSpent);
        }
        self.sequence = self.sequence.next();
        (self.tick, self.server_time) = (stamp.tick, stamp.server_time);
        self.put_acks(stamp.input_acks.into_iter());
        for (name, content) in core::mem::take(&mut self.staged) {
            match (self.names.get(&name).copied(), content) {
                (Some(id), Some(content)) => self.put(id, &name, content),
                (Some(id), None) => self.bury(id),
                (None, Some(content)) => {
                    let id = self.next_key;
                    self.next_key = KeyId(id.0 + 1);
                    self.put(id, &name, content);
                }
                (None, None) => {}
            }
        }
        Ok(Some(self.sequence))
    }

    /// The value of a key, decoded.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Value> {
        let content = self.content(key)?;
        Some(
            Value::decode(content.encoded.clone()).expect("a store holds what was encoded or decoded before"),
        )
    }

    /// A key with the encoding of its value.
    #[must_use]
    pub fn item(&self, key: &str) -> Option<Item<'_>> {
        let content = self.content(key)?;
        let name = match self.staged.get_key_value(key) {
            Some((name, _)) => name,
            None => self.names.get_key_value(key)?.0,
        };
        Some(content.item(name))
    }

    /// All keys, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Item<'_>> {
        self.current().map(|(key, content)| content.item(key))
    }

    /// Count of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.size.keys
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.size.keys == 0
    }

    /// Bytes that count towards [`STATE_BYTES_MAX`]: values, keys, audiences, hints and their overhead.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.size.bytes
    }

    /// The last batch that was committed or adopted.
    #[must_use]
    pub fn sequence(&self) -> StateSequence {
        self.sequence
    }

    /// What belonged to that batch beside the changes.
    #[must_use]
    pub fn stamp(&self) -> StateStamp {
        let input_acks = self.acks.iter().map(|(member, ack)| (*member, ack.tick)).collect();
        StateStamp { tick: self.tick, server_time: self.server_time, input_acks }
    }

    /// What `viewer` sees of the last batch, in ascending order of the keys.
    pub fn view(&self, viewer: Viewer) -> impl Iterator<Item = Item<'_>> {
        let entries = self.names.values().map(|id| &self.entries[id]);
        entries
            .filter(move |entry| entry.content.audience.admits(viewer))
            .map(|entry| entry.content.item(&entry.name))
    }

    /// The [`state_hash`] of what `viewer` sees of the last batch. A replica at the same sequence has the same.
    #[must_use]
    pub fn hash(&self, viewer: Viewer) -> u64 {
        state_hash(self.view(viewer).map(|item| (item.key, item.encoded)))
    }

    fn content(&self, key: &str) -> Option<&Content> {
        match self.staged.get(key) {
            Some(staged) => staged.as_ref(),
            None => self.names.get(key).map(|id| &self.entries[id].content),
        }
    }

    fn current(&self) -> impl Iterator<Item = (&str, &Content)> {
        let committed = self.names.iter().map(|(name, id)| (&**name, &self.entries[id].content));
        let mut all: BTreeMap<&str, &Content> = committed.collect();
        for (name, staged) in &self.staged {
            match staged {
                Some(content) => all.insert(name, content),
                None => all.remove(&**name),
            };
        }
        all.into_iter()
    }

    fn declared_hints(&self, key: &str) -> Option<&Hints> {
        let fitting = self.declarations.iter().filter(|(prefix, _)| key.starts_with(prefix.as_str()));
        fitting.max_by_key(|(prefix, _)| prefix.len()).map(|(_, hints)| hints)
    }

    fn stage(&mut self, key: &str, content: Content) -> Result<(), StateError> {
        let before = self.content(key);
        let grown = self.size.with(key, &content);
        before.map_or(grown, |before| grown.without(key, before)).check()?;
        let is_new = !self.names.contains_key(key) && !self.staged.contains_key(key);
        if is_new && self.next_key.0 as usize + self.staged.len() > KEY_ID_MAX as usize {
            return Err(StateError::KeysSpent);
        }
        self.stage_unchecked(key, Some(content));
        Ok(())
    }

    fn stage_unchecked(&mut self, key: &str, content: Option<Content>) {
        if let Some(content) = &content {
            self.size = self.size.with(key, content);
        }
        if let Some(before) = self.content(key) {
            self.size = self.size.without(key, before);
        }
        let committed = self.names.get_key_value(key);
        let as_committed = match (&content, committed) {
            (Some(content), Some((_, id))) => self.entries[id].content == *content,
            (None, committed) => committed.is_none(),
            (Some(_), None) => false,
        };
        if as_committed {
            self.staged.remove(key);
        } else {
            let name = committed.map_or_else(|| Arc::from(key), |(name, _)| Arc::clone(name));
            self.staged.insert(name, content);
        }
    }
}

/// What committing and adopting share.
impl Store {
    pub(super) fn has_staged(&self) -> bool {
        !self.staged.is_empty()
    }

    /// Makes a key what it is from the present sequence on.
    pub(super) fn put(&mut self, id: KeyId, name: &Arc<str>, content: Content) {
        let now = self.sequence;
        let before = self.entries.get(&id);
        if let Some(before) = before {
            self.by_change.remove(&(before.changed, id));
        }
        let declared = before.filter(|it| it.content.hints == content.hints).map_or(now, |it| it.declared);
        let same_value = before.filter(|it| it.content.encoded == content.encoded);
        let shown = same_value.map_or(now, |it| it.shown.max(declared));
        self.by_change.insert((now, id));
        self.names.insert(Arc::clone(name), id);
        self.entries.insert(id, Entry { name: Arc::clone(name), content, changed: now, shown, declared });
    }

    /// Removes a key from the present sequence on.
    pub(super) fn bury(&mut self, id: KeyId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.names.remove(&entry.name);
        self.by_change.remove(&(entry.changed, id));
        self.by_change.insert((self.sequence, id));
        self.tombstones.push_back((self.sequence, id));
        if self.tombstones.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.tombstones.pop_front()
        {
            self.by_change.remove(&oldest);
            self.forgotten = oldest.0;
        }
    }

    pub(super) fn put_acks(&mut self, acks: impl Iterator<Item = (MemberId, Tick)>) {
        let before = core::mem::take(&mut self.acks);
        for (member, tick) in acks {
            let same = before.get(&member).filter(|ack| ack.tick == tick);
            let changed = same.map_or(self.sequence, |ack| ack.changed);
            self.acks.insert(member, InputAck { tick, changed });
        }
        if self.acks != before {
            self.acks_changed = self.sequence;
        }
    }

    /// Keys that changed or went after `since`, as far as removals are remembered.
    pub(super) fn changed_since(&self, since: StateSequence) -> impl Iterator<Item = KeyId> {
        self.by_change.range((since.next(), KeyId(0))..).map(|(_, id)| *id)
    }
}

/// A key that was committed or adopted.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    pub(super) content: Content,
    /// When anything of it changed last, its audience included.
    pub(super) changed: StateSequence,
    /// When something of it changed last that those who see it are shown: its value or its hints.
    pub(super) shown: StateSequence,
    /// When its name and hints were last news.
    pub(super) declared: StateSequence,
}

/// What a key is.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Content {
    pub(super) encoded: Bytes,
    pub(super) audience: Audience,
    pub(super) hints: Hints,
}

impl Content {
    fn item<'a>(&'a self, key: &'a str) -> Item<'a> {
        Item { key, encoded: &self.encoded, audience: &self.audience, hints: &self.hints }
    }

    /// Bytes that the key takes in a complete update, at most.
    fn wire_len(&self, name: &str) -> usize {
        let sized = |len: usize| varint_width(len as u64) + len;
        let parts = sized(name.len()) + self.hints.wire_len() + self.audience.wire_len();
        KEY_ID_BYTES_MAX + parts + sized(self.encoded.len())
    }
}

/// The newest input of a member that was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InputAck {
    pub(super) tick: Tick,
    pub(super) changed: StateSequence,
}

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) keys: usize,
    pub(super) bytes: usize,
}

impl Size {
    pub(super) fn with(self, key: &str, content: &Content) -> Size {
        Size { keys: self.keys + 1, bytes: self.bytes + content.wire_len(key) }
    }

    pub(super) fn without(self, key: &str, content: &Content) -> Size {
        let was_counted = "it was counted when it came";
        let keys = self.keys.checked_sub(1).expect(was_counted);
        Size { keys, bytes: self.bytes.checked_sub(content.wire_len(key)).expect(was_counted) }
    }

    pub(super) fn is_allowed(self) -> bool {
        self.keys <= STATE_KEYS_MAX && self.bytes <= STATE_BYTES_MAX
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
