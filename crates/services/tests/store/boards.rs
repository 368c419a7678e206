//! Boards in every store: definitions, seasons, and scores against a model.

use crate::common::{account, account_id, on_each, open_in, random};
use parlor_server::realm::Realm;
use parlor_services::store::{
    AccountId, BOARDS_MAX, BoardNumber, DATA_MIN, EntryChange, EntryWatch, Limits, NewScore, Options,
    SCORES_MAX, ScoreRefusal, Store, StoreError, StoredBoard,
};
use parlor_social::{Board, Keep, Key, Name, Refused, Season, Submission, mark_of};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

async fn defined(store: &Store, realm: &Realm, board: &str) -> StoredBoard {
    store.put_board(realm, &name(board), b"{}".to_vec(), None, (1, Season(0), None)).await.expect("a board")
}

pub(crate) fn new_score(board: BoardNumber, rules: &Arc<Board>, account: &str, score: i64) -> NewScore {
    NewScore {
        board,
        rules: Arc::clone(rules),
        season: Season(0),
        ends_ms: None,
        receipt: None,
        account: account_id(account),
        submission: Submission { score, at_ms: 1, ..Submission::default() },
    }
}

pub(crate) fn sums() -> Arc<Board> {
    Arc::new(Board { keep: Keep::Sum, ..Board::of_players() })
}

async fn with_accounts(store: &Store, realm: &Realm, names: &[&str]) {
    for name in names {
        store.create_account(realm, &account(name), None).await.expect("an account");
    }
}

/// Keeps what the store tells of entries.
#[derive(Default)]
struct Told {
    keys: Mutex<BTreeMap<(BoardNumber, Season, AccountId), Key>>,
    count: Mutex<usize>,
}

impl EntryWatch for Told {
    fn committed(&self, changes: &[EntryChange]) {
        let mut keys = self.keys.lock().expect("no panic");
        *self.count.lock().expect("no panic") += changes.len();
        for change in changes.iter().cloned() {
            let at = (change.board, change.season, change.account);
            match change.key {
                Some(key) => keys.insert(at, key),
                None => keys.remove(&at),
            };
        }
    }

    fn unsure(&self, changes: &[EntryChange]) {
        panic!("the store knows what became of {changes:?}");
    }
}

async fn loaded(store: &Store, board: BoardNumber, season: Season) -> Vec<(String, Key)> {
    store.load_entries(board, season, "").await.expect("entries")
}

#[tokio::test]
async fn t3_a_board_is_defined_changed_and_deleted() {
    on_each(async |store, realm| {
        let other = Realm::new("tanks", "another").unwrap();
        let put = async |realm, version| {
            store.put_board(realm, &name("laps"), b"{}".to_vec(), version, (1, Season(0), None)).await
        };
        let first = put(&realm, Some(0)).await.unwrap();
        assert_eq!((first.version, first.name.as_str()), (1, "laps"));
        assert_eq!(put(&realm, Some(0)).await, Err(StoreError::Stale { current: 1 }));
        let second = put(&realm, Some(1)).await.unwrap();
        assert_eq!((second.version, second.number), (2, first.number));
        assert_eq!(put(&realm, None).await.unwrap().version, 3);
        let elsewhere = put(&other, None).await.unwrap();
        assert_ne!(elsewhere.number, first.number);
        assert_eq!(store.boards(&realm).await.unwrap().len(), 1);
        assert_eq!(store.board(&realm, &name("laps")).await.unwrap().unwrap().version, 3);

        assert_eq!(store.delete_board(&realm, &name("laps"), 5).await, Ok(first.number));
        let missing = store.delete_board(&realm, &name("laps"), 5).await;
        assert_eq!(missing, Err(StoreError::Missing { what: "board" }));
        assert_eq!(store.board(&realm, &name("laps")).await.unwrap(), None);
        assert_eq!(store.boards(&other).await.unwrap(), [elsewhere]);
        // A board of the same name is another one.
        assert!(put(&realm, None).await.unwrap().number > first.number);
        let long =
            store.put_board(&realm, &name("long"), vec![b' '; 20_000], None, (1, Season(0), None)).await;
        assert!(matches!(long, Err(StoreError::Invalid { .. })));
    })
    .await;
}

