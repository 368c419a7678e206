//! The layout of an update.
//!
//! ```text
//! flags       1 byte   1 complete, 2 transfer (complete ones only), 4 carries audiences
//! sequence    varint   what the receiver is at after this update
//! age         varint   sequence − baseline; absent if complete
//! tick        4 bytes  of the authority, at the commit
//! time        varint   room time at the commit, µs
//! input acks  varint   count; each: gap to the member, varint; tick − newest input tick (mod 2³²), varint
//! next key    varint   the smallest number that no key has had; only with audiences
//! removed     varint   count; each: gap to the key, varint; absent if complete
//! entries     varint   count; each:
//!   key       varint   gap to the key × 2, + 1 if declared
//!   name      length, UTF-8; hints (see `hints.rs`)       only if declared
//!   audience  see `audience.rs`                           only with audiences
//!   value     length, its encoding
//! ```
//!
//! A complete update declares all its entries, and what it does not list is gone. Members and keys ascend, so each
//! number stands as its gap to the one before. One update has one encoding.

use super::gaps::Gaps;
use super::{Audience, Hints, KeyId, StateSequence};
use crate::limits::{AUDIENCE_MEMBERS_MAX, KEY_ID_MAX, REMOVED_MAX, STATE_SEQUENCE_MAX, UPDATE_BYTES_MAX};
use crate::value::{DecodeError, Value};
use bytes::Bytes;
use parlor_proto::limits::{STATE_BYTES_MAX, STATE_KEY_BYTES_MAX, STATE_KEYS_MAX, STATE_VALUE_BYTES_MAX};
use parlor_proto::wire::cursor::{ReadError, Reader, VARINT_MAX, Write};
use parlor_proto::{Instant, MemberId, Tick};
use thiserror::Error;

const COMPLETE: u8 = 1;
const COMPLETE_TRANSFER: u8 = COMPLETE | 2;
const AUDIENCES: u8 = 4;

/// What an update is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The changes since its baseline.
    Delta,
    /// Everything that the receiver may see.
    Complete,
    /// Everything, and continuity ends here: the authority changed. Readers snap to it and smear nothing across.
    Transfer,
}

impl Source {
    /// The word for it in JSON and in the metadata of an update.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Source::Delta => "delta",
            Source::Complete => "complete",
            Source::Transfer => "transfer",
        }
    }
}

/// What an update says beside its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdateHead {
    /// What the receiver is at after this update.
    pub sequence: StateSequence,
    /// What the receiver must at least be at before it; [`StateSequence::EMPTY`] unless it is a delta.
    pub baseline: StateSequence,
    /// What it is relative to.
    pub source: Source,
    /// The authority's tick at the commit.
    pub tick: Tick,
    /// Room time at the commit.
    pub server_time: Instant,
    /// For each member the newest tick whose input the authority had used; a member is told only its own.
    pub input_acks: Vec<(MemberId, Tick)>,
    /// The smallest number that no key has had. Only whoever sees everything is told, with the audiences.
    pub next_key: Option<KeyId>,
}

/// An update as its receiver reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// What it says beside its keys.
    pub head: UpdateHead,
    /// Keys that the receiver does not see any more, ascending. It may never have seen some of them.
    pub removed: Vec<KeyId>,
    /// Keys with their values, ascending.
    pub entries: Vec<UpdateEntry>,
}

/// A key in an update.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateEntry {
    /// Its number.
    pub id: KeyId,
    /// What it is called; absent if the receiver was told before.
    pub declared: Option<Declared>,
    /// Who may see it; absent if the receiver is not to know.
    pub audience: Option<Audience>,
    /// The encoding of its value. It shares the buffer that the update came in.
    pub encoded: Bytes,
    /// Its value.
    pub value: Value,
}

/// What a key is called and how its value moves.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Its name, 1 to [`STATE_KEY_BYTES_MAX`] bytes.
    pub name: String,
    /// How its value moves.
    pub hints: Hints,
}

