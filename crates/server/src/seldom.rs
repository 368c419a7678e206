//! Rate limit of log lines about frequent events.

use core::time::Duration;
use tokio::time::Instant;

/// Minimum interval of log lines.
const EVERY: Duration = Duration::from_secs(1);

/// Decides when an event may be logged.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    said: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// Counts an event. If it may be logged, returns the number of events since the last logged one.
    pub(crate) fn may_say(&mut self) -> Option<u64> {
        let now = Instant::now();
        if self.said.is_some_and(|said| now.saturating_duration_since(said) < EVERY) {
            self.unsaid += 1;
            return None;
        }
        self.said = Some(now);
        Some(core::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_said_once_a_second_and_how_often_it_was_not() {
        let mut seldom = Seldom::default();
        assert_eq!(seldom.may_say(), Some(0));
        for _ in 0..19 {
            tokio::time::advance(EVERY / 20).await;
            assert_eq!(seldom.may_say(), None);
        }
        tokio::time::advance(EVERY / 20).await;
        assert_eq!(seldom.may_say(), Some(19));
    }
}
