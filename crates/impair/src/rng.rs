//! Numbers that look random and depend on a seed alone.

/// SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// Numbers from a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }

    /// An index below `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("it is below a usize")
    }

    /// True `count` times of 1,000.
    pub fn per_mille(&mut self, count: u64) -> bool {
        self.below(1_000) < count
    }

    /// True `count` times of 1,000,000.
    pub fn per_million(&mut self, count: u32) -> bool {
        self.below(1_000_000) < u64::from(count)
    }

    /// One of these, of which there is at least one.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())].clone()
    }
}
