//! Kept matches, on any database.

use crate::common::{account_id, fresh_realm, on_each};
use parlor_server::realm::Realm;
use parlor_services::store::{
    Appended, CUT_FULL, ENTRY_BYTES_MAX, GROUP_ENTRIES_MAX, KeptMatch, LOG_PAGE_BYTES, MATCH_BYTES_MAX,
    MatchEnding, MatchEntry, NewMatch, Store, StoreError,
};

const SERVER: &str = "server-1";

fn new_match(id: &str, opened_ms: u64) -> NewMatch {
    NewMatch {
        id: id.into(),
        server: SERVER.into(),
        label: format!("the label of {id}"),
        opened_ms,
        owner: None,
    }
}

fn entry(number: u64, body: &str) -> MatchEntry {
    MatchEntry { number, at_ms: 1_000 + number, body: body.into(), player: None }
}

fn joined(number: u64, player: &str) -> MatchEntry {
    MatchEntry { player: Some(account_id(player)), ..entry(number, "joined") }
}

async fn kept(store: &Store, realm: &Realm, id: &str) -> KeptMatch {
    store.kept_match(realm, id).await.expect("a healthy store").expect("it is there")
}

async fn ids(store: &Store, realm: &Realm, player: Option<&str>) -> Vec<String> {
    let player = player.map(account_id);
    let page = store.kept_matches(realm, player.as_ref(), None, 100).await.expect("a healthy store");
    page.items.into_iter().map(|kept| kept.id).collect()
}

#[tokio::test]
async fn a_log_is_read_back_as_it_was_written() {
    on_each(async |store, realm| {
        store.open_match(&realm, new_match("a", 10)).await.unwrap();
        let group = vec![entry(0, "opened"), joined(1, "ada"), entry(2, "\u{1f451}")];
        assert_eq!(store.append_to_match(&realm, "a", group.clone()).await, Ok(Appended::Kept(3)));
        assert_eq!(store.append_to_match(&realm, "a", vec![entry(3, "x")]).await, Ok(Appended::Kept(4)));
        store.close_match(&realm, "a", 99).await.unwrap();
        store.close_match(&realm, "a", 100).await.unwrap();
        let expected = KeptMatch {
            id: "a".into(),
            label: "the label of a".into(),
            opened_ms: 10,
            ended: Some((99, MatchEnding::Ended)),
            entries: 4,
            bytes: 17,
            cut: None,
        };
        assert_eq!(kept(&store, &realm, "a").await, expected);
        let log = store.match_log(&realm, "a", 0, 100).await.unwrap();
        let bodies: Vec<&str> = log.iter().map(|entry| std::str::from_utf8(&entry.body).unwrap()).collect();
        assert_eq!(bodies, ["opened", "joined", "\u{1f451}", "x"]);
        assert_eq!(log.iter().map(|entry| entry.at_ms).collect::<Vec<_>>(), [1_000, 1_001, 1_002, 1_003]);
        assert_eq!(store.match_log(&realm, "a", 2, 1).await.unwrap(), [entry(2, "\u{1f451}")]);
        assert_eq!(store.match_log(&realm, "a", 4, 1).await.unwrap(), []);
        assert_eq!(store.append_to_match(&realm, "a", vec![entry(4, "late")]).await, Ok(Appended::Over));
        // Another realm sees nothing of it.
        let other = fresh_realm();
        assert_eq!(store.kept_match(&other, "a").await, Ok(None));
        assert_eq!(store.match_log(&other, "a", 0, 100).await, Ok(Vec::new()));
        assert_eq!(ids(&store, &other, None).await, [""; 0]);
        assert_eq!(ids(&store, &other, Some("ada")).await, [""; 0]);
    })
    .await;
}

