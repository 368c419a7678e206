//! Reconnect after a lost connection: when the next attempt is due, and whether it resumes or rejoins.
//!
//! ```text
//!                lost            dialled           Resumed, or Welcome
//!  Connected ───────▶ Waiting ───────────▶ Trying ────────────────────▶ Connected
//!                        ▲                   │  │
//!                        └── not reached ────┘  └── the session is gone: at once again, to rejoin
//! ```
//!
//! A member that lost its seat tries twice more: with its last token, which may get it its id back, and by the code.
//! In a cluster the server may have lost the room: then nothing is tried here while other servers are
//! [asked](super::claim).
//! [`ReconnectPolicy`] says when attempts are made, and how many.

use super::policy::ReconnectPolicy;
use parlor_proto::Instant;
use std::time::Duration;

/// State of the connection to the room's server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// Connecting for the first time.
    #[default]
    Connecting,
    /// Connected.
    Connected,
    /// The connection is lost; this process tries to resume its session.
    Reconnecting,
    /// The server has dropped the session; this process tries to rejoin.
    Resyncing,
    /// Final: given up, refused, or the room is closed for this process.
    Lost,
}

impl LinkState {
    /// Returns the state's name in JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            LinkState::Connecting => "connecting",
            LinkState::Connected => "connected",
            LinkState::Reconnecting => "reconnecting",
            LinkState::Resyncing => "resyncing",
            LinkState::Lost => "lost",
        }
    }
}

/// What a reconnect attempt asks of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    /// To resume this process's session.
    Resume,
    /// To return as the member that it was, by its newest token.
    Return,
    /// To join by the code.
    Rejoin,
}

/// The reconnect state machine. See the [module](self).
#[derive(Debug)]
pub(crate) struct Reconnect {
    policy: ReconnectPolicy,
    state: State,
    /// Seed of the jitter of the waits.
    seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Connected,
    Waiting {
        of: Loss,
        at: Instant,
    },
    Trying {
        of: Loss,
    },
    /// Only other servers are asked.
    Claiming {
        of: Loss,
    },
    Lost,
}

/// One loss of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loss {
    since: Instant,
    tier: Tier,
    /// Attempts so far.
    attempts: u32,
}

impl Reconnect {
    pub(crate) fn new(policy: ReconnectPolicy) -> Self {
        Reconnect { policy, state: State::Connected, seed: 0 }
    }

    /// Notes the loss of a connection that stood. `seed` differs between processes.
    pub(crate) fn lost(&mut self, seed: u64, now: Instant) {
        self.seed = seed;
        let loss = Loss { since: now, tier: Tier::Resume, attempts: 0 };
        self.wait(loss, now, Duration::ZERO, self.policy.attempts);
    }

