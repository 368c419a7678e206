//! An adaptive binary arithmetic coder.
//!
//! It codes a sequence of *decisions*, each 0 or 1, and of *plain bits* with equal probabilities. A decision
//! has a [`Bit`], the model of the probability of a 1, which adapts to each decision. Both ends hold the same
//! models in the same states, so the decoder reads what the encoder wrote.
//!
//! The arithmetic is that of a range coder with carries (G. N. N. Martin 1979; the binary form as in LZMA by
//! I. Pavlov), with an interval of 64 bits that moves on by 32 bits at a time.
//!
//! # Interval
//!
//! The bytes of a body, followed by zeros without end, are a binary fraction `V` in 0..1. The interval begins
//! as `low = 0`, `range = 2^64 - 1`, in units of 2^-64.
//!
//! - *Decision* with a model of probability `p` (1 ..= 65,535, in 1/65,536): `bound = (range >> 16) * p`. A 1
//!   takes the lower part: `range = bound`. A 0 takes the rest: `low += bound`, `range -= bound`. Then the
//!   model learns.
//! - *Plain bits*, `n` in 1..=16, of value `v`: `range >>= n`, `low += range * v`. More than 16 go in two
//!   parts: the highest `n - 16`, then 16.
//! - After each of them, if `range < 2^32`: the interval moves on by 32 bits, `low` and `range` are
//!   multiplied by 2^32, and the unit becomes 2^32 times smaller. Once is always enough.
//!
//! The decoder holds `code = V - low` in the same unit (64 bits of it). A decision is 1 if `code < bound`,
//! else 0 and `code -= bound`. Plain bits are `v = code / (range >> n)`, and `code -= v * (range >> n)`. A
//! `v` of 2^n or more is invalid, and the body is rejected. When the interval moves on, the next four bytes
//! are shifted in.
//!
//! # End
//!
//! Let `moves` be the number of times that the interval moved on. The encoder takes the smallest `k` in 0..=8
//! such that a number in `low .. low + range` is a multiple of 2^(64 - 8k), and the least such number. The
//! body is its first `4 * moves + k` bytes. No other body is valid for the same decisions:
//! [`Decoder::finish`] computes the same number and rejects any other ending, longer or shorter.
//!
//! # Model
//!
//! A [`Bit`] is a probability `p` and the count `n` of decisions that it is based on. Coding a decision `b`
//! sets `p += ((65,536 * b - p) * RATE[n]) >> 15` (the shift rounds down), clamped to 32 ..= 65,504, where
//! `RATE[n] = floor(65,536 / (2n + 3))`, so early decisions move it further than later ones. Then `n` grows
//! by one up to [`COUNT_MAX`].
//!
//! # Choice of sixteen
//!
//! A [`Symbols`] has cumulative weights `below[0..=16]`, from 0 to 32,512, and a count `n`. Symbol `s` takes
//! the part from `from = below[s] + 16 s` to `to = below[s + 1] + 16 (s + 1)` of 32,768:
//! `unit = range >> 15`, `low += unit * from`, `range = unit * (to - from)`; then as after a decision. The
//! decoder takes the last symbol with `from <= code / unit`; a quotient of 32,768 or more is no symbol, and
//! the body is rejected. Then each `below[i]` for `i` in 1..=15 becomes `below[i] + ((t - below[i]) >> k)`,
//! where `t` is 32,512 for `i > s` and 0 otherwise, the shift rounds down, and `k` is 2, 3, 4, 5, 6 for `n`
//! below 4, 10, 24, 60, and above; `n` grows by one up to 120. (Cumulative weights that move to a step: as in
//! the entropy coder of Daala and AV1.)

mod decoder;
mod encoder;
mod integer;
mod symbols;

#[cfg(test)]
mod tests;

pub use decoder::{BodyError, Decoder};
pub use encoder::{Encoder, Mark};
pub use integer::{NUMBER_MODELS, number, number_bits_max};
pub use symbols::{SYMBOLS, Symbols};