#[tokio::test]
async fn what_is_put_twice_is_there_once_and_what_is_missing_is_asked_for() {
    on_each(async |store, realm| {
        store.open_match(&realm, new_match("a", 10)).await.unwrap();
        store.open_match(&realm, new_match("a", 10)).await.unwrap();
        let taken = Err(StoreError::Taken { what: "match's id" });
        assert_eq!(store.open_match(&realm, new_match("a", 11)).await, taken);
        let group = vec![entry(0, "0"), entry(1, "1"), joined(2, "ada")];
        for _ in 0..2 {
            assert_eq!(store.append_to_match(&realm, "a", group.clone()).await, Ok(Appended::Kept(3)));
        }
        let overlaps = vec![entry(1, "other"), joined(2, "eve"), entry(3, "3")];
        assert_eq!(store.append_to_match(&realm, "a", overlaps).await, Ok(Appended::Kept(4)));
        for gap in
            [vec![entry(5, "5")], vec![entry(4, "4"), entry(6, "6")], vec![entry(4, "4"), entry(4, "4")]]
        {
            let refused = store.append_to_match(&realm, "a", gap).await;
            assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{refused:?}");
        }
        let log = store.match_log(&realm, "a", 0, 100).await.unwrap();
        let bodies: Vec<Vec<u8>> = log.into_iter().map(|entry| entry.body).collect();
        assert_eq!(bodies, [b"0".to_vec(), b"1".to_vec(), b"joined".to_vec(), b"3".to_vec()]);
        assert!(!store.was_in_match(&realm, "a", &account_id("eve")).await.unwrap());
        let missing = Err(StoreError::Missing { what: "match" });
        assert_eq!(store.append_to_match(&realm, "b", vec![entry(0, "0")]).await, missing);
    })
    .await;
}

#[tokio::test]
async fn matches_are_listed_newest_first_and_to_those_who_were_in_them() {
    on_each(async |store, realm| {
        for (number, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
            // Two opened at the same moment.
            let opened_ms = [10, 20, 20, 30, 40][number];
            store.open_match(&realm, new_match(id, opened_ms)).await.unwrap();
            let player = if number % 2 == 0 { "ada" } else { "bob" };
            let group = vec![joined(0, player), joined(1, "cid"), joined(2, player)];
            store.append_to_match(&realm, id, group).await.unwrap();
        }
        assert_eq!(ids(&store, &realm, None).await, ["e", "d", "c", "b", "a"]);
        assert_eq!(ids(&store, &realm, Some("ada")).await, ["e", "c", "a"]);
        assert_eq!(ids(&store, &realm, Some("cid")).await, ["e", "d", "c", "b", "a"]);
        assert_eq!(ids(&store, &realm, Some("eve")).await, [""; 0]);
        for player in [None, Some(account_id("cid"))] {
            let (mut after, mut found) = (None, Vec::new());
            loop {
                let page = store.kept_matches(&realm, player.as_ref(), after.as_deref(), 2).await.unwrap();
                found.extend(page.items.into_iter().map(|kept| kept.id));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, ["e", "d", "c", "b", "a"]);
        }
        assert!(store.was_in_match(&realm, "a", &account_id("ada")).await.unwrap());
        assert!(!store.was_in_match(&realm, "b", &account_id("ada")).await.unwrap());
        let nonsense = store.kept_matches(&realm, None, Some("nonsense"), 2).await;
        assert!(matches!(nonsense, Err(StoreError::Invalid { .. })), "{nonsense:?}");
    })
    .await;
}

#[tokio::test]
async fn a_log_that_is_full_or_cut_says_so_and_takes_nothing_more() {
    on_each(async |store, realm| {
        store.open_match(&realm, new_match("a", 10)).await.unwrap();
        let large = "x".repeat(ENTRY_BYTES_MAX);
        let fit = MATCH_BYTES_MAX / ENTRY_BYTES_MAX as u64;
        for number in 0..fit - 1 {
            let kept = store.append_to_match(&realm, "a", vec![entry(number, &large)]).await;
            assert_eq!(kept, Ok(Appended::Kept(number + 1)));
        }
        // A group of which the first has room.
        let group = vec![entry(fit - 1, &large), entry(fit, "x"), entry(fit + 1, "x")];
        assert_eq!(store.append_to_match(&realm, "a", group).await, Ok(Appended::Over));
        assert_eq!(store.append_to_match(&realm, "a", vec![entry(fit, "x")]).await, Ok(Appended::Over));
        let full = kept(&store, &realm, "a").await;
        assert_eq!((full.entries, full.bytes, full.cut.as_deref()), (fit, MATCH_BYTES_MAX, Some(CUT_FULL)));
        assert_eq!(full.ended, None, "the match itself goes on");
        // A page of it has a bound of its own.
        let page = store.match_log(&realm, "a", 0, 1_000).await.unwrap();
        assert_eq!(page.len(), LOG_PAGE_BYTES / ENTRY_BYTES_MAX);
        let too_large = store.append_to_match(&realm, "a", vec![entry(0, &format!("{large}x"))]).await;
        assert!(matches!(too_large, Err(StoreError::Invalid { .. })), "{too_large:?}");
        let too_many = (0..=GROUP_ENTRIES_MAX as u64).map(|number| entry(number, "x")).collect();
        assert!(store.append_to_match(&realm, "a", too_many).await.is_err());

        store.open_match(&realm, new_match("b", 10)).await.unwrap();
        store.append_to_match(&realm, "b", vec![entry(0, "x")]).await.unwrap();
        store.cut_match(&realm, "b", "store unavailable").await.unwrap();
        store.cut_match(&realm, "b", "another reason").await.unwrap();
        assert_eq!(store.append_to_match(&realm, "b", vec![entry(1, "x")]).await, Ok(Appended::Over));
        store.close_match(&realm, "b", 50).await.unwrap();
        let cut = kept(&store, &realm, "b").await;
        assert_eq!((cut.entries, cut.cut.as_deref()), (1, Some("store unavailable")));
        assert_eq!(cut.ended, Some((50, MatchEnding::Ended)));
    })
    .await;
}

