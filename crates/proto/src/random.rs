//! Numbers that look random and depend on a seed alone.

/// SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, 2014). A known number reveals all that
/// follow it.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

/// How far the state moves with each number.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SplitMix64 {
    /// Numbers from a seed.
    pub const fn new(seed: u64) -> Self {
        SplitMix64(seed)
    }

    /// Draws the next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns number `index` of a seed, counted from 0.
    pub const fn nth(seed: u64, index: u64) -> u64 {
        SplitMix64(seed.wrapping_add(index.wrapping_mul(STEP))).draw()
    }
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn the_numbers_are_those_of_the_reference_implementation() {
        let mut random = SplitMix64::new(1_234_567);
        for (index, number) in [6_457_827_717_110_365_317, 3_203_168_211_198_807_973].into_iter().enumerate()
        {
            assert_eq!(random.draw(), number);
            assert_eq!(SplitMix64::nth(1_234_567, index as u64), number);
        }
    }
}
