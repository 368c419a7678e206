//! The hello of the connecting side, and what it can request.

use super::{Claim, Resume, capability, read_code, read_tick_rate};
use crate::channel::ChannelTable;
use crate::code::{self, RoomCode};
use crate::ids::PathId;
use crate::limits;
use crate::time::TickRate;
use crate::wire::cursor::{ReadError, Reader, Write};
use bytes::Bytes;
use core::num::NonZeroU64;

/// The hello of the connecting side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Oldest protocol version that it speaks.
    pub version_min: u16,
    /// Newest version that it speaks.
    pub version_max: u16,
    /// The game. Only members of the same game share a room.
    pub app: String,
    /// The game's environment ("production", "development"); environments never mix. May be empty.
    pub environment: String,
    /// [Capabilities](super::capability) beyond the version, one bit each; unknown bits are ignored.
    pub capabilities: u64,
    /// Its credential.
    pub auth: Auth,
    /// SHA-256 of its certificate for direct paths to other members, which the hub passes on to them; `None`
    /// for no such paths.
    pub key: Option<[u8; 32]>,
    /// Its display name.
    pub name: String,
    /// The channels of its game.
    pub channels: ChannelTable,
    /// Hash of its schema of the room's entities; `None` to get the room's schema.
    pub schema: Option<NonZeroU64>,
    /// The request.
    pub intent: Intent,
}

/// A peer's credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// None.
    Anonymous,
    /// A token signed by the game's own service, whose key the server knows.
    Token(Bytes),
}

/// A peer's request to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Create a room.
    Create(RoomSettings),
    /// Join a room.
    Join {
        /// The room's code.
        code: RoomCode,
        /// The room's secret, if it has one.
        secret: Option<String>,
    },
    /// Resume a session that its process has lost, with the messages queued for it.
    Resume(Resume),
    /// Open the other end of a path between two members, for its authority; not sent to a hub.
    Path(PathId),
    /// Claim a seat of another node, which is dead or was silent.
    Claim(Box<Claim>),
}

/// The settings of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoomSettings {
    /// Its kind.
    pub kind: RoomKind,
    /// A code chosen by its creator; without one the hub draws one.
    pub code: Option<RoomCode>,
    /// The secret that a joiner needs beside the code.
    pub secret: Option<String>,
    /// Maximum number of players at once: all members except a dedicated host.
    pub max_players: u16,
    /// Its steps per second.
    pub tick_rate: TickRate,
    /// Host timeout in ms: after this silence of the host another member takes its part. `None` disables host migration: the room
    /// ends with its host. [`HOST_TIMEOUT_MS_MIN`](limits::HOST_TIMEOUT_MS_MIN) to
    /// [`HOST_TIMEOUT_MS_MAX`](limits::HOST_TIMEOUT_MS_MAX), for rooms that a player hosts.
    pub host_timeout_ms: Option<u32>,
    /// What its entities are made of: an encoded schema of at most
    /// [`SCHEMA_BYTES_MAX`](limits::SCHEMA_BYTES_MAX) bytes. Empty if the game has no components of its own.
    pub schema: Bytes,
    /// The label of a match on lists, at most [`LABEL_BYTES_MAX`](limits::LABEL_BYTES_MAX) bytes without
    /// control characters. Empty in other rooms, which are not listed.
    pub label: String,
    /// Whether the log of a match is stored, to be read after the match; false for other rooms.
    pub keep: bool,
    /// How much later than its players its spectators see it, in ms. 0, or
    /// [`SPECTATOR_DELAY_MS_MIN`](limits::SPECTATOR_DELAY_MS_MIN) to
    /// [`SPECTATOR_DELAY_MS_MAX`](limits::SPECTATOR_DELAY_MS_MAX).
    pub spectator_delay_ms: u32,
}

/// The kind of a room, by its authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoomKind {
    /// A member's game process, which is also a player.
    PlayerHosted,
    /// A process without a player, which has a seat beside those of the players.
    Dedicated,
    /// The hub itself: a relayed match, whose members are equal. It has no state and no authority. Members'
    /// messages are relayed in one order for all. Its code is its id, which is never reused.
    Match,
}

