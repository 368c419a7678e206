//! Games with secrets, from outside: no answer or notice to a player has hidden data.

use crate::hall::Hall;
use parlor_services::store::Role;
use serde_json::{Value, json};

/// What Ada chooses, as it stands in JSON. The rule set has the word in its name, but not in quotes.
const SECRET: &str = "\"paper\"";

#[tokio::test]
async fn what_a_player_may_not_see_is_in_nothing_that_it_gets() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, _), (eve, _)) =
        (hall.player("ada").await, hall.player("bob").await, hall.player("eve").await);
    let config =
        json!({ "config": { "rules": "rock-paper-scissors", "spectators": true, "auto_start": false } });
    let opened = hall.good("POST", "/rooms", &ada, config.clone()).await;
    let room = format!("/rooms/{}", opened["room"]["id"].as_str().unwrap());
    let mut socket = hall.socket().await;
    let device = json!({ "app": "tanks", "device": format!("the device of {:>10}", "bob") });
    socket.ask("auth.device", device).await;
    let joined = hall.good("POST", &format!("{room}/join"), &bob, json!({})).await;
    let bob_id = joined["room"]["players"][1]["id"].clone();
    hall.good("POST", &format!("{room}/start"), &ada, json!({ "turn_order": [ada_id, bob_id] })).await;
    let choose = |choice: &str| json!({ "type": "choose", "data": { "choice": choice } });
    let moves = format!("{room}/moves");
    let made = hall.good("POST", &moves, &ada, choose("paper")).await;
    assert_eq!(made["room"]["state"]["choice"], "paper", "her own");

    let mut got: Vec<(&str, Value)> = Vec::new();
    for (method, path, token, input) in [
        ("GET", &room[..], &bob, json!({})),
        ("GET", &room, &eve, json!({})),
        ("GET", "/rooms/mine", &bob, json!({})),
        ("GET", "/rooms", &bob, json!({})),
        ("GET", "/inbox", &bob, json!({})),
        ("POST", "/rooms/join-or-create", &bob, config),
        ("POST", &format!("{room}/join"), &bob, json!({})),
        ("POST", &format!("{room}/messages"), &bob, json!({ "type": "chat", "body": "well?" })),
        ("PATCH", &room, &bob, json!({ "data": { "mood": "tense" } })),
        ("POST", &moves, &bob, choose("well")),
        ("POST", &moves, &ada, choose("rock")),
        ("POST", &format!("{room}/moves/1/verdict"), &bob, json!({ "accept": true })),
    ] {
        got.push((method, hall.call(method, path, Some(token), input).await.1));
    }
    // Answers to the socket, and events until the chat that was said last.
    socket.say(&json!({ "id": 90, "op": "turn.read", "input": { "room": &room[7..] } }).to_string()).await;
    let (mut was_told, mut was_last) = (false, false);
    while !(was_told && was_last) {
        let heard = socket.hear().await;
        was_told |= heard["event"]["kind"] == "move_made";
        was_last |= heard["event"]["kind"] == "room_updated";
        got.push(("the socket", heard));
    }
    for (what, answer) in got {
        assert!(!answer.to_string().contains(SECRET), "{what}: {answer}");
    }
    for role in [Role::Server, Role::Admin] {
        let seen = hall.good("GET", &room, &hall.operator(role), json!({})).await;
        assert_eq!(seen["room"]["state"]["choice"], "paper", "who runs the game sees all");
    }
    let open = hall.good("POST", &moves, &bob, choose("rock")).await;
    assert_eq!(open["room"]["state"]["last"], json!(["paper", "rock"]), "both have chosen");
}