#[tokio::test]
async fn t3_an_environment_has_a_bounded_number_of_boards() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_in(folder.path(), Options::default()).await;
    let realm = Realm::new("tanks", "testing").unwrap();
    for number in 0..BOARDS_MAX {
        defined(&store, &realm, &format!("b{number}")).await;
    }
    let more = store.put_board(&realm, &name("more"), b"{}".to_vec(), None, (1, Season(0), None)).await;
    assert!(matches!(more, Err(StoreError::Quota { .. })), "{more:?}");
    store.delete_board(&realm, &name("b7"), 1).await.unwrap();
    defined(&store, &realm, "more").await;
}

#[tokio::test]
async fn t3_scores_of_many_at_once_are_those_of_a_model_and_the_order_is_told_of_them() {
    on_each(async |store, realm| {
        let told = Arc::new(Told::default());
        store.watch_entries(Arc::clone(&told) as Arc<dyn EntryWatch>);
        let best = (defined(&store, &realm, "best").await.number, Arc::new(Board::of_players()));
        let sum = (defined(&store, &realm, "sum").await.number, sums());
        with_accounts(&store, &realm, &["p0", "p1", "p2", "p3"]).await;
        let seed = random();
        println!("scores with seed {seed}");
        let model = Arc::new(Mutex::new(BTreeMap::<(BoardNumber, String), i64>::new()));
        let writers: Vec<_> = (0..8_u64)
            .map(|writer| {
                let (store, realm, model) = (store.clone(), realm.clone(), Arc::clone(&model));
                let (best, sum) = (best.clone(), sum.clone());
                tokio::spawn(async move {
                    let mut state = seed.wrapping_add(writer);
                    for round in 0..40 {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        // Two at a time submit for a player: of four that came last, none is forgotten before it comes again.
                        let player = format!("p{}", writer % 4);
                        let points = i64::try_from((state >> 33) % 100).unwrap() - 20;
                        let id = Some(mark_of(&format!("{writer}-{round}")));
                        let of = |(board, rules): &(BoardNumber, Arc<Board>)| {
                            let mut score = new_score(*board, rules, &player, points);
                            score.submission.id = id;
                            score
                        };
                        // Each is sent twice; a sum counts once.
                        for again in [false, true] {
                            let scores = vec![of(&best), of(&sum)];
                            let verdicts = store.submit_scores(&realm, scores).await.unwrap().unwrap();
                            assert_eq!(verdicts[1].again, again);
                        }
                        let mut model = model.lock().unwrap();
                        let held = model.entry((best.0, player.clone())).or_insert(points);
                        *held = points.max(*held);
                        *model.entry((sum.0, player)).or_default() += points;
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.await.unwrap();
        }
        let model = model.lock().unwrap().clone();
        let mut stored = BTreeMap::new();
        for board in [best.0, sum.0] {
            for (player, key) in loaded(&store, board, Season(0)).await {
                let at = (board, Season(0), account_id(&player));
                assert_eq!(told.keys.lock().unwrap().get(&at), Some(&key), "{board:?} {player}");
                stored.insert((board, player), key.score);
            }
            let seasons = store.board_seasons(board).await.unwrap();
            assert_eq!((seasons.len(), seasons[0].entries), (1, 4));
        }
        assert_eq!(stored, model);
    })
    .await;
}

#[tokio::test]
async fn t3_scores_of_one_write_are_stored_all_or_none() {
    on_each(async |store, realm| {
        let told = Arc::new(Told::default());
        store.watch_entries(Arc::clone(&told) as Arc<dyn EntryWatch>);
        with_accounts(&store, &realm, &["ada", "bob", "cyd"]).await;
        let number = defined(&store, &realm, "b").await.number;
        let rules = Arc::new(Board { max: Some(10), seats: Some(2), keep: Keep::Sum, ..Board::default() });
        let of = |account: &str, points| new_score(number, &rules, account, points);
        let refused = store.submit_scores(&realm, vec![of("ada", 1), of("bob", 11)]).await.unwrap();
        assert_eq!(refused, Err((1, ScoreRefusal::Rules(Refused::Score { min: -((1 << 53) - 1), max: 10 }))));
        let refused =
            store.submit_scores(&realm, vec![of("ada", 1), of("bob", 1), of("cyd", 1)]).await.unwrap();
        assert_eq!(refused, Err((2, ScoreRefusal::Seats(2))));
        assert!(loaded(&store, number, Season(0)).await.is_empty() && *told.count.lock().unwrap() == 0);
        // Two of one account in one write count one after the other.
        let verdicts =
            store.submit_scores(&realm, vec![of("ada", 1), of("bob", 2), of("ada", 3)]).await.unwrap();
        assert_eq!(verdicts.unwrap()[2].entry.key.score, 4);
        let scores: Vec<_> =
            loaded(&store, number, Season(0)).await.into_iter().map(|(_, key)| key.score).collect();
        assert_eq!((scores, *told.count.lock().unwrap()), (vec![4, 2], 2));
        let nobody = store.submit_scores(&realm, vec![of("nobody", 1)]).await.unwrap();
        assert_eq!(nobody, Err((0, ScoreRefusal::Account)));
        // A seat that is given back is free.
        assert_eq!(
            store.submit_scores(&realm, vec![of("cyd", 1)]).await.unwrap(),
            Err((0, ScoreRefusal::Seats(2)))
        );
        store.remove_entry(number, Season(0), &account_id("bob")).await.unwrap();
        let again = store.remove_entry(number, Season(0), &account_id("bob")).await;
        assert_eq!(again, Err(StoreError::Missing { what: "entry" }));
        assert!(store.submit_scores(&realm, vec![of("cyd", 1)]).await.unwrap().is_ok());
        let many = vec![of("ada", 0); SCORES_MAX + 1];
        assert!(matches!(store.submit_scores(&realm, many).await, Err(StoreError::Invalid { .. })));
        let mut long = of("ada", 0);
        long.submission.extra = Some(vec![b' '; 1025]);
        assert!(matches!(store.submit_scores(&realm, vec![long]).await, Err(StoreError::Invalid { .. })));
    })
    .await;
}

#[tokio::test]
async fn t3_entries_of_a_deleted_account_are_gone_and_the_order_is_told() {
    on_each(async |store, realm| {
        let told = Arc::new(Told::default());
        store.watch_entries(Arc::clone(&told) as Arc<dyn EntryWatch>);
        let other = Realm::new("tanks", "another").unwrap();
        let rules = Arc::new(Board::of_players());
        let mut numbers = Vec::new();
        for (realm, board) in [(&realm, "one"), (&realm, "two"), (&other, "one")] {
            let number = defined(&store, realm, board).await.number;
            for account_name in ["ada", "bob"] {
                // The second board of a realm finds them there.
                let _ = store.create_account(realm, &account(account_name), None).await;
            }
            let scores = vec![new_score(number, &rules, "ada", 1), new_score(number, &rules, "bob", 2)];
            store.submit_scores(realm, scores).await.unwrap().unwrap();
            numbers.push(number);
        }
        let ada = account_id("ada");
        let own = store.entries_of(&realm, &ada, None, 1).await.unwrap();
        assert_eq!((own.items.len(), own.items[0].board.as_str()), (1, "one"));
        assert_eq!(own.next, Some(format!("{}-0", numbers[0].0)));
        let rest = store.entries_of(&realm, &ada, Some((numbers[0], Season(0))), 1).await.unwrap();
        assert_eq!(
            (rest.items[0].board.as_str(), rest.items[0].entry.key.score, rest.next),
            ("two", 1, None)
        );

        let turned = store
            .put_board(&realm, &name("one"), br#"{"order":"least"}"#.to_vec(), None, (1, Season(0), None))
            .await;
        assert!(matches!(turned, Err(StoreError::Invalid { .. })), "{turned:?}");
        store.delete_account(&realm, &ada).await.unwrap();
        for (number, left) in numbers.iter().zip([1, 1, 2]) {
            assert_eq!(loaded(&store, *number, Season(0)).await.len(), left);
            assert_eq!(store.board_seasons(*number).await.unwrap()[0].entries, left as u64);
        }
        assert_eq!(told.keys.lock().unwrap().len(), 4);
        assert!(store.entries_of(&realm, &ada, None, 9).await.unwrap().items.is_empty());
    })
    .await;
}

#[tokio::test]
async fn t3_seasons_that_a_board_no_longer_keeps_and_deleted_boards_leave_nothing() {
    on_each(async |store, realm| {
        for player in 0..1_200 {
            store.create_account(&realm, &account(&format!("p{player}")), None).await.unwrap();
        }
        let number = defined(&store, &realm, "b").await.number;
        let rules = Arc::new(Board { seasons: Some(2), ..Board::default() });
        let submit = async |season: u64, players: u64| {
            for first in (0..players).step_by(SCORES_MAX) {
                let scores = (first..players.min(first + SCORES_MAX as u64)).map(|player| NewScore {
                    season: Season(season),
                    ..new_score(number, &rules, &format!("p{player}"), 1)
                });
                store.submit_scores(&realm, scores.collect()).await.unwrap().unwrap();
            }
        };
        submit(10, 1_200).await;
        for season in [20, 30, 40] {
            submit(season, 1).await;
        }
        let kept: Vec<u64> =
            store.board_seasons(number).await.unwrap().iter().map(|season| season.season.0).collect();
        assert_eq!(kept, [40, 30, 20]);
        let sweep_all = async |now_ms| {
            let mut rows = 0;
            loop {
                let swept = store.sweep_boards(now_ms).await.unwrap();
                rows += swept.rows;
                if !swept.is_more {
                    return rows;
                }
            }
        };
        assert_eq!(sweep_all(0).await, 1_200);
        assert!(loaded(&store, number, Season(10)).await.is_empty());
        store.delete_board(&realm, &name("b"), 1_000).await.unwrap();
        // What was under way when the board was deleted begins a season of its own.
        submit(50, 3).await;
        assert_eq!(sweep_all(1_000).await, 3, "entries of the seasons that it had");
        assert_eq!(loaded(&store, number, Season(50)).await.len(), 3);
        assert_eq!(sweep_all(100_000).await, 3);
        assert!(loaded(&store, number, Season(50)).await.is_empty());
        assert_eq!(sweep_all(100_000).await, 0);
    })
    .await;
}

#[tokio::test]
async fn t3_the_season_that_runs_when_a_definition_changes_is_stored_if_the_board_has_had_any() {
    on_each(async |store, realm| {
        let put = async |running| {
            let document = br#"{"seasons":1}"#.to_vec();
            store
                .put_board(&realm, &name("b"), document, None, (running * 10, Season(running), None))
                .await
                .unwrap()
        };
        assert_eq!((put(1).await.newest, put(2).await.newest), (None, None), "it has had none");
        let number = put(3).await.number;
        with_accounts(&store, &realm, &["ada"]).await;
        let scored = async |season| {
            let score = NewScore { season: Season(season), ..new_score(number, &sums(), "ada", 1) };
            store.submit_scores(&realm, vec![score]).await.unwrap().unwrap();
        };
        scored(3).await;
        let changed = put(5).await;
        assert_eq!((changed.newest, changed.changed_ms), (Some(Season(5)), 50));
        assert_eq!(store.boards(&realm).await.unwrap().first(), Some(&changed));
        assert_eq!(store.board(&realm, &name("b")).await.unwrap(), Some(changed));
        scored(5).await;
        let seasons = async || {
            let seasons = store.board_seasons(number).await.unwrap();
            seasons.iter().map(|season| (season.season.0, season.entries)).collect::<Vec<_>>()
        };
        assert_eq!(seasons().await, [(5, 1), (3, 1)]);
        // The season of an older clock is not begun again, and those that are no longer kept are gone.
        assert_eq!(put(4).await.newest, Some(Season(5)));
        put(6).await;
        assert_eq!(seasons().await, [(6, 0), (5, 1)]);
    })
    .await;
}

#[tokio::test]
async fn threat_43_t3_a_full_store_takes_what_operators_define_and_scores_that_replace_others() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { data_max: 2 * DATA_MIN, ..Limits::default() };
    let store = open_in(folder.path(), Options { limits, ..Options::default() }).await;
    let realm = Realm::new("tanks", "testing").unwrap();
    with_accounts(&store, &realm, &["ada", "bob"]).await;
    let number = defined(&store, &realm, "b").await.number;
    let of = |account: &str, score| vec![new_score(number, &sums(), account, score)];
    store.submit_scores(&realm, of("ada", 1)).await.unwrap().unwrap();
    let mut boards = 0;
    for bytes in [16_000, 2] {
        let document = format!("{{{}}}", " ".repeat(bytes - 2));
        loop {
            let made =
                store.make_board(&realm, &name(&format!("b{boards}")), document.clone().into(), 1).await;
            match made {
                Ok(_) => boards += 1,
                Err(error) => break assert!(matches!(error, StoreError::Full { .. }), "{error}"),
            }
        }
    }
    let added = store.submit_scores(&realm, of("bob", 1)).await;
    assert!(matches!(added, Err(StoreError::Full { .. })), "{added:?}");
    let replaced = store.submit_known_scores(&realm, of("ada", 2)).await.unwrap().unwrap();
    assert_eq!(replaced[0].entry.key.score, 3);
    let closed = br#"{"closes_ms":1}"#.to_vec();
    let closed = store.put_board(&realm, &name("b"), closed, None, (1, Season(0), None)).await.unwrap();
    assert_eq!(closed.version, 2);
}