/// Maximum count of a model. A larger one would adapt too slowly when the data changes.
pub const COUNT_MAX: u8 = 160;

/// Probabilities are clamped to this minimum, which bounds the cost of an unlikely decision to 11 bits.
const P_MIN: i32 = 32;

/// Maximum bits of a decision, or of a choice of sixteen. The least likely one has a probability of 1/2,048,
/// a little less after rounding.
pub const DECISION_BITS_MAX: usize = 12;

/// The step by which a decision moves a model with this count, in 1/32,768.
const RATE: [u16; COUNT_MAX as usize + 1] = rates();

#[expect(clippy::cast_possible_truncation, reason = "at most 21,845")]
const fn rates() -> [u16; COUNT_MAX as usize + 1] {
    let mut rates = [0; COUNT_MAX as usize + 1];
    let mut n = 0;
    while n < rates.len() {
        rates[n] = (65_536 / (2 * n + 3)) as u16;
        n += 1;
    }
    rates
}

/// The model of one decision: the probability of a 1, and the number of decisions it is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bit {
    /// Probability of a 1, in 1/65,536.
    p: u16,
    /// Decisions that it is based on, 0 ..= [`COUNT_MAX`].
    n: u16,
}

impl Bit {
    /// The initial model: both values are equally likely.
    pub const EVEN: Bit = Bit { p: 32_768, n: 0 };

    /// Creates a model with probability `p` of a 1, in 1/65,536 (0 counts as 1), as if based on `n`
    /// decisions, at most [`COUNT_MAX`].
    pub const fn new(p: u16, n: u8) -> Self {
        let n = if n > COUNT_MAX { COUNT_MAX } else { n };
        Bit { p: if p == 0 { 1 } else { p }, n: n as u16 }
    }

    /// Decisions that it is based on.
    pub const fn count(self) -> u16 {
        self.n
    }

    /// Probability of a 1, in 1/65,536.
    pub const fn probability(self) -> u16 {
        self.p
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, bit: bool) {
        let p = i32::from(self.p);
        let rate = i32::from(RATE[usize::from(self.n)]);
        let target = if bit { 65_536 } else { 0 };
        let p = p + (((target - p) * rate) >> 15);
        self.p = p.clamp(P_MIN, 65_536 - P_MIN) as u16;
        self.n += u16::from(self.n < u16::from(COUNT_MAX));
    }
}

/// One direction of coding. The same code describes the format at both ends. An encoder writes the values
/// passed in; a decoder ignores them. Both return the actual values.
pub trait Code: Sized {
    /// Whether this end decodes. If not, the values passed in are returned.
    const DECODES: bool;

    /// What codes in its place for a while.
    type Live<'a>: Code
    where
        Self: 'a;

    /// Continues coding in a separate value, whose state can stay in registers as long as its address is not
    /// taken. Its work counts once it is [ended](Self::end).
    fn live(&mut self) -> Self::Live<'_>;

    /// Gives back what it took over, if it is one that took over.
    fn end(self) {}

    /// One decision.
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool;

    /// One of [`SYMBOLS`] symbols.
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize;

    /// `count` plain bits, 0 ..= 32, highest first.
    fn plain(&mut self, count: u32, value: u32) -> u32;
}

impl<C: Code> Code for &mut C {
    const DECODES: bool = C::DECODES;

    type Live<'a>
        = &'a mut C
    where
        Self: 'a;

    #[inline(always)]
    fn live(&mut self) -> &mut C {
        self
    }

    #[inline(always)]
    fn bit(&mut self, model: &mut Bit, bit: bool) -> bool {
        C::bit(self, model, bit)
    }

    #[inline(always)]
    fn symbol(&mut self, model: &mut Symbols, symbol: usize) -> usize {
        C::symbol(self, model, symbol)
    }

    #[inline(always)]
    fn plain(&mut self, count: u32, value: u32) -> u32 {
        C::plain(self, count, value)
    }
}
