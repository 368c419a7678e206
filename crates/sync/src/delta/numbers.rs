//! Codes groups of numbers.

use super::layout::{FAMILY_SYMBOLS, NUMBERS_LEN};
use super::motion::{MOVING, VELOCITY, Weights, part};
use super::sizes::{Expected, distance, half_octaves};
use super::tables::Numbers;
use crate::coder::{Bit, Code, Symbols};

/// Adaptive state of a group of numbers in this packet, besides its models.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learned {
    /// For each way to predict (held, moved, without a row) and each number: a running mean of sizes, in
    /// sixteenths.
    mean: [[u32; 3]; 3],
    /// The number of groups predicted in each of these ways, up to 31.
    seen: [u8; 3],
    /// For each moving prediction: a running mean of its sizes, in 1/256.
    errors: [i32; MOVING],
    /// The set of predictions of the last search for the best, and its result.
    best_of: u8,
    best: u8,
    /// The number of coded groups, wrapping. It selects the groups for which all predictions are compared.
    groups: u8,
}

impl Default for Learned {
    fn default() -> Self {
        Learned {
            mean: [[128, 128, 128], [48, 48, 48], [1 << 12; 3]],
            seen: [0; 3],
            errors: [4096, 3072, 3072, 3072],
            best_of: 0,
            best: 0,
            groups: 0,
        }
    }
}

/// The rows that a group is predicted from, in the group's own lanes. Cyclic numbers are unwound around the
/// baseline.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rows {
    pub(super) rows: [[i32; 3]; 3],
    pub(super) count: usize,
    /// The prediction by velocity of each number.
    pub(super) by_velocity: Option<[i32; 3]>,
}

impl Rows {
    /// The available predictions: bit `i` for number `i`.
    #[inline(always)]
    fn ways(&self, weights: &Weights) -> u8 {
        weights.ways | u8::from(self.by_velocity.is_some()) << VELOCITY
    }

    /// Computes a prediction, clamped to these limits.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "within the limits")]
    fn foretell<const D: usize>(&self, weights: &Weights, way: usize, (low, high): (i32, i32)) -> [i32; D] {
        let [b0, b1, b2] = &self.rows;
        let [near, far] = weights.parts[way & 3];
        let from = match &self.by_velocity {
            Some(at) if way == VELOCITY => at,
            _ => b0,
        };
        let mut at = [0; D];
        for j in 0..D {
            let sum = i64::from(b1[j] - b0[j]) * near + i64::from(b2[j] - b0[j]) * far;
            at[j] = (i64::from(from[j]) + part(sum)).clamp(i64::from(low), i64::from(high)) as i32;
        }
        at
    }
}

impl Learned {
    /// The best moving prediction so far in this packet, of a set that is not empty.
    #[inline(always)]
    fn best(&mut self, ways: u8) -> usize {
        if self.best_of != ways {
            self.find_best(ways);
        }
        usize::from(self.best)
    }

    #[inline(never)]
    fn find_best(&mut self, ways: u8) {
        let mut least = i32::MAX;
        for (way, &error) in (0u8..).zip(&self.errors) {
            if ways >> way & 1 == 1 && error < least {
                (self.best, least) = (way, error);
            }
        }
        self.best_of = ways;
    }

    /// Whether all predictions are compared for this group. Each call advances to the next group.
    #[inline(always)]
    fn compares(&mut self) -> bool {
        let at = self.groups;
        // Wraps to above the first few groups.
        self.groups = if at == u8::MAX { 8 } else { at + 1 };
        at < 8 || at.is_multiple_of(8)
    }

    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "sizes are limited")]
    fn compare<const D: usize>(
        &mut self,
        (rows, weights): (&Rows, &Weights),
        ways: u8,
        limits: (i32, i32),
        values: &[i32; D],
    ) {
        for (way, error) in self.errors.iter_mut().enumerate() {
            if ways >> way & 1 == 1 {
                let at = rows.foretell::<D>(weights, way, limits);
                let size = (far(values, &at).min(ERROR_MAX) << 8) as i32;
                *error += (size - *error) >> 4;
            }
        }
        self.best_of = 0;
    }
}

/// Errors beyond this are clamped.
const ERROR_MAX: u64 = 1 << 12;

