//! Asks another server for the room, over a second connection: to reopen it while the room's own server is silent or
//! lost, and to go on with it when it is about to move there.
//!
//! ```text
//!   silent, lost, or about to move           dialled            Welcome and Seat
//!  Idle ─────────────────────────▶ Waiting ─────────▶ Asking ────────────────────▶ Idle: the link is the room's
//!   ▲                                 ▲  ▲               │
//!   └── the room's server is heard, ──┤  └── not reached, RetryAfter, a lower term
//!       and does not move the room    │
//!                                     └───── Redirect: at once, at another address
//! ```
//!
//! Silence is no death: the room's own link is kept until another server lets this process in. An answer that nothing
//! can be reopened is final, until the room's server gives out another seat.

use super::hub_watchdog::HubWatchdog;
use super::policy::ReconnectPolicy;
use parlor_proto::random::SplitMix64;
use parlor_proto::session::{self, Rejection, Session};
use parlor_proto::wire::handshake::{Hello, Refusal, Seat, Welcome};
use parlor_proto::{Instant, LinkKind, Packet, PeerMisbehaved};
use std::time::Duration;

/// Silence after which another server is asked: this many tenths of the room's longest pause of late.
const PAUSE_TENTHS: u32 = 25;
/// Bounds of that silence. In a room whose pauses ask for a longer one, silence says nothing.
const HEDGE_MIN: Duration = Duration::from_millis(500);
const HEDGE_MAX: Duration = Duration::from_millis(1_500);
/// Pauses count for one to two of these, and silence says nothing before the first one is over, which is shorter.
const SPAN: Duration = Duration::from_secs(4);
const SPAN_FIRST: Duration = Duration::from_secs(2);
/// Upper bound of the wait between two claims, unless a server asks for a longer one.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// How long a server may take to answer a claim. Another one is asked then.
const ANSWER_MAX: Duration = Duration::from_secs(2);
/// Redirects in a row that are followed.
const REDIRECTS_MAX: u32 = 3;

/// The longest pauses between packets of late.
#[derive(Debug)]
struct Rhythm {
    heard: Instant,
    since: Instant,
    /// In the present span and the one before, which is unknown at first.
    longest: [Option<Duration>; 2],
}

impl Rhythm {
    fn new(now: Instant) -> Self {
        Rhythm { heard: now, since: now, longest: [Some(Duration::ZERO), None] }
    }

    fn heard(&mut self, now: Instant) {
        let pause = now.saturating_since(self.heard);
        self.heard = now;
        let span = if self.longest[1].is_some() { SPAN } else { SPAN_FIRST };
        if now.saturating_since(self.since) >= span {
            (self.longest[1], self.longest[0], self.since) = (self.longest[0], Some(Duration::ZERO), now);
        }
        self.longest[0] = self.longest[0].max(Some(pause));
    }

    /// The silence after which another server is asked; `None` in an idle room.
    fn hedge(&self, min: Duration) -> Option<Duration> {
        let [present, before] = self.longest;
        let longest = present?.max(before?);
        let hedge = longest * PAUSE_TENTHS / 10;
        (hedge <= HEDGE_MAX).then(|| hedge.max(min.clamp(HEDGE_MIN, HEDGE_MAX)))
    }
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Idle,
    Waiting {
        at: Instant,
    },
    Dialling,
    Asking(Box<Asking>),
    /// Nothing can be reopened.
    Refused,
}

/// A claim that waits for its answer.
#[derive(Debug)]
struct Asking {
    session: Session,
    link: LinkKind,
    welcome: Option<Box<Welcome>>,
    /// When another server is asked.
    until: Instant,
}

/// What a server let this process in with.
pub(super) struct Granted {
    pub(super) session: Session,
    pub(super) link: LinkKind,
    pub(super) welcome: Box<Welcome>,
}

/// What became of a claim.
pub(super) enum Claimed {
    /// A server has reopened the room, or had it.
    Granted(Box<Granted>),
    /// Another claim follows, if the room's server is not heard.
    Later,
    /// Nothing can be reopened.
    Refused,
}

/// The claims of a room. See the [module](self).
#[derive(Debug)]
pub(super) struct Claims {
    policy: ReconnectPolicy,
    seat: Option<Box<Seat>>,
    rhythm: Rhythm,
    silence: HubWatchdog,
    state: State,
    /// Differs between processes.
    seed: u64,
    /// Claims since the room's server was heard.
    asked: u32,
    /// The next claim goes to this address.
    target: Option<String>,
    /// Where the room is about to move.
    moves_to: Option<String>,
    /// Redirects since the last address of the seat.
    redirects: u32,
    /// Whether the room's own server is asked, too: it answers, and does not have the session.
    asks_own: bool,
}

