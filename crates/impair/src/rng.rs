//! Pseudorandom numbers from a seed.

use parlor_proto::random::SplitMix64;

/// SplitMix64, and what is drawn from its numbers.
#[derive(Clone, Debug)]
pub struct Rng(SplitMix64);

impl Rng {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Rng(SplitMix64::new(seed))
    }

    /// Draws the next number.
    pub fn draw(&mut self) -> u64 {
        self.0.draw()
    }

    /// Draws a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// Draws an index below `len`, which must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("it is below a usize")
    }

    /// Draws a number from `low` up to but not including `high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        // An f32 holds 24 bits exactly, so the quotient stays below 1.
        #[expect(clippy::cast_precision_loss, reason = "24 bits fit")]
        let part = (self.draw() >> 40) as f32 / (1u32 << 24) as f32;
        low + part * (high - low)
    }

    /// Returns true with this probability, from 0 to 1.
    pub fn chance(&mut self, probability: f32) -> bool {
        self.between(0.0, 1.0) < probability
    }

    /// Draws a unit vector. It uses no sine or cosine, whose last bits differ between machines.
    pub fn direction(&mut self) -> (f32, f32) {
        loop {
            let (x, y) = (self.between(-1.0, 1.0), self.between(-1.0, 1.0));
            let length = (x * x + y * y).sqrt();
            if (0.1..=1.0).contains(&length) {
                return (x / length, y / length);
            }
        }
    }

    /// Returns true `count` times of 1,000.
    pub fn per_mille(&mut self, count: u64) -> bool {
        self.below(1_000) < count
    }

    /// Returns true `count` times of 1,000,000.
    pub fn per_million(&mut self, count: u32) -> bool {
        self.below(1_000_000) < u64::from(count)
    }

    /// Draws one of these, of which there must be at least one.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())].clone()
    }
}
