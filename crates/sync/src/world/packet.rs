//! A packet of a world.
//!
//! ```text
//!  +-------+----------+-----------+---------------------+----------+------------------+
//!  | flags | number   | floor gap | epoch gap           | tick     | body             |
//!  | 1     | 2        | 1, 2, 4   | 1, 2, 4, if COMPLETE| 4        | see `delta`      |
//!  +-------+----------+-----------+---------------------+----------+------------------+
//! ```
//!
//! - flags: [`LAST`] 1, [`TRANSFER`] 2, [`COMPLETE`] 4, [`PLAIN`] 8; the other bits are 0.
//! - number: lower half of the packet's number in its stream, little-endian.
//! - floor gap: the packet's number minus the lowest number in flight; a variable-length integer.
//! - epoch gap: the packet's number minus that of the first packet of this epoch. Earlier packets do not
//!   count. It is sent until the sender knows that the receiver has a packet with it.
//! - tick: the newest tick of the sender's world, little-endian. Labels of rows are ages against it.

use super::StreamError;
use bytes::Bytes;
use parlor_proto::wire::cursor::{Reader, Write};

/// With this packet, everything that the receiver may see has been sent, as of the packet's tick.
pub(super) const LAST: u8 = 1;
/// The state comes from another authority, or passes to one: readers snap to it.
pub(super) const TRANSFER: u8 = 2;
/// Begins an epoch: earlier packets do not count.
pub(super) const COMPLETE: u8 = 4;
/// The body is plain instead of coded. Only in streams of everything.
pub(super) const PLAIN: u8 = 8;

/// Largest head of a packet, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 1 + 2 + 4 + 4 + 4;

/// Largest gap in a head.
const GAP_MAX: u64 = (1 << 30) - 1;

/// The head of a packet, before its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHead {
    /// Whether everything that the receiver may see has been sent with this packet, as of its tick.
    pub last: bool,
    /// Whether the state comes from another authority, or passes to one.
    pub transfer: bool,
    /// Whether the body is plain instead of coded.
    pub plain: bool,
    /// The distance to the first packet of the epoch, until the receiver is known to have it.
    pub epoch_gap: Option<u32>,
    /// The lower half of its number in its stream.
    pub number: u16,
    /// The distance to the lowest number in flight.
    pub floor_gap: u32,
    /// The newest tick of the sender's world.
    pub tick: u32,
}

impl PacketHead {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        let complete = flag(self.epoch_gap.is_some(), COMPLETE);
        out.put_u8(
            flag(self.last, LAST) | flag(self.transfer, TRANSFER) | complete | flag(self.plain, PLAIN),
        );
        out.put_u16(self.number);
        out.put_varint(u64::from(self.floor_gap).min(GAP_MAX));
        if let Some(gap) = self.epoch_gap {
            out.put_varint(u64::from(gap).min(GAP_MAX));
        }
        out.put_u32(self.tick);
    }

    /// Reads the head of a packet. Also returns its body.
    ///
    /// # Errors
    /// [`StreamError`] if it is malformed, or contradicts itself.
    pub fn read(bytes: Bytes) -> Result<(PacketHead, Bytes), StreamError> {
        let mut reader = Reader::new(bytes);
        let flags = reader.u8()?;
        if flags & !(LAST | TRANSFER | COMPLETE | PLAIN) != 0 {
            return Err(StreamError::Head("it has flags that there are not"));
        }
        let number = reader.u16()?;
        let gap = |value: u64| u32::try_from(value).map_err(|_| StreamError::Head("a gap is too large"));
        let floor_gap = gap(reader.varint_max("the floor of a packet", GAP_MAX)?)?;
        let complete = flags & COMPLETE != 0;
        let epoch_gap = complete.then(|| reader.varint_max("the epoch of a packet", GAP_MAX)).transpose()?;
        let epoch_gap = epoch_gap.map(gap).transpose()?;
        if epoch_gap.is_some_and(|epoch| epoch < floor_gap) {
            return Err(StreamError::Head("its floor is before its epoch"));
        }
        let tick = reader.u32()?;
        let [last, transfer, plain] = [LAST, TRANSFER, PLAIN].map(|flag| flags & flag != 0);
        Ok((PacketHead { last, transfer, plain, epoch_gap, number, floor_gap, tick }, reader.rest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn heads_come_back(
            flags in any::<(bool, bool, bool, bool)>(), number: u16, floor_gap in 0u32..1 << 30, more in 0u32..1 << 10, tick: u32
        ) {
            let epoch_gap = flags.2.then(|| (floor_gap + more).min((1 << 30) - 1));
            let head = PacketHead { last: flags.0, transfer: flags.1, plain: flags.3, epoch_gap, number, floor_gap, tick };
            let mut out = Vec::new();
            head.write(&mut out);
            prop_assert!(out.len() <= HEAD_BYTES_MAX);
            out.extend([7; 3]);
            prop_assert_eq!(PacketHead::read(out.into()).unwrap(), (head, Bytes::from_static(&[7; 3])));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok((head, body)) = PacketHead::read(bytes.clone().into()) {
                let mut out = Vec::new();
                head.write(&mut out);
                out.extend_from_slice(&body);
                prop_assert_eq!(out, bytes);
            }
        }
    }
}
