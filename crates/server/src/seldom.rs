//! Rate limit of log lines about frequent events.

use core::time::Duration;
use tokio::time::Instant;

/// How often it may be said.
const EVERY: Duration = Duration::from_secs(1);

/// Says when something may be said.
#[derive(Debug, Default)]
pub(crate) struct Seldom {
    said: Option<Instant>,
    unsaid: u64,
}

impl Seldom {
    /// It has happened. If it may be said, gives how often it happened before without being said.
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
