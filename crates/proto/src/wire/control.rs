//! Room control: the messages of [`channel::CONTROL`](crate::channel::CONTROL). They are reliable and
//! ordered, so both ends always agree on the room's members. Each message is one kind with its fields.
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
//!  7 authority epoch: varint · member: varint · tick: 0 none | 1, 4 bytes
//!              slots: 2 bytes · generation: 2 bytes
//!  8 goes on   epoch: varint
//!  9 path      offer
//!  10 direct   member: varint · 0 through the hub | 1 over a path
//!  11 actions decided   decisions
//!  12 away     member: varint · reason: 1 byte · detail: text
//!  13 spectators   count: varint · for each: member: varint
//!  14 not handed over   why: 1 byte
//!  15 reopened   0 | 1 something may be lost · epoch: varint
//!
//!  to the hub
//!  0 set data  member: varint · key: text · 0 remove | 1 value: bytes
//!  1 kick      member: varint · reason: text
//!  2 refuse action    member: varint · entity: 4 bytes · name: text · why: 1 byte
//!  3 follow    epoch: varint
//!  4 candidates   candidates
//!  5 path up   id: 8 bytes
//!  6 path down id: 8 bytes · 0 | 1 the state came over it
//!  7 decide actions    member: varint · decisions
//!  8 terms     presence: 0 | 1, varint ms · grace: 0 | 1, varint ms
//!  9 spectators   most: varint
//!  10 hand over   epoch: varint · to: 0 the hub's choice | 1, member: varint
//!
//!  member      id: varint · name: text · user: 0 | 1, text · link: 1 byte · flags: 1 byte
//!              rtt: 0 | 1, varint ms
//!              count: varint · for each: key: text, value: bytes
//!  flags       1 connected · 2 slow
//! ```
//!
//! See [`path`](super::path) for the fields of paths, and [`action`](super::action) for decisions.

mod hand_over;
mod leave_reason;
mod terms;

pub use hand_over::{HandOver, HandOverRefusal};
pub use leave_reason::LeaveReason;
pub use terms::RoomTerms;

use super::action::{Decision, RefusedAction};
use super::cursor::{ReadError, Reader, Write};
use super::path::{Candidates, PathOffer, read_id, write_id};
use crate::error::clip;
use crate::ids::{Epoch, MemberId, PathId};
use crate::limits;
use crate::link::LinkKind;
use crate::time::Tick;
use bytes::Bytes;

/// A message from the hub to a member about its room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMember {
    /// A member joined. A newcomer gets one for every member, itself first.
    Joined(MemberInfo),
    /// A member left.
    Left {
        /// The member.
        member: MemberId,
        /// The reason.
        reason: LeaveReason,
    },
    /// A value of player data changed.
    Data(PlayerData),
    /// The hub's recent measurements. Lists only members with changes.
    Presence(Vec<Presence>),
    /// This member exceeds the room's rate, and some of its unreliable messages were dropped. Sent once.
    Throttled,
    /// The hub has set the primary member, or none: the recipient of messages to the primary.
    Primary(Option<MemberId>),
    /// An action that this member requested was refused.
    ActionRefused(RefusedAction),
    /// Another member becomes the authority.
    Authority(Handover),
    /// The authority of this epoch has the whole state and continues from it.
    GoesOn {
        /// The epoch.
        epoch: Epoch,
    },
    /// This member may try a direct path to the authority, or a member to it.
    Path(PathOffer),
    /// A member begins or ceases to use a direct path to the authority.
    Direct {
        /// The member.
        member: MemberId,
        /// Whether it uses one.
        direct: bool,
    },
    /// The authority decided about predicted actions of this member, at most [`limits::ACTION_DECISIONS_MAX`].
    ActionsDecided(Vec<Decision>),
    /// A member has lost its connection; its seat is kept for a while.
    Away {
        /// The member.
        member: MemberId,
        /// How it was lost.
        reason: LeaveReason,
    },
    /// Which of the members whose [`Joined`](Self::Joined) follows are spectators, until the next one of these.
    Spectators(Vec<MemberId>),
    /// This member, which asked to hand the authority's part over, keeps it.
    NotHandedOver(HandOverRefusal),
    /// The room was reopened at this node: its members keep their ids, in new sessions. Follows the
    /// [`Joined`](Self::Joined) messages of a member that claimed its seat.
    Reopened {
        /// Whether messages may have been lost.
        gap: bool,
        /// The epoch of the reopened room.
        epoch: Epoch,
    },
}

