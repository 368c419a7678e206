//! Boards that several nodes write.

use crate::common::{Nodes, nodes};
use core::time::Duration;
use parlor_server::realm::Realm;
use parlor_services::store::{AccountId, BoardNumber, NewScore, NodeName, Options, Role, Store, StoredBoard};
use parlor_social::{Board, Keep, Name, Season, Submission, mark_of};
use parlor_testing::{postgres, within};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::time::Instant;

/// The scores on a board as a node tells them, by account.
async fn scores(nodes: &Nodes, node: usize, board: &str, token: &str) -> BTreeMap<String, i64> {
    let page = nodes[node].good("GET", &format!("/boards/{board}?count=100"), token, json!({})).await;
    let entries = page["entries"].as_array().unwrap();
    let ranks: Vec<i64> = entries.iter().map(|entry| entry["score"].as_i64().unwrap()).collect();
    assert!(ranks.is_sorted_by(|better, worse| better >= worse), "{page}");
    let of =
        |entry: &Value| (entry["account"].as_str().unwrap().to_owned(), entry["score"].as_i64().unwrap());
    entries.iter().map(of).collect()
}

/// Waits until a node tells these scores. Returns how long that took.
async fn tells(
    nodes: &Nodes,
    node: usize,
    board: &str,
    token: &str,
    expected: &BTreeMap<String, i64>,
) -> Duration {
    let began = Instant::now();
    within(async {
        while scores(nodes, node, board, token).await != *expected {
            tokio::task::yield_now().await;
        }
    })
    .await;
    began.elapsed()
}

async fn define(nodes: &Nodes, node: usize, board: &str, definition: Value) {
    let input = json!({ "board": board, "definition": definition });
    nodes[node].good("POST", "/admin/boards", &nodes.operator(Role::Admin), input).await;
}