impl RoomKind {
    /// The name in JSON and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            RoomKind::PlayerHosted => "player_hosted",
            RoomKind::Dedicated => "dedicated",
            RoomKind::Match => "match",
        }
    }

    /// Maximum players in a room of this kind.
    pub const fn players_max(self) -> u16 {
        match self {
            RoomKind::PlayerHosted => limits::MEMBERS_MAX_PLAYER_HOSTED,
            RoomKind::Dedicated => limits::MEMBERS_MAX_SERVER_RUN - HOSTS_WITHOUT_PLAYER,
            RoomKind::Match => limits::MEMBERS_MAX_SERVER_RUN,
        }
    }

    /// Maximum spectators in a room of this kind that allows this many players, if its opener wants `most`.
    pub const fn spectators_max(self, players_max: u16, most: u16) -> u16 {
        let left = limits::MEMBERS_MAX_SERVER_RUN.saturating_sub(self.members_max(players_max));
        let most = if most < limits::SPECTATORS_MAX { most } else { limits::SPECTATORS_MAX };
        if most < left { most } else { left }
    }

    /// Maximum members in a room of this kind that allows this many players, without its spectators: a host is one of
    /// them.
    pub const fn members_max(self, players_max: u16) -> u16 {
        match self {
            RoomKind::PlayerHosted | RoomKind::Match => players_max,
            RoomKind::Dedicated => players_max.saturating_add(HOSTS_WITHOUT_PLAYER),
        }
    }
}

/// Seats of a dedicated room that are not for players.
const HOSTS_WITHOUT_PLAYER: u16 = 1;

impl Hello {
    /// An anonymous hello without a name, for the versions of this build.
    pub fn new(app: &str, intent: Intent) -> Self {
        Hello {
            version_min: limits::VERSION_MIN,
            version_max: limits::VERSION_MAX,
            app: app.to_owned(),
            environment: String::new(),
            capabilities: 0,
            auth: Auth::Anonymous,
            key: None,
            name: String::new(),
            channels: ChannelTable::default(),
            schema: None,
            intent,
        }
    }

    /// Whether it asks for a spectator's seat.
    pub const fn spectates(&self) -> bool {
        self.capabilities & capability::SPECTATES != 0 && matches!(self.intent, Intent::Join { .. })
    }

    /// Returns how many spectators a room takes that it opens, until its opener says otherwise.
    pub const fn spectators(&self) -> u16 {
        if self.capabilities & capability::SPECTATES != 0 { limits::SPECTATORS_DEFAULT } else { 0 }
    }

    /// Checks that all fields are within their bounds.
    ///
    /// # Errors
    /// The invalid field, with its bounds.
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
            Intent::Resume(_) | Intent::Path(_) => Ok(()),
            Intent::Claim(claim) => {
                let (len, most) = (claim.pass.len(), limits::PASS_BYTES_MAX);
                if len > most {
                    return Err(format!("the pass has {len} bytes; it may have at most {most}"));
                }
                Ok(())
            }
            Intent::Create(settings) => {
                let most = settings.kind.players_max();
                if !(limits::MEMBERS_MIN..=most).contains(&settings.max_players) {
                    let min = limits::MEMBERS_MIN;
                    return Err(format!(
                        "max_players is {}; it may be {min} to {most}",
                        settings.max_players
                    ));
                }
                let (len, most) = (settings.schema.len(), limits::SCHEMA_BYTES_MAX);
                if len > most {
                    return Err(format!("the schema has {len} bytes; it may have at most {most}"));
                }
                settings.check_host_timeout()?;
                settings.check_spectator_delay()?;
                settings.check_code()?;
                settings.check_match()?;
                check_secret(settings.secret.as_deref())
            }
        }
    }

    pub(in crate::wire) fn write(&self, out: &mut Vec<u8>) {
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
        out.put_u64(self.schema.map_or(0, NonZeroU64::get));
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
            Intent::Resume(resume) => {
                out.put_u8(2);
                resume.write(out);
            }
            Intent::Path(path) => {
                out.put_u8(3);
                out.put_u64(path.0);
            }
            Intent::Claim(claim) => {
                out.put_u8(4);
                claim.write(out);
            }
        }
    }

    /// Reads the fields after the versions.
    pub(in crate::wire) fn read(
        version_min: u16,
        version_max: u16,
        body: &mut Reader,
    ) -> Result<Self, ReadError> {
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
            key: body.option("key fingerprint", Reader::array)?,
            name: body.str_max("name", limits::NAME_BYTES_MAX)?,
            channels: ChannelTable::read(body)?,
            schema: NonZeroU64::new(body.u64()?),
            intent: match body.u8()? {
                0 => Intent::Create(RoomSettings::read(body)?),
                1 => Intent::Join { code: read_code(body)?, secret: body.option("secret", read_secret)? },
                2 => Intent::Resume(Resume::read(body)?),
                3 => Intent::Path(PathId(body.u64()?)),
                4 => Intent::Claim(Box::new(Claim::read(body)?)),
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
        Some(odd) => Err(format!("{field} has the control character U+{:04X}", u32::from(odd))),
        None => Ok(()),
    }
}

fn check_secret(secret: Option<&str>) -> Result<(), String> {
    secret.map_or(Ok(()), |secret| check_text("secret", secret, 1, limits::LABEL_BYTES_MAX))
}

