//! Ranks under own changes and those of other nodes, in any order.

use super::*;
use crate::store::{BoardNumber, EntryChange, EntryWatch};
use parlor_social::{Key, Loading, Season};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

const KEY: SeasonKey = (BoardNumber(1), Season(0));

fn player(number: u64) -> AccountId {
    AccountId::new(&format!("p{number}")).unwrap()
}

/// What is stored: the entries, and the log with the account of each change.
#[derive(Default)]
struct Stored {
    entries: BTreeMap<AccountId, Key>,
    log: Vec<AccountId>,
    deleted: u64,
}

impl Stored {
    fn change(&mut self, account: &AccountId, score: Option<i64>) -> EntryChange {
        let key = score.map(|score| Key { score, sub: 0, at_ms: 1 });
        match key {
            Some(key) => self.entries.insert(account.clone(), key),
            None => self.entries.remove(account),
        };
        self.log.push(account.clone());
        let number = Some(self.log.len() as u64);
        EntryChange { board: KEY.0, season: KEY.1, account: account.clone(), key, number }
    }

    /// As the store reads it.
    fn logged(&self, after: u64, most: usize) -> LoggedChanges {
        let numbered = (1_u64..).zip(&self.log).filter(|(number, _)| *number > after.max(self.deleted));
        let changes: Vec<_> = numbered
            .take(most)
            .map(|(number, account)| (number, account.clone(), self.entries.get(account).copied()))
            .collect();
        LoggedChanges { logged: Some(self.log.len() as u64), is_cut: changes.len() == most, changes }
    }
}

/// Ranks that are empty, and have what is logged up to `last`.
fn ready(last: u64) -> Arc<Ranked> {
    let position = Position { last, own: HashMap::new() };
    Arc::new(Ranked::new(State::Ready(Loading::default().finish(), position), true))
}

fn entries(ranked: &Ranked) -> BTreeMap<AccountId, Key> {
    let all = |ranks: &parlor_social::Ranks| {
        let page = ranks.page(1, 1_000);
        page.iter().map(|it| (AccountId::new(it.owner).unwrap(), it.key)).collect()
    };
    ranked.ask(all).unwrap()
}

#[test]
fn ranks_become_those_of_the_store_however_own_changes_and_the_log_overtake_each_other() {
    let seeds = std::env::var("PARLOR_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(300_u64);
    for seed in 0..seeds {
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        let mut draw = |below: u64| random.next_u64() % below;
        let (mut stored, ranked, index) = (Stored::default(), ready(0), RankIndex::new(usize::MAX));
        lock(&index.seasons).insert(KEY, Arc::clone(&ranked));
        // Own changes that are committed, and of which the ranks have not heard.
        let mut untold = std::collections::VecDeque::new();
        let mut read: Option<(u64, LoggedChanges)> = None;
        for _ in 0..200 {
            match draw(6) {
                0 | 1 => {
                    let score = (draw(5) > 0).then(|| draw(1_000) as i64);
                    let change = stored.change(&player(draw(4)), score);
                    if draw(2) == 0 {
                        untold.push_back(change);
                    }
                }
                2 | 3 => {
                    if let Some(change) = untold.pop_front() {
                        index.committed(&[change]);
                    }
                }
                // What is read is taken in later.
                4 => {
                    let last = ranked.last().unwrap();
                    read.get_or_insert_with(|| (last, stored.logged(last, 3)));
                }
                _ => {
                    if let Some((asked, logged)) = read.take() {
                        assert!(
                            matches!(ranked.take_in(asked, logged), Followed::Taken { .. }),
                            "seed {seed}"
                        );
                    }
                }
            }
        }
        index.committed(&untold.into_iter().collect::<Vec<_>>());
        loop {
            let last = ranked.last().unwrap();
            match ranked.take_in(last, stored.logged(last, 3)) {
                Followed::Taken { is_more: false, .. } => break,
                Followed::Taken { .. } => {}
                Followed::Full(_) | Followed::Behind => panic!("seed {seed}"),
            }
        }
        assert_eq!(entries(&ranked), stored.entries, "seed {seed}");
        assert!(!ranked.has_own(), "seed {seed}");
        assert_eq!(ranked.last(), Some(stored.log.len() as u64));
    }
}

#[test]
fn whoever_is_behind_what_was_deleted_loads_again() {
    let mut stored = Stored::default();
    for number in 0..10 {
        stored.change(&player(number % 3), Some(1));
    }
    stored.deleted = 5;
    let is_behind = |asked, logged| matches!(ready(asked).take_in(asked, logged), Followed::Behind);
    assert!(is_behind(4, stored.logged(4, 100)));
    assert!(!is_behind(5, stored.logged(5, 100)));
    stored.deleted = 10;
    assert!(is_behind(9, stored.logged(9, 100)));
    assert!(!is_behind(10, stored.logged(10, 100)));
    // The season was deleted, and a late score has begun it anew.
    assert!(is_behind(10, LoggedChanges { logged: Some(1), ..LoggedChanges::default() }));
    assert!(is_behind(10, LoggedChanges::default()));
    // There is no entry yet.
    assert!(!is_behind(0, LoggedChanges::default()));
}
