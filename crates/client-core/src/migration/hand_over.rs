//! A planned hand-over, at the host that wants it.
//!
//! ```text
//!         begin          the last step is committed     the hub has all of it
//!  Idle ────────▶ Asked ───────────────────────────▶ Sealed ─────────────────▶ Told ──▶ Idle
//!                   └────────────── after WAIT ────────┴──────────────────────▲  named, or refused
//! ```
//!
//! The host takes no step and commits nothing once it is sealed, so the next host misses none of its steps. A game
//! loop that stands still, or a hub that does not acknowledge, delays the request by [`WAIT`] at most.

use parlor_proto::wire::control::HandOverRefusal;
use parlor_proto::{Instant, MemberId};
use std::time::Duration;

/// The longest delay of the request. A phone's page is given about as long before it is frozen.
const WAIT: Duration = Duration::from_millis(500);

/// The state machine. See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandOver {
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Idle,
    Asked(Wish),
    Sealed(Wish),
    Told,
}

#[derive(Clone, Copy, Debug)]
struct Wish {
    /// The next host; `None` for the one that the hub names.
    to: Option<MemberId>,
    until: Instant,
}

impl HandOver {
    /// Why it may not begin: in a room that `migrates` or not, and by what makes the next host unfit.
    pub(crate) fn refusal(
        &self,
        migrates: bool,
        unfit: impl FnOnce() -> Option<HandOverRefusal>,
    ) -> Option<HandOverRefusal> {
        match (migrates, self.is_under_way()) {
            (false, _) => Some(HandOverRefusal::NoMigration),
            (true, true) => Some(HandOverRefusal::UnderWay),
            (true, false) => unfit(),
        }
    }

    /// Begins it.
    pub(crate) fn begin(&mut self, to: Option<MemberId>, now: Instant) {
        self.state = State::Asked(Wish { to, until: now + WAIT });
    }

    /// Whether it is under way.
    pub(crate) fn is_under_way(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Whether the host takes no step and commits nothing.
    pub(crate) fn is_sealed(&self) -> bool {
        matches!(self.state, State::Sealed(_) | State::Told)
    }

    /// Notes that everything that the game has written is committed.
    pub(crate) fn committed(&mut self) {
        if let State::Asked(wish) = self.state {
            self.state = State::Sealed(wish);
        }
    }

    /// Takes the request to be sent to the hub, if it is time for it. `is_at_hub` says that the hub has everything
    /// that is committed.
    pub(crate) fn take_request(&mut self, is_at_hub: bool, now: Instant) -> Option<Option<MemberId>> {
        let (State::Asked(wish) | State::Sealed(wish)) = self.state else { return None };
        let is_safe = is_at_hub && self.is_sealed();
        if !is_safe && now < wish.until {
            return None;
        }
        self.state = State::Told;
        Some(wish.to)
    }

    /// When the request is sent at the latest.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Asked(wish) | State::Sealed(wish) => Some(wish.until),
            State::Idle | State::Told => None,
        }
    }

    /// Ends it. Returns whether it was under way.
    pub(crate) fn end(&mut self) -> bool {
        let was_under_way = self.is_under_way();
        self.state = State::Idle;
        was_under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000);

    #[test]
    fn it_is_asked_for_once_the_hub_has_the_last_step() {
        let mut hand_over = HandOver::default();
        hand_over.committed();
        assert!(!hand_over.is_sealed() && hand_over.take_request(true, NOW).is_none(), "nobody wants it");
        hand_over.begin(Some(MemberId(2)), NOW);
        assert_eq!(hand_over.take_request(true, NOW), None, "the game has not committed its last step");
        assert!(!hand_over.is_sealed());
        hand_over.committed();
        assert!(hand_over.is_sealed());
        assert_eq!(hand_over.take_request(false, NOW), None, "the hub lacks it");
        assert_eq!(hand_over.take_request(true, NOW), Some(Some(MemberId(2))));
        assert_eq!((hand_over.take_request(true, NOW + WAIT), hand_over.poll_timeout()), (None, None));
        assert!(hand_over.is_sealed() && hand_over.end() && !hand_over.end() && !hand_over.is_sealed());
    }

    #[test]
    fn it_does_not_wait_for_ever() {
        for commits in [false, true] {
            let mut hand_over = HandOver::default();
            hand_over.begin(None, NOW);
            if commits {
                hand_over.committed();
            }
            assert_eq!(hand_over.poll_timeout(), Some(NOW + WAIT));
            assert_eq!(hand_over.take_request(false, NOW + WAIT), Some(None));
            assert!(hand_over.is_sealed(), "what is written after that is nobody's");
        }
    }
}
