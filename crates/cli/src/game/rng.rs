//! What a game draws: even numbers, chances and directions from a seed, the same on every machine.

/// A stream of numbers that depends on nothing but its seed.
#[derive(Clone, Debug)]
pub(crate) struct Rng(parlor_impair::Rng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Rng(parlor_impair::Rng::new(seed))
    }

    /// A number from `low` up to but without `high`.
    pub(crate) fn between(&mut self, low: f32, high: f32) -> f32 {
        // 24 bits are what an f32 holds exactly, so the quotient stays below 1.
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let part = (self.0.draw() >> 40) as f32 / (1u32 << 24) as f32;
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
