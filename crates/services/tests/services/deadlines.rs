//! Deadlines of turn rooms, beside rooms whose timers fail.

use crate::hall::Hall;
use core::time::Duration;
use parlor_server::Time;
use parlor_services::store::Role;
use parlor_testing::within;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;

/// Longer than a start lets deadlines of before it be.
const AFTER_START: Duration = Duration::from_secs(11);
pub(crate) const TURN: Duration = Duration::from_secs(30);
pub(crate) const DAMAGED: usize = 300;

pub(crate) async fn hall(time: &Time) -> Hall {
    Hall::changed(|setup| setup.config.time = time.clone()).await
}

pub(crate) fn id_of(answer: &Value) -> String {
    answer["room"]["id"].as_str().unwrap().to_owned()
}

/// Two players and a turn that is over in half a minute. Gives the room's id.
pub(crate) async fn timed_room(hall: &Hall, tokens: [&str; 2]) -> String {
    let config = json!({
        "players": { "min": 2, "max": 2 },
        "turn_based": true,
        "auto_start": true,
        "turn_timeout_ms": u64::try_from(TURN.as_millis()).unwrap(),
    });
    let room = id_of(&hall.good("POST", "/rooms", tokens[0], json!({ "config": config })).await);
    let joined = hall.good("POST", &format!("/rooms/{room}/join"), tokens[1], json!({})).await;
    assert_eq!(joined["room"]["phase"], "playing");
    room
}

pub(crate) async fn phase(hall: &Hall, token: &str, room: &str) -> Value {
    hall.good("GET", &format!("/rooms/{room}"), token, json!({})).await["room"]["phase"].clone()
}

pub(crate) async fn has_ended(hall: &Hall, token: &str, room: &str) {
    within(async { while phase(hall, token, room).await != "ended" {} }).await;
}

/// Waits until so many rooms are put off.
pub(crate) async fn put_off(hall: &Hall, rooms: usize) {
    let admin = hall.operator(Role::Admin);
    within(async {
        loop {
            let status = hall.good("GET", "/admin/status", &admin, json!({})).await;
            if status["rooms_put_off"] == rooms {
                return;
            }
        }
    })
    .await;
}

/// Puts copies of a room into the store that are overdue for longer than all others, with `document` or that of the room.
pub(crate) fn copy(store: &Path, room: &str, copies: usize, document: Option<&[u8]>) {
    let store = Connection::open(store).unwrap();
    let statement = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        INSERT INTO rooms (realm, id, code, game, created_ms, version, document, joinable, summary, players, deadline_ms)
        SELECT realm, id || 'c' || i, NULL, game, created_ms, version, coalesce(?3, document), 0, summary, players, i
        FROM rooms, n WHERE id = ?1";
    let made =
        store.execute(statement, rusqlite::params![room, i64::try_from(copies).unwrap(), document]).unwrap();
    assert_eq!(made, copies);
}

#[tokio::test]
async fn threat_42_rooms_that_cannot_be_committed_hold_up_no_other_room_and_not_after_a_restart() {
    let time = Time::default();
    let hall = hall(&time).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let first = timed_room(&hall, [&ada, &bob]).await;
    copy(&hall.server.folder.path().join("parlor.db"), &first, DAMAGED, Some(b"{ damaged"));
    time.pass(Duration::ZERO);
    put_off(&hall, DAMAGED).await;
    let honest = timed_room(&hall, [&ada, &bob]).await;
    // All of them are due again, and have been for longer than these two.
    time.pass(TURN);
    has_ended(&hall, &ada, &first).await;
    has_ended(&hall, &bob, &honest).await;
    put_off(&hall, DAMAGED).await;

    // Whatever was known of them in memory is gone.
    let open = timed_room(&hall, [&ada, &bob]).await;
    let time = Time::default();
    let hall = hall.again_with(false, |_| {}, |setup| setup.config.time = time.clone()).await;
    time.pass(AFTER_START);
    let honest = timed_room(&hall, [&ada, &bob]).await;
    put_off(&hall, DAMAGED).await;
    // The clock of the server before was ahead by what the test let pass.
    time.pass(3 * TURN);
    has_ended(&hall, &ada, &open).await;
    has_ended(&hall, &ada, &honest).await;
    put_off(&hall, DAMAGED).await;
}

/// Everything that a room without turns may have, and the first move that waits ends the game.
async fn largest_room(hall: &Hall, players: &[String]) -> String {
    let config = json!({
        "players": { "min": 64, "max": 64 },
        "auto_start": true,
        "quorum": "all",
        "limits": { "proposals": 16 },
        "notifications": { "on_game_end": { "title": "over", "body": "{{endReason}}" } },
    });
    let room = id_of(&hall.good("POST", "/rooms", &players[0], json!({ "config": config })).await);
    for player in &players[1..] {
        hall.good("POST", &format!("/rooms/{room}/join"), player, json!({})).await;
    }
    for (number, player) in players[..16].iter().enumerate() {
        let state = json!({ "isGameOver": number == 0 });
        let proposal = json!({ "type": "claim", "data": { "text": "x".repeat(500) }, "state": state });
        hall.good("POST", &format!("/rooms/{room}/moves"), player, proposal).await;
    }
    room
}

#[tokio::test]
async fn threat_42_the_largest_rooms_that_are_legal_expire_and_end() {
    const COPIES: usize = 64;
    let time = Time::default();
    let hall = hall(&time).await;
    let mut players = Vec::new();
    for number in 0..64 {
        players.push(hall.player(&format!("p{number}")).await.0);
    }
    let room = largest_room(&hall, &players).await;
    let path = hall.server.folder.path().join("parlor.db");
    copy(&path, &room, COPIES, None);
    let operator = hall.operator(Role::Admin);
    let ended = hall.good("POST", &format!("/rooms/{room}c{COPIES}/end"), &operator, json!({})).await;
    assert_eq!(ended["room"]["phase"], "ended");
    time.pass(Duration::from_secs(61));
    let store = Connection::open(&path).unwrap();
    let left = || {
        let count = "SELECT COUNT(*) FROM rooms WHERE deadline_ms IS NOT NULL";
        store.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    within(async {
        while left() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(phase(&hall, &players[0], &room).await, "ended");
    let (_, status) = hall.call("GET", "/admin/status", Some(&operator), json!({})).await;
    assert_eq!(status["rooms_put_off"], 0);
    let inbox = hall.good("GET", "/inbox?limit=1000", &players[7], json!({})).await;
    let over = inbox["notices"].as_array().unwrap().iter().filter(|notice| notice["kind"] == "game_over");
    assert!(over.count() > 1, "all are told: {inbox}");
}
