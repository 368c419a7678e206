//! The ranks of seasons in memory, loaded at their first use.
//!
//! The store's committing thread tells of each changed entry, after the commit and in the order of the commits.
//! So the ranks of a season that is loaded are always those of what is stored. While a season is being loaded,
//! what is told is set aside, and counts more than what the loader has read.

use crate::store::{AccountId, BoardNumber, EntryChange, EntryWatch, LOADED_MAX, Store, StoreError};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use parlor_server::embed::lock;
use parlor_social::{Key, Loading, Ranks, Season};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore, watch};

/// Time for which a question waits for ranks that are being loaded.
pub(super) const WAIT: Duration = Duration::from_secs(2);
/// Time for which a score's answer waits for them: it may come without a rank.
pub(super) const SHORT_WAIT: Duration = Duration::from_millis(100);
/// Estimated bytes of an entry, from which a season is judged before it is loaded.
const ENTRY_BYTES: usize = 80;
/// New entries after which the memory is looked at again.
const LOOK_AFTER: usize = 4096;

/// A season of a board.
pub(super) type SeasonKey = (BoardNumber, Season);

/// The ranks of all seasons in use.
pub(crate) struct RankIndex {
    seasons: Mutex<BTreeMap<SeasonKey, Arc<Ranked>>>,
    /// Seasons whose memory is given back by [`trim`](Self::trim): not by the committing thread, which must not
    /// wait for that.
    dropped: Mutex<Vec<Arc<Ranked>>>,
    bytes_max: usize,
    /// Memory of the seasons that are being loaded: so many MiB at once, and the bytes that they will take.
    loads: Semaphore,
    reserved: AtomicUsize,
    /// Counts uses, so that the season unused for longest is known.
    uses: AtomicU64,
    /// Entries that came since the memory was looked at.
    grown: AtomicUsize,
    is_grown: Notify,
}

/// The ranks of one season.
pub(super) struct Ranked {
    state: Mutex<State>,
    /// Whether loading has ended, well or not.
    is_done: watch::Sender<bool>,
    used: AtomicU64,
}

