//! Lobbies and parties over the services: who finds, joins and owns them, what members are told, and where they go on.

use crate::friends::{befriend, comes, news};
use crate::hall::Hall;
use parlor_server::Time;
use parlor_services::store::Role;
use parlor_testing::within;
use serde_json::{Value, json};
use std::time::Duration;

impl Hall {
    async fn lobby(&self, token: &str, input: Value) -> Value {
        self.good("POST", "/lobbies", token, input).await["lobby"].clone()
    }

    /// Ids that a search finds.
    async fn found(&self, token: &str, search: Value) -> Vec<Value> {
        let found = self.good("POST", "/lobbies/find", token, search).await;
        found["lobbies"].as_array().unwrap().iter().map(|lobby| lobby["id"].clone()).collect()
    }
}

#[tokio::test]
async fn t5_players_find_a_lobby_are_told_of_each_other_and_go_on_in_a_room() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut ada_socket = comes(&hall, &ada).await;
    let _bob_socket = comes(&hall, &bob).await;
    let new =
        json!({ "name": "Mill", "bucket": "coop", "max": 3, "properties": { "level": 7, "map": "mill" } });
    let lobby = hall.lobby(&ada, new).await;
    let (id, topic) = (lobby["id"].clone(), format!("lobby/{}", lobby["id"].as_str().unwrap()));
    let at = |below: &str| format!("/lobbies/{}{below}", id.as_str().unwrap());
    assert_eq!((&lobby["owner"], &lobby["size"], &lobby["version"]), (&json!(ada_id), &json!(1), &json!(1)));
    for (search, is_found) in [
        (json!({"bucket": "coop"}), true),
        (json!({"bucket": "duel"}), false),
        (json!({"filter": {"level": {"ge": 5, "lt": 10}, "map": ["mill"]}}), true),
        (json!({"filter": {"level": {"gt": 7}}}), false),
        (json!({"free_seats": 2, "near": {"level": 10}}), true),
        (json!({"free_seats": 3}), false),
        (json!({"of_friends": true}), false),
    ] {
        let expected = if is_found { vec![id.clone()] } else { Vec::new() };
        assert_eq!(hall.found(&bob, search.clone()).await, expected, "{search}");
    }
    let seen = hall.good("GET", &at(""), &bob, json!({})).await;
    assert!(
        seen["lobby"]["code"].is_null() && seen["lobby"]["members"].is_null(),
        "not for strangers: {seen}"
    );
    let joined =
        hall.good("POST", "/lobbies/join", &bob, json!({ "lobby": id, "mine": { "tank": "T-9" } })).await;
    assert_eq!(joined["lobby"]["members"][1]["account"], json!(bob_id));
    let told = within(async {
        loop {
            let told = news(&mut ada_socket, &topic).await;
            if told["lobby"]["size"] == json!(2) {
                return told["lobby"].clone();
            }
        }
    })
    .await;
    assert_eq!(
        (&told["members"][1]["properties"], &told["members"][1]["here"]),
        (&json!({ "tank": "T-9" }), &json!(true))
    );
    hall.good("PATCH", &at("/me"), &bob, json!({ "properties": { "ready": 1, "tank": null } })).await;
    let read = hall.good("GET", &at(""), &ada, json!({})).await["lobby"].clone();
    assert_eq!((&read["ready"], &read["members"][1]["properties"]), (&json!(1), &json!({ "ready": 1 })));
    let stale = json!({ "locked": true, "version": 1 });
    assert_eq!(hall.bad("PATCH", &at(""), &ada, stale).await, "stale");
    hall.good("PATCH", &at(""), &ada, json!({ "locked": true, "properties": { "level": null } })).await;
    assert_eq!(hall.found(&bob, json!({"bucket": "coop"})).await, Vec::<Value>::new(), "it is locked");
    // What somebody says comes to all, in order.
    for number in 1..=3 {
        let said = json!({ "type": "chat", "body": { "text": format!("hello {number}") } });
        assert_eq!(hall.good("POST", &at("/messages"), &bob, said).await["n"], json!(number));
    }
    let said = format!("{topic}/said");
    for number in 1..=3 {
        let told = news(&mut ada_socket, &said).await;
        assert_eq!((&told["n"], &told["from"]), (&json!(number), &json!(bob_id)), "{told}");
    }
}