/// An update breaks the protocol. Nothing of it was applied; whoever sent it misbehaves.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UpdateError {
    /// It could not be read.
    #[error("an update could not be read: {0}")]
    Read(#[from] ReadError),
    /// It is larger than a message.
    #[error("an update of {bytes} bytes is larger than the {UPDATE_BYTES_MAX} allowed")]
    Oversized {
        /// Its size.
        bytes: usize,
    },
    /// A value could not be decoded.
    #[error("the value of {id} could not be decoded: {error}")]
    Value {
        /// The key.
        id: KeyId,
        /// Why.
        error: DecodeError,
    },
    /// A key is both removed and listed.
    #[error("{id} is removed and listed at once")]
    RemovedAndListed {
        /// The key.
        id: KeyId,
    },
    /// A key is not declared where the receiver cannot know it.
    #[error("{id} is listed without a name and was never declared")]
    Undeclared {
        /// The key.
        id: KeyId,
    },
    /// A key has another name than before.
    #[error("{id} is declared a second time under another name")]
    Renamed {
        /// The key.
        id: KeyId,
    },
    /// Two keys have one name.
    #[error("{id} has the name of another key")]
    NameTaken {
        /// The second of them.
        id: KeyId,
    },
    /// A number is given to a second key.
    #[error("{id} was used before, or is not below the next key that the update names")]
    Reused {
        /// The number.
        id: KeyId,
    },
    /// Keys or bytes exceed what a room may have.
    #[error("{keys} keys of {bytes} bytes are more than the {STATE_KEYS_MAX} of {STATE_BYTES_MAX} allowed")]
    TooMuch {
        /// Keys after the update.
        keys: usize,
        /// Their bytes after the update.
        bytes: usize,
    },
    /// The receiver has changes of its own that are not committed: only an authority writes, only a reader adopts.
    #[error("a store with changes of its own does not adopt those of another")]
    OwnChanges,
}

impl Update {
    /// Reads an update. What it claims of keys is checked by whoever takes it in.
    ///
    /// # Errors
    /// [`UpdateError`] unless the bytes are what [`encode`](Self::encode) writes for some update.
    pub fn decode(bytes: Bytes) -> Result<Update, UpdateError> {
        if bytes.len() > UPDATE_BYTES_MAX {
            return Err(UpdateError::Oversized { bytes: bytes.len() });
        }
        let mut reader = Reader::new(bytes);
        let head = read_head(&mut reader)?;
        let removed = if head.source == Source::Delta { read_removed(&mut reader)? } else { Vec::new() };
        let entries = read_entries(&mut reader, &head, &removed)?;
        reader.finish()?;
        Ok(Update { head, removed, entries })
    }

    /// The bytes of this update. Whoever builds one by hand answers for its being ascending and within limits.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let entries = self.entries.iter().map(|entry| EntryRef {
            id: entry.id,
            declared: entry.declared.as_ref().map(|it| (it.name.as_str(), &it.hints)),
            audience: entry.audience.as_ref(),
            encoded: &entry.encoded,
        });
        write_update(&self.head, self.removed.iter().copied(), entries)
    }
}

/// A key on its way into an update.
pub(super) struct EntryRef<'a> {
    pub(super) id: KeyId,
    pub(super) declared: Option<(&'a str, &'a Hints)>,
    pub(super) audience: Option<&'a Audience>,
    pub(super) encoded: &'a [u8],
}

pub(super) fn write_update<'a>(
    head: &UpdateHead,
    removed: impl ExactSizeIterator<Item = KeyId>,
    entries: impl ExactSizeIterator<Item = EntryRef<'a>>,
) -> Bytes {
    let mut out = Vec::new();
    write_head(&mut out, head);
    if head.source == Source::Delta {
        out.put_varint(removed.len() as u64);
        let mut gaps = Gaps::default();
        removed.for_each(|id| out.put_varint(gaps.gap(id.0)));
    }
    out.put_varint(entries.len() as u64);
    let mut gaps = Gaps::default();
    for entry in entries {
        out.put_varint(gaps.gap(entry.id.0) * 2 + u64::from(entry.declared.is_some()));
        if let Some((name, hints)) = entry.declared {
            out.put_str(name);
            hints.write(&mut out);
        }
        if let Some(audience) = entry.audience {
            audience.write(&mut out);
        }
        out.put_bytes(entry.encoded);
    }
    out.into()
}

fn write_head(out: &mut Vec<u8>, head: &UpdateHead) {
    let source = match head.source {
        Source::Delta => 0,
        Source::Complete => COMPLETE,
        Source::Transfer => COMPLETE_TRANSFER,
    };
    out.put_u8(source | if head.next_key.is_some() { AUDIENCES } else { 0 });
    out.put_varint(head.sequence.0);
    if head.source == Source::Delta {
        out.put_varint(head.sequence.0 - head.baseline.0);
    }
    out.put_u32(head.tick.0);
    out.put_varint(head.server_time.as_micros().min(VARINT_MAX));
    out.put_varint(head.input_acks.len() as u64);
    let mut gaps = Gaps::default();
    for (member, tick) in &head.input_acks {
        out.put_varint(gaps.gap(member.0));
        out.put_varint(head.tick.0.wrapping_sub(tick.0).into());
    }
    if let Some(next_key) = head.next_key {
        out.put_varint(next_key.0.into());
    }
}

