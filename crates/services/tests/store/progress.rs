//! Statistics, achievements and ratings in every store: one transaction with all that follows, and each write once.

use crate::boards::new_score;
use crate::common::{account, account_id, on_each};
use parlor_server::realm::Realm;
use parlor_services::store::{
    DefinitionKind, NewStatistic, ResultOutcome, ResultTeam, Store, StoreError, Total,
};
use parlor_social::{
    Board, Goal, Keep, Name, ProgressRefused, ProgressWrite, RATING_START, ResultRefused, Season, Statistic,
    StatisticRefused, StatisticWrite, Writers, mark_of,
};
use std::sync::Arc;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The kill that unlocks the achievement of [`add_kill`].
pub(crate) const ACHIEVED_AT: u64 = 5;

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn add(statistic: &str, rules: Statistic, number: i64, id: &str) -> NewStatistic {
    NewStatistic {
        name: name(statistic),
        rules: Arc::new(rules),
        write: StatisticWrite { number, id: Some(mark_of(id)) },
        follows: None,
        unlocks: Vec::new(),
    }
}

/// Adds one kill of this number, which counts once.
pub(crate) async fn add_kill(store: &Store, realm: &Realm, player: &str, number: u64) {
    let mut kill = add("kills", Statistic::default(), 1, &number.to_string());
    kill.unlocks = vec![(name("killer"), ACHIEVED_AT.cast_signed())];
    let written = store.write_statistics(realm, &account_id(player), vec![kill], 1).await;
    written.expect("a write").expect("a kill");
}

async fn value(store: &Store, realm: &Realm, player: &str, statistic: &str) -> Option<i64> {
    let all = store.statistics_of(realm, &account_id(player), None, 100).await.expect("a read").items;
    all.iter().find(|own| own.name.as_str() == statistic).map(|own| own.value)
}

#[tokio::test]
async fn t4_a_write_unlocks_once_and_the_board_follows_in_the_same_transaction() {
    on_each(async |store, realm| {
        store.create_account(&realm, &account("ada"), None).await.unwrap();
        let ada = account_id("ada");
        let board = Board { keep: Keep::Last, writers: Writers::Server, max: Some(5), ..Board::default() };
        let document = serde_json::to_vec(&board).unwrap();
        let stored =
            store.put_board(&realm, &name("top"), document, None, (1, Season(0), None)).await.unwrap();
        let write = async |ids: &[(&str, i64)]| {
            let writes = ids.iter().map(|(id, number)| {
                let mut write = add("kills", Statistic::default(), *number, id);
                write.follows = Some(new_score(stored.number, &Arc::new(board.clone()), "ada", 0));
                write.unlocks = vec![(name("centurion"), 3), (name("killer"), 100)];
                write
            });
            store.write_statistics(&realm, &ada, writes.collect(), 7).await.unwrap().unwrap()
        };
        let first = write(&[("1", 1), ("2", 1)]).await;
        assert_eq!((first.values, first.unlocked), (vec![(1, false), (2, false)], vec![]));
        // Both have come again, and a third.
        let second = write(&[("1", 1), ("2", 1), ("3", 1)]).await;
        assert_eq!(second.values, [(2, true), (2, true), (3, false)]);
        assert_eq!(second.unlocked, [name("centurion")]);
        assert_eq!(write(&[("4", 1)]).await.unlocked, [], "it is unlocked once");
        let entry = store.entry(stored.number, Season(0), &ada).await.unwrap().unwrap();
        assert_eq!((entry.key.score, entry.tries), (4, 3));
        // A value that the board does not take counts all the same.
        assert_eq!(write(&[("5", 10)]).await.values, [(14, false)]);
        assert_eq!(store.entry(stored.number, Season(0), &ada).await.unwrap().unwrap().key.score, 4);
        let totals = store.achievement_totals(&realm).await.unwrap();
        assert_eq!((totals.get("centurion"), totals.get("")), (Some(&1), Some(&1)));
        // One that is refused leaves all others unwritten.
        let huge = vec![
            add("other", Statistic::default(), 1, "a"),
            add("kills", Statistic::default(), i64::MAX, "b"),
        ];
        let refused = store.write_statistics(&realm, &ada, huge, 7).await.unwrap();
        assert!(matches!(refused, Err((1, StatisticRefused::Range { .. }))), "{refused:?}");
        assert_eq!(value(&store, &realm, "ada", "other").await, None);
        let nobody = store.write_statistics(&realm, &account_id("bob"), Vec::new(), 7).await;
        assert_eq!(nobody, Err(StoreError::Missing { what: "account" }));
    })
    .await;
}

