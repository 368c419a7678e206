//! What is due by the store's clock, whatever a node's own time of day is.

use crate::common::{Nodes, nodes_with};
use parlor_server::Time;
use parlor_testing::within;
use serde_json::{Value, json};

const HOUR_MS: i64 = 60 * 60 * 1_000;
/// The least that a turn may last.
const SHORT_MS: u64 = 1_000;
const LONG_MS: u64 = 60_000;

/// Two players at two nodes, and turns of this length. The room is opened at the first of the nodes.
async fn room(nodes: &Nodes, at: [usize; 2], tokens: [&str; 2], turn_ms: u64) -> String {
    let config = json!({
        "players": { "min": 2, "max": 2 },
        "turn_based": true,
        "auto_start": true,
        "turn_timeout_ms": turn_ms,
    });
    let opened = nodes[at[0]].good("POST", "/rooms", tokens[0], json!({ "config": config })).await;
    let path = format!("/rooms/{}", opened["room"]["id"].as_str().unwrap());
    nodes[at[1]].good("POST", &format!("{path}/join"), tokens[1], json!({})).await;
    path
}

async fn phase(nodes: &Nodes, node: usize, token: &str, path: &str) -> Value {
    nodes[node].good("GET", path, token, json!({})).await["room"]["phase"].clone()
}

/// The time of the store, in milliseconds since 1970.
async fn now_ms(nodes: &Nodes) -> i64 {
    let statement = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    nodes.scratch.operator.query_one(statement, &[]).await.unwrap().get(0)
}

async fn deadline_ms(nodes: &Nodes, path: &str) -> i64 {
    let id = path.rsplit('/').next().unwrap();
    let statement = format!("SELECT deadline_ms FROM {}.rooms WHERE id = $1", nodes.scratch.schema);
    nodes.scratch.operator.query_one(&statement, &[&id]).await.unwrap().get(0)
}

#[tokio::test]
async fn threat_55_a_node_whose_time_of_day_is_wrong_by_an_hour_ends_no_turn_early_or_late() {
    for wrong_by in [HOUR_MS, -HOUR_MS] {
        let wrong = move |number, setup: &mut crate::common::Setup| {
            if number == 1 {
                setup.config.time = Time::wrong_by(wrong_by);
                setup.config.metrics = Some(([127, 0, 0, 1], 0).into());
            }
        };
        let Some(nodes) = nodes_with(2, wrong).await else { return };
        let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
        let mut long = Vec::new();
        for at in [[0, 1], [1, 0]] {
            let path = room(&nodes, at, [&ada, &bob], LONG_MS).await;
            let left_ms = deadline_ms(&nodes, &path).await - now_ms(&nodes).await;
            assert!((30_000..61_000).contains(&left_ms), "{left_ms}");
            long.push(path);
        }
        for at in [[0, 1], [1, 0]] {
            let path = room(&nodes, at, [&ada, &bob], SHORT_MS).await;
            for node in 0..2 {
                within(async { while phase(&nodes, node, &ada, &path).await != "ended" {} }).await;
            }
        }
        for (path, node) in long.iter().flat_map(|path| [(path, 0), (path, 1)]) {
            assert_eq!(phase(&nodes, node, &ada, path).await, "playing");
        }
        // What one node signs is good at the other.
        let (cleo, _) = nodes[1].player("cleo").await;
        nodes[0].good("GET", "/account", &cleo, json!({})).await;
        let addr = nodes[1].server.server.metrics_addr().unwrap();
        let figures = parlor_testing::exchange(
            addr,
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        )
        .await;
        let offset =
            figures.body().lines().find_map(|line| line.strip_prefix("parlor_clock_offset_seconds "));
        let offset: f64 = offset.unwrap().parse().unwrap();
        assert!(
            (offset * 1_000.0 - f64::from(i32::try_from(wrong_by).unwrap())).abs() < 60_000.0,
            "{offset}"
        );
        nodes.end().await;
    }
}

#[tokio::test]
async fn a_turn_ends_in_time_though_the_node_that_set_its_deadline_is_dead() {
    let Some(mut nodes) = nodes_with(2, |_, _| {}).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
    let path = room(&nodes, [1, 1], [&ada, &bob], SHORT_MS).await;
    let due_ms = deadline_ms(&nodes, &path).await;
    drop(nodes.take_last().server.server);
    within(async { while phase(&nodes, 0, &ada, &path).await != "ended" {} }).await;
    let late_ms = now_ms(&nodes).await - due_ms;
    assert!((0..2_500).contains(&late_ms), "{late_ms} ms late");
    nodes.end().await;
}
