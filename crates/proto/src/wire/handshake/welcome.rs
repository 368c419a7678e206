//! The welcome: the answer that admits a peer.

use super::{ResumeToken, RoomKind, capability, read_code, read_tick_rate};
use crate::code::RoomCode;
use crate::ids::{Epoch, MemberId, RoomId, SessionId};
use crate::limits;
use crate::time::{Instant, TickRate};
use crate::wire::cursor::{ReadError, Reader, Write};
use bytes::Bytes;

/// The authority of a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The hub itself.
    Hub,
    /// A member: the host.
    Member(MemberId),
}

impl Authority {
    /// The host, if a member is the authority.
    pub const fn member(self) -> Option<MemberId> {
        match self {
            Authority::Member(member) => Some(member),
            Authority::Hub => None,
        }
    }
}

/// The hub's answer: admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// The session.
    pub session: SessionId,
    /// The hub's capabilities beyond the version.
    pub capabilities: u64,
    /// The room.
    pub room: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// Its kind.
    pub kind: RoomKind,
    /// The newcomer's id in it.
    pub member: MemberId,
    /// Its authority.
    pub authority: Authority,
    /// The number of changes of authority.
    pub epoch: Epoch,
    /// Its steps per second.
    pub tick_rate: TickRate,
    /// When it opened, on the hub's clock. Room time and ticks count from here, so that with the hub's clock
    /// every member knows the tick and its phase.
    pub opened: Instant,
    /// The hub's clock when it wrote this.
    pub now: Instant,
    /// Maximum number of players at once: all members except a dedicated host.
    pub max_players: u16,
    /// The hub's limits.
    pub limits: Limits,
    /// The token to resume the session with when its connection is lost; `None` if the hub keeps no seats.
    pub resume: Option<ResumeToken>,
    /// How long the hub keeps the seat of a disconnected member, in ms.
    pub grace_ms: u32,
    /// Silence of the hub after which the host counts as gone, in ms, if the hub lives in the host's process
    /// and ends with it. Otherwise `None`.
    pub gone_ms: Option<u32>,
    /// The encoded schema of the room's settings, for a client whose hello named no schema. Empty if there is
    /// none, and for a client that has it.
    pub schema: Bytes,
    /// The number of its members, including the newcomer: as many Joined messages precede all other messages
    /// of the room.
    pub members: u16,
}

/// Limits that a hub sends to its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload of a message, in bytes.
    pub message_bytes: u32,
    /// Largest datagram, in bytes.
    pub datagram_bytes: u32,
    /// Silence after which a keep-alive is due, in ms.
    pub keep_alive_ms: u32,
    /// Silence after which a connection counts as lost, in ms.
    pub silence_ms: u32,
}

impl Limits {
    /// The limits of this build.
    #[allow(clippy::cast_possible_truncation)] // constants below 2³²
    pub const fn of_this_build() -> Self {
        Limits {
            message_bytes: limits::MESSAGE_BYTES_MAX as u32,
            datagram_bytes: limits::DATAGRAM_BYTES_MAX as u32,
            keep_alive_ms: limits::KEEP_ALIVE_INTERVAL.as_millis() as u32,
            silence_ms: limits::SILENCE_TIMEOUT.as_millis() as u32,
        }
    }
}

impl Authority {
    pub(in crate::wire) fn write(self, out: &mut Vec<u8>) {
        match self {
            Authority::Hub => out.put_u8(0),
            Authority::Member(member) => {
                out.put_u8(1);
                out.put_varint(member.0.into());
            }
        }
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(match body.u8()? {
            0 => Authority::Hub,
            1 => Authority::Member(MemberId(body.varint_u32("member")?)),
            value => return Err(ReadError::Unknown { field: "authority", value: value.into() }),
        })
    }
}

impl Welcome {
    /// Whether the member is a spectator.
    pub const fn spectates(&self) -> bool {
        self.capabilities & capability::SPECTATES != 0
    }

    /// Whether the member is the authority.
    pub fn is_of_authority(&self) -> bool {
        self.authority == Authority::Member(self.member)
    }

    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        out.put_u16(self.version);
        out.put_u128(self.session.0);
        out.put_u64(self.capabilities);
        out.put_varint(self.room.0);
        out.put_str(self.code.as_str());
        out.put_u8(self.kind.to_wire());
        out.put_varint(self.member.0.into());
        self.authority.write(out);
        out.put_varint(self.epoch.0.into());
        out.put_u16(self.tick_rate.hz());
        out.put_varint(self.opened.as_micros());
        out.put_varint(self.now.as_micros());
        out.put_u16(self.max_players);
        for limit in [
            self.limits.message_bytes,
            self.limits.datagram_bytes,
            self.limits.keep_alive_ms,
            self.limits.silence_ms,
        ] {
            out.put_varint(limit.into());
        }
        out.put_option(self.resume, |out, token| token.write(out));
        out.put_varint(self.grace_ms.into());
        out.put_option(self.gone_ms, |out, gone_ms| out.put_varint(gone_ms.into()));
        out.put_bytes(&self.schema);
        out.put_varint(self.members.into());
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Welcome {
            version: body.u16()?,
            session: SessionId(body.u128()?),
            capabilities: body.u64()?,
            room: RoomId(body.varint()?),
            code: read_code(body)?,
            kind: RoomKind::read(body)?,
            member: MemberId(body.varint_u32("member")?),
            authority: Authority::read(body)?,
            epoch: Epoch(body.varint_u32("epoch")?),
            tick_rate: read_tick_rate(body)?,
            opened: Instant::from_micros(body.varint()?),
            now: Instant::from_micros(body.varint()?),
            max_players: body.u16()?,
            limits: Limits {
                message_bytes: body.varint_u32("message limit")?,
                datagram_bytes: body.varint_u32("datagram limit")?,
                keep_alive_ms: body.varint_u32("keep-alive")?,
                silence_ms: body.varint_u32("silence")?,
            },
            resume: body.option("resume token", ResumeToken::read)?,
            grace_ms: body.varint_u32("grace")?,
            gone_ms: body.option("gone", |body| body.varint_u32("gone"))?,
            schema: body.bytes_max("schema", limits::SCHEMA_BYTES_MAX)?,
            members: read_members(body)?,
        })
    }
}

fn read_members(body: &mut Reader) -> Result<u16, ReadError> {
    let members = body.varint_max("members", limits::MEMBERS_MAX_SERVER_RUN.into())?;
    u16::try_from(members).map_err(|_| ReadError::OutOfRange { field: "members" })
}
