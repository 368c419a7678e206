//! Access control that all ports and shards of a server share: handshakes, guesses, tokens, kept matches.

use crate::admission::Tokens;
use crate::admission::ticket::Tickets;
use crate::clock::Clock;
use crate::handshakes::{Handshakes, Verdict};
use crate::kept::{KEPT_MATCHES, KeptQuota};
use crate::mutex::lock;
use crate::origin;
use crate::realm::{Realm, environment_of};
use crate::system::unix_s;
use core::fmt;
use core::net::IpAddr;
use core::time::Duration;
use parlor_hub::Origin;
use parlor_hub::admission_policy::{AdmissionPolicy, Admitted, Guess, Guesses, Outcome, UserKey};
use parlor_proto::Instant;
use parlor_proto::wire::handshake::{Hello, Refusal};
use ring::digest::{SHA256, digest};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Cheap to clone. Its locks are held briefly, and never while relaying.
#[derive(Clone)]
pub struct Access {
    clock: Clock,
    /// Whether budgets apply to local processes too.
    limits_local: bool,
    handshakes: Arc<Mutex<Handshakes>>,
    guesses: Arc<Mutex<Guesses>>,
    tokens: Arc<Tokens>,
    /// Guesses that were refused before the lookup, because the budget was used up.
    guesses_refused: Arc<AtomicU64>,
    kept: KeptQuota,
}

impl Access {
    pub(crate) fn new(
        clock: Clock,
        limits_local: bool,
        handshakes: Handshakes,
        guesses: Guesses,
        tokens: Tokens,
    ) -> Self {
        Access {
            clock,
            limits_local,
            handshakes: Arc::new(Mutex::new(handshakes)),
            guesses: Arc::new(Mutex::new(guesses)),
            tokens: Arc::new(tokens),
            guesses_refused: Arc::default(),
            kept: KeptQuota::new(KEPT_MATCHES),
        }
    }

    /// Sets how many matches of one account may be kept at once.
    pub(crate) fn keeping(self, at_once: usize) -> Self {
        Access { kept: KeptQuota::new(at_once), ..self }
    }

    /// The quota of kept matches.
    pub fn kept(&self) -> &KeptQuota {
        &self.kept
    }

    /// Accepts tickets of the server's own accounts from now on.
    pub fn accept_tickets(&self, tickets: Tickets) {
        self.tokens.accept_tickets(tickets);
    }

    /// The tickets of the server's own accounts, if it has any.
    pub fn tickets(&self) -> Option<&Tickets> {
        self.tokens.tickets()
    }

    /// The origin whose budgets an address uses.
    pub(crate) fn origin(&self, addr: IpAddr) -> Origin {
        if addr.to_canonical().is_loopback() && !self.limits_local { Origin::LOCAL } else { origin::of(addr) }
    }

    /// The origin whose budgets a web page's request uses. It is never this machine itself: the page's author
    /// may be anywhere.
    pub(crate) fn origin_of_page(addr: IpAddr) -> Origin {
        origin::of(addr)
    }

    /// Decides whether a handshake with an address may begin.
    pub(crate) fn handshake(&self, addr: IpAddr, is_proven: bool) -> Verdict {
        lock(&self.handshakes).decide(self.origin(addr), is_proven, self.clock.now())
    }

    /// Decides whether a web page's connection from this machine may continue, and charges it like a
    /// handshake. It was accepted as a program's.
    pub(crate) fn connection_of_page(&self, addr: IpAddr) -> Verdict {
        lock(&self.handshakes).decide(Self::origin_of_page(addr), true, self.clock.now())
    }

    /// Charges a guess at a room's code, a password or any other secret, before the lookup.
    ///
    /// # Errors
    /// The time until the next guess is allowed.
    pub fn guess(&self, origin: Origin) -> Result<OpenGuess, Duration> {
        self.open_guess(origin, false)
    }

    /// As [`Access::guess`], by an account. An account has its own budget, apart from that of strangers at
    /// its address.
    pub fn guess_of(&self, origin: Origin, realm: &Realm, account: &str) -> Result<OpenGuess, Duration> {
        let mut guess = self.open_guess(origin, true)?;
        let user = user_key(realm.app(), realm.environment(), account);
        let charged = match &mut guess.guess {
            Some(guess) => lock(&self.guesses).charge_user(guess, user, self.clock.now()),
            None => Ok(()),
        };
        match charged {
            Ok(()) => Ok(guess),
            Err(wait) => {
                guess.settle(Outcome::Right);
                Err(self.refused(wait))
            }
        }
    }

