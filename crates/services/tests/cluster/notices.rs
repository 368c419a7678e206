//! Notices and orders at nodes that did not cause them.

use crate::common::{Node, Nodes, nodes_with};
use core::net::Ipv4Addr;
use futures_util::StreamExt;
use parlor_proto::CloseReason;
use parlor_proto::wire::handshake::{Auth, Hello};
use parlor_services::store::Role;
use parlor_testing::{NatsServer, Socket, creating, exchange, nats_programs, within};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Less than any sweep of notices takes: what comes sooner came by a hint.
const BEFORE_SWEEPS: Duration = Duration::from_secs(3);
/// No bus is there.
const NOWHERE: &str = "nats://127.0.0.1:1";

/// Two nodes over this bus, or over PostgreSQL.
async fn over(bus: Option<&str>) -> Option<Nodes> {
    nodes_with(2, |_, setup| {
        setup.config.metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
        setup.online.cluster.as_mut().unwrap().bus = bus.map(|bus| bus.parse().unwrap());
    })
    .await
}

/// A socket with a feed.
async fn feed(node: &Node, token: &str) -> Socket {
    let mut socket = node.socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
    assert!(socket.hear().await["output"].is_object());
    socket
}

/// A room that this player opened at a node. Gives its path.
async fn room(node: &Node, token: &str, config: Value) -> String {
    let opened = node.good("POST", "/rooms", token, json!({ "config": config })).await;
    format!("/rooms/{}", opened["room"]["id"].as_str().unwrap())
}

async fn says(node: &Node, token: &str, path: &str, text: &str) {
    let said = json!({ "type": "chat", "body": { "text": text } });
    node.good("POST", &format!("{path}/messages"), token, said).await;
}

/// The next message of this kind, `event` or `watched`.
async fn hears(socket: &mut Socket, kind: &str) -> Value {
    within(async {
        loop {
            let heard = socket.hear().await;
            if let Some(heard) = heard.get(kind) {
                return heard.clone();
            }
        }
    })
    .await
}

/// The text of the next message that a room's player said.
async fn hears_said(socket: &mut Socket, kind: &str) -> String {
    loop {
        let heard = hears(socket, kind).await;
        if heard["kind"] == "message" {
            return heard["notice"]["body"]["body"]["text"].as_str().unwrap().to_owned();
        }
    }
}

async fn closes(socket: &mut Socket) -> (CloseCode, String) {
    within(async {
        loop {
            if let Message::Close(Some(frame)) = socket.socket.next().await.unwrap().unwrap() {
                return (frame.code, frame.reason.to_string());
            }
        }
    })
    .await
}

