//! What goes on in a store that is nearly full, and in rooms whose owner is at its quota.

use crate::deadlines::{DAMAGED, TURN, copy, has_ended, id_of, phase, put_off, timed_room};
use crate::hall::Hall;
use core::time::Duration;
use parlor_server::Time;
use parlor_services::store::{Limits, Role};
use parlor_testing::within;
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::PathBuf;

const DATA_MAX: u64 = 8 << 20;
/// By these steps rooms are charged.
const STEP: usize = 16 << 10;
/// A moment for rooms that are not to end together.
const MOMENT: Duration = Duration::from_secs(20);

async fn small_hall(time: &Time) -> Hall {
    Hall::changed(|setup| {
        setup.config.time = time.clone();
        setup.online.limits = Limits { data_max: DATA_MAX, ..Limits::default() };
    })
    .await
}

fn store_file(hall: &Hall) -> PathBuf {
    hall.server.folder.path().join("parlor.db")
}

/// Puts junk into the store until so many 64ths of its bound are used, and has a player write until the server knows.
async fn fill(hall: &Hall, share: u64, player: &str) {
    let store = Connection::open(store_file(hall)).unwrap();
    let used = || {
        let pages = "SELECT (c.page_count - f.freelist_count) * s.page_size
            FROM pragma_page_count c, pragma_freelist_count f, pragma_page_size s";
        u64::try_from(store.query_row(pages, [], |row| row.get::<_, i64>(0)).unwrap()).unwrap()
    };
    let put = "INSERT INTO match_entries (realm, id, number, at_ms, body)
        SELECT 'junk', 'junk', COALESCE(MAX(number), 0) + 1, 0, zeroblob(?1) FROM match_entries WHERE realm = 'junk'";
    let wanted = DATA_MAX / 64 * share;
    let admin = hall.operator(Role::Admin);
    within(async {
        loop {
            // Each time: what the server writes meanwhile may free pages.
            while used() < wanted {
                let left = (wanted - used()).clamp(2_000, 64_000);
                store.execute(put, [i64::try_from(left).unwrap()]).unwrap();
            }
            hall.good("PATCH", "/account", player, json!({ "name": "filler" })).await;
            let status = hall.good("GET", "/admin/status", &admin, json!({})).await;
            if status["store_bytes"].as_u64() >= Some(wanted) {
                return;
            }
        }
    })
    .await;
}

/// As much as no account or room may take.
const FULL: u64 = 60;
/// As much as no move may take either.
const FULLER: u64 = 63;

async fn refused_as_full(hall: &Hall, method: &str, path: &str, token: &str, input: Value) {
    let (status, answer) = hall.call(method, path, Some(token), input).await;
    assert_eq!((status, &answer["error"]["code"]), (507, &json!("store_full")), "{answer}");
}

#[tokio::test]
async fn threat_42_in_a_full_store_rooms_that_cannot_be_committed_hold_up_no_other_room() {
    let time = Time::default();
    let hall = small_hall(&time).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let first = timed_room(&hall, [&ada, &bob]).await;
    time.pass(MOMENT);
    let second = timed_room(&hall, [&ada, &bob]).await;
    copy(&store_file(&hall), &first, DAMAGED, Some(b"{ damaged"));
    fill(&hall, FULL, &ada).await;
    refused_as_full(&hall, "POST", "/rooms", &ada, json!({})).await;
    time.pass(TURN - MOMENT);
    put_off(&hall, DAMAGED).await;
    has_ended(&hall, &ada, &first).await;
    fill(&hall, FULLER, &ada).await;
    let said = json!({ "type": "hello" });
    refused_as_full(&hall, "POST", &format!("/rooms/{second}/messages"), &ada, said).await;
    time.pass(MOMENT);
    has_ended(&hall, &bob, &second).await;
    put_off(&hall, DAMAGED).await;
}

#[tokio::test]
async fn threat_42_rooms_that_cannot_be_put_off_either_hold_up_no_other_room() {
    let time = Time::default();
    let hall = small_hall(&time).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let honest = timed_room(&hall, [&ada, &bob]).await;
    let store = Connection::open(store_file(&hall)).unwrap();
    store
        .execute_batch(
            "CREATE TRIGGER no_room_is_put_off BEFORE UPDATE ON rooms WHEN NEW.failures > 0
             BEGIN SELECT RAISE(ABORT, 'no room is put off'); END",
        )
        .unwrap();
    copy(&store_file(&hall), &honest, DAMAGED, Some(b"{ damaged"));
    time.pass(TURN);
    has_ended(&hall, &ada, &honest).await;
    put_off(&hall, 0).await;
}

/// Bytes of a room, as its owner is charged for them.
fn bytes(hall: &Hall, room: &str) -> usize {
    let store = Connection::open(store_file(hall)).unwrap();
    let size = "SELECT length(document) + length(summary) FROM rooms WHERE id = ?1";
    usize::try_from(store.query_row(size, [room], |row| row.get::<_, i64>(0)).unwrap()).unwrap()
}

/// A game of two players that has so many bytes that one more is charged for.
async fn tight_room(hall: &Hall, tokens: [&str; 2]) -> String {
    let mut padding = 5_000;
    loop {
        let config = json!({
            "players": { "min": 2, "max": 2 }, "turn_based": true, "auto_start": true,
            "turn_timeout_ms": u64::try_from(TURN.as_millis()).unwrap(),
        });
        let input = json!({ "config": config, "metadata": { "about": "x".repeat(padding) } });
        let room = id_of(&hall.good("POST", "/rooms", tokens[0], input).await);
        hall.good("POST", &format!("/rooms/{room}/join"), tokens[1], json!({})).await;
        match STEP - bytes(hall, &room) {
            0..=3 => return room,
            // The metadata stand in the document and in its summary.
            left => padding += left / 2,
        }
        hall.good("POST", &format!("/rooms/{room}/end"), tokens[0], json!({})).await;
        hall.good("POST", &format!("/rooms/{room}/delete"), tokens[0], json!({})).await;
    }
}