/// A request of a member to the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToHub {
    /// Sets player data: a member's own; the authority may set any.
    SetData(PlayerData),
    /// Removes a member; only the authority may.
    Kick {
        /// The member.
        member: MemberId,
        /// The reason, for that person to read; may be empty.
        reason: String,
    },
    /// Reports to a member that its action was refused; only the authority may.
    RefuseAction {
        /// The member.
        member: MemberId,
        /// The action, and why.
        refused: RefusedAction,
    },
    /// Sent by a member that was the authority, or was to be, and knows that it no longer is: it has nothing
    /// of the state and needs its view.
    Follow {
        /// The epoch that it knows.
        epoch: Epoch,
    },
    /// The addresses at which this member may be reached directly.
    Candidates(Candidates),
    /// The state arrives over this path: the hub need not send any.
    PathUp {
        /// The path.
        id: PathId,
    },
    /// The path is over, or could not be opened.
    PathDown {
        /// The path.
        id: PathId,
        /// Whether the state arrived over it, so that this member has nothing of the hub's stream.
        was_up: bool,
    },
    /// Tells a member what was decided about its predicted actions; only the authority may.
    DecideActions {
        /// The member.
        member: MemberId,
        /// The decisions, at most [`limits::ACTION_DECISIONS_MAX`].
        decisions: Vec<Decision>,
    },
    /// How soon the hub misses a member of this room, and how long it keeps a seat; only the opener of the room
    /// may say so.
    Terms(RoomTerms),
    /// How many spectators the room takes, at most [`limits::SPECTATORS_MAX`]; only the opener of the room may say so.
    Spectators {
        /// The most at once.
        most: u16,
    },
    /// Another member is to become the authority; only the authority may say so.
    HandOver(HandOver),
}

/// Another member becomes the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The room's new epoch.
    pub epoch: Epoch,
    /// The new authority.
    pub member: MemberId,
    /// The newest tick of the state that is handed over; newer ones are the new authority's. `None` without
    /// state.
    pub tick: Option<Tick>,
    /// Slots used so far: the new authority does not use the free ones for a while.
    pub slots: u16,
    /// The highest generation of a despawned entity: the new authority uses higher ones in these slots.
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

/// A member, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberInfo {
    /// Its id.
    pub id: MemberId,
    /// Its display name.
    pub name: String,
    /// The user of its admission token; `None` for an anonymous member.
    pub user: Option<String>,
    /// Its transport to the hub.
    pub link: LinkKind,
    /// The hub's measurements.
    pub presence: Presence,
    /// Its player data, by key: encoded values.
    pub data: Vec<(String, Bytes)>,
}

/// A hub's measurements of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Presence {
    /// The member.
    pub member: MemberId,
    /// Whether it is connected.
    pub connected: bool,
    /// Whether its connection is slower than the room's traffic: it gets only the newest state, and
    /// unreliable messages to it are dropped.
    pub slow: bool,
    /// Round trip between it and the hub, in ms, once measured.
    pub rtt_ms: Option<u32>,
}

/// One value of player data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayerData {
    /// The member.
    pub member: MemberId,
    /// The key.
    pub key: String,
    /// The encoded value; `None` removes the key.
    pub value: Option<Bytes>,
}

fn write_presences(list: &[Presence], out: &mut Vec<u8>) {
    out.put_varint(list.len() as u64);
    for presence in list {
        out.put_varint(presence.member.0.into());
        presence.write(out);
    }
}