enum State {
    /// What was told meanwhile.
    Loading(HashMap<AccountId, Option<Key>>),
    Ready(Ranks),
    /// The store was not available.
    Failed,
    /// It has more entries than fit into the memory for ranks.
    TooLarge,
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
            uses: AtomicU64::new(0),
            grown: AtomicUsize::new(0),
            is_grown: Notify::new(),
        })
    }

    /// The ranks of a season. At their first use they are loaded, by a task of this runtime.
    pub(super) fn season(self: &Arc<Self>, store: &Store, key: SeasonKey) -> Arc<Ranked> {
        let ranked = {
            let mut seasons = lock(&self.seasons);
            if let Some(ranked) = seasons.get(&key) {
                self.touch(ranked);
                return Arc::clone(ranked);
            }
            let (is_done, _) = watch::channel(false);
            let state = Mutex::new(State::Loading(HashMap::new()));
            let ranked = Arc::new(Ranked { state, is_done, used: AtomicU64::new(0) });
            seasons.insert(key, Arc::clone(&ranked));
            ranked
        };
        self.touch(&ranked);
        // From here on the season is told of each commit. What was committed before is read by the loader.
        let (index, store, loaded) = (Arc::clone(self), store.clone(), Arc::clone(&ranked));
        tokio::spawn(async move { index.load(&store, key, &loaded).await });
        ranked
    }

    fn touch(&self, ranked: &Ranked) {
        ranked.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    async fn load(self: &Arc<Self>, store: &Store, key: SeasonKey, ranked: &Arc<Ranked>) {
        let loaded = self.load_within(store, key).await;
        let is_current = lock(&self.seasons).get(&key).is_some_and(|current| Arc::ptr_eq(current, ranked));
        let mut state = lock(&ranked.state);
        let told = match &mut *state {
            State::Loading(told) => core::mem::take(told),
            _ => HashMap::new(),
        };
        *state = match loaded {
            Ok(Some(mut ranks)) if is_current => {
                let is_whole =
                    told.into_iter().all(|(account, key)| apply(&mut ranks, &account, key).is_some());
                if is_whole { State::Ready(ranks) } else { State::TooLarge }
            }
            Ok(None) => State::TooLarge,
            _ => State::Failed,
        };
        let has_failed = matches!(*state, State::Failed);
        drop(state);
        if has_failed && is_current {
            lock(&self.seasons).remove(&key);
        }
        ranked.is_done.send_replace(true);
        self.is_grown.notify_one();
    }

    /// All entries of a season; `None` if they are too many. Waits until other loads leave room for it, and
    /// drops ranks that are not used to make some.
    async fn load_within(
        self: &Arc<Self>,
        store: &Store,
        key: SeasonKey,
    ) -> Result<Option<Ranks>, StoreError> {
        let seasons = store.board_seasons(key.0).await?;
        let entries = seasons.iter().find(|stored| stored.season == key.1).map_or(0, |stored| stored.entries);
        if usize::try_from(entries).unwrap_or(usize::MAX) > self.bytes_max / ENTRY_BYTES {
            return Ok(None);
        }
        let bytes = usize::try_from(entries).unwrap_or(usize::MAX).saturating_mul(ENTRY_BYTES);
        let Ok(_permit) = self.loads.acquire_many(mebibytes(bytes)).await else { return Ok(None) };
        self.reserved.fetch_add(bytes, Ordering::Relaxed);
        let index = Arc::clone(self);
        let loaded = match blocking(move || index.trim()).await {
            Ok(()) => load_all(store, key).await,
            Err(error) => Err(error),
        };
        self.reserved.fetch_sub(bytes, Ordering::Relaxed);
        loaded
    }

    /// Forgets a board.
    pub(super) fn forget(&self, board: BoardNumber) {
        let mut seasons = lock(&self.seasons);
        let gone: Vec<SeasonKey> =
            seasons.range((board, Season(0))..=(board, Season(u64::MAX))).map(|(key, _)| *key).collect();
        let gone = gone.iter().filter_map(|key| seasons.remove(key));
        lock(&self.dropped).extend(gone);
        self.is_grown.notify_one();
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

    /// Drops the ranks of seasons unused for longest, until the others have room.
    fn trim(&self) {
        self.grown.store(0, Ordering::Relaxed);
        drop(core::mem::take(&mut *lock(&self.dropped)));
        let all: Vec<(SeasonKey, Arc<Ranked>)> =
            lock(&self.seasons).iter().map(|(key, ranked)| (*key, Arc::clone(ranked))).collect();
        let mut held: Vec<(u64, SeasonKey, usize)> = all
            .iter()
            .map(|(key, ranked)| (ranked.used.load(Ordering::Relaxed), *key, ranked.bytes()))
            .filter(|(_, _, bytes)| *bytes > 0)
            .collect();
        held.sort_unstable();
        let mut bytes: usize = held.iter().map(|(_, _, bytes)| bytes).sum();
        bytes += self.reserved.load(Ordering::Relaxed);
        for (_, key, of_season) in held {
            if bytes <= self.bytes_max {
                return;
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

async fn load_all(store: &Store, key: SeasonKey) -> Result<Option<Ranks>, StoreError> {
    let (mut loading, mut after) = (Loading::default(), String::new());
    loop {
        let part = store.load_entries(key.0, key.1, &after).await?;
        let is_last = part.len() < LOADED_MAX;
        after = part.last().map(|(account, _)| account.clone()).unwrap_or_default();
        let added = blocking(move || {
            let fits = part.iter().all(|(account, key)| loading.add(account, *key).is_ok());
            fits.then_some(loading)
        });
        let Some(more) = added.await? else { return Ok(None) };
        loading = more;
        if is_last {
            return blocking(|| Some(loading.finish())).await;
        }
    }
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
            grown += usize::from(ranked.is_some_and(|ranked| ranked.tell(change)));
        }
        if grown > 0 && self.grown.fetch_add(grown, Ordering::Relaxed) + grown >= LOOK_AFTER {
            self.is_grown.notify_one();
        }
    }

    /// The seasons are loaded again, from what is stored.
    fn unsure(&self, changes: &[EntryChange]) {
        let mut seasons = lock(&self.seasons);
        let unsure = changes.iter().filter_map(|change| seasons.remove(&(change.board, change.season)));
        lock(&self.dropped).extend(unsure);
        self.is_grown.notify_one();
    }
}

/// `None` if the entry has no room; otherwise whether it is new.
fn apply(ranks: &mut Ranks, account: &AccountId, key: Option<Key>) -> Option<bool> {
    match key {
        Some(key) => ranks.put(account.as_str(), key).ok().map(|before| before.is_none()),
        None => {
            ranks.remove(account.as_str());
            Some(false)
        }
    }
}

impl Ranked {
    /// Takes in a change. Returns whether the season has grown.
    fn tell(&self, change: &EntryChange) -> bool {
        match &mut *lock(&self.state) {
            State::Loading(told) => told.insert(change.account.clone(), change.key).is_none(),
            State::Ready(ranks) => apply(ranks, &change.account, change.key).unwrap_or(true),
            State::Failed | State::TooLarge => false,
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
            State::Ready(ranks) => Ok(ask(ranks)),
            State::TooLarge => Err(NoRanks::TooLarge),
            State::Loading(_) | State::Failed => Err(NoRanks::NotYet),
        }
    }

    fn bytes(&self) -> usize {
        self.ask(Ranks::bytes).unwrap_or(0)
    }

    fn replace(&self, state: State) -> State {
        core::mem::replace(&mut *lock(&self.state), state)
    }
}

#[cfg(test)]
mod tests;
