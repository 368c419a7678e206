//! Lanes, and the channel table that both ends agree on.
//!
//! A *lane* defines how messages are carried. A *channel* is a numbered stream of messages on one lane, with
//! a codec and a schema hash. The first sixteen numbers are built in and the same everywhere; an application
//! declares its own from [`APP_CHANNEL_FIRST`](crate::limits::APP_CHANNEL_FIRST) on. The room's creator
//! declares the table. A joiner with another table is rejected, with the first channel that differs.

use crate::ids::ChannelId;
use crate::limits;
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;
use thiserror::Error;

/// How the messages of a channel are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Every message arrives, in the order in which it was sent on its channel.
    ReliableOrdered,
    /// Every message arrives, without delay, in any order.
    ReliableUnordered,
    /// A message arrives once or not at all, in any order.
    Unreliable,
    /// A message arrives once or not at all, and never after a newer one with the same key. A newer message
    /// replaces an older one in the send queue.
    UnreliableSequenced,
}

impl Lane {
    /// Whether every message of this lane arrives.
    pub const fn is_reliable(self) -> bool {
        matches!(self, Lane::ReliableOrdered | Lane::ReliableUnordered)
    }

    const fn name(self) -> &'static str {
        match self {
            Lane::ReliableOrdered => "reliable ordered",
            Lane::ReliableUnordered => "reliable unordered",
            Lane::Unreliable => "unreliable",
            Lane::UnreliableSequenced => "unreliable sequenced",
        }
    }

    const fn to_wire(self) -> u8 {
        match self {
            Lane::ReliableOrdered => 0,
            Lane::ReliableUnordered => 1,
            Lane::Unreliable => 2,
            Lane::UnreliableSequenced => 3,
        }
    }

    fn from_wire(value: u8) -> Result<Self, ReadError> {
        Ok(match value {
            0 => Lane::ReliableOrdered,
            1 => Lane::ReliableUnordered,
            2 => Lane::Unreliable,
            3 => Lane::UnreliableSequenced,
            value => return Err(ReadError::Unknown { field: "lane", value: value.into() }),
        })
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The format of a channel's payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Parlor's own layout, described in PROTOCOL.md.
    Parlor,
    /// A kind and a self-describing value.
    Typed,
    /// Bytes defined by the application.
    Raw,
}

impl Codec {
    const fn to_wire(self) -> u8 {
        match self {
            Codec::Parlor => 0,
            Codec::Typed => 1,
            Codec::Raw => 2,
        }
    }

    fn from_wire(value: u8) -> Result<Self, ReadError> {
        Ok(match value {
            0 => Codec::Parlor,
            1 => Codec::Typed,
            2 => Codec::Raw,
            value => return Err(ReadError::Unknown { field: "codec", value: value.into() }),
        })
    }
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Its number.
    pub id: ChannelId,
    /// Its lane.
    pub lane: Lane,
    /// The format of its payloads.
    pub codec: Codec,
    /// Schema hash of its payloads; 0 without a schema.
    pub schema_hash: u64,
}

/// Room control: presence, player data, kicks.
pub const CONTROL: ChannelId = ChannelId(0);
/// The room's state from the authority to the members: entities, including keyed state.
pub const STATE: ChannelId = ChannelId(1);
/// Inputs of one tick, from members to the authority. The key is the member.
pub const INPUT: ChannelId = ChannelId(2);
/// Typed messages that arrive in order.
pub const MESSAGE_ORDERED: ChannelId = ChannelId(3);
/// Typed messages that arrive in any order.
pub const MESSAGE_UNORDERED: ChannelId = ChannelId(4);
/// Typed messages that may be lost.
pub const MESSAGE_UNRELIABLE: ChannelId = ChannelId(5);
/// Typed messages of which only the newest counts. The key is the sender.
pub const MESSAGE_SEQUENCED: ChannelId = ChannelId(6);

/// Actions that members request on their own entities, to the authority.
pub const ACTIONS: ChannelId = ChannelId(7);
/// Members' own state: the source and a packet of its stream.
pub const REPLICAS: ChannelId = ChannelId(8);

