//! Room control: the messages of [`channel::CONTROL`](crate::channel::CONTROL). They are reliable and ordered, so
//! both ends always agree on who is in the room. Each is a kind and its fields; one message holds one.
//!
//! ```text
//!  to a member
//!  0 joined    member
//!  1 left      member: varint · reason: 1 byte · detail: text
//!  2 data      member: varint · key: text · 0 removed | 1 value: bytes
//!  3 presence  count: varint · for each: member: varint · flags: 1 byte · rtt: 0 | 1, varint ms
//!  4 throttled
//!  5 primary   member: 0 none | 1, varint
//!  6 action refused   entity: 4 bytes · name: text · why: 1 byte
//!  7 authority epoch: varint · member: varint · tick: 0 none | 1, 4 bytes · slots: 2 bytes · generation: 2 bytes
//!  8 goes on   epoch: varint
//!  9 path      offer
//!  10 direct   member: varint · 0 through the hub | 1 over a path
//!
//!  to the hub
//!  0 set data  member: varint · key: text · 0 remove | 1 value: bytes
//!  1 kick      member: varint · reason: text
//!  2 refuse action    member: varint · entity: 4 bytes · name: text · why: 1 byte
//!  3 follow    epoch: varint
//!  4 candidates   candidates
//!  5 path up   id: 8 bytes
//!  6 path down id: 8 bytes · 0 | 1 the state came over it
//!
//!  member      id: varint · name: text · user: 0 | 1, text · link: 1 byte · flags: 1 byte · rtt: 0 | 1, varint ms
//!              count: varint · for each: key: text, value: bytes
//!  flags       1 connected · 2 slow
//! ```
//!
//! What is said of paths stands in [`path`](super::path).

use super::action::{ActionRefusal, read_name};
use super::cursor::{ReadError, Reader, Write};
use super::path::{Candidates, PathOffer, read_id, write_id};
use crate::error::clip;
use crate::ids::{EntityId, Epoch, MemberId, PathId};
use crate::limits;
use crate::link::LinkKind;
use crate::time::Tick;
use bytes::Bytes;
use core::fmt;

/// What a hub tells a member about its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMember {
    /// Somebody came. A newcomer gets one for everybody in the room, itself first.
    Joined(MemberInfo),
    /// Somebody went.
    Left {
        /// Who.
        member: MemberId,
        /// Why.
        reason: LeaveReason,
    },
    /// A value of player data changed.
    Data(PlayerData),
    /// What the hub measured lately. Only those are listed for whom something changed.
    Presence(Vec<Presence>),
    /// This member sent more than its room passes on, and some of its unreliable messages were dropped. It is said
    /// once.
    Throttled,
    /// The hub has named another member primary, or none: whom messages to the primary reach.
    Primary(Option<MemberId>),
    /// Something that this member asked for was refused.
    ActionRefused(RefusedAction),
    /// Another member is the authority from here on.
    Authority(Handover),
    /// The authority of this epoch has all of the state and goes on with it.
    GoesOn {
        /// Which epoch.
        epoch: Epoch,
    },
    /// This member may try to reach the authority, or a member it, beside the hub.
    Path(PathOffer),
    /// A member reaches the authority beside the hub, or does so no more.
    Direct {
        /// Which member.
        member: MemberId,
        /// Whether it does.
        direct: bool,
    },
}

/// What a member asks of the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHub {
    /// Sets player data: one's own, or anybody's for the authority.
    SetData(PlayerData),
    /// Removes a member, for the authority.
    Kick {
        /// Whom.
        member: MemberId,
        /// Why, for that person to read; may be empty.
        reason: String,
    },
    /// Tells a member that what it asked for was refused, for the authority.
    RefuseAction {
        /// Whom.
        member: MemberId,
        /// What, and why.
        refused: RefusedAction,
    },
    /// This member was the authority, or was to be, and knows that it is not any more: it has nothing of the state and wants its
    /// view.
    Follow {
        /// The epoch that it knows of.
        epoch: Epoch,
    },
    /// Where this member may be reached beside the hub.
    Candidates(Candidates),
    /// The state comes over this path: the hub need send none.
    PathUp {
        /// Which.
        id: PathId,
    },
    /// It is over, or does not come about.
    PathDown {
        /// Which.
        id: PathId,
        /// Whether the state came over it, so that this member has nothing of what the hub would send it.
        was_up: bool,
    },
}

