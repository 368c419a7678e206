//! Hello, and the four answers to it.
//!
//! ```text
//!  Hello       version min, max: 2 + 2 bytes · app: text · environment: text · capabilities: 8 bytes
//!              auth: 0 anonymous | 1 token: bytes · key fingerprint: 0 | 1, 32 bytes · name: text
//!              channels: table · intent: 0 create, settings | 1 join, code: text, secret: 0 | 1, text
//!  settings    kind: 1 byte · code: 0 | 1, text · secret: 0 | 1, text · max players: 2 bytes · tick rate: 2 bytes
//!  Welcome     version: 2 bytes · session: 16 bytes · capabilities: 8 bytes · room: varint · code: text
//!              kind: 1 byte · member: varint · authority: 0 hub | 1 dedicated | 2 member, varint
//!              epoch: varint · tick rate: 2 bytes · opened: varint µs · now: varint µs · max players: 2 bytes
//!              message limit: varint · datagram limit: varint · keep-alive: varint ms · silence: varint ms
//!  Redirect    address: text
//!  RetryAfter  after: varint ms · detail: text
//!  Refused     reason: 1 byte · what belongs to it
//! ```
//!
//! The first two fields of Hello and the whole of Refused keep their layout in every version, so that two builds that
//! share none can still tell a person so.

use super::cursor::{ReadError, Reader, Write};
use crate::channel::ChannelTable;
use crate::code::RoomCode;
use crate::error::clip;
use crate::ids::{ChannelId, Epoch, MemberId, RoomId, SessionId};
use crate::limits;
use crate::time::{Instant, TickRate};
use bytes::Bytes;
use core::fmt;
use core::time::Duration;

/// What the side that connects says first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Oldest version of the protocol that it speaks.
    pub version_min: u16,
    /// Newest version that it speaks.
    pub version_max: u16,
    /// Which game. Only members of one game meet in a room.
    pub app: String,
    /// Which environment of it ("production", "development"); they never mix. May be empty.
    pub environment: String,
    /// What it can do beyond the version, one bit each. None is defined yet; unknown bits are ignored.
    pub capabilities: u64,
    /// How it proves who it is.
    pub auth: Auth,
    /// SHA-256 of the public key that it would use on direct paths to other members, for the hub to vouch for.
    pub key: Option<[u8; 32]>,
    /// What others may call it.
    pub name: String,
    /// The channels of its game.
    pub channels: ChannelTable,
    /// What it wants.
    pub intent: Intent,
}

/// How a peer proves who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Not at all.
    Anonymous,
    /// By a token that the server signed.
    Token(Bytes),
}

/// What a peer wants of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// A new room.
    Create(RoomSettings),
    /// A seat in a room.
    Join {
        /// The room's code.
        code: RoomCode,
        /// The room's secret, if it has one.
        secret: Option<String>,
    },
}

/// What a room shall be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSettings {
    /// Who runs it.
    pub kind: RoomKind,
    /// A code that its creator chose; without one the hub draws one.
    pub code: Option<RoomCode>,
    /// What a joiner must know beside the code.
    pub secret: Option<String>,
    /// How many members it may have at once.
    pub max_players: u16,
    /// Its steps per second.
    pub tick_rate: TickRate,
}

/// Who runs a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomKind {
    /// A member's game process.
    PlayerHosted,
}

/// Who decides in a room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The hub itself.
    Hub,
    /// A dedicated process.
    Dedicated,
    /// A member: the host.
    Member(MemberId),
}

impl Authority {
    /// The host, if a member is the authority.
    #[must_use]
    pub const fn member(self) -> Option<MemberId> {
        match self {
            Authority::Member(member) => Some(member),
            Authority::Hub | Authority::Dedicated => None,
        }
    }
}

/// The hub's answer: come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// The version that both speak from here on.
    pub version: u16,
    /// The session.
    pub session: SessionId,
    /// What the hub can do beyond the version.
    pub capabilities: u64,
    /// The room.
    pub room: RoomId,
    /// Its code.
    pub code: RoomCode,
    /// Who runs it.
    pub kind: RoomKind,
    /// Who the newcomer is in it.
    pub member: MemberId,
    /// Who decides in it.
    pub authority: Authority,
    /// How often that has changed.
    pub epoch: Epoch,
    /// Its steps per second.
    pub tick_rate: TickRate,
    /// When it opened, on the hub's clock. Room time and ticks count from here, so that with the hub's clock every
    /// member knows the tick and its phase.
    pub opened: Instant,
    /// The hub's clock when it wrote this.
    pub now: Instant,
    /// How many members it may have at once.
    pub max_players: u16,
    /// The bounds that the hub keeps.
    pub limits: Limits,
}