/// Messages between the ends of a rollback session. Only they read it.
pub const ROLLBACK: ChannelId = ChannelId(9);

/// The room's whole state, from the hub to the member that becomes the authority.
pub const CHECKPOINT: ChannelId = ChannelId(10);

/// Signals between two members about a path between them, through the hub.
pub const PATH: ChannelId = ChannelId(11);

/// Data between the members of a match: an op code and bytes. The hub stamps an order on each.
pub const MATCH_DATA: ChannelId = ChannelId(12);
/// The same, unreliable and without an order.
pub const MATCH_DATA_UNRELIABLE: ChannelId = ChannelId(13);

const BUILT_IN: [Channel; 14] = [
    built_in(CONTROL, Lane::ReliableOrdered, Codec::Parlor),
    built_in(STATE, Lane::Unreliable, Codec::Parlor),
    built_in(INPUT, Lane::UnreliableSequenced, Codec::Parlor),
    built_in(MESSAGE_ORDERED, Lane::ReliableOrdered, Codec::Typed),
    built_in(MESSAGE_UNORDERED, Lane::ReliableUnordered, Codec::Typed),
    built_in(MESSAGE_UNRELIABLE, Lane::Unreliable, Codec::Typed),
    built_in(MESSAGE_SEQUENCED, Lane::UnreliableSequenced, Codec::Typed),
    built_in(ACTIONS, Lane::ReliableOrdered, Codec::Parlor),
    built_in(REPLICAS, Lane::Unreliable, Codec::Parlor),
    built_in(ROLLBACK, Lane::Unreliable, Codec::Parlor),
    built_in(CHECKPOINT, Lane::Unreliable, Codec::Parlor),
    built_in(PATH, Lane::ReliableOrdered, Codec::Parlor),
    built_in(MATCH_DATA, Lane::ReliableOrdered, Codec::Parlor),
    built_in(MATCH_DATA_UNRELIABLE, Lane::Unreliable, Codec::Parlor),
];

const fn built_in(id: ChannelId, lane: Lane, codec: Codec) -> Channel {
    Channel { id, lane, codec, schema_hash: 0 }
}

/// The built-in channel for typed messages on `lane`.
pub const fn typed(lane: Lane) -> ChannelId {
    match lane {
        Lane::ReliableOrdered => MESSAGE_ORDERED,
        Lane::ReliableUnordered => MESSAGE_UNORDERED,
        Lane::Unreliable => MESSAGE_UNRELIABLE,
        Lane::UnreliableSequenced => MESSAGE_SEQUENCED,
    }
}

/// Why a channel is invalid in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TableError {
    /// The number is reserved for Parlor.
    #[error("{0} is built in: an application's own channels begin at {first}", first = limits::APP_CHANNEL_FIRST)]
    Reserved(ChannelId),
    /// The number is too large.
    #[error("{0} is beyond the last channel number, {last}", last = limits::CHANNELS_MAX - 1)]
    TooLarge(ChannelId),
    /// The number is in use.
    #[error("{0} is declared twice")]
    Twice(ChannelId),
}

/// The difference between two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableMismatch {
    /// The first channel that differs.
    pub channel: ChannelId,
}

/// The channels of a room, including built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelTable {
    /// Sorted by number.
    app: Vec<Channel>,
}

impl ChannelTable {
    /// Adds an application's channel.
    ///
    /// # Errors
    /// [`TableError`] if the number is reserved, too large or in use.
    pub fn declare(&mut self, channel: Channel) -> Result<(), TableError> {
        if channel.id.0 < limits::APP_CHANNEL_FIRST {
            return Err(TableError::Reserved(channel.id));
        }
        if usize::from(channel.id.0) >= limits::CHANNELS_MAX {
            return Err(TableError::TooLarge(channel.id));
        }
        match self.app.binary_search_by_key(&channel.id, |c| c.id) {
            Ok(_) => Err(TableError::Twice(channel.id)),
            Err(at) => {
                self.app.insert(at, channel);
                Ok(())
            }
        }
    }

