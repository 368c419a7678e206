//! Measures how late a loop runs, for example on a machine short of processor time.
//!
//! A loop that ran late has not yet read what arrived meanwhile, and other processes on the machine were late
//! too. So the loop's own delays are subtracted before silence counts as a timeout. The loop's owner reports
//! when a timer was due and when it ran.

use crate::limits::{DELAY_NONE, DELAY_SPAN, STANDSTILL};
use parlor_proto::Instant;
use std::time::Duration;

/// The recent delays of one loop.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// When the loop last ran.
    ran: Instant,
    /// When the loop last resumed after a standstill of [`STANDSTILL`] or longer.
    resumed: Instant,
    /// Start of the current span, and the sums of the delays in it and in the span before.
    span_since: Instant,
    sums: [Duration; 2],
}

impl Lateness {
    /// Records that the loop runs at `now`; its earliest timer was `due`.
    pub fn ran(&mut self, due: Instant, now: Instant) {
        // A timer due before the last run was left pending by the owner, so it is no delay.
        let delay = now.saturating_since(due.max(self.ran));
        self.ran = now;
        let spans = now.saturating_since(self.span_since).as_micros() / DELAY_SPAN.as_micros();
        if spans > 0 {
            self.sums = [Duration::ZERO, if spans == 1 { self.sums[0] } else { Duration::ZERO }];
            self.span_since = now;
        }
        if delay >= DELAY_NONE {
            self.sums[0] = (self.sums[0] + delay).min(DELAY_SPAN);
        }
        if delay >= STANDSTILL {
            self.resumed = now;
        }
    }

    /// Returns when a peer silent since `heard` has been silent for `patience`, not counting the loop's own
    /// recent delays. The earliest result is `patience` after the loop's last standstill ended.
    pub fn silent_at(&self, heard: Instant, patience: Duration) -> Instant {
        heard.max(self.resumed) + patience + self.of_late()
    }

    /// Returns the sum of the delays within the last one to two [`DELAY_SPAN`]s, at most two of them.
    pub fn of_late(&self) -> Duration {
        self.sums[0] + self.sums[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(300);

    fn ms(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_loop_that_is_on_time_adds_nothing() {
        let mut lateness = Lateness::default();
        for at in (1_000..20_000).step_by(50) {
            // The scheduler's granularity is no delay.
            lateness.ran(ms(at), ms(at + 9));
        }
        assert_eq!(lateness.of_late(), Duration::ZERO);
        assert_eq!(lateness.silent_at(ms(20_000), PATIENCE), ms(20_300));
    }

    #[test]
    fn delays_of_late_are_added_and_forgotten_after_two_spans() {
        let mut lateness = Lateness::default();
        lateness.ran(ms(1_000), ms(1_000));
        lateness.ran(ms(1_050), ms(1_200));
        lateness.ran(ms(1_300), ms(1_400));
        assert_eq!(lateness.of_late(), Duration::from_millis(250));
        assert_eq!(lateness.silent_at(ms(1_400), PATIENCE), ms(1_950));
        lateness.ran(ms(2_100), ms(2_100));
        assert_eq!(lateness.of_late(), Duration::from_millis(250), "the span before counts");
        lateness.ran(ms(3_200), ms(3_200));
        assert_eq!(lateness.of_late(), Duration::ZERO);
    }

    #[test]
    fn a_timer_that_is_left_standing_is_no_delay() {
        let mut lateness = Lateness::default();
        for at in 1_000..3_000 {
            lateness.ran(ms(900), ms(at));
        }
        assert!(lateness.of_late() <= Duration::from_millis(100), "{:?}", lateness.of_late());
    }

    #[test]
    fn however_late_it_is_it_adds_two_spans_at_most_and_begins_anew_after_a_standstill() {
        let mut lateness = Lateness::default();
        for at in (1_000..20_000).step_by(500) {
            lateness.ran(ms(at), ms(at + 499));
            assert!(lateness.of_late() <= DELAY_SPAN * 2);
            let bound = ms(at + 499) + PATIENCE + DELAY_SPAN * 2;
            assert!(lateness.silent_at(ms(at + 499), PATIENCE) <= bound);
        }
        lateness.ran(ms(20_000), ms(80_000));
        assert!(lateness.silent_at(ms(20_000), PATIENCE) >= ms(80_000) + PATIENCE);
    }
}
