//! The server's door: what all of its ports and shards ask before they let somebody in.

use crate::admission::{Tickets, Tokens};
use crate::clock::Clock;
use crate::handshakes::{Handshakes, Verdict};
use crate::mutex::lock;
use crate::origin;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use parlor_hub::Origin;
use parlor_hub::door::{Admitted, Doorkeeper, Guesses, OpenDoor};
use parlor_proto::Instant;
use parlor_proto::wire::handshake::{Hello, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Cheap to clone. Its locks are held for moments, and by nobody who relays.
#[derive(Clone)]
pub(crate) struct Door {
    clock: Clock,
    /// Whether this machine's own processes have budgets like everybody else.
    limits_local: bool,
    handshakes: Arc<Mutex<Handshakes>>,
    guesses: Arc<Mutex<OpenDoor>>,
    tokens: Arc<Tokens>,
    /// Guesses that were not looked at, because too many came before.
    guesses_refused: Arc<AtomicU64>,
}

impl Door {
    pub(crate) fn new(
        clock: Clock,
        limits_local: bool,
        handshakes: Handshakes,
        guesses: Guesses,
        tokens: Tokens,
    ) -> Self {
        Door {
            clock,
            limits_local,
            handshakes: Arc::new(Mutex::new(handshakes)),
            guesses: Arc::new(Mutex::new(OpenDoor::new(guesses))),
            tokens: Arc::new(tokens),
            guesses_refused: Arc::default(),
        }
    }

    /// From here on tickets of the server's own accounts let their owners in.
    pub(crate) fn accept_tickets(&self, tickets: Tickets) {
        self.tokens.accept_tickets(tickets);
    }

    /// The tickets of the server's own accounts, if it has any.
    pub(crate) fn tickets(&self) -> Option<&Tickets> {
        self.tokens.tickets()
    }

    /// Whose budgets count for an address.
    pub(crate) fn origin(&self, addr: IpAddr) -> Origin {
        if addr.to_canonical().is_loopback() && !self.limits_local { Origin::LOCAL } else { origin::of(addr) }
    }

    /// Whether a handshake with an address may begin.
    pub(crate) fn handshake(&self, addr: IpAddr, is_proven: bool) -> Verdict {
        lock(&self.handshakes).decide(self.origin(addr), is_proven, self.clock.now())
    }

    /// Whether somebody may ask over HTTP whether there is a room.
    pub(crate) fn may_ask(&self, origin: Origin) -> Result<(), Duration> {
        let now = self.clock.now();
        self.judge_guess(origin, now)
    }

    /// How many guesses were refused.
    pub(crate) fn guesses_refused(&self) -> u64 {
        self.guesses_refused.load(Ordering::Relaxed)
    }

    fn judge_guess(&self, origin: Origin, now: Instant) -> Result<(), Duration> {
        lock(&self.guesses).may_guess(origin, now).inspect_err(|_| {
            self.guesses_refused.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// There was no room that somebody asked for over HTTP.
    pub(crate) fn asked_wrong(&self, origin: Origin) {
        lock(&self.guesses).guessed_wrong(origin, self.clock.now());
    }
}

impl Doorkeeper for Door {
    fn may_guess(&mut self, origin: Origin, now: Instant) -> Result<(), Duration> {
        self.judge_guess(origin, now)
    }

    fn guessed_wrong(&mut self, origin: Origin, now: Instant) {
        lock(&self.guesses).guessed_wrong(origin, now);
    }

    fn code_letters_extra(&self, now: Instant) -> usize {
        lock(&self.guesses).code_letters_extra(now)
    }

    fn admit(&mut self, hello: &Hello, _now: Instant) -> Result<Admitted, Refusal> {
        self.tokens.admit(hello)
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("limits_local", &self.limits_local).finish_non_exhaustive()
    }
}