/// Waits until a node knows a board.
async fn knows(nodes: &Nodes, node: usize, board: &str, token: &str) {
    within(async {
        let path = format!("/boards/{board}/seasons");
        while nodes[node].call("GET", &path, Some(token), json!({})).await.0 != 200 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn the_order_of_a_board_is_a_models_with_writers_at_every_node() {
    let Some(nodes) = nodes(2).await else { return };
    for (board, keep) in [("best", "best"), ("sums", "sum")] {
        define(&nodes, 0, board, json!({ "keep": keep, "writers": "server" })).await;
    }
    let mut players = Vec::new();
    for number in 0..6 {
        players.push(nodes[number % 2].player(&format!("p{number}")).await);
    }
    let (server, token) = (nodes.operator(Role::Server), players[0].0.clone());
    for board in ["best", "sums"] {
        // Both nodes have the ranks in memory from here on.
        for node in 0..2 {
            knows(&nodes, node, board, &token).await;
            assert!(scores(&nodes, node, board, &token).await.is_empty());
        }
    }
    let (at, server) = (&nodes, server.as_str());
    let submit = |node: usize, board: &'static str, number: usize, score: i64, id: String| {
        let input = json!({ "account": players[number].1, "score": score, "id": id });
        async move {
            let answer = at[node].good("POST", &format!("/boards/{board}/scores"), server, input).await;
            // Its own writes count at once.
            assert!(answer["rank"].as_u64().is_some_and(|rank| (1..=6).contains(&rank)), "{answer}");
        }
    };
    let mut writers = Vec::new();
    let (mut best, mut sums) = (BTreeMap::new(), BTreeMap::new());
    for round in 0..12 {
        for (number, (_, account)) in players.iter().enumerate() {
            let (score, node) = ((number * 7 + round * 5) % 41, (number + round) % 2);
            let score = i64::try_from(score).unwrap();
            writers.push(submit(node, "best", number, score, format!("b{round}")));
            writers.push(submit(1 - node, "sums", number, score, format!("s{round}")));
            let account = account.clone();
            let most = best.entry(account.clone()).or_insert(score);
            *most = score.max(*most);
            *sums.entry(account).or_insert(0) += score;
        }
    }
    futures_util::future::join_all(writers).await;
    for node in 0..2 {
        for (board, expected) in [("best", &best), ("sums", &sums)] {
            let took = tells(&nodes, node, board, &token, expected).await;
            assert!(took <= Duration::from_secs(2), "{took:?}");
        }
    }
    // What one node removes goes at the other.
    let gone = players[3].1.clone();
    let remove = json!({ "account": gone });
    nodes[0].good("POST", "/boards/best/remove", &nodes.operator(Role::Admin), remove).await;
    best.remove(&gone);
    assert!(tells(&nodes, 1, "best", &token, &best).await <= Duration::from_secs(2));
}

#[tokio::test]
async fn ranks_behind_a_log_that_was_deleted_are_loaded_again() {
    let Some(nodes) = nodes(2).await else { return };
    let (ada, ada_id) = nodes[0].player("ada").await;
    let (bob, bob_id) = nodes[1].player("bob").await;
    define(&nodes, 0, "top", json!({ "writers": "players" })).await;
    knows(&nodes, 1, "top", &ada).await;
    let submit = async |node: usize, token: &str, score: i64| {
        nodes[node].good("POST", "/boards/top/scores", token, json!({ "score": score })).await
    };
    submit(0, &ada, 5).await;
    submit(1, &bob, 4).await;
    let mut expected = BTreeMap::from([(ada_id.clone(), 5), (bob_id, 4)]);
    for node in 0..2 {
        tells(&nodes, node, "top", &ada, &expected).await;
    }
    submit(0, &ada, 9).await;
    expected.insert(ada_id, 9);
    let delete = format!("DELETE FROM {}.board_log", nodes.scratch.schema);
    nodes.scratch.operator.batch_execute(&delete).await.unwrap();
    for node in 0..2 {
        tells(&nodes, node, "top", &ada, &expected).await;
    }
    assert_eq!(submit(1, &bob, 10).await["rank"], 1);
    nodes.end().await;
}

#[tokio::test]
async fn a_definition_counts_at_every_node() {
    let Some(nodes) = nodes(2).await else { return };
    let admin = nodes.operator(Role::Admin);
    let title = async |node: usize| {
        let list = nodes[node].good("GET", "/boards", &admin, json!({})).await;
        list["boards"][0]["title"].as_str().map(str::to_owned)
    };
    assert_eq!((title(0).await, title(1).await), (None, None));
    let queues = async |node: usize| {
        let list = nodes[node].good("GET", "/matchmaking/queues", &admin, json!({})).await;
        list["queues"].as_array().unwrap().len()
    };
    assert_eq!((queues(0).await, queues(1).await), (0, 0));
    for (node, text) in [(0, "one"), (1, "two"), (0, "three")] {
        define(&nodes, node, "top", json!({ "title": text })).await;
        assert_eq!(title(node).await.as_deref(), Some(text), "its own counts at once");
        within(async {
            while title(1 - node).await.as_deref() != Some(text) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
    let queue = json!({ "kind": "queue", "name": "duel", "definition": {} });
    nodes[1].good("POST", "/admin/definitions", &admin, queue).await;
    within(async {
        while queues(0).await == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    nodes[0].good("POST", "/admin/boards/delete", &admin, json!({ "board": "top" })).await;
    within(async {
        while title(1).await.is_some() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    nodes.end().await;
}

async fn store_of(address: &str, node: Option<&str>) -> Store {
    let node = node.map(|node| node.parse::<NodeName>().unwrap());
    // A machine that runs many tests at once may be slow.
    let options = Options { node, answer_limit: Duration::from_secs(30), ..Options::default() };
    Store::open_with(address, options).await.unwrap()
}

async fn account(store: &Store, realm: &Realm, name: &str) -> AccountId {
    let account = parlor_services::store::Account {
        id: AccountId::new(name).unwrap(),
        kind: parlor_services::store::AccountKind::Guest,
        role: Role::Player,
        display_name: String::new(),
        created_ms: 1,
    };
    store.create_account(realm, &account, None).await.unwrap();
    account.id
}

fn score(board: BoardNumber, account: &AccountId, score: i64, id: &str) -> NewScore {
    NewScore {
        board,
        rules: Arc::new(Board { keep: Keep::Sum, ..Board::of_players() }),
        season: Season(0),
        ends_ms: None,
        receipt: None,
        account: account.clone(),
        submission: Submission { score, at_ms: 1, id: Some(mark_of(id)), ..Submission::default() },
    }
}

#[tokio::test]
async fn whoever_reads_the_log_finds_each_change_once_and_in_order_beside_64_writers() {
    const WRITERS: usize = 64;
    const SCORES: usize = 8;
    let Some(scratch) = postgres().await else { return };
    let stores = [store_of(&scratch.address, Some("a")).await, store_of(&scratch.address, Some("b")).await];
    let realm = Realm::new("tanks", "testing").unwrap();
    let name = Name::new("top").unwrap();
    let StoredBoard { number: board, .. } =
        stores[0].put_board(&realm, &name, b"{}".to_vec(), None, (1, Season(0), None)).await.unwrap();
    let mut players = Vec::new();
    for number in 0..4 {
        players.push(account(&stores[0], &realm, &format!("p{number}")).await);
    }
    let (stores, players, realm) = (&stores, &players, &realm);
    let writers = (0..WRITERS).map(|writer| async move {
        for number in 0..SCORES {
            let id = format!("{writer}/{number}");
            let scores = vec![score(board, &players[(writer + number) % 4], 1, &id)];
            stores[writer % 2].submit_scores(realm, scores).await.unwrap().unwrap();
        }
    });
    let all = (WRITERS * SCORES) as u64;
    let reader = within(async {
        let (mut last, mut sums) = (0, BTreeMap::new());
        while last < all {
            let logged = stores[1].logged_changes(board, Season(0), last).await.unwrap();
            for (number, account, key) in logged.changes {
                assert_eq!(number, last + 1, "no change is missing, and none comes later");
                last = number;
                sums.insert(account, key.unwrap().score);
            }
            assert!(logged.logged.unwrap_or(0) <= last, "what was committed before is read");
        }
        sums
    });
    let (sums, _) = tokio::join!(reader, futures_util::future::join_all(writers));
    assert_eq!(sums.values().sum::<i64>(), i64::try_from(all).unwrap(), "no score was lost");
    assert!(stores[0].logged_changes(board, Season(1), 0).await.unwrap().logged.is_none());

    // Rows that are older than the time go, by whichever node.
    assert!(!stores[0].sweep_board_log(Duration::from_secs(3_600)).await.unwrap());
    assert_eq!(stores[1].logged_changes(board, Season(0), 0).await.unwrap().changes.len() as u64, all);
    assert!(!stores[0].sweep_board_log(Duration::ZERO).await.unwrap());
    let left = stores[1].logged_changes(board, Season(0), 0).await.unwrap();
    assert_eq!((left.logged, left.changes.len()), (Some(all), 0));
    for store in stores {
        store.close();
    }

    // A server alone writes nothing to it.
    let alone = store_of(&scratch.address, None).await;
    alone.submit_scores(realm, vec![score(board, &players[0], 1, "alone")]).await.unwrap().unwrap();
    let after = alone.logged_changes(board, Season(0), 0).await.unwrap();
    assert_eq!((after.logged, after.changes.len()), (Some(all), 0));
    alone.close();
    scratch.remove().await;
}
