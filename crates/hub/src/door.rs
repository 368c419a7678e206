//! Who may ask for a room at all: guesses at codes are counted, and tokens are verified.
//!
//! A hub asks its [`Doorkeeper`]. Several hubs of one server share theirs, so that nobody gets a budget from each of them
//! and no token is good on each of them once. [`Guesses`] is the counting; tokens want the time of day and a key, so a
//! server brings its own doorkeeper if it has a key.

use crate::budget::{Budget, Budgets, Rate};
use core::fmt;
use core::time::Duration;
use parlor_proto::Instant;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};

/// Where a connection comes from, as far as budgets are concerned: a number that its driver makes of the address, the same
/// for all that one person can easily send from. The upper 48 bits name its neighbourhood, from which somebody who pays
/// for it can send as well. A hub never learns the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub u64);

impl Origin {
    /// This machine itself: no budget holds it back.
    pub const LOCAL: Origin = Origin(0);

    /// The same for all origins nearby.
    #[must_use]
    pub const fn neighbourhood(self) -> u64 {
        self.0 >> 16
    }
}

/// Who was let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// The user that a token vouched for, of at most [`USER_BYTES_MAX`](parlor_proto::limits::USER_BYTES_MAX) bytes; `None` for
    /// somebody anonymous.
    pub user: Option<String>,
}

/// Stands before a hub's rooms.
pub trait Doorkeeper: fmt::Debug + Send {
    /// Whether somebody may have a code looked up now.
    ///
    /// # Errors
    /// How long they must wait.
    fn may_guess(&mut self, origin: Origin, now: Instant) -> Result<(), Duration>;

    /// Somebody who was allowed to guess guessed wrong.
    fn guessed_wrong(&mut self, origin: Origin, now: Instant);

    /// By how many letters new codes are longer than the number of rooms demands.
    fn code_letters_extra(&self, now: Instant) -> usize;

    /// Whether the hello's token, or that it has none, lets somebody ask for what it asks. A token is used up by this.
    ///
    /// # Errors
    /// What to answer. It does not say what is wrong with a token.
    fn admit(&mut self, hello: &Hello, now: Instant) -> Result<Admitted, Refusal>;
}

/// A doorkeeper without a key: guesses are counted, everybody is anonymous.
#[derive(Debug)]
pub struct OpenDoor {
    guesses: Guesses,
}

impl OpenDoor {
    /// A doorkeeper who has seen nobody yet.
    #[must_use]
    pub fn new(guesses: Guesses) -> Self {
        OpenDoor { guesses }
    }
}

impl Doorkeeper for OpenDoor {
    fn may_guess(&mut self, origin: Origin, now: Instant) -> Result<(), Duration> {
        self.guesses.may(origin, now)
    }

    fn guessed_wrong(&mut self, origin: Origin, now: Instant) {
        self.guesses.wrong(origin, now);
    }

    fn code_letters_extra(&self, now: Instant) -> usize {
        self.guesses.code_letters_extra(now)
    }

    fn admit(&mut self, hello: &Hello, _now: Instant) -> Result<Admitted, Refusal> {
        match hello.auth {
            Auth::Anonymous => Ok(Admitted::default()),
            // There is no key with which a token could be verified.
            Auth::Token(_) => Err(Refusal::Unauthorized),
        }
    }
}

/// How many wrong guesses are let through (threat 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessLimits {
    /// Wrong guesses of all together, beyond which the server is taken to be searched through.
    pub all: Rate,
    /// For each origin and neighbourhood, as long as it is not.
    pub calm: PlaceLimits,
    /// For each while it is.
    pub searched: PlaceLimits,
    /// By how many letters codes drawn meanwhile are longer. Each makes them 31 times as hard to guess.
    pub code_letters_extra: usize,
}

/// Wrong guesses that one place may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceLimits {
    /// One origin.
    pub origin: Rate,
    /// One neighbourhood, with all its origins.
    pub neighbourhood: Rate,
}

impl Default for GuessLimits {
    /// One origin guesses wrong 20 times and then 240 times an hour, so that it finds one of the rooms whose codes were
    /// drawn in about 40 hours.
    fn default() -> Self {
        let rate = |burst, secs| Rate { burst, interval: Duration::from_secs(secs) };
        GuessLimits {
            all: Rate { burst: 600, interval: Duration::from_millis(500) },
            calm: PlaceLimits { origin: rate(20, 15), neighbourhood: rate(80, 4) },
            searched: PlaceLimits { origin: rate(4, 60), neighbourhood: rate(16, 15) },
            code_letters_extra: 2,
        }
    }
}

/// Counts wrong guesses.
///
/// Whoever owes too much, from its origin or its neighbourhood, has nothing looked up, whether the code is right or wrong:
/// the answer tells nothing. Right codes cost nothing.
///
/// What all guess wrong together holds nobody back by itself. If it did, whoever guesses from many addresses could close
/// the server to everybody. It makes every place's budget small instead, and the codes drawn meanwhile longer: somebody
/// who knows a code gets in at once, and after a slip or two as well, while a search from many addresses slows down to what
/// their number gives.
#[derive(Debug)]
pub struct Guesses {
    limits: GuessLimits,
    all: Budget,
    /// Whether `all` was used up, and has not been paid back by half since. Without the half a search would change from one
    /// state into the other all the time, and use the larger budgets each time.
    is_searched: bool,
    origins: Budgets,
    neighbourhoods: Budgets,
}

impl Guesses {
    /// Nobody has guessed yet. `random` gives numbers that are even over 64 bits and that nobody can guess.
    pub fn new(limits: GuessLimits, mut random: impl FnMut() -> u64) -> Self {
        Guesses {
            limits,
            all: Budget::default(),
            is_searched: false,
            origins: Budgets::new(&mut random),
            neighbourhoods: Budgets::new(&mut random),
        }
    }

    /// Whether somebody may have a code looked up now.
    ///
    /// # Errors
    /// How long they must wait.
    pub fn may(&self, origin: Origin, now: Instant) -> Result<(), Duration> {
        if origin == Origin::LOCAL {
            return Ok(());
        }
        let limits = self.limits_at(now);
        let own = self.origins.wait(origin.0, limits.origin, now);
        let near = self.neighbourhoods.wait(origin.neighbourhood(), limits.neighbourhood, now);
        let wait = own.max(near);
        if wait.is_zero() { Ok(()) } else { Err(wait) }
    }

    /// Somebody who was allowed to guess guessed wrong.
    pub fn wrong(&mut self, origin: Origin, now: Instant) {
        if origin == Origin::LOCAL {
            return;
        }
        let limits = self.limits_at(now);
        self.is_searched = self.is_searched(now);
        self.all.spend(self.limits.all, now);
        self.is_searched |= !self.all.wait(self.limits.all, now).is_zero();
        self.origins.spend(origin.0, limits.origin, now);
        self.neighbourhoods.spend(origin.neighbourhood(), limits.neighbourhood, now);
    }

    /// By how many letters new codes are longer than the number of rooms demands.
    #[must_use]
    pub fn code_letters_extra(&self, now: Instant) -> usize {
        if self.is_searched(now) { self.limits.code_letters_extra } else { 0 }
    }

    fn is_searched(&self, now: Instant) -> bool {
        let Rate { burst, interval } = self.limits.all;
        self.is_searched && self.all.owes(now) > interval * burst / 2
    }

    fn limits_at(&self, now: Instant) -> PlaceLimits {
        if self.is_searched(now) { self.limits.searched } else { self.limits.calm }
    }
}

#[cfg(test)]
mod tests;
