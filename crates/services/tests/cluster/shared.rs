//! What nodes do once for all of them: rooms for seekers, calls of the webhook, duties, kept matches.

use crate::common::{Nodes, Setup, nodes, nodes_with};
use core::time::Duration;
use parlor_proto::wire::handshake::{Auth, Hello};
use parlor_server::Time;
use parlor_services::WebhookConfig;
use parlor_testing::{Service, opening, told_service, within};
use serde_json::json;
use std::collections::BTreeMap;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// What the store's statement gives in its first row.
async fn asked(nodes: &Nodes, statement: &str) -> Option<String> {
    let statement = statement.replace("SCHEMA", &nodes.scratch.schema);
    let row = nodes.scratch.operator.query_opt(&statement, &[]).await.unwrap();
    row.and_then(|row| row.get(0))
}

#[tokio::test]
async fn seekers_at_two_nodes_find_one_room() {
    const TRIES: usize = 20;
    let Some(nodes) = nodes(2).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
    for number in 0..TRIES {
        let config = json!({
            "game": format!("g{number}"),
            "players": { "min": 2, "max": 2 },
            "turn_based": true,
            "auto_start": true,
        });
        let seek = async |node: usize, token: &str| {
            let input = json!({ "config": config });
            let found = nodes[node].good("POST", "/rooms/join-or-create", token, input).await;
            found["room"]["id"].as_str().unwrap().to_owned()
        };
        let (one, other) = tokio::join!(seek(0, &ada), seek(1, &bob));
        assert_eq!(one, other, "try {number}");
        // Each may wait in few rooms.
        nodes[0].good("POST", &format!("/rooms/{one}/leave"), &ada, json!({})).await;
    }
    assert_eq!(asked(&nodes, "SELECT holder FROM SCHEMA.locks WHERE name LIKE 'opening/%'").await, None);
    nodes.end().await;
}

#[tokio::test]
async fn threat_51_a_seeker_finds_players_who_are_at_another_node_and_none_who_is_away() {
    const AWAY: Duration = Duration::from_secs(200);
    let time = Time::default();
    let Some(nodes) = nodes_with(2, |_, setup| setup.config.time = time.clone()).await else { return };
    let config = json!({ "game": "draw", "players": { "min": 4, "max": 4 }, "auto_start": false });
    let seek = async |node: usize, token: &str| {
        let input = json!({ "config": config });
        let found = nodes[node].good("POST", "/rooms/join-or-create", token, input).await;
        found["room"]["id"].as_str().unwrap().to_owned()
    };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
    let (cid, dan) = (nodes[1].player("cid").await.0, nodes[1].player("dan").await.0);
    let room = seek(0, &ada).await;
    // From here on a player of whom a node knows nothing is away.
    time.pass(AWAY);
    nodes[0].good("GET", "/rooms/mine", &ada, json!({})).await;
    assert_eq!(seek(1, &bob).await, room, "she makes requests at her node");
    nodes[1].good("POST", &format!("/rooms/{room}/leave"), &bob, json!({})).await;
    let mut socket = nodes[0].socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": ada }).to_string()).await;
    while !socket.hear().await["output"].is_object() {}
    time.pass(AWAY);
    within(async {
        let connected = "SELECT account FROM SCHEMA.presence";
        while asked(&nodes, connected).await.is_none() {}
    })
    .await;
    assert_eq!(seek(1, &cid).await, room, "she is connected to her node");
    nodes[1].good("POST", &format!("/rooms/{room}/leave"), &cid, json!({})).await;
    drop(socket);
    within(async { while asked(&nodes, "SELECT account FROM SCHEMA.presence").await.is_some() {} }).await;
    time.pass(AWAY);
    assert_ne!(seek(1, &dan).await, room, "nobody is there");
    nodes.end().await;
}

/// The id of a call.
fn id_of(call: &str) -> String {
    call.lines().find_map(|line| line.strip_prefix("parlor-id: ")).unwrap().to_owned()
}

/// Opens a room, of which the webhook is told.
async fn has_a_guest(node: &Service, host: &str, guest: &str) {
    let opened = node.good("POST", "/rooms", host, json!({ "config": { "auto_start": false } })).await;
    let join = format!("/rooms/{}/join", opened["room"]["id"].as_str().unwrap());
    node.good("POST", &join, guest, json!({})).await;
}

