//! The log of a room: everything it was told, from which it can be run again.
//!
//! ```text
//!  head    "PARLORLOG" · version: 1 byte · room: varint · code: text · app: text · environment: text
//!          kind: 1 byte · secret: 0 | 1, text · max players: 2 bytes · tick rate: 2 bytes · host timeout: 0 | 1, varint ms
//!          schema: bytes · label: text · keep: 0 | 1 · spectator delay: varint ms
//!          opened: varint µs · state bytes per second: 4 bytes · spectators: 2 bytes
//!          channels of the game: as in Hello
//!  entry   at: varint µs · length: varint · input: kind 1 byte and its fields
//! ```
//!
//! The room's machine is deterministic, so a log of its inputs determines its whole history: [`replay`] gives
//! identical outputs. A truncated log (its server was killed) replays up to the cut.

use super::roster::{Claimed, ClaimedSeat, Reopening};
use super::{Input, Output, Room, Setup, SetupError};
use bytes::Bytes;
use parlor_proto::wire::control::{LeaveReason, Presence};
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::wire::handshake::{RoomKind, RoomSettings};
use parlor_proto::wire::path::{read_address, write_address};
use parlor_proto::{
    ChannelId, ChannelTable, CloseReason, Epoch, Instant, LinkKind, MemberId, RoomId, TickRate, limits,
};
use thiserror::Error;

const MAGIC: &[u8] = b"PARLORLOG";
const VERSION: u8 = 10;
/// An input is one message plus a small overhead.
const ENTRY_BYTES_MAX: usize = limits::STREAM_PACKET_BYTES_MAX + 1024;

/// Why a log cannot be replayed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LogError {
    /// Not a log at all.
    #[error("this is no room log: it does not begin with {:?}", "PARLORLOG")]
    NotALog,
    /// A log of another version.
    #[error("this room log has version {0}; this build reads version {VERSION}")]
    Version(u8),
    /// The log of a room that this build would not open.
    #[error("the room of this log cannot be run again: {0}")]
    Setup(#[from] SetupError),
    /// Bytes that are not a valid entry.
    #[error("entry {entry} of the room log could not be read: {error}")]
    Malformed {
        /// The index of the entry, from 0; the head does not count.
        entry: u64,
        /// The cause.
        error: ReadError,
    },
}

/// One replayed entry and its results.
#[derive(Clone, Debug)]
pub struct Step {
    /// When the input came, on the clock of the hub that wrote the log.
    pub at: Instant,
    /// The input.
    pub input: Input,
    /// The misbehaving member and its violation, if any.
    pub refused: Option<String>,
    /// The room's outputs.
    pub outputs: Vec<Output>,
}

/// Returns the head of a log.
pub fn head(setup: &Setup) -> Vec<u8> {
    let mut out = Vec::new();
    out.put(MAGIC);
    out.put_u8(VERSION);
    out.put_varint(setup.id.0);
    out.put_str(setup.code.as_str());
    out.put_str(&setup.app);
    out.put_str(&setup.environment);
    out.put_u8(setup.settings.kind.to_wire());
    out.put_option(setup.settings.secret.as_deref(), |out, secret| out.put_str(secret));
    out.put_u16(setup.settings.max_players);
    out.put_u16(setup.settings.tick_rate.hz());
    out.put_option(setup.settings.host_timeout_ms, |out, silence_ms| out.put_varint(silence_ms.into()));
    out.put_bytes(&setup.settings.schema);
    out.put_str(&setup.settings.label);
    out.put_bool(setup.settings.keep);
    out.put_varint(setup.settings.spectator_delay_ms.into());
    out.put_varint(setup.opened.as_micros());
    out.put_u32(setup.state_bytes_per_second);
    out.put_u16(setup.spectators);
    setup.channels.write(&mut out);
    out
}

/// Returns one entry of a log.
pub fn entry(at: Instant, input: &Input) -> Vec<u8> {
    let mut body = Vec::new();
    write_input(input, &mut body);
    let mut out = Vec::with_capacity(body.len() + 16);
    out.put_varint(at.as_micros());
    out.put_bytes(&body);
    out
}

/// Replays a room from its log, step by step. An error ends the iteration.
///
/// # Errors
/// [`LogError`] if the head is not that of a log.
pub fn replay(log: Bytes) -> Result<Replay, LogError> {
    let mut reader = Reader::new(log);
    let setup = read_head(&mut reader)?;
    Ok(Replay { room: Room::new(setup)?, reader, entries: 0 })
}

/// Returns the setup of which [`head`] wrote this.
///
/// # Errors
/// [`LogError`] if it is not the head of a log.
pub fn setup_of(head: Bytes) -> Result<Setup, LogError> {
    read_head(&mut Reader::new(head))
}

fn read_head(reader: &mut Reader) -> Result<Setup, LogError> {
    if reader.take(MAGIC.len()).ok().as_deref() != Some(MAGIC) {
        return Err(LogError::NotALog);
    }
    match reader.u8() {
        Ok(VERSION) => {}
        Ok(other) => return Err(LogError::Version(other)),
        Err(_) => return Err(LogError::NotALog),
    }
    read_setup(reader).map_err(|error| LogError::Malformed { entry: 0, error })
}

