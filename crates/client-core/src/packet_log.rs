//! The log of a client's packets: what it sent and received, and what its game did of it, for a developer to read.
//!
//! ```text
//!  head     "PARLORNET" · version: 1 byte · app: text · schema of this client: bytes
//!  entry    at: varint µs · what: 1 byte and its fields
//!  0 packet   0 sent | 1 received · path: 0 | 1, its id: 8 bytes · carrier: 0 datagram | 1 stream | 2 isolated
//!             length: varint · left out: count: 1 byte, for each: name of the frame: text · packet: bytes
//!  1 opened   code: text · member: varint · tick rate: 2 bytes · schema of the room, or empty if it is this client's: bytes
//!  2 missed   count of packets: varint
//!  3 full
//!  4 moment   0 step | 1 state, the newest own input in it: option of tick | 2 drawn · tick: 4 bytes
//!             room time: varint µs
//! ```
//!
//! The frames that open or resume a session are left out, because they have tokens, tickets and secrets of rooms. The
//! packet is what remains, and its length that of the whole.

use bytes::Bytes;
use core::time::Duration;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::wire::frame::Frame;
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::wire::header::Header;
use parlor_proto::{Carrier, Instant, MemberId, Packet, PathId, RoomCode, Tick, TickRate, code, limits};
use thiserror::Error;

const MAGIC: &[u8] = b"PARLORNET";
const VERSION: u8 = 1;
/// Names of left out frames in an entry at most; a packet has at most one of these.
const LEFT_OUT_MAX: u8 = 8;

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketWay {
    /// From this client.
    Sent,
    /// To this client.
    Received,
}

/// A packet in a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedPacket {
    /// Its direction.
    pub way: PacketWay,
    /// The direct path that carried it; `None` for the link to the server.
    pub path: Option<PathId>,
    /// Its carrier.
    pub carrier: Carrier,
    /// The bytes of the whole packet.
    pub length: usize,
    /// The names of the frames that are not in the log.
    pub left_out: Vec<String>,
    /// Header and frames that are; empty if they could not be read.
    pub bytes: Bytes,
}

/// What an entry of a log says.
#[derive(Clone, Debug, PartialEq)]
pub enum PacketEntry {
    /// A packet.
    Packet(LoggedPacket),
    /// The client is in a room from here on.
    Opened {
        /// The room's code, or the id of a match.
        code: RoomCode,
        /// The client's id.
        member: MemberId,
        /// The room's ticks.
        tick_rate: TickRate,
        /// The room's encoded schema; empty for that of the head.
        schema: Bytes,
    },
    /// So many packets are missing here, because the disk was too slow.
    Missed(u64),
    /// The log is full: nothing follows.
    Full,
    /// Something that the game did.
    Moment(LoggedMoment),
}

/// A moment of the game, in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedMoment {
    /// What it is.
    pub moment: Moment,
    /// Its tick.
    pub tick: Tick,
    /// Time since the room opened: about equal at all members.
    pub room_time: Duration,
}

/// What a game did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// It ran the step of this tick, not for the second time.
    Step,
    /// It was told of the state of this tick.
    State {
        /// The newest of this player's inputs that the host has used in it.
        input: Option<Tick>,
    },
    /// It drew this tick, between two states.
    Drawn,
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketLogError {
    /// Not such a log at all.
    #[error("this is no packet log: it does not begin with PARLORNET")]
    NotALog,
    /// A log of another version.
    #[error("this packet log has version {0}; this build reads version {VERSION}")]
    Version(u8),
    /// Bytes that are no entry.
    #[error("entry {entry} of the packet log could not be read: {error}")]
    Malformed {
        /// The index of the entry, from 0; the head does not count.
        entry: u64,
        /// The cause.
        error: ReadError,
    },
}

/// Writes a log: bytes to append to a file. It ends when a number of bytes is reached.
#[derive(Debug)]
pub struct PacketLogWriter {
    began: Instant,
    bytes_left: u64,
    is_full: bool,
    missed: u64,
}

impl PacketLogWriter {
    /// Starts a log of at most about `bytes_max` bytes at `now`. Returns its first bytes as well. `schema` is the
    /// encoded one of this client's options, empty if it has none.
    pub fn new(app: &str, schema: &[u8], bytes_max: u64, now: Instant) -> (Self, Vec<u8>) {
        let mut out = MAGIC.to_vec();
        out.put_u8(VERSION);
        out.put_str(app);
        out.put_bytes(schema);
        let bytes_left = bytes_max.saturating_sub(out.len() as u64);
        (PacketLogWriter { began: now, bytes_left, is_full: false, missed: 0 }, out)
    }

    /// Whether nothing more is written.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Counts a packet that is not written.
    pub fn miss(&mut self) {
        self.missed += 1;
    }