#[tokio::test]
async fn t4_achievements_count_their_players_and_a_deleted_account_leaves_nothing() {
    on_each(async |store, realm| {
        for player in ["ada", "bob"] {
            store.create_account(&realm, &account(player), None).await.unwrap();
        }
        let write = async |player: &str, write, id: Option<&str>| {
            let of = (&name("walker"), Goal::Count(10));
            let written =
                store.write_progress(&realm, &account_id(player), of, (write, id.map(mark_of)), 7).await;
            written.unwrap().unwrap()
        };
        let (three, is_unlocked) = write("ada", ProgressWrite::Add(3), Some("1")).await;
        assert_eq!((three.steps, is_unlocked), (3, false));
        assert_eq!(write("ada", ProgressWrite::Add(3), Some("1")).await.0.steps, 3);
        assert!(write("ada", ProgressWrite::To(12), None).await.1);
        assert!(!write("ada", ProgressWrite::Unlock, None).await.1, "once");
        assert!(write("bob", ProgressWrite::Unlock, None).await.1);
        let counted = async || {
            let totals = store.achievement_totals(&realm).await.unwrap();
            (totals.get("walker").copied(), totals.get("").copied())
        };
        assert_eq!(counted().await, (Some(2), Some(2)));
        write("bob", ProgressWrite::Reset, None).await;
        assert_eq!(counted().await, (Some(1), Some(2)));
        let by_statistic = Goal::Statistic { name: name("kills"), at: 1 };
        let of = (&name("walker"), by_statistic);
        let refused =
            store.write_progress(&realm, &account_id("ada"), of, (ProgressWrite::Unlock, None), 7).await;
        assert_eq!(refused.unwrap(), Err(ProgressRefused::GoalDecides));
        add_kill(&store, &realm, "ada", 1).await;
        let team = |player: &str, place| ResultTeam { players: vec![account_id(player)], place };
        store.rate(&realm, &name("duel"), vec![team("ada", 1), team("bob", 2)], "m1", 7).await.unwrap();
        store.delete_account(&realm, &account_id("ada")).await.unwrap();
        assert_eq!(counted().await, (Some(0), Some(1)));
        assert_eq!(value(&store, &realm, "ada", "kills").await, None);
        assert_eq!(store.ratings_of(&realm, &account_id("ada")).await.unwrap(), []);
        assert_eq!(store.progress_of(&realm, &account_id("ada"), None, 10).await.unwrap().items, []);
    })
    .await;
}

#[tokio::test]
async fn t4_totals_are_of_all_players_by_day() {
    on_each(async |store, realm| {
        let rules = || Statistic { totals: true, ..Statistic::default() };
        for (day, player, number) in
            [(10, "ada", 5), (10, "ada", 2), (10, "bob", 1), (11, "ada", 4), (150, "bob", 1)]
        {
            let id = account_id(player);
            let _ = store.create_account(&realm, &account(player), None).await;
            let write = add("coins", rules(), number, &format!("{day}{number}"));
            store.write_statistics(&realm, &id, vec![write], day * DAY_MS).await.unwrap().unwrap();
        }
        let (all, days) = store.statistic_totals(&realm, &name("coins"), 30, 11 * DAY_MS).await.unwrap();
        assert_eq!(all, Total { day: 0, players: 2, writes: 5, total: 13 });
        let expected = [(150, 1, 1, 1)];
        let shown: Vec<_> = days.iter().map(|it| (it.day, it.players, it.writes, it.total)).collect();
        assert_eq!(shown, expected, "older days are deleted");
        let (_, none) = store.statistic_totals(&realm, &name("coins"), 30, 400 * DAY_MS).await.unwrap();
        assert_eq!(none, []);
    })
    .await;
}

