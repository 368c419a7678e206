//! The clock whose time pure machines get as arguments.

use core::time::Duration;
use parlor_proto::Instant;

/// The hub's time: microseconds since a little before the server's start, so a time before "now" always
/// exists.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    started: tokio::time::Instant,
    /// Its time at the start.
    offset: Duration,
}

const OFFSET: Duration = Duration::from_secs(1);
/// A node may reopen a room that has been open for longer than the node runs: its opening must be a time of its clock.
const OFFSET_OF_NODE: Duration = Duration::from_secs(31 * 24 * 3_600);

impl Clock {
    /// Starts a clock.
    pub fn start() -> Self {
        Clock { started: tokio::time::Instant::now(), offset: OFFSET }
    }

    /// The same clock as a node's hubs have it.
    pub fn of_node(self) -> Self {
        Clock { offset: OFFSET_OF_NODE, ..self }
    }

    /// The current time.
    pub fn now(self) -> Instant {
        Instant::ZERO + self.offset + self.started.elapsed()
    }

    /// The timer for `at` on this clock.
    pub(crate) fn timer_at(self, at: Instant) -> tokio::time::Instant {
        self.started + at.saturating_since(Instant::ZERO + self.offset)
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
