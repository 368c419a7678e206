//! Actions: requests of members on their own entities, in messages of
//! [`channel::ACTIONS`](crate::channel::ACTIONS). The hub writes the sender, so it is authentic. It passes on
//! only requests for the member's own entities; the authority checks that again.
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

/// An action that a member requests on an entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The entity.
    pub entity: EntityId,
    /// The action's name, 1 to [`limits::LABEL_BYTES_MAX`] bytes.
    pub name: String,
    /// Its parameters: an encoded value.
    pub value: Bytes,
}

/// An action for the authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedBy {
    /// The requesting member. Written by the hub, so it is authentic.
    pub from: MemberId,
    /// The epoch under which the receiver is the authority.
    pub epoch: Epoch,
    /// The action.
    pub action: Action,
}

/// Why an action was not passed on, or not given to the authority's game.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionRefusal {
    /// The entity does not exist, or is hidden from the member.
    NoSuchEntity,
    /// The member does not own the entity.
    NotOwner,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl Action {
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.value.len() + self.name.len() + 8);
        self.write(&mut out);
        out.into()
    }

    /// Decodes a message to the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed, or too large.
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
    /// Encodes the message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.action.value.len() + self.action.name.len() + 16);
        out.put_varint(self.from.0.into());
        out.put_varint(self.epoch.0.into());
        self.action.write(&mut out);
        out.into()
    }

    /// Decodes a message from the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed, or too large.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let from = MemberId(reader.varint_u32("member")?);
        let epoch = Epoch(reader.varint_u32("epoch")?);
        Ok(AskedBy { from, epoch, action: Action::read(&mut reader)? })
    }
}

/// Reads the name of an action, which must not be empty.
pub(super) fn read_name(reader: &mut Reader) -> Result<String, ReadError> {
    let name = reader.str_max("the name of an action", limits::LABEL_BYTES_MAX)?;
    if name.is_empty() {
        return Err(ReadError::OutOfRange { field: "the name of an action" });
    }
    Ok(name)
}

impl ActionRefusal {
    /// The name in JSON, logs and metrics.
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
