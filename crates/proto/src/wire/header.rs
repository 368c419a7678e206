//! The header of a packet.
//!
//! ```text
//!  1 byte   flags      bit 0 SEQUENCE · 1 ACK · 2 RELIABLE_ACK · 3 TICK · 4 EPOCH · 5–7 zero
//!  2 bytes  sequence   if SEQUENCE: low half of this packet's number in the session
//!  2 bytes  ack        if ACK: low half of the highest number taken
//!  4 bytes  ack bits   if ACK: bit i says that number ack − 1 − i was taken too
//!  varint   reliable   if RELIABLE_ACK: every reliable message below this number was received
//!  2 bytes  tick       if TICK: low half of the sender's tick
//!  varint   epoch      if EPOCH: the room's epoch; without it the epoch is 0
//!           frames     to the end of the packet
//! ```
//!
//! A number is *taken* when its packet arrived and every message in it was delivered or kept for assembly. A
//! packet with a dropped message (older than one of the same key) is not acknowledged.
//!
//! The sequence belongs to the session, not to the connection: it continues on the next connection.

use super::cursor::{ReadError, Reader, Write};
use crate::ids::Epoch;

/// Returns the number nearest to `near` with the low half `wire`; of two equally near ones the lower. Never
/// negative.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // the low half is what is compared
pub fn expand(wire: u16, near: u64) -> u64 {
    let distance = wire.wrapping_sub(near as u16) as i16;
    near.saturating_add_signed(distance.into())
}

/// The acknowledged packets: the newest, and those of the 32 before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Low half of the highest number taken.
    pub newest: u16,
    /// Bit `i` stands for `newest − 1 − i`.
    pub bits: u32,
}

/// See the [module](self) for the layout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Low half of the packet's number. Packets without one are not acknowledged: they carry nothing that may
    /// be lost.
    pub sequence: Option<u16>,
    /// The acknowledged packets.
    pub ack: Option<Ack>,
    /// The sender received every reliable message below this number.
    pub reliable_ack: Option<u64>,
    /// Low half of the sender's tick.
    pub tick: Option<u16>,
    /// The room's epoch as the sender knows it.
    pub epoch: Epoch,
}

const SEQUENCE: u8 = 1 << 0;
const ACK: u8 = 1 << 1;
const RELIABLE_ACK: u8 = 1 << 2;
const TICK: u8 = 1 << 3;
const EPOCH: u8 = 1 << 4;
const KNOWN: u8 = SEQUENCE | ACK | RELIABLE_ACK | TICK | EPOCH;

impl Header {
    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        out.put_u8(
            flag(self.sequence.is_some(), SEQUENCE)
                | flag(self.ack.is_some(), ACK)
                | flag(self.reliable_ack.is_some(), RELIABLE_ACK)
                | flag(self.tick.is_some(), TICK)
                | flag(self.epoch != Epoch(0), EPOCH),
        );
        if let Some(sequence) = self.sequence {
            out.put_u16(sequence);
        }
        if let Some(ack) = self.ack {
            out.put_u16(ack.newest);
            out.put_u32(ack.bits);
        }
        if let Some(number) = self.reliable_ack {
            out.put_varint(number);
        }
        if let Some(tick) = self.tick {
            out.put_u16(tick);
        }
        if self.epoch != Epoch(0) {
            out.put_varint(self.epoch.0.into());
        }
    }

    /// Reads a header; `reader` is left at the frames.
    ///
    /// # Errors
    /// [`ReadError`] if it is truncated, has unknown flags, or has an explicit epoch 0.
    pub fn read(reader: &mut Reader) -> Result<Header, ReadError> {
        let flags = reader.u8()?;
        if flags & !KNOWN != 0 {
            return Err(ReadError::Unknown { field: "header flags", value: flags.into() });
        }
        let has = |bit: u8| flags & bit != 0;
        let header = Header {
            sequence: has(SEQUENCE).then(|| reader.u16()).transpose()?,
            ack: has(ACK)
                .then(|| Ok::<_, ReadError>(Ack { newest: reader.u16()?, bits: reader.u32()? }))
                .transpose()?,
            reliable_ack: has(RELIABLE_ACK).then(|| reader.varint()).transpose()?,
            tick: has(TICK).then(|| reader.u16()).transpose()?,
            epoch: Epoch(if has(EPOCH) { reader.varint_u32("epoch")? } else { 0 }),
        };
        if has(EPOCH) && header.epoch == Epoch(0) {
            return Err(ReadError::OutOfRange { field: "epoch" });
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_near_the_newest() {
        assert_eq!(expand(0, 0), 0);
        assert_eq!(expand(5, 0), 5);
        assert_eq!(expand(1, 0x1_fffe), 0x2_0001);
        assert_eq!(expand(0xfffe, 0x2_0001), 0x1_fffe);
    }
}
