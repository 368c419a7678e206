//! What members ask to happen to entities of theirs: the messages of [`channel::ACTIONS`](crate::channel::ACTIONS). The hub
//! writes who asked, so it is true, and passes on only what a member asks of an entity that is its own; the authority
//! looks again.
//!
//! ```text
//!  up     entity: 4 bytes · name: text · value: bytes to the end
//!  down   from: varint · epoch: varint · entity: 4 bytes · name: text · value: bytes to the end
//! ```

use super::cursor::{ReadError, Reader, Write};
use crate::ids::{EntityId, Epoch, MemberId};
use crate::limits;
use bytes::Bytes;
use core::fmt;

/// What a member asks to happen to an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Which entity.
    pub entity: EntityId,
    /// What is asked for, 1 to [`limits::LABEL_BYTES_MAX`] bytes.
    pub name: String,
    /// What belongs to it: an encoded value.
    pub value: Bytes,
}

/// An action on its way to the authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBy {
    /// Who asks. The hub writes this, so it is true.
    pub from: MemberId,
    /// Under which epoch its receiver is the authority that is asked.
    pub epoch: Epoch,
    /// What is asked for.
    pub action: Action,
}

/// Why an action was not passed on, or not given to the authority's game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionRefusal {
    /// There is no such entity, as far as the member may know.
    NoSuchEntity,
    /// The entity is not the member's own.
    NotOwner,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl Action {
    /// The message as it goes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.value.len() + self.name.len() + 8);
        self.write(&mut out);
        out.into()
    }

    /// Reads a message on its way up.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out, or larger than a message.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        Self::read(&mut Reader::new(bytes))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.entity.to_bits());
        out.put_str(&self.name);
        out.put(&self.value);
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let entity = EntityId::from_bits(reader.u32()?);
        let name = read_name(reader)?;
        let value = reader.rest();
        if value.len() > limits::MESSAGE_BYTES_MAX {
            return Err(ReadError::OutOfRange { field: "the value of an action" });
        }
        Ok(Action { entity, name, value })
    }
}

impl AskedBy {
    /// The message as it goes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.action.value.len() + self.action.name.len() + 16);
        out.put_varint(self.from.0.into());
        out.put_varint(self.epoch.0.into());
        self.action.write(&mut out);
        out.into()
    }

    /// Reads a message on its way down.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out, or larger than a message.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let from = MemberId(reader.varint_u32("member")?);
        let epoch = Epoch(reader.varint_u32("epoch")?);
        Ok(AskedBy { from, epoch, action: Action::read(&mut reader)? })
    }
}

/// Reads the name of an action: not empty.
pub(super) fn read_name(reader: &mut Reader) -> Result<String, ReadError> {
    let name = reader.str_max("the name of an action", limits::LABEL_BYTES_MAX)?;
    if name.is_empty() {
        return Err(ReadError::OutOfRange { field: "the name of an action" });
    }
    Ok(name)
}

impl ActionRefusal {
    /// The word for it in JSON, logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            ActionRefusal::NoSuchEntity => "no_such_entity",
            ActionRefusal::NotOwner => "not_owner",
            ActionRefusal::Unknown { .. } => "unknown",
        }
    }

    pub(super) const fn to_wire(self) -> u8 {
        match self {
            ActionRefusal::NoSuchEntity => 0,
            ActionRefusal::NotOwner => 1,
            ActionRefusal::Unknown { code } => code,
        }
    }

    pub(super) const fn from_wire(code: u8) -> Self {
        match code {
            0 => ActionRefusal::NoSuchEntity,
            1 => ActionRefusal::NotOwner,
            code => ActionRefusal::Unknown { code },
        }
    }
}

impl fmt::Display for ActionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActionRefusal::NoSuchEntity => f.write_str("there is no such entity"),
            ActionRefusal::NotOwner => f.write_str("the entity is not yours: only its owner may act on it"),
            ActionRefusal::Unknown { code } => write!(f, "it was refused for reason {code}"),
        }
    }
}
