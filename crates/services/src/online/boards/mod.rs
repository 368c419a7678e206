//! Boards: their definitions in memory, their seasons, and the operations on them.
//!
//! `index.rs` has the ranks, `submit.rs` what is written, `read.rs` what is read, `define.rs` what operators do.

mod define;
mod index;
mod read;
mod submit;

pub(super) use define::{define, delete};
pub(super) use read::{OwnEntryView, around, list, of, seasons, top};
pub(super) use submit::{remove, submit, submit_many};

use super::Services;
use super::budgets::AccountBudgets;
use super::charges::{Charges, Rates};
use super::failure::{Failure, Kind};
use super::table::Caller;
use crate::store::{AccountId, BoardNumber, EntryWatch, Role, Store, StoreError, StoredBoard};
use core::time::Duration;
use index::{NoRanks, RankIndex, Ranked};
use parlor_hub::budget::Rate;
use parlor_server::embed::{Clock, lock};
use parlor_server::realm::Realm;
use parlor_social::{Board, BoardName, Schedule, Season, SeasonClock};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// Maximum number of realms whose boards are remembered. Beyond it all are read again.
const REALMS_MAX: usize = 4096;
/// Scores that a player may submit.
const SCORES: Rate = Rate { burst: 20, interval: Duration::from_millis(200) };
/// Past seasons that a player may have loaded.
const PAST_SEASONS: Rate = Rate { burst: 4, interval: Duration::from_secs(10) };
/// Boards that first scores from an address make.
const MADE: Rates = Rates {
    of_address: Rate { burst: 30, interval: Duration::from_secs(60) },
    of_neighbourhood: Rate { burst: 120, interval: Duration::from_secs(15) },
    what: "boards were made",
};
/// Maximum number of entries of a page, and of players in one question.
const ENTRIES_MAX: usize = 100;
/// Time until a question about ranks that are being loaded may be asked again.
const ASK_AGAIN: Duration = Duration::from_secs(1);

type RealmBoards = BTreeMap<BoardName, Arc<Defined>>;
/// Held while definitions are read or changed.
type Defining<'a> = tokio::sync::MutexGuard<'a, ()>;

/// The boards of all realms.
pub(super) struct Boards {
    realms: Mutex<HashMap<Realm, Arc<RealmBoards>>>,
    /// Held while definitions are read or changed, so that what is remembered is what is stored.
    defining: tokio::sync::Mutex<()>,
    index: Arc<RankIndex>,
    scores: AccountBudgets,
    past_seasons: AccountBudgets,
    /// For boards that players' first scores make: on a server for development.
    made: Option<Charges>,
}

/// A board as it is remembered.
struct Defined {
    number: BoardNumber,
    name: BoardName,
    version: u64,
    board: Arc<Board>,
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

    /// The season at a time, and when it ends.
    fn season(&self, now_ms: u64) -> (Season, Option<u64>) {
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
            realms: Mutex::default(),
            defining: tokio::sync::Mutex::new(()),
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
        if let Some(known) = self.known(realm) {
            return Ok(known);
        }
        let defining = self.defining.lock().await;
        self.of_defining(services, realm, &defining).await
    }

    /// The boards of a realm, for a caller that holds the lock on definitions.
    async fn of_defining(
        &self,
        services: &Services,
        realm: &Realm,
        _defining: &Defining<'_>,
    ) -> Result<Arc<RealmBoards>, Failure> {
        match self.known(realm) {
            Some(known) => Ok(known),
            None => self.read(services, realm).await,
        }
    }

    fn known(&self, realm: &Realm) -> Option<Arc<RealmBoards>> {
        lock(&self.realms).get(realm).cloned()
    }

    async fn read(&self, services: &Services, realm: &Realm) -> Result<Arc<RealmBoards>, Failure> {
        // A definition whose answer was lost may be under way.
        services.store().behind_writes().await?;
        let mut boards = RealmBoards::new();
        for stored in services.store().boards(realm).await? {
            boards.insert(stored.name.clone(), Arc::new(Defined::read(&stored)?));
        }
        Ok(self.remember(realm, boards))
    }

    fn remember(&self, realm: &Realm, boards: RealmBoards) -> Arc<RealmBoards> {
        let boards = Arc::new(boards);
        let mut realms = lock(&self.realms);
        if realms.len() >= REALMS_MAX {
            realms.clear();
        }
        realms.insert(realm.clone(), Arc::clone(&boards));
        boards
    }

    /// Forgets the boards of a realm after this error of a definition, so that they are read again: it may have
    /// been done, or what is remembered is not what is stored. Errors that strangers can cause change nothing.
    fn doubt(&self, realm: &Realm, error: &StoreError) {
        let is_certain =
            matches!(error, StoreError::Full { .. } | StoreError::Quota { .. } | StoreError::Invalid { .. });
        if !is_certain {
            lock(&self.realms).remove(realm);
        }
    }

    async fn find(&self, services: &Services, realm: &Realm, name: &str) -> Result<Arc<Defined>, Failure> {
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

    /// Charges a player who asks for a past season that is not in memory: to load one is much work.
    fn charge_past(
        &self,
        services: &Services,
        caller: &Caller,
        board: &Defined,
        season: Season,
    ) -> Result<(), Failure> {
        let (current, _) = board.season(services.time().now_ms());
        if season == current || !is_player(caller) || self.index.holds((board.number, season)) {
            return Ok(());
        }
        let (realm, account) = services.account_of(caller)?;
        self.past_seasons.charge(&realm, &account)
    }
}

/// Gives back the memory of ranks that is beyond its bound.
pub(super) async fn look_after(services: Services) {
    Arc::clone(services.boards().index()).look_after().await;
}

fn board_name(text: &str) -> Result<BoardName, Failure> {
    BoardName::new(text).map_err(|error| Failure::field("board", error.sentence))
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

fn account_id(text: &str, path: &str) -> Result<AccountId, Failure> {
    AccountId::new(text).map_err(|error| Failure::field(path, error.to_string()))
}

fn is_player(caller: &Caller) -> bool {
    caller.identity.as_ref().is_none_or(|identity| identity.role == Role::Player)
}

/// The account that a question or a score is about: the caller's own, or one that an operator names.
fn subject(
    services: &Services,
    caller: &Caller,
    named: Option<&str>,
    path: &str,
) -> Result<(Realm, AccountId), Failure> {
    let (realm, own) = services.account_of(caller)?;
    match named {
        None if is_player(caller) => Ok((realm, own)),
        None => Err(missing(path, "name the player's account")),
        Some(named) => Ok((realm, account_id(named, path)?)),
    }
}

fn missing(path: &str, sentence: &str) -> Failure {
    Failure::new(Kind::BadInput, "missing_field", sentence).at(path)
}
