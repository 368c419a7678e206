//! What other nodes of a cluster write to boards, from the store's log. A server alone does nothing of this.
//!
//! A question about ranks reads what was logged since they were brought up to date, unless that was a moment ago. So
//! ranks in memory that are not used cost a read in half a minute, before the log is deleted.
//!
//! Own changes come from the committing thread, each with its number. A change that comes in both ways, in whichever
//! order, leaves the entry as the higher number of both has it.

use super::index::{LOOK_AFTER, RankIndex, Ranked, SeasonKey, State, apply};
use crate::store::{AccountId, LoggedChanges, Store, StoreError};
use core::time::Duration;
use parlor_server::embed::lock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::time::{Instant, sleep};

/// Ranks may be without what other nodes wrote in the last moment.
pub(super) const AGE_MAX: Duration = Duration::from_millis(500);
/// Age of ranks that are not used.
const UNUSED_AGE_MAX: Duration = Duration::from_secs(30);
/// How long a change stays in the log: longer than any node is without it, unless the store does not answer.
const LOGGED_FOR: Duration = Duration::from_secs(120);
/// Time between two looks at all ranks.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Time between two deletions of the log.
const SWEEP_AGAIN: Duration = Duration::from_secs(10);

/// Which of a season's changes are in its ranks.
#[derive(Debug, Default)]
pub(super) struct Position {
    /// All up to this one.
    last: u64,
    /// Own changes beyond it: the newest of each account.
    own: HashMap<AccountId, u64>,
}

impl Position {
    /// Of ranks that are read from now on.
    pub(super) async fn before_loading(
        store: &Store,
        (board, season): SeasonKey,
    ) -> Result<Self, StoreError> {
        if !store.is_shared() {
            return Ok(Position::default());
        }
        let LoggedChanges { logged, .. } = store.logged_changes(board, season, u64::MAX).await?;
        Ok(Position { last: logged.unwrap_or(0), own: HashMap::new() })
    }

    /// Whether an own change that came while the ranks were read is kept.
    pub(super) fn keeps(&mut self, account: &AccountId, number: Option<u64>) -> bool {
        let Some(number) = number else { return true };
        if number > self.last {
            self.own.insert(account.clone(), number);
        }
        number > self.last
    }

    /// Whether an own change is not in the ranks yet.
    pub(super) fn takes(&mut self, account: &AccountId, number: Option<u64>) -> bool {
        let Some(number) = number else { return true };
        if number <= self.last {
            return false;
        }
        if number == self.last + 1 && self.own.is_empty() {
            self.last = number;
        } else {
            self.own.insert(account.clone(), number);
        }
        true
    }
}

/// What the log has made of ranks.
enum Followed {
    /// They have it, with so many new entries.
    Taken { grown: usize, is_more: bool },
    /// They have no room for it. These were the ranks.
    Full(State),
    /// Changes that they do not have were deleted: they must be loaded again.
    Behind,
}

impl RankIndex {
    /// Brings ranks up to date, unless they were at most this long ago. Returns false if they must be loaded again.
    pub(super) async fn follow(
        &self,
        store: &Store,
        key: SeasonKey,
        ranked: &Arc<Ranked>,
        age_max: Duration,
    ) -> Result<bool, StoreError> {
        let mut since = ranked.follows_since.lock().await;
        if since.is_some_and(|since| since.elapsed() <= age_max) {
            return Ok(true);
        }
        let began = Instant::now();
        loop {
            // Ranks that are not there need nothing: they are loaded, or asked for again.
            let Some(last) = ranked.last() else { return Ok(true) };
            let logged = store.logged_changes(key.0, key.1, last).await?;
            match ranked.take_in(last, logged) {
                Followed::Taken { grown, is_more } => {
                    self.grows_by(grown);
                    if !is_more {
                        break;
                    }
                }
                Followed::Full(ranks) => {
                    lock(&self.dropped).push(ranks);
                    self.grows_by(LOOK_AFTER);
                    break;
                }
                Followed::Behind => {
                    self.drop_season(key, ranked);
                    return Ok(false);
                }
            }
        }
        *since = Some(began);
        Ok(true)
    }

    /// Drops ranks that are to be loaded again.
    fn drop_season(&self, key: SeasonKey, ranked: &Arc<Ranked>) {
        let mut seasons = lock(&self.seasons);
        if seasons.get(&key).is_some_and(|current| Arc::ptr_eq(current, ranked)) {
            seasons.remove(&key);
        }
        lock(&self.dropped).push(ranked.replace(State::Failed));
    }
}

impl Ranked {
    fn last(&self) -> Option<u64> {
        match &*lock(&self.state) {
            State::Ready(_, position) => Some(position.last),
            _ => None,
        }
    }

    /// Whether own changes lie beyond some of other nodes.
    fn has_own(&self) -> bool {
        matches!(&*lock(&self.state), State::Ready(_, position) if !position.own.is_empty())
    }

    /// Takes in what was logged beyond `asked`.
    fn take_in(&self, asked: u64, logged: LoggedChanges) -> Followed {
        let LoggedChanges { logged, changes, is_cut } = logged;
        // A season without a row has no entries, or has ended and was deleted; then its numbers begin anew with a late
        // score.
        let logged = logged.unwrap_or(0);
        let first = changes.first().map(|(number, ..)| *number);
        let newest = changes.last().map_or(asked, |(number, ..)| *number);
        let is_whole = first.is_none_or(|first| first == asked + 1) && logged >= asked;
        if !is_whole || (!is_cut && newest < logged) {
            return Followed::Behind;
        }
        // Each comes with its entry as it is: the last number of an account counts.
        let accounts: BTreeMap<AccountId, _> =
            changes.into_iter().map(|(number, account, key)| (account, (number, key))).collect();
        let mut state = lock(&self.state);
        let State::Ready(ranks, position) = &mut *state else {
            return Followed::Taken { grown: 0, is_more: false };
        };
        let (mut grown, mut fits) = (0, true);
        for (account, (number, key)) in accounts {
            let own = position.own.get(&account).copied().unwrap_or(0);
            if number > own.max(position.last) {
                match apply(ranks, &account, key) {
                    Some(is_new) => grown += usize::from(is_new),
                    None => fits = false,
                }
            }
        }
        position.last = position.last.max(newest);
        let last = position.last;
        position.own.retain(|_, number| *number > last);
        if fits {
            Followed::Taken { grown, is_more: is_cut }
        } else {
            // Ranks without an entry would be wrong.
            Followed::Full(core::mem::replace(&mut *state, State::TooLarge))
        }
    }
}

/// Keeps all ranks near to what other nodes write, and the log short. Runs as long as the services.
pub(super) async fn follow_all(index: &RankIndex, store: &Store) {
    if !store.is_shared() {
        return;
    }
    let mut swept_at = Instant::now();
    loop {
        sleep(LOOK_AGAIN).await;
        let all: Vec<(SeasonKey, Arc<Ranked>)> =
            lock(&index.seasons).iter().map(|(key, ranked)| (*key, Arc::clone(ranked))).collect();
        for (key, ranked) in all {
            let age_max = if ranked.has_own() { LOOK_AGAIN } else { UNUSED_AGE_MAX };
            if let Err(error) = index.follow(store, key, &ranked, age_max).await {
                tracing::debug!(%error, "what other nodes wrote to boards is read later");
                break;
            }
        }
        if swept_at.elapsed() >= SWEEP_AGAIN {
            swept_at = Instant::now();
            while matches!(store.sweep_board_log(LOGGED_FOR).await, Ok(true)) {}
        }
    }
}

#[cfg(test)]
mod tests;