/// The part of the authority passes to another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The room's epoch from here on.
    pub epoch: Epoch,
    /// Whose the part is.
    pub member: MemberId,
    /// The newest tick of the state that is handed over; what is newer is the new authority's. None if there is no state.
    pub tick: Option<Tick>,
    /// Slots that entities had so far: the new authority leaves alone for a while those that are free.
    pub slots: u16,
    /// The highest generation of an entity that is gone: those that the new authority puts into these slots have higher ones.
    pub generation: u16,
}

impl Handover {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.epoch.0.into());
        out.put_varint(self.member.0.into());
        out.put_option(self.tick, |out, tick| out.put_u32(tick.0));
        out.put_u16(self.slots);
        out.put_u16(self.generation);
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(Handover {
            epoch: Epoch(reader.varint_u32("epoch")?),
            member: member(reader)?,
            tick: reader.option("tick", |reader| reader.u32().map(Tick))?,
            slots: reader.u16()?,
            generation: reader.u16()?,
        })
    }
}

/// An action that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedAction {
    /// On which entity.
    pub entity: EntityId,
    /// What was asked for.
    pub name: String,
    /// Why it was refused.
    pub why: ActionRefusal,
}

impl RefusedAction {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u32(self.entity.to_bits());
        out.put_str(&self.name);
        out.put_u8(self.why.to_wire());
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(RefusedAction {
            entity: EntityId::from_bits(reader.u32()?),
            name: read_name(reader)?,
            why: ActionRefusal::from_wire(reader.u8()?),
        })
    }
}

/// A member as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Who.
    pub id: MemberId,
    /// What others may call it.
    pub name: String,
    /// Who it is, by the token that it was let in with; `None` for somebody anonymous.
    pub user: Option<String>,
    /// How it is connected to the hub.
    pub link: LinkKind,
    /// What the hub measured of it.
    pub presence: Presence,
    /// Its player data, by key: encoded values.
    pub data: Vec<(String, Bytes)>,
}

/// What a hub measures of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// Who.
    pub member: MemberId,
    /// Whether its connection stands.
    pub connected: bool,
    /// Whether its connection takes less than the room has for it: of the state it is given the newest alone, and
    /// unreliable messages to it are dropped.
    pub slow: bool,
    /// Round trip between it and the hub, in ms, once measured.
    pub rtt_ms: Option<u32>,
}

/// One value of player data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerData {
    /// Whose.
    pub member: MemberId,
    /// Under which key.
    pub key: String,
    /// The encoded value; `None` removes the key.
    pub value: Option<Bytes>,
}

/// Why a member is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaveReason {
    /// It left.
    Left,
    /// The authority removed it.
    Kicked {
        /// What the authority gave as the reason; may be empty.
        reason: String,
    },
    /// Its connection broke.
    ConnectionLost,
    /// Nothing was heard from it for too long.
    TimedOut,
    /// It broke the protocol.
    Misbehaved,
    /// It was too slow for the room.
    TooSlow,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl LeaveReason {
    /// The word for it in JSON, logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            LeaveReason::Left => "left",
            LeaveReason::Kicked { .. } => "kicked",
            LeaveReason::ConnectionLost => "connection_lost",
            LeaveReason::TimedOut => "timed_out",
            LeaveReason::Misbehaved => "misbehaved",
            LeaveReason::TooSlow => "too_slow",
            LeaveReason::Unknown { .. } => "unknown",
        }
    }

    /// Appends it.
    pub fn write(&self, out: &mut Vec<u8>) {
        let (code, detail) = match self {
            LeaveReason::Left => (0, ""),
            LeaveReason::Kicked { reason } => (1, reason.as_str()),
            LeaveReason::ConnectionLost => (2, ""),
            LeaveReason::TimedOut => (3, ""),
            LeaveReason::Misbehaved => (4, ""),
            LeaveReason::TooSlow => (5, ""),
            LeaveReason::Unknown { code } => (*code, ""),
        };
        out.put_u8(code);
        out.put_str(clip(detail, limits::REASON_BYTES_MAX));
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
    pub fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let code = reader.u8()?;
        let detail = reader.str_max("leave detail", limits::REASON_BYTES_MAX)?;
        Ok(match code {
            0 => LeaveReason::Left,
            1 => LeaveReason::Kicked { reason: detail },
            2 => LeaveReason::ConnectionLost,
            3 => LeaveReason::TimedOut,
            4 => LeaveReason::Misbehaved,
            5 => LeaveReason::TooSlow,
            code => LeaveReason::Unknown { code },
        })
    }
}

