//! Ranks that are loaded while entries change are those of what is stored.

use super::*;
use crate::store::{Account, AccountKind, NewScore, Role};
use parlor_server::realm::Realm;
use parlor_social::{Board, BoardName, Submission};

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
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("parlor.db").to_str().unwrap()).await.unwrap();
        let realm = Realm::new("tanks", "testing").unwrap();
        let name = BoardName::new("b").unwrap();
        let board = store.put_board(&realm, &name, b"{}".to_vec(), None, 1).await.unwrap().number;
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
            account: player(number),
            submission: Submission { score, at_ms: 1, ..Submission::default() },
        });
        self.store.submit_scores(&self.realm, scores.collect()).await.unwrap().unwrap();
    }

    async fn ready(&self) -> Arc<Ranked> {
        let ranked = self.index.season(&self.store, (self.board, Season(0)));
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
        let ranked = fixture.index.season(&fixture.store, (fixture.board, Season(0)));
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
    let change = EntryChange { board, season, account, key: Some(Key { score: 99, sub: 0, at_ms: 1 }) };
    fixture.index.unsure(&[change]);
    fixture.assert_whole().await;
    assert!(!Arc::ptr_eq(&before, &fixture.ready().await));
}

#[tokio::test]
async fn t3_ranks_beyond_the_memory_are_dropped_and_loaded_again_or_refused() {
    let fixture = Fixture::open(100, 60_000).await;
    fixture.ready().await;
    // A second season of the board has no room beside the first.
    let second = fixture.index.season(&fixture.store, (fixture.board, Season(7)));
    second.loaded(WAIT).await;
    let scores = (0..2_000).map(|number| EntryChange {
        board: fixture.board,
        season: Season(7),
        account: player(number),
        key: Some(Key::default()),
    });
    fixture.index.committed(&scores.collect::<Vec<_>>());
    assert!(fixture.index.bytes() > 60_000);
    fixture.index.trim();
    assert!(fixture.index.bytes() <= 60_000, "{}", fixture.index.bytes());
    // Alone it has none, either, and is not loaded again and again.
    assert_eq!(second.ask(Ranks::len), Err(NoRanks::TooLarge));
    assert!(Arc::ptr_eq(&second, &fixture.index.season(&fixture.store, (fixture.board, Season(7)))));
    fixture.assert_whole().await;

    let small = RankIndex::new(99 * ENTRY_BYTES);
    let refused = small.season(&fixture.store, (fixture.board, Season(0)));
    refused.loaded(WAIT).await;
    assert_eq!(refused.ask(Ranks::len), Err(NoRanks::TooLarge), "it is judged before it is loaded");
}

#[tokio::test]
async fn t3_seasons_that_are_loaded_at_once_have_no_more_memory_than_one_after_the_other() {
    const BYTES_MAX: usize = 12_000;
    let fixture = Fixture::open(100, usize::MAX).await;
    for season in 1..4 {
        let scores = (0..100).map(|number| NewScore {
            board: fixture.board,
            rules: Arc::clone(&fixture.rules),
            season: Season(season),
            account: player(number),
            submission: Submission { score: 1, at_ms: 1, ..Submission::default() },
        });
        fixture.store.submit_scores(&fixture.realm, scores.collect()).await.unwrap().unwrap();
    }
    let index = RankIndex::new(BYTES_MAX);
    let asked: Vec<_> =
        (0..4).map(|season| index.season(&fixture.store, (fixture.board, Season(season)))).collect();
    for ranked in &asked {
        ranked.loaded(WAIT).await;
    }
    // Each has dropped the one before to have room, and only the last one is left.
    let left: Vec<_> = asked.iter().filter(|ranked| ranked.ask(Ranks::len) == Ok(100)).collect();
    assert_eq!(left.len(), 1);
    assert!((1..=BYTES_MAX).contains(&index.bytes()), "{}", index.bytes());
    assert!(2 * index.bytes() > BYTES_MAX, "two of them would fit: nothing is tested");
}
