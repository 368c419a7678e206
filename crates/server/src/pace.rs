//! Rate limit of operations on one connection. Faster requests are read later, and none is lost.

use core::time::Duration;
use parlor_hub::Origin;
use tokio::time::{Instant, sleep_until};

/// Average interval of a connection's operations, and the burst.
const ASK_EVERY: Duration = Duration::from_millis(20);
const AT_ONCE: u32 = 100;

/// The pace of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// The earliest time of the next operation. It falls behind while the connection is idle. Local processes
    /// have no budget, so `None`.
    may_ask: Option<Instant>,
}

impl Pace {
    /// The pace of a connection that counts for `origin`.
    pub fn new(origin: Origin) -> Self {
        Pace { may_ask: (origin != Origin::LOCAL).then(Instant::now) }
    }

    /// Waits until the current operation may run.
    pub async fn wait(&mut self) {
        if let Some(may_ask) = &mut self.may_ask {
            let now = Instant::now();
            *may_ask = (*may_ask).max(now.checked_sub(ASK_EVERY * AT_ONCE).unwrap_or(now)) + ASK_EVERY;
            sleep_until(*may_ask).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_asks_too_fast_waits_and_who_paused_has_what_it_saved() {
        let mut pace = Pace::new(Origin(7));
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(60)).await;
        for _ in 0..AT_ONCE {
            pace.wait().await;
        }
        assert!(began.elapsed() < Duration::from_secs(60) + ASK_EVERY, "what was saved is asked at once");
        for _ in 0..50 {
            pace.wait().await;
        }
        let took = began.elapsed() - Duration::from_secs(60);
        assert!(took.abs_diff(ASK_EVERY * 50) < ASK_EVERY * 2, "{took:?}");
        let mut local = Pace::new(Origin::LOCAL);
        let began = Instant::now();
        for _ in 0..10_000 {
            local.wait().await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