#[tokio::test]
async fn t5_a_lobby_goes_on_in_a_room_of_its_owner_who_hands_over_and_is_kicked() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut ada_socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    let lobby = hall.lobby(&ada, json!({})).await;
    let (id, topic) = (lobby["id"].clone(), format!("lobby/{}", lobby["id"].as_str().unwrap()));
    let at = |below: &str| format!("/lobbies/{}{below}", id.as_str().unwrap());
    hall.good("POST", "/lobbies/join", &bob, json!({ "lobby": id })).await;
    let read = hall.good("GET", &at(""), &ada, json!({})).await["lobby"].clone();
    // Only a room in which the owner sits.
    assert_eq!(hall.bad("POST", &at("/room"), &ada, json!({ "code": "ZZZZ" })).await, "no_such_room");
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let code = opened["room"]["code"].clone();
    assert_eq!(hall.bad("POST", &at("/room"), &bob, json!({ "code": code })).await, "no_such_room");
    let gone_on = hall.good("POST", &at("/room"), &ada, json!({ "code": code })).await;
    assert_eq!(gone_on["lobby"]["room"], json!({ "kind": "turn", "code": code }));
    within(async { while news(&mut bob_socket, &topic).await["lobby"]["room"]["code"] != code {} }).await;
    // The owner hands over, kicks nobody any more, and leaves.
    hall.good("POST", &at("/promote"), &ada, json!({ "account": bob_id })).await;
    assert_eq!(hall.bad("POST", &at("/kick"), &ada, json!({ "account": bob_id })).await, "not_owner");
    hall.good("POST", &at("/kick"), &bob, json!({ "account": ada_id })).await;
    within(async { while news(&mut ada_socket, &topic).await["gone"] != json!("kicked") {} }).await;
    let by_code = json!({ "code": read["code"] });
    assert_eq!(hall.bad("POST", "/lobbies/join", &ada, by_code).await, "kicked");
    hall.good("POST", &at("/leave"), &bob, json!({})).await;
    assert_eq!(hall.bad("GET", &at(""), &bob, json!({})).await, "no_such_lobby");
}

#[tokio::test]
async fn t5_a_friend_is_invited_and_a_party_is_one_for_each_player() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut bob_socket = comes(&hall, &bob).await;
    let party = hall.lobby(&ada, json!({ "kind": "party" })).await;
    assert_eq!((&party["access"], &party["max"]), (&json!("private"), &json!(4)));
    assert_eq!(hall.bad("POST", "/lobbies", &ada, json!({ "kind": "party" })).await, "already_in_party");
    let id = party["id"].as_str().unwrap();
    let invite = format!("/lobbies/{id}/invite");
    assert_eq!(hall.bad("POST", &invite, &ada, json!({ "account": bob_id })).await, "not_friends");
    assert_eq!(hall.bad("POST", "/lobbies/join", &bob, json!({ "lobby": id })).await, "no_such_lobby");
    befriend(&hall, (&ada, &ada_id), (&bob, &bob_id)).await;
    hall.good("POST", &invite, &ada, json!({ "account": bob_id })).await;
    news(&mut bob_socket, "invitations").await;
    let mine = hall.good("GET", "/lobbies/mine", &bob, json!({})).await;
    assert_eq!((&mine["invitations"][0]["id"], &mine["lobbies"]), (&json!(id), &json!([])));
    hall.good("POST", &format!("/lobbies/{id}/decline"), &bob, json!({})).await;
    assert_eq!(hall.good("GET", "/lobbies/mine", &bob, json!({})).await["invitations"], json!([]));
    hall.good("POST", &invite, &ada, json!({ "account": bob_id })).await;
    hall.good("POST", "/lobbies/join", &bob, json!({ "lobby": id })).await;
    assert_eq!(hall.found(&bob, json!({})).await, Vec::<Value>::new(), "no party is found");
    let list = hall.good("GET", "/admin/lobbies", &hall.operator(Role::Server), json!({})).await;
    assert_eq!(list["lobbies"][0]["size"], json!(2));
    let admin = hall.operator(Role::Admin);
    hall.good("POST", &format!("/admin/lobbies/{id}/end"), &admin, json!({})).await;
    within(async { while news(&mut bob_socket, &format!("lobby/{id}")).await["gone"] != json!("ended") {} })
        .await;
    // Who is deleted is in no lobby.
    hall.lobby(&ada, json!({})).await;
    assert_eq!(hall.found(&bob, json!({"of_friends": true})).await.len(), 1);
    hall.good("POST", "/account/delete", &ada, json!({ "account": ada_id })).await;
    assert_eq!(hall.found(&bob, json!({})).await, Vec::<Value>::new());
}

