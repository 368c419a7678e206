//! Turn rooms that several nodes change.

use crate::common::nodes;
use parlor_services::store::Role;
use serde_json::{Value, json};

fn id_of(answer: &Value) -> String {
    answer["room"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn what_one_node_commits_every_other_reads() {
    let Some(nodes) = nodes(2).await else { return };
    let ((ada, _), (bob, _)) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    let room = id_of(&nodes[0].good("POST", "/rooms", &ada, json!({ "config": {} })).await);
    let path = format!("/rooms/{room}");
    nodes[1].good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let operator = nodes.operator(Role::Server);
    for round in 0..3 {
        for node in 0..2 {
            // Both have the room in memory.
            let before = nodes[node].good("GET", &path, &ada, json!({})).await;
            let other = &nodes[1 - node];
            let patch = json!({ "metadata": { "round": [round, node] } });
            other.good("PATCH", &path, &ada, patch.clone()).await;
            for reader in [&ada, &operator] {
                let read = nodes[node].good("GET", &path, reader, json!({})).await;
                assert_ne!(before["room"]["metadata"], patch["metadata"]);
                assert_eq!(read["room"]["metadata"], patch["metadata"]);
            }
        }
    }
    nodes.end().await;
}
