//! The matchmaker over the services: two find each other, a room of one of them, parties, offers, and what is refused.

use crate::friends::{befriend, comes, news};
use crate::hall::{Hall, Socket};
use parlor_server::Time;
use parlor_services::store::Role;
use parlor_testing::within;
use serde_json::{Value, json};
use std::time::Duration;

impl Hall {
    async fn searches(&self, token: &str, input: Value) -> String {
        self.good("POST", "/matchmaking", token, input).await["ticket"].as_str().unwrap().to_owned()
    }

    async fn queue(&self, name: &str, definition: Value) {
        let input = json!({ "kind": "queue", "name": name, "definition": definition });
        self.good("POST", "/admin/definitions", &self.operator(Role::Server), input).await;
    }
}

/// The search, once it stands like this.
async fn stands(socket: &mut Socket, ticket: &str, state: &str) -> Value {
    within(async {
        loop {
            let told = news(socket, &format!("search/{ticket}")).await;
            if told["search"]["state"] == json!(state) {
                return told["search"].clone();
            }
        }
    })
    .await
}

#[tokio::test]
async fn n5_two_players_find_each_other_and_sit_in_one_room() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut ada_socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    hall.queue("duel", json!({ "gather_ms": 0, "same": ["mode"] })).await;
    let mode = |mode: &str| json!({ "queue": "duel", "properties": { "mode": mode } });
    let of_ada = hall.searches(&ada, mode("ranked")).await;
    let waiting = hall.good("GET", &format!("/matchmaking/{of_ada}"), &ada, json!({})).await;
    assert_eq!((&waiting["state"], &waiting["members"]), (&json!("waiting"), &json!([ada_id])));
    assert_eq!(hall.bad("POST", "/matchmaking", &ada, mode("ranked")).await, "already_in_queue");
    let (cyd, _) = hall.player("cyd").await;
    let _cyd_socket = comes(&hall, &cyd).await;
    hall.searches(&cyd, mode("casual")).await;
    let of_bob = hall.searches(&bob, mode("ranked")).await;
    let opening = stands(&mut ada_socket, &of_ada, "opening").await;
    let ada_opens = opening["opens"] == json!(true);
    let (opener, of_opener, other) = if ada_opens { (&ada, &of_ada, &bob) } else { (&bob, &of_bob, &ada) };
    let say = |ticket: &str, code: &Value| (format!("/matchmaking/{ticket}/opened"), json!({ "code": code }));
    let (path, input) = say(if ada_opens { &of_bob } else { &of_ada }, &json!("ZZZZ"));
    assert_eq!(hall.bad("POST", &path, other, input).await, "not_asked");
    let (path, input) = say(of_opener, &json!("ZZZZ"));
    assert_eq!(
        hall.bad("POST", &path, opener, input).await,
        "no_such_room",
        "nobody is sent to a room that is none"
    );
    let opened = hall.good("POST", "/rooms", opener, json!({ "config": { "auto_start": false } })).await;
    let (path, input) = say(of_opener, &opened["room"]["code"]);
    hall.good("POST", &path, opener, input).await;
    for (socket, ticket) in [(&mut ada_socket, &of_ada), (&mut bob_socket, &of_bob)] {
        let found = stands(socket, ticket, "found").await["found"].clone();
        assert_eq!(found["room"], json!({ "kind": "turn", "code": opened["room"]["code"] }));
        let mut players: Vec<&str> =
            found["teams"][0].as_array().unwrap().iter().map(|it| it["account"].as_str().unwrap()).collect();
        players.sort_unstable();
        let mut both = [ada_id.as_str(), bob_id.as_str()];
        both.sort_unstable();
        assert_eq!(players, both);
    }
    // A result is no message that may be lost.
    let read = hall.good("GET", &format!("/matchmaking/{of_bob}"), &bob, json!({})).await;
    assert_eq!(read["state"], "found");
    let queues = hall.good("GET", "/matchmaking/queues", &bob, json!({})).await;
    assert_eq!((&queues["queues"][0]["waiting"], &queues["queues"][0]["found"]), (&json!(1), &json!(2)));
    // Who could not get in searches on.
    let again = hall.good("POST", &format!("/matchmaking/{of_bob}/again"), &bob, json!({})).await;
    assert_eq!(again["state"], "waiting");
    let left = hall.good("POST", &format!("/matchmaking/{of_bob}/leave"), &bob, json!({})).await;
    assert_eq!((&left["state"], &left["why"]), (&json!("ended"), &json!("left")));
}

