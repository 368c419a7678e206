//! Limits open connections: in all, for one address, and for its neighbourhood.
//!
//! A connection costs its client almost nothing, so without a limit one address could take every place
//! (threat 47). A reserve beside the places serves requests that must always be answered: health checks and
//! operators (`http/reserve.rs`).

use crate::mutex::lock;
use parlor_hub::Origin;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// By default one address may have one in this many places.
const ORIGIN_SHARE: usize = 8;
/// Minimum of an address's default share.
const ORIGIN_LEAST: usize = 16;
/// The share of a neighbourhood, in shares of an address.
const NEIGHBOURHOOD: usize = 4;
/// Places of the reserve.
const RESERVE: usize = 16;
/// Places of the reserve for one address.
const RESERVE_OF_ORIGIN: usize = 2;

/// The default number of places for one address.
pub(crate) fn share(places_max: usize) -> usize {
    (places_max / ORIGIN_SHARE).max(ORIGIN_LEAST)
}

/// Limits connections, and counts those that it rejected. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimit {
    counts: Arc<Mutex<ConnectionCounts>>,
    turned_away: Arc<AtomicU64>,
}

/// Each change is one step. No count of an origin exceeds `taken`.
#[derive(Debug)]
struct ConnectionCounts {
    max: usize,
    of_origin_max: usize,
    taken: usize,
    origins: FxHashMap<u64, usize>,
    neighbourhoods: FxHashMap<u64, usize>,
    is_shut: bool,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    counts: Arc<Mutex<ConnectionCounts>>,
    /// The origin that it counts for, once known.
    origin: Option<Origin>,
}

/// The limits of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionLimits {
    pub(crate) tcp: TcpLimit,
    pub(crate) quic: ConnectionLimit,
    /// The limit of keep-alive connections.
    pub(crate) staying: ConnectionLimit,
}

/// The general places, and the reserve.
#[derive(Clone, Debug)]
pub(crate) struct TcpLimit {
    pub(crate) places: ConnectionLimit,
    reserve: ConnectionLimit,
}

/// A place at a [`TcpLimit`], until it is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    _permit: Permit,
    /// Whether the place is of the reserve: it serves only requests that must be answered.
    pub(crate) is_of_reserve: bool,
}

impl ConnectionLimit {
    /// A limit of `max` places, of which one address may have `of_origin_max`.
    pub(crate) fn new(max: usize, of_origin_max: usize) -> Self {
        let (origins, neighbourhoods) = (FxHashMap::default(), FxHashMap::default());
        let counts =
            ConnectionCounts { max, of_origin_max, taken: 0, origins, neighbourhoods, is_shut: false };
        ConnectionLimit { counts: Arc::new(Mutex::new(counts)), turned_away: Arc::default() }
    }

    /// A limit of `max` places for all addresses together.
    pub(crate) fn for_all(max: usize) -> Self {
        Self::new(max, max)
    }

    /// Takes a place if one is free. If `origin` is not known yet, [`Permit::count_for`] must follow.
    pub(crate) fn enter(&self, origin: Option<Origin>) -> Option<Permit> {
        let permit = self.try_enter(origin);
        if permit.is_none() {
            self.turn_away();
        }
        permit
    }

    fn try_enter(&self, origin: Option<Origin>) -> Option<Permit> {
        let mut counts = lock(&self.counts);
        if counts.is_shut || counts.taken >= counts.max || origin.is_some_and(|origin| !counts.fits(origin)) {
            return None;
        }
        counts.taken += 1;
        if let Some(origin) = origin {
            counts.count(origin);
        }
        drop(counts);
        Some(Permit { counts: Arc::clone(&self.counts), origin })
    }

    /// Whether an address may have another place.
    pub(crate) fn fits(&self, origin: Origin) -> bool {
        lock(&self.counts).fits(origin)
    }

    /// Counts a connection rejected for another reason than a full server.
    pub(crate) fn turn_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Rejects all further connections.
    pub(crate) fn shut(&self) {
        lock(&self.counts).is_shut = true;
    }

    /// The number of taken places.
    pub(crate) fn taken(&self) -> usize {
        lock(&self.counts).taken
    }

    /// The number of rejected connections.
    pub(crate) fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }
}

impl TcpLimit {
    pub(crate) fn new(max: usize, of_origin_max: usize) -> Self {
        TcpLimit {
            places: ConnectionLimit::new(max, of_origin_max),
            reserve: ConnectionLimit::new(RESERVE, RESERVE_OF_ORIGIN),
        }
    }

    /// Takes a place, or one of the reserve. An address at its limit gets neither.
    pub(crate) fn enter(&self, origin: Origin) -> Option<Entered> {
        if let Some(permit) = self.places.try_enter(Some(origin)) {
            return Some(Entered { _permit: permit, is_of_reserve: false });
        }
        let reserved = self.places.fits(origin).then(|| self.reserve.try_enter(Some(origin))).flatten();
        if reserved.is_none() {
            self.places.turn_away();
        }
        reserved.map(|permit| Entered { _permit: permit, is_of_reserve: true })
    }
}