    /// When the next attempt is due.
    pub(crate) fn next_attempt(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { at, .. } => Some(at),
            State::Connected | State::Trying { .. } | State::Claiming { .. } | State::Lost => None,
        }
    }

    /// Begins an attempt. Returns its number, counted from 1.
    pub(crate) fn begin(&mut self) -> Option<u32> {
        let State::Waiting { of, .. } = self.state else { return None };
        let attempts = of.attempts + 1;
        self.state = State::Trying { of: Loss { attempts, ..of } };
        Some(attempts)
    }

    /// What the attempt under way asks of the server, if one is under way.
    pub(crate) fn trying(&self) -> Option<Tier> {
        match self.state {
            State::Trying { of } => Some(of.tier),
            State::Connected | State::Waiting { .. } | State::Claiming { .. } | State::Lost => None,
        }
    }

    /// Notes that the attempt failed. The next comes no earlier than `after`, nor than its own wait. While other
    /// servers can be asked, time alone bounds the attempts. Returns whether there is a next attempt.
    pub(crate) fn failed(&mut self, now: Instant, after: Duration, has_others: bool) -> bool {
        if let State::Trying { of } = self.state {
            let attempts_max = if has_others { u32::MAX } else { self.policy.attempts };
            self.wait(of, now, after, attempts_max);
        }
        self.state != State::Lost
    }

    /// Notes that the server has dropped the session: the next attempt asks for less, at once.
    pub(crate) fn resync(&mut self, tier: Tier, now: Instant) {
        if let State::Trying { of } | State::Claiming { of } = self.state {
            self.state = State::Waiting { of: Loss { tier, ..of }, at: now };
        }
    }

    /// Leaves the room to claims: its server has lost it. `now` is the time of the loss if there was none before.
    pub(crate) fn claim(&mut self, now: Instant) {
        self.state = match self.state {
            State::Waiting { of, .. } | State::Trying { of } => State::Claiming { of },
            State::Connected => State::Claiming { of: Loss { since: now, tier: Tier::Resume, attempts: 0 } },
            state @ (State::Claiming { .. } | State::Lost) => state,
        };
    }

    /// Whether only other servers are asked.
    pub(crate) fn is_claiming(&self) -> bool {
        matches!(self.state, State::Claiming { .. })
    }

    /// Whether other servers were asked for as long as the policy allows.
    pub(crate) fn is_claim_overdue(&self, now: Instant) -> bool {
        matches!(self.state, State::Claiming { of } if now > of.since + self.policy.total)
    }

    /// Whether the connection is lost and reconnecting is not given up.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self.state, State::Waiting { .. } | State::Trying { .. } | State::Claiming { .. })
    }

    /// Notes that the connection stands.
    pub(crate) fn connected(&mut self) {
        self.state = State::Connected;
    }

    /// Whether reconnecting is given up.
    pub(crate) fn is_given_up(&self) -> bool {
        self.state == State::Lost
    }

    /// Gives up, however many attempts are left.
    pub(crate) fn give_up(&mut self) {
        self.state = State::Lost;
    }

    fn wait(&mut self, of: Loss, now: Instant, after: Duration, attempts_max: u32) {
        let at = now + self.policy.delay(self.seed, of.attempts).max(after);
        self.state = if of.attempts < attempts_max && at <= of.since + self.policy.total {
            State::Waiting { of, at }
        } else {
            State::Lost
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1_000);

    /// Returns the waits of a process that never connects, and when it gave up.
    fn waits(seed: u64, each_takes: Duration) -> (Vec<Duration>, Duration) {
        let mut reconnect = Reconnect::new(ReconnectPolicy::default());
        reconnect.lost(seed, NOW);
        let (mut now, mut waits) = (NOW, Vec::new());
        while let Some(at) = reconnect.next_attempt() {
            waits.push(at.saturating_since(now));
            assert_eq!(reconnect.begin(), u32::try_from(waits.len()).ok());
            assert_eq!(reconnect.trying(), Some(Tier::Resume));
            now = at + each_takes;
            reconnect.failed(now, Duration::ZERO, false);
        }
        (waits, now.saturating_since(NOW))
    }

    #[test]
    fn it_is_tried_eight_times_with_longer_and_longer_waits() {
        for seed in 0..1_000 {
            let (waits, _) = waits(seed, Duration::ZERO);
            assert_eq!(waits.len(), 8);
            for (wait, even_ms) in waits.iter().zip([200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]) {
                let even = Duration::from_millis(even_ms);
                assert!((even * 3 / 4..=even * 5 / 4).contains(wait), "seed {seed}: {wait:?} for {even:?}");
            }
        }
    }

    #[test]
    fn waits_differ_between_processes_and_between_attempts() {
        let firsts: std::collections::BTreeSet<Duration> =
            (0..100).map(|seed| waits(seed, Duration::ZERO).0[0]).collect();
        assert!(firsts.len() > 50, "{} of 100 differ", firsts.len());
        let (first, second) = (waits(1, Duration::ZERO).0, waits(2, Duration::ZERO).0);
        assert!(first.iter().zip(&second).any(|(a, b)| a != b));
        assert_eq!(first, waits(1, Duration::ZERO).0, "one seed gives one ladder");
    }

    #[test]
    fn it_is_not_tried_for_longer_than_a_minute() {
        let (waits, until) = waits(7, Duration::from_secs(13));
        assert!(waits.len() < 8, "{waits:?}");
        assert!(until <= ReconnectPolicy::default().total + Duration::from_secs(13));
        let mut reconnect = Reconnect::new(ReconnectPolicy::default());
        reconnect.lost(1, NOW);
        reconnect.begin();
        assert!(!reconnect.failed(NOW, Duration::from_secs(61), false), "who is to wait for longer gives up");
        assert_eq!((reconnect.next_attempt(), reconnect.begin()), (None, None));
    }

    #[test]
    fn who_is_gone_comes_again_at_once_and_as_a_newcomer() {
        let mut reconnect = Reconnect::new(ReconnectPolicy::default());
        reconnect.lost(1, NOW);
        reconnect.begin();
        reconnect.resync(Tier::Rejoin, NOW + Duration::from_secs(1));
        assert_eq!(reconnect.next_attempt(), Some(NOW + Duration::from_secs(1)));
        assert_eq!(reconnect.begin(), Some(2));
        assert_eq!(reconnect.trying(), Some(Tier::Rejoin));
        // A failure from here on is a failure of the rejoin.
        assert!(reconnect.failed(NOW + Duration::from_secs(2), Duration::ZERO, false));
        reconnect.begin();
        assert_eq!(reconnect.trying(), Some(Tier::Rejoin));
        reconnect.connected();
        assert_eq!((reconnect.trying(), reconnect.next_attempt()), (None, None));
    }
}