    fn open_guess(&self, origin: Origin, has_token: bool) -> Result<OpenGuess, Duration> {
        let begun = lock(&self.guesses).begin(origin, has_token, self.clock.now());
        let guess = begun.map_err(|wait| self.refused(wait))?;
        Ok(OpenGuess { access: self.clone(), guess: Some(guess) })
    }

    /// How many guesses were refused.
    pub(crate) fn guesses_refused(&self) -> u64 {
        self.guesses_refused.load(Ordering::Relaxed)
    }

    fn refused(&self, wait: Duration) -> Duration {
        self.guesses_refused.fetch_add(1, Ordering::Relaxed);
        wait
    }
}

/// A pending guess of a running operation. Dropping it counts as a wrong guess: the caller disconnected, or
/// the operation failed.
#[must_use = "a guess that is dropped counts as wrong"]
pub struct OpenGuess {
    access: Access,
    guess: Option<Guess>,
}

impl OpenGuess {
    /// Settles the guess by a lookup: right if something was found, wrong if nothing was, neither if it
    /// failed.
    pub fn settle_by<T, E>(self, found: &Result<Option<T>, E>) {
        self.settle(if matches!(found, Ok(None)) { Outcome::Wrong } else { Outcome::Right });
    }

    /// The guess was right, or nothing was looked up.
    pub fn was_right(self) {
        self.settle(Outcome::Right);
    }

    /// The guess was wrong.
    pub fn was_wrong(self) {
        self.settle(Outcome::Wrong);
    }

    fn settle(mut self, outcome: Outcome) {
        self.end(outcome);
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(guess) = self.guess.take() {
            lock(&self.access.guesses).settle(guess, outcome, self.access.clock.now());
        }
    }
}

impl Drop for OpenGuess {
    fn drop(&mut self) {
        self.end(Outcome::Wrong);
    }
}

impl AdmissionPolicy for Access {
    fn begin_guess(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration> {
        let begun = lock(&self.guesses).begin(origin, has_token, now);
        begun.map_err(|wait| self.refused(wait))
    }

    fn charge_user(
        &mut self,
        guess: &mut Guess,
        hello: &Hello,
        user: &str,
        now: Instant,
    ) -> Result<(), Duration> {
        // The services use the same name of the environment, so a user has one budget.
        let user = user_key(&hello.app, environment_of(&hello.environment), user);
        let charged = lock(&self.guesses).charge_user(guess, user, now);
        charged.map_err(|wait| self.refused(wait))
    }

    fn settle_guess(&mut self, guess: Guess, outcome: Outcome, now: Instant) {
        lock(&self.guesses).settle(guess, outcome, now);
    }

    fn code_letters_extra(&self, now: Instant) -> usize {
        lock(&self.guesses).code_letters_extra(now)
    }

    fn admit(&mut self, hello: &Hello, _now: Instant) -> Result<Admitted, Refusal> {
        self.tokens.admit(hello)
    }

    fn keep(&mut self, hello: &Hello, admitted: &Admitted) -> Result<(), Refusal> {
        self.kept.open(hello, admitted, unix_s())
    }

    fn keep_ended(&mut self, app: &str, environment: &str, user: &str) {
        self.kept.ended(app, environment, user);
    }
}

/// The upper bits of a digest. A game may let its players choose their user; none may find one that shares
/// the budget of another.
fn user_key(app: &str, environment: &str, user: &str) -> UserKey {
    let digest = digest(&SHA256, format!("{app}\n{environment}\n{user}").as_bytes());
    let key = digest.as_ref().iter().take(8).fold(0, |key, byte| key << 8 | u64::from(*byte));
    UserKey(key)
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("limits_local", &self.limits_local).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;
    use parlor_hub::admission_policy::GuessLimits;

    #[test]
    fn threat_48_a_guess_that_nobody_waits_for_stays_charged() {
        let handshakes = Handshakes::new(1, 1, || 1);
        let guesses = Guesses::new(GuessLimits::default(), || 1);
        let access = Access::new(
            Clock::start(),
            false,
            handshakes,
            guesses,
            Tokens::new(None, Time::default()).unwrap(),
        );
        let burst = GuessLimits::default().calm.origin.burst;
        for guess in [OpenGuess::was_right, drop] {
            for _ in 0..burst {
                guess(access.guess(Origin(7)).unwrap());
            }
        }
        assert!(access.guess(Origin(7)).is_err());
    }
}
