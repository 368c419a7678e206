//! News of rooms that come to this node, for claims that wait for them.

use tokio::sync::broadcast::{self, Receiver, Sender};

/// News that a claim has not heard yet, at most.
const UNHEARD_MAX: usize = 256;

/// The names of rooms that this node takes, or that were given to it.
#[derive(Debug)]
pub(super) struct Arrivals(Sender<String>);

impl Arrivals {
    pub(super) fn tell(&self, uid: &str) {
        // Fails if nobody waits.
        let _ = self.0.send(uid.to_owned());
    }

    /// Listens from now on.
    pub(super) fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals(broadcast::channel(UNHEARD_MAX).0)
    }
}

/// What a claim hears.
pub(super) struct Listener(Receiver<String>);

impl Listener {
    /// Waits until a room has come, or may have: some news were missed. May be cancelled.
    pub(super) async fn heard_of(&mut self, uid: &str) {
        while self.0.recv().await.is_ok_and(|arrived| arrived != uid) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn a_claim_hears_of_its_room_even_if_that_came_before_it_waits() {
        let arrivals = Arrivals::default();
        arrivals.tell("a");
        let (mut of_a, mut of_b) = (arrivals.listen(), arrivals.listen());
        assert!(of_a.heard_of("a").now_or_never().is_none(), "that was before");
        arrivals.tell("a");
        assert!(of_b.heard_of("b").now_or_never().is_none());
        assert!(of_a.heard_of("a").now_or_never().is_some());
        assert!(of_a.heard_of("a").now_or_never().is_none(), "once");
    }

    #[test]
    fn a_claim_that_missed_news_looks_for_its_room() {
        let arrivals = Arrivals::default();
        let mut of_a = arrivals.listen();
        (0..=UNHEARD_MAX).for_each(|_| arrivals.tell("b"));
        assert!(of_a.heard_of("a").now_or_never().is_some());
    }
}
