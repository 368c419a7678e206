//! Seekers: players who look for a room.
//!
//! Each account has one search at a time, and each address a few (threat 51). Searches run concurrently. Only
//! a seeker without a result waits for its game's opening lock, under which it opens a room.

use crate::online::failure::{Failure, Kind};
use crate::store::AccountId;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use parlor_hub::Origin;
use parlor_server::embed::lock;
use parlor_server::realm::Realm;
use ring::digest::{SHA256, digest};
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};

/// Maximum number of concurrent searches of one address. Local processes have no such limit, as everywhere.
const OF_ADDRESS_MAX: usize = 8;
/// Maximum number of concurrent searches of one neighbourhood.
const OF_NEIGHBOURHOOD_MAX: usize = 4 * OF_ADDRESS_MAX;
/// Time to retry after a refused search.
const RETRY_AFTER: Duration = Duration::from_millis(250);
/// Number of opening locks. Games share them by hash.
const OPENING_LOCKS: usize = 64;
/// The entry time of an opening lock that nobody holds.
const NOBODY: u64 = u64::MAX;

/// All seekers of a server.
#[derive(Debug)]
pub(crate) struct Seekers {
    searching: Mutex<Searching>,
    opening_locks: Vec<OpeningLock>,
}

/// The current searches.
#[derive(Debug, Default)]
struct Searching {
    accounts: HashSet<(Realm, AccountId)>,
    addresses: HashMap<u64, usize>,
    neighbourhoods: HashMap<u64, usize>,
}

/// A running search, until this is dropped.
#[derive(Debug)]
pub(super) struct Seeking<'a> {
    seekers: &'a Seekers,
    account: (Realm, AccountId),
    origin: Origin,
}

/// The right to open a room of a game. One seeker has it at a time.
#[derive(Debug)]
pub(super) struct OpeningLock {
    number: usize,
    lock: AsyncMutex<()>,
    /// The entry time of the seeker that holds it, in ms of the services' clock.
    entered_ms: AtomicU64,
}

/// An opening lock, held until this is dropped.
#[derive(Debug)]
pub(super) struct Opening<'a> {
    held: &'a OpeningLock,
    _lock: MutexGuard<'a, ()>,
}

impl Seekers {
    pub(crate) fn new() -> Self {
        let new = |number| {
            let (lock, entered_ms) = (AsyncMutex::new(()), AtomicU64::new(NOBODY));
            OpeningLock { number, lock, entered_ms }
        };
        Seekers { searching: Mutex::default(), opening_locks: (0..OPENING_LOCKS).map(new).collect() }
    }

    /// Begins a search of an account.
    ///
    /// # Errors
    /// `too_often` if the account is already searching, or its address has too many searches.
    pub(super) fn begin(
        &self,
        origin: Origin,
        realm: &Realm,
        account: &AccountId,
    ) -> Result<Seeking<'_>, Failure> {
        let key = (realm.clone(), account.clone());
        let mut searching = lock(&self.searching);
        if searching.accounts.contains(&key) {
            return Err(too_often(
                "your account already looks for a room: wait for the answer, or ask again",
            ));
        }
        if !searching.fits(origin) {
            return Err(too_often("too many players of your network look for a room at once: ask again"));
        }
        searching.count(origin);
        searching.accounts.insert(key.clone());
        Ok(Seeking { seekers: self, account: key, origin })
    }

    /// The opening lock of a game. Each node and each build has the same number for it.
    pub(super) fn opening_lock(&self, realm: &Realm, game: &str) -> &OpeningLock {
        let hash = digest(&SHA256, format!("{}\n{game}", realm.path()).as_bytes());
        &self.opening_locks[usize::from(hash.as_ref()[0]) % OPENING_LOCKS]
    }
}

impl OpeningLock {
    /// Its name in the store.
    pub(super) fn name(&self) -> String {
        format!("opening/{}", self.number)
    }

    /// Returns the creation time from which on a search that begins after this call may miss rooms. `now_ms`
    /// reads the services' clock, which never goes back.
    pub(super) fn unseen_since_ms(&self, now_ms: impl FnOnce() -> u64) -> u64 {
        // A room is at most as old as its seeker's entry, and is stored before that seeker leaves. The clock
        // is read first: if there is no entry then, a later entry has a later time.
        let now_ms = now_ms();
        now_ms.min(self.entered_ms.load(Ordering::SeqCst))
    }