    /// The channel with this number.
    pub fn get(&self, id: ChannelId) -> Option<&Channel> {
        BUILT_IN
            .get(usize::from(id.0))
            .or_else(|| self.app.binary_search_by_key(&id, |c| c.id).ok().map(|at| &self.app[at]))
    }

    /// Checks that `other` is the same table.
    ///
    /// # Errors
    /// [`TableMismatch`], with the first channel that differs.
    pub fn agree(&self, other: &ChannelTable) -> Result<(), TableMismatch> {
        let differing =
            |a: &[Channel], b: &[Channel]| a.iter().find(|row| !b.contains(row)).map(|row| row.id);
        match differing(&self.app, &other.app).into_iter().chain(differing(&other.app, &self.app)).min() {
            Some(channel) => Err(TableMismatch { channel }),
            None => Ok(()),
        }
    }

    /// Appends the application's channels, as in Hello.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.app.len() as u64);
        for channel in &self.app {
            out.put_u8(channel.id.0);
            out.put_u8(channel.lane.to_wire());
            out.put_u8(channel.codec.to_wire());
            out.put_u64(channel.schema_hash);
        }
    }

    /// Reads a table.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed, or has an invalid channel.
    pub fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        let count = reader.varint_max("channel count", limits::CHANNELS_MAX as u64)?;
        let mut table = ChannelTable::default();
        for _ in 0..count {
            let channel = Channel {
                id: ChannelId(reader.u8()?),
                lane: Lane::from_wire(reader.u8()?)?,
                codec: Codec::from_wire(reader.u8()?)?,
                schema_hash: reader.u64()?,
            };
            // The encoding is unique: rows ascend.
            let ascends = table.app.last().is_none_or(|last| last.id < channel.id);
            if !ascends || table.declare(channel).is_err() {
                return Err(ReadError::OutOfRange { field: "channel number" });
            }
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_channels_stand_at_their_numbers() {
        for (number, channel) in BUILT_IN.iter().enumerate() {
            assert_eq!(usize::from(channel.id.0), number);
            assert_eq!(ChannelTable::default().get(channel.id), Some(channel));
        }
    }

    #[test]
    fn tables_that_differ_name_the_channel() {
        let row = |id, lane| Channel { id: ChannelId(id), lane, codec: Codec::Raw, schema_hash: 0 };
        let table = |rows: &[Channel]| {
            let mut table = ChannelTable::default();
            rows.iter().for_each(|row| table.declare(*row).expect("the rows are well formed"));
            table
        };
        let mine = table(&[row(16, Lane::Unreliable), row(20, Lane::ReliableOrdered)]);
        assert_eq!(mine.agree(&mine.clone()), Ok(()));
        let theirs = table(&[row(16, Lane::Unreliable), row(20, Lane::ReliableUnordered)]);
        assert_eq!(mine.agree(&theirs), Err(TableMismatch { channel: ChannelId(20) }));
        let theirs = table(&[row(20, Lane::ReliableOrdered)]);
        assert_eq!(mine.agree(&theirs), Err(TableMismatch { channel: ChannelId(16) }));
        assert_eq!(theirs.agree(&mine), Err(TableMismatch { channel: ChannelId(16) }));
    }

    #[test]
    fn a_number_is_taken_once_and_never_from_the_built_in_ones() {
        let row =
            |id| Channel { id: ChannelId(id), lane: Lane::Unreliable, codec: Codec::Raw, schema_hash: 0 };
        let mut table = ChannelTable::default();
        assert_eq!(table.declare(row(15)), Err(TableError::Reserved(ChannelId(15))));
        assert_eq!(table.declare(row(64)), Err(TableError::TooLarge(ChannelId(64))));
        assert_eq!(table.declare(row(63)), Ok(()));
        assert_eq!(table.declare(row(63)), Err(TableError::Twice(ChannelId(63))));
    }
}