/// An iterator over the steps of a replayed room. See [`replay`].
#[derive(Debug)]
pub struct Replay {
    room: Room,
    reader: Reader,
    entries: u64,
}

impl Replay {
    /// Returns the room after the steps taken so far.
    pub fn room(&self) -> &Room {
        &self.room
    }
}

impl Iterator for Replay {
    type Item = Result<Step, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let step = match read_entry(&mut self.reader) {
            Ok((at, input)) => {
                let refused =
                    self.room.handle(input.clone(), at).err().map(|(member, how)| format!("{member}: {how}"));
                let outputs = std::iter::from_fn(|| self.room.poll_output()).collect();
                Ok(Step { at, input, refused, outputs })
            }
            Err(error) => {
                self.reader.rest();
                Err(LogError::Malformed { entry: self.entries, error })
            }
        };
        self.entries += 1;
        Some(step)
    }
}

fn read_setup(reader: &mut Reader) -> Result<Setup, ReadError> {
    let id = RoomId(reader.varint()?);
    let code = reader.str_max("code", parlor_proto::code::MATCH_ID_LEN)?;
    let code = code.parse().map_err(|_| ReadError::OutOfRange { field: "code" })?;
    Ok(Setup {
        id,
        code,
        app: reader.str_max("app", limits::LABEL_BYTES_MAX)?,
        environment: reader.str_max("environment", limits::LABEL_BYTES_MAX)?,
        settings: RoomSettings {
            kind: RoomKind::read(reader)?,
            code: Some(code),
            secret: reader.option("secret", |reader| reader.str_max("secret", limits::LABEL_BYTES_MAX))?,
            max_players: reader.u16()?,
            tick_rate: TickRate::new(reader.u16()?).ok_or(ReadError::OutOfRange { field: "tick rate" })?,
            host_timeout_ms: reader.option("host timeout", |reader| reader.varint_u32("host timeout"))?,
            schema: reader.bytes_max("schema", limits::SCHEMA_BYTES_MAX)?,
            label: reader.str_max("label", limits::LABEL_BYTES_MAX)?,
            keep: reader.bool("keep")?,
            spectator_delay_ms: reader.varint_u32("spectator delay")?,
        },
        opened: Instant::from_micros(reader.varint()?),
        state_bytes_per_second: reader.u32()?,
        spectators: reader.u16()?,
        channels: ChannelTable::read(reader)?,
    })
}

fn read_entry(reader: &mut Reader) -> Result<(Instant, Input), ReadError> {
    let at = Instant::from_micros(reader.varint()?);
    let mut body = Reader::new(reader.bytes_max("entry", ENTRY_BYTES_MAX)?);
    let input = read_input(&mut body)?;
    body.finish()?;
    Ok((at, input))
}

/// Returns the wire number of the input's kind.
fn kind(input: &Input) -> u8 {
    match input {
        Input::Join { .. } => 0,
        Input::Leave { .. } => 1,
        Input::Message { .. } => 2,
        Input::Fate { .. } => 3,
        Input::Measured(_) => 4,
        Input::Flush => 5,
        Input::End { .. } => 6,
        Input::Writable { .. } => 7,
        Input::Away { .. } => 8,
        Input::Back { .. } => 9,
        Input::Restarted { .. } => 10,
        Input::HostSilent { .. } => 16,
        Input::Path { .. } => 17,
        Input::Reachable { .. } => 18,
        Input::Untaken { .. } => 19,
        Input::Lost { .. } => 11,
        Input::Returned { .. } => 12,
        Input::Forget { .. } => 13,
        Input::Reopened(_) => 14,
        Input::Claimed { .. } => 15,
        Input::Sealed => 20,
    }
}

fn write_input(input: &Input, out: &mut Vec<u8>) {
    out.put_u8(kind(input));
    match input {
        Input::Join { name, user, link, spectates } => {
            write_joined(out, name, user.as_deref(), *link);
            out.put_bool(*spectates);
        }
        Input::Leave { member, reason } | Input::Lost { member, reason } | Input::Away { member, reason } => {
            out.put_varint(member.0.into());
            reason.write(out);
        }
        Input::Message { from, channel, key, payload, epoch } => {
            out.put_varint(from.0.into());
            out.put_u8(channel.0);
            out.put_varint((*key).into());
            out.put_varint(epoch.0.into());
            out.put(payload);
        }
        Input::Fate { member, delivery_id, delivered } => {
            out.put_varint(member.0.into());
            out.put_varint(*delivery_id);
            out.put_bool(*delivered);
        }
        Input::Measured(presence) => {
            out.put_varint(presence.member.0.into());
            presence.write(out);
        }
        Input::Flush | Input::Sealed => {}
        Input::Writable { member, writable } => {
            out.put_varint(member.0.into());
            out.put_bool(*writable);
        }
        Input::Path { member, bytes_per_second } => {
            out.put_varint(member.0.into());
            out.put_varint((*bytes_per_second).into());
        }
        Input::Forget { member } => out.put_varint(member.0.into()),
        Input::Reopened(reopening) => reopening.write(out),
        Input::Claimed { seat: ClaimedSeat { member, name, user, link, spectates }, how } => {
            out.put_varint(member.0.into());
            write_joined(out, name, user.as_deref(), *link);
            out.put_bool(*spectates);
            write_claimed(*how, out);
        }
        Input::Returned { member, name, user, link } => {
            out.put_varint(member.0.into());
            write_joined(out, name, user.as_deref(), *link);
        }
        Input::Back { member, link } | Input::Restarted { member, link } => {
            out.put_varint(member.0.into());
            out.put_u8(link.to_wire());
        }
        Input::Reachable { member, key, observed, seed } => {
            out.put_varint(member.0.into());
            out.put(key);
            out.put_option(*observed, |out, address| write_address(address, out));
            out.put_u64(*seed);
        }
        Input::Untaken { number } => out.put_varint(*number),
        Input::HostSilent { heard } => {
            out.put_varint(heard.len() as u64);
            heard.iter().for_each(|member| out.put_varint(member.0.into()));
        }
        Input::End { reason } => reason.write(out),
    }
}

