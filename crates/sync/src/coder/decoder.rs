//! The decoder: reads decisions from bytes.

use super::encoder::ending;
use super::{Bit, Code, Symbols};
use thiserror::Error;

/// Why the bytes of a body are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BodyError {
    /// The body ended before its decisions were complete.
    #[error("the body of {len} bytes ends in the middle: it was cut off, or is none")]
    Short {
        /// Its length in bytes.
        len: usize,
    },
    /// The decisions are complete, but an encoder would produce other bytes for them.
    #[error(
        "the body of {len} bytes does not end as an encoder ends it: it was changed, or something follows it"
    )]
    Ending {
        /// Its length in bytes.
        len: usize,
    },
}

/// Reads decisions from bytes. Beyond their end it reads zeros, so a caller's loop must be bounded, and must
/// call [`check`](Self::check) regularly.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    code: u64,
    range: u64,
    bytes: &'a [u8],
    /// Bytes consumed, including those beyond the end.
    at: usize,
}

/// A [`Decoder`] in use, with its state held by value.
#[derive(Debug)]
pub struct Reading<'home, 'bytes> {
    decoder: Decoder<'bytes>,
    home: &'home mut Decoder<'bytes>,
}

impl<'a> Decoder<'a> {
    /// Starts to decode this body.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut decoder = Decoder { code: 0, range: u64::MAX, bytes, at: 8 };
        decoder.code = decoder.last_eight();
        decoder
    }

    /// Returns the eight bytes before `at`.
    fn last_eight(&self) -> u64 {
        let mut eight = [0; 8];
        let from = (self.at - 8).min(self.bytes.len());
        let there = &self.bytes[from..self.at.min(self.bytes.len())];
        eight[..there.len()].copy_from_slice(there);
        u64::from_be_bytes(eight)
    }

    /// Whether an encoder can have written what was read so far into these bytes.
    ///
    /// # Errors
    ///
    /// [`BodyError::Short`] if more was read than an encoder may leave out.
    pub fn check(&self) -> Result<(), BodyError> {
        if self.at > self.bytes.len() + 8 { Err(BodyError::Short { len: self.bytes.len() }) } else { Ok(()) }
    }

    /// Checks that the body ends here.
    ///
    /// # Errors
    ///
    /// [`BodyError`] if an encoder would produce other bytes for the decisions that were read.
    pub fn finish(&self) -> Result<(), BodyError> {
        self.check()?;
        let low = self.last_eight().wrapping_sub(self.code);
        let (k, over) = ending(low, self.range);
        let is_so = self.code == over && self.bytes.len() == self.at - 8 + k;
        if is_so { Ok(()) } else { Err(BodyError::Ending { len: self.bytes.len() }) }
    }

    /// The number of bits that the decisions read so far took, as a fraction: by how much they narrowed the
    /// interval. For diagnostics.
    #[expect(
        clippy::cast_precision_loss,
        reason = "a body is shorter than 2^50 bits, and of the range 53 bits will do"
    )]
    pub fn bits_read(&self) -> f64 {
        8.0 * self.at.saturating_sub(8) as f64 + 64.0 - (self.range as f64).log2()
    }

    #[inline(always)]
    fn settle(&mut self) {
        if self.range < 1 << 32 {
            self.code = self.code << 32 | u64::from(four_at(self.bytes, self.at));
            self.at = self.at.saturating_add(4);
            self.range <<= 32;
        }
    }

    /// An encoder never produces a number between the last value and the end of the interval.
    #[inline(always)]
    fn between(&mut self) -> u32 {
        self.at = usize::MAX;
        self.code = 0;
        0
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "at most 16 bits")]
    fn some_plain(&mut self, count: u32) -> u32 {
        self.range >>= count;
        let value = self.code / self.range;
        if value >> count != 0 {
            return self.between();
        }
        self.code -= value * self.range;
        self.settle();
        value as u32
    }
}

/// Returns the four bytes at `at`; those beyond the end are 0.
#[inline(never)]
fn four_at(bytes: &[u8], at: usize) -> u32 {
    let rest = bytes.get(at..).unwrap_or(&[]);
    if let Some(&four) = rest.first_chunk::<4>() {
        return u32::from_be_bytes(four);
    }
    let mut four = [0; 4];
    four[..rest.len()].copy_from_slice(rest);
    u32::from_be_bytes(four)
}

impl<'bytes> Code for Decoder<'bytes> {
    const DECODES: bool = true;

    type Live<'a>
        = Reading<'a, 'bytes>
    where
        Self: 'a;

    #[inline(always)]
    fn live(&mut self) -> Reading<'_, 'bytes> {
        Reading { decoder: self.clone(), home: self }
    }

    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, _: bool) -> bool {
        let bound = (self.range >> 16) * u64::from(model.p);
        let bit = self.code < bound;
        if bit {
            self.range = bound;
        } else {
            self.code -= bound;
            self.range -= bound;
        }
        model.learn(bit);
        self.settle();
        bit
    }

    #[inline(always)]
    fn symbol(&mut self, model: &mut Symbols, _: usize) -> usize {
        let unit = self.range >> 15;
        let value = self.code / unit;
        if value >> 15 != 0 {
            return self.between() as usize;
        }
        let symbol = model.find(value);
        let (from, to) = model.span(symbol);
        self.code -= unit * from;
        self.range = unit * (to - from);
        model.learn(symbol);
        self.settle();
        symbol
    }

    #[inline(always)]
    fn plain(&mut self, count: u32, _: u32) -> u32 {
        match count {
            0..=16 => self.some_plain(count),
            _ => {
                let high = self.some_plain(count - 16);
                high << 16 | self.some_plain(16)
            }
        }
    }
}

impl<'home, 'bytes> Code for Reading<'home, 'bytes> {
    const DECODES: bool = true;

    type Live<'a>
        = &'a mut Reading<'home, 'bytes>
    where
        Self: 'a;

    #[inline(always)]
    fn live(&mut self) -> &mut Self {
        self
    }

    #[inline(always)]
    fn end(self) {
        *self.home = self.decoder;
    }

    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        self.decoder.bit(model, bit)
    }

    #[inline(always)]
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize {
        self.decoder.symbol(model, symbol)
    }

    #[inline(always)]
    fn plain(&mut self, count: u32, value: u32) -> u32 {
        self.decoder.plain(count, value)
    }
}
