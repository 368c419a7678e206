//! The terms of a room.

use crate::wire::cursor::{ReadError, Reader, Write};

/// How a room treats members whose connection is lost, where that differs from its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomTerms {
    /// The silence after which a member counts as lost, in ms.
    pub presence_ms: Option<u32>,
    /// How long a seat is kept, in ms, if that is less than the server keeps one.
    pub grace_ms: Option<u32>,
}

impl RoomTerms {
    pub(super) fn write(self, out: &mut Vec<u8>) {
        for ms in [self.presence_ms, self.grace_ms] {
            out.put_option(ms, |out, ms| out.put_varint(ms.into()));
        }
    }

    pub(super) fn read(reader: &mut Reader) -> Result<Self, ReadError> {
        Ok(RoomTerms {
            presence_ms: reader.option("presence", |reader| reader.varint_u32("presence"))?,
            grace_ms: reader.option("grace", |reader| reader.varint_u32("grace"))?,
        })
    }
}