#[tokio::test]
async fn threat_42_at_its_owners_quota_a_game_expires_is_left_and_is_ended() {
    let step = u64::try_from(STEP).unwrap();
    let time = Time::default();
    let hall = Hall::changed(|setup| {
        setup.config.time = time.clone();
        // Room for a try at each tight room, beside those that are there.
        setup.online.limits = Limits { room_bytes: 5 * step, ..Limits::default() };
    })
    .await;
    let ((ada, ada_id), (bob, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let (cid, _) = hall.player("cid").await;
    let mut rooms = Vec::new();
    for other in [&bob, &bob, &bob, &cid] {
        rooms.push(tight_room(&hall, [&ada, other]).await);
    }
    // The rest of the quota.
    let waiting = json!({ "config": { "auto_start": false } });
    hall.good("POST", "/rooms", &ada, waiting.clone()).await;
    assert_eq!(hall.bad("POST", "/rooms", &ada, waiting).await, "quota");
    for room in &rooms {
        let more = json!({ "data": { "more": "bytes" } });
        assert_eq!(hall.bad("PATCH", &format!("/rooms/{room}"), &ada, more).await, "quota");
    }
    let store = Connection::open(store_file(&hall)).unwrap();
    let charged = || {
        let holding = "SELECT room_bytes FROM holdings WHERE account = ?1";
        store.query_row(holding, [&ada_id], |row| row.get::<_, i64>(0)).unwrap()
    };
    let before = charged();
    let operator = hall.operator(Role::Admin);
    let ended = hall.good("POST", &format!("/rooms/{}/end", rooms[0]), &operator, json!({})).await;
    assert_eq!(ended["room"]["phase"], "ended");
    assert!(charged() > before, "what is not judged is charged all the same");
    hall.good("POST", &format!("/rooms/{}/leave", rooms[1]), &bob, json!({})).await;
    assert_eq!(phase(&hall, &ada, &rooms[1]).await, "ended");
    hall.good("POST", "/account/delete", &bob, json!({ "account": bob_id })).await;
    let left = hall.good("GET", &format!("/rooms/{}", rooms[2]), &ada, json!({})).await;
    let players = left["room"]["players"].as_array().unwrap();
    assert!(players.iter().all(|player| player["id"] != bob_id), "{left}");
    time.pass(TURN);
    has_ended(&hall, &ada, &rooms[3]).await;
}

#[tokio::test]
async fn threat_43_what_is_said_in_rooms_that_have_ended_leaves_the_reserve_of_ends() {
    let time = Time::default();
    let hall = small_hall(&time).await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let over = timed_room(&hall, [&ada, &bob]).await;
    let going_on = timed_room(&hall, [&ada, &bob]).await;
    hall.good("POST", &format!("/rooms/{over}/resign"), &bob, json!({})).await;
    assert_eq!(phase(&hall, &ada, &over).await, "ended");
    fill(&hall, FULLER, &ada).await;
    for _ in 0..20 {
        let said = json!({ "type": "chat", "body": "x".repeat(4_000) });
        refused_as_full(&hall, "POST", &format!("/rooms/{over}/messages"), &ada, said).await;
    }
    let data = json!({ "data": { "x": "x".repeat(15_000) } });
    refused_as_full(&hall, "PATCH", &format!("/rooms/{over}"), &bob, data).await;
    hall.good("POST", &format!("/rooms/{over}/leave"), &bob, json!({})).await;
    hall.good("POST", &format!("/rooms/{going_on}/resign"), &bob, json!({})).await;
    assert_eq!(phase(&hall, &ada, &going_on).await, "ended");
}

#[tokio::test]
async fn threat_51_in_a_full_store_players_find_each_other_and_rooms_of_those_who_are_back() {
    let time = Time::default();
    let hall = small_hall(&time).await;
    let (bob, _) = hall.player("bob").await;
    let (mallory, _) = hall.player("mallory").await;
    let seek = || json!({ "config": { "auto_start": false } });
    let of_bob = id_of(&hall.good("POST", "/rooms", &bob, seek()).await);
    let of_mallory = id_of(&hall.good("POST", "/rooms", &mallory, seek()).await);
    let (cid, _) = hall.player("cid").await;
    let (dan, _) = hall.player("dan").await;
    fill(&hall, FULL, &dan).await;
    refused_as_full(&hall, "POST", "/rooms", &dan, seek()).await;
    time.pass(Duration::from_secs(61));
    hall.good("GET", "/account", &bob, json!({})).await;
    // The newest room is that of a player who is away.
    assert_eq!(id_of(&hall.good("POST", "/rooms/join-or-create", &cid, seek()).await), of_bob);
    let state = |room: &str| {
        let store = Connection::open(store_file(&hall)).unwrap();
        let joinable = "SELECT joinable FROM rooms WHERE id = ?1";
        store.query_row(joinable, [room], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(state(&of_mallory), 2, "no other search comes upon it");
    hall.good("GET", "/account", &mallory, json!({})).await;
    assert_eq!(state(&of_mallory), 1);
    assert_eq!(id_of(&hall.good("POST", "/rooms/join-or-create", &dan, seek()).await), of_mallory);
}
