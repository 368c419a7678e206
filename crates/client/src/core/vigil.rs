//! A guest of a hub that lives in the process of a host: if nothing is heard of it, the host is gone.
//!
//! Nobody would answer an attempt to reach such a hub again, so a guest does not wait as it would for a server. What counts is time
//! in which this process was awake: one that stood still itself knows nothing of the host.

use parlor_proto::Instant;
use std::time::Duration;

/// How often it is looked whether this process is awake.
const LOOK: Duration = Duration::from_millis(250);

/// What a guest knows of the life of its hub. Over no such hub it watches for ever.
#[derive(Debug, Default)]
pub(super) struct Vigil {
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    patience: Duration,
    /// When the hub was heard last, or as much later as this process stood still since.
    heard: Instant,
    /// When it was looked last.
    looked: Instant,
}

impl Vigil {
    /// Watches over a hub that was just heard and must not be silent for `patience`.
    pub(super) fn over(patience: Duration, now: Instant) -> Self {
        Vigil { watch: Some(Watch { patience, heard: now, looked: now }) }
    }

    /// The hub was heard.
    pub(super) fn heard(&mut self, now: Instant) {
        if let Some(watch) = &mut self.watch {
            (watch.heard, watch.looked) = (now, now);
        }
    }

    /// Looks. Says whether the host is gone; that ends the vigil.
    pub(super) fn look(&mut self, now: Instant) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        let since = now.saturating_since(watch.looked);
        if since > LOOK * 2 {
            watch.heard += since - LOOK;
        }
        watch.looked = now;
        self.watch.take_if(|watch| watch.heard + watch.patience <= now).is_some()
    }

    /// When it is to be looked next.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.watch.as_ref().map(|watch| (watch.looked + LOOK).min(watch.heard + watch.patience))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000);
    const PATIENCE: Duration = Duration::from_millis(2_800);

    /// Looks whenever it is due; gives when the host counted as gone.
    fn watch(vigil: &mut Vigil, mut now: Instant) -> Instant {
        loop {
            let due = vigil.poll_timeout().expect("it watches");
            assert!(due > now, "it is looked once at a time");
            now = due;
            if vigil.look(now) {
                assert_eq!(vigil.poll_timeout(), None);
                return now;
            }
        }
    }

    #[test]
    fn a_hub_that_is_silent_is_gone_after_the_patience() {
        let mut vigil = Vigil::over(PATIENCE, NOW);
        assert_eq!(watch(&mut vigil, NOW), NOW + PATIENCE);
        assert!(!vigil.look(NOW + PATIENCE * 9), "it is told once");
    }

    #[test]
    fn a_hub_that_is_heard_is_there() {
        let mut vigil = Vigil::over(PATIENCE, NOW);
        let mut now = NOW;
        for _ in 0..100 {
            now += PATIENCE - Duration::from_millis(100);
            vigil.heard(now);
            assert!(!vigil.look(now));
        }
        assert_eq!(watch(&mut vigil, now), now + PATIENCE);
    }

    #[test]
    fn time_in_which_this_process_stood_still_does_not_count() {
        let mut vigil = Vigil::over(PATIENCE, NOW);
        let awake = NOW + Duration::from_secs(60);
        assert!(!vigil.look(awake));
        let gone = watch(&mut vigil, awake);
        assert!(gone > awake + PATIENCE / 2 && gone <= awake + PATIENCE, "{gone:?}");
    }

    #[test]
    fn over_any_other_hub_nobody_watches() {
        let mut vigil = Vigil::default();
        vigil.heard(NOW);
        assert!(!vigil.look(NOW + PATIENCE * 100) && vigil.poll_timeout().is_none());
    }
}
