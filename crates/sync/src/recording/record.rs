//! One record.

use bytes::Bytes;
use parlor_proto::limits::NAME_BYTES_MAX;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};
use parlor_proto::{MemberId, Tick};

/// A record of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A packet of the authority's world, for a reader that sees everything.
    Packet(Bytes),
    /// A checksum of the authority's world at this moment.
    Mark {
        /// Its newest tick.
        tick: Tick,
        /// Its [hash](crate::world::World::hash), for a viewer that sees everything.
        hash: u64,
    },
    /// A player is in the room.
    Came {
        /// The member.
        member: MemberId,
        /// The display name; may be empty.
        name: String,
    },
    /// A player left the room.
    Left {
        /// The member.
        member: MemberId,
    },
    /// The recording ends.
    End(Ended),
}

/// Why a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The room closed, for the member that recorded it.
    Closed,
    /// The game stopped the recording.
    Stopped,
    /// The file could not be written as fast as the room was recorded. The recording is complete up to there.
    Behind,
}

impl core::fmt::Display for Ended {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Ended::Closed => "the room is over",
            Ended::Stopped => "the recording was stopped",
            Ended::Behind => "the file could not be written as fast as the room was recorded",
        })
    }
}

impl Record {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Record::Packet(packet) => {
                out.put_u8(0);
                out.put(packet);
            }
            Record::Mark { tick, hash } => {
                out.put_u8(1);
                out.put_u32(tick.0);
                out.put_u64(*hash);
            }
            Record::Came { member, name } => {
                out.put_u8(2);
                out.put_varint(member.0.into());
                out.put_str(name);
            }
            Record::Left { member } => {
                out.put_u8(3);
                out.put_varint(member.0.into());
            }
            Record::End(ended) => {
                out.put_u8(4);
                out.put_u8(match ended {
                    Ended::Closed => 0,
                    Ended::Stopped => 1,
                    Ended::Behind => 2,
                });
            }
        }
    }

    pub(super) fn read(body: Bytes) -> Result<Record, ReadError> {
        let mut reader = Reader::new(body);
        let member = |reader: &mut Reader| reader.varint_u32("member").map(MemberId);
        let record = match reader.u8()? {
            0 => Record::Packet(reader.rest()),
            1 => Record::Mark { tick: Tick(reader.u32()?), hash: reader.u64()? },
            2 => Record::Came { member: member(&mut reader)?, name: reader.str_max("name", NAME_BYTES_MAX)? },
            3 => Record::Left { member: member(&mut reader)? },
            4 => Record::End(match reader.u8()? {
                0 => Ended::Closed,
                1 => Ended::Stopped,
                2 => Ended::Behind,
                value => return Err(ReadError::Unknown { field: "why", value: value.into() }),
            }),
            value => return Err(ReadError::Unknown { field: "record", value: value.into() }),
        };
        reader.finish()?;
        Ok(record)
    }
}
