//! The ranks of seasons in memory, loaded at their first use.
//!
//! The store's committing thread reports each changed entry, after the commit and in the order of the commits.
//! So the ranks of a loaded season are always those of the stored entries. While a season is being loaded,
//! reported changes are kept, and replace what the loader has read. `follow.rs` adds what other nodes of a cluster write.

use super::follow::Position;
use crate::store::{AccountId, BoardNumber, EntryChange, EntryWatch, LOADED_MAX, Store, StoreError};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_social::{Key, Loading, Ranks, Season};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

/// Time for which a question waits for ranks that are being loaded.
pub(super) const WAIT: Duration = Duration::from_secs(2);
/// Time for which a score's answer waits for them: it may come without a rank.
pub(super) const SHORT_WAIT: Duration = Duration::from_millis(100);
/// Estimated bytes of an entry, from which a season is judged before it is loaded.
const ENTRY_BYTES: usize = 80;
/// New entries after which the memory is looked at again.
pub(super) const LOOK_AFTER: usize = 4096;

/// A season of a board.
pub(super) type SeasonKey = (BoardNumber, Season);

/// The ranks of all seasons in use.
pub(crate) struct RankIndex {
    pub(super) seasons: Mutex<BTreeMap<SeasonKey, Arc<Ranked>>>,
    /// Ranks whose memory [`trim`](Self::trim) frees: the committing thread must not wait for that.
    pub(super) dropped: Mutex<Vec<State>>,
    bytes_max: usize,
    /// Memory of the current seasons that are being loaded: so many MiB at once, and the bytes that they will
    /// take.
    loads: Semaphore,
    reserved: AtomicUsize,
    /// The same of past seasons, which are loaded one after the other: anybody may ask for any of them.
    past_loads: Semaphore,
    past_reserved: AtomicUsize,
    /// Counts commits of which nobody knows, and up to which of them the store is known to be through.
    unsure: AtomicU64,
    settled: AtomicU64,
    /// Counts uses, so that the season unused for longest is known.
    uses: AtomicU64,
    /// Entries that came since the memory was looked at.
    grown: AtomicUsize,
    is_grown: Notify,
}

/// The ranks of one season.
pub(super) struct Ranked {
    pub(super) state: Mutex<State>,
    /// Whether loading has ended, well or not.
    is_done: watch::Sender<bool>,
    used: AtomicU64,
    /// Whether it is the board's current season, which gives no room to past ones.
    is_current: AtomicBool,
    /// In a cluster: when other nodes' changes were last read. Locked while they are read.
    pub(super) follows_since: tokio::sync::Mutex<Option<Instant>>,
}

pub(super) enum State {
    /// What was told meanwhile: the key of each entry, and the number of the change.
    Loading(HashMap<AccountId, (Option<Key>, Option<u64>)>),
    Ready(Ranks, Position),
    /// The store was not available.
    Failed,
    /// It has more entries than fit into the memory for ranks.
    TooLarge,
    /// It is past, and the current ones leave no room for it at present.
    NoRoom,
}

/// What a load has come to.
enum Loaded {
    Whole(Ranks, Position),
    TooLarge,
    NoRoom,
}

/// Why there are no ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoRanks {
    /// They are being loaded, or the store is not available.
    NotYet,
    /// They have no room in the memory.
    TooLarge,
}

