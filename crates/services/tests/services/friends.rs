//! Friends over the services: requests, blocks and codes, and who is notified of a friend's presence.

use crate::hall::{Hall, Socket};
use parlor_server::Time;
use parlor_testing::within;
use serde_json::{Value, json};
use std::time::Duration;

/// A socket of a player.
pub(crate) async fn comes(hall: &Hall, token: &str) -> Socket {
    let mut socket = hall.socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
    within(async {
        loop {
            if socket.hear().await["output"].is_object() {
                return;
            }
        }
    })
    .await;
    socket
}

/// The next news of a topic.
pub(crate) async fn news(socket: &mut Socket, topic: &str) -> Value {
    within(async {
        loop {
            let heard = socket.hear().await;
            if heard["news"]["topic"] == topic {
                return heard["news"].clone();
            }
        }
    })
    .await
}

pub(crate) async fn befriend(hall: &Hall, (ada, ada_id): (&str, &str), (bob, bob_id): (&str, &str)) {
    let asked = hall.good("POST", "/friends", ada, json!({ "account": bob_id })).await;
    assert_eq!(asked["state"], "asked");
    let accepted = hall.good("POST", "/friends/accept", bob, json!({ "account": ada_id })).await;
    assert_eq!(accepted["state"], "friend");
}

#[tokio::test]
async fn t2_friends_are_told_who_is_here_and_what_it_says() {
    let time = Time::default();
    let clock = time.clone();
    let hall = Hall::changed(|setup| setup.config.time = clock).await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let mut ada_socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    hall.good("POST", "/friends", &ada, json!({ "account": bob_id })).await;
    news(&mut bob_socket, "friends").await;
    let asks = hall.good("GET", "/friends?state=asks", &bob, json!({})).await;
    assert_eq!((&asks["friends"][0]["name"], &asks["friends"][0]["online"]), (&json!("ada"), &json!(false)));
    hall.good("POST", "/friends", &bob, json!({ "account": ada_id })).await;
    let told = news(&mut ada_socket, "presence").await;
    assert_eq!(told["friends"], json!([{ "account": bob_id, "online": true }]));
    hall.good("POST", "/presence", &bob, json!({ "status": "in a match", "join": "K7QM" })).await;
    let told = news(&mut ada_socket, "presence").await;
    let says = json!({ "account": bob_id, "online": true, "status": "in a match", "join": "K7QM" });
    assert_eq!(told["friends"], json!([says]));
    let list = hall.good("GET", "/friends", &ada, json!({})).await;
    assert_eq!(
        (&list["friends"][0]["status"], &list["friends"][0]["online"]),
        (&json!("in a match"), &json!(true))
    );
    // A hidden player is shown as away. A player who connects later gets the list of all who are present.
    hall.good("POST", "/presence", &bob, json!({ "visible": false })).await;
    assert_eq!(news(&mut ada_socket, "presence").await["friends"][0]["online"], json!(false));
    hall.good("POST", "/presence", &bob, json!({ "status": "back" })).await;
    assert_eq!(news(&mut ada_socket, "presence").await["friends"][0]["status"], json!("back"));
    let mut second = comes(&hall, &ada).await;
    // A second device is notified of the next change. It reads the present state from the list.
    drop(bob_socket);
    for socket in [&mut ada_socket, &mut second] {
        let told = within(async {
            loop {
                // Whatever of this passes before the server has noticed that the socket is closed does not count.
                time.pass(Duration::from_secs(2));
                tokio::select! {
                    told = news(socket, "presence") => return told,
                    _ = hall.good("GET", "/friends", &bob, json!({})) => {}
                }
            }
        })
        .await;
        assert_eq!(told["friends"], json!([{ "account": bob_id, "online": false }]));
    }
    assert_eq!(hall.bad("POST", "/presence", &bob, json!({ "status": "x" })).await, "not_here");
}