#[tokio::test]
async fn n5_a_party_searches_as_one_and_a_match_must_be_confirmed() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut bob_socket = comes(&hall, &bob).await;
    let _ada_socket = comes(&hall, &ada).await;
    befriend(&hall, (&ada, &ada_id), (&bob, &bob_id)).await;
    let party = hall.good("POST", "/lobbies", &ada, json!({ "kind": "party" })).await["lobby"]["id"].clone();
    let invite = format!("/lobbies/{}/invite", party.as_str().unwrap());
    hall.good("POST", &invite, &ada, json!({ "account": bob_id })).await;
    hall.good("POST", "/lobbies/join", &bob, json!({ "lobby": party })).await;
    let players = json!({ "min": 4, "max": 4 });
    hall.queue("squads", json!({ "players": players, "teams": 2, "gather_ms": 0, "confirm_s": 10 })).await;
    let search = json!({ "queue": "squads", "party": party });
    assert_eq!(hall.bad("POST", "/matchmaking", &bob, search.clone()).await, "not_owner");
    let of_party = hall.searches(&ada, search.clone()).await;
    let seen = hall.good("GET", &format!("/matchmaking/{of_party}"), &bob, json!({})).await;
    assert_eq!(seen["members"], json!([ada_id, bob_id]), "all of it are in, the owner first");
    let mut others = Vec::new();
    for name in ["cyd", "dan"] {
        let (token, _) = hall.player(name).await;
        let socket = comes(&hall, &token).await;
        let ticket = hall.searches(&token, json!({ "queue": "squads" })).await;
        others.push((token, socket, ticket));
    }
    stands(&mut bob_socket, &of_party, "confirm").await;
    for (token, ticket) in
        [(&ada, &of_party), (&bob, &of_party), (&others[0].0, &others[0].2), (&others[1].0, &others[1].2)]
    {
        hall.good("POST", &format!("/matchmaking/{ticket}/confirm"), token, json!({ "accept": true })).await;
    }
    stands(&mut bob_socket, &of_party, "opening").await;
    // Its members change: it searches no longer, and the others wait on.
    hall.good("POST", &format!("/lobbies/{}/leave", party.as_str().unwrap()), &bob, json!({})).await;
    assert_eq!(stands(&mut bob_socket, &of_party, "ended").await["why"], "party_changed");
    let (token, socket, ticket) = &mut others[0];
    stands(socket, ticket, "waiting").await;
    hall.good("POST", &format!("/matchmaking/{ticket}/leave"), token, json!({})).await;
    // A queue that is no longer defined ends all searches.
    let gone = json!({ "kind": "queue", "name": "squads" });
    hall.good("POST", "/admin/definitions/delete", &hall.operator(Role::Server), gone).await;
    let (_, socket, ticket) = &mut others[1];
    assert_eq!(stands(socket, ticket, "ended").await["why"], "queue_gone");
}

