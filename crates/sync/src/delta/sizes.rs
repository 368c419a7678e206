//! Codes the distance of a number from its prediction.

#![expect(clippy::cast_possible_truncation, reason = "buckets and symbols are few, and distances below 2^31")]

use super::layout::{BUCKETS, FAMILY_SYMBOLS};
use crate::coder::{Code, DECISION_BITS_MAX, Symbols};

/// The expected distance, which selects its model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    /// Whether the prediction moved.
    pub(super) moved: bool,
    /// Half octaves of the expected size, which is in sixteenths.
    pub(super) half_octaves: u32,
}

/// From this many half octaves on, low bits of a distance are noise: both values are equally likely.
const NOISE_FROM: usize = BUCKETS - 2;
/// Maximum number of noise bits.
const NOISE_MAX: usize = 20;
/// The symbol for a distance of `FAR_FROM` or more, without its noise.
const FAR: usize = 15;
const FAR_FROM: u32 = 65;

/// Twice the binary logarithm, coarsely rounded down to halves: the second highest bit adds one.
#[inline(always)]
pub(super) fn half_octaves(x: u32) -> u32 {
    let x = x | 1;
    let log = 31 ^ x.leading_zeros();
    2 * log + ((x << 1) >> log & 1)
}

/// Codes `distance`, whose size is below 2^31. The coder is passed and returned by value: with its address
/// taken, its state would be in memory and not in registers wherever numbers are coded.
#[inline(always)]
pub(super) fn distance<C: Code>(
    mut code: C,
    family: &mut [Symbols; FAMILY_SYMBOLS],
    expected: Expected,
    distance: i32,
) -> (C, i32) {
    let (noise, bucket) = SCALES[expected.half_octaves as usize & (SCALES.len() - 1)];
    let noise = u32::from(noise);
    let at = usize::from(expected.moved) * BUCKETS + usize::from(bucket);
    let model = &mut family[at & (FAMILY_SYMBOLS - 1)];
    let (half, mask) = (1i32 << noise >> 1, (1u32 << noise) - 1);
    if C::DECODES {
        let symbol = code.symbol(model, 0) & 15;
        if symbol == FAR {
            return far(code, noise, 0);
        }
        let low = code.plain(EXTRA[symbol] + noise, 0);
        let size = (FROM[symbol] + (low >> noise)).cast_signed();
        let coarse = if symbol & 1 == 1 { -size } else { size };
        let read = (coarse << noise) + (low & mask).cast_signed() - half;
        (code, read)
    } else {
        // A wrapped sum is far, whatever its sign.
        let shifted = distance.wrapping_add(half);
        let coarse = shifted >> noise;
        let size = coarse.unsigned_abs().min(FAR_FROM);
        let [symbol, extra, from] = SIZES[(size << 1 | coarse.cast_unsigned() >> 31) as usize];
        code.symbol(model, usize::from(symbol));
        if size == FAR_FROM {
            return far(code, noise, distance);
        }
        let low = size - u32::from(from);
        code.plain(u32::from(extra) + noise, low << noise | shifted.cast_unsigned() & mask);
        (code, distance)
    }
}

/// For each expected size, the number of noise bits, and the bucket.
const SCALES: [(u8, u8); 128] = {
    let mut scales = [(0, 0); 128];
    let mut octaves = 0;
    while octaves < 128 {
        scales[octaves] = if octaves < NOISE_FROM {
            (0, octaves as u8)
        } else {
            let noise = (octaves + 2 - NOISE_FROM) / 2;
            (if noise > NOISE_MAX { NOISE_MAX } else { noise } as u8, (NOISE_FROM + octaves % 2) as u8)
        };
        octaves += 1;
    }
    scales
};

/// Indexed by twice the size, plus 1 for a negative one: its symbol, the number of extra bits, and the least
/// size of the symbol.
const SIZES: [[u8; 3]; 2 * FAR_FROM as usize + 2] = {
    let mut sizes = [[FAR as u8, 0, 0]; 2 * FAR_FROM as usize + 2];
    let mut symbol = 0;
    while symbol < FAR {
        let mut size = FROM[symbol];
        while size < FROM[symbol] + (1 << EXTRA[symbol]) {
            sizes[2 * size as usize + symbol % 2] = [symbol as u8, EXTRA[symbol] as u8, FROM[symbol] as u8];
            size += 1;
        }
        symbol += 1;
    }
    sizes
};

/// For each symbol, the number of extra bits, and the least size.
const EXTRA: [u32; 16] = [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0];
const FROM: [u32; 16] = [0, 1, 1, 2, 2, 3, 3, 5, 5, 9, 9, 17, 17, 33, 33, 0];

/// A distance beyond all other symbols: a plain bit for its sign, then the excess plus one: five plain bits
/// with the count of bits below its highest, and those bits; then the noise. A distance that is too large for
/// any number becomes the minimum.
#[cold]
#[inline(never)]
fn far<C: Code>(mut code: C, noise: u32, distance: i32) -> (C, i32) {
    let half = 1i64 << noise >> 1;
    let shifted = i64::from(distance) + half;
    let coarse = shifted >> noise;
    let is_down = code.plain(1, u32::from(coarse < 0)) == 1;
    let plus_one = (coarse.unsigned_abs() as u32).wrapping_sub(FAR_FROM - 1).max(1);
    let length = code.plain(5, plus_one.ilog2());
    let below = code.plain(length, plus_one & ((1 << length) - 1));
    let size = (1i64 << length | i64::from(below)) + i64::from(FAR_FROM - 1);
    let low = code.plain(noise, (shifted & ((1 << noise) - 1)) as u32);
    let read = ((if is_down { -size } else { size }) << noise) + i64::from(low) - half;
    (code, i32::try_from(read).unwrap_or(i32::MIN))
}

/// Maximum bits of a distance: a symbol, the excess, and noise.
pub(super) const DISTANCE_BITS_MAX: usize = DECISION_BITS_MAX + 1 + 5 + 31 + NOISE_MAX;
