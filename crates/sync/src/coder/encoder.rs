//! The encoder: writes decisions into bytes.

use super::{Bit, Code, Symbols};

/// Writes decisions into bytes.
#[derive(Clone, Debug)]
pub struct Encoder {
    low: u64,
    range: u64,
    out: Vec<u8>,
}

/// An [`Encoder`] in use, with its state held by value. Its interval is apart from the output buffer, because
/// functions get that one's address.
#[derive(Debug)]
pub struct Writing<'a> {
    low: u64,
    range: u64,
    home: &'a mut Encoder,
}

/// A position of an [`Encoder`].
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    low: u64,
    range: u64,
    len: usize,
    /// The last bytes before the mark, which a carry may change.
    last: u64,
    /// How many bytes before the mark a later carry can reach.
    reach: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// Creates an encoder at the beginning of a body.
    pub fn new() -> Self {
        Encoder { low: 0, range: u64::MAX, out: Vec::new() }
    }

    /// Returns to the beginning of a body. Keeps the allocated memory.
    pub fn restart(&mut self) {
        self.out.clear();
        (self.low, self.range) = (0, u64::MAX);
    }

    /// Continues where another encoder is. Keeps the allocated memory.
    pub fn resume(&mut self, other: &Encoder) {
        (self.low, self.range) = (other.low, other.range);
        self.out.clone_from(&other.out);
    }

    /// An upper bound of the bytes that [`finish`](Self::finish) would write: at most 8 too many.
    pub fn bytes(&self) -> usize {
        self.out.len() + 8
    }

    /// Finishes the body and appends it to `out`. Call [`restart`](Self::restart) before the next one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let (k, over) = ending(self.low, self.range);
        let (value, carry) = self.low.overflowing_add(over);
        if carry {
            carry_into(&mut self.out);
        }
        out.extend_from_slice(&self.out);
        out.extend_from_slice(&value.to_be_bytes()[..k]);
    }

    /// Returns the current position, for [`undo`](Self::undo).
    pub fn mark(&self) -> Mark {
        // A carry increments the last byte that is not 255, and sets all after it to 0.
        let full = self.out.iter().rev().take_while(|&&byte| byte == u8::MAX).count();
        let reach = (full + 1).min(self.out.len());
        let last = self.out.get(self.out.len() - reach).copied().unwrap_or(0);
        Mark { low: self.low, range: self.range, len: self.out.len(), last: u64::from(last), reach }
    }

    /// Undoes everything since `mark`, which must belong to this body. Restoring the models is up to the
    /// caller.
    pub fn undo(&mut self, mark: Mark) {
        self.out.truncate(mark.len);
        (self.low, self.range) = (mark.low, mark.range);
        if let Some((first, rest)) = self.out[mark.len - mark.reach..].split_first_mut() {
            *first = mark.last.to_be_bytes()[7];
            rest.fill(u8::MAX);
        }
    }
}

impl Writing<'_> {
    #[inline(always)]
    fn add(&mut self, amount: u64) {
        let (low, carry) = self.low.overflowing_add(amount);
        self.low = low;
        if carry {
            carry_into(&mut self.home.out);
        }
    }

    #[inline(always)]
    fn settle(&mut self) {
        if self.range < 1 << 32 {
            write_high(&mut self.home.out, self.low);
            self.low <<= 32;
            self.range <<= 32;
        }
    }

    #[inline(always)]
    fn some_plain(&mut self, count: u32, value: u32) {
        self.range >>= count;
        self.add(self.range * u64::from(value));
        self.settle();
    }
}

#[cold]
#[inline(never)]
fn carry_into(out: &mut [u8]) {
    for byte in out.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return;
        }
    }
}

#[inline(never)]
fn write_high(out: &mut Vec<u8>, low: u64) {
    let [a, b, c, d, ..] = low.to_be_bytes();
    out.extend_from_slice(&[a, b, c, d]);
}

/// The final bytes that identify a number of the interval `low .. low + range`, and the distance of that
/// number from `low`.
pub(super) fn ending(low: u64, range: u64) -> (usize, u64) {
    let mut below = u64::MAX;
    for k in 0..8 {
        // The least multiple of `below + 1` that is not below `low`.
        let over = low.wrapping_neg() & below;
        if over < range {
            return (k, over);
        }
        below >>= 8;
    }
    (8, 0)
}

impl Code for Encoder {
    const DECODES: bool = false;

    type Live<'a> = Writing<'a>;

    #[inline(always)]
    fn live(&mut self) -> Writing<'_> {
        Writing { low: self.low, range: self.range, home: self }
    }

    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        let mut live = self.live();
        live.bit(model, bit);
        live.end();
        bit
    }

    #[inline(always)]
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize {
        let mut live = self.live();
        live.symbol(model, symbol);
        live.end();
        symbol
    }

    #[inline(always)]
    fn plain(&mut self, count: u32, value: u32) -> u32 {
        let mut live = self.live();
        live.plain(count, value);
        live.end();
        value
    }
}

impl<'home> Code for Writing<'home> {
    const DECODES: bool = false;

    type Live<'a>
        = &'a mut Writing<'home>
    where
        Self: 'a;

    #[inline(always)]
    fn live(&mut self) -> &mut Self {
        self
    }

    #[inline(always)]
    fn end(self) {
        (self.home.low, self.home.range) = (self.low, self.range);
    }

    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        let bound = (self.range >> 16) * u64::from(model.p);
        let (amount, range) = if bit { (0, bound) } else { (bound, self.range - bound) };
        self.range = range;
        self.add(amount);
        model.learn(bit);
        self.settle();
        bit
    }

    #[inline(always)]
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize {
        let (from, to) = model.span(symbol);
        let unit = self.range >> 15;
        self.range = unit * (to - from);
        self.add(unit * from);
        model.learn(symbol);
        self.settle();
        symbol
    }

    #[inline(always)]
    fn plain(&mut self, count: u32, value: u32) -> u32 {
        if count > 16 {
            self.some_plain(count - 16, value >> 16);
            self.some_plain(16, value & 0xffff);
        } else {
            self.some_plain(count, value);
        }
        value
    }
}
