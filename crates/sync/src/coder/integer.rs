//! Integers of any size, coded as decisions.

use super::{Bit, Code, DECISION_BITS_MAX};

/// Models that [`number`] needs: 32 for the length, 32 for the second highest bit.
pub const NUMBER_MODELS: usize = 64;

/// Codes `value`, which is below 2^32 - 1; so is the result. First the length in bits `c` of `value + 1`,
/// less one, in unary: decision `i` with model `i`, up to 31, says whether the length is more than `i`. Then
/// the bits below the highest one: the second highest with model `32 + c`, the others plain.
#[inline(always)]
pub fn number<C: Code>(code: &mut C, models: &mut [Bit], value: u32) -> u32 {
    let plus_one = value.wrapping_add(1).max(1);
    let length = plus_one.ilog2();
    let mut c = 0;
    while c < 31 && code.bit(&mut models[c as usize], length > c) {
        c += 1;
    }
    if c == 0 {
        return 0;
    }
    let second = code.bit(&mut models[32 + c as usize], plus_one >> (c - 1) & 1 == 1);
    let below = code.plain(c - 1, plus_one & ((1 << (c - 1)) - 1));
    ((2 | u32::from(second)) << (c - 1) | below) - 1
}

/// The maximum number of bits for a number up to `max`.
pub const fn number_bits_max(max: u32) -> usize {
    let length = max.saturating_add(1).ilog2() as usize;
    (length + 2) * DECISION_BITS_MAX + length
}
