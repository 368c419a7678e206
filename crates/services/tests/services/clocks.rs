//! The time of day is wrong, jumps and is corrected.

use crate::deadlines::{hall, phase, timed_room};
use crate::hall::Hall;
use core::time::Duration;
use parlor_proto::wire::handshake::{Auth, Hello};
use parlor_server::Time;
use parlor_server::admission::{PermitFor, Policy, SigningKey, TokenRequest};
use parlor_services::store::Role;
use parlor_testing::{creating, within};
use serde_json::{Value, json};

const HOUR_MS: i64 = 60 * 60 * 1_000;

async fn comes_in_by_ticket(hall: &Hall, player: &str) {
    let ticket = hall.good("POST", "/admission", player, json!({ "create": true })).await;
    let auth = Auth::Token(ticket["token"].as_str().unwrap().to_owned().into());
    hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await.welcome().await;
}

async fn comes_in_by_service(hall: &Hall, key: &SigningKey) {
    let request = TokenRequest { user: "u1", app: "tanks", environment: "", what: PermitFor::Create(None) };
    let auth = Auth::Token(key.token(&request).unwrap().into());
    hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await.welcome().await;
}

#[tokio::test]
async fn threat_55_a_time_of_day_that_was_wrong_at_the_start_and_is_set_right_locks_nobody_out() {
    for wrong_by in [HOUR_MS, -HOUR_MS] {
        let time = Time::wrong_by(wrong_by);
        let key = SigningKey::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let public = key.write_new(&folder.path().join("service")).unwrap();
        let hall = Hall::changed(|setup| {
            setup.config.time = time.clone();
            setup.config.admission = Some(Policy { key: Some(public), is_required: true });
        })
        .await;
        let (early, _) = hall.player("ada").await;
        comes_in_by_ticket(&hall, &early).await;
        let on_its_way = hall.good("POST", "/admission", &early, json!({ "create": true })).await;
        time.leap(-wrong_by);
        // What was given out before is good still, and what is given out from here on.
        let auth = Auth::Token(on_its_way["token"].as_str().unwrap().to_owned().into());
        hall.server.quic(Hello { auth, ..creating(None, None, 4) }).await.welcome().await;
        comes_in_by_ticket(&hall, &early).await;
        let (late, _) = hall.player("bob").await;
        comes_in_by_ticket(&hall, &late).await;
        // Whose clock was right all the time.
        comes_in_by_service(&hall, &key).await;
        hall.good("GET", "/admin/status", &hall.operator(Role::Admin), json!({})).await;
        // And they are good no longer than they say.
        time.pass(Duration::from_secs(16 * 60));
        assert_eq!(hall.bad("GET", "/account", &late, json!({})).await, "token_expired");
    }
}

#[tokio::test]
async fn threat_55_a_leap_of_the_time_of_day_ends_no_turn_and_time_that_passes_does() {
    let time = Time::default();
    let hall = hall(&time).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let first = timed_room(&hall, [&ada, &bob]).await;
    time.pass(Duration::from_secs(20));
    let second = timed_room(&hall, [&ada, &bob]).await;
    for leap_ms in [11_000, HOUR_MS, -2 * HOUR_MS] {
        time.leap(leap_ms);
        assert_eq!(phase(&hall, &ada, &first).await, "playing");
    }
    time.leap(HOUR_MS);
    // Ten seconds are left of the first one's turn, give or take a hundredth.
    time.pass(Duration::from_secs(11));
    within(async { while phase(&hall, &ada, &first).await != "ended" {} }).await;
    for _ in 0..10 {
        assert_eq!(phase(&hall, &ada, &second).await, "playing", "half a minute is not over");
    }
}

fn current<'a>(room: &Value, players: [&'a (String, String); 2]) -> &'a str {
    let is_current = |player: &&&(String, String)| room["room"]["current_player"] == player.1.as_str();
    &players.iter().find(is_current).unwrap().0
}

#[tokio::test]
async fn threat_55_a_turn_that_seems_to_be_over_at_a_restart_can_still_be_played_for_a_moment() {
    let hall = Hall::open().await;
    let (ada, bob) = (hall.player("ada").await, hall.player("bob").await);
    let room = timed_room(&hall, [&ada.0, &bob.0]).await;
    // By the time of day the turn is over for an hour, and nobody knows whether that is true.
    let time = Time::wrong_by(HOUR_MS);
    let hall = hall.again_with(true, |_| {}, |setup| setup.config.time = time.clone()).await;
    // What was given out before seems to be over, too.
    let (ada, bob) = (hall.player("ada").await, hall.player("bob").await);
    let path = format!("/rooms/{room}");
    let read = hall.good("GET", &path, &ada.0, json!({})).await;
    assert_eq!(read["room"]["phase"], "playing");
    let mover = current(&read, [&ada, &bob]);
    let moved = hall.good("POST", &format!("{path}/moves"), mover, json!({ "type": "wait" })).await;
    assert_ne!(current(&moved, [&ada, &bob]), mover);
    // The other one has all of its turn.
    time.pass(Duration::from_secs(12));
    let third = timed_room(&hall, [&ada.0, &bob.0]).await;
    for _ in 0..10 {
        assert_eq!(phase(&hall, &ada.0, &room).await, "playing");
    }
    time.pass(Duration::from_secs(31));
    within(async { while phase(&hall, &ada.0, &room).await != "ended" {} }).await;
    within(async { while phase(&hall, &ada.0, &third).await != "ended" {} }).await;
}
