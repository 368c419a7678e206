//! Measurements of honest clients, separately with and without the attacker.

use crate::histogram::Histogram;
use crate::pacer::Clock;
use parlor_impair::Rng;
use parlor_proto::Instant;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// How old a message of a member is at the others.
    RelayedMessage,
    /// How old the host's state is at the others.
    State,
    /// How long a move takes until it is stored and acknowledged.
    TurnMove,
    /// How long a request to the services takes that hashes no password.
    ServiceRequest,
    /// How long a sign-in with a password takes.
    PasswordSignIn,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] =
        [Kind::RelayedMessage, Kind::State, Kind::TurnMove, Kind::ServiceRequest, Kind::PasswordSignIn];

    /// Whether it is of rooms in memory, which have enough of it to look at each way of attacking.
    const fn is_of_rooms(self) -> bool {
        matches!(self, Kind::RelayedMessage | Kind::State)
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Kind::RelayedMessage => "relayed message",
            Kind::State => "state",
            Kind::TurnMove => "turn move",
            Kind::ServiceRequest => "service request",
            Kind::PasswordSignIn => "password sign-in",
        }
    }
}

/// Whether the attacker is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Attack {
    Off,
    On,
}

impl Attack {
    pub(super) const ALL: [Attack; 2] = [Attack::Off, Attack::On];

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Attack::Off => "off",
            Attack::On => "on",
        }
    }
}

/// What all honest clients write into. They share one thread.
pub(super) struct Record {
    pub(super) clock: Clock,
    attack: Cell<Attack>,
    /// Just after the attacker began or stopped, nothing counts for either.
    is_settling: Cell<bool>,
    /// In which way the attacker is at work.
    way: Cell<Option<&'static str>>,
    seen: RefCell<Seen>,
    random: RefCell<Rng>,
}

#[derive(Default)]
struct Seen {
    times: BTreeMap<(Kind, Attack), Histogram>,
    /// Of rooms, while the attacker was at work in each way.
    by_way: BTreeMap<(&'static str, Kind), Histogram>,
    /// Of the last minute.
    minute: BTreeMap<Kind, Histogram>,
    errors: BTreeMap<(String, Attack), u64>,
    minute_errors: u64,
}

impl Record {
    pub(super) fn new(seed: u64) -> Self {
        Record {
            clock: Clock::start(),
            attack: Cell::new(Attack::Off),
            is_settling: Cell::new(true),
            way: Cell::new(None),
            seen: RefCell::default(),
            random: RefCell::new(Rng::new(seed)),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// A span between two, drawn from the seed.
    pub(super) fn between_ms(&self, low: u16, high: u16) -> Duration {
        Duration::from_secs_f32(self.random.borrow_mut().between(low.into(), high.into()) / 1e3)
    }

    /// From here on it counts for the attacker at work, in one of its ways, or not; after it has `settled` alone.
    pub(super) fn enter(&self, attack: Attack, way: Option<&'static str>, settled: bool) {
        self.attack.set(attack);
        self.way.set(way);
        self.is_settling.set(!settled);
    }

    /// Counts a time.
    pub(super) fn note(&self, kind: Kind, span: Duration) {
        if self.is_settling.get() {
            return;
        }
        let seen = &mut *self.seen.borrow_mut();
        seen.times.entry((kind, self.attack.get())).or_insert_with(Histogram::new).note(span);
        seen.minute.entry(kind).or_insert_with(Histogram::new).note(span);
        if let Some(way) = self.way.get().filter(|_| kind.is_of_rooms()) {
            seen.by_way.entry((way, kind)).or_insert_with(Histogram::new).note(span);
        }
    }

    /// Counts the time since `began`.
    pub(super) fn note_since(&self, kind: Kind, began: Instant) {
        self.note(kind, self.now().saturating_since(began));
    }

    /// Counts something that should not have happened to an honest client.
    pub(super) fn error(&self, kind: String) {
        let seen = &mut *self.seen.borrow_mut();
        *seen.errors.entry((kind, self.attack.get())).or_default() += 1;
        seen.minute_errors += 1;
    }

    /// How many times were counted, and those that half and 99 of 100 did not exceed, in ms.
    pub(super) fn figures(&self, kind: Kind, attack: Attack) -> (u64, Option<f64>, Option<f64>) {
        let seen = self.seen.borrow();
        let times = seen.times.get(&(kind, attack));
        times.map_or((0, None, None), |times| (times.total(), times.ms(50), times.ms(99)))
    }

    /// How many times were counted while the attacker was at work in each way, and those that 99 of 100 did not exceed, in ms.
    pub(super) fn by_way(&self) -> Vec<(&'static str, Kind, u64, Option<f64>)> {
        let seen = self.seen.borrow();
        seen.by_way.iter().map(|((way, kind), times)| (*way, *kind, times.total(), times.ms(99))).collect()
    }

    /// The 99th percentiles in ms and the errors since this was asked last.
    pub(super) fn take_minute(&self) -> ([Option<f64>; 5], u64) {
        let seen = &mut *self.seen.borrow_mut();
        let p99 = Kind::ALL.map(|kind| seen.minute.get(&kind).and_then(|times| times.ms(99)));
        seen.minute.values_mut().for_each(Histogram::clear);
        (p99, std::mem::take(&mut seen.minute_errors))
    }

    /// What should not have happened, how often without the attacker and with it.
    pub(super) fn errors(&self) -> BTreeMap<String, [u64; 2]> {
        let mut errors: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for ((kind, attack), count) in &self.seen.borrow().errors {
            errors.entry(kind.clone()).or_default()[usize::from(*attack == Attack::On)] += count;
        }
        errors
    }
}