fn write_joined(out: &mut Vec<u8>, name: &str, user: Option<&str>, link: LinkKind) {
    out.put_str(name);
    out.put_option(user, |out, user| out.put_str(user));
    out.put_u8(link.to_wire());
}

fn read_joined(body: &mut Reader) -> Result<(String, Option<String>, LinkKind), ReadError> {
    let name = body.str_max("name", limits::NAME_BYTES_MAX)?;
    let user = body.option("user", |body| body.str_max("user", limits::USER_BYTES_MAX))?;
    Ok((name, user, LinkKind::from_wire(body.u8()?)))
}

fn write_claimed(how: Claimed, out: &mut Vec<u8>) {
    out.put_u8(match how {
        Claimed::Anew { gap } => gap.into(),
        Claimed::Continues => 2,
    });
}

fn read_claimed(body: &mut Reader) -> Result<Claimed, ReadError> {
    match body.u8()? {
        gap @ 0..=1 => Ok(Claimed::Anew { gap: gap == 1 }),
        2 => Ok(Claimed::Continues),
        value => Err(ReadError::Unknown { field: "claim", value: value.into() }),
    }
}

fn read_input(body: &mut Reader) -> Result<Input, ReadError> {
    let member = |body: &mut Reader| body.varint_u32("member").map(MemberId);
    Ok(match body.u8()? {
        0 => {
            let (name, user, link) = read_joined(body)?;
            Input::Join { name, user, link, spectates: body.bool("spectates")? }
        }
        1 => Input::Leave { member: member(body)?, reason: LeaveReason::read(body)? },
        2 => Input::Message {
            from: member(body)?,
            channel: ChannelId(body.u8()?),
            key: body.varint_u32("key")?,
            epoch: Epoch(body.varint_u32("epoch")?),
            payload: body.rest(),
        },
        3 => Input::Fate {
            member: member(body)?,
            delivery_id: body.varint()?,
            delivered: body.bool("delivered")?,
        },
        4 => {
            let member = member(body)?;
            Input::Measured(Presence::read(member, body)?)
        }
        5 => Input::Flush,
        7 => Input::Writable { member: member(body)?, writable: body.bool("writable")? },
        17 => Input::Path {
            member: member(body)?,
            bytes_per_second: body.varint_u32("bytes per second of a path")?,
        },
        8 => Input::Away { member: member(body)?, reason: LeaveReason::read(body)? },
        11 => Input::Lost { member: member(body)?, reason: LeaveReason::read(body)? },
        12 => {
            let member = member(body)?;
            let (name, user, link) = read_joined(body)?;
            Input::Returned { member, name, user, link }
        }
        13 => Input::Forget { member: member(body)? },
        14 => Input::Reopened(Reopening::read(body)?),
        15 => {
            let member = member(body)?;
            let (name, user, link) = read_joined(body)?;
            let seat = ClaimedSeat { member, name, user, link, spectates: body.bool("spectates")? };
            Input::Claimed { seat, how: read_claimed(body)? }
        }
        9 => Input::Back { member: member(body)?, link: LinkKind::from_wire(body.u8()?) },
        10 => Input::Restarted { member: member(body)?, link: LinkKind::from_wire(body.u8()?) },
        6 => Input::End { reason: CloseReason::read(body)? },
        18 => {
            let member = member(body)?;
            let key = body.array()?;
            let observed = body.option("observed address", read_address)?;
            Input::Reachable { member, key, observed, seed: body.u64()? }
        }
        19 => Input::Untaken { number: body.varint()? },
        20 => Input::Sealed,
        16 => {
            let count = body.varint_max("members that were heard", limits::MEMBERS_MAX_SERVER_RUN.into())?;
            Input::HostSilent { heard: (0..count).map(|_| member(body)).collect::<Result<_, _>>()? }
        }
        value => return Err(ReadError::Unknown { field: "input", value: value.into() }),
    })
}
