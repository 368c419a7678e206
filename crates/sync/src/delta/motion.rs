//! Predicts numbers from rows that both ends have.

/// Moving predictions: linear, quadratic, in between, by velocity.
pub(super) const MOVING: usize = 4;
pub(super) const VELOCITY: usize = 3;

/// The weight of each row in a prediction, computed from the rows' ages. All arithmetic is on integers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Weights {
    ages: [u32; 3],
    count: usize,
    /// Ticks from the baseline to the coded row, if motion is predicted from a velocity.
    pub(super) ahead: i64,
    /// For each prediction, the factors of `b1 - b0` and `b2 - b0`, in 1/65,536. Their sum is added to the
    /// base number.
    pub(super) parts: [[i64; 2]; MOVING],
    /// The available predictions without a velocity: bit `i` for number `i`.
    pub(super) ways: u8,
}

/// Rows older than this are not used to predict motion.
const AGE_MAX: u32 = 128;
/// Half of a unit in predictions, for rounding.
const HALF: i64 = 1 << 15;

impl Weights {
    /// The weights for rows of these ages, which increase.
    pub(super) fn of(ages: &[u32]) -> Self {
        let mut weights = Weights { count: ages.len(), ..Weights::default() };
        weights.ages[..ages.len()].copy_from_slice(ages);
        let recent = ages.iter().take_while(|&&age| age <= AGE_MAX).count();
        let [a, b, c] = weights.ages.map(i64::from);
        if recent >= 1 {
            weights.ahead = a;
        }
        if recent >= 2 && b > a {
            weights.parts[0] = [-rounded(a, b - a), 0];
            weights.ways = 1;
        }
        if recent >= 3 && b > a && c > b {
            let [linear, _] = weights.parts[0];
            let [near, far] = [-rounded(a * c, (b - a) * (c - b)), rounded(a * b, (c - a) * (c - b))];
            weights.parts[1] = [near, far];
            weights.parts[2] = [(linear + near) >> 1, far >> 1];
            weights.ways = 7;
        }
        weights
    }

    /// Whether these weights were computed for the first `count` of these ages.
    #[inline(always)]
    pub(super) fn are_of(&self, ages: &[u32; 3], count: usize) -> bool {
        self.count == count && self.ages == *ages
    }
}

/// `65,536 * a / b`, rounded, halves up; both are positive.
fn rounded(a: i64, b: i64) -> i64 {
    (a * 131_072 + b) / (2 * b)
}

/// Converts a sum in 1/65,536 into what is added to a number.
#[inline(always)]
pub(super) fn part(sum: i64) -> i64 {
    (sum + HALF) >> 16
}