impl fmt::Display for LeaveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeaveReason::Left => f.write_str("left"),
            LeaveReason::Kicked { reason } if reason.is_empty() => f.write_str("was removed"),
            LeaveReason::Kicked { reason } => write!(f, "was removed: {reason}"),
            LeaveReason::ConnectionLost => f.write_str("lost its connection"),
            LeaveReason::TimedOut => f.write_str("was not heard of any more"),
            LeaveReason::Misbehaved => f.write_str("broke the protocol"),
            LeaveReason::TooSlow => f.write_str("was too slow for the room"),
            LeaveReason::Unknown { code } => write!(f, "is gone for reason {code}"),
        }
    }
}

impl ToMember {
    /// The message as it goes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            ToMember::Joined(info) => {
                out.put_u8(0);
                info.write(&mut out);
            }
            ToMember::Left { member, reason } => {
                out.put_u8(1);
                out.put_varint(member.0.into());
                reason.write(&mut out);
            }
            ToMember::Data(data) => {
                out.put_u8(2);
                data.write(&mut out);
            }
            ToMember::Presence(list) => {
                out.put_u8(3);
                out.put_varint(list.len() as u64);
                for presence in list {
                    out.put_varint(presence.member.0.into());
                    presence.write(&mut out);
                }
            }
            ToMember::Throttled => out.put_u8(4),
            ToMember::Primary(primary) => {
                out.put_u8(5);
                out.put_option(*primary, |out, member| out.put_varint(member.0.into()));
            }
            ToMember::ActionRefused(refused) => {
                out.put_u8(6);
                refused.write(&mut out);
            }
            ToMember::Authority(handover) => {
                out.put_u8(7);
                handover.write(&mut out);
            }
            ToMember::GoesOn { epoch } => {
                out.put_u8(8);
                out.put_varint(epoch.0.into());
            }
            ToMember::Path(offer) => {
                out.put_u8(9);
                offer.write(&mut out);
            }
            ToMember::Direct { member, direct } => {
                out.put_u8(10);
                out.put_varint(member.0.into());
                out.put_bool(*direct);
            }
        }
        out.into()
    }

    /// Reads a message; `None` if it is of a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
    pub fn decode(bytes: Bytes) -> Result<Option<Self>, ReadError> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8()? {
            0 => ToMember::Joined(MemberInfo::read(&mut reader)?),
            1 => ToMember::Left { member: member(&mut reader)?, reason: LeaveReason::read(&mut reader)? },
            2 => ToMember::Data(PlayerData::read(&mut reader)?),
            3 => {
                let count = reader.varint_max("presence count", limits::MEMBERS_MAX_SERVER_RUN.into())?;
                let mut list = Vec::new();
                for _ in 0..count {
                    let member = member(&mut reader)?;
                    list.push(Presence::read(member, &mut reader)?);
                }
                ToMember::Presence(list)
            }
            4 => ToMember::Throttled,
            5 => ToMember::Primary(reader.option("primary", member)?),
            6 => ToMember::ActionRefused(RefusedAction::read(&mut reader)?),
            7 => ToMember::Authority(Handover::read(&mut reader)?),
            8 => ToMember::GoesOn { epoch: Epoch(reader.varint_u32("epoch")?) },
            9 => ToMember::Path(PathOffer::read(&mut reader)?),
            10 => ToMember::Direct { member: member(&mut reader)?, direct: reader.bool("direct")? },
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(message))
    }
}

impl ToHub {
    /// The message as it goes on the wire.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        match self {
            ToHub::SetData(data) => {
                out.put_u8(0);
                data.write(&mut out);
            }
            ToHub::Kick { member, reason } => {
                out.put_u8(1);
                out.put_varint(member.0.into());
                out.put_str(clip(reason, limits::REASON_BYTES_MAX));
            }
            ToHub::RefuseAction { member, refused } => {
                out.put_u8(2);
                out.put_varint(member.0.into());
                refused.write(&mut out);
            }
            ToHub::Follow { epoch } => {
                out.put_u8(3);
                out.put_varint(epoch.0.into());
            }
            ToHub::Candidates(candidates) => {
                out.put_u8(4);
                candidates.write(&mut out);
            }
            ToHub::PathUp { id } => {
                out.put_u8(5);
                write_id(*id, &mut out);
            }
            ToHub::PathDown { id, was_up } => {
                out.put_u8(6);
                write_id(*id, &mut out);
                out.put_bool(*was_up);
            }
        }
        out.into()
    }

    /// Reads a message; `None` if it is of a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
    pub fn decode(bytes: Bytes) -> Result<Option<Self>, ReadError> {
        let mut reader = Reader::new(bytes);
        let message = match reader.u8()? {
            0 => ToHub::SetData(PlayerData::read(&mut reader)?),
            1 => ToHub::Kick {
                member: member(&mut reader)?,
                reason: reader.str_max("reason", limits::REASON_BYTES_MAX)?,
            },
            2 => ToHub::RefuseAction {
                member: member(&mut reader)?,
                refused: RefusedAction::read(&mut reader)?,
            },
            3 => ToHub::Follow { epoch: Epoch(reader.varint_u32("epoch")?) },
            4 => ToHub::Candidates(Candidates::read(&mut reader)?),
            5 => ToHub::PathUp { id: read_id(&mut reader)? },
            6 => ToHub::PathDown { id: read_id(&mut reader)?, was_up: reader.bool("was up")? },
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(message))
    }
}