#[tokio::test]
async fn each_call_of_the_webhook_is_sent_by_one_node() {
    const ROOMS: usize = 10;
    let (url, mut calls) = told_service().await;
    let webhook = WebhookConfig { url, key: vec![7; 32], allows_private: true };
    let setup = |_, setup: &mut Setup| setup.online.webhook = Some(webhook.clone());
    let Some(nodes) = nodes_with(2, setup).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[1].player("bob").await.0);
    for number in 0..ROOMS {
        has_a_guest(&nodes[number % 2], &ada, &bob).await;
    }
    let (stored, mut told) = ("SELECT COUNT(*)::text FROM SCHEMA.webhooks", BTreeMap::new());
    let mut hear = |call: String| *told.entry(id_of(&call)).or_insert(0) += 1;
    within(async {
        while asked(&nodes, stored).await.unwrap() != "0" {
            while let Ok(call) = calls.try_recv() {
                hear(call);
            }
        }
    })
    .await;
    while let Ok(call) = calls.try_recv() {
        hear(call);
    }
    // The service says no once, and that call comes again.
    assert_eq!((told.len(), told.values().sum::<usize>()), (ROOMS, ROOMS + 1), "{told:?}");
    nodes.end().await;
}

#[tokio::test]
async fn a_call_that_a_dead_node_has_claimed_is_sent_by_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let webhook = WebhookConfig { url, key: vec![7; 32], allows_private: true };
    let tells = |_, setup: &mut Setup| setup.online.webhook = Some(webhook.clone());
    let Some(mut nodes) = nodes_with(1, tells).await else { return };
    let (ada, bob) = (nodes[0].player("ada").await.0, nodes[0].player("bob").await.0);
    has_a_guest(&nodes[0], &ada, &bob).await;
    let request = async || {
        let (mut stream, mut request) = (within(listener.accept()).await.unwrap().0, Vec::new());
        while !request.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
            within(stream.read_buf(&mut request)).await.unwrap();
        }
        (id_of(std::str::from_utf8(&request).unwrap()), stream)
    };
    // It is told, hears no answer, and dies.
    let (first, _stream) = request().await;
    nodes.start(tells).await;
    drop(nodes.take_first().server.server);
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let due = format!("SELECT id::text FROM SCHEMA.webhooks WHERE due_ms <= {now}");
    assert_eq!(asked(&nodes, &due).await, None, "it is the dead one's");
    let pass = format!("UPDATE {}.webhooks SET due_ms = due_ms - 15000", nodes.scratch.schema);
    nodes.scratch.operator.batch_execute(&pass).await.unwrap();
    assert_eq!(request().await.0, first);
    nodes.end().await;
}

#[tokio::test]
async fn a_duty_has_one_node_and_another_one_after_its_death() {
    let Some(mut nodes) = nodes(2).await else { return };
    let holder = "SELECT holder FROM SCHEMA.locks WHERE name = 'duty/seasons'";
    let of = async |nodes: &Nodes, names: &[&str]| {
        within(async {
            loop {
                let holder = asked(nodes, holder).await.unwrap_or_default();
                if let Some(name) = names.iter().find(|name| holder.starts_with(**name)) {
                    return (*name).to_owned();
                }
            }
        })
        .await
    };
    assert_eq!(of(&nodes, &["a/", "b/"]).await, "a/", "who came first");
    // It dies without a word, and its time passes.
    let dead = nodes.take_first();
    drop(dead.server.server);
    let pass = format!("UPDATE {}.locks SET until_us = 0 WHERE holder LIKE 'a/%'", nodes.scratch.schema);
    nodes.scratch.operator.batch_execute(&pass).await.unwrap();
    of(&nodes, &["b/"]).await;
    nodes.end().await;
}

#[tokio::test]
async fn a_node_that_starts_ends_no_match_of_another() {
    let Some(mut nodes) = nodes(1).await else { return };
    let (ada, _) = nodes[0].player("ada").await;
    let ticket = nodes[0].good("POST", "/admission", &ada, json!({ "create": true })).await;
    let auth = Auth::Token(ticket["token"].as_str().unwrap().to_owned().into());
    let mut host = nodes[0].server.quic(Hello { auth, ..opening("ranked", 4) }).await;
    host.welcome().await;
    let open = "SELECT id FROM SCHEMA.matches WHERE ending IS NULL";
    within(async { while asked(&nodes, open).await.is_none() {} }).await;
    nodes.start(|_, _| {}).await;
    // Whatever a start does to open matches is done before it answers.
    nodes[1].good("GET", "/account", &ada, json!({})).await;
    assert!(asked(&nodes, open).await.is_some());
    nodes.end().await;
}
