//! Ranks that are loaded while entries change are those of what is stored.

use super::*;
use crate::store::{Account, AccountKind, NewScore, Role};
use parlor_faultdisk::Disk;
use parlor_server::realm::Realm;
use parlor_social::{Board, Name, Submission};

/// More than one part of a load.
const PLAYERS: usize = LOADED_MAX + 2_000;

struct Fixture {
    store: Store,
    realm: Realm,
    board: BoardNumber,
    rules: Arc<Board>,
    index: Arc<RankIndex>,
    _folder: tempfile::TempDir,
}

fn player(number: usize) -> AccountId {
    AccountId::new(&format!("p{number}")).unwrap()
}

impl Fixture {
    async fn open(players: usize, bytes_max: usize) -> Self {
        Self::open_in(tempfile::tempdir().unwrap(), players, bytes_max).await
    }

    async fn open_in(folder: tempfile::TempDir, players: usize, bytes_max: usize) -> Self {
        let store = Store::open(folder.path().join("parlor.db").to_str().unwrap()).await.unwrap();
        let realm = Realm::new("tanks", "testing").unwrap();
        let name = Name::new("b").unwrap();
        let board =
            store.put_board(&realm, &name, b"{}".to_vec(), None, (1, Season(0), None)).await.unwrap().number;
        let index = RankIndex::new(bytes_max);
        store.watch_entries(Arc::clone(&index) as Arc<dyn EntryWatch>);
        let fixture =
            Fixture { store, realm, board, rules: Arc::new(Board::of_players()), index, _folder: folder };
        for part in (0..players).collect::<Vec<_>>().chunks(1_000) {
            let made = part.iter().map(|number| fixture.make_account(*number));
            futures_util::future::join_all(made).await;
        }
        for part in (0..players).collect::<Vec<_>>().chunks(100) {
            fixture.submit(part.iter().map(|number| (*number, 1))).await;
        }
        fixture
    }

    async fn make_account(&self, number: usize) {
        let account = Account {
            id: player(number),
            kind: AccountKind::Guest,
            role: Role::Player,
            display_name: String::new(),
            created_ms: 1,
        };
        self.store.create_account(&self.realm, &account, None).await.unwrap();
    }

    async fn submit(&self, scores: impl Iterator<Item = (usize, i64)>) {
        let scores = scores.map(|(number, score)| NewScore {
            board: self.board,
            rules: Arc::clone(&self.rules),
            season: Season(0),
            ends_ms: None,
            receipt: None,
            account: player(number),
            submission: Submission { score, at_ms: 1, ..Submission::default() },
        });
        self.store.submit_scores(&self.realm, scores.collect()).await.unwrap().unwrap();
    }

    /// Seasons with 100 entries each.
    async fn fill_seasons(&self, seasons: core::ops::Range<u64>) {
        for season in seasons {
            let scores = (0..100).map(|number| NewScore {
                board: self.board,
                rules: Arc::clone(&self.rules),
                season: Season(season),
                ends_ms: None,
                receipt: None,
                account: player(number),
                submission: Submission { score: 1, at_ms: 1, ..Submission::default() },
            });
            self.store.submit_scores(&self.realm, scores.collect()).await.unwrap().unwrap();
        }
    }

    async fn ready(&self) -> Arc<Ranked> {
        let ranked = self.index.season(&self.store, (self.board, Season(0)), true);
        while ranked.ask(|_| ()) == Err(NoRanks::NotYet) {
            ranked.loaded(WAIT).await;
        }
        ranked
    }