    /// Writes a packet. Returns the bytes to append.
    pub fn packet(&mut self, way: PacketWay, path: Option<PathId>, packet: &Packet, now: Instant) -> Vec<u8> {
        if self.is_full {
            return Vec::new();
        }
        let at = self.at(now);
        let mut out = Vec::with_capacity(packet.bytes.len() + 32);
        let missed = std::mem::take(&mut self.missed);
        if missed > 0 {
            out.put_varint(at);
            out.put_u8(2);
            out.put_varint(missed);
        }
        let (left_out, welcome, bytes) = without_secrets(&packet.bytes);
        // The other end of a path welcomes with the same room.
        if let (Some(welcome), None) = (welcome, path) {
            out.put_varint(at);
            out.put_u8(1);
            out.put_str(welcome.code.as_str());
            out.put_varint(welcome.member.0.into());
            out.put_u16(welcome.tick_rate.hz());
            out.put_bytes(&welcome.schema);
        }
        out.put_varint(at);
        out.put_u8(0);
        out.put_bool(way == PacketWay::Received);
        out.put_option(path, |out, path| out.put_u64(path.0));
        out.put_u8(match packet.carrier {
            Carrier::Datagram => 0,
            Carrier::Stream => 1,
            Carrier::Isolated => 2,
        });
        out.put_varint(packet.bytes.len() as u64);
        out.put_u8(u8::try_from(left_out.len()).unwrap_or(LEFT_OUT_MAX).min(LEFT_OUT_MAX));
        left_out.iter().take(LEFT_OUT_MAX.into()).for_each(|name| out.put_str(name));
        out.put_bytes(&bytes);
        self.within_bounds(out, at)
    }

    /// Writes a moment of the game. Returns the bytes to append.
    pub fn moment(&mut self, moment: LoggedMoment, now: Instant) -> Vec<u8> {
        if self.is_full {
            return Vec::new();
        }
        let at = self.at(now);
        let mut out = Vec::with_capacity(24);
        out.put_varint(at);
        out.put_u8(4);
        match moment.moment {
            Moment::Step => out.put_u8(0),
            Moment::State { input } => {
                out.put_u8(1);
                out.put_option(input, |out, tick| out.put_u32(tick.0));
            }
            Moment::Drawn => out.put_u8(2),
        }
        out.put_u32(moment.tick.0);
        out.put_varint(u64::try_from(moment.room_time.as_micros()).unwrap_or(0));
        self.within_bounds(out, at)
    }

    fn at(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_since(self.began).as_micros()).unwrap_or(0)
    }

    /// The entry, or the end of the log if there is no room for it.
    fn within_bounds(&mut self, mut out: Vec<u8>, at: u64) -> Vec<u8> {
        match self.bytes_left.checked_sub(out.len() as u64) {
            Some(left) => self.bytes_left = left,
            None => {
                self.is_full = true;
                out.clear();
                out.put_varint(at);
                out.put_u8(3);
            }
        }
        out
    }
}

/// The names of the frames that are left out, a welcome among them, and the packet without them.
fn without_secrets(packet: &Bytes) -> (Vec<&'static str>, Option<Box<Welcome>>, Bytes) {
    let mut reader = Reader::new(packet.clone());
    let mut out = Vec::new();
    let (mut left_out, mut welcome) = (Vec::new(), None);
    let Ok(header) = Header::read(&mut reader) else { return (vec!["unreadable"], None, Bytes::new()) };
    header.write(&mut out);
    while !reader.is_empty() {
        match Frame::read(&mut reader) {
            Ok(Some(frame)) if has_secrets(&frame) => {
                left_out.push(frame.name());
                if let Frame::Welcome(it) = frame {
                    welcome = Some(it);
                }
            }
            Ok(Some(frame)) => frame.write(&mut out),
            Ok(None) => left_out.push("unknown"),
            Err(_) => {
                // What it is cannot be told, so it may be one of those.
                left_out.push("unreadable");
                break;
            }
        }
    }
    if left_out.is_empty() { (left_out, None, packet.clone()) } else { (left_out, welcome, out.into()) }
}

fn has_secrets(frame: &Frame) -> bool {
    match frame {
        Frame::Hello(_)
        | Frame::Welcome(_)
        | Frame::Redirect(_)
        | Frame::RetryAfter(_)
        | Frame::Resume(_)
        | Frame::Resumed(_)
        | Frame::Seat(_) => true,
        Frame::ForeignHello { .. }
        | Frame::Refused(_)
        | Frame::Close(_)
        | Frame::Time(_)
        | Frame::Unreliable { .. }
        | Frame::Sequenced { .. }
        | Frame::Reliable { .. }
        | Frame::Ordered { .. }
        | Frame::Fragment(_) => false,
    }
}

