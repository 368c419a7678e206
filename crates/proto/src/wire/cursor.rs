//! Reading and writing bytes. Integers are little-endian; lengths and numbers without a natural width are
//! variable-length integers in the layout of RFC 9000 §16 (which is big-endian), shortest form required.

use bytes::{Buf, Bytes};
use thiserror::Error;

/// Why bytes could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The bytes ended inside a value.
    #[error("ended after {available} of {wanted} bytes")]
    Truncated {
        /// Bytes that the value needs.
        wanted: usize,
        /// Bytes that remain.
        available: usize,
    },
    /// A value is outside of its field's range.
    #[error("{field} is out of range")]
    OutOfRange {
        /// The field, as named in PROTOCOL.md.
        field: &'static str,
    },
    /// A variable-length integer was not in its shortest form.
    #[error("a number is not in its shortest form")]
    NotShortest,
    /// Text is not UTF-8.
    #[error("{field} is not UTF-8")]
    NotUtf8 {
        /// The field, as named in PROTOCOL.md.
        field: &'static str,
    },
    /// A number that selects a layout is unknown to this version.
    #[error("{field} has the unknown value {value}")]
    Unknown {
        /// The field, as named in PROTOCOL.md.
        field: &'static str,
        /// The number.
        value: u64,
    },
    /// Bytes remain after the end of a layout.
    #[error("{left} bytes too many")]
    Trailing {
        /// Bytes that remain.
        left: usize,
    },
}

/// The largest number that a variable-length integer can hold.
pub const VARINT_MAX: u64 = (1 << 62) - 1;

/// Reads values from the front of a buffer. Allocates nothing for a declared length: a length beyond the
/// remaining bytes is an error first.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Bytes,
}

impl Reader {
    /// Creates a reader at the front of `bytes`.
    pub fn new(bytes: Bytes) -> Self {
        Reader { bytes }
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next `len` bytes, which share the buffer.
    ///
    /// # Errors
    /// [`ReadError::Truncated`] if fewer remain.
    pub fn take(&mut self, len: usize) -> Result<Bytes, ReadError> {
        if len > self.bytes.len() {
            return Err(ReadError::Truncated { wanted: len, available: self.bytes.len() });
        }
        Ok(self.bytes.split_to(len))
    }

    /// Returns all remaining bytes.
    pub fn rest(&mut self) -> Bytes {
        self.bytes.split_off(0)
    }

    /// Reads a fixed number of bytes.
    ///
    /// # Errors
    /// [`ReadError::Truncated`] if fewer remain.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        // Copied without `take`: sharing the buffer for a few bytes would cost more than reading them.
        let Some(array) = self.bytes.first_chunk::<N>().copied() else {
            return Err(ReadError::Truncated { wanted: N, available: self.bytes.len() });
        };
        self.bytes.advance(N);
        Ok(array)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`ReadError::Truncated`] at the end; so do all fixed-width readers below.
    pub fn u8(&mut self) -> Result<u8, ReadError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, little-endian.
    #[allow(missing_docs, clippy::missing_errors_doc)]
    pub fn u16(&mut self) -> Result<u16, ReadError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Four bytes, little-endian.
    #[allow(clippy::missing_errors_doc)]
    pub fn u32(&mut self) -> Result<u32, ReadError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, little-endian.
    #[allow(clippy::missing_errors_doc)]
    pub fn u64(&mut self) -> Result<u64, ReadError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Sixteen bytes, little-endian.
    #[allow(clippy::missing_errors_doc)]
    pub fn u128(&mut self) -> Result<u128, ReadError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// A variable-length integer, 0 to [`VARINT_MAX`].
    ///
    /// # Errors
    /// [`ReadError::Truncated`], or [`ReadError::NotShortest`]: the encoding is unique.
    pub fn varint(&mut self) -> Result<u64, ReadError> {
        let first = *self.bytes.first().ok_or(ReadError::Truncated { wanted: 1, available: 0 })?;
        let width = 1usize << (first >> 6);
        let Some(rest) = self.bytes.get(1..width) else {
            return Err(ReadError::Truncated { wanted: width, available: self.bytes.len() });
        };
        let value = rest.iter().fold(u64::from(first & 0x3f), |value, byte| value << 8 | u64::from(*byte));
        self.bytes.advance(width);
        if varint_width(value) != width {
            return Err(ReadError::NotShortest);
        }
        Ok(value)
    }

    /// A variable-length integer of at most `max`.
    ///
    /// # Errors
    /// Those of [`varint`](Self::varint), and [`ReadError::OutOfRange`].
    pub fn varint_max(&mut self, field: &'static str, max: u64) -> Result<u64, ReadError> {
        let value = self.varint()?;
        if value > max { Err(ReadError::OutOfRange { field }) } else { Ok(value) }
    }

    /// A variable-length integer that fits 32 bits.
    ///
    /// # Errors
    /// Those of [`varint_max`](Self::varint_max).
    pub fn varint_u32(&mut self, field: &'static str) -> Result<u32, ReadError> {
        u32::try_from(self.varint()?).map_err(|_| ReadError::OutOfRange { field })
    }