impl RankIndex {
    pub(crate) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(RankIndex {
            seasons: Mutex::default(),
            dropped: Mutex::default(),
            bytes_max,
            loads: Semaphore::new(mebibytes(bytes_max) as usize),
            reserved: AtomicUsize::new(0),
            past_loads: Semaphore::new(1),
            past_reserved: AtomicUsize::new(0),
            unsure: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            uses: AtomicU64::new(0),
            grown: AtomicUsize::new(0),
            is_grown: Notify::new(),
        })
    }

    /// The ranks of a season. At their first use they are loaded, by a task of this runtime.
    pub(super) fn season(self: &Arc<Self>, store: &Store, key: SeasonKey, is_current: bool) -> Arc<Ranked> {
        let ranked = {
            let mut seasons = lock(&self.seasons);
            if let Some(ranked) = seasons.get(&key) {
                self.touch(ranked, is_current);
                return Arc::clone(ranked);
            }
            if is_current {
                for (_, other) in seasons.range(all_of(key.0)) {
                    other.is_current.store(false, Ordering::Relaxed);
                }
            }
            let ranked = Arc::new(Ranked::new(State::Loading(HashMap::new()), false));
            self.touch(&ranked, is_current);
            seasons.insert(key, Arc::clone(&ranked));
            ranked
        };
        // The season hears of each commit from here on. The loader reads what was committed before.
        let (index, store, loaded) = (Arc::clone(self), store.clone(), Arc::clone(&ranked));
        tokio::spawn(async move { index.load(&store, key, &loaded).await });
        ranked
    }

    /// Whether a season is in memory, or is being loaded.
    pub(super) fn holds(&self, key: SeasonKey) -> bool {
        lock(&self.seasons).contains_key(&key)
    }

    fn touch(&self, ranked: &Ranked, is_current: bool) {
        ranked.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        ranked.is_current.store(is_current, Ordering::Relaxed);
    }

    async fn load(self: &Arc<Self>, store: &Store, key: SeasonKey, ranked: &Arc<Ranked>) {
        let is_current = ranked.is_current.load(Ordering::Relaxed);
        let loaded = self.load_within(store, key, is_current).await;
        let is_wanted = lock(&self.seasons).get(&key).is_some_and(|current| Arc::ptr_eq(current, ranked));
        let mut state = lock(&ranked.state);
        let told = match &mut *state {
            State::Loading(told) => core::mem::take(told),
            _ => HashMap::new(),
        };
        *state = match loaded {
            Ok(Loaded::Whole(mut ranks, mut position)) if is_wanted => {
                let is_whole = told.into_iter().all(|(account, (key, number))| {
                    !position.keeps(&account, number) || apply(&mut ranks, &account, key).is_some()
                });
                if is_whole { State::Ready(ranks, position) } else { State::TooLarge }
            }
            Ok(Loaded::TooLarge) => State::TooLarge,
            Ok(Loaded::NoRoom) => State::NoRoom,
            _ => State::Failed,
        };
        let is_asked_again = matches!(*state, State::Failed | State::NoRoom);
        drop(state);
        if is_asked_again && is_wanted {
            lock(&self.seasons).remove(&key);
        }
        ranked.is_done.send_replace(true);
        self.is_grown.notify_one();
    }

    /// All entries of a season, if they fit. Waits until other loads leave room for it, and drops ranks that
    /// are not used to make some.
    async fn load_within(
        self: &Arc<Self>,
        store: &Store,
        key: SeasonKey,
        is_current: bool,
    ) -> Result<Loaded, StoreError> {
        self.settle(store).await?;
        // What is logged beyond this may be missing in what is read.
        let position = Position::before_loading(store, key).await?;
        let seasons = store.board_seasons(key.0).await?;
        let entries = seasons.iter().find(|stored| stored.season == key.1).map_or(0, |stored| stored.entries);
        let bytes = usize::try_from(entries).unwrap_or(usize::MAX).saturating_mul(ENTRY_BYTES);
        if bytes > self.bytes_max {
            return Ok(Loaded::TooLarge);
        }
        let (loads, permits, reserved) = match is_current {
            true => (&self.loads, mebibytes(bytes), &self.reserved),
            false => (&self.past_loads, 1, &self.past_reserved),
        };
        let Ok(_permit) = loads.acquire_many(permits).await else { return Ok(Loaded::NoRoom) };
        reserved.fetch_add(bytes, Ordering::Relaxed);
        let index = Arc::clone(self);
        let loaded = match blocking(move || index.trim()).await {
            Ok(()) => load_all(store, key, position, || is_current || self.past_fits()).await,
            Err(error) => Err(error),
        };
        reserved.fetch_sub(bytes, Ordering::Relaxed);
        loaded
    }

    /// Waits for commits of which nobody knows, before a load reads what they may have changed.
    async fn settle(&self, store: &Store) -> Result<(), StoreError> {
        let unsure = self.unsure.load(Ordering::SeqCst);
        if self.settled.load(Ordering::SeqCst) < unsure {
            store.behind_writes().await?;
            self.settled.fetch_max(unsure, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Whether the current seasons leave room for the past one that is being loaded.
    fn past_fits(&self) -> bool {
        let all: Vec<Arc<Ranked>> = lock(&self.seasons).values().cloned().collect();
        let current = all.iter().filter(|ranked| ranked.is_current.load(Ordering::Relaxed));
        let bytes: usize = current.map(|ranked| ranked.bytes()).sum();
        let reserved = [&self.reserved, &self.past_reserved].map(|bytes| bytes.load(Ordering::Relaxed));
        bytes.saturating_add(reserved.iter().sum()) <= self.bytes_max
    }

    /// Forgets a board.
    pub(super) fn forget(&self, board: BoardNumber) {
        let mut seasons = lock(&self.seasons);
        let gone: Vec<SeasonKey> = seasons.range(all_of(board)).map(|(key, _)| *key).collect();
        let gone = gone.iter().filter_map(|key| seasons.remove(key));
        lock(&self.dropped).extend(gone.map(|ranked| ranked.replace(State::Failed)));
        self.is_grown.notify_one();
    }

    /// Counts new entries, and has the memory looked at after many.
    pub(super) fn grows_by(&self, entries: usize) {
        if entries > 0 && self.grown.fetch_add(entries, Ordering::Relaxed) + entries >= LOOK_AFTER {
            self.is_grown.notify_one();
        }
    }

    /// Gives memory back whenever the seasons have grown.
    pub(crate) async fn look_after(self: Arc<Self>) {
        loop {
            self.is_grown.notified().await;
            let index = Arc::clone(&self);
            // A panic there is reported by its thread, and the next look is another one.
            let _ = tokio::task::spawn_blocking(move || index.trim()).await;
        }
    }

    /// Drops the ranks of seasons, until the others have room: of past ones first, and then of those unused for
    /// longest. A past one that is being loaded drops no current one.
    fn trim(&self) {
        self.grown.store(0, Ordering::Relaxed);
        drop(core::mem::take(&mut *lock(&self.dropped)));
        let all: Vec<(SeasonKey, Arc<Ranked>)> =
            lock(&self.seasons).iter().map(|(key, ranked)| (*key, Arc::clone(ranked))).collect();
        let mut held: Vec<(bool, u64, SeasonKey, usize)> = all
            .iter()
            .map(|(key, ranked)| {
                let is_current = ranked.is_current.load(Ordering::Relaxed);
                (is_current, ranked.used.load(Ordering::Relaxed), *key, ranked.bytes())
            })
            .filter(|(_, _, _, bytes)| *bytes > 0)
            .collect();
        held.sort_unstable();
        let mut bytes: usize = held.iter().map(|(_, _, _, bytes)| bytes).sum();
        bytes += self.reserved.load(Ordering::Relaxed);
        let of_past = self.past_reserved.load(Ordering::Relaxed);
        for (is_current, _, key, of_season) in held {
            if bytes + if is_current { 0 } else { of_past } <= self.bytes_max {
                continue;
            }
            bytes -= of_season;
            // A season that alone has no room is kept as such: it would be loaded again and again.
            let removed = if of_season > self.bytes_max {
                lock(&self.seasons).get(&key).map(|ranked| ranked.replace(State::TooLarge))
            } else {
                lock(&self.seasons).remove(&key).map(|ranked| ranked.replace(State::Failed))
            };
            drop(removed);
        }
    }

    /// About how much memory the ranks take.
    pub(crate) fn bytes(&self) -> usize {
        let all: Vec<Arc<Ranked>> = lock(&self.seasons).values().cloned().collect();
        all.iter().map(|ranked| ranked.bytes()).sum()
    }
}

/// All entries of a season, as long as there is room for them.
async fn load_all(
    store: &Store,
    key: SeasonKey,
    position: Position,
    has_room: impl Fn() -> bool,
) -> Result<Loaded, StoreError> {
    let (mut loading, mut after) = (Loading::default(), String::new());
    loop {
        if !has_room() {
            return Ok(Loaded::NoRoom);
        }
        let part = store.load_entries(key.0, key.1, &after).await?;
        let is_last = part.len() < LOADED_MAX;
        after = part.last().map(|(account, _)| account.clone()).unwrap_or_default();
        let added = blocking(move || {
            let fits = part.iter().all(|(account, key)| loading.add(account, *key).is_ok());
            fits.then_some(loading)
        });
        let Some(more) = added.await? else { return Ok(Loaded::TooLarge) };
        loading = more;
        if is_last {
            return blocking(|| Loaded::Whole(loading.finish(), position)).await;
        }
    }
}

/// The keys of all seasons of a board.
fn all_of(board: BoardNumber) -> RangeInclusive<SeasonKey> {
    (board, Season(0))..=(board, Season(u64::MAX))
}

/// At least one, so that small seasons wait for their turn, too.
fn mebibytes(bytes: usize) -> u32 {
    u32::try_from(bytes >> 20).unwrap_or(u32::MAX).clamp(1, 1 << 20)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| StoreError::Damaged(format!("loading the ranks of a board failed: {error}")))
}

impl EntryWatch for RankIndex {
    fn committed(&self, changes: &[EntryChange]) {
        let mut grown = 0;
        for change in changes {
            let ranked = lock(&self.seasons).get(&(change.board, change.season)).cloned();
            grown += match ranked.map_or(Told::Same, |ranked| ranked.tell(change)) {
                Told::Same => 0,
                Told::Grown => 1,
                Told::Full(ranks) => {
                    lock(&self.dropped).push(ranks);
                    LOOK_AFTER
                }
            };
        }
        self.grows_by(grown);
    }

    /// The seasons are loaded again, from what is stored.
    fn unsure(&self, changes: &[EntryChange]) {
        self.unsure.fetch_add(1, Ordering::SeqCst);
        let mut seasons = lock(&self.seasons);
        let unsure = changes.iter().filter_map(|change| seasons.remove(&(change.board, change.season)));
        lock(&self.dropped).extend(unsure.map(|ranked| ranked.replace(State::Failed)));
        self.is_grown.notify_one();
    }
}

/// What a change has made of a season's ranks.
enum Told {
    Same,
    Grown,
    /// It has no room for the entry, and is too large. These were its ranks.
    Full(State),
}

/// `None` if the entry has no room; otherwise whether it is new.
pub(super) fn apply(ranks: &mut Ranks, account: &AccountId, key: Option<Key>) -> Option<bool> {
    match key {
        Some(key) => ranks.put(account.as_str(), key).ok().map(|before| before.is_none()),
        None => {
            ranks.remove(account.as_str());
            Some(false)
        }
    }
}

impl Ranked {
    pub(super) fn new(state: State, is_done: bool) -> Self {
        let (is_done, _) = watch::channel(is_done);
        let (used, is_current) = (AtomicU64::new(0), AtomicBool::new(false));
        let follows_since = tokio::sync::Mutex::new(None);
        Ranked { state: Mutex::new(state), is_done, used, is_current, follows_since }
    }

    /// Takes in a change.
    fn tell(&self, change: &EntryChange) -> Told {
        let mut state = lock(&self.state);
        let has_grown = match &mut *state {
            State::Loading(told) => {
                Some(told.insert(change.account.clone(), (change.key, change.number)).is_none())
            }
            State::Ready(ranks, position) => match position.takes(&change.account, change.number) {
                true => apply(ranks, &change.account, change.key),
                false => Some(false),
            },
            State::Failed | State::TooLarge | State::NoRoom => Some(false),
        };
        match has_grown {
            Some(false) => Told::Same,
            Some(true) => Told::Grown,
            // Ranks without an entry would be wrong.
            None => Told::Full(core::mem::replace(&mut *state, State::TooLarge)),
        }
    }

    /// Waits a while until the ranks are loaded.
    pub(super) async fn loaded(&self, wait: Duration) {
        if *self.is_done.borrow() {
            return;
        }
        let mut is_done = self.is_done.subscribe();
        // After that time it is seen that there are none yet.
        let _ = tokio::time::timeout(wait, is_done.wait_for(|is_done| *is_done)).await;
    }

    /// Asks the ranks. The committing thread waits meanwhile, so `ask` must be short.
    pub(super) fn ask<T>(&self, ask: impl FnOnce(&Ranks) -> T) -> Result<T, NoRanks> {
        match &*lock(&self.state) {
            State::Ready(ranks, _) => Ok(ask(ranks)),
            State::TooLarge | State::NoRoom => Err(NoRanks::TooLarge),
            State::Loading(_) | State::Failed => Err(NoRanks::NotYet),
        }
    }

    fn bytes(&self) -> usize {
        self.ask(Ranks::bytes).unwrap_or(0)
    }

    pub(super) fn replace(&self, state: State) -> State {
        core::mem::replace(&mut *lock(&self.state), state)
    }
}

#[cfg(test)]
mod tests;
