//! Turn rooms as RUN.game has them: subscriptions, histories, pauses, and texts that lead to a room.

use crate::hall::{Hall, Socket};
use parlor_services::store::Role;
use serde_json::{Value, json};

/// A player's socket, signed in.
async fn socket(hall: &Hall, token: &str) -> Socket {
    let mut socket = hall.socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
    assert!(socket.hear().await["output"].is_object());
    socket
}

/// A room of this configuration; its path and id.
async fn room(hall: &Hall, host: &str, config: Value) -> (String, String) {
    let opened = hall.good("POST", "/rooms", host, json!({ "config": config })).await;
    let id = opened["room"]["id"].as_str().unwrap().to_owned();
    (format!("/rooms/{id}"), id)
}

async fn say(hall: &Hall, token: &str, path: &str, text: &str) {
    let said = json!({ "type": "chat", "body": { "text": text } });
    hall.good("POST", &format!("{path}/messages"), token, said).await;
}

/// What a socket that has subscribed is told next.
async fn watched(socket: &mut Socket) -> Value {
    let told = socket.hear().await;
    assert!(told["watched"].is_object(), "{told}");
    told["watched"].clone()
}

#[tokio::test]
async fn r2_whoever_may_read_a_room_and_subscribes_gets_its_changes() {
    let hall = Hall::open().await;
    let [(ada, _), (bob, bob_id), (eve, _)] =
        [hall.player("ada").await, hall.player("bob").await, hall.player("eve").await];
    let config = json!({ "spectators": true, "turn_based": true, "players": { "max": 2 } });
    let (path, id) = room(&hall, &ada, config).await;
    assert_eq!(hall.bad("POST", &format!("{path}/subscribe"), &eve, json!({})).await, "no_socket");
    let mut watching = socket(&hall, &eve).await;
    let answer = watching.ask("turn.subscribe", json!({ "room": id })).await;
    assert_eq!(answer["output"]["room"]["id"], id.as_str(), "{answer}");

    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let told = watched(&mut watching).await;
    assert_eq!((&told["kind"], &told["notice"]["room"]), (&json!("player_joined"), &json!(id)));
    assert_eq!(told["notice"]["body"]["player"], bob_id.as_str());
    say(&hall, &bob, &path, "hello").await;
    assert_eq!(watched(&mut watching).await["notice"]["body"]["body"]["text"], "hello");
    hall.good("POST", &format!("{path}/start"), &ada, json!({})).await;
    assert_eq!(watched(&mut watching).await["kind"], "game_started");
    assert_eq!(watched(&mut watching).await["kind"], "turn_started", "and no one else's own notice");

    // By topic: another subscription takes the place of the first.
    watching.ask("turn.subscribe", json!({ "room": id, "topics": ["messages"] })).await;
    hall.good("PATCH", &path, &bob, json!({ "data": { "x": 1 } })).await;
    say(&hall, &ada, &path, "to all").await;
    assert_eq!(watched(&mut watching).await["notice"]["body"]["body"]["text"], "to all");

    watching.ask("turn.unsubscribe", json!({ "room": id })).await;
    say(&hall, &ada, &path, "to nobody").await;
    // The next message is the answer, and not the notice before it.
    watching.ask("turn.read", json!({ "room": id })).await;
}

#[tokio::test]
async fn threat_32_r2_a_subscription_ends_with_the_right_to_read() {
    let hall = Hall::open().await;
    let [(ada, _), (bob, bob_id)] = [hall.player("ada").await, hall.player("bob").await];
    let (closed, closed_id) = room(&hall, &ada, json!({ "auto_start": false })).await;
    let mut watching = socket(&hall, &bob).await;
    let refused = watching.ask("turn.subscribe", json!({ "room": closed_id })).await;
    assert_eq!(refused["error"]["code"], "not_in_room");
    say(&hall, &ada, &closed, "secret").await;

    let (path, id) = room(&hall, &ada, json!({ "spectators": true, "auto_start": false })).await;
    watching.ask("turn.subscribe", json!({ "room": id })).await;
    // With a seat the notices come by the inbox, once.
    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    say(&hall, &ada, &path, "seated").await;
    assert_eq!(watching.hear().await["event"]["kind"], "message");
    hall.good("POST", &format!("{path}/kick"), &ada, json!({ "player": bob_id })).await;
    assert_eq!(watching.hear().await["event"]["kind"], "player_kicked");
    assert_eq!(watched(&mut watching).await["kind"], "unsubscribed");
    say(&hall, &ada, &path, "without bob").await;
    watching.ask("account.me", json!({})).await;

    // With the room, too.
    let (path, id) = room(&hall, &ada, json!({ "spectators": true, "auto_start": false })).await;
    watching.ask("turn.subscribe", json!({ "room": id })).await;
    hall.good("POST", &format!("{path}/delete"), &ada, json!({})).await;
    assert_eq!(watched(&mut watching).await["kind"], "unsubscribed");
}

