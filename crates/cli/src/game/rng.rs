//! A small generator of even numbers from a seed: SplitMix64. The game needs the same numbers on every machine, and no
//! secrecy.

/// A stream of numbers that depends on nothing but its seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` up to but without `high`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        // 24 bits are what an f32 holds exactly, so the quotient stays below 1.
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let part = (self.next() >> 40) as f32 / (1u32 << 24) as f32;
        low + part * (high - low)
    }

    /// True with the given probability.
    pub(super) fn chance(&mut self, probability: f32) -> bool {
        self.between(0.0, 1.0) < probability
    }

    /// A direction of length 1. Without sine and cosine, whose last bits differ between machines.
    pub(super) fn direction(&mut self) -> (f32, f32) {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let length = (x * x + y * y).sqrt();
            if (0.1..=1.0).contains(&length) {
                return (x / length, y / length);
            }
        }
    }
}
