//! Boards: their definitions in memory, their seasons, and the operations on them.
//!
//! `index.rs` has the ranks, `follow.rs` adds what other nodes write, `submit.rs` what is written, `read.rs` what is read, `define.rs` what operators do,
//! `awards.rs` what rules of games give, `ends.rs` the webhook call at the end of a season.

mod awards;
mod define;
mod ends;
mod follow;
mod index;
mod read;
mod submit;

pub(super) use awards::of_rules;
pub(super) use define::{define, delete};
pub(super) use read::{OwnEntryView, around, friends, list, of, seasons, top};
pub(super) use submit::{remove, submit, submit_many};

use super::Services;
use super::budgets::AccountBudgets;
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::realm_cache::{Changing, RealmCache};
use super::table::Caller;
use crate::store::{AccountId, BoardNumber, EntryWatch, NewScore, Store, StoreError, StoredBoard};
use core::time::Duration;
use follow::AGE_MAX;
use index::{NoRanks, RankIndex, Ranked};
use parlor_hub::budget::Rate;
use parlor_server::embed::{Clock, lock};
use parlor_server::realm::Realm;
use parlor_social::{Board, Name, Schedule, Season, SeasonClock, Submission};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Scores that a player may submit.
const SCORES: Rate = Rate { burst: 20, interval: Duration::from_millis(200) };
/// Past seasons that a player may have loaded.
const PAST_SEASONS: Rate = Rate { burst: 4, interval: Duration::from_secs(10) };
/// Boards, statistics and achievements that first writes from an address make.
pub(super) const MADE: Rates = Rates {
    of_address: Rate { burst: 30, interval: Duration::from_secs(60) },
    of_neighbourhood: Rate { burst: 120, interval: Duration::from_secs(15) },
    what: "definitions were made",
};
/// Maximum number of entries of a page, and of players in one question.
const ENTRIES_MAX: usize = 100;
/// Time until a question about ranks that are being loaded may be asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

type RealmBoards = BTreeMap<Name, Arc<Defined>>;

/// The boards of all realms.
pub(super) struct Boards {
    cache: RealmCache<RealmBoards>,
    index: Arc<RankIndex>,
    scores: AccountBudgets,
    past_seasons: AccountBudgets,
    /// For boards that players' first scores make: on a server for development.
    made: Option<Charges>,
}

/// A board as it is remembered.
pub(super) struct Defined {
    pub(super) number: BoardNumber,
    name: Name,
    version: u64,
    pub(super) board: Arc<Board>,
    schedule: Option<Schedule>,
    clock: Mutex<SeasonClock>,
}

impl Defined {
    fn read(stored: &StoredBoard) -> Result<Self, Failure> {
        let damaged = |error: &dyn core::fmt::Display| {
            StoreError::Damaged(format!("the definition of the board {}: {error}", stored.name))
        };
        let board: Board = serde_json::from_slice(&stored.document).map_err(|error| damaged(&error))?;
        let schedule = board.check().map_err(|error| damaged(&error))?;
        let clock =
            stored.newest.map(|newest| SeasonClock::after(newest, stored.changed_ms)).unwrap_or_default();
        Ok(Defined {
            number: stored.number,
            name: stored.name.clone(),
            version: stored.version,
            board: Arc::new(board),
            schedule,
            clock: Mutex::new(clock),
        })
    }

    /// A score for the season in which it was submitted.
    pub(super) fn score(&self, account: AccountId, submission: Submission) -> NewScore {
        let (season, ends_ms) = self.told_season(submission.at_ms);
        let (board, rules) = (self.number, Arc::clone(&self.board));
        NewScore { board, rules, season, ends_ms, receipt: None, account, submission }
    }

    /// The season at a time, and when it ends if the webhook gets its end.
    fn told_season(&self, now_ms: u64) -> (Season, Option<u64>) {
        let (season, ends_ms) = self.season(now_ms);
        (season, ends_ms.filter(|_| self.board.tells()))
    }

    /// The season at a time, and when it ends.
    pub(super) fn season(&self, now_ms: u64) -> (Season, Option<u64>) {
        lock(&self.clock).season(self.schedule.as_ref(), now_ms)
    }
}