fn read_secret(body: &mut Reader) -> Result<String, ReadError> {
    body.str_max("secret", limits::LABEL_BYTES_MAX)
}

impl RoomKind {
    /// Its number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            RoomKind::PlayerHosted => 0,
            RoomKind::Dedicated => 1,
            RoomKind::Match => 2,
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed.
    pub fn read(body: &mut Reader) -> Result<Self, ReadError> {
        match body.u8()? {
            0 => Ok(RoomKind::PlayerHosted),
            1 => Ok(RoomKind::Dedicated),
            2 => Ok(RoomKind::Match),
            value => Err(ReadError::Unknown { field: "room kind", value: value.into() }),
        }
    }
}

impl RoomSettings {
    /// Settings of a room that has only a kind and seats: a drawn code, no secret, [`TickRate::DEFAULT`], no host migration, no
    /// schema, no label, no kept log, and no spectator delay.
    pub fn new(kind: RoomKind, max_players: u16) -> Self {
        RoomSettings {
            kind,
            code: None,
            secret: None,
            max_players,
            tick_rate: TickRate::DEFAULT,
            host_timeout_ms: None,
            schema: Bytes::new(),
            label: String::new(),
            keep: false,
            spectator_delay_ms: 0,
        }
    }

    fn check_host_timeout(&self) -> Result<(), String> {
        let Some(silence_ms) = self.host_timeout_ms else { return Ok(()) };
        let (min, max) = (limits::HOST_TIMEOUT_MS_MIN, limits::HOST_TIMEOUT_MS_MAX);
        if !(min..=max).contains(&silence_ms) {
            return Err(format!("host_timeout is {silence_ms} ms; it may be {min} to {max} ms"));
        }
        match self.kind {
            RoomKind::PlayerHosted => Ok(()),
            RoomKind::Dedicated => {
                Err("no player takes the part of a dedicated host: leave out host_migration".into())
            }
            RoomKind::Match => Err("a match has no host: leave out host_migration".into()),
        }
    }

    fn check_spectator_delay(&self) -> Result<(), String> {
        let (min, max) = (limits::SPECTATOR_DELAY_MS_MIN, limits::SPECTATOR_DELAY_MS_MAX);
        match self.spectator_delay_ms {
            0 => Ok(()),
            delay_ms if (min..=max).contains(&delay_ms) => Ok(()),
            delay_ms => Err(format!("spectator_delay is {delay_ms} ms; it may be 0, or {min} to {max} ms")),
        }
    }

    fn check_code(&self) -> Result<(), String> {
        match self.code {
            Some(_) if self.kind == RoomKind::Match => {
                Err("the id of a match is drawn: leave out the code".into())
            }
            Some(code) if code.is_match_id() => {
                let (min, max) = (code::CODE_LEN_MIN, code::CODE_LEN_MAX);
                Err(format!(
                    "a code of {} letters is the id of a match: choose {min} to {max}",
                    code::MATCH_ID_LEN
                ))
            }
            _ => Ok(()),
        }
    }

    fn check_match(&self) -> Result<(), String> {
        check_text("label", &self.label, 0, limits::LABEL_BYTES_MAX)?;
        if self.kind != RoomKind::Match {
            return match (self.label.is_empty(), self.keep) {
                (true, false) => Ok(()),
                (false, _) => Err("only a match has a label: leave it out".into()),
                (true, true) => Err("only a match can be kept: leave out keep".into()),
            };
        }
        if self.schema.is_empty() { Ok(()) } else { Err("a match has no state: leave out the schema".into()) }
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.put_u8(self.kind.to_wire());
        out.put_option(self.code.as_ref(), |out, code| out.put_str(code.as_str()));
        out.put_option(self.secret.as_deref(), |out, secret| out.put_str(secret));
        out.put_u16(self.max_players);
        out.put_u16(self.tick_rate.hz());
        out.put_option(self.host_timeout_ms, |out, silence_ms| out.put_varint(silence_ms.into()));
        out.put_bytes(&self.schema);
        out.put_str(&self.label);
        out.put_bool(self.keep);
        out.put_varint(self.spectator_delay_ms.into());
    }

    fn read(body: &mut Reader) -> Result<Self, ReadError> {
        Ok(RoomSettings {
            kind: RoomKind::read(body)?,
            code: body.option("room code", read_code)?,
            secret: body.option("secret", read_secret)?,
            max_players: body.u16()?,
            tick_rate: read_tick_rate(body)?,
            host_timeout_ms: body.option("host timeout", |body| body.varint_u32("host timeout"))?,
            schema: body.bytes_max("schema", limits::SCHEMA_BYTES_MAX)?,
            label: body.str_max("label", limits::LABEL_BYTES_MAX)?,
            keep: body.bool("keep")?,
            spectator_delay_ms: body.varint_u32("spectator delay")?,
        })
    }
}
