//! Presence of friends at other nodes.

use crate::common::{Node, Nodes, nodes, nodes_with};
use core::time::Duration;
use parlor_server::Time;
use parlor_testing::{Socket, within};
use serde_json::{Value, json};

/// A socket of a player.
async fn comes(node: &Node, token: &str) -> Socket {
    let mut socket = node.socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
    within(async { while !socket.hear().await["output"].is_object() {} }).await;
    socket
}

/// What is told next of a friend's presence.
async fn told(socket: &mut Socket) -> Value {
    within(async {
        loop {
            let heard = socket.hear().await;
            if heard["news"]["topic"] == "presence" {
                return heard["news"]["friends"][0].clone();
            }
        }
    })
    .await
}

/// Ada plays at the first node and bob at the second; they are friends.
async fn friends(nodes: &Nodes) -> [(String, String); 2] {
    let (ada, bob) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    nodes[0].good("POST", "/friends", &ada.0, json!({ "account": bob.1 })).await;
    let accepted = nodes[1].good("POST", "/friends/accept", &bob.0, json!({ "account": ada.1 })).await;
    assert_eq!(accepted["state"], "friend");
    [ada, bob]
}

/// What the list of friends says of the only one.
async fn listed(node: &Node, token: &str) -> Value {
    node.good("GET", "/friends", token, json!({})).await["friends"][0].clone()
}

#[tokio::test]
async fn t2_friends_at_two_nodes_are_told_who_is_there_and_what_it_says() {
    let time = Time::default();
    let clock = time.clone();
    let Some(nodes) = nodes_with(2, |_, setup| setup.config.time = clock.clone()).await else { return };
    let [(ada, _), (bob, bob_id)] = friends(&nodes).await;
    let mut ada_socket = comes(&nodes[0], &ada).await;
    let bob_socket = comes(&nodes[1], &bob).await;
    assert_eq!(told(&mut ada_socket).await, json!({ "account": bob_id, "online": true }));
    nodes[1].good("POST", "/presence", &bob, json!({ "status": "in a match", "join": "K7QM" })).await;
    let says = json!({ "account": bob_id, "online": true, "status": "in a match", "join": "K7QM" });
    assert_eq!(told(&mut ada_socket).await, says);
    // Over HTTP at a node to which bob is not connected.
    within(async {
        while nodes[0].call("POST", "/presence", Some(&bob), json!({ "status": "back" })).await.0 != 200 {}
    })
    .await;
    assert_eq!(told(&mut ada_socket).await["status"], "back");
    nodes[1].good("POST", "/presence", &bob, json!({ "visible": false })).await;
    assert_eq!(told(&mut ada_socket).await, json!({ "account": bob_id, "online": false }));
    nodes[1].good("POST", "/presence", &bob, json!({ "status": "here" })).await;
    assert_eq!(told(&mut ada_socket).await["status"], "here");
    // Who comes later is told at once.
    let mut second = comes(&nodes[0], &ada).await;
    drop(ada_socket);
    drop(bob_socket);
    let away = within(async {
        loop {
            time.pass(Duration::from_secs(2));
            tokio::select! {
                told = told(&mut second) => if told["online"] == false { return told },
                _ = listed(&nodes[0], &ada) => {}
            }
        }
    })
    .await;
    assert_eq!(away, json!({ "account": bob_id, "online": false }));
    nodes.end().await;
}

#[tokio::test]
async fn t2_the_list_of_friends_says_who_is_at_another_node_until_that_is_gone() {
    let Some(mut nodes) = nodes(2).await else { return };
    let [(ada, _), (bob, _)] = friends(&nodes).await;
    assert_eq!(listed(&nodes[0], &ada).await["online"], false);
    let _bob_socket = comes(&nodes[1], &bob).await;
    within(async { while listed(&nodes[0], &ada).await["online"] == false {} }).await;
    let mut ada_socket = comes(&nodes[0], &ada).await;
    assert_eq!(told(&mut ada_socket).await["online"], true, "who comes is told who is there");
    nodes.stop().await;
    within(async { while listed(&nodes[0], &ada).await["online"] == true {} }).await;
    assert_eq!(told(&mut ada_socket).await["online"], false);
    nodes.end().await;
}
