//! Searches for turn rooms by their properties.

use crate::hall::Hall;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::Connection;
use serde_json::{Value, json};

fn query(criteria: &Value) -> String {
    utf8_percent_encode(&criteria.to_string(), NON_ALPHANUMERIC).to_string()
}

/// The ids of all rooms that a list has, in parts of `limit`, and how many parts there were.
async fn found(hall: &Hall, token: &str, criteria: &Value, limit: usize) -> (Vec<String>, usize) {
    let (mut ids, mut parts, mut after) = (Vec::new(), 0, String::new());
    loop {
        let path = format!("/rooms?limit={limit}&criteria={}{after}", query(criteria));
        let part = hall.good("GET", &path, token, json!({})).await;
        let rooms = part["rooms"].as_array().unwrap();
        assert!(rooms.len() <= limit, "{} of {limit}", rooms.len());
        ids.extend(rooms.iter().map(|room| room["id"].as_str().unwrap().to_owned()));
        parts += 1;
        match part["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return (ids, parts),
        }
    }
}

#[tokio::test]
async fn a_list_has_the_rooms_that_meet_the_criteria_in_parts_of_any_length() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let mut rooms = Vec::new();
    for number in 0..12 {
        let mode = ["free", "ranked"][number % 2];
        let metadata = json!({ "mode": mode, "league": number % 3 });
        let input = json!({ "config": { "auto_start": false }, "name": format!("n{}", number % 4), "metadata": metadata });
        let opened = hall.good("POST", "/rooms", &ada, input).await;
        rooms.push((opened["room"]["id"].as_str().unwrap().to_owned(), metadata, number % 4));
    }
    for league in 0..3 {
        for name in [None, Some(1)] {
            let mut criteria = json!({ "metadata": { "mode": "ranked", "league": league } });
            if let Some(name) = name {
                criteria["name"] = json!(format!("n{name}"));
            }
            let is_met = |(_, metadata, called): &&(String, Value, usize)| {
                *metadata == criteria["metadata"] && name.is_none_or(|name| name == *called)
            };
            let mut expected: Vec<String> = rooms.iter().filter(is_met).map(|(id, ..)| id.clone()).collect();
            expected.sort();
            for limit in [1, 2, 100] {
                let (mut ids, _) = found(&hall, &ada, &criteria, limit).await;
                ids.sort();
                assert_eq!(ids, expected, "{criteria} in parts of {limit}");
            }
        }
    }
    // On the socket it is the object itself.
    let mut socket = hall.socket().await;
    socket.ask("auth.guest", json!({ "app": "tanks", "name": "bob" })).await;
    let criteria = json!({ "name": "n1", "metadata": { "mode": "ranked" } });
    let answer = socket.ask("turn.list", json!({ "criteria": criteria })).await;
    assert_eq!(answer["output"]["rooms"].as_array().map(Vec::len), Some(3), "{answer}");
    for (criteria, path) in [
        ("7", "criteria"),
        ("{", "criteria"),
        (r#"{"nmae":"x"}"#, "criteria.nmae"),
        (r#"{"metadata":{"a":1,"a":2}}"#, "criteria"),
        ("null", "criteria"),
    ] {
        let criteria = utf8_percent_encode(criteria, NON_ALPHANUMERIC);
        let path_of = format!("/rooms?criteria={criteria}");
        let (status, answer) = hall.call("GET", &path_of, Some(&ada), json!({})).await;
        assert_eq!((status, &answer["error"]["path"]), (400, &json!(path)), "{criteria}: {answer}");
    }
}

async fn looks_for(hall: &Hall, token: &str, criteria: Value) -> Value {
    let input = json!({ "config": { "auto_start": false }, "criteria": criteria });
    hall.good("POST", "/rooms/join-or-create", token, input).await["room"].clone()
}

#[tokio::test]
async fn r2_players_who_look_for_the_same_meet_and_others_do_not() {
    let hall = Hall::open().await;
    let (mut ids, ranked) = (Vec::new(), json!({ "metadata": { "mode": "ranked" } }));
    for name in ["ada", "bob", "cid", "dan"] {
        ids.push(hall.player(name).await.0);
    }
    let of_ada = looks_for(&hall, &ids[0], json!({ "metadata": { "mode": "free" } })).await;
    let of_bob = looks_for(&hall, &ids[1], ranked.clone()).await;
    assert_ne!(of_ada["id"], of_bob["id"]);
    assert_eq!(
        of_bob["metadata"],
        json!({ "mode": "ranked" }),
        "the room that is opened is what was looked for"
    );
    let of_cid = looks_for(&hall, &ids[2], ranked.clone()).await;
    assert_eq!((&of_cid["id"], &of_cid["player_count"]), (&of_bob["id"], &json!(2)));
    // Of one's own rooms, too, the one that meets them comes first.
    let other = looks_for(&hall, &ids[1], json!({ "metadata": { "mode": "free" } })).await;
    assert_eq!(other["id"], of_ada["id"]);
    assert_eq!(looks_for(&hall, &ids[1], ranked).await["id"], of_bob["id"]);
    assert_eq!(looks_for(&hall, &ids[3], json!({})).await["id"], of_bob["id"], "the newest that has a seat");
    let input = json!({ "metadata": { "mode": "free" }, "criteria": { "metadata": { "mode": "ranked" } } });
    let (status, answer) = hall.call("POST", "/rooms/join-or-create", Some(&ids[3]), input).await;
    assert_eq!((status, &answer["error"]["path"]), (400, &json!("criteria.metadata.mode")), "{answer}");
}

#[tokio::test]
async fn a_bounded_number_of_rooms_is_looked_at_for_one_question() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let input = json!({ "config": { "auto_start": false }, "metadata": { "mode": "ranked" } });
    let last = hall.good("POST", "/rooms", &ada, input).await["room"]["id"].clone();
    let input = json!({ "config": { "auto_start": false }, "metadata": { "mode": "free" } });
    let free = hall.good("POST", "/rooms", &ada, input).await["room"]["id"].clone();
    let store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    // As many newer ones as are looked at, and one more.
    let copies = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1001)
        INSERT INTO rooms (realm, id, code, game, created_ms, version, document, joinable, summary, players)
        SELECT realm, id || 'c' || i, NULL, game, created_ms + 5000 + i, version, document, joinable, summary, players
        FROM rooms, n WHERE id = ?1";
    assert_eq!(store.execute(copies, [free.as_str().unwrap()]).unwrap(), 1001);
    drop(store);
    let ranked = json!({ "metadata": { "mode": "ranked" } });
    let first = hall.good("GET", &format!("/rooms?criteria={}", query(&ranked)), &ada, json!({})).await;
    assert_eq!(first["rooms"], json!([]), "the part ends before the room that meets them");
    assert!(first["next"].is_string(), "and says that more follow: {first}");
    let (ids, parts) = found(&hall, &ada, &ranked, 100).await;
    assert_eq!((json!(ids), parts), (json!([last]), 2));
}