/// The value of a figure.
async fn figure(node: &Node, name: &str) -> u64 {
    let addr = node.server.server.metrics_addr().unwrap();
    let answer = exchange(addr, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let line = answer.body().lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {}", answer.body())).parse().unwrap()
}

/// A sweep may come between a commit and its hint. It does so seldom.
async fn found_by_chance(node: &Node, what: &str) {
    let found = figure(node, &format!("parlor_sweep_found_total{{what=\"{what}\"}}")).await;
    assert!(found <= 2, "sweeps found {found} {what}");
}

/// Ada sits at the first node and bob at the second. What is said at either is told once and in order at both.
async fn players_at_two_nodes_hear_each_other(nodes: &Nodes, limit: Duration) {
    let ((ada, _), (bob, _)) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    let (mut at_a, mut at_b) = (feed(&nodes[0], &ada).await, feed(&nodes[1], &bob).await);
    let path = room(&nodes[0], &ada, json!({ "auto_start": false })).await;
    let began = Instant::now();
    nodes[1].good("POST", &format!("{path}/join"), &bob, json!({})).await;
    assert_eq!(hears(&mut at_a, "event").await["kind"], "player_joined");
    for number in 0..12 {
        let (node, token) = if number % 2 == 0 { (0, &ada) } else { (1, &bob) };
        says(&nodes[node], token, &path, &format!("number {number}")).await;
    }
    for socket in [&mut at_a, &mut at_b] {
        let mut seqs = Vec::new();
        for number in 0..12 {
            let heard = loop {
                let heard = hears(socket, "event").await;
                seqs.push(heard["seq"].as_u64().unwrap());
                if heard["kind"] == "message" {
                    break heard;
                }
            };
            assert_eq!(heard["notice"]["body"]["body"]["text"], format!("number {number}"), "{heard}");
        }
        assert!(seqs.is_sorted_by(|one, next| one + 1 == *next), "each once and in order: {seqs:?}");
    }
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
}

#[tokio::test]
async fn players_at_two_nodes_hear_each_other_at_once() {
    let Some(nodes) = over(None).await else { return };
    players_at_two_nodes_hear_each_other(&nodes, BEFORE_SWEEPS).await;
    for node in 0..2 {
        assert_eq!(figure(&nodes[node], "parlor_bus_up").await, 1);
        assert!(figure(&nodes[node], "parlor_hints_total{way=\"heard\"}").await >= 6);
        found_by_chance(&nodes[node], "notices").await;
    }
    nodes.end().await;
}

#[tokio::test]
async fn players_at_two_nodes_hear_each_other_over_nats() {
    for program in nats_programs() {
        let nats = NatsServer::start(&program, &[]);
        let Some(nodes) = over(Some(&nats.address())).await else { return };
        players_at_two_nodes_hear_each_other(&nodes, BEFORE_SWEEPS).await;
        found_by_chance(&nodes[0], "notices").await;
        nodes.end().await;
    }
}

#[tokio::test]
async fn players_at_two_nodes_hear_each_other_without_a_bus_by_sweeps() {
    let Some(nodes) = over(Some(NOWHERE)).await else { return };
    // Two sweeps: one before the last was said, and one after.
    players_at_two_nodes_hear_each_other(&nodes, Duration::from_secs(20)).await;
    assert_eq!(figure(&nodes[0], "parlor_bus_up").await, 0);
    assert!(figure(&nodes[0], "parlor_sweep_found_total{what=\"notices\"}").await >= 1);
    nodes.end().await;
}

#[tokio::test]
async fn what_is_too_large_for_the_bus_is_read_from_the_inbox() {
    let Some(nodes) = over(None).await else { return };
    let ((ada, _), (bob, _)) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    let path = room(&nodes[0], &ada, json!({ "auto_start": false })).await;
    nodes[0].good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let mut at_b = feed(&nodes[1], &bob).await;
    let began = Instant::now();
    says(&nodes[0], &ada, &path, "before").await;
    let patch = json!({ "metadata": { "note": "x".repeat(12_000) } });
    nodes[0].good("PATCH", &path, &ada, patch).await;
    says(&nodes[0], &ada, &path, "after").await;
    assert_eq!(hears_said(&mut at_b, "event").await, "before");
    let large = hears(&mut at_b, "event").await;
    assert!(large.to_string().len() > 12_000, "{large}");
    assert_eq!(hears_said(&mut at_b, "event").await, "after");
    assert!(began.elapsed() < BEFORE_SWEEPS, "{:?}", began.elapsed());
    found_by_chance(&nodes[1], "notices").await;
    nodes.end().await;
}

/// Eve watches at the second node a room of the first.
async fn watched(nodes: &Nodes) -> (String, [String; 2], Socket) {
    let ((ada, _), (bob, _)) = (nodes[0].player("ada").await, nodes[1].player("bob").await);
    let (eve, _) = nodes[1].player("eve").await;
    let path = room(&nodes[0], &ada, json!({ "auto_start": false, "spectators": true })).await;
    nodes[1].good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let mut socket = feed(&nodes[1], &eve).await;
    let id = path.rsplit('/').next().unwrap().to_owned();
    let seen = socket.ask("turn.subscribe", json!({ "room": id })).await;
    assert!(seen["output"]["room"].is_object(), "{seen}");
    (path, [ada, bob], socket)
}

#[tokio::test]
async fn who_watches_a_room_hears_what_each_node_does_to_it_in_order() {
    let Some(nodes) = over(None).await else { return };
    let (path, players, mut eve) = watched(&nodes).await;
    let began = Instant::now();
    for number in 0..12 {
        says(&nodes[number % 2], &players[number % 2], &path, &format!("number {number}")).await;
    }
    for number in 0..12 {
        assert_eq!(hears_said(&mut eve, "watched").await, format!("number {number}"));
    }
    assert!(began.elapsed() < BEFORE_SWEEPS, "{:?}", began.elapsed());
    // Its players leave, and an operator deletes it: at the other node.
    for player in &players {
        nodes[0].good("POST", &format!("{path}/leave"), player, json!({})).await;
    }
    nodes[0].good("POST", &format!("{path}/delete"), &nodes.operator(Role::Server), json!({})).await;
    loop {
        let heard = hears(&mut eve, "watched").await;
        if heard["kind"] == "unsubscribed" {
            break;
        }
    }
    nodes.end().await;
}

#[tokio::test]
async fn who_watches_a_room_without_a_bus_is_cut_off_and_reads_it_again() {
    let Some(nodes) = over(Some(NOWHERE)).await else { return };
    let (path, players, mut eve) = watched(&nodes).await;
    says(&nodes[1], &players[1], &path, "here").await;
    assert_eq!(hears_said(&mut eve, "watched").await, "here");
    says(&nodes[0], &players[0], &path, "elsewhere").await;
    let (code, _) = closes(&mut eve).await;
    assert_eq!(code, CloseCode::Again);
    assert_eq!(figure(&nodes[1], "parlor_sweep_found_total{what=\"rooms\"}").await, 1);
    nodes.end().await;
}

/// A ban at the first node is heard at the second.
async fn a_ban_is_heard(nodes: &Nodes, limit: Duration) {
    let (bob, bob_id) = nodes[1].player("bob").await;
    let admin = nodes.operator(Role::Admin);
    let ticket = nodes[1].good("POST", "/admission", &bob, json!({ "create": true })).await;
    let auth = Auth::Token(ticket["token"].as_str().unwrap().to_owned().into());
    let mut host = nodes[1].server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    host.welcome().await;
    let spare = nodes[1].good("POST", "/admission", &bob, json!({ "create": true })).await;
    let mut socket = feed(&nodes[1], &bob).await;
    let ban = json!({ "account": bob_id, "reason": "cheats" });
    nodes[0].good("POST", "/admin/bans", &admin, ban).await;
    let began = Instant::now();
    assert_eq!(host.closed().await, CloseReason::Kicked { reason: "cheats".to_owned() });
    closes(&mut socket).await;
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    assert_eq!(nodes[1].bad("GET", "/account", &bob, json!({})).await, "banned");
    let auth = Auth::Token(spare["token"].as_str().unwrap().to_owned().into());
    let mut again = nodes[1].server.quic(Hello { auth, ..creating(None, None, 4) }).await;
    again.refusal().await;
    nodes[0].good("POST", "/admin/bans/lift", &admin, json!({ "account": bob_id })).await;
    within(async { while nodes[1].call("GET", "/account", Some(&bob), json!({})).await.0 != 200 {} }).await;
}

#[tokio::test]
async fn a_ban_at_one_node_is_heard_at_the_other_at_once() {
    let Some(nodes) = over(None).await else { return };
    a_ban_is_heard(&nodes, Duration::from_secs(2)).await;
    assert!(figure(&nodes[1], "parlor_hints_total{way=\"heard\"}").await >= 2);
    nodes.end().await;
}

#[tokio::test]
async fn a_ban_at_one_node_is_heard_at_the_other_without_a_bus() {
    let Some(nodes) = over(Some(NOWHERE)).await else { return };
    // A second, and what a busy machine takes.
    a_ban_is_heard(&nodes, Duration::from_secs(5)).await;
    assert!(figure(&nodes[1], "parlor_sweep_found_total{what=\"orders\"}").await >= 1);
    nodes.end().await;
}

#[tokio::test]
async fn signing_out_at_one_node_ends_the_feeds_at_the_other() {
    let Some(nodes) = over(None).await else { return };
    let input = json!({ "app": "tanks", "device": "the device of ada", "name": "ada" });
    let sign_in = async || {
        let (status, answer) = nodes[0].call("POST", "/auth/device", None, input.clone()).await;
        assert_eq!(status, 200, "{answer}");
        let text = |name: &str| answer[name].as_str().unwrap().to_owned();
        (text("access_token"), text("refresh_token"))
    };
    let ((phone, refresh), (desk, _)) = (sign_in().await, sign_in().await);
    let (mut first, mut second) = (feed(&nodes[1], &phone).await, feed(&nodes[1], &desk).await);
    let out = json!({ "app": "tanks", "refresh_token": refresh });
    assert_eq!(nodes[0].call("POST", "/auth/sign-out", None, out).await.0, 200);
    let (code, why) = closes(&mut first).await;
    assert!(code == CloseCode::Policy && why.contains("signed out"), "{code:?} {why}");
    assert!(second.ask("turn.rules", json!({})).await["output"].is_object(), "it is another sign-in");
    nodes[0].good("POST", "/account/sign-out-everywhere", &desk, json!({})).await;
    let (code, why) = closes(&mut second).await;
    assert!(code == CloseCode::Policy && why.contains("signed out"), "{code:?} {why}");
    nodes.end().await;
}

#[tokio::test]
async fn a_role_that_is_taken_at_one_node_is_gone_at_the_other() {
    let Some(nodes) = over(None).await else { return };
    let (ada, id) = nodes[1].player("ada").await;
    assert_eq!(nodes[1].call("GET", "/account", Some(&ada), json!({})).await.0, 200);
    let role = json!({ "account": id, "role": "server" });
    nodes[0].good("POST", "/admin/roles", &nodes.operator(Role::Admin), role).await;
    // A minute would be the life of what the node remembers.
    let began = Instant::now();
    within(async { while nodes[1].call("GET", "/account", Some(&ada), json!({})).await.0 != 401 {} }).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    nodes.end().await;
}

#[tokio::test]
async fn an_account_that_is_deleted_at_one_node_is_put_out_at_the_other() {
    let Some(nodes) = over(None).await else { return };
    let (ada, id) = nodes[1].player("ada").await;
    let mut socket = feed(&nodes[1], &ada).await;
    nodes[0].good("POST", "/account/delete", &ada, json!({ "account": id })).await;
    closes(&mut socket).await;
    within(async { while nodes[1].call("GET", "/account", Some(&ada), json!({})).await.0 == 200 {} }).await;
    nodes.end().await;
}

#[tokio::test]
async fn what_was_ordered_before_a_node_started_concerns_nobody_there_and_is_deleted_when_it_is_old() {
    let Some(mut nodes) = over(None).await else { return };
    let (ada, id) = nodes[0].player("ada").await;
    let ban = json!({ "account": id, "reason": "cheats" });
    let admin = nodes.operator(Role::Admin);
    nodes[0].good("POST", "/admin/bans", &admin, ban).await;
    nodes[0].good("POST", "/admin/bans/lift", &admin, json!({ "account": id })).await;
    let old = "UPDATE orders SET at_us = at_us - 86400000000 - 60000000 WHERE kind = 'ban'";
    let schema = nodes.scratch.schema.clone();
    let operator = &nodes.scratch.operator;
    operator.batch_execute(&format!("SET search_path = {schema}")).await.unwrap();
    assert_eq!(operator.execute(old, &[]).await.unwrap(), 1);
    nodes.start(|_, _| {}).await;
    let mut socket = feed(&nodes[2], &ada).await;
    within(async {
        let kinds = "SELECT kind FROM orders";
        while nodes.scratch.operator.query(kinds, &[]).await.unwrap().len() != 1 {}
    })
    .await;
    assert!(socket.ask("turn.rules", json!({})).await["output"].is_object());
    nodes.end().await;
}