#[tokio::test]
async fn threat_51_ghosts_and_the_blocked_are_gone_and_every_search_has_its_price() {
    let time = Time::default();
    let clock = time.clone();
    let hall = Hall::changed(|setup| setup.config.time = clock).await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let ada_socket = comes(&hall, &ada).await;
    hall.lobby(&ada, json!({})).await;
    time.pass(Duration::from_secs(60));
    assert_eq!(hall.found(&bob, json!({})).await.len(), 1, "whoever is here stays");
    hall.good("POST", "/friends/block", &ada, json!({ "account": bob_id })).await;
    assert_eq!(hall.found(&bob, json!({})).await.len(), 0, "who is blocked finds nothing");
    hall.good("POST", "/friends/unblock", &ada, json!({ "account": bob_id })).await;
    drop(ada_socket);
    within(async {
        loop {
            time.pass(Duration::from_secs(31));
            let list = hall.good("GET", "/friends", &bob, json!({})).await;
            assert_eq!(list["friends"], json!([]));
            let lobbies = hall.good("GET", "/admin/lobbies", &hall.operator(Role::Server), json!({})).await;
            if lobbies["lobbies"] == json!([]) {
                return;
            }
        }
    })
    .await;
    // One whose owner never had a connection ends, too.
    let (eve, _) = hall.player("eve").await;
    hall.lobby(&eve, json!({})).await;
    time.pass(Duration::from_secs(31));
    within(async {
        loop {
            let lobbies = hall.good("GET", "/admin/lobbies", &hall.operator(Role::Server), json!({})).await;
            if lobbies["lobbies"] == json!([]) {
                return;
            }
        }
    })
    .await;
    let mut refused = None;
    for _ in 0..40 {
        let (status, answer) = hall.call("POST", "/lobbies/find", Some(&eve), json!({})).await;
        if status != 200 {
            refused = Some(answer["error"]["code"].clone());
            break;
        }
    }
    assert_eq!(refused, Some(json!("too_often")));
    assert!(!ada_id.is_empty());
}

#[tokio::test]
async fn t5_what_cannot_be_done_with_a_lobby_is_named() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (bob, bob_id) = hall.player("bob").await;
    let lobby = hall.lobby(&ada, json!({ "max": 2 })).await;
    let at = |below: &str| format!("/lobbies/{}{below}", lobby["id"].as_str().unwrap());
    let long = "x".repeat(300);
    for (method, path, token, input, code, field) in [
        ("POST", "/lobbies".to_owned(), &bob, json!({ "max": 1 }), "bad_input", "max"),
        ("POST", "/lobbies".to_owned(), &bob, json!({ "kind": "party", "max": 40 }), "bad_input", "max"),
        ("POST", "/lobbies".to_owned(), &bob, json!({ "name": long }), "bad_input", "name"),
        (
            "POST",
            "/lobbies".to_owned(),
            &bob,
            json!({ "properties": { "a b": 1 } }),
            "bad_input",
            "properties.a b",
        ),
        ("POST", "/lobbies".to_owned(), &bob, json!({ "mine": { "a": 1.5 } }), "bad_input", "mine.a"),
        ("POST", "/lobbies/join".to_owned(), &bob, json!({}), "missing_field", "lobby"),
        ("POST", "/lobbies/join".to_owned(), &bob, json!({ "code": "ZZZZ" }), "no_such_lobby", "code"),
        ("PATCH", at(""), &bob, json!({ "name": "mine" }), "no_such_lobby", "lobby"),
        ("PATCH", at(""), &ada, json!({ "max": 99 }), "bad_input", "max"),
        ("POST", at("/kick"), &ada, json!({ "account": bob_id }), "no_such_player", ""),
        ("POST", at("/messages"), &ada, json!({ "type": "a b", "body": {} }), "bad_input", "type"),
        ("POST", at("/messages"), &ada, json!({ "type": "chat", "body": 7 }), "bad_input", "body"),
        (
            "POST",
            at("/messages"),
            &ada,
            json!({ "type": "chat", "body": { "t": "y".repeat(2000) } }),
            "too_large",
            "body",
        ),
    ] {
        let (_, answer) = hall.call(method, &path, Some(token), input).await;
        let found = (answer["error"]["code"].as_str(), answer["error"]["path"].as_str().unwrap_or_default());
        assert_eq!(found, (Some(code), field), "{path}: {answer}");
    }
    for (search, field) in [
        (json!({"filter": {"a": {}}}), "filter.a"),
        (json!({"filter": {"@owner": 1}}), "filter.@owner"),
        (json!({"near": {"a": "x"}}), "near.a"),
        (json!({"count": 0}), "count"),
        (json!({"order": "oldest"}), "order"),
    ] {
        let (_, answer) = hall.call("POST", "/lobbies/find", Some(&bob), search).await;
        assert_eq!(answer["error"]["path"], json!(field), "{answer}");
    }
    hall.good("POST", "/lobbies/join", &bob, json!({ "code": lobby["code"] })).await;
    let (cyd, _) = hall.player("cyd").await;
    assert_eq!(hall.bad("POST", "/lobbies/join", &cyd, json!({ "lobby": lobby["id"] })).await, "lobby_full");
}