#[tokio::test]
async fn threat_44_r2_a_socket_subscribes_to_so_many_rooms() {
    let hall = Hall::open().await;
    let (eve, _) = hall.player("eve").await;
    let mut watching = socket(&hall, &eve).await;
    let mut rooms = Vec::new();
    for host in 0..2 {
        let (host, _) = hall.player(&format!("host {host}")).await;
        for _ in 0..9 {
            rooms.push(room(&hall, &host, json!({ "spectators": true, "auto_start": false })).await.1);
        }
    }
    for room in &rooms[..16] {
        assert!(watching.ask("turn.subscribe", json!({ "room": room })).await["output"].is_object());
    }
    let beyond = json!({ "room": rooms[16] });
    let refused = watching.ask("turn.subscribe", beyond.clone()).await;
    assert_eq!(refused["error"]["code"], "too_many_subscriptions");
    assert!(
        watching.ask("turn.subscribe", json!({ "room": rooms[0] })).await["output"].is_object(),
        "it has it"
    );
    watching.ask("turn.unsubscribe", json!({ "room": rooms[0] })).await;
    assert!(watching.ask("turn.subscribe", beyond).await["output"].is_object());
}

#[tokio::test]
async fn threat_44_r2_an_account_takes_few_of_the_places_of_a_room() {
    let hall = Hall::open().await;
    let [(host, _), (eve, _), (ada, _)] =
        [hall.player("host").await, hall.player("eve").await, hall.player("ada").await];
    let id = room(&hall, &host, json!({ "spectators": true, "auto_start": false })).await.1;
    let (subscribe, mut watching) = (json!({ "room": id }), Vec::new());
    for _ in 0..4 {
        let mut one = socket(&hall, &eve).await;
        assert!(one.ask("turn.subscribe", subscribe.clone()).await["output"].is_object());
        watching.push(one);
    }
    let mut fifth = socket(&hall, &eve).await;
    let refused = fifth.ask("turn.subscribe", subscribe.clone()).await;
    assert_eq!(refused["error"]["code"], "too_many_subscriptions");
    assert!(socket(&hall, &ada).await.ask("turn.subscribe", subscribe.clone()).await["output"].is_object());
    watching[0].ask("turn.unsubscribe", subscribe.clone()).await;
    assert!(fifth.ask("turn.subscribe", subscribe).await["output"].is_object());
}

