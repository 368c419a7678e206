//! The clock whose time pure machines get as arguments.

use core::time::Duration;
use parlor_proto::Instant;

/// The hub's time: microseconds since a little before the server's start, so a time before "now" always
/// exists.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: tokio::time::Instant,
}

const OFFSET: Duration = Duration::from_secs(1);

impl Clock {
    /// Starts a clock.
    pub fn start() -> Self {
        Clock { started: tokio::time::Instant::now() }
    }

    /// The current time.
    pub fn now(self) -> Instant {
        Instant::ZERO + OFFSET + self.started.elapsed()
    }

    /// The timer for `at` on this clock.
    pub(crate) fn timer_at(self, at: Instant) -> tokio::time::Instant {
        self.started + at.saturating_since(Instant::ZERO + OFFSET)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_goes_off_when_its_time_has_come() {
        let clock = Clock::start();
        let before = tokio::time::Instant::now();
        let now = clock.now();
        // The hub's clock counts whole microseconds.
        assert!(clock.timer_at(now) + Duration::from_micros(1) > before);
        assert!(clock.timer_at(now) <= tokio::time::Instant::now());
        let later = Duration::from_millis(20);
        assert_eq!(clock.timer_at(now + later) - clock.timer_at(now), later);
    }
}
