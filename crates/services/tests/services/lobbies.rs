//! Players who search for each other, among unrelated rooms.

use crate::deadlines::{hall, id_of};
use crate::hall::Hall;
use core::time::Duration;
use futures_util::future::join_all;
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

/// Copies a room and who is in it [`JUNK`] times, with times before or after it.
fn copy(hall: &Hall, room: &str, later_ms: i64) {
    copies(hall, room, later_ms, JUNK);
}

fn copies(hall: &Hall, room: &str, later_ms: i64, count: i64) {
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
        let made = all.execute(&format!("{numbers}{statement}"), rusqlite::params![room, later_ms, count]);
        assert_eq!(made.unwrap(), usize::try_from(count).unwrap());
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
    let answers = join_all(asked).await;
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

/// What a player looks for that no room is.
fn unmet(number: usize) -> Value {
    let criteria = json!({ "metadata": { "mode": number } });
    json!({ "config": { "auto_start": false }, "criteria": criteria })
}

/// Makes rooms that are found by the key of this mode and do not meet it, with so many bytes of metadata.
async fn junk_under_the_key(hall: &Hall, player: &str, mode: &str, bytes: usize, count: i64) {
    let room = opens(hall, player, json!({ "mode": mode })).await;
    let metadata = json!({ "mode": "junk", "more": "x".repeat(bytes) });
    hall.good("PATCH", &format!("/rooms/{room}"), player, json!({ "metadata": metadata })).await;
    copies(hall, &room, 10, count);
}

#[tokio::test]
async fn threat_51_a_search_ends_at_its_bounds_and_seekers_meet_all_the_same() {
    // Many small rooms, and few large ones.
    for (bytes, count) in [(10, 250), (15_000, 100)] {
        let time = Time::default();
        let hall = hall(&time).await;
        let [ada, bob, cid, mallory] = ["ada", "bob", "cid", "mallory"].map(|name| hall.player(name));
        let ((ada, _), (bob, _), (cid, _), (mallory, _)) = tokio::join!(ada, bob, cid, mallory);
        let buried = looks_for(&hall, &ada, "ranked").await;
        time.pass(Duration::from_secs(2));
        junk_under_the_key(&hall, &mallory, "ranked", bytes, count).await;
        time.pass(Duration::from_secs(2));
        let of_bob = looks_for(&hall, &bob, "ranked").await;
        assert_ne!(of_bob, buried, "beneath {count} rooms of {bytes} bytes nobody looks");
        assert_eq!(looks_for(&hall, &cid, "ranked").await, of_bob);
    }
}

#[tokio::test]
async fn threat_51_seekers_at_the_same_time_get_one_room() {
    let hall = Hall::open().await;
    let players = join_all((0..24).map(async |number| hall.player(&format!("p{number}")).await.0)).await;
    for mode in ["free", "ranked", "teams", "duel"] {
        let config = json!({ "auto_start": false, "players": { "min": 2, "max": 32 } });
        let input = json!({ "config": config, "criteria": { "metadata": { "mode": mode } } });
        let looking =
            players.iter().map(|player| hall.good("POST", "/rooms/join-or-create", player, input.clone()));
        let mut rooms: Vec<String> = join_all(looking).await.iter().map(id_of).collect();
        rooms.dedup();
        assert_eq!(rooms.len(), 1, "{mode}: {rooms:?}");
    }
}

#[tokio::test]
async fn threat_51_a_request_that_is_sent_again_with_its_id_opens_no_second_room() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let input = |id: &str| json!({ "config": { "auto_start": false }, "id": id });
    let at_once = (0..4).map(|_| hall.good("POST", "/rooms", &ada, input("first")));
    let mut rooms: Vec<String> = join_all(at_once).await.iter().map(id_of).collect();
    rooms.dedup();
    let [room] = &rooms[..] else { panic!("{rooms:?}") };
    assert_ne!(
        &id_of(&hall.good("POST", "/rooms", &bob, input("first")).await),
        room,
        "it is another player's"
    );
    for number in 1..GATHERING_ROOMS_MAX {
        let other = id_of(&hall.good("POST", "/rooms", &ada, input(&number.to_string())).await);
        assert_ne!(&other, room);
    }
    assert_eq!(hall.bad("POST", "/rooms", &ada, input("one more")).await, "too_many_rooms");
    assert_eq!(&id_of(&hall.good("POST", "/rooms", &ada, input("first")).await), room, "no quota refuses it");
    for wrong in [String::new(), "x".repeat(65)] {
        let (status, answer) = hall.call("POST", "/rooms", Some(&ada), input(&wrong)).await;
        assert_eq!((status, &answer["error"]["path"]), (400, &json!("id")), "{answer}");
    }
}

#[tokio::test]
async fn threat_51_who_waits_in_too_many_rooms_is_refused_before_anything_is_searched() {
    let time = Time::default();
    let hall = hall(&time).await;
    let (away, _) = hall.player("away").await;
    let junk = opens(&hall, &away, json!({ "mode": "junk" })).await;
    copies(&hall, &junk, 10, 50);
    time.pass(Duration::from_secs(61));
    let (mallory, _) = hall.player("mallory").await;
    for number in 0..GATHERING_ROOMS_MAX {
        opens(&hall, &mallory, json!({ "number": number })).await;
    }
    for number in 0..30 {
        assert_eq!(
            hall.bad("POST", "/rooms/join-or-create", &mallory, unmet(number)).await,
            "too_many_rooms"
        );
    }
    // A search comes upon the rooms whose player is away, and marks them.
    let store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    let marked = "SELECT COUNT(*) FROM rooms WHERE joinable = 2";
    assert_eq!(store.query_row(marked, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    // Its own rooms are given to it all the same.
    let input = json!({ "config": { "auto_start": false }, "criteria": { "metadata": { "number": 3 } } });
    hall.good("POST", "/rooms/join-or-create", &mallory, input).await;
}

#[tokio::test]
async fn threat_51_searches_at_once_are_refused_and_seekers_of_the_game_meet_meanwhile() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let (bob, _) = hall.player("bob").await;
    let (mallory, _) = hall.player("mallory").await;
    junk_under_the_key(&hall, &mallory, "ranked", 15_000, 100).await;
    let (eve, _) = hall.player("eve").await;
    let asked = (0..60).map(|number| hall.call("POST", "/rooms/join-or-create", Some(&eve), unmet(number)));
    let honest = async {
        let of_ada = looks_for(&hall, &ada, "ranked").await;
        assert_eq!(looks_for(&hall, &bob, "ranked").await, of_ada);
    };
    let (answers, ()) = tokio::join!(join_all(asked), honest);
    let refused = answers.iter().filter(|(status, answer)| match answer["error"]["code"].as_str() {
        Some("too_often") => {
            assert!(*status == 429 && answer["error"]["retry_after_ms"].is_u64(), "{answer}");
            true
        }
        Some("too_many_rooms") | None => false,
        Some(_) => panic!("{answer}"),
    });
    assert!(refused.count() > 0, "one account searches once at a time");
    // What is over is forgotten.
    let (status, answer) = hall.call("POST", "/rooms/join-or-create", Some(&eve), unmet(99)).await;
    assert!(status == 200 || answer["error"]["code"] == "too_many_rooms", "{answer}");
}
