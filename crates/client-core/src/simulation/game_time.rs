//! The steps' clock of a game that brings its time: see [`RoomCore::advance`](crate::RoomCore::advance).

use parlor_proto::Instant;
use parlor_sync::limits::{GAME_TIME_BEHIND_MAX, GAME_TIME_CATCH_UP_PART};
use std::time::Duration;

/// A longer time counts as this one, which is beyond all that a game's time can be behind.
const ELAPSED_MAX: Duration = Duration::from_secs(60);

/// The game's time, in terms of the clock that steps are due by.
///
/// It is never ahead of that clock, and never runs backwards, except where that clock was set back.
#[derive(Debug, Default)]
pub(crate) struct GameTime {
    /// `None` until the game brings time.
    at: Option<Instant>,
    behind: Duration,
}

impl GameTime {
    /// The clock that steps are run by, while they are due by `due`.
    pub(crate) fn time(&self, due: Instant) -> Instant {
        self.at.unwrap_or(due)
    }

    /// How far the game's time is behind.
    pub(crate) fn behind(&self) -> Duration {
        self.behind
    }

    /// Lets `elapsed` of the game's time pass, while the clock of due steps runs at `speed`. Returns whether it leapt
    /// to that clock, because it was too far behind. Without time that passes it does not leap: the game pauses.
    pub(crate) fn pass(&mut self, elapsed: Duration, speed: f64, due: Instant) -> bool {
        let at = *self.at.get_or_insert(due);
        let elapsed = elapsed.min(ELAPSED_MAX).mul_f64(speed);
        let passed = at + elapsed;
        let behind = due.saturating_since(passed);
        let leaps = behind > GAME_TIME_BEHIND_MAX && !elapsed.is_zero();
        let caught_up = if leaps { due } else { passed + behind.min(elapsed / GAME_TIME_CATCH_UP_PART) };
        let time = at.max(caught_up.min(due));
        (self.at, self.behind) = (Some(time), due.saturating_since(time));
        leaps
    }

    /// Follows a jump of the clock of due steps.
    pub(crate) fn jump(&mut self, due: Instant) {
        if self.at.is_some() {
            (self.at, self.behind) = (Some(due), Duration::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_ahead_never_runs_backwards_and_leaps_once_it_is_too_far_behind() {
        for percent in [0, 50, 94, 96, 100, 104, 200, u64::MAX] {
            let (mut game, mut last, mut leaps) = (GameTime::default(), Instant::ZERO, 0);
            for frame in 0..1_000 {
                let due = Instant::from_millis(1_000 + frame * 10);
                let leapt = game.pass(Duration::from_micros(percent.saturating_mul(100)), 1.0, due);
                let time = game.time(due);
                assert!(time <= due && time >= last, "{percent}%: {last}, {time} of {due}");
                assert_eq!(game.behind(), due.saturating_since(time));
                assert!(
                    percent == 0 || game.behind() <= GAME_TIME_BEHIND_MAX,
                    "{percent}%: {:?}",
                    game.behind()
                );
                (last, leaps) = (time, leaps + u32::from(leapt));
            }
            // Half of ten seconds is lost, a quarter of a second at a time.
            let expected = if percent == 50 {
                15..=20
            } else if percent == 94 {
                0..=1
            } else {
                0..=0
            };
            assert!(expected.contains(&leaps), "{percent}%: {leaps}");
        }
    }
}
