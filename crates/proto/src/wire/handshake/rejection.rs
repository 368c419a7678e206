//! The rejections: answers that do not admit a peer.

use super::{ResumeRefusal, RoomKind};
use crate::error::clip;
use crate::ids::ChannelId;
use crate::limits;
use crate::text::Quoted;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;
use core::time::Duration;

/// The hub's answer: the room is on another server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The server's address, in the form that a client takes from its user; or `:PORT` for another port of
    /// the same host with the same certificate.
    pub address: String,
}

/// The hub's answer: try again later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// How long to wait.
    pub after: Duration,
    /// The reason, for people to read.
    pub detail: String,
}

/// The hub's answer: refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The two share no protocol version.
    Version {
        /// Oldest version that the hub speaks.
        min: u16,
        /// Newest version that the hub speaks.
        max: u16,
    },
    /// The room, or the server, is for another game.
    App {
        /// The expected game.
        expected: String,
    },
    /// The room does not exist, or the secret is wrong. The answer is the same, so that guessing reveals
    /// nothing.
    NoSuchRoom,
    /// All seats are taken.
    RoomFull {
        /// The number of seats.
        max: u16,
    },
    /// The chosen code is taken.
    CodeTaken,
    /// The channel tables differ.
    Channels {
        /// The first channel that differs.
        channel: ChannelId,
    },
    /// The token was rejected.
    Unauthorized,
    /// A field of the hello is out of range.
    BadRequest {
        /// The field, with its bounds.
        detail: String,
    },
    /// The server accepts no more rooms or members.
    ServerFull,
    /// The schemas differ.
    Schema {
        /// Hash of the room's schema.
        hash: u64,
    },
    /// The server does not accept rooms of this kind.
    RoomKind {
        /// The kind.
        kind: RoomKind,
    },
    /// The server stores no logs of matches.
    NotKept,
    /// Storing a match requires a token with a user.
    KeepNeedsUser,
    /// The user has the maximum number of stored matches.
    KeepQuota {
        /// What exceeds the quota, and what to do.
        detail: String,
    },
    /// All seats for spectators are taken.
    SpectatorsFull {
        /// The number of these seats; 0 if the room takes no spectators.
        max: u16,
    },
    /// The session cannot be resumed.
    Resume {
        /// The reason.
        why: ResumeRefusal,
    },
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl Refusal {
    /// The name in JSON, logs and metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Refusal::Version { .. } => "version",
            Refusal::App { .. } => "app",
            Refusal::NoSuchRoom => "no_such_room",
            Refusal::RoomFull { .. } => "room_full",
            Refusal::CodeTaken => "code_taken",
            Refusal::Channels { .. } => "channels",
            Refusal::Unauthorized => "unauthorized",
            Refusal::BadRequest { .. } => "bad_request",
            Refusal::ServerFull => "server_full",
            Refusal::Schema { .. } => "schema",
            Refusal::RoomKind { .. } => "room_kind",
            Refusal::NotKept => "not_kept",
            Refusal::KeepNeedsUser => "keep_needs_user",
            Refusal::KeepQuota { .. } => "keep_quota",
            Refusal::SpectatorsFull { .. } => "spectators_full",
            Refusal::Resume { .. } => "resume",
            Refusal::Unknown { .. } => "unknown",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version { min, max } => write!(
                f,
                "the server speaks versions {min} to {max} of the protocol and this build {} to {}: update the older",
                limits::VERSION_MIN,
                limits::VERSION_MAX
            ),
            Refusal::App { expected } => write!(f, "that room is for another game, {}", Quoted(expected)),
            Refusal::NoSuchRoom => f.write_str(
                "no room with this code, or its secret is another: check the code, and that host and guest use the \
                 same server",
            ),
            Refusal::RoomFull { max } => write!(f, "all {max} seats of the room are taken"),
            Refusal::CodeTaken => f.write_str("another room has this code: choose another, or let one be drawn"),
            Refusal::Channels { channel } => {
                write!(f, "the room declares {channel} otherwise: host and guest must declare the same channels")
            }
            Refusal::Unauthorized => f.write_str("the server did not accept the token"),
            Refusal::BadRequest { detail } => write!(f, "the server did not accept the request: {detail}"),
            Refusal::ServerFull => f.write_str("the server takes no more rooms"),
            Refusal::Schema { hash } => write!(
                f,
                "the room's game was built with another schema, {hash:016x}: update, so that host and guest have the same"
            ),
            Refusal::RoomKind { kind: RoomKind::PlayerHosted } => {
                f.write_str("the server takes no rooms that a player hosts")
            }
            Refusal::RoomKind { kind: RoomKind::Dedicated } => f.write_str(
                "the server takes no rooms of dedicated hosts: it must be started with --dedicated for that",
            ),
            Refusal::RoomKind { kind: RoomKind::Match } => f.write_str("the server takes no matches"),
            Refusal::NotKept => f.write_str(
                "the server keeps no logs of matches: leave out keep, or start it with a folder for its data, `parlor serve --data`",
            ),
            Refusal::KeepNeedsUser => f.write_str(
                "a match is kept only for a player with an account: leave out keep, or come in with an account's ticket or a token",
            ),
            Refusal::KeepQuota { detail } => write!(f, "the server does not keep this match: {detail}"),
            Refusal::SpectatorsFull { max: 0 } => f.write_str(
                "the room takes no spectators: join as a player, or let its host open it with seats for spectators",
            ),
            Refusal::SpectatorsFull { max } => {
                write!(f, "all {max} seats for spectators are taken: try again later, or join as a player")
            }
            Refusal::Resume { why: ResumeRefusal::Gone } => f.write_str(
                "the server does not have the session any more: it kept the seat for as long as it does, or began anew",
            ),
            Refusal::Resume { why: ResumeRefusal::Token } => {
                f.write_str("the session is another's: what proves whose it is, was not accepted")
            }
            Refusal::Resume { why: ResumeRefusal::GraceOver } => f.write_str(
                "the server has given the seat up, and still knows whose it was: come in again, and you are the same player",
            ),
            Refusal::Unknown { code } => write!(f, "the server refused for reason {code}, which is newer than this build"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Redirect {
    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        out.put_str(clip(&self.address, limits::ADDRESS_BYTES_MAX));
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Redirect { address: body.str_max("address", limits::ADDRESS_BYTES_MAX)? })
    }
}

