//! Authorizes room requests: rate-limits guesses at codes and verifies tokens.
//!
//! A hub asks its [`AdmissionPolicy`]. All hubs of one server share one policy. A client thus gets one budget
//! in total, and a one-use token is valid once in total. [`Guesses`] does the counting. Token verification
//! needs the time of day and a key, so a server with a key brings its own policy.

use crate::budget::{Budget, Budgets, Rate};
use core::fmt;
use core::time::Duration;
use parlor_proto::Instant;
use parlor_proto::wire::handshake::{Auth, Hello, Refusal};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// The source of a connection, for budgets: a number that the driver derives from the address. It is the same
/// for all addresses that one person can easily send from. The upper 48 bits name the neighbourhood, the
/// wider range that a paying attacker can also send from. A hub never learns the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(pub u64);

impl Origin {
    /// This machine itself: exempt from all budgets.
    pub const LOCAL: Origin = Origin(0);

    /// Returns the neighbourhood, which nearby origins share.
    pub const fn neighbourhood(self) -> u64 {
        self.0 >> 16
    }
}

/// A client that the policy admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// The user that a token vouched for, of at most [`USER_BYTES_MAX`](parlor_proto::limits::USER_BYTES_MAX)
    /// bytes; `None` for an anonymous client.
    pub user: Option<String>,
    /// The token, if it is good once. A cluster remembers it if it opens a room.
    pub token: Option<UsedToken>,
}

/// A token that is good once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedToken {
    /// A digest by which it is known again.
    pub digest: [u8; 16],
    /// For how long it must be remembered.
    pub remember: Duration,
}

/// A guess charged to its budgets. Until settled it counts as a wrong guess in flight.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a guess that is never settled stays charged"]
pub struct Guess {
    origin: Origin,
    /// Whether it came with a token: accounts and anonymous clients of one origin have separate budgets.
    has_token: bool,
    user: Option<UserKey>,
}

/// Names the budget of an authenticated user, independent of the origin: a hash that the policy makes of
/// game, environment and user. Where strangers choose user names, the hash must be collision-resistant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserKey(pub u64);

/// The result of a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Right, or nothing was looked up: the charge is refunded.
    Right,
    /// Wrong: the charge stays until time pays it back.
    Wrong,
}