    /// The ranks have what is stored, and nothing else.
    async fn assert_whole(&self) {
        let ranked = self.ready().await;
        let (mut after, mut stored) = (String::new(), 0);
        loop {
            let part = self.store.load_entries(self.board, Season(0), &after).await.unwrap();
            for (account, key) in &part {
                assert_eq!(ranked.ask(|ranks| ranks.key(account)), Ok(Some(*key)), "{account}");
            }
            stored += part.len();
            match part.last() {
                Some((last, _)) => after.clone_from(last),
                None => break,
            }
        }
        assert_eq!(ranked.ask(Ranks::len), Ok(stored));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn t3_ranks_that_are_loaded_while_entries_change_are_those_of_what_is_stored() {
    let fixture = Fixture::open(PLAYERS, usize::MAX).await;
    for round in 0..8_usize {
        // It is loaded anew, while scores come and entries go.
        fixture.index.forget(fixture.board);
        let ranked = fixture.index.season(&fixture.store, (fixture.board, Season(0)), true);
        let score = i64::try_from(round).unwrap() + 2;
        let mut written = 0;
        while written < 3 || ranked.ask(|_| ()) == Err(NoRanks::NotYet) {
            let first = (written * 977 + round) % PLAYERS;
            fixture.submit((0..50).map(|number| ((first + number * 211) % PLAYERS, score))).await;
            let gone = player((first + 7) % PLAYERS);
            // It may be gone already.
            let _ = fixture.store.remove_entry(fixture.board, Season(0), &gone).await;
            written += 1;
        }
        fixture.assert_whole().await;
    }
}

#[tokio::test]
async fn t3_a_commit_of_which_nobody_knows_has_the_ranks_loaded_again() {
    let fixture = Fixture::open(3, usize::MAX).await;
    let before = fixture.ready().await;
    let (board, season, account) = (fixture.board, Season(0), player(1));
    let change =
        EntryChange { board, season, account, key: Some(Key { score: 99, sub: 0, at_ms: 1 }), number: None };
    fixture.index.unsure(&[change]);
    fixture.assert_whole().await;
    assert!(!Arc::ptr_eq(&before, &fixture.ready().await));
}

#[tokio::test]
async fn t3_after_a_commit_of_which_nobody_knows_a_load_waits_for_the_writes_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::over(folder.path(), 1).unwrap();
    let fixture = Fixture::open_in(folder, 3, usize::MAX).await;
    let begun = disk.syncs().begun;
    disk.stand_still(true);
    let waiting = async {
        let syncs = disk.clone();
        tokio::task::spawn_blocking(move || syncs.wait_for_sync_after(begun)).await.unwrap();
        let (board, season, account) = (fixture.board, Season(0), player(1));
        fixture.index.unsure(&[EntryChange { board, season, account, key: None, number: None }]);
        let ranked = fixture.index.season(&fixture.store, (board, season), true);
        ranked.loaded(SHORT_WAIT).await;
        let asked = ranked.ask(Ranks::len);
        // Also if this fails: the store's thread would never end.
        disk.stand_still(false);
        assert_eq!(asked, Err(NoRanks::NotYet), "what it would read may be old");
    };
    tokio::join!(fixture.submit([(1, 99)].into_iter()), waiting);
    fixture.assert_whole().await;
}

#[tokio::test]
async fn t3_ranks_beyond_the_memory_are_dropped_and_loaded_again_or_refused() {
    let fixture = Fixture::open(100, 60_000).await;
    fixture.ready().await;
    // A second season of the board has no room beside the first.
    let second = fixture.index.season(&fixture.store, (fixture.board, Season(7)), false);
    second.loaded(WAIT).await;
    let scores = (0..2_000).map(|number| EntryChange {
        board: fixture.board,
        season: Season(7),
        account: player(number),
        key: Some(Key::default()),
        number: None,
    });
    fixture.index.committed(&scores.collect::<Vec<_>>());
    assert!(fixture.index.bytes() > 60_000);
    fixture.index.trim();
    assert!(fixture.index.bytes() <= 60_000, "{}", fixture.index.bytes());
    // Alone it has none, either, and is not loaded again and again.
    assert_eq!(second.ask(Ranks::len), Err(NoRanks::TooLarge));
    assert!(Arc::ptr_eq(&second, &fixture.index.season(&fixture.store, (fixture.board, Season(7)), false)));
    fixture.assert_whole().await;

    let small = RankIndex::new(99 * ENTRY_BYTES);
    let refused = small.season(&fixture.store, (fixture.board, Season(0)), true);
    refused.loaded(WAIT).await;
    assert_eq!(refused.ask(Ranks::len), Err(NoRanks::TooLarge), "it is judged before it is loaded");
}

#[tokio::test]
async fn t3_seasons_that_are_loaded_at_once_have_no_more_memory_than_one_after_the_other() {
    const BYTES_MAX: usize = 12_000;
    let fixture = Fixture::open(100, usize::MAX).await;
    fixture.fill_seasons(1..4).await;
    let index = RankIndex::new(BYTES_MAX);
    let asked: Vec<_> =
        (0..4).map(|season| index.season(&fixture.store, (fixture.board, Season(season)), false)).collect();
    for ranked in &asked {
        ranked.loaded(WAIT).await;
    }
    // Each has dropped the one before to have room, and only the last one is left.
    let left: Vec<_> = asked.iter().filter(|ranked| ranked.ask(Ranks::len) == Ok(100)).collect();
    assert_eq!(left.len(), 1);
    assert!((1..=BYTES_MAX).contains(&index.bytes()), "{}", index.bytes());
    assert!(2 * index.bytes() > BYTES_MAX, "two of them would fit: nothing is tested");
}

#[tokio::test]
async fn threat_44_t3_past_seasons_leave_the_current_one_in_memory_whoever_asks_for_them() {
    const BYTES_MAX: usize = 12_000;
    let fixture = Fixture::open(100, usize::MAX).await;
    fixture.fill_seasons(1..5).await;
    let index = RankIndex::new(BYTES_MAX);
    let key = |season| (fixture.board, Season(season));
    let current = index.season(&fixture.store, key(4), true);
    current.loaded(WAIT).await;
    assert_eq!(current.ask(Ranks::len), Ok(100));
    assert!(2 * index.bytes() > BYTES_MAX, "a past one would fit beside it: nothing is tested");
    for _ in 0..2 {
        let past: Vec<_> = (0..4).map(|season| index.season(&fixture.store, key(season), false)).collect();
        for ranked in &past {
            ranked.loaded(WAIT).await;
            assert_eq!(ranked.ask(Ranks::len), Err(NoRanks::TooLarge));
        }
    }
    assert_eq!(current.ask(Ranks::len), Ok(100));
    assert!(Arc::ptr_eq(&current, &index.season(&fixture.store, key(4), true)));
    assert!(!index.holds(key(0)), "it is not refused for good");
    // Once the next season is there, the one before gives way.
    let next = index.season(&fixture.store, key(5), true);
    next.loaded(WAIT).await;
    let past = index.season(&fixture.store, key(0), false);
    past.loaded(WAIT).await;
    assert_eq!((past.ask(Ranks::len), next.ask(Ranks::len)), (Ok(100), Ok(0)));
    assert_eq!(current.ask(Ranks::len), Err(NoRanks::NotYet));
}
