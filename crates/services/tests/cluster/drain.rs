//! Nodes that are ordered to take no more rooms.

use crate::common::{Nodes, nodes};
use crate::directory::follow;
use crate::homes::Player;
use core::time::Duration;
use parlor_proto::session::{Event, Rejection};
use parlor_proto::{CloseReason, RoomCode};
use parlor_services::store::Role;
use parlor_testing::{creating, joining, within};
use serde_json::{Value, json};

/// Waits until each node sees a node in this state.
async fn until_state(nodes: &Nodes, id: &str, state: &str) {
    let token = nodes.operator(Role::Server);
    for number in 0..2 {
        within(async {
            let is_so = |list: &Value| {
                let all = list["nodes"].as_array().unwrap();
                all.iter().any(|node| node["id"] == id && node["state"] == state)
            };
            while !is_so(&nodes[number].good("GET", "/admin/nodes", &token, json!({})).await) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// Waits until a node's standing is this.
async fn until_standing(nodes: &Nodes, number: usize, standing: &str) {
    let token = nodes.operator(Role::Server);
    within(async {
        while nodes[number].good("GET", "/admin/nodes", &token, json!({})).await["standing"] != standing {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_draining_node_keeps_its_rooms_and_new_ones_open_at_the_other() {
    let Some(nodes) = nodes(2).await else { return };
    let (admin, server) = (nodes.operator(Role::Admin), nodes.operator(Role::Server));
    let code: RoomCode = "HELLO7".parse().unwrap();
    let (host, opened, at) = follow(&nodes, 0, &creating(Some(code), None, 4)).await;
    assert_eq!((opened, at), (Ok(code), 0));
    assert_eq!(nodes[0].server.get("/ready").await.status(), 200);
    // Any node takes the order.
    let ordered = nodes[1].good("POST", "/admin/nodes/a/drain", &admin, json!({})).await;
    assert_eq!(ordered, json!({ "node": "a", "state": "draining" }));
    until_state(&nodes, "a", "draining").await;
    until_standing(&nodes, 0, "draining").await;
    let ready = nodes[0].server.get("/ready").await;
    assert_eq!((ready.status(), &ready.json()["ready"]), (503, &json!(false)));
    assert_eq!(nodes[1].server.get("/ready").await.status(), 200);
    // Openings are sent on, also those that are of this node alone: a chosen code.
    for hello in [creating(None, None, 4), creating(Some("HELLO8".parse().unwrap()), None, 4)] {
        let (_host, opened, at) = follow(&nodes, 0, &hello).await;
        assert!(opened.is_ok() && at == 1, "{opened:?} at {at}");
    }
    // Players join its room from every node.
    for from in [1, 0] {
        let (guest, joined, at) = follow(&nodes, from, &joining(code, None)).await;
        assert_eq!((joined, at), (Ok(code), 0));
        guest.leave().await;
    }
    // Twice is as good as once.
    nodes[0].good("POST", "/admin/nodes/a/drain", &admin, json!({})).await;
    let back = nodes[0].good("POST", "/admin/nodes/a/undrain", &admin, json!({})).await;
    assert_eq!(back, json!({ "node": "a", "state": "serving" }));
    until_standing(&nodes, 0, "held").await;
    until_state(&nodes, "a", "serving").await;
    let (_host, opened, at) = follow(&nodes, 0, &creating(Some("HELLO9".parse().unwrap()), None, 4)).await;
    assert!(opened.is_ok() && at == 0, "{opened:?} at {at}");
    host.leave().await;
    for path in ["/admin/nodes/c/drain", "/admin/nodes/NODE/undrain"] {
        assert_eq!(nodes[0].bad("POST", path, &admin, json!({})).await, "no_such_node");
    }
    assert_eq!(nodes[0].bad("POST", "/admin/nodes/a/drain", &server, json!({})).await, "forbidden");
    nodes.end().await;
}

#[tokio::test]
async fn where_all_nodes_drain_an_opening_is_put_off() {
    let Some(nodes) = nodes(2).await else { return };
    let admin = nodes.operator(Role::Admin);
    for id in ["a", "b"] {
        nodes[0].good("POST", &format!("/admin/nodes/{id}/drain"), &admin, json!({})).await;
        until_state(&nodes, id, "draining").await;
    }
    until_standing(&nodes, 0, "draining").await;
    let mut client = nodes[0].server.quic(creating(None, None, 4)).await;
    let Event::Rejected(Rejection::RetryAfter(retry)) = client.event().await else {
        panic!("it opened a room")
    };
    assert!(retry.detail.contains("no new rooms"), "{}", retry.detail);
    nodes.end().await;
}

#[tokio::test]
async fn a_draining_node_is_the_home_of_no_lobby() {
    let Some(nodes) = nodes(2).await else { return };
    let admin = nodes.operator(Role::Admin);
    let order = async |id: &str, verb: &str| {
        nodes[0].good("POST", &format!("/admin/nodes/{id}/{verb}"), &admin, json!({})).await;
        until_state(&nodes, id, if verb == "drain" { "draining" } else { "serving" }).await;
    };
    let mut ada = Player::at(&nodes, 0, "ada").await;
    order("a", "drain").await;
    // Its home is `b`, and is `a` once that one drains.
    for (drained, other) in [("a", "b"), ("b", "a")] {
        let lobby = within(async {
            loop {
                let (_, made) = nodes[0].call("POST", "/lobbies", Some(&ada.token), json!({})).await;
                if let Some(lobby) = made["lobby"]["id"].as_str() {
                    return lobby.to_owned();
                }
                tokio::task::yield_now().await;
            }
        })
        .await;
        order(drained, "undrain").await;
        order(other, "drain").await;
        let topic = format!("lobby/{lobby}");
        let why =
            ada.hears(|news| news.get("gone").filter(|_| news["topic"] == topic.as_str()).cloned()).await;
        assert_eq!(why, "ended");
    }
    nodes.end().await;
}

#[tokio::test]
async fn a_node_that_is_to_end_waits_for_its_rooms_and_ends_those_that_are_left() {
    let Some(mut nodes) = nodes(2).await else { return };
    let left: RoomCode = "HELLO7".parse().unwrap();
    let (mut host, opened, at) = follow(&nodes, 0, &creating(Some(left), None, 4)).await;
    assert_eq!((opened, at), (Ok(left), 0));
    let server = &nodes[0].server.server;
    within(server.drain(Duration::from_millis(100))).await;
    let CloseReason::RoomEnded { reason } = host.closed().await else { panic!("another reason") };
    assert!(reason.contains("not over in time"), "{reason}");
    // Without a room there is nothing to wait for: this limit is never reached.
    within(server.drain(Duration::from_secs(24 * 60 * 60))).await;
    nodes.stop_number(0).await;
    nodes.end().await;
}