/// Decides which clients may open or join a hub's rooms.
pub trait AdmissionPolicy: fmt::Debug + Send {
    /// Charges a guess before any lookup. `has_token` says whether a token comes with it.
    ///
    /// # Errors
    /// How long the client must wait.
    fn begin_guess(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration>;

    /// Charges a guess to the user of its token as well.
    ///
    /// # Errors
    /// How long the user must wait. The guess stays charged as before and must be settled.
    fn charge_user(
        &mut self,
        guess: &mut Guess,
        hello: &Hello,
        user: &str,
        now: Instant,
    ) -> Result<(), Duration>;

    /// Settles a guess.
    fn settle_guess(&mut self, guess: Guess, outcome: Outcome, now: Instant);

    /// Returns how many letters to add to the code length that the room count demands.
    fn code_letters_extra(&self, now: Instant) -> usize;

    /// Checks whether the hello's token, or its lack of one, allows the request. Consumes a one-use token.
    ///
    /// # Errors
    /// The refusal to send. It does not say what is wrong with a token.
    fn admit(&mut self, hello: &Hello, now: Instant) -> Result<Admitted, Refusal>;

    /// Checks whether the log of a new match may be kept. The match counts until
    /// [`keep_ended`](Self::keep_ended). Default: allowed for every client.
    ///
    /// # Errors
    /// The refusal to send.
    fn keep(&mut self, hello: &Hello, admitted: &Admitted) -> Result<(), Refusal> {
        let _ = (hello, admitted);
        Ok(())
    }

    /// Uncounts a match that [`keep`](Self::keep) counted, at its end.
    fn keep_ended(&mut self, app: &str, environment: &str, user: &str) {
        let _ = (app, environment, user);
    }
}

/// Admits every client anonymously, without a key; guesses are counted.
#[derive(Debug)]
pub struct AdmitAll {
    guesses: Guesses,
}

impl AdmitAll {
    /// Creates the policy.
    pub fn new(guesses: Guesses) -> Self {
        AdmitAll { guesses }
    }
}

impl AdmissionPolicy for AdmitAll {
    fn begin_guess(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration> {
        self.guesses.begin(origin, has_token, now)
    }

    fn charge_user(
        &mut self,
        _guess: &mut Guess,
        _hello: &Hello,
        _user: &str,
        _now: Instant,
    ) -> Result<(), Duration> {
        // It never admits a user with a token.
        Ok(())
    }

    fn settle_guess(&mut self, guess: Guess, outcome: Outcome, now: Instant) {
        self.guesses.settle(guess, outcome, now);
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

/// Rate limits for wrong guesses (threat 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessLimits {
    /// Wrong guesses of all clients together. Beyond this rate the server counts as under a code search.
    pub all: Rate,
    /// For each origin, neighbourhood and user in normal operation.
    pub calm: PlaceLimits,
    /// The same during a code search.
    pub searched: PlaceLimits,
    /// Letters added to codes drawn during a search. Each makes a code 31 times as hard to guess.
    pub code_letters_extra: usize,
}

/// Rate limits for wrong guesses of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceLimits {
    /// One origin, for its clients without a token.
    pub origin: Rate,
    /// One origin, for all its clients with a token together. Larger than `user`, so that one user alone
    /// cannot lock out the others of its network.
    pub users_of_origin: Rate,
    /// One user, wherever it connects from.
    pub user: Rate,
    /// One neighbourhood: all its origins, with and without tokens.
    pub neighbourhood: Rate,
}

impl Default for GuessLimits {
    /// One origin may guess wrong 20 times, then 240 times an hour: it finds one of the rooms with drawn
    /// codes in about 40 hours. With accounts it may 60 times, then 720 times an hour.
    fn default() -> Self {
        let rate = |burst, ms| Rate { burst, interval: Duration::from_millis(ms) };
        let limits = |burst, ms| PlaceLimits {
            origin: rate(burst, ms),
            users_of_origin: rate(2 * burst, ms / 2),
            user: rate(burst, ms),
            neighbourhood: rate(4 * burst, ms / 4),
        };
        GuessLimits {
            all: rate(600, 500),
            calm: PlaceLimits { neighbourhood: rate(80, 4_000), ..limits(20, 15_000) },
            searched: limits(4, 60_000),
            code_letters_extra: 2,
        }
    }
}

/// What a budget belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Origin(u64),
    UsersOfOrigin(u64),
    User(u64),
    Neighbourhood(u64),
}

impl PlaceLimits {
    fn of(&self, place: Place) -> Rate {
        match place {
            Place::Origin(_) => self.origin,
            Place::UsersOfOrigin(_) => self.users_of_origin,
            Place::User(_) => self.user,
            Place::Neighbourhood(_) => self.neighbourhood,
        }
    }
}

impl Guess {
    /// Returns the places that the guess is charged to.
    fn places(&self) -> impl Iterator<Item = Place> + Clone + use<> {
        let Guess { origin, has_token, user } = *self;
        let own = if has_token { Place::UsersOfOrigin(origin.0) } else { Place::Origin(origin.0) };
        let user = user.map(|UserKey(key)| Place::User(key));
        let all = [Some(own), Some(Place::Neighbourhood(origin.neighbourhood())), user];
        all.into_iter().flatten().filter(move |_| origin != Origin::LOCAL)
    }
}

/// The wait when guesses in flight use up the budget: they are settled within moments.
const UNDER_WAY_WAIT: Duration = Duration::from_secs(1);

/// Counts wrong guesses.
///
/// A guess is charged before any lookup, and refunded if it was right. However many guesses are in flight, no
/// more of them are wrong than the budget allows. If the origin, neighbourhood or user is over budget,
/// nothing is looked up: the answer is the same for right and wrong codes.
///
/// The total of wrong guesses blocks no client by itself. If it did, an attacker with many addresses could
/// close the server to all players. Instead it shrinks every place's budget and lengthens new codes. A player
/// who knows a code still gets in, even after a typo or two; a distributed search is limited per address.
#[derive(Debug)]
pub struct Guesses {
    limits: GuessLimits,
    all: Budget,
    /// Whether `all` ran out and is not yet half paid back. Without this hysteresis a search would toggle the
    /// state all the time and get the larger budgets each time.
    is_searched: bool,
    origins: Budgets,
    users_of_origins: Budgets,
    users: Budgets,
    neighbourhoods: Budgets,
    /// Guesses in flight, by place. A place has at most its burst.
    under_way: BTreeMap<Place, u32>,
}

impl Guesses {
    /// Creates empty budgets. `random` returns unpredictable numbers, uniform over 64 bits.
    pub fn new(limits: GuessLimits, mut random: impl FnMut() -> u64) -> Self {
        let mut budgets = || Budgets::new(&mut random);
        Guesses {
            limits,
            all: Budget::default(),
            is_searched: false,
            origins: budgets(),
            users_of_origins: budgets(),
            users: budgets(),
            neighbourhoods: budgets(),
            under_way: BTreeMap::new(),
        }
    }