    /// A length (at most `max`) and that many bytes.
    ///
    /// # Errors
    /// [`ReadError::OutOfRange`] beyond `max`, [`ReadError::Truncated`] if fewer remain.
    pub fn bytes_max(&mut self, field: &'static str, max: usize) -> Result<Bytes, ReadError> {
        let len = self.varint_max(field, max as u64)?;
        self.take(usize::try_from(len).map_err(|_| ReadError::OutOfRange { field })?)
    }

    /// A length (at most `max` bytes) and that much UTF-8.
    ///
    /// # Errors
    /// Those of [`bytes_max`](Self::bytes_max), and [`ReadError::NotUtf8`].
    pub fn str_max(&mut self, field: &'static str, max: usize) -> Result<String, ReadError> {
        let bytes = self.bytes_max(field, max)?;
        core::str::from_utf8(&bytes).map(str::to_owned).map_err(|_| ReadError::NotUtf8 { field })
    }

    /// One byte that is 0 or 1.
    ///
    /// # Errors
    /// [`ReadError::Unknown`] for any other byte.
    pub fn bool(&mut self, field: &'static str) -> Result<bool, ReadError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(ReadError::Unknown { field, value: value.into() }),
        }
    }

    /// A flag byte, and the value if it is set.
    ///
    /// # Errors
    /// Those of [`bool`](Self::bool) and of `read`.
    pub fn option<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, ReadError>,
    ) -> Result<Option<T>, ReadError> {
        if self.bool(field)? { read(self).map(Some) } else { Ok(None) }
    }

    /// Checks that the layout ends here.
    ///
    /// # Errors
    /// [`ReadError::Trailing`] if bytes remain.
    pub fn finish(&self) -> Result<(), ReadError> {
        if self.is_empty() { Ok(()) } else { Err(ReadError::Trailing { left: self.remaining() }) }
    }
}

/// Bytes that `value` takes as a variable-length integer.
pub const fn varint_width(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

/// Appends values to a buffer. Values that a [`Reader`] rejects must not be written: callers check before.
pub trait Write {
    /// Appends bytes as they are.
    fn put(&mut self, bytes: &[u8]);

    /// One byte.
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Two bytes, little-endian.
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_le_bytes());
    }

    /// Four bytes, little-endian.
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    /// Eight bytes, little-endian.
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_le_bytes());
    }

    /// Sixteen bytes, little-endian.
    fn put_u128(&mut self, value: u128) {
        self.put(&value.to_le_bytes());
    }

    /// A variable-length integer in its shortest form.
    ///
    /// # Panics
    /// If `value` is beyond [`VARINT_MAX`]. No count in Parlor comes near it.
    fn put_varint(&mut self, value: u64) {
        assert!(value <= VARINT_MAX, "{value} does not fit a variable-length integer");
        let bytes = value.to_be_bytes();
        let width = varint_width(value);
        let mut out = [0; 8];
        out[..width].copy_from_slice(&bytes[8 - width..]);
        out[0] |= match width {
            1 => 0x00,
            2 => 0x40,
            4 => 0x80,
            _ => 0xc0,
        };
        self.put(&out[..width]);
    }

    /// A length and the bytes.
    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put(bytes);
    }

    /// A length and UTF-8.
    fn put_str(&mut self, text: &str) {
        self.put_bytes(text.as_bytes());
    }

    /// One byte, 0 or 1.
    fn put_bool(&mut self, value: bool) {
        self.put_u8(value.into());
    }

    /// A flag byte, and the value if there is one.
    fn put_option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.put_bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }
}

impl Write for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn varints_have_the_vectors_of_rfc_9000() {
        // RFC 9000 appendix A.1.
        for (value, bytes) in [
            (151_288_809_941_952_652, &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c][..]),
            (494_878_333, &[0x9d, 0x7f, 0x3e, 0x7d]),
            (15_293, &[0x7b, 0xbd]),
            (37, &[0x25]),
        ] {
            let mut out = Vec::new();
            out.put_varint(value);
            assert_eq!(out, bytes);
            assert_eq!(Reader::new(Bytes::copy_from_slice(bytes)).varint(), Ok(value));
        }
        // The RFC allows 37 in two bytes; here the encoding is unique.
        assert_eq!(Reader::new(Bytes::from_static(&[0x40, 0x25])).varint(), Err(ReadError::NotShortest));
    }

    proptest! {
        #[test]
        fn varints_come_back(value in 0..=VARINT_MAX, shift in 0u32..62) {
            let value = value >> shift;
            let mut out = Vec::new();
            out.put_varint(value);
            prop_assert_eq!(out.len(), varint_width(value));
            let mut reader = Reader::new(out.into());
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert!(reader.finish().is_ok());
        }

        #[test]
        fn a_declared_length_takes_no_more_than_there_is(len in 0u64..1 << 40, tail in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut out = Vec::new();
            out.put_varint(len);
            out.put(&tail);
            let got = Reader::new(out.into()).bytes_max("x", usize::MAX);
            prop_assert_eq!(got.is_ok(), len <= tail.len() as u64);
        }
    }
}