fn member(reader: &mut Reader) -> Result<MemberId, ReadError> {
    Ok(MemberId(reader.varint_u32("member")?))
}

impl MemberInfo {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.id.0.into());
        out.put_str(&self.name);
        out.put_option(self.user.as_deref(), |out, user| out.put_str(user));
        out.put_u8(self.link.to_wire());
        self.presence.write(out);
        out.put_varint(self.data.len() as u64);
        for (key, value) in &self.data {
            out.put_str(key);
            out.put_bytes(value);
        }
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let id = member(reader)?;
        let name = reader.str_max("name", limits::NAME_BYTES_MAX)?;
        let user = reader.option("user", |reader| reader.str_max("user", limits::USER_BYTES_MAX))?;
        let link = LinkKind::from_wire(reader.u8()?)?;
        let presence = Presence::read(id, reader)?;
        let count = reader.varint_max("data count", limits::PLAYER_DATA_KEYS_MAX as u64)?;
        let mut data = Vec::new();
        for _ in 0..count {
            data.push((PlayerData::read_key(reader)?, PlayerData::read_value(reader)?));
        }
        Ok(MemberInfo { id, name, user, link, presence, data })
    }
}

const CONNECTED: u8 = 1;
const SLOW: u8 = 2;

impl Presence {
    /// Appends it, but for whose it is.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u8((u8::from(self.connected) * CONNECTED) | (u8::from(self.slow) * SLOW));
        out.put_option(self.rtt_ms, |out, rtt| out.put_varint(rtt.into()));
    }

    /// Reads what was measured of `member`.
    ///
    /// # Errors
    /// [`ReadError`] if it is not as laid out.
    pub fn read(member: MemberId, reader: &mut Reader) -> Result<Self, ReadError> {
        let flags = reader.u8()?;
        if flags & !(CONNECTED | SLOW) != 0 {
            return Err(ReadError::Unknown { field: "presence", value: flags.into() });
        }
        Ok(Presence {
            member,
            connected: flags & CONNECTED != 0,
            slow: flags & SLOW != 0,
            rtt_ms: reader.option("rtt", |reader| reader.varint_u32("rtt"))?,
        })
    }
}

impl MemberInfo {
    /// Bytes of all keys and values of its player data but those under `key`.
    pub fn data_bytes_without(&self, key: &str) -> usize {
        let others = self.data.iter().filter(|(other, _)| other != key);
        others.map(|(key, value)| key.len() + value.len()).sum()
    }
}

impl PlayerData {
    /// Whether key and value are within their bounds.
    ///
    /// # Errors
    /// What is not, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        if self.key.is_empty() || self.key.len() > limits::LABEL_BYTES_MAX {
            let (len, max) = (self.key.len(), limits::LABEL_BYTES_MAX);
            return Err(format!("a key of player data has {len} bytes; it may have 1 to {max}"));
        }
        let len = self.value.as_ref().map_or(0, Bytes::len);
        if len > limits::PLAYER_DATA_VALUE_BYTES_MAX {
            let max = limits::PLAYER_DATA_VALUE_BYTES_MAX;
            return Err(format!("a value of player data has {len} bytes; it may have at most {max}"));
        }
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.member.0.into());
        out.put_str(&self.key);
        out.put_option(self.value.as_ref(), |out, value| out.put_bytes(value));
    }

    fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(PlayerData {
            member: member(reader)?,
            key: Self::read_key(reader)?,
            value: reader.option("value", Self::read_value)?,
        })
    }

    fn read_key(reader: &mut Reader) -> Result<String, ReadError> {
        reader.str_max("data key", limits::LABEL_BYTES_MAX)
    }

    fn read_value(reader: &mut Reader) -> Result<Bytes, ReadError> {
        reader.bytes_max("data value", limits::PLAYER_DATA_VALUE_BYTES_MAX)
    }
}