    /// Charges a guess before any lookup. `has_token` says whether a token comes with it.
    ///
    /// # Errors
    /// How long the client must wait.
    pub fn begin(&mut self, origin: Origin, has_token: bool, now: Instant) -> Result<Guess, Duration> {
        let guess = Guess { origin, has_token, user: None };
        self.charge(guess.places(), now)?;
        Ok(guess)
    }

    /// Charges a guess to the user of its token as well.
    ///
    /// # Errors
    /// How long the user must wait. The guess stays charged as before and must be settled.
    pub fn charge_user(&mut self, guess: &mut Guess, user: UserKey, now: Instant) -> Result<(), Duration> {
        if guess.origin == Origin::LOCAL || guess.user.is_some() {
            return Ok(());
        }
        self.charge([Place::User(user.0)].into_iter(), now)?;
        guess.user = Some(user);
        Ok(())
    }

    /// Settles a guess.
    pub fn settle(&mut self, guess: Guess, outcome: Outcome, now: Instant) {
        for place in guess.places() {
            if let Entry::Occupied(mut under_way) = self.under_way.entry(place) {
                *under_way.get_mut() -= 1;
                if *under_way.get() == 0 {
                    under_way.remove();
                }
            }
        }
        if outcome == Outcome::Wrong && guess.origin != Origin::LOCAL {
            self.spend(&guess, now);
        }
    }

    /// Counts a guess as in flight at all of these places, or at none of them.
    fn charge(&mut self, places: impl Iterator<Item = Place> + Clone, now: Instant) -> Result<(), Duration> {
        let wait = places.clone().map(|place| self.wait(place, now)).max().unwrap_or_default();
        if !wait.is_zero() {
            return Err(wait);
        }
        for place in places {
            *self.under_way.entry(place).or_default() += 1;
        }
        Ok(())
    }

    /// Returns how long a place waits before one more guess may be in flight; zero if it need not wait.
    fn wait(&self, place: Place, now: Instant) -> Duration {
        let rate = self.limits_at(now).of(place);
        let (budgets, key) = self.budgets(place);
        let under_way = self.under_way.get(&place).copied().unwrap_or_default();
        let wait = budgets.wait(key, rate, now);
        if !wait.is_zero() || budgets.wait_after(key, under_way, rate, now).is_zero() {
            wait
        } else {
            UNDER_WAY_WAIT
        }
    }

    fn spend(&mut self, guess: &Guess, now: Instant) {
        let limits = self.limits_at(now);
        self.is_searched = self.is_searched(now);
        self.all.spend(self.limits.all, now);
        self.is_searched |= !self.all.wait(self.limits.all, now).is_zero();
        for place in guess.places() {
            let (budgets, key) = match place {
                Place::Origin(key) => (&mut self.origins, key),
                Place::UsersOfOrigin(key) => (&mut self.users_of_origins, key),
                Place::User(key) => (&mut self.users, key),
                Place::Neighbourhood(key) => (&mut self.neighbourhoods, key),
            };
            budgets.spend(key, limits.of(place), now);
        }
    }

    fn budgets(&self, place: Place) -> (&Budgets, u64) {
        match place {
            Place::Origin(key) => (&self.origins, key),
            Place::UsersOfOrigin(key) => (&self.users_of_origins, key),
            Place::User(key) => (&self.users, key),
            Place::Neighbourhood(key) => (&self.neighbourhoods, key),
        }
    }

    /// Returns how many letters to add to the code length that the room count demands.
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