impl ConnectionCounts {
    /// Local processes have no limit: a local proxy forwards all clients.
    fn fits(&self, origin: Origin) -> bool {
        let taken = |counts: &FxHashMap<u64, usize>, key| counts.get(&key).copied().unwrap_or_default();
        origin == Origin::LOCAL
            || (taken(&self.origins, origin.0) < self.of_origin_max
                && taken(&self.neighbourhoods, origin.neighbourhood())
                    < self.of_origin_max.saturating_mul(NEIGHBOURHOOD))
    }

    fn count(&mut self, origin: Origin) {
        if origin == Origin::LOCAL {
            return;
        }
        *self.origins.entry(origin.0).or_default() += 1;
        *self.neighbourhoods.entry(origin.neighbourhood()).or_default() += 1;
    }

    fn give_back(&mut self, origin: Option<Origin>) {
        self.taken -= 1;
        if let Some(origin) = origin.filter(|origin| *origin != Origin::LOCAL) {
            take_one(&mut self.origins, origin.0);
            take_one(&mut self.neighbourhoods, origin.neighbourhood());
        }
    }
}

/// Counts of zero are removed, so the table is only as large as the number of connected addresses.
fn take_one(counts: &mut FxHashMap<u64, usize>, key: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

impl Permit {
    /// Counts the place for an address, unless it is already counted. False if the address is at its limit:
    /// then the caller must give up the place.
    pub(crate) fn count_for(&mut self, origin: Origin) -> bool {
        if self.origin.is_some() {
            return true;
        }
        let mut counts = lock(&self.counts);
        let fits = counts.fits(origin);
        if fits {
            counts.count(origin);
            self.origin = Some(origin);
        }
        fits
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.counts).give_back(self.origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn far_apart(number: u64) -> Origin {
        Origin((number + 1) << 16)
    }

    #[test]
    fn a_full_gate_counts_whom_it_turns_away_and_opens_again() {
        let limit = ConnectionLimit::for_all(1);
        let permit = limit.enter(None).expect("it is empty");
        assert!(limit.enter(None).is_none());
        assert_eq!((limit.taken(), limit.turned_away()), (1, 1));
        drop(permit);
        assert!(limit.enter(None).is_some());
        limit.shut();
        assert!(limit.enter(None).is_none());
    }

    #[test]
    fn threat_47_an_address_and_its_neighbours_have_a_share_and_give_it_back() {
        let limit = ConnectionLimit::new(1_000, 10);
        let enter =
            |origin| core::iter::from_fn(|| limit.enter(Some(origin))).take(1_000).collect::<Vec<_>>();
        let of_one = enter(far_apart(1));
        assert_eq!(of_one.len(), 10);
        let near: Vec<_> = (1..256).flat_map(|host| enter(Origin(far_apart(1).0 | host))).collect();
        assert_eq!(near.len(), 30, "four addresses' worth for all neighbours together");
        assert_eq!(enter(far_apart(2)).len(), 10);
        drop((of_one, near));
        assert_eq!(limit.taken(), 0);
        assert_eq!(enter(far_apart(1)).len(), 10);
        assert_eq!(enter(Origin::LOCAL).len(), 1_000, "this machine has no share");
        let counts = lock(&limit.counts);
        assert_eq!((counts.origins.len(), counts.neighbourhoods.len()), (0, 0), "nothing is kept of them");
    }

    #[test]
    fn threat_47_a_place_is_counted_for_an_address_once_that_is_shown() {
        let limit = ConnectionLimit::new(100, 1);
        let (mut first, mut second) = (limit.enter(None).unwrap(), limit.enter(None).unwrap());
        assert!(first.count_for(far_apart(1)) && first.count_for(far_apart(1)));
        assert!(!second.count_for(far_apart(1)) && !limit.fits(far_apart(1)));
        drop(second);
        assert_eq!(limit.taken(), 1);
        drop(first);
        assert!(limit.fits(far_apart(1)));
    }

    #[test]
    fn threat_47_the_reserve_is_for_those_who_have_not_taken_their_share() {
        let limit = TcpLimit::new(10, 10);
        let greedy: Vec<_> = (0..10).map(|_| limit.enter(far_apart(1)).unwrap()).collect();
        assert!(greedy.iter().all(|entered| !entered.is_of_reserve));
        assert!(limit.enter(far_apart(1)).is_none());
        let other: Vec<_> = (0..3).filter_map(|_| limit.enter(far_apart(2))).collect();
        assert_eq!(other.len(), RESERVE_OF_ORIGIN);
        assert!(other.iter().all(|entered| entered.is_of_reserve));
        assert_eq!((limit.places.taken(), limit.places.turned_away()), (10, 2));
    }
}
