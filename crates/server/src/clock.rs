//! The clock that machines without a clock are told.

use core::pin::Pin;
use core::time::Duration;
use parlor_proto::Instant;
use tokio::time::{Sleep, sleep};

/// The hub's time: microseconds since a little before the server started, so that "a moment ago" exists from the
/// beginning on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: tokio::time::Instant,
}

/// How much too early an [`Alarm`] may go off.
const EARLY_MAX: Duration = Duration::from_millis(3);

const OFFSET: Duration = Duration::from_secs(1);

impl Clock {
    pub(crate) fn start() -> Self {
        Clock { started: tokio::time::Instant::now() }
    }

    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + OFFSET + self.started.elapsed()
    }

    /// When it is `at` on this clock, for a timer.
    pub(crate) fn timer_at(self, at: Instant) -> tokio::time::Instant {
        self.started + at.saturating_since(Instant::ZERO + OFFSET)
    }
}

/// A timer for one who waits again and again, each time until another moment. It is set anew when it would go off too late, or
/// much too early; a little too early costs its owner a look around, and less than to set it each time.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Pin<Box<Sleep>>,
    is_set: bool,
}

impl Alarm {
    /// Must be called in a tokio runtime.
    pub(crate) fn new() -> Self {
        Alarm { timer: Box::pin(sleep(Duration::ZERO)), is_set: false }
    }

    /// Waits until `due`, or until a moment a little earlier that was waited for before; for ever if there is none. May be cancelled.
    pub(crate) async fn until(&mut self, due: Option<tokio::time::Instant>) {
        let Some(due) = due else { return core::future::pending().await };
        let set = self.timer.deadline();
        if !self.is_set || due < set || due.duration_since(set) > EARLY_MAX {
            self.timer.as_mut().reset(due);
            self.is_set = true;
        }
        self.timer.as_mut().await;
        self.is_set = false;
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
        // The machines' clock counts whole microseconds.
        assert!(clock.timer_at(now) + Duration::from_micros(1) > before);
        assert!(clock.timer_at(now) <= tokio::time::Instant::now());
        let later = Duration::from_millis(20);
        assert_eq!(clock.timer_at(now + later) - clock.timer_at(now), later);
    }

    #[tokio::test]
    async fn an_alarm_is_put_off_when_it_would_wake_for_nothing() {
        let mut alarm = Alarm::new();
        let start = tokio::time::Instant::now() + Duration::from_secs(3_600);
        for (due_ms, set_ms) in [(50, 50), (40, 40), (42, 40), (60, 60), (20, 20)] {
            let due = start + Duration::from_millis(due_ms);
            assert!(tokio::time::timeout(Duration::ZERO, alarm.until(Some(due))).await.is_err());
            assert_eq!(alarm.timer.deadline(), start + Duration::from_millis(set_ms), "for {due_ms} ms");
        }
    }
}
