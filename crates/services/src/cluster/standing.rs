//! What this node may decide, for all its threads.

use super::uptime::uptime;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use core::time::Duration;
use parlor_hub::cluster::tenure::{Decision, Incarnation, Standing, Tenure};
use std::sync::Arc;

/// What the node may decide. Cheap to clone; clones are the same.
///
/// The thread of the lease says so at each of its turns. A process that was stopped goes on with all threads at once,
/// so each of them looks at the clock too: what was said holds until a moment, and no longer than a turn may be late.
#[derive(Clone, Debug)]
pub(crate) struct StandingView(Arc<Told>);

#[derive(Debug)]
struct Told {
    /// The place of the standing among all, while it holds.
    standing: AtomicU8,
    /// Until when it holds, by [`uptime`] in microseconds.
    until_us: AtomicU64,
    /// 0 without one.
    incarnation: AtomicU64,
    lease_left_us: AtomicU64,
    lapsed_us: AtomicU64,
}

impl StandingView {
    pub(super) fn new() -> Self {
        StandingView(Arc::new(Told {
            standing: AtomicU8::new(0),
            until_us: AtomicU64::new(0),
            incarnation: AtomicU64::new(0),
            lease_left_us: AtomicU64::new(0),
            lapsed_us: AtomicU64::new(0),
        }))
    }

    /// Says what holds in the turn that began at `now`.
    pub(super) fn tell(&self, tenure: &Tenure, now: Duration) {
        let told = &*self.0;
        let standing = tenure.standing();
        let place = Standing::ALL.iter().position(|known| *known == standing).unwrap_or_default();
        let until = if standing.may(Decision::Join) {
            now.saturating_add(tenure.valid_for())
        } else {
            Duration::ZERO
        };
        // What ends comes first, and what begins last: a reader between the two decides less.
        if until.is_zero() {
            told.until_us.store(0, Ordering::SeqCst);
        }
        told.standing.store(u8::try_from(place).unwrap_or_default(), Ordering::SeqCst);
        let incarnation = tenure.incarnation().map_or(0, |Incarnation(incarnation)| incarnation);
        told.incarnation.store(incarnation, Ordering::SeqCst);
        told.lease_left_us.store(micros(tenure.lease_left()), Ordering::Relaxed);
        told.until_us.store(micros(until), Ordering::SeqCst);
    }

    /// Counts time without a lease.
    pub(super) fn lapsed(&self, time: Duration) {
        self.0.lapsed_us.fetch_add(micros(time), Ordering::Relaxed);
    }

    /// The node's standing at this moment.
    pub(crate) fn get(&self) -> Standing {
        let standing =
            Standing::ALL[usize::from(self.0.standing.load(Ordering::SeqCst)) % Standing::ALL.len()];
        let is_over = micros(uptime()) >= self.0.until_us.load(Ordering::SeqCst);
        if standing.may(Decision::Join) && is_over { Standing::Lapsed } else { standing }
    }

    /// The node's incarnation; `None` while the store has it under none.
    pub(crate) fn incarnation(&self) -> Option<u64> {
        Some(self.0.incarnation.load(Ordering::SeqCst)).filter(|incarnation| *incarnation != 0)
    }

    /// What was left of the lease at the last turn.
    pub(crate) fn lease_left(&self) -> Duration {
        Duration::from_micros(self.0.lease_left_us.load(Ordering::Relaxed))
    }

    /// For how long the node had no lease after it had one, since its start.
    pub(crate) fn lapsed_time(&self) -> Duration {
        Duration::from_micros(self.0.lapsed_us.load(Ordering::Relaxed))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_hub::cluster::Timing;
    use parlor_hub::cluster::tenure::{Heartbeat, Request};

    fn held() -> Tenure {
        let mut tenure = Tenure::new(Timing::default());
        while let Some(request) = tenure.poll_request() {
            match request {
                Request::TakeLock => tenure.handle_lock_taken(),
                Request::Join => tenure.handle_joined(Incarnation(7)),
                Request::Heartbeat => {
                    tenure.handle_heartbeat(Heartbeat::Renewed { drains: false, quarantine: Duration::ZERO })
                }
                Request::Reconcile => tenure.handle_reconciled(),
            }
        }
        tenure
    }

    #[test]
    fn threat_34_what_was_said_before_a_stop_does_not_hold_after_it() {
        let (view, tenure) = (StandingView::new(), held());
        assert_eq!(view.get(), Standing::Joining);
        view.tell(&tenure, uptime());
        assert_eq!((view.get(), view.incarnation()), (Standing::Held, Some(7)));
        // As if the turn had begun before a stop: no thread of the lease has run since.
        view.tell(&tenure, uptime().saturating_sub(Timing::default().stall));
        assert_eq!(view.get(), Standing::Lapsed);
        assert!(!view.get().may(Decision::Join));
    }
}