impl Boards {
    /// The boards of a store, with so much memory for their ranks.
    pub(super) fn new(
        store: &Store,
        ranks_bytes_max: usize,
        clock: Clock,
        made_by_scores: bool,
        mut random: impl FnMut() -> u64,
    ) -> Self {
        let index = RankIndex::new(ranks_bytes_max);
        store.watch_entries(Arc::clone(&index) as Arc<dyn EntryWatch>);
        Boards {
            cache: RealmCache::new(),
            index,
            scores: AccountBudgets::new(SCORES, clock, &mut random),
            past_seasons: AccountBudgets::new(PAST_SEASONS, clock, &mut random),
            made: made_by_scores.then(|| Charges::new(MADE, clock, &mut random)),
        }
    }

    pub(super) fn index(&self) -> &Arc<RankIndex> {
        &self.index
    }

    /// The boards of a realm.
    async fn of(&self, services: &Services, realm: &Realm) -> Result<Arc<RealmBoards>, Failure> {
        self.cache.get(services, realm, read_all(services, realm)).await
    }

    /// The boards of a realm, for a caller that holds the lock on definitions.
    async fn of_defining(
        &self,
        services: &Services,
        realm: &Realm,
        defining: &Changing<'_>,
    ) -> Result<Arc<RealmBoards>, Failure> {
        self.cache.get_changing(services, realm, read_all(services, realm), defining).await
    }

    pub(super) async fn find(
        &self,
        services: &Services,
        realm: &Realm,
        name: &str,
    ) -> Result<Arc<Defined>, Failure> {
        let found = match board_name(name) {
            Ok(name) => self.of(services, realm).await?.get(&name).cloned(),
            // A name that no board can have.
            Err(_) => None,
        };
        found.ok_or_else(|| no_such_board(name))
    }

    /// The ranks of a season, which are loaded at their first use.
    fn ranked(&self, services: &Services, board: &Defined, season: Season) -> Arc<Ranked> {
        let (current, _) = board.season(services.time().now_ms());
        self.index.season(services.store(), (board.number, season), season == current)
    }

    /// The same, with what other nodes have written. Waits a while for ranks that are being loaded.
    ///
    /// # Errors
    /// The store does not answer.
    async fn newest_ranks(
        &self,
        services: &Services,
        board: &Defined,
        season: Season,
        wait: Duration,
    ) -> Result<Arc<Ranked>, Failure> {
        let ranked = self.ranked(services, board, season);
        ranked.loaded(wait).await;
        let key = (board.number, season);
        if !services.store().is_shared() || self.index.follow(services.store(), key, &ranked, AGE_MAX).await?
        {
            return Ok(ranked);
        }
        let again = self.ranked(services, board, season);
        again.loaded(wait).await;
        self.index.follow(services.store(), key, &again, AGE_MAX).await?;
        Ok(again)
    }

    /// Charges a player who asks for a past season that is not in memory: to load one is much work.
    fn charge_past(
        &self,
        services: &Services,
        caller: &Caller,
        board: &Defined,
        season: Season,
    ) -> Result<(), Failure> {
        let (current, _) = board.season(services.time().now_ms());
        if season == current || !caller.is_player() || self.index.holds((board.number, season)) {
            return Ok(());
        }
        let (realm, account) = services.account_of(caller)?;
        self.past_seasons.charge(&realm, &account)
    }
}

async fn read_all(services: &Services, realm: &Realm) -> Result<RealmBoards, Failure> {
    let mut boards = RealmBoards::new();
    for stored in services.store().boards(realm).await? {
        boards.insert(stored.name.clone(), Arc::new(Defined::read(&stored)?));
    }
    Ok(boards)
}

/// Gives back the memory of ranks that is beyond its bound, and reports the ends of seasons.
pub(super) async fn look_after(services: Services) {
    let index = Arc::clone(services.boards().index());
    let following = follow::follow_all(&index, services.store());
    tokio::join!(Arc::clone(&index).look_after(), following, ends::tell_ends(services.clone()));
}

fn board_name(text: &str) -> Result<Name, Failure> {
    Name::new(text).map_err(|error| Failure::field("board", error.to_string()))
}

fn no_such_board(name: &str) -> Failure {
    let sentence = format!("there is no board {name:.80}: board.list has those that there are");
    Failure::new(Kind::NotFound, "no_such_board", sentence).at("board")
}

fn no_ranks(why: NoRanks) -> Failure {
    match why {
        NoRanks::NotYet => {
            Failure::unavailable("the ranks of this board are being loaded: ask again", ASK_AGAIN)
        }
        NoRanks::TooLarge => {
            let sentence = "the server's memory for ranks has no room for the entries of this season";
            Failure::new(Kind::Conflict, "not_ranked", sentence)
        }
    }
}