#[tokio::test]
async fn threat_32_t2_who_is_blocked_is_told_nothing_and_finds_nobody() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    befriend(&hall, (&ada, &ada_id), (&bob, &bob_id)).await;
    let block = json!({ "account": bob_id });
    assert_eq!(hall.good("POST", "/friends/block", &ada, block.clone()).await["state"], "blocked");
    assert_eq!(hall.good("GET", "/friends", &bob, json!({})).await["friends"], json!([]));
    let unknown = hall.call("POST", "/friends", Some(&bob), json!({ "account": "pnobody" })).await;
    let blocked = hall.call("POST", "/friends", Some(&bob), json!({ "account": ada_id })).await;
    assert_eq!(blocked, unknown, "both have the same answer");
    let mut ada_socket = comes(&hall, &ada).await;
    let mut bob_socket = comes(&hall, &bob).await;
    assert_eq!(hall.bad("POST", "/friends", &ada, json!({ "account": bob_id })).await, "blocked");
    assert!(hall.good("POST", "/friends/unblock", &ada, block).await["state"].is_null());
    befriend(&hall, (&ada, &ada_id), (&bob, &bob_id)).await;
    news(&mut bob_socket, "presence").await;
    let told = news(&mut ada_socket, "presence").await;
    assert_eq!(told["friends"][0]["account"], json!(bob_id), "they are friends again, and of nothing before");
}

#[tokio::test]
async fn t2_a_code_finds_a_player_and_what_cannot_be_asked_is_named() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let code = hall.good("GET", "/friends/code", &ada, json!({})).await["code"].clone();
    assert_eq!(hall.good("GET", "/friends/code", &ada, json!({})).await["code"], code);
    let lower = code.as_str().unwrap().to_lowercase();
    let asked = hall.good("POST", "/friends", &bob, json!({ "code": lower })).await;
    assert_eq!((&asked["account"], &asked["state"]), (&json!(ada_id), &json!("asked")));
    let hall = hall.again(false).await;
    let new = hall.good("POST", "/friends/code", &ada, json!({})).await["code"].clone();
    assert_ne!(new, code);
    assert_eq!(hall.bad("POST", "/friends", &bob, json!({ "code": code })).await, "no_such_player");
    for (path, input, code, field) in [
        ("/friends", json!({}), "missing_field", "account"),
        ("/friends", json!({ "account": ada_id, "code": "K7QM" }), "bad_input", "code"),
        ("/friends", json!({ "account": ada_id }), "yourself", "account"),
        ("/friends", json!({ "account": "" }), "bad_input", "account"),
        ("/friends/accept", json!({ "account": "pnobody" }), "no_such_player", "account"),
    ] {
        let (_, answer) = hall.call("POST", path, Some(&ada), input).await;
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["path"]),
            (&json!(code), &json!(field)),
            "{answer}"
        );
    }
    assert_eq!(hall.bad("GET", "/friends?state=enemy", &ada, json!({})).await, "bad_input");
    let export = hall.good("GET", "/account/export?after=friends", &ada, json!({})).await;
    assert_eq!(export["entries"][0]["state"], "asks");
}

#[tokio::test]
async fn threat_44_t2_a_device_that_reads_nothing_is_told_only_what_is_so() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    befriend(&hall, (&ada, &ada_id), (&bob, &bob_id)).await;
    let _bob_socket = comes(&hall, &bob).await;
    let mut ada_socket = comes(&hall, &ada).await;
    news(&mut ada_socket, "presence").await;
    // All changes within a second are one list: the state at the end of the second.
    let mut last = String::new();
    for number in 0..5 {
        last = format!("level {number}");
        hall.good("POST", "/presence", &bob, json!({ "status": last })).await;
    }
    within(async {
        loop {
            let told = news(&mut ada_socket, "presence").await;
            assert_eq!(told["friends"].as_array().unwrap().len(), 1);
            if told["friends"][0]["status"] == json!(last) {
                return;
            }
        }
    })
    .await;
}