#[tokio::test]
async fn r2_what_was_said_is_read_in_pages_also_after_a_restart() {
    let hall = Hall::open().await;
    let [(ada, ada_id), (eve, _)] = [hall.player("ada").await, hall.player("eve").await];
    let (path, _) = room(&hall, &ada, json!({ "auto_start": false })).await;
    for number in 1..=5 {
        say(&hall, &ada, &path, &format!("message {number}")).await;
    }
    let hall = hall.again(false).await;
    let part = hall.good("GET", &format!("{path}/messages?limit=3"), &ada, json!({})).await;
    let texts = |part: &Value| {
        let messages = part["messages"].as_array().unwrap();
        messages.iter().map(|said| said["body"]["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&part), ["message 5", "message 4", "message 3"]);
    let first = &part["messages"][0];
    assert_eq!(
        (&first["number"], &first["player"], &first["name"]),
        (&json!(5), &json!(ada_id), &json!("ada"))
    );
    let next = part["next"].as_str().unwrap();
    let part = hall.good("GET", &format!("{path}/messages?limit=3&after={next}"), &ada, json!({})).await;
    assert_eq!(
        (texts(&part), &part["next"]),
        (vec!["message 2".to_owned(), "message 1".to_owned()], &Value::Null)
    );
    assert_eq!(hall.bad("GET", &format!("{path}/messages"), &eve, json!({})).await, "not_in_room");
    assert_eq!(hall.bad("GET", &format!("{path}/messages?after=x"), &ada, json!({})).await, "bad_input");
    let server = hall.operator(Role::Server);
    assert_eq!(texts(&hall.good("GET", &format!("{path}/messages"), &server, json!({})).await).len(), 5);
}

#[tokio::test]
async fn r2_data_is_merged_or_replaced() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (path, _) = room(&hall, &ada, json!({ "auto_start": false })).await;
    for (input, expected) in [
        (json!({ "data": { "a": 1 } }), json!({ "a": 1 })),
        (json!({ "data": { "b": 2 } }), json!({ "a": 1, "b": 2 })),
        (json!({ "data": { "c": 3 }, "replace": true }), json!({ "c": 3 })),
    ] {
        assert_eq!(hall.good("PATCH", &path, &ada, input).await["room"]["data"], expected);
    }
}

#[tokio::test]
async fn r4_a_refused_move_says_which_check_failed() {
    let hall = Hall::open().await;
    let [(ada, ada_id), (bob, _)] = [hall.player("ada").await, hall.player("bob").await];
    let (path, _) = room(&hall, &ada, json!({ "rules": "draughts", "auto_start": false })).await;
    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let order =
        hall.good("POST", &format!("{path}/start"), &ada, json!({})).await["room"]["turn_order"].clone();
    let first = if order[0] == ada_id.as_str() { &ada } else { &bob };
    let illegal = json!({ "type": "move", "data": { "path": [1, 32] } });
    let (_, answer) = hall.call("POST", &format!("{path}/moves"), Some(first), illegal).await;
    let checks = json!({ "server": "valid", "rules": "invalid", "peers": "not_applicable" });
    assert_eq!(answer["error"]["checks"], checks, "{answer}");
}

#[tokio::test]
async fn r8_a_text_leads_to_its_room_and_the_first_turn_has_none() {
    let games = tempfile::tempdir().unwrap();
    let file = json!({ "rooms": {
        "minPlayers": 2, "maxPlayers": 2, "defaultRules": { "turnBased": true },
        "notifications": { "onTurnStart": { "title": "Your turn!", "body": "It's your move in {{roomName}}" } }
    } });
    std::fs::write(games.path().join("tanks.json"), file.to_string()).unwrap();
    let hall = Hall::changed(|setup| setup.online.games = Some(games.path().to_owned())).await;
    let [(ada, ada_id), (bob, _)] = [hall.player("ada").await, hall.player("bob").await];
    let opened = hall.good("POST", "/rooms", &ada, json!({})).await;
    let (id, path) =
        (opened["room"]["id"].clone(), format!("/rooms/{}", opened["room"]["id"].as_str().unwrap()));
    let begun = hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    let pushes = async |token: &str| {
        let inbox = hall.good("GET", "/inbox", token, json!({})).await;
        let notices = inbox["notices"].as_array().unwrap().clone();
        notices.into_iter().filter(|notice| notice["kind"] == "push").collect::<Vec<_>>()
    };
    assert_eq!((pushes(&ada).await.len(), pushes(&bob).await.len()), (0, 0), "the first turn calls nobody");
    let (first, second) =
        if begun["room"]["current_player"] == ada_id.as_str() { (&ada, &bob) } else { (&bob, &ada) };
    hall.good("POST", &format!("{path}/moves"), first, json!({ "type": "put" })).await;
    let called = pushes(second).await;
    let tap = json!({ "app": "tanks", "environment": "production", "room": id });
    assert_eq!((called.len(), &called[0]["notice"]["body"]["tap"]), (1, &tap), "{called:?}");
}

#[tokio::test]
async fn r9_a_room_is_paused_and_goes_on_and_its_admins_may_say_so() {
    let hall = Hall::open().await;
    let [(ada, ada_id), (bob, bob_id)] = [hall.player("ada").await, hall.player("bob").await];
    let (path, _) = room(&hall, &ada, json!({ "auto_start": false })).await;
    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    assert_eq!(hall.bad("POST", &format!("{path}/pause"), &bob, json!({})).await, "not_host");
    let named = hall.good("PATCH", &path, &ada, json!({ "admins": [bob_id] })).await;
    assert_eq!(named["room"]["admins"], json!([ada_id, bob_id]));
    let paused = hall.good("POST", &format!("{path}/pause"), &bob, json!({})).await;
    assert_eq!(paused["room"]["status"], "paused");
    assert_eq!(hall.bad("POST", &format!("{path}/start"), &ada, json!({})).await, "paused");
    let server = hall.operator(Role::Server);
    let resumed = hall.good("POST", &format!("{path}/resume"), &server, json!({})).await;
    assert_eq!(resumed["room"]["status"], "active");
    hall.good("POST", &format!("{path}/start"), &ada, json!({})).await;
}

#[tokio::test]
async fn r9_an_archived_room_and_its_history_stay_readable_by_those_who_played() {
    let hall = Hall::open().await;
    let [(ada, _), (bob, _), (eve, _)] =
        [hall.player("ada").await, hall.player("bob").await, hall.player("eve").await];
    let (path, _) = room(&hall, &ada, json!({ "auto_start": false })).await;
    hall.good("POST", &format!("{path}/join"), &bob, json!({})).await;
    hall.good("POST", &format!("{path}/start"), &ada, json!({})).await;
    say(&hall, &bob, &path, "good game").await;
    for player in [&ada, &bob] {
        hall.good("POST", &format!("{path}/leave"), player, json!({})).await;
    }
    let hall = hall.again(true).await;
    let read = hall.good("GET", &path, &ada, json!({})).await;
    assert_eq!(read["room"]["status"], "archived");
    let said = hall.good("GET", &format!("{path}/messages"), &bob, json!({})).await;
    assert_eq!(said["messages"][0]["body"]["text"], "good game");
    assert_eq!(hall.bad("GET", &path, &eve, json!({})).await, "not_in_room");
}

#[tokio::test]
async fn r9_a_room_has_the_properties_that_are_documented() {
    let hall = Hall::open().await;
    let [(ada, ada_id), (bob, bob_id)] = [hall.player("ada").await, hall.player("bob").await];
    let input = json!({ "name": "Den", "visibility": "private", "metadata": { "mode": "blitz" }, "max_players": 3,
        "config": { "auto_start": false } });
    let opened = hall.good("POST", "/rooms", &ada, input).await["room"].clone();
    let path = format!("/rooms/{}", opened["id"].as_str().unwrap());
    for (property, value) in [
        ("name", json!("Den")),
        ("max_players", json!(3)),
        ("game", json!("tanks")),
        ("visibility", json!("private")),
        ("status", json!("active")),
        ("metadata", json!({ "mode": "blitz" })),
        ("data", json!({})),
        ("admins", json!([ada_id])),
        ("host", json!(ada_id)),
        ("created_by", json!(ada_id)),
        ("version", json!(1)),
    ] {
        assert_eq!(opened[property], value, "{property}");
    }
    let code = opened["code"].as_str().unwrap();
    assert!(code.len() == 6 && code.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{code}");
    assert!(opened["created"].as_u64().is_some() && opened["updated"].as_u64() >= opened["created"].as_u64());
    let joined = hall.good("POST", "/rooms/join", &bob, json!({ "code": code })).await["room"].clone();
    assert_eq!((&joined["version"], &joined["players"][1]["id"]), (&json!(2), &json!(bob_id)));
    let updated = hall.good("PATCH", &path, &bob, json!({ "data": { "x": 1 } })).await["room"].clone();
    assert_eq!(updated["version"], 3, "one more with each update");
    // Another environment has none of it.
    let staging = json!({ "app": "tanks", "environment": "staging", "device": "a device of another realm" });
    let (_, other) = hall.call("POST", "/auth/device", None, staging).await;
    let other = other["access_token"].as_str().unwrap();
    assert_eq!(hall.bad("POST", "/rooms/join", other, json!({ "code": code })).await, "no_such_room");
}
