//! Actions: requests of members on their own entities, in messages of
//! [`channel::ACTIONS`](crate::channel::ACTIONS). The hub writes the sender, so it is authentic. It passes on
//! only requests for the member's own entities; the authority checks that again.
//!
//! ```text
//!  up     entity: 4 bytes · name: text · value: bytes to the end
//!  down   from: varint · epoch: varint · entity: 4 bytes · name: text · value: bytes to the end
//! ```
//!
//! A *predicted* action travels in the input of its step instead, because it counts for that step. The authority
//! answers with decisions, in room control:
//!
//! ```text
//!  decisions   count: varint · for each: number: varint · 0 accepted, or 1 + the code of the refusal: 1 byte
//!              by_game: text
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

/// A refused action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAction {
    /// The entity.
    pub entity: EntityId,
    /// The action's name.
    pub name: String,
    /// The reason.
    pub why: ActionRefusal,
}

impl RefusedAction {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.entity.to_bits());
        out.put_str(&self.name);
        out.put_u8(self.why.to_wire());
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(RefusedAction {
            entity: EntityId::from_bits(reader.u32()?),
            name: read_name(reader)?,
            why: ActionRefusal::from_wire(reader.u8()?),
        })
    }
}

/// Why an action was not passed on, not given to the authority's game, or decided against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionRefusal {
    /// The entity does not exist, or is hidden from the member.
    NoSuchEntity,
    /// The member does not own the entity.
    NotOwner,
    /// The authority's game has not defined a predicted action of this name.
    NotDefined,
    /// The parameters of a predicted action do not fit its type.
    Unreadable,
    /// A predicted action came too long after its step.
    Late,
    /// A predicted action was not decided before the authority changed.
    HostChanged,
    /// The game decided against a predicted action.
    ByGame {
        /// The game's reason, a name of 1 to [`limits::LABEL_BYTES_MAX`] bytes.
        reason: String,
    },
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

/// Code of a refusal by the game, which only decisions have: its reason follows.
const BY_GAME: u8 = 6;

/// What the authority decided about a predicted action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The action, by its member's count.
    pub number: u32,
    /// Why it is refused; `None` if it is accepted.
    pub refusal: Option<ActionRefusal>,
}

impl Decision {
    /// Writes decisions of one member's actions.
    pub(super) fn write_all(all: &[Decision], out: &mut Vec<u8>) {
        out.put_varint(all.len() as u64);
        for Decision { number, refusal } in all {
            out.put_varint((*number).into());
            out.put_u8(refusal.as_ref().map_or(0, |why| why.to_wire().saturating_add(1)));
            if let Some(ActionRefusal::ByGame { reason }) = refusal {
                out.put_str(reason);
            }
        }
    }

    /// Reads decisions of one member's actions.
    pub(super) fn read_all(reader: &mut Reader) -> Result<Vec<Decision>, ReadError> {
        let count = reader.varint_max("decisions", limits::ACTION_DECISIONS_MAX as u64)?;
        let mut all = Vec::new();
        for _ in 0..count {
            let number = reader.varint_u32("the number of an action")?;
            let refusal = match reader.u8()?.checked_sub(1) {
                None => None,
                Some(BY_GAME) => Some(ActionRefusal::ByGame { reason: read_name(reader)? }),
                Some(code) => Some(ActionRefusal::from_wire(code)),
            };
            all.push(Decision { number, refusal });
        }
        Ok(all)
    }
}

/// Reads the name of an action or of a reason, which must not be empty.
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
            ActionRefusal::NotDefined => "not_defined",
            ActionRefusal::Unreadable => "unreadable",
            ActionRefusal::Late => "late",
            ActionRefusal::HostChanged => "host_changed",
            ActionRefusal::ByGame { .. } => "by_game",
            ActionRefusal::Unknown { .. } => "unknown",
        }
    }

    pub(super) const fn to_wire(&self) -> u8 {
        match self {
            ActionRefusal::NoSuchEntity => 0,
            ActionRefusal::NotOwner => 1,
            ActionRefusal::NotDefined => 2,
            ActionRefusal::Unreadable => 3,
            ActionRefusal::Late => 4,
            ActionRefusal::HostChanged => 5,
            ActionRefusal::ByGame { .. } => BY_GAME,
            ActionRefusal::Unknown { code } => *code,
        }
    }

    pub(super) const fn from_wire(code: u8) -> Self {
        match code {
            0 => ActionRefusal::NoSuchEntity,
            1 => ActionRefusal::NotOwner,
            2 => ActionRefusal::NotDefined,
            3 => ActionRefusal::Unreadable,
            4 => ActionRefusal::Late,
            5 => ActionRefusal::HostChanged,
            code => ActionRefusal::Unknown { code },
        }
    }
}

impl fmt::Display for ActionRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ActionRefusal::NoSuchEntity => f.write_str("there is no such entity"),
            ActionRefusal::NotOwner => f.write_str("the entity is not yours: only its owner may act on it"),
            ActionRefusal::NotDefined => f.write_str(
                "the host has not defined this action: open every room of the game with the same ones",
            ),
            ActionRefusal::Unreadable => f.write_str("the host cannot read it as the type of this action"),
            ActionRefusal::Late => f.write_str("it reached the host too long after its step"),
            ActionRefusal::HostChanged => f.write_str("another player became the host before it was decided"),
            ActionRefusal::ByGame { reason } => write!(f, "the game refused it: {reason}"),
            ActionRefusal::Unknown { code } => write!(f, "it was refused for reason {code}"),
        }
    }
}
