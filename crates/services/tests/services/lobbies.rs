//! Players who search for each other, among unrelated rooms.

use crate::deadlines::{hall, id_of};
use crate::hall::Hall;
use core::time::Duration;
use parlor_server::Time;
use rusqlite::Connection;
use serde_json::{Value, json};

/// More than one question looks at.
const JUNK: i64 = 1_500;
/// Rooms that one account is in while players come together there.
const GATHERING_ROOMS_MAX: usize = 16;

async fn looks_for(hall: &Hall, player: &str, mode: &str) -> String {
    let criteria = json!({ "metadata": { "mode": mode } });
    let input = json!({ "config": { "auto_start": false }, "criteria": criteria });
    id_of(&hall.good("POST", "/rooms/join-or-create", player, input).await)
}

async fn opens(hall: &Hall, player: &str, metadata: Value) -> String {
    let input = json!({ "config": { "auto_start": false }, "metadata": metadata });
    id_of(&hall.good("POST", "/rooms", player, input).await)
}

/// Copies a room and who is in it, with times before or after it.
fn copy(hall: &Hall, room: &str, later_ms: i64) {
    let mut store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    let all = store.transaction().unwrap();
    for statement in [
        "INSERT INTO rooms (realm, id, code, game, created_ms, version, document, joinable, summary, players, wanted)
         SELECT realm, id || 'c' || i, NULL, game, created_ms + ?2 + i, version, document, joinable, summary, players, wanted
         FROM rooms, n WHERE id = ?1",
        "INSERT INTO room_players (realm, account, created_ms, room, stage)
         SELECT realm, account, created_ms + ?2 + i, room || 'c' || i, stage FROM room_players, n WHERE room = ?1",
    ] {
        let numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3) ";
        let made = all.execute(&format!("{numbers}{statement}"), rusqlite::params![room, later_ms, JUNK]);
        assert_eq!(made.unwrap(), usize::try_from(JUNK).unwrap());
    }
    all.commit().unwrap();
}

#[tokio::test]
async fn threat_51_seekers_meet_among_more_junk_than_one_question_looks_at() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let (mallory, _) = hall.player("mallory").await;
    let met = looks_for(&hall, &ada, "ranked").await;
    // Of the same game, older and newer, and somebody is there.
    let junk = opens(&hall, &mallory, json!({ "mode": "junk" })).await;
    copy(&hall, &junk, 10);
    let (mallory, _) = hall.player("another of mallory").await;
    let junk = opens(&hall, &mallory, json!({ "mode": "more" })).await;
    copy(&hall, &junk, -1_000_000);
    assert_eq!(looks_for(&hall, &bob, "ranked").await, met);
    // Who opens a room by its metadata is found by them.
    let (cid, _) = hall.player("cid").await;
    let (dan, _) = hall.player("dan").await;
    let opened = opens(&hall, &cid, json!({ "mode": "free" })).await;
    assert_eq!(looks_for(&hall, &dan, "free").await, opened);
}

#[tokio::test]
async fn threat_51_a_room_whose_players_are_away_is_given_to_nobody_until_one_is_back() {
    let time = Time::default();
    let hall = hall(&time).await;
    let (ada, _) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let (mallory, _) = hall.player("mallory").await;
    let junk = looks_for(&hall, &mallory, "ranked").await;
    copy(&hall, &junk, 10);
    time.pass(Duration::from_secs(61));
    // The first questions come upon nothing else, and none comes upon it again.
    let of_ada = looks_for(&hall, &ada, "ranked").await;
    assert_ne!(of_ada, junk);
    assert_eq!(looks_for(&hall, &bob, "ranked").await, of_ada);
    // Whoever is back is found.
    time.pass(Duration::from_secs(61));
    hall.good("GET", "/account", &mallory, json!({})).await;
    let (cid, _) = hall.player("cid").await;
    assert!(looks_for(&hall, &cid, "ranked").await.starts_with(&junk), "and nobody is in the other one");
}

#[tokio::test]
async fn threat_51_rooms_that_are_over_are_in_nobodys_way() {
    let hall = Hall::open().await;
    let ((ada, _), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let config = json!({ "players": { "min": 2, "max": 2 }, "auto_start": true });
    let input = json!({ "config": config });
    let over = id_of(&hall.good("POST", "/rooms", &ada, input.clone()).await);
    hall.good("POST", &format!("/rooms/{over}/join"), &bob, json!({})).await;
    let going_on = id_of(&hall.good("POST", "/rooms", &ada, input.clone()).await);
    hall.good("POST", &format!("/rooms/{going_on}/join"), &bob, json!({})).await;
    hall.good("POST", &format!("/rooms/{over}/end"), &ada, json!({})).await;
    for later_ms in [-1_000_000, 1_000_000] {
        copy_over(&hall, &over, later_ms);
    }
    let found = id_of(&hall.good("POST", "/rooms/join-or-create", &ada, input).await);
    assert_eq!(found, going_on, "she sits in a game that goes on");
}

fn copy_over(hall: &Hall, room: &str, later_ms: i64) {
    let store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    let renamed = format!("{room}{}", later_ms.signum() + 1);
    store.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let statements = [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO rooms (realm, id, code, game, created_ms, version, document, joinable, summary, players)
         SELECT realm, ?2 || 'c' || i, NULL, game, created_ms + ?3 + i, version, document, joinable, summary, players
         FROM rooms, n WHERE id = ?1",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1500)
         INSERT INTO room_players (realm, account, created_ms, room, stage)
         SELECT realm, account, created_ms + ?3 + i, ?2 || 'c' || i, stage FROM room_players, n WHERE room = ?1",
    ];
    for statement in statements {
        store.execute(statement, rusqlite::params![room, renamed, later_ms]).unwrap();
    }
}

#[tokio::test]
async fn threat_51_an_account_waits_in_few_rooms_also_if_it_asks_for_all_at_once() {
    let hall = Hall::open().await;
    let (mallory, _) = hall.player("mallory").await;
    let input = json!({ "config": { "auto_start": false } });
    let asked = (0..40).map(|_| hall.call("POST", "/rooms", Some(&mallory), input.clone()));
    let answers = futures_util::future::join_all(asked).await;
    let opened: Vec<String> =
        answers.iter().filter(|(status, _)| *status == 200).map(|(_, answer)| id_of(answer)).collect();
    assert_eq!(opened.len(), GATHERING_ROOMS_MAX);
    for (_, answer) in answers.iter().filter(|(status, _)| *status != 200) {
        assert_eq!(answer["error"]["code"], "too_many_rooms", "{answer}");
    }
    // Others' seats are counted with its own.
    let (ada, _) = hall.player("ada").await;
    let of_ada = opens(&hall, &ada, json!({ "mode": "free" })).await;
    let join = format!("/rooms/{of_ada}/join");
    assert_eq!(hall.bad("POST", &join, &mallory, json!({})).await, "too_many_rooms");
    hall.good("POST", &format!("/rooms/{}/leave", opened[0]), &mallory, json!({})).await;
    hall.good("POST", &join, &mallory, json!({})).await;
}