impl RetryAfter {
    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX).min(u32::MAX.into()));
        out.put_str(clip(&self.detail, limits::REASON_BYTES_MAX));
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(RetryAfter {
            after: Duration::from_millis(body.varint_u32("after")?.into()),
            detail: body.str_max("detail", limits::REASON_BYTES_MAX)?,
        })
    }
}

impl Refusal {
    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Refusal::Version { min, max } => {
                out.put_u8(0);
                out.put_u16(*min);
                out.put_u16(*max);
            }
            Refusal::App { expected } => {
                out.put_u8(1);
                out.put_str(clip(expected, limits::LABEL_BYTES_MAX));
            }
            Refusal::NoSuchRoom => out.put_u8(2),
            Refusal::RoomFull { max } => {
                out.put_u8(3);
                out.put_u16(*max);
            }
            Refusal::CodeTaken => out.put_u8(4),
            Refusal::Channels { channel } => {
                out.put_u8(5);
                out.put_u8(channel.0);
            }
            Refusal::Unauthorized => out.put_u8(6),
            Refusal::BadRequest { detail } => {
                out.put_u8(7);
                out.put_str(clip(detail, limits::REASON_BYTES_MAX));
            }
            Refusal::ServerFull => out.put_u8(8),
            Refusal::Schema { hash } => {
                out.put_u8(9);
                out.put_u64(*hash);
            }
            Refusal::RoomKind { kind } => {
                out.put_u8(10);
                out.put_u8(kind.to_wire());
            }
            Refusal::Resume { why } => {
                out.put_u8(11);
                out.put_u8(why.to_wire());
            }
            Refusal::NotKept => out.put_u8(12),
            Refusal::KeepNeedsUser => out.put_u8(13),
            Refusal::KeepQuota { detail } => {
                out.put_u8(14);
                out.put_str(clip(detail, limits::REASON_BYTES_MAX));
            }
            Refusal::SpectatorsFull { max } => {
                out.put_u8(15);
                out.put_u16(*max);
            }
            Refusal::Unknown { code } => out.put_u8(*code),
        }
    }

    pub(in crate::wire) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(match body.u8()? {
            0 => Refusal::Version { min: body.u16()?, max: body.u16()? },
            1 => Refusal::App { expected: body.str_max("app", limits::LABEL_BYTES_MAX)? },
            2 => Refusal::NoSuchRoom,
            3 => Refusal::RoomFull { max: body.u16()? },
            4 => Refusal::CodeTaken,
            5 => Refusal::Channels { channel: ChannelId(body.u8()?) },
            6 => Refusal::Unauthorized,
            7 => Refusal::BadRequest { detail: body.str_max("detail", limits::REASON_BYTES_MAX)? },
            8 => Refusal::ServerFull,
            9 => Refusal::Schema { hash: body.u64()? },
            10 => Refusal::RoomKind { kind: RoomKind::read(body)? },
            11 => Refusal::Resume { why: ResumeRefusal::read(body)? },
            12 => Refusal::NotKept,
            13 => Refusal::KeepNeedsUser,
            14 => Refusal::KeepQuota { detail: body.str_max("detail", limits::REASON_BYTES_MAX)? },
            15 => Refusal::SpectatorsFull { max: body.u16()? },
            code => {
                body.rest();
                Refusal::Unknown { code }
            }
        })
    }
}
