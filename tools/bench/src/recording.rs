//! Walkers with precomputed motion: moving them is no part of the cost of replication.

use super::walkers::Walkers;

/// Where a walker is: metres, and a quaternion x, y, z, w.
pub(crate) type Place = ([f32; 3], [f32; 4]);

/// Frames of all walkers, one for each tick.
#[derive(Debug)]
pub(crate) struct Recording(Vec<Vec<Place>>);

impl Recording {
    /// Records `count` walkers of a seed for `seconds`; `moving_percent` of 100 move.
    pub(crate) fn new(seed: u64, count: usize, moving_percent: u32, hz: u32, seconds: u32) -> Self {
        let mut walkers = Walkers::new(seed, count).moving(f64::from(moving_percent) / 100.0);
        let mut frame = || {
            walkers.step(1.0 / f64::from(hz));
            (0..count).map(|index| place(walkers.get(index))).collect()
        };
        Recording((0..(hz * seconds).max(1)).map(|_| frame()).collect())
    }

    /// Walkers, standing ones included.
    pub(crate) fn len(&self) -> usize {
        self.0[0].len()
    }

    /// Ticks that were recorded.
    pub(crate) fn ticks(&self) -> usize {
        self.0.len()
    }

    /// Whether any walker moves.
    pub(crate) fn is_moving(&self) -> bool {
        self.0.iter().any(|frame| *frame != self.0[0])
    }

    /// Where all are at a tick.
    pub(crate) fn at(&self, tick: usize) -> &[Place] {
        &self.0[self.index(tick)]
    }

    /// Which of the ticks that were recorded a tick stands for. When the recording is over it goes back, and so on: nobody
    /// ever leaps.
    pub(crate) fn index(&self, tick: usize) -> usize {
        let last = self.0.len() - 1;
        let there = tick % (2 * last).max(1);
        there.min(2 * last - there)
    }
}

/// As games have it.
#[expect(clippy::cast_possible_truncation, reason = "an f32 is finer than the resolution of any schema here")]
fn place((position, rotation): ([f64; 3], [f64; 4])) -> Place {
    (position.map(|part| part as f32), rotation.map(|part| part as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_leaps_and_only_those_move_who_shall() {
        let recording = Recording::new(1, 50, 10, 30, 2);
        let moved = |tick: usize| {
            let pairs = recording.at(tick).iter().zip(recording.at(tick + 1));
            let distance = |(a, b): (&Place, &Place)| {
                a.0.iter().zip(&b.0).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt()
            };
            pairs.map(distance).collect::<Vec<f32>>()
        };
        for tick in 0..200 {
            let moved = moved(tick);
            assert!(moved.iter().all(|metres| *metres < 2.0), "tick {tick}: {moved:?}");
            assert!(moved.iter().filter(|metres| **metres > 0.0).count() <= 5, "tick {tick}");
        }
        assert!((0..60).any(|tick| moved(tick).iter().any(|metres| *metres > 0.0)));
        assert_eq!(recording.at(0), recording.at(2 * 59));
    }
}