fn read_head(reader: &mut Reader) -> Result<UpdateHead, ReadError> {
    let flags = reader.u8()?;
    let source = match flags & !AUDIENCES {
        0 => Source::Delta,
        COMPLETE => Source::Complete,
        COMPLETE_TRANSFER => Source::Transfer,
        value => return Err(ReadError::Unknown { field: "the flags of an update", value: value.into() }),
    };
    let sequence = reader.varint_max("the sequence of an update", STATE_SEQUENCE_MAX)?;
    let baseline = if source == Source::Delta {
        let age = reader.varint()?;
        let baseline = sequence.checked_sub(age).filter(|baseline| age > 0 && *baseline > 0);
        baseline.ok_or(ReadError::OutOfRange { field: "the age of an update" })?
    } else if sequence == 0 {
        return Err(ReadError::OutOfRange { field: "the sequence of an update" });
    } else {
        0
    };
    let tick = Tick(reader.u32()?);
    let server_time = Instant::from_micros(reader.varint()?);
    let count = reader.varint_max("the count of input acks", AUDIENCE_MEMBERS_MAX as u64)?;
    let (mut gaps, mut input_acks) = (Gaps::default(), Vec::new());
    for _ in 0..count {
        let gap = reader.varint()?;
        let member = gaps.number("a member of input acks", gap, u32::MAX)?;
        let age = reader.varint_u32("the age of an input ack")?;
        input_acks.push((MemberId(member), Tick(tick.0.wrapping_sub(age))));
    }
    let next_key = if flags & AUDIENCES != 0 { Some(reader.varint_u32("the next key")?) } else { None };
    if next_key.is_some_and(|next| next > KEY_ID_MAX + 1) {
        return Err(ReadError::OutOfRange { field: "the next key" });
    }
    Ok(UpdateHead {
        sequence: StateSequence(sequence),
        baseline: StateSequence(baseline),
        source,
        tick,
        server_time,
        input_acks,
        next_key: next_key.map(KeyId),
    })
}

fn read_removed(reader: &mut Reader) -> Result<Vec<KeyId>, ReadError> {
    let count = reader.varint_max("the count of removed keys", REMOVED_MAX as u64)?;
    let (mut gaps, mut removed) = (Gaps::default(), Vec::new());
    for _ in 0..count {
        let gap = reader.varint()?;
        removed.push(KeyId(gaps.number("a removed key", gap, KEY_ID_MAX)?));
    }
    Ok(removed)
}

fn read_entries(
    reader: &mut Reader,
    head: &UpdateHead,
    removed: &[KeyId],
) -> Result<Vec<UpdateEntry>, UpdateError> {
    let count = reader.varint_max("the count of entries", STATE_KEYS_MAX as u64)?;
    let (mut gaps, mut entries) = (Gaps::default(), Vec::new());
    for _ in 0..count {
        let number = reader.varint()?;
        let id = KeyId(gaps.number("a key", number / 2, KEY_ID_MAX)?);
        let declared = if number % 2 == 1 { Some(read_declared(reader)?) } else { None };
        if declared.is_none() && head.source != Source::Delta {
            return Err(UpdateError::Undeclared { id });
        }
        if removed.binary_search(&id).is_ok() {
            return Err(UpdateError::RemovedAndListed { id });
        }
        let audience = match head.next_key {
            Some(next_key) if id >= next_key => return Err(UpdateError::Reused { id }),
            Some(_) => Some(Audience::read(reader)?),
            None => None,
        };
        let encoded = reader.bytes_max("a value", STATE_VALUE_BYTES_MAX)?;
        let value = Value::decode(encoded.clone()).map_err(|error| UpdateError::Value { id, error })?;
        entries.push(UpdateEntry { id, declared, audience, encoded, value });
    }
    Ok(entries)
}

fn read_declared(reader: &mut Reader) -> Result<Declared, ReadError> {
    let name = reader.str_max("the name of a key", STATE_KEY_BYTES_MAX)?;
    if name.is_empty() {
        return Err(ReadError::OutOfRange { field: "the name of a key" });
    }
    Ok(Declared { name, hints: Hints::read(reader)? })
}

#[cfg(test)]
mod tests;