impl Claims {
    pub(super) fn new(policy: ReconnectPolicy) -> Self {
        Claims {
            policy,
            seat: None,
            rhythm: Rhythm::new(Instant::ZERO),
            silence: HubWatchdog::default(),
            state: State::Idle,
            seed: 0,
            asked: 0,
            target: None,
            moves_to: None,
            redirects: 0,
            asks_own: false,
        }
    }

    /// Takes in what the room's server says of this process's seat. Returns false if it is of a lower term of the
    /// room than this process has seen: then that server is not the room's owner.
    pub(super) fn seated(&mut self, seat: Box<Seat>, seed: u64, now: Instant) -> bool {
        if self.seat.as_ref().is_some_and(|known| known.uid == seat.uid && seat.term < known.term) {
            return false;
        }
        if self.seat.is_none() {
            self.rhythm = Rhythm::new(now);
        }
        self.moves_to.clone_from(&seat.moves_to);
        (self.seat, self.seed) = (Some(seat), seed);
        if matches!(self.state, State::Refused) {
            self.state = State::Idle;
        }
        match (&self.moves_to, &self.state) {
            (Some(_), State::Idle) => self.state = State::Waiting { at: now },
            // The move is called off.
            (None, _) => self.state = State::Idle,
            _ => {}
        }
        true
    }

    pub(super) fn seat(&self) -> Option<&Seat> {
        self.seat.as_deref()
    }

    /// Whether the room's own server is asked, too.
    pub(super) fn asks_own(&self) -> bool {
        self.asks_own
    }

    /// Whether a server could be asked.
    pub(super) fn can_ask(&self) -> bool {
        let has_address = |seat: &Seat| self.asks_own || self.target.is_some() || !seat.elsewhere.is_empty();
        !matches!(self.state, State::Refused) && self.seat().is_some_and(has_address)
    }

    /// Notes a packet of the room's server. No claim is needed then.
    pub(super) fn heard(&mut self, now: Instant) {
        let Some(seat) = &self.seat else { return };
        let mut min = Duration::from_millis(seat.hedge_ms.into());
        self.rhythm.heard(now);
        if self.moves_to.is_some() {
            // It says nothing while the store is asked.
            min = HEDGE_MAX;
        } else {
            self.stop();
        }
        match self.rhythm.hedge(min) {
            Some(hedge) if self.can_ask() => self.silence.watch(hedge, now),
            _ => self.silence = HubWatchdog::default(),
        }
    }

    /// Ends a claim under way, and the reasons for the next one.
    pub(super) fn stop(&mut self) {
        if !matches!(self.state, State::Refused) {
            self.state = State::Idle;
        }
        (self.asked, self.redirects, self.target, self.asks_own) = (0, 0, None, false);
        self.moves_to = None;
    }

    /// Notes that the link to the room's server is lost. `at` is where the room is, if that is known.
    pub(super) fn lost(&mut self, at: Option<String>, now: Instant) {
        self.silence = HubWatchdog::default();
        // A room that was about to move may have done so.
        let at = at.or(self.moves_to.take());
        self.moves_to = None;
        let is_told = at.is_some();
        self.target = at.or(self.target.take());
        match self.state {
            State::Idle | State::Waiting { .. } if is_told && self.can_ask() => {
                self.state = State::Waiting { at: now };
            }
            State::Idle if self.can_ask() => self.state = State::Waiting { at: now + self.wait() },
            _ => {}
        }
    }

    /// Notes that the room's own server does not have the session: it may reopen the room, too. `at` is where the room is,
    /// if that is known.
    pub(super) fn ask_own(&mut self, at: Option<String>, now: Instant) {
        self.asks_own = true;
        self.lost(at, now);
    }