/// A log that is read, entry by entry. An error ends it.
#[derive(Debug)]
pub struct PacketLogReader {
    app: String,
    schema: Bytes,
    reader: Reader,
    entries: u64,
}

impl PacketLogReader {
    /// Whether these bytes begin as a packet log does.
    pub fn is_log(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// Reads the head.
    ///
    /// # Errors
    /// [`PacketLogError`] if it is not that of a log.
    pub fn new(log: Bytes) -> Result<Self, PacketLogError> {
        let mut reader = Reader::new(log);
        if reader.take(MAGIC.len()).ok().as_deref() != Some(MAGIC) {
            return Err(PacketLogError::NotALog);
        }
        match reader.u8() {
            Ok(VERSION) => {}
            Ok(other) => return Err(PacketLogError::Version(other)),
            Err(_) => return Err(PacketLogError::NotALog),
        }
        let malformed = |error| PacketLogError::Malformed { entry: 0, error };
        let app = reader.str_max("app", limits::LABEL_BYTES_MAX).map_err(malformed)?;
        let schema = reader.bytes_max("schema", limits::SCHEMA_BYTES_MAX).map_err(malformed)?;
        Ok(PacketLogReader { app, schema, reader, entries: 0 })
    }

    /// The game.
    pub fn app(&self) -> &str {
        &self.app
    }

    /// The encoded schema of the client's options; empty if it has none.
    pub fn schema(&self) -> &Bytes {
        &self.schema
    }
}

impl Iterator for PacketLogReader {
    /// When it happened, since the log's begin, and what.
    type Item = Result<(Duration, PacketEntry), PacketLogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let entry = read_entry(&mut self.reader).map_err(|error| {
            self.reader.rest();
            PacketLogError::Malformed { entry: self.entries, error }
        });
        self.entries += 1;
        Some(entry)
    }
}

fn read_entry(reader: &mut Reader) -> Result<(Duration, PacketEntry), ReadError> {
    let at = Duration::from_micros(reader.varint()?);
    let entry = match reader.u8()? {
        0 => PacketEntry::Packet(read_packet(reader)?),
        1 => {
            let code = reader.str_max("code", code::MATCH_ID_LEN)?;
            PacketEntry::Opened {
                code: code.parse().map_err(|_| ReadError::OutOfRange { field: "code" })?,
                member: MemberId(reader.varint_u32("member")?),
                tick_rate: TickRate::new(reader.u16()?)
                    .ok_or(ReadError::OutOfRange { field: "tick rate" })?,
                schema: reader.bytes_max("schema", limits::SCHEMA_BYTES_MAX)?,
            }
        }
        2 => PacketEntry::Missed(reader.varint()?),
        3 => PacketEntry::Full,
        4 => PacketEntry::Moment(read_moment(reader)?),
        value => return Err(ReadError::Unknown { field: "entry", value: value.into() }),
    };
    Ok((at, entry))
}

fn read_moment(reader: &mut Reader) -> Result<LoggedMoment, ReadError> {
    let moment = match reader.u8()? {
        0 => Moment::Step,
        1 => Moment::State { input: reader.option("input", |reader| reader.u32().map(Tick))? },
        2 => Moment::Drawn,
        value => return Err(ReadError::Unknown { field: "moment", value: value.into() }),
    };
    let tick = Tick(reader.u32()?);
    Ok(LoggedMoment { moment, tick, room_time: Duration::from_micros(reader.varint()?) })
}

fn read_packet(reader: &mut Reader) -> Result<LoggedPacket, ReadError> {
    let way = if reader.bool("way")? { PacketWay::Received } else { PacketWay::Sent };
    let path = reader.option("path", |reader| reader.u64().map(PathId))?;
    let carrier = match reader.u8()? {
        0 => Carrier::Datagram,
        1 => Carrier::Stream,
        2 => Carrier::Isolated,
        value => return Err(ReadError::Unknown { field: "carrier", value: value.into() }),
    };
    let length = reader.varint_max("length", limits::STREAM_PACKET_BYTES_MAX as u64)?;
    let length = usize::try_from(length).map_err(|_| ReadError::OutOfRange { field: "length" })?;
    let names = reader.u8()?;
    let left_out = (0..names.min(LEFT_OUT_MAX))
        .map(|_| reader.str_max("frame", limits::LABEL_BYTES_MAX))
        .collect::<Result<Vec<_>, _>>()?;
    let bytes = reader.bytes_max("packet", limits::STREAM_PACKET_BYTES_MAX)?;
    Ok(LoggedPacket { way, path, carrier, length, left_out, bytes })
}

#[cfg(test)]
mod tests;
