//! What a node keeps of a room in the store, so that another one can reopen it.
//!
//! ```text
//!  roster  version: 1 byte · epoch: varint · host: 0 | 1, member: varint · next member: varint · count: varint
//!          for each: member: varint · generation: varint · spectates: 0 | 1 · link: 1 byte · name: text
//!                    user: 0 | 1, text
//! ```
//!
//! The world is not in it: the host has that, and sends it from nothing under a new epoch. Nor is player data: each
//! member says its own again.

use super::setup::Setup;
use super::snapshot::Snapshot;
use bytes::Bytes;
use parlor_proto::wire::cursor::{ReadError, Reader, VARINT_MAX, Write};
use parlor_proto::wire::handshake::RoomKind;
use parlor_proto::{Epoch, LinkKind, MemberId, limits};
use std::collections::BTreeMap;

const VERSION: u8 = 1;
/// How many ids stay free for members that joined after the roster was written.
pub const LATE_MEMBERS: u32 = 64;
/// How many authorities may have followed one another after the roster was written. An epoch is never used twice.
const LATE_EPOCHS: u32 = 16;
/// Terms share the numbers of ordered messages: each has 2^32.
const ORDERS_OF_TERM: u64 = 1 << 32;

/// Who is in a room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roster {
    /// The room's epoch.
    pub epoch: Epoch,
    /// The host; `None` in a match.
    pub host: Option<MemberId>,
    /// The id of the next member.
    pub next_member: u32,
    /// Its members.
    pub members: BTreeMap<MemberId, RosterMember>,
}

/// A member of a [`Roster`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RosterMember {
    /// How many resume tokens its seat has had.
    pub generation: u32,
    /// Whether it is a spectator.
    pub spectates: bool,
    /// Its last kind of link.
    pub link: LinkKind,
    /// Its name.
    pub name: String,
    /// The user of its admission token.
    pub user: Option<String>,
}

impl Roster {
    /// Encodes it.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        self.write(&mut out);
        out.into()
    }

    /// Decodes what [`encode`](Self::encode) gave.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut body = Reader::new(bytes);
        let roster = Roster::read(&mut body)?;
        body.finish()?;
        Ok(roster)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(VERSION);
        out.put_varint(self.epoch.0.into());
        out.put_option(self.host, |out, host| out.put_varint(host.0.into()));
        out.put_varint(self.next_member.into());
        out.put_varint(self.members.len() as u64);
        for (member, RosterMember { generation, spectates, link, name, user }) in &self.members {
            out.put_varint(member.0.into());
            out.put_varint((*generation).into());
            out.put_bool(*spectates);
            out.put_u8(link.to_wire());
            out.put_str(name);
            out.put_option(user.as_deref(), |out, user| out.put_str(user));
        }
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let version = body.u8()?;
        if version != VERSION {
            return Err(ReadError::Unknown { field: "roster", value: version.into() });
        }
        let member = |body: &mut Reader| body.varint_u32("member").map(MemberId);
        let (epoch, host) = (Epoch(body.varint_u32("epoch")?), body.option("host", member)?);
        let next_member = body.varint_u32("next member")?;
        let count = body.varint_max("member count", limits::MEMBERS_MAX_SERVER_RUN.into())?;
        let mut members = BTreeMap::new();
        for _ in 0..count {
            let id = member(body)?;
            let seat = RosterMember {
                generation: body.varint_u32("generation")?,
                spectates: body.bool("spectates")?,
                link: LinkKind::from_wire(body.u8()?),
                name: body.str_max("name", limits::NAME_BYTES_MAX)?,
                user: body.option("user", |body| body.str_max("user", limits::USER_BYTES_MAX))?,
            };
            members.insert(id, seat);
        }
        Ok(Roster { epoch, host, next_member, members })
    }
}

/// What the room keeps of a member when it moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptSeat {
    /// Whether the member was connected.
    pub is_connected: bool,
    /// Its player data, by key.
    pub data: Vec<(String, Bytes)>,
}