#[tokio::test]
async fn threat_26_a_result_counts_once_and_rates_all_or_nobody() {
    on_each(async |store, realm| {
        for player in ["ada", "bob"] {
            store.create_account(&realm, &account(player), None).await.unwrap();
        }
        let team = |player: &str, place| ResultTeam { players: vec![account_id(player)], place };
        let rate = async |teams, id: &str, now_ms| {
            store.rate(&realm, &name("duel"), teams, id, now_ms).await.unwrap()
        };
        let ratings = async || {
            let both = vec![account_id("ada"), account_id("bob")];
            store.ratings(&realm, &name("duel"), both).await.unwrap()
        };
        assert_eq!(ratings().await, [RATING_START; 2]);
        let ResultOutcome::Rated(rated) = rate(vec![team("ada", 1), team("bob", 2)], "m1", 7).await else {
            panic!("it is rated");
        };
        assert!(rated[0].after.points() > 2500 && rated[1].after.points() < 2500, "{rated:?}");
        let after = ratings().await;
        assert_eq!(after, [rated[0].after, rated[1].after]);
        for _ in 0..3 {
            assert_eq!(rate(vec![team("bob", 1), team("ada", 2)], "m1", 8).await, ResultOutcome::Again);
        }
        let with_nobody = rate(vec![team("ada", 1), team("cyd", 2)], "m2", 8).await;
        assert_eq!(with_nobody, ResultOutcome::NoAccount(account_id("cyd")));
        let alone = rate(vec![team("ada", 1)], "m2", 8).await;
        assert_eq!(alone, ResultOutcome::Refused(ResultRefused::Teams));
        assert_eq!(ratings().await, after, "nothing of it has counted");
        // Another ladder, and another result after the id was forgotten.
        let other = store.ratings(&realm, &name("race"), vec![account_id("ada")]).await.unwrap();
        assert_eq!(other, [RATING_START]);
        rate(vec![team("ada", 1), team("bob", 1)], "m3", 9 * DAY_MS).await;
        let again = rate(vec![team("ada", 1), team("bob", 2)], "m1", 9 * DAY_MS).await;
        assert!(matches!(again, ResultOutcome::Rated(_)), "{again:?}");
    })
    .await;
}

#[tokio::test]
async fn definitions_have_versions_and_a_bound() {
    on_each(async |store, realm| {
        let put = async |kind, text: &str, version| {
            store.put_definition(&realm, (kind, &name(text)), b"{}".to_vec(), version, (7, true)).await
        };
        let statistic = DefinitionKind::Statistic;
        assert_eq!(put(statistic, "kills", Some(0)).await, Ok(1));
        assert_eq!(put(statistic, "kills", None).await, Ok(2));
        assert_eq!(put(statistic, "kills", Some(1)).await, Err(StoreError::Stale { current: 2 }));
        assert_eq!(
            put(DefinitionKind::Ladder, "kills", Some(0)).await,
            Ok(1),
            "kinds have names of their own"
        );
        assert_eq!(store.definitions(&realm).await.unwrap().len(), 2);
        store.delete_definition(&realm, statistic, &name("kills")).await.unwrap();
        let gone = store.delete_definition(&realm, statistic, &name("kills")).await;
        assert_eq!(gone, Err(StoreError::Missing { what: "definition" }));
    })
    .await;
}
