//! The envelope of a relayed message: the recipient on the way to the hub, the sender on the way from it. Ids
//! are those of the session's room. There is no field for a network address, so a hub cannot be made to send
//! to anyone outside the room (threat 11).
//!
//! ```text
//!  up     to: 0 authority | 1 all but the sender | 2 member, varint | 3 count: varint, members: varint each,
//!         ascending | 4 all, the sender too | 5 primary | 6 all except, as 3 · + 0x80 if the hub must add an
//!         order
//!         payload
//!  down   from: 0 hub | 1 member, varint · + 0x80 if an order follows: varint
//!         · + 0x40 if it is for the authority, of an epoch that follows: varint
//!         payload
//! ```

use super::cursor::{ReadError, Reader, Write};
use crate::ids::{Epoch, MemberId};
use crate::limits;
use bytes::Bytes;

/// The recipients of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The authority of the room: the host, or the hub itself.
    Authority,
    /// All members except the sender.
    Others,
    /// One member.
    Member(MemberId),
    /// These members, in ascending order and each once.
    Members(Vec<MemberId>),
    /// All members, including the sender.
    Everyone,
    /// The member that the hub has named primary, if there is one.
    Primary,
    /// All members except these, in ascending order and each once; includes the sender if it is not among
    /// them.
    Except(Vec<MemberId>),
}

impl From<MemberId> for Recipient {
    fn from(member: MemberId) -> Self {
        Recipient::Member(member)
    }
}

impl From<Vec<MemberId>> for Recipient {
    fn from(members: Vec<MemberId>) -> Self {
        Recipient::Members(members)
    }
}

/// The sender of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The hub itself.
    Hub,
    /// A member. Written by the hub, so it is authentic.
    Member(MemberId),
}

/// A message to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upward {
    /// The recipients.
    pub to: Recipient,
    /// Whether the hub must number it among all stamped messages of the room, so that all receivers have the
    /// same order.
    pub stamp: bool,
    /// The payload.
    pub payload: Bytes,
}

/// A message from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downward {
    /// The sender.
    pub from: Sender,
    /// Its position among the stamped messages of the room, from 0.
    pub order: Option<u64>,
    /// The epoch under which its receiver is addressed as the authority; `None` if it is addressed as itself.
    /// The same message can go to another authority under a later epoch.
    pub authority_of: Option<Epoch>,
    /// The payload.
    pub payload: Bytes,
}

/// Maximum bytes that an envelope adds to a payload.
pub const ENVELOPE_BYTES_MAX: usize = 1 + 2 + 4 * limits::ADDRESSEES_MAX;

const STAMPED: u8 = 0x80;
const FOR_AUTHORITY: u8 = 0x40;

impl Upward {
    /// Encodes the message.
    ///
    /// # Panics
    /// If [`Recipient::Members`] or [`Recipient::Except`] is not ascending: a receiver would reject it.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + 8);
        let tag = |tag: u8| tag | if self.stamp { STAMPED } else { 0 };
        match &self.to {
            Recipient::Authority => out.put_u8(tag(0)),
            Recipient::Others => out.put_u8(tag(1)),
            Recipient::Member(member) => {
                out.put_u8(tag(2));
                out.put_varint(member.0.into());
            }
            Recipient::Members(members) | Recipient::Except(members) => {
                assert!(members.is_sorted_by(|a, b| a < b), "addressees are ascending and each once");
                out.put_u8(tag(if matches!(self.to, Recipient::Members(_)) { 3 } else { 6 }));
                out.put_varint(members.len() as u64);
                members.iter().for_each(|member| out.put_varint(member.0.into()));
            }
            Recipient::Everyone => out.put_u8(tag(4)),
            Recipient::Primary => out.put_u8(tag(5)),
        }
        out.put(&self.payload);
        out.into()
    }

    /// Decodes a message to the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed, or names members twice, out of order, or more than a room can have.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let to = match tag & !STAMPED {
            0 => Recipient::Authority,
            1 => Recipient::Others,
            2 => Recipient::Member(MemberId(reader.varint_u32("member")?)),
            listed @ (3 | 6) => {
                let count = reader.varint_max("addressee count", limits::ADDRESSEES_MAX as u64)?;
                let mut members: Vec<MemberId> = Vec::new();
                for _ in 0..count {
                    let member = MemberId(reader.varint_u32("member")?);
                    if members.last().is_some_and(|last| *last >= member) {
                        return Err(ReadError::OutOfRange { field: "addressees" });
                    }
                    members.push(member);
                }
                if listed == 3 { Recipient::Members(members) } else { Recipient::Except(members) }
            }
            4 => Recipient::Everyone,
            5 => Recipient::Primary,
            value => return Err(ReadError::Unknown { field: "to", value: value.into() }),
        };
        Ok(Upward { to, stamp: tag & STAMPED != 0, payload: reader.rest() })
    }
}

impl Downward {
    /// Encodes the message, the same for all receivers.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + 12);
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.order.is_some(), STAMPED) | flag(self.authority_of.is_some(), FOR_AUTHORITY);
        match self.from {
            Sender::Hub => out.put_u8(flags),
            Sender::Member(member) => {
                out.put_u8(1 | flags);
                out.put_varint(member.0.into());
            }
        }
        if let Some(order) = self.order {
            out.put_varint(order);
        }
        if let Some(epoch) = self.authority_of {
            out.put_varint(epoch.0.into());
        }
        out.put(&self.payload);
        out.into()
    }

    /// Decodes a message from the hub.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let from = match tag & !(STAMPED | FOR_AUTHORITY) {
            0 => Sender::Hub,
            1 => Sender::Member(MemberId(reader.varint_u32("member")?)),
            value => return Err(ReadError::Unknown { field: "from", value: value.into() }),
        };
        let order = (tag & STAMPED != 0).then(|| reader.varint()).transpose()?;
        let is_for_authority = tag & FOR_AUTHORITY != 0;
        let authority_of = is_for_authority.then(|| reader.varint_u32("epoch").map(Epoch)).transpose()?;
        Ok(Downward { from, order, authority_of, payload: reader.rest() })
    }
}