/// Bounds that a hub tells its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest payload of a message, in bytes.
    pub message_bytes: u32,
    /// Largest datagram, in bytes.
    pub datagram_bytes: u32,
    /// Silence after which a sign of life is due, in ms.
    pub keep_alive_ms: u32,
    /// Silence after which a connection counts as lost, in ms.
    pub silence_ms: u32,
}

impl Limits {
    /// The bounds of this build.
    #[must_use]
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

/// The hub's answer: the room is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Server address, in the form that a client takes from its user.
    pub address: String,
}

/// The hub's answer: not now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    /// How long to wait.
    pub after: Duration,
    /// Why, for a person to read.
    pub detail: String,
}

/// The hub's answer: no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The two share no version of the protocol.
    Version {
        /// Oldest version that the hub speaks.
        min: u16,
        /// Newest version that the hub speaks.
        max: u16,
    },
    /// The room, or the server, is for another game.
    App {
        /// The game that it is for.
        expected: String,
    },
    /// There is no such room, or the secret is wrong: the answer is the same, so that guessing tells nothing.
    NoSuchRoom,
    /// All seats are taken.
    RoomFull {
        /// How many there are.
        max: u16,
    },
    /// The chosen code is taken.
    CodeTaken,
    /// The two declare different channels.
    Channels {
        /// The first that differs.
        channel: ChannelId,
    },
    /// The token was not accepted.
    Unauthorized,
    /// A field of the hello is outside its bounds.
    BadRequest {
        /// Which, and what it may be.
        detail: String,
    },
    /// The server takes no more rooms or members.
    ServerFull,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl Refusal {
    /// The word for it in JSON, logs and metrics.
    #[must_use]
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
            Refusal::App { expected } => write!(f, "that room is for another game, {expected:?}"),
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
            Refusal::Unknown { code } => write!(f, "the server refused for reason {code}, which is newer than this build"),
        }
    }
}

impl std::error::Error for Refusal {}

impl Hello {
    /// Whether every field is within its bounds.
    ///
    /// # Errors
    /// The field that is not, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        check_text("app", &self.app, 1, limits::LABEL_BYTES_MAX)?;
        check_text("environment", &self.environment, 0, limits::LABEL_BYTES_MAX)?;
        check_text("name", &self.name, 0, limits::NAME_BYTES_MAX)?;
        if let Auth::Token(token) = &self.auth
            && token.len() > limits::TOKEN_BYTES_MAX
        {
            let (len, most) = (token.len(), limits::TOKEN_BYTES_MAX);
            return Err(format!("the token has {len} bytes; it may have at most {most}"));
        }
        match &self.intent {
            Intent::Join { secret, .. } => check_secret(secret.as_deref()),
            Intent::Create(settings) => {
                let most = limits::MEMBERS_MAX_PLAYER_HOSTED;
                if !(limits::MEMBERS_MIN..=most).contains(&settings.max_players) {
                    let min = limits::MEMBERS_MIN;
                    return Err(format!(
                        "max_players is {}; it may be {min} to {most}",
                        settings.max_players
                    ));
                }
                check_secret(settings.secret.as_deref())
            }
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_u16(self.version_min);
        out.put_u16(self.version_max);
        out.put_str(&self.app);
        out.put_str(&self.environment);
        out.put_u64(self.capabilities);
        match &self.auth {
            Auth::Anonymous => out.put_u8(0),
            Auth::Token(token) => {
                out.put_u8(1);
                out.put_bytes(token);
            }
        }
        out.put_option(self.key, |out, key| out.put(&key));
        out.put_str(&self.name);
        self.channels.write(out);
        match &self.intent {
            Intent::Create(settings) => {
                out.put_u8(0);
                settings.write(out);
            }
            Intent::Join { code, secret } => {
                out.put_u8(1);
                out.put_str(code.as_str());
                out.put_option(secret.as_deref(), |out, secret| out.put_str(secret));
            }
        }
    }