    /// When the driver must dial for a claim.
    pub(super) fn next(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { at } => Some(at),
            State::Idle | State::Dialling | State::Asking(_) | State::Refused => None,
        }
    }

    /// Begins a claim. Returns the address to dial; empty for the room's own server.
    pub(super) fn begin(&mut self) -> Option<String> {
        let State::Waiting { .. } = self.state else { return None };
        if let Some(address) = self.moves_to.clone() {
            self.state = State::Dialling;
            return Some(address);
        }
        let elsewhere = &self.seat.as_ref()?.elsewhere;
        let targets = elsewhere.len() + usize::from(self.asks_own);
        let address = match self.target.take() {
            Some(target) => target,
            // The server gives each member another order, so that a node's death brings no node all of its members.
            None if targets > 0 => elsewhere.get(self.asked as usize % targets).cloned().unwrap_or_default(),
            None => {
                self.state = State::Idle;
                return None;
            }
        };
        (self.state, self.asked) = (State::Dialling, self.asked.saturating_add(1));
        Some(address)
    }

    /// Whether a dialled claim or its answer is under way.
    pub(super) fn is_under_way(&self) -> bool {
        matches!(self.state, State::Dialling | State::Asking(_))
    }

    /// Notes that the claim under way has no answer.
    pub(super) fn failed(&mut self, after: Duration, now: Instant) {
        if self.is_under_way() {
            self.redirects = 0;
            self.state = State::Waiting { at: now + self.wait().max(after) };
        }
    }

    /// Asks over a new link.
    pub(super) fn connected(&mut self, hello: Hello, link: LinkKind, now: Instant) {
        if matches!(self.state, State::Dialling) {
            let session = Session::client(hello, link, now);
            self.state =
                State::Asking(Box::new(Asking { session, link, welcome: None, until: now + ANSWER_MAX }));
        }
    }

    pub(super) fn handle_packet(&mut self, packet: Packet, now: Instant) {
        if let State::Asking(asking) = &mut self.state {
            // The session closes itself and gives the reason in its events.
            let _: Result<(), PeerMisbehaved> = asking.session.handle_packet(packet, now);
        }
    }

    pub(super) fn poll_packet(&mut self, now: Instant) -> Option<Packet> {
        match &mut self.state {
            State::Asking(asking) => asking.session.poll_packet(now),
            State::Idle | State::Waiting { .. } | State::Dialling | State::Refused => None,
        }
    }

    /// Lets time pass. `is_attached` says whether the room has its link.
    pub(super) fn handle_timeout(&mut self, is_attached: bool, now: Instant) {
        if is_attached && self.silence.look(now) && self.can_ask() {
            // A room that was about to move may have done so.
            self.moves_to = None;
            if matches!(self.state, State::Idle) {
                self.state = State::Waiting { at: now + self.wait() };
            }
        }
        if let State::Asking(asking) = &mut self.state {
            asking.session.handle_timeout(now);
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let asking = match &self.state {
            State::Asking(asking) => asking.session.poll_timeout().into_iter().chain([asking.until]).min(),
            State::Idle | State::Waiting { .. } | State::Dialling | State::Refused => None,
        };
        asking.into_iter().chain(self.silence.poll_timeout()).min()
    }

    /// What became of the claim under way, once it is known.
    pub(super) fn poll(&mut self, now: Instant) -> Option<Claimed> {
        let State::Asking(asking) = &mut self.state else { return None };
        let Some(event) = asking.session.poll_event() else {
            if asking.until > now {
                return None;
            }
            self.failed(Duration::ZERO, now);
            return Some(Claimed::Later);
        };
        match event {
            session::Event::Welcome(welcome) => {
                asking.welcome = Some(welcome);
                self.poll(now)
            }
            session::Event::Seat(seat) => Some(self.take_seat(seat, now)),
            session::Event::Rejected(Rejection::Redirect(redirect)) if self.redirects < REDIRECTS_MAX => {
                self.redirects += 1;
                (self.target, self.state) = (Some(redirect.address), State::Waiting { at: now });
                Some(Claimed::Later)
            }
            session::Event::Rejected(Rejection::RetryAfter(retry)) => {
                self.failed(retry.after, now);
                Some(Claimed::Later)
            }
            // The pass admits alone, so it is the player that is not let in.
            session::Event::Rejected(Rejection::Refused(Refusal::Resume { .. } | Refusal::Unauthorized)) => {
                self.state = State::Refused;
                Some(Claimed::Refused)
            }
            // Another rejection, or the end. Before its seat nothing else is taken.
            _ => {
                self.failed(Duration::ZERO, now);
                Some(Claimed::Later)
            }
        }
    }

    /// Takes the session of a claim over if its server has the room under no lower term.
    fn take_seat(&mut self, seat: Box<Seat>, now: Instant) -> Claimed {
        let is_this_room = self.seat.as_ref().is_some_and(|known| known.uid == seat.uid);
        let State::Asking(asking) = std::mem::replace(&mut self.state, State::Dialling) else {
            unreachable!("it waits for an answer")
        };
        let Asking { session, link, welcome, .. } = *asking;
        let is_owner = |claims: &mut Self| is_this_room && claims.seated(seat, claims.seed, now);
        let Some(welcome) = welcome.filter(|_| is_owner(self)) else {
            self.failed(Duration::ZERO, now);
            return Claimed::Later;
        };
        self.stop();
        (self.rhythm, self.silence) = (Rhythm::new(now), HubWatchdog::default());
        Claimed::Granted(Box::new(Granted { session, link, welcome }))
    }

    /// The wait before the next claim. It differs between processes.
    fn wait(&self) -> Duration {
        self.policy.delay(SplitMix64::nth(self.seed, 0), self.asked).min(WAIT_MAX)
    }
}
