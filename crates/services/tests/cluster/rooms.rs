//! Turn rooms that several nodes change.

use crate::common::{Nodes, nodes};
use parlor_services::store::Role;
use serde_json::{Value, json};

fn id_of(answer: &Value) -> String {
    answer["room"]["id"].as_str().unwrap().to_owned()
}

/// Two players who move in turn. Gives the room's path.
async fn in_turn(nodes: &Nodes, tokens: [&str; 2]) -> String {
    let config = json!({ "players": { "min": 2, "max": 2 }, "turn_based": true, "auto_start": true });
    let room = id_of(&nodes[0].good("POST", "/rooms", tokens[0], json!({ "config": config })).await);
    let path = format!("/rooms/{room}");
    nodes[1].good("POST", &format!("{path}/join"), tokens[1], json!({})).await;
    path
}

#[tokio::test]
async fn players_at_two_nodes_move_in_turn() {
    let Some(nodes) = nodes(2).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    let path = in_turn(&nodes, [&ada.0, &bob.0]).await;
    let mut moved = [0, 0];
    let first = nodes[0].good("GET", &path, &ada.0, json!({})).await;
    let mut at = usize::from(first["room"]["current_player"] == bob.1.as_str());
    for _ in 0..10 {
        let token = [&ada.0, &bob.0][at];
        // In its own memory it is still the other one's turn.
        let done = nodes[at].good("POST", &format!("{path}/moves"), token, json!({ "type": "wait" })).await;
        moved[at] += 1;
        at = 1 - at;
        assert_eq!(done["room"]["current_player"], [&ada.1, &bob.1][at].as_str());
    }
    assert_eq!(moved, [5, 5]);
    nodes.end().await;
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
