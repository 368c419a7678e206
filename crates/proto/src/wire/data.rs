//! Data between the members of a match: the payloads of [`channel::MATCH_DATA`](crate::channel::MATCH_DATA)
//! and [`channel::MATCH_DATA_UNRELIABLE`](crate::channel::MATCH_DATA_UNRELIABLE), inside the
//! [`envelope`](super::envelope).
//!
//! ```text
//!  data   op: varint, 1 + the zigzag of the code | 0, the code: 8 bytes, if its zigzag is 2⁶² - 1 or more
//!         payload: bytes to the end
//! ```
//!
//! The zigzag of an integer is twice it, or, of a negative one, twice its absolute value less one: so that
//! small codes of either sign take one byte.

use super::cursor::{ReadError, Reader, VARINT_MAX, Write};
use crate::limits;
use bytes::Bytes;

/// Data of a match: an op code and a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchData {
    /// The op code. Any number; its meaning is up to the game.
    pub op: i64,
    /// The payload, at most [`MESSAGE_BYTES_MAX`](limits::MESSAGE_BYTES_MAX) bytes.
    pub payload: Bytes,
}

/// Maximum bytes of an op code.
pub const OP_BYTES_MAX: usize = 1 + 8;

impl MatchData {
    /// Encodes the payload of a message.
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.payload.len() + OP_BYTES_MAX);
        match zigzag(self.op) {
            short if short < VARINT_MAX => out.put_varint(short + 1),
            _ => {
                out.put_varint(0);
                out.put(&self.op.to_le_bytes());
            }
        }
        out.put(&self.payload);
        out.into()
    }

    /// Decodes the payload of a message.
    ///
    /// # Errors
    /// [`ReadError`] if it is malformed or too large.
    pub fn decode(bytes: Bytes) -> Result<Self, ReadError> {
        let mut reader = Reader::new(bytes);
        let op = match reader.varint()? {
            0 => {
                let op = i64::from_le_bytes(reader.array()?);
                if zigzag(op) < VARINT_MAX {
                    return Err(ReadError::NotShortest);
                }
                op
            }
            short => unzigzag(short - 1),
        };
        let payload = reader.rest();
        if payload.len() > limits::MESSAGE_BYTES_MAX {
            return Err(ReadError::OutOfRange { field: "match data" });
        }
        Ok(MatchData { op, payload })
    }
}

const fn zigzag(op: i64) -> u64 {
    (op << 1 ^ op >> 63).cast_unsigned()
}

const fn unzigzag(bits: u64) -> i64 {
    (bits >> 1).cast_signed() ^ -(bits & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data(op: i64, payload: &'static [u8]) -> MatchData {
        MatchData { op, payload: Bytes::from_static(payload) }
    }

    #[test]
    fn small_codes_of_either_sign_take_one_byte() {
        for op in -31..=31 {
            assert_eq!(data(op, b"").encode().len(), 1, "{op}");
        }
        assert_eq!(data(32, b"").encode().len(), 2);
        assert_eq!(data(i64::MIN, b"").encode().len(), OP_BYTES_MAX);
        assert_eq!(&data(1, b"hello").encode()[..], b"\x03hello");
    }

    #[test]
    fn a_code_has_one_form_and_what_is_said_a_limit() {
        let mut long = vec![0];
        long.extend(7_i64.to_le_bytes());
        assert_eq!(MatchData::decode(long.into()), Err(ReadError::NotShortest));
        let mut large = vec![1];
        large.resize(1 + limits::MESSAGE_BYTES_MAX, 7);
        assert!(MatchData::decode(large.clone().into()).is_ok());
        large.push(7);
        assert!(MatchData::decode(large.into()).is_err());
        assert!(MatchData::decode(Bytes::new()).is_err());
    }

    proptest! {
        #[test]
        fn every_code_comes_back(op: i64, shift in 0u32..64) {
            for op in [op, op >> shift, 1 << shift, i64::MAX >> shift, i64::MIN >> shift] {
                let data = data(op, b"what is said");
                prop_assert_eq!(MatchData::decode(data.encode()), Ok(data));
            }
        }
    }
}