    /// Waits for the lock.
    pub(super) async fn enter(&self, now_ms: impl FnOnce() -> u64) -> Opening<'_> {
        let lock = self.lock.lock().await;
        self.entered_ms.store(now_ms(), Ordering::SeqCst);
        Opening { held: self, _lock: lock }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.held.entered_ms.store(NOBODY, Ordering::SeqCst);
    }
}

impl Searching {
    fn fits(&self, origin: Origin) -> bool {
        let under_way = |counts: &HashMap<u64, usize>, key| counts.get(&key).copied().unwrap_or_default();
        origin == Origin::LOCAL
            || (under_way(&self.addresses, origin.0) < OF_ADDRESS_MAX
                && under_way(&self.neighbourhoods, origin.neighbourhood()) < OF_NEIGHBOURHOOD_MAX)
    }

    fn count(&mut self, origin: Origin) {
        if origin != Origin::LOCAL {
            *self.addresses.entry(origin.0).or_default() += 1;
            *self.neighbourhoods.entry(origin.neighbourhood()).or_default() += 1;
        }
    }

    fn give_back(&mut self, origin: Origin) {
        if origin != Origin::LOCAL {
            take_one(&mut self.addresses, origin.0);
            take_one(&mut self.neighbourhoods, origin.neighbourhood());
        }
    }
}

/// Subtracts one. Counts of zero are removed, so the table is only as large as the number of running
/// searches.
fn take_one(counts: &mut HashMap<u64, usize>, key: u64) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}

impl Drop for Seeking<'_> {
    fn drop(&mut self) {
        let mut searching = lock(&self.seekers.searching);
        searching.accounts.remove(&self.account);
        searching.give_back(self.origin);
    }
}

fn too_often(sentence: &str) -> Failure {
    Failure::new(Kind::TooOften, "too_often", sentence).after(RETRY_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn realm() -> Realm {
        Realm::new("tanks", "production").unwrap()
    }

    fn account(number: usize) -> AccountId {
        AccountId::new(&format!("p{number}")).unwrap()
    }

    #[test]
    fn threat_51_an_account_searches_once_at_a_time_and_an_address_few_times() {
        let (seekers, origin) = (Seekers::new(), Origin(7));
        let begin = |from, number| seekers.begin(from, &realm(), &account(number));
        let mut searches: Vec<_> = (0..30).map(|number| begin(origin, number)).collect();
        let refused = searches.extract_if(.., |search| search.is_err()).count();
        assert_eq!((searches.len(), refused), (OF_ADDRESS_MAX, 30 - OF_ADDRESS_MAX));
        let refusal = begin(Origin(8), 0).unwrap_err();
        assert_eq!(refusal.code(), "too_often", "from another address, too");
        assert!(refusal.retry_after().is_some());
        let others = begin(Origin(8), 100).unwrap();
        let elsewhere = Realm::new("chess", "production").unwrap();
        assert!(
            seekers.begin(Origin(8), &elsewhere, &account(0)).is_ok(),
            "an id is an account in its realm"
        );
        drop((searches, others));
        assert!(begin(origin, 0).is_ok());
        let searching = lock(&seekers.searching);
        assert!(searching.accounts.is_empty() && searching.addresses.is_empty());
        assert!(searching.neighbourhoods.is_empty(), "what is over is forgotten");
    }

    #[test]
    fn threat_51_the_processes_of_this_machine_share_no_bound_but_that_of_an_account() {
        let seekers = Seekers::new();
        let begin = |number| seekers.begin(Origin::LOCAL, &realm(), &account(number));
        let searches: Vec<_> = (0..100).map(begin).collect();
        assert!(searches.iter().all(Result::is_ok));
        assert_eq!(begin(3).unwrap_err().code(), "too_often");
    }

    #[test]
    fn a_room_that_is_being_opened_while_a_search_begins_is_looked_at_again() {
        let seekers = Seekers::new();
        let opening_lock = seekers.opening_lock(&realm(), "tanks");
        assert_eq!(opening_lock.unseen_since_ms(|| 5), 5);
        let opening = opening_lock.enter(|| 7).now_or_never().expect("nobody is in there");
        assert_eq!(opening_lock.unseen_since_ms(|| 9), 7, "its room may be as old as its entry");
        assert!(opening_lock.enter(|| 9).now_or_never().is_none());
        drop(opening);
        assert_eq!(opening_lock.unseen_since_ms(|| 11), 11);
    }
}