/// Codes the numbers of a group, in unwound form around the baseline: for cyclic numbers by the shorter way,
/// so that a result may be one turn off. Returns whether an encoder can have written all distances.
#[inline]
pub(super) fn numbers<C: Code, const D: usize>(
    shared: &mut C,
    (family, own): (&mut [Symbols; FAMILY_SYMBOLS], &mut [Bit; NUMBERS_LEN]),
    learned: &mut Learned,
    (weights, rows): (&Weights, &Rows),
    group: &Numbers,
    values: &mut [i32; D],
) -> bool {
    let mut code = shared.live();
    let limits = if group.steps > 0 { (-TURNS, TURNS) } else { (0, group.span) };
    let ways = rows.ways(weights);
    let mut held = [0; D];
    held.copy_from_slice(&rows.rows[0][..D]);
    let mut base = held;
    let mut moved = false;
    if ways != 0 {
        let ahead = &rows.foretell::<D>(weights, learned.best(ways), limits);
        let reach = far(ahead, &held);
        if reach > 0 {
            let take = !C::DECODES && far(values, ahead) <= far(values, &held);
            moved = code.bit(&mut own[reach_context(reach)], take);
            if moved {
                base = *ahead;
            }
        }
    }
    let way = if rows.count == 0 { 2 } else { usize::from(moved) };
    let seen = &mut learned.seen[way];
    let shift = SHIFTS[usize::from(*seen & 31)];
    *seen = (*seen + 1).min(31);
    let means = &mut learned.mean[way];
    let (mut lean, mut is_good) = (0i32, true);
    for j in 0..D {
        let mean = means[j];
        let octaves = half_octaves(mean).cast_signed();
        let expected = Expected { moved, half_octaves: (octaves + lean).max(0).cast_unsigned() };
        let mut away = values[j].wrapping_sub(base[j]);
        if group.steps > 0 {
            away = wrap(away, group.steps);
        }
        // The sign relative to the direction of motion: 0 or -1.
        let turn = (base[j] - held[j]) >> 31;
        let onwards;
        (code, onwards) = distance(code, family, expected, (away ^ turn).wrapping_sub(turn));
        let away = (onwards ^ turn).wrapping_sub(turn);
        is_good &= !C::DECODES || group.steps == 0 || wrap(away, group.steps) == away;
        values[j] = base[j].wrapping_add(away);
        let size = away.unsigned_abs().min(1 << 26) << 4;
        means[j] = mean.wrapping_add_signed((size.cast_signed() - mean.cast_signed()) >> shift);
        let lean_at = (half_octaves(size + 8).cast_signed() - octaves + 16).clamp(0, 31);
        lean = LEANS[lean_at.cast_unsigned() as usize];
    }
    code.end();
    if learned.compares() && ways != 0 {
        learned.compare((rows, weights), ways, limits, values);
    }
    is_good
}

/// Limit of an angle's prediction: more than any number of steps.
const TURNS: i32 = 1 << 28;

const SHIFTS: [u32; 32] =
    [1, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5];

/// The change of a number's expected size, by how many half octaves (less 16) the size of the number before
/// it was beyond its expectation.
const LEANS: [i32; 32] = {
    let mut leans = [0; 32];
    let mut at = 0;
    while at < 32 {
        let lean = (at - 16) / 3;
        leans[at as usize] = if lean < -2 {
            -2
        } else if lean > 3 {
            3
        } else {
            lean
        };
        at += 1;
    }
    leans
};

/// The model for whether the moving prediction is used, by its distance.
#[inline(always)]
fn reach_context(reach: u64) -> usize {
    match reach {
        ..2 => 0,
        2..4 => 1,
        4..16 => 2,
        _ => 3,
    }
}

/// The shorter way around.
#[inline(always)]
pub(super) fn wrap(away: i32, steps: i32) -> i32 {
    let around = away.rem_euclid(steps);
    if around > steps / 2 { around - steps } else { around }
}

/// The sum of the distances, in steps.
#[inline(always)]
fn far<const D: usize>(values: &[i32; D], at: &[i32; D]) -> u64 {
    let mut sum = 0;
    for j in 0..D {
        sum += u64::from(values[j].abs_diff(at[j]));
    }
    sum
}
