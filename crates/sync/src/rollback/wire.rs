//! Messages between the ends of a rollback session, in the envelope of
//! [`channel::ROLLBACK`](parlor_proto::channel::ROLLBACK). Ticks are 4 bytes, as everywhere; a mask has a bit
//! for each player.
//!
//! ```text
//!  message   session: 2 bytes · kind: 1 byte · fields to the end
//!  0 inputs  settled: tick · first: tick · count: 1 byte · count × input
//!            sums from: tick · count: 1 byte · count × checksum: 4 bytes, 0 if there is none
//!  1 settled first: tick · count: 1 byte · count × (ticks: 1 byte · missed: mask)
//!  2 stream  first: tick · count: 1 byte · count × (missed: mask · changed: mask
//!            · for each bit of changed: length · bytes)
//!  input     length: 1 byte · bytes, or 0xff: the same as the one before it
//! ```

use super::input::Input;
use crate::limits::ROLLBACK_INPUT_BYTES_MAX;
use parlor_proto::Tick;
use parlor_proto::wire::cursor::{ReadError, Reader, Write};

/// Size in bytes at which a message is considered full: with its envelope and header it fits one datagram.
pub(super) const TARGET_BYTES: usize = 800;
/// The length byte for "the same as the one before".
const SAME: u8 = 0xff;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Inputs,
    Settled,
    Stream,
}

pub(super) fn write_head(out: &mut Vec<u8>, session: u16, kind: Kind) {
    out.clear();
    out.put_u16(session);
    out.put_u8(match kind {
        Kind::Inputs => 0,
        Kind::Settled => 1,
        Kind::Stream => 2,
    });
}

/// Reads the session and the kind; `None` for a kind that this build does not know.
pub(super) fn read_head(reader: &mut Reader) -> Result<(u16, Option<Kind>), ReadError> {
    let session = reader.u16()?;
    let kind = match reader.u8()? {
        0 => Some(Kind::Inputs),
        1 => Some(Kind::Settled),
        2 => Some(Kind::Stream),
        _ => None,
    };
    Ok((session, kind))
}

pub(super) fn write_tick(out: &mut Vec<u8>, tick: Tick) {
    out.put_u32(tick.0);
}

pub(super) fn read_tick(reader: &mut Reader) -> Result<Tick, ReadError> {
    Ok(Tick(reader.u32()?))
}

/// Writes an input; short if it equals the one before it.
pub(super) fn write_input(out: &mut Vec<u8>, input: &Input, before: Option<&Input>) {
    if before == Some(input) {
        out.put_u8(SAME);
    } else {
        out.put_u8(u8::try_from(input.bytes().len()).expect("inputs are short"));
        out.put(input.bytes());
    }
}

pub(super) fn read_input(reader: &mut Reader, before: Option<&Input>) -> Result<Input, ReadError> {
    let len = reader.u8()?;
    if len == SAME {
        return before.copied().ok_or(ReadError::OutOfRange { field: "repeated input" });
    }
    if usize::from(len) > ROLLBACK_INPUT_BYTES_MAX {
        return Err(ReadError::OutOfRange { field: "length of an input" });
    }
    let bytes = reader.take(len.into())?;
    Input::new(&bytes).ok_or(ReadError::OutOfRange { field: "length of an input" })
}

/// Writes a count into the place from [`reserve_count`].
pub(super) fn set_count(out: &mut [u8], at: usize, count: u8) {
    out[at] = count;
}

/// Reserves space for a count. Returns its position.
pub(super) fn reserve_count(out: &mut Vec<u8>) -> usize {
    out.put_u8(0);
    out.len() - 1
}
