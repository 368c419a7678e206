//! The envelope of a message that the hub relays: to whom it goes on the way up, from whom it comes on the way down.
//! Ids are those of the room that the session is in; there is no field for a network address, so a hub can be made to
//! send to nobody else (threat 11).
//!
//! ```text
//!  up     to: 0 authority | 1 all but the sender | 2 member, varint | 3 count: varint, members: varint each,
//!         ascending | 4 everyone, the sender too | 5 primary | 6 everyone but, as 3 · + 0x80 if the hub shall stamp an
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

/// To whom a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// Whoever decides in the room: the host, or the hub itself.
    Authority,
    /// All members but the sender.
    Others,
    /// One member.
    Member(MemberId),
    /// These members, in ascending order and each once.
    Members(Vec<MemberId>),
    /// All members, the sender too.
    Everyone,
    /// The member that the hub has named primary, if there is one.
    Primary,
    /// All members but these, in ascending order and each once; the sender too, if it is not among them.
    Except(Vec<MemberId>),
}

/// From whom a message comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The hub itself.
    Hub,
    /// A member. The hub writes this, so it is true.
    Member(MemberId),
}

/// A message on its way up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upward {
    /// To whom.
    pub to: To,
    /// Whether the hub shall number it among all stamped messages of the room, so that all receivers agree on an
    /// order.
    pub stamp: bool,
    /// What the sender said.
    pub payload: Bytes,
}

/// A message on its way down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downward {
    /// From whom.
    pub from: From,
    /// Its place among the stamped messages of the room, from 0.
    pub order: Option<u64>,
    /// Under which epoch its receiver is meant as the authority; `None` if it is meant as itself. The same message can go to
    /// another one under a later epoch.
    pub authority_of: Option<Epoch>,
    /// What the sender said.
    pub payload: Bytes,
}

/// The most bytes that an envelope adds to a payload.
pub const ENVELOPE_BYTES_MAX: usize = 1 + 2 + 4 * limits::ADDRESSEES_MAX;

const STAMPED: u8 = 0x80;
const FOR_AUTHORITY: u8 = 0x40;

impl Upward {
    /// The message as it goes on the wire.
    ///
    /// # Panics
    /// If [`To::Members`] or [`To::Except`] is not ascending: a receiver would refuse it.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + 8);
        let tag = |tag: u8| tag | if self.stamp { STAMPED } else { 0 };
        match &self.to {
            To::Authority => out.put_u8(tag(0)),
            To::Others => out.put_u8(tag(1)),
            To::Member(member) => {
                out.put_u8(tag(2));
                out.put_varint(member.0.into());
            }
            To::Members(members) | To::Except(members) => {
                assert!(members.is_sorted_by(|a, b| a < b), "addressees are ascending and each once");
                out.put_u8(tag(if matches!(self.to, To::Members(_)) { 3 } else { 6 }));
                out.put_varint(members.len() as u64);
                members.iter().for_each(|member| out.put_varint(member.0.into()));
            }
            To::Everyone => out.put_u8(tag(4)),
            To::Primary => out.put_u8(tag(5)),
        }
        out.put(&self.payload);
        out.into()
    }

    /// Reads a message on its way up.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out, or names members twice, out of order, or more than a room can have.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let to = match tag & !STAMPED {
            0 => To::Authority,
            1 => To::Others,
            2 => To::Member(MemberId(reader.varint_u32("member")?)),
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
                if listed == 3 { To::Members(members) } else { To::Except(members) }
            }
            4 => To::Everyone,
            5 => To::Primary,
            value => return Err(ReadError::Unknown { field: "to", value: value.into() }),
        };
        Ok(Upward { to, stamp: tag & STAMPED != 0, payload: reader.rest() })
    }
}

impl Downward {
    /// The message as it goes on the wire: the same for all of its receivers.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + 12);
        let flag = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        let flags = flag(self.order.is_some(), STAMPED) | flag(self.authority_of.is_some(), FOR_AUTHORITY);
        match self.from {
            From::Hub => out.put_u8(flags),
            From::Member(member) => {
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

    /// Reads a message on its way down.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let tag = reader.u8()?;
        let from = match tag & !(STAMPED | FOR_AUTHORITY) {
            0 => From::Hub,
            1 => From::Member(MemberId(reader.varint_u32("member")?)),
            value => return Err(ReadError::Unknown { field: "from", value: value.into() }),
        };
        let order = (tag & STAMPED != 0).then(|| reader.varint()).transpose()?;
        let is_for_authority = tag & FOR_AUTHORITY != 0;
        let authority_of = is_for_authority.then(|| reader.varint_u32("epoch").map(Epoch)).transpose()?;
        Ok(Downward { from, order, authority_of, payload: reader.rest() })
    }
}
