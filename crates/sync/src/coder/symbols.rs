//! Models of one of sixteen.

#![expect(clippy::cast_possible_truncation, reason = "weights have 15 bits, and symbols 4")]

/// Symbols that a model tells apart.
pub const SYMBOLS: usize = 16;

/// What all cumulative weights that are learned add up to.
const TOTAL: i16 = 32_768i32.wrapping_sub(FLOOR as i32 * SYMBOLS as i32) as i16;
/// Weight that each symbol has besides what is learned, of 32,768.
const FLOOR: u16 = 16;

/// For each symbol, the sum of the floors before it.
const FLOORS: [i16; SYMBOLS] = {
    let mut floors = [0; SYMBOLS];
    let mut at = 1;
    while at < SYMBOLS {
        floors[at] = floors[at - 1] + FLOOR as i16;
        at += 1;
    }
    floors
};

/// After a symbol, the cumulative weights move towards sixteen of these. The last ones, as many as there are
/// symbols behind it, are `TOTAL`.
const STEP: [i16; 2 * SYMBOLS - 1] = {
    let mut step = [0; 2 * SYMBOLS - 1];
    let mut at = SYMBOLS;
    while at < step.len() {
        step[at] = TOTAL;
        at += 1;
    }
    step
};

/// The model of a choice of sixteen: the probability of each symbol, and the number of choices it is based
/// on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbols {
    /// The cumulative weight before each symbol, increasing from 0; the last entry is the total.
    below: [i16; SYMBOLS + 1],
    /// Choices that it is based on, up to [`COUNT_MAX`].
    n: u16,
}

/// Maximum count of a model.
const COUNT_MAX: u16 = 120;

impl Symbols {
    /// The initial model: all symbols are equally likely.
    pub const EVEN: Symbols = {
        let mut below = [0; SYMBOLS + 1];
        let mut at = 0;
        while at <= SYMBOLS {
            below[at] = at as i16 * (TOTAL / SYMBOLS as i16);
            at += 1;
        }
        Symbols { below, n: 0 }
    };

    /// Creates a model with these cumulative weights before the second symbol, the third, and so on up to the
    /// last, as if based on `n` choices. Weights must not decrease, and are at most [`Self::TOTAL`].
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

    /// The sum of all weights.
    pub const TOTAL: i16 = TOTAL;

    /// Choices that it is based on.
    pub const fn count(&self) -> u16 {
        self.n
    }

    /// The range of a symbol within 32,768.
    #[inline(always)]
    pub(crate) fn span(&self, symbol: usize) -> (u64, u64) {
        let symbol = symbol & (SYMBOLS - 1);
        let at = |at: usize| u64::from(self.below[at].cast_unsigned() + at as u16 * FLOOR);
        (at(symbol), at(symbol + 1))
    }

    /// Returns the symbol whose range contains `value`, which is below 32,768.
    #[inline(always)]
    pub(super) fn find(&self, value: u64) -> usize {
        let value = value as i16;
        // The first range begins at 0.
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

/// The adaptation shift by count.
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