#[tokio::test]
async fn what_a_server_left_open_is_ended_for_it() {
    on_each(async |store, realm| {
        let on = |id: &str, server: &str| NewMatch { server: server.into(), ..new_match(id, 10) };
        for (server, seen_ms) in [("old", 100), ("other", 190), ("mine", 190)] {
            store.keep_matches_alive(server, seen_ms, 0).await.unwrap();
        }
        for (id, server) in [("a", "old"), ("b", "other"), ("c", "mine"), ("d", "never seen")] {
            store.open_match(&realm, on(id, server)).await.unwrap();
        }
        store.open_match(&realm, on("e", "old")).await.unwrap();
        store.close_match(&realm, "e", 15).await.unwrap();
        store.keep_matches_alive("mine", 200, 150).await.unwrap();
        let over = Some((200, MatchEnding::ServerEnded));
        for (id, ended) in [("a", over), ("b", None), ("c", None), ("e", Some((15, MatchEnding::Ended)))] {
            assert_eq!(kept(&store, &realm, id).await.ended, ended, "{id}");
        }
        // It never said that it is there, so somebody's first word ended it.
        assert_eq!(kept(&store, &realm, "d").await.ended.unwrap().1, MatchEnding::ServerEnded);
        assert_eq!(store.append_to_match(&realm, "a", vec![entry(0, "x")]).await, Ok(Appended::Over));
        // A server that has its store to itself waits for none.
        store.keep_matches_alive("next", 300, u64::MAX).await.unwrap();
        assert_eq!(kept(&store, &realm, "c").await.ended, Some((300, MatchEnding::ServerEnded)));
    })
    .await;
}

#[tokio::test]
async fn what_is_forgotten_is_gone_at_once_and_its_entries_by_and_by() {
    on_each(async |store, realm| {
        for (id, ended_ms) in [("a", Some(50)), ("b", Some(60)), ("c", None)] {
            store.open_match(&realm, new_match(id, 10)).await.unwrap();
            for first in (0..5_000).step_by(1_000) {
                let group = (first..first + 1_000).map(|number| joined(number, "ada")).collect();
                store.append_to_match(&realm, id, group).await.unwrap();
            }
            if let Some(ended_ms) = ended_ms {
                store.close_match(&realm, id, ended_ms).await.unwrap();
            }
        }
        store.forget_old_matches(60, 100).await.unwrap();
        assert_eq!(ids(&store, &realm, None).await, ["c", "b"]);
        assert_eq!(ids(&store, &realm, Some("ada")).await, ["c", "b"]);
        assert!(!store.was_in_match(&realm, "a", &account_id("ada")).await.unwrap());
        store.forget_match(&realm, "b").await.unwrap();
        let missing = Err(StoreError::Missing { what: "match" });
        assert_eq!(store.forget_match(&realm, "b").await, missing);
        assert_eq!(
            store.append_to_match(&realm, "b", vec![entry(5_000, "x")]).await,
            Err(StoreError::Missing { what: "match" })
        );
        // The entries are there still, and no other match takes them for its own.
        assert!(store.open_match(&realm, new_match("b", 70)).await.is_err());
        let mut sweeps = 0;
        while store.sweep_matches().await.unwrap() {
            sweeps += 1;
        }
        assert!(sweeps >= 6, "a few at a time: {sweeps}");
        for id in ["a", "b"] {
            assert_eq!(store.match_log(&realm, id, 0, 1).await.unwrap(), []);
        }
        assert_eq!(store.match_log(&realm, "c", 4_999, 10).await.unwrap().len(), 1, "what goes on stays");
    })
    .await;
}
