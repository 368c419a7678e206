//! The authority hands its part over: the request, and why a hub refuses one.

use crate::ids::{Epoch, MemberId};
use crate::wire::cursor::{ReadError, Reader, Write};
use core::fmt;

/// The authority asks that another member takes its part. It stays in the room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// The epoch of the authority that asks. Under another one the request is void.
    pub epoch: Epoch,
    /// The next authority; `None` for the one that the hub would name.
    pub to: Option<MemberId>,
}

impl HandOver {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.put_varint(self.epoch.0.into());
        out.put_option(self.to, |out, to| out.put_varint(to.0.into()));
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(HandOver {
            epoch: Epoch(reader.varint_u32("epoch")?),
            to: reader.option("member", super::member)?,
        })
    }
}

/// Why the authority keeps its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOverRefusal {
    /// The room has no host migration.
    NoMigration,
    /// The player is not in the room.
    NoSuchPlayer,
    /// The player is not connected.
    NotReady,
    /// The member is a spectator.
    Spectator,
    /// The last hand-over was too short a while ago.
    TooSoon,
    /// No other player is there that could take the part.
    Nobody,
    /// A hand-over is under way.
    UnderWay,
    /// A reason that this version does not know.
    Unknown {
        /// Its number.
        code: u8,
    },
}

impl HandOverRefusal {
    /// The name in JSON, logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            HandOverRefusal::NoMigration => "no_migration",
            HandOverRefusal::NoSuchPlayer => "no_such_player",
            HandOverRefusal::NotReady => "not_ready",
            HandOverRefusal::Spectator => "spectator",
            HandOverRefusal::TooSoon => "too_soon",
            HandOverRefusal::Nobody => "nobody",
            HandOverRefusal::UnderWay => "under_way",
            HandOverRefusal::Unknown { .. } => "unknown",
        }
    }

    pub(super) const fn to_wire(self) -> u8 {
        match self {
            HandOverRefusal::NoMigration => 0,
            HandOverRefusal::NoSuchPlayer => 1,
            HandOverRefusal::NotReady => 2,
            HandOverRefusal::Spectator => 3,
            HandOverRefusal::TooSoon => 4,
            HandOverRefusal::Nobody => 5,
            HandOverRefusal::UnderWay => 6,
            HandOverRefusal::Unknown { code } => code,
        }
    }

    pub(super) const fn from_wire(code: u8) -> Self {
        match code {
            0 => HandOverRefusal::NoMigration,
            1 => HandOverRefusal::NoSuchPlayer,
            2 => HandOverRefusal::NotReady,
            3 => HandOverRefusal::Spectator,
            4 => HandOverRefusal::TooSoon,
            5 => HandOverRefusal::Nobody,
            6 => HandOverRefusal::UnderWay,
            code => HandOverRefusal::Unknown { code },
        }
    }
}

impl fmt::Display for HandOverRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandOverRefusal::NoMigration => {
                f.write_str("the room ends with its host: open it with host_migration()")
            }
            HandOverRefusal::NoSuchPlayer => {
                f.write_str("the player has left: choose one that is in the room")
            }
            HandOverRefusal::NotReady => {
                f.write_str("the player is not connected: choose another one, or wait for Event::PlayerBack")
            }
            HandOverRefusal::Spectator => f.write_str("a spectator only watches: choose a player"),
            HandOverRefusal::TooSoon => f.write_str("the room has just got this host: try again in a second"),
            HandOverRefusal::Nobody => f.write_str("no other player is connected: wait for one"),
            HandOverRefusal::UnderWay => f.write_str("a hand-over is under way: wait for Event::HostChanged"),
            HandOverRefusal::Unknown { code } => write!(f, "the server refused it for reason {code}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_and_has_a_name_and_a_sentence() {
        let mut names = std::collections::BTreeSet::new();
        for code in 0..=u8::MAX {
            let why = HandOverRefusal::from_wire(code);
            assert_eq!(why.to_wire(), code);
            assert!(!why.to_string().is_empty());
            names.insert(why.as_str());
        }
        assert_eq!(names.len(), 8);
    }
}