#[tokio::test]
async fn x9_free_seats_are_offered_by_whom_the_queue_says_and_round_trips_are_measured() {
    let hall = Hall::open().await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let mut ada_socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    hall.queue("arena", json!({ "gather_ms": 0, "offers": "players" })).await;
    hall.queue("closed", json!({})).await;
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let offer = |queue: &str, code: &Value| json!({ "queue": queue, "code": code, "seats": 1 });
    let code = &opened["room"]["code"];
    assert_eq!(hall.bad("POST", "/matchmaking/offers", &ada, offer("closed", code)).await, "server_only");
    assert_eq!(hall.bad("POST", "/matchmaking/offers", &bob, offer("arena", code)).await, "no_such_room");
    hall.good("POST", "/matchmaking/offers", &ada, offer("arena", code)).await;
    let ticket = hall.searches(&bob, json!({ "queue": "arena" })).await;
    let found = stands(&mut bob_socket, &ticket, "found").await["found"].clone();
    assert_eq!((&found["backfill"], &found["room"]["code"]), (&json!(true), code));
    hall.good("POST", "/matchmaking/offers/withdraw", &ada, json!({ "queue": "arena", "code": code })).await;
    // A queue with short round trips takes only who was measured.
    hall.queue(
        "near",
        json!({ "gather_ms": 0, "rtt": { "start_ms": 20_000, "per_s": 0, "most_ms": 30_000 } }),
    )
    .await;
    for socket in [&mut ada_socket, &mut bob_socket] {
        // The client answers the pings while it reads.
        for _ in 0..12 {
            socket.ask("matchmaking.queues", json!({})).await;
        }
    }
    let of_ada = hall.searches(&ada, json!({ "queue": "near" })).await;
    hall.searches(&bob, json!({ "queue": "near" })).await;
    stands(&mut ada_socket, &of_ada, "opening").await;
}

#[tokio::test]
async fn threat_51_a_search_lives_by_a_connection_and_what_cannot_be_searched_is_named() {
    let time = Time::default();
    let clock = time.clone();
    let hall = Hall::changed(|setup| setup.config.time = clock).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    assert_eq!(hall.bad("POST", "/matchmaking", &ada, json!({ "queue": "open" })).await, "not_here");
    let socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    for (input, code, path) in [
        (json!({ "queue": "a b" }), "no_such_queue", "queue"),
        (json!({ "queue": "open", "players": { "min": 3, "max": 2 } }), "bad_input", "players.min"),
        (
            json!({ "queue": "open", "players": { "min": 2, "max": 2, "multiple": 3 } }),
            "bad_input",
            "players.multiple",
        ),
        (json!({ "queue": "open", "players": { "min": 2, "max": 1000 } }), "bad_input", "players.max"),
        (json!({ "queue": "open", "filter": { "level": {} } }), "bad_input", "filter.level"),
        (json!({ "queue": "open", "filter": { "@members": 1 } }), "bad_input", "filter.@members"),
        (json!({ "queue": "open", "properties": { "a b": 1 } }), "bad_input", "properties.a b"),
        (json!({ "queue": "open", "party": "l0" }), "no_such_lobby", "party"),
    ] {
        let (_, answer) = hall.call("POST", "/matchmaking", Some(&ada), input).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["path"]),
            (&json!(code), &json!(path)),
            "{answer}"
        );
    }
    time.pass(Duration::from_secs(20));
    let ticket = hall.searches(&ada, json!({ "queue": "open" })).await;
    assert_eq!(hall.bad("GET", &format!("/matchmaking/{ticket}"), &bob, json!({})).await, "no_such_ticket");
    drop(socket);
    within(async {
        loop {
            time.pass(Duration::from_secs(31));
            let queues = hall.good("GET", "/matchmaking/queues", &bob, json!({})).await;
            let waiting =
                queues["queues"].as_array().unwrap().iter().map(|it| it["waiting"].as_u64().unwrap());
            if waiting.sum::<u64>() == 0 {
                return;
            }
        }
    })
    .await;
    // One in three queues at most, and a search ends.
    let mut last = String::new();
    for queue in ["one", "two", "three"] {
        last = hall.searches(&bob, json!({ "queue": queue })).await;
    }
    assert_eq!(hall.bad("POST", "/matchmaking", &bob, json!({ "queue": "four" })).await, "too_many_tickets");
    time.pass(Duration::from_secs(601));
    assert_eq!(stands(&mut bob_socket, &last, "ended").await["why"], "expired");
}