impl ToMember {
    /// Encodes the message.
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
                write_presences(list, &mut out);
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
            ToMember::ActionsDecided(decisions) => {
                out.put_u8(11);
                Decision::write_all(decisions, &mut out);
            }
            ToMember::Away { member, reason } => {
                out.put_u8(12);
                out.put_varint(member.0.into());
                reason.write(&mut out);
            }
            ToMember::Spectators(members) => {
                out.put_u8(13);
                out.put_varint(members.len() as u64);
                members.iter().for_each(|member| out.put_varint(member.0.into()));
            }
            ToMember::NotHandedOver(why) => {
                out.put_u8(14);
                out.put_u8(why.to_wire());
            }
            ToMember::Reopened { gap, epoch } => {
                out.put_u8(15);
                out.put_bool(*gap);
                out.put_varint(epoch.0.into());
            }
        }
        out.into()
    }

    /// Decodes a message; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
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
            11 => ToMember::ActionsDecided(Decision::read_all(&mut reader)?),
            12 => ToMember::Away { member: member(&mut reader)?, reason: LeaveReason::read(&mut reader)? },
            13 => {
                let count = reader.varint_max("spectator count", limits::MEMBERS_MAX_SERVER_RUN.into())?;
                ToMember::Spectators((0..count).map(|_| member(&mut reader)).collect::<Result<_, _>>()?)
            }
            14 => ToMember::NotHandedOver(HandOverRefusal::from_wire(reader.u8()?)),
            15 => ToMember::Reopened { gap: reader.bool("gap")?, epoch: Epoch(reader.varint_u32("epoch")?) },
            _ => return Ok(None),
        };
        reader.finish()?;
        Ok(Some(message))
    }
}

const HAND_OVER: u8 = 10;

impl ToHub {
    /// Encodes the message.
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
            ToHub::DecideActions { member, decisions } => {
                out.put_u8(7);
                out.put_varint(member.0.into());
                Decision::write_all(decisions, &mut out);
            }
            ToHub::Terms(terms) => {
                out.put_u8(8);
                terms.write(&mut out);
            }
            ToHub::Spectators { most } => {
                out.put_u8(9);
                out.put_varint((*most).into());
            }
            ToHub::HandOver(hand_over) => {
                out.put_u8(HAND_OVER);
                hand_over.write(&mut out);
            }
        }
        out.into()
    }

    /// Whether this message, if it is well-formed, asks to hand the authority's part over.
    pub fn is_hand_over(bytes: &Bytes) -> bool {
        bytes.first() == Some(&HAND_OVER)
    }

    /// Decodes a message; `None` for a kind that this version does not know.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
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
            7 => ToHub::DecideActions {
                member: member(&mut reader)?,
                decisions: Decision::read_all(&mut reader)?,
            },
            8 => ToHub::Terms(RoomTerms::read(&mut reader)?),
            9 => {
                let most = reader.varint_max("spectators", limits::SPECTATORS_MAX.into())?;
                ToHub::Spectators { most: most.try_into().unwrap_or(limits::SPECTATORS_MAX) }
            }
            HAND_OVER => ToHub::HandOver(HandOver::read(&mut reader)?),
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
        let link = LinkKind::from_wire(reader.u8()?);
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
    /// Appends it, without the member.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_u8((u8::from(self.connected) * CONNECTED) | (u8::from(self.slow) * SLOW));
        out.put_option(self.rtt_ms, |out, rtt| out.put_varint(rtt.into()));
    }

    /// Reads the measurements of `member`.
    ///
    /// # Errors
    /// [`ReadError`] if they are malformed.
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
    /// Bytes of all keys and values of its player data, without `key`.
    pub fn data_bytes_without(&self, key: &str) -> usize {
        let others = self.data.iter().filter(|(other, _)| other != key);
        others.map(|(key, value)| key.len() + value.len()).sum()
    }
}

impl PlayerData {
    /// Checks that key and value are within their bounds.
    ///
    /// # Errors
    /// The invalid part, with its bounds.
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
