//! Detects the silence of a hub.
//!
//! A guest of a host whose process also runs the hub closes the room after one. It does not reconnect, because no
//! process would answer. A member of a cluster's room asks another server. Only time in which this process ran counts
//! as silence: a stalled process knows nothing of the hub.

use parlor_proto::Instant;
use parlor_sync::lateness::Lateness;
use std::time::Duration;

/// Interval of the checks whether this process is awake.
const LOOK: Duration = Duration::from_millis(250);

/// Watches the hub for silence. The default watches nothing.
#[derive(Debug, Default)]
pub(crate) struct HubWatchdog {
    watch: Option<Watch>,
}

#[derive(Debug)]
struct Watch {
    patience: Duration,
    /// When the hub was last heard.
    heard: Instant,
    /// When `look` last ran.
    looked: Instant,
    /// Recent lateness of this process's checks.
    lateness: Lateness,
}

impl Watch {
    fn gone_at(&self) -> Instant {
        self.lateness.silent_at(self.heard, self.patience)
    }

    fn due(&self) -> Instant {
        (self.looked + LOOK).min(self.gone_at())
    }

    fn looks(&mut self, now: Instant) {
        self.lateness.ran(self.due(), now);
        self.looked = now;
    }
}

impl HubWatchdog {
    /// Starts watching a hub that was just heard. It counts as gone after a silence of `patience`.
    pub(crate) fn over(patience: Duration, now: Instant) -> Self {
        HubWatchdog {
            watch: Some(Watch { patience, heard: now, looked: now, lateness: Lateness::default() }),
        }
    }

    /// Notes a sign of life of the hub.
    pub(crate) fn heard(&mut self, now: Instant) {
        if let Some(watch) = &mut self.watch {
            watch.looks(now);
            watch.heard = now;
        }
    }

    /// Notes a sign of life, and watches with this patience from here on.
    pub(crate) fn watch(&mut self, patience: Duration, now: Instant) {
        self.heard(now);
        match &mut self.watch {
            Some(watch) => watch.patience = patience,
            None => *self = HubWatchdog::over(patience, now),
        }
    }

    /// Checks for silence. Returns whether the hub is silent for too long; if so, the watchdog stops.
    pub(crate) fn look(&mut self, now: Instant) -> bool {
        let Some(watch) = &mut self.watch else { return false };
        watch.looks(now);
        self.watch.take_if(|watch| watch.gone_at() <= now).is_some()
    }

    /// When the next [`look`](Self::look) is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.watch.as_ref().map(Watch::due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000);
    const PATIENCE: Duration = Duration::from_millis(2_800);

    /// Calls `look` whenever it is due. Returns when the host counted as gone.
    fn watch(watchdog: &mut HubWatchdog, mut now: Instant) -> Instant {
        loop {
            let due = watchdog.poll_timeout().expect("it watches");
            assert!(due > now, "it is looked once at a time");
            now = due;
            if watchdog.look(now) {
                assert_eq!(watchdog.poll_timeout(), None);
                return now;
            }
        }
    }

    #[test]
    fn a_hub_that_is_silent_is_gone_after_the_patience() {
        let mut watchdog = HubWatchdog::over(PATIENCE, NOW);
        assert_eq!(watch(&mut watchdog, NOW), NOW + PATIENCE);
        assert!(!watchdog.look(NOW + PATIENCE * 9), "it is told once");
    }

    #[test]
    fn a_hub_that_is_heard_is_there() {
        let mut watchdog = HubWatchdog::over(PATIENCE, NOW);
        let mut now = NOW;
        for _ in 0..100 {
            now += PATIENCE - Duration::from_millis(100);
            watchdog.heard(now);
            assert!(!watchdog.look(now));
        }
        assert_eq!(watch(&mut watchdog, now), now + PATIENCE);
    }

    #[test]
    fn time_in_which_this_process_stood_still_does_not_count() {
        let mut watchdog = HubWatchdog::over(PATIENCE, NOW);
        let awake = NOW + Duration::from_secs(60);
        assert!(!watchdog.look(awake));
        let gone = watch(&mut watchdog, awake);
        assert!(gone > awake + PATIENCE / 2 && gone <= awake + PATIENCE, "{gone:?}");
    }

    #[test]
    fn a_process_that_looks_late_gives_the_hub_that_much_longer() {
        let mut watchdog = HubWatchdog::over(PATIENCE, NOW);
        let late = Duration::from_millis(240);
        let gone = loop {
            let now = watchdog.poll_timeout().expect("it watches") + late;
            if watchdog.look(now) {
                break now;
            }
        };
        let silent = gone.saturating_since(NOW);
        assert!(silent > PATIENCE + late * 2 && silent < PATIENCE + Duration::from_secs(3), "{silent:?}");
    }

    #[test]
    fn over_any_other_hub_nobody_watches() {
        let mut watchdog = HubWatchdog::default();
        watchdog.heard(NOW);
        assert!(!watchdog.look(NOW + PATIENCE * 100) && watchdog.poll_timeout().is_none());
    }
}