impl KeptSeat {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_bool(self.is_connected);
        out.put_varint(self.data.len() as u64);
        for (key, value) in &self.data {
            out.put_str(key);
            out.put_bytes(value);
        }
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let mut seat = KeptSeat { is_connected: body.bool("connected")?, data: Vec::new() };
        for _ in 0..body.varint_max("data count", limits::PLAYER_DATA_KEYS_MAX as u64)? {
            let key = body.str_max("data key", limits::LABEL_BYTES_MAX)?;
            seat.data.push((key, body.bytes_max("data value", limits::PLAYER_DATA_VALUE_BYTES_MAX)?));
        }
        Ok(seat)
    }
}

/// How a room begins again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reopening {
    /// Who was in it. Its epoch is the one that the room begins with.
    pub roster: Roster,
    /// The number of the first ordered message.
    pub order: u64,
    /// What is kept of members of a room that moved; the others are away.
    pub kept: BTreeMap<MemberId, KeptSeat>,
    /// The recipient of messages to the primary, if the room has moved.
    pub primary: Option<MemberId>,
}

impl Reopening {
    /// Returns how a room goes on that moved.
    pub fn moved(snapshot: &Snapshot) -> Self {
        let Snapshot { roster, order, primary, seats, .. } = snapshot;
        let kept = seats.iter().map(|(member, seat)| (*member, seat.kept.clone())).collect();
        Reopening { roster: roster.clone(), order: *order, kept, primary: *primary }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.order);
        self.roster.write(out);
        out.put_option(self.primary, |out, member| out.put_varint(member.0.into()));
        out.put_varint(self.kept.len() as u64);
        for (member, seat) in &self.kept {
            out.put_varint(member.0.into());
            seat.write(out);
        }
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        let member = |body: &mut Reader| body.varint_u32("member").map(MemberId);
        let (order, roster) = (body.varint()?, Roster::read(body)?);
        let primary = body.option("primary", member)?;
        let mut kept = BTreeMap::new();
        for _ in 0..body.varint_max("seat count", limits::MEMBERS_MAX_SERVER_RUN.into())? {
            kept.insert(member(body)?, KeptSeat::read(body)?);
        }
        Ok(Reopening { roster, order, kept, primary })
    }

    /// The first of the ids that stay free for members that joined after the roster was written.
    pub fn late_from(&self) -> u32 {
        self.roster.next_member.saturating_sub(LATE_MEMBERS)
    }

    /// Returns how a room begins under a term, for a host with the epoch of which it was the authority. `None` if the
    /// roster is not one of such a room.
    pub fn new(roster: Roster, setup: &Setup, term: u64, host: Option<(MemberId, Epoch)>) -> Option<Self> {
        let is_match = setup.settings.kind == RoomKind::Match;
        let known = host.map_or(roster.epoch, |(_, epoch)| epoch.max(roster.epoch));
        let host = if is_match { None } else { Some(host.map(|(member, _)| member).or(roster.host)?) };
        let epoch = Epoch(known.0.checked_add(LATE_EPOCHS)?);
        let next_member = roster.next_member.checked_add(LATE_MEMBERS)?;
        let order = term.checked_mul(ORDERS_OF_TERM).filter(|order| *order < VARINT_MAX / 2)?;
        let roster = Roster { epoch, host, next_member, ..roster };
        Some(Reopening { roster, order, kept: BTreeMap::new(), primary: None })
    }
}

/// A member that claimed its seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedSeat {
    /// The member.
    pub member: MemberId,
    /// Its name.
    pub name: String,
    /// The user of its admission token.
    pub user: Option<String>,
    /// Its link.
    pub link: LinkKind,
    /// Whether it is a spectator.
    pub spectates: bool,
}

/// How a member goes on in the seat that it claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Its session's messages go on, and it knows who is in the room.
    Continues,
    /// In a new session.
    Anew {
        /// Whether messages may have been lost.
        gap: bool,
    },
}
