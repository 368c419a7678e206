//! Models of one of sixteen.

#![expect(clippy::cast_possible_truncation, reason = "weights have 15 bits, and symbols 4")]

/// Symbols that a model tells apart.
pub const SYMBOLS: usize = 16;

/// What all cumulative weights that are learned add up to.
const TOTAL: i16 = 32_768i32.wrapping_sub(FLOOR as i32 * SYMBOLS as i32) as i16;
/// Weight that each symbol has besides what is learned, of 32,768.
const FLOOR: u16 = 16;

/// For each symbol, what the floors of those before it add up to.
const FLOORS: [i16; SYMBOLS] = {
    let mut floors = [0; SYMBOLS];
    let mut at = 1;
    while at < SYMBOLS {
        floors[at] = floors[at - 1] + FLOOR as i16;
        at += 1;
    }
    floors
};

/// What the cumulative weights move to when a symbol was coded are sixteen of these, so that the last ones,
/// as many as are behind the symbol, are `TOTAL`.
const STEP: [i16; 2 * SYMBOLS - 1] = {
    let mut step = [0; 2 * SYMBOLS - 1];
    let mut at = SYMBOLS;
    while at < step.len() {
        step[at] = TOTAL;
        at += 1;
    }
    step
};

/// The model of a choice of sixteen: how likely each is, and on how many choices that rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// For each symbol the weight of all before it, which increases from 0; and of all.
    below: [i16; SYMBOLS + 1],
    /// Choices that it rests upon, up to [`COUNT_MAX`].
    n: u16,
}

/// Largest count that a model rests upon.
const COUNT_MAX: u16 = 120;

impl Symbols {
    /// A model that knows nothing.
    pub const EVEN: Symbols = {
        let mut below = [0; SYMBOLS + 1];
        let mut at = 0;
        while at <= SYMBOLS {
            below[at] = at as i16 * (TOTAL / SYMBOLS as i16);
            at += 1;
        }
        Symbols { below, n: 0 }
    };

    /// A model that begins with these weights of all symbols before the second, the third, and so on up to
    /// the last, as if it rested upon `n` choices. Weights are at most [`Self::TOTAL`] and do not decrease.
    pub const fn new(weights: [i16; SYMBOLS - 1], n: u16) -> Self {
        let mut below = [0; SYMBOLS + 1];
        let mut at = 1;
        while at < SYMBOLS {
            below[at] = weights[at - 1];
            assert!(below[at] >= below[at - 1] && below[at] <= TOTAL);
            at += 1;
        }
        below[SYMBOLS] = TOTAL;
        Symbols { below, n }
    }

    /// What the weights of all symbols add up to.
    pub const TOTAL: i16 = TOTAL;

    /// Choices that it rests upon.
    pub const fn count(&self) -> u16 {
        self.n
    }

    /// Where a symbol begins and ends among 32,768.
    #[inline(always)]
    pub(crate) fn span(&self, symbol: usize) -> (u64, u64) {
        let symbol = symbol & (SYMBOLS - 1);
        let at = |at: usize| u64::from(self.below[at].cast_unsigned() + at as u16 * FLOOR);
        (at(symbol), at(symbol + 1))
    }

    /// The symbol that `value`, below 32,768, belongs to.
    #[inline(always)]
    pub(super) fn find(&self, value: u64) -> usize {
        let value = value as i16;
        // The first one begins at 0.
        let mut after = 0i16;
        for (below, floor) in self.below.iter().take(SYMBOLS).zip(FLOORS) {
            after += i16::from(*below + floor <= value);
        }
        (after - 1).cast_unsigned() as usize & (SYMBOLS - 1)
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, symbol: usize) {
        let shift = SHIFTS[usize::from(self.n) & 127];
        let targets = &STEP[SYMBOLS - 1 - (symbol & (SYMBOLS - 1))..];
        for (below, target) in self.below.iter_mut().take(SYMBOLS).zip(targets) {
            *below += (target - *below) >> shift;
        }
        self.n += u16::from(self.n < COUNT_MAX);
    }
}

/// By how many bits what a choice teaches is shifted, by the count.
const SHIFTS: [u8; 128] = {
    let mut shifts = [6; 128];
    let mut n = 0;
    while n < 128 {
        shifts[n] = if n < 4 {
            2
        } else if n < 10 {
            3
        } else if n < 24 {
            4
        } else if n < 60 {
            5
        } else {
            6
        };
        n += 1;
    }
    shifts
};
