//! Plain bodies: written out instead of coded, for a receiver in the same process, where bytes cost nothing.
//!
//! The head of an entry has the decisions of a coded one, each in a byte of its own, and plain bits in four
//! bytes, little-endian. A component is its lanes, four bytes each, and its blobs, each preceded by its
//! length. It does not depend on a baseline, and has no adaptive state.

use crate::coder::{Bit, BodyError, Code, Symbols};
use bytes::Bytes;
use parlor_proto::wire::cursor::Write;

/// Writes decisions as bytes.
#[derive(Debug)]
pub(super) struct Out<'a>(pub(super) &'a mut Vec<u8>);

impl Out<'_> {
    /// Writes a component.
    pub(super) fn component(&mut self, lanes: &[i32], blobs: &[Bytes]) {
        self.0.reserve(lanes.len() * LANE_BYTES);
        for lane in lanes {
            self.0.extend_from_slice(&lane.to_le_bytes());
        }
        for blob in blobs {
            self.0.put_varint(blob.len() as u64);
            self.0.extend_from_slice(blob);
        }
    }
}

/// Reads what [`Out`] wrote. Beyond the end, and for invalid bytes, it reads zeros; [`check`](Self::check)
/// then returns an error.
#[derive(Debug)]
pub(super) struct In<'a> {
    all: usize,
    rest: &'a [u8],
    is_bad: bool,
}

const LANE_BYTES: usize = size_of::<i32>();

impl<'a> In<'a> {
    pub(super) fn new(body: &'a [u8]) -> Self {
        In { all: body.len(), rest: body, is_bad: false }
    }

    /// The number of bytes read.
    pub(super) fn read_bytes(&self) -> usize {
        self.all - self.rest.len()
    }

    /// Checks that everything read was there.
    ///
    /// # Errors
    /// [`BodyError::Short`] if not.
    pub(super) fn check(&self) -> Result<(), BodyError> {
        if self.is_bad { Err(BodyError::Short { len: self.all }) } else { Ok(()) }
    }

    /// Checks that the body ends here.
    ///
    /// # Errors
    /// [`BodyError`] if it does not.
    pub(super) fn finish(&self) -> Result<(), BodyError> {
        self.check()?;
        if self.rest.is_empty() { Ok(()) } else { Err(BodyError::Ending { len: self.all }) }
    }

    /// Reads a component, as many lanes and blobs as there is room for. Values are not checked against their
    /// ranges.
    pub(super) fn component(&mut self, lanes: &mut [i32], blobs: &mut [Bytes]) {
        let bytes = self.take(lanes.len() * LANE_BYTES);
        for (lane, bytes) in lanes.iter_mut().zip(bytes.as_chunks::<LANE_BYTES>().0) {
            *lane = i32::from_le_bytes(*bytes);
        }
        for blob in blobs {
            let length = self.length();
            *blob = Bytes::copy_from_slice(self.take(length));
        }
    }

    /// Reads a variable-length integer in its shortest form.
    fn length(&mut self) -> usize {
        let width = self.rest.first().map_or(1, |first| 1 << (first >> 6));
        let bytes = self.take(width);
        let mut reader = parlor_proto::wire::cursor::Reader::new(Bytes::copy_from_slice(bytes));
        match reader.varint().ok().and_then(|length| usize::try_from(length).ok()) {
            Some(length) => length,
            None => {
                self.is_bad = true;
                0
            }
        }
    }

    /// Returns the next bytes; none if fewer remain.
    fn take(&mut self, count: usize) -> &'a [u8] {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                taken
            }
            None => {
                (self.is_bad, self.rest) = (true, &[]);
                &[]
            }
        }
    }
}

impl Code for Out<'_> {
    const DECODES: bool = false;

    type Live<'a>
        = &'a mut Self
    where
        Self: 'a;

    fn live(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn bit(&mut self, _: &mut Bit, bit: bool) -> bool {
        self.0.push(u8::from(bit));
        bit
    }

    fn symbol(&mut self, _: &mut Symbols, symbol: usize) -> usize {
        debug_assert!(false, "the head of an entry has no choices of sixteen");
        symbol
    }

    fn plain(&mut self, _: u32, value: u32) -> u32 {
        self.0.extend_from_slice(&value.to_le_bytes());
        value
    }
}

impl Code for In<'_> {
    const DECODES: bool = true;

    type Live<'a>
        = &'a mut Self
    where
        Self: 'a;

    fn live(&mut self) -> &mut Self {
        self
    }

    #[inline]
    fn bit(&mut self, _: &mut Bit, _: bool) -> bool {
        match self.rest.split_first() {
            Some((bit @ (0 | 1), rest)) => {
                self.rest = rest;
                *bit == 1
            }
            _ => {
                self.is_bad = true;
                false
            }
        }
    }

    fn symbol(&mut self, _: &mut Symbols, _: usize) -> usize {
        debug_assert!(false, "the head of an entry has no choices of sixteen");
        self.is_bad = true;
        0
    }

    fn plain(&mut self, count: u32, _: u32) -> u32 {
        let value = self.take(size_of::<u32>()).first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if count < u32::BITS && value >> count != 0 {
            self.is_bad = true;
            return 0;
        }
        value
    }
}
