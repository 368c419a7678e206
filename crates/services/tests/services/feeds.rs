//! Feeds last no longer than the right to them.

use crate::deadlines::hall;
use crate::hall::{Hall, Socket};
use core::time::Duration;
use futures_util::StreamExt;
use parlor_server::Time;
use parlor_testing::within;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

/// Another sign-in of a device: its access token and its refresh token.
async fn sign_in(hall: &Hall, name: &str) -> (String, String) {
    let input = json!({ "app": "tanks", "device": format!("the device of {name:>10}"), "name": name });
    let (status, answer) = hall.call("POST", "/auth/device", None, input).await;
    assert_eq!(status, 200, "{answer}");
    let text = |name: &str| answer[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

/// A socket with a feed.
async fn feed(hall: &Hall, token: &str) -> Socket {
    let mut socket = hall.socket().await;
    socket.say(&json!({ "id": 0, "op": "account.me", "token": token }).to_string()).await;
    assert!(socket.hear().await["output"].is_object());
    socket
}

/// A room of two players. Gives its path.
async fn room(hall: &Hall, [one, other]: [&str; 2]) -> String {
    let opened = hall.good("POST", "/rooms", one, json!({ "config": { "auto_start": false } })).await;
    let path = format!("/rooms/{}", opened["room"]["id"].as_str().unwrap());
    hall.good("POST", &format!("{path}/join"), other, json!({})).await;
    path
}

async fn says(hall: &Hall, token: &str, path: &str, text: &str) {
    let said = json!({ "type": "chat", "body": { "text": text } });
    hall.good("POST", &format!("{path}/messages"), token, said).await;
}

/// The next notice of something said.
async fn hears(socket: &mut Socket, text: &str) {
    within(async {
        loop {
            let heard: Value = socket.hear().await;
            if heard.to_string().contains(text) {
                return;
            }
        }
    })
    .await;
}

/// The socket closes, and sends nothing before that but answers. Gives the reason.
async fn closes(mut socket: Socket) -> (CloseCode, String) {
    within(async {
        loop {
            match socket.socket.next().await.unwrap().unwrap() {
                Message::Close(Some(frame)) => return (frame.code, frame.reason.to_string()),
                Message::Text(text) => assert!(!text.contains("\"event\""), "{text}"),
                _ => {}
            }
        }
    })
    .await
}

#[tokio::test]
async fn threat_49_a_feed_ends_with_its_token_unless_that_is_renewed() {
    let time = Time::default();
    let hall = hall(&time).await;
    let (ada, refresh) = sign_in(&hall, "ada").await;
    let (bob, _) = sign_in(&hall, "bob").await;
    let path = room(&hall, [&ada, &bob]).await;
    let (silent, mut renewed) = (feed(&hall, &ada).await, feed(&hall, &ada).await);
    time.pass(Duration::from_secs(14 * 60));
    let answer = renewed.ask("auth.refresh", json!({ "app": "tanks", "refresh_token": refresh })).await;
    assert!(answer["output"]["access_token"].is_string(), "{answer}");
    time.pass(Duration::from_secs(2 * 60));
    let (bob, _) = sign_in(&hall, "bob").await;
    says(&hall, &bob, &path, "is ada here?").await;
    let (code, why) = closes(silent).await;
    assert!(code == CloseCode::Policy && why.contains("access token is over"), "{code:?} {why}");
    hears(&mut renewed, "is ada here?").await;
    // It ends by itself, too: the token is over within two seconds.
    time.pass(Duration::from_secs(13 * 60 - 2));
    renewed.say(&json!({ "id": "x", "op": "turn.rules" }).to_string()).await;
    let (code, why) = closes(renewed).await;
    assert!(code == CloseCode::Policy && why.contains("access token is over"), "{code:?} {why}");
}

#[tokio::test]
async fn threat_49_a_feed_ends_with_its_sign_in() {
    let hall = Hall::open().await;
    let (phone, refresh) = sign_in(&hall, "ada").await;
    let (desk, _) = sign_in(&hall, "ada").await;
    let (bob, _) = sign_in(&hall, "bob").await;
    let path = room(&hall, [&phone, &bob]).await;
    let (mut first, mut second) = (feed(&hall, &phone).await, feed(&hall, &desk).await);
    // The sign-in's id alone does not end it: the secret must be right.
    let (id, secret) = refresh.split_once('.').unwrap();
    let wrong = format!("{id}.{}", secret.chars().rev().collect::<String>());
    let out = |token: &str| json!({ "app": "tanks", "refresh_token": token });
    let (status, refused) = hall.call("POST", "/auth/sign-out", None, out(&wrong)).await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("bad_refresh_token")), "{refused}");
    says(&hall, &bob, &path, "number one").await;
    hears(&mut first, "number one").await;
    hears(&mut second, "number one").await;

    let (status, answer) = hall.call("POST", "/auth/sign-out", None, out(&refresh)).await;
    assert_eq!(status, 200, "{answer}");
    says(&hall, &bob, &path, "number two").await;
    let (code, why) = closes(first).await;
    assert!(code == CloseCode::Policy && why.contains("signed out"), "{code:?} {why}");
    hears(&mut second, "number two").await;
    let (status, _) = hall.call("POST", "/auth/refresh", None, out(&refresh)).await;
    assert_eq!(status, 401);
    // Again it is over as it is.
    assert_eq!(hall.call("POST", "/auth/sign-out", None, out(&refresh)).await.0, 200);
}

#[tokio::test]
async fn threat_49_all_feeds_end_with_all_sign_ins() {
    let hall = Hall::open().await;
    let (phone, _) = sign_in(&hall, "ada").await;
    let (desk, _) = sign_in(&hall, "ada").await;
    let (bob, _) = sign_in(&hall, "bob").await;
    let path = room(&hall, [&phone, &bob]).await;
    let sockets = [feed(&hall, &phone).await, feed(&hall, &desk).await];
    let mut other = feed(&hall, &bob).await;
    hall.good("POST", "/account/sign-out-everywhere", &desk, json!({})).await;
    says(&hall, &bob, &path, "number one").await;
    for socket in sockets {
        let (code, why) = closes(socket).await;
        assert!(code == CloseCode::Policy && why.contains("signed out"), "{code:?} {why}");
    }
    says(&hall, &phone, &path, "number two").await;
    hears(&mut other, "number two").await;
}