    /// Reads what follows the versions.
    pub(super) fn read(version_min: u16, version_max: u16, body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Hello {
            version_min,
            version_max,
            app: body.str_max("app", limits::LABEL_BYTES_MAX)?,
            environment: body.str_max("environment", limits::LABEL_BYTES_MAX)?,
            capabilities: body.u64()?,
            auth: match body.u8()? {
                0 => Auth::Anonymous,
                1 => Auth::Token(body.bytes_max("token", limits::TOKEN_BYTES_MAX)?),
                value => return Err(ReadError::Unknown { field: "auth", value: value.into() }),
            },
            key: body.option("key fingerprint", |body| {
                let mut key = [0; 32];
                key.copy_from_slice(&body.take(32)?);
                Ok(key)
            })?,
            name: body.str_max("name", limits::NAME_BYTES_MAX)?,
            channels: ChannelTable::read(body)?,
            intent: match body.u8()? {
                0 => Intent::Create(RoomSettings::read(body)?),
                1 => Intent::Join { code: read_code(body)?, secret: body.option("secret", read_secret)? },
                value => return Err(ReadError::Unknown { field: "intent", value: value.into() }),
            },
        })
    }
}

fn check_text(field: &str, text: &str, min: usize, max: usize) -> Result<(), String> {
    if !(min..=max).contains(&text.len()) {
        return Err(format!("{field} has {} bytes; it may have {min} to {max}", text.len()));
    }
    match text.chars().find(|c| c.is_control()) {
        Some(odd) => Err(format!("{field} has the control character {odd:?}")),
        None => Ok(()),
    }
}

fn check_secret(secret: Option<&str>) -> Result<(), String> {
    secret.map_or(Ok(()), |secret| check_text("secret", secret, 1, limits::LABEL_BYTES_MAX))
}

fn read_secret(body: &mut Reader) -> Result<String, ReadError> {
    body.str_max("secret", limits::LABEL_BYTES_MAX)
}

fn read_code(body: &mut Reader) -> Result<RoomCode, ReadError> {
    let text = body.str_max("room code", crate::code::CODE_LEN_MAX)?;
    // People type codes in any case; on the wire they are upper case.
    text.parse()
        .ok()
        .filter(|code: &RoomCode| code.as_str() == text)
        .ok_or(ReadError::OutOfRange { field: "room code" })
}

fn read_tick_rate(body: &mut Reader) -> Result<TickRate, ReadError> {
    TickRate::new(body.u16()?).ok_or(ReadError::OutOfRange { field: "tick rate" })
}

impl RoomKind {
    const fn to_wire(self) -> u8 {
        match self {
            RoomKind::PlayerHosted => 0,
        }
    }

    fn read(body: &mut Reader) -> Result<Self, ReadError> {
        match body.u8()? {
            0 => Ok(RoomKind::PlayerHosted),
            value => Err(ReadError::Unknown { field: "room kind", value: value.into() }),
        }
    }
}

impl RoomSettings {
    fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(self.kind.to_wire());
        out.put_option(self.code.as_ref(), |out, code| out.put_str(code.as_str()));
        out.put_option(self.secret.as_deref(), |out, secret| out.put_str(secret));
        out.put_u16(self.max_players);
        out.put_u16(self.tick_rate.hz());
    }

    fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(RoomSettings {
            kind: RoomKind::read(body)?,
            code: body.option("room code", read_code)?,
            secret: body.option("secret", read_secret)?,
            max_players: body.u16()?,
            tick_rate: read_tick_rate(body)?,
        })
    }
}

impl Authority {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        match self {
            Authority::Hub => out.put_u8(0),
            Authority::Dedicated => out.put_u8(1),
            Authority::Member(member) => {
                out.put_u8(2);
                out.put_varint(member.0.into());
            }
        }
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(match body.u8()? {
            0 => Authority::Hub,
            1 => Authority::Dedicated,
            2 => Authority::Member(MemberId(body.varint_u32("member")?)),
            value => return Err(ReadError::Unknown { field: "authority", value: value.into() }),
        })
    }
}

impl Welcome {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
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
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
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
        })
    }
}

impl Redirect {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_str(clip(&self.address, limits::ADDRESS_BYTES_MAX));
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(Redirect { address: body.str_max("address", limits::ADDRESS_BYTES_MAX)? })
    }
}

impl RetryAfter {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(u64::try_from(self.after.as_millis()).unwrap_or(u64::MAX).min(u32::MAX.into()));
        out.put_str(clip(&self.detail, limits::REASON_BYTES_MAX));
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(RetryAfter {
            after: Duration::from_millis(body.varint_u32("after")?.into()),
            detail: body.str_max("detail", limits::REASON_BYTES_MAX)?,
        })
    }
}

impl Refusal {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
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
            Refusal::Unknown { code } => out.put_u8(*code),
        }
    }

    pub(super) fn read(body: &mut Reader) -> Result<Self, ReadError> {
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
            code => {
                body.rest();
                Refusal::Unknown { code }
            }
        })
    }
}
