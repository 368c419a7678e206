//! Memory of the services for their callers: pages, and cached rooms.

use crate::hall::Hall;
use parlor_services::store::{PAGE_BYTES_MAX, Role};
use parlor_services::{OnlineConfig, OnlineMemory};
use serde_json::{Value, json};

/// Entries of lists here have no more than this.
const ENTRY_BYTES_MAX: usize = 20 * 1024;

/// Rooms of so many players, two each, with as much about them as there may be.
async fn large_rooms(hall: &Hall, players: usize) -> usize {
    for number in 0..players {
        let (player, _) = hall.player(&format!("player {number}")).await;
        for _ in 0..2 {
            let input = json!({
                "config": { "auto_start": false }, "metadata": { "about": "x".repeat(15 * 1024) },
            });
            hall.good("POST", "/rooms", &player, input).await;
        }
    }
    2 * players
}

/// Reads a list to its end, and gives its entries. Each part has about as many bytes as a part may have, if more follow.
async fn whole(hall: &Hall, token: &str, path: &str, field: &str) -> Vec<Value> {
    let (mut entries, mut after) = (Vec::new(), String::new());
    loop {
        let joint = if path.contains('?') { '&' } else { '?' };
        let answer = hall.ask("GET", &format!("{path}{joint}limit=1000{after}"), Some(token), "").await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        let bytes = answer.body().len();
        assert!(bytes <= PAGE_BYTES_MAX + ENTRY_BYTES_MAX, "{path}: {bytes} bytes");
        let mut part = answer.json();
        let Value::Array(found) = part[field].take() else { panic!("{part}") };
        entries.extend(found);
        match &part["next"] {
            Value::Null => return entries,
            next => {
                assert!(bytes > PAGE_BYTES_MAX / 2, "{path}: {bytes} bytes, and more follow");
                let next = next.as_str().map_or_else(|| next.to_string(), str::to_owned);
                after = format!("&after={next}");
            }
        }
    }
}

#[tokio::test]
async fn threat_44_a_page_of_large_entries_ends_early_and_nothing_is_left_out() {
    let hall = Hall::open().await;
    let rooms = large_rooms(&hall, 20).await;
    let (ada, _) = hall.player("ada").await;
    let operator = hall.operator(Role::Server);
    let criteria = "/rooms?criteria=%7B%22metadata%22%3A%7B%7D%7D";
    for (token, path) in [(&ada, "/rooms"), (&ada, criteria), (&operator, "/admin/rooms")] {
        let found = whole(&hall, token, path, "rooms").await;
        let mut ids: Vec<&str> = found.iter().map(|room| room["id"].as_str().unwrap()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!((found.len(), ids.len()), (rooms, rooms), "{path}");
    }

    // An inbox alike.
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "auto_start": false } })).await;
    let room = opened["room"]["id"].as_str().unwrap();
    let (bob, _) = hall.player("bob").await;
    hall.good("POST", &format!("/rooms/{room}/join"), &bob, json!({})).await;
    let body = "x".repeat(4_000);
    for _ in 0..100 {
        let said = json!({ "type": "chat", "body": body });
        hall.good("POST", &format!("/rooms/{room}/messages"), &ada, said).await;
    }
    let notices = whole(&hall, &bob, "/inbox", "notices").await;
    let seqs: Vec<u64> = notices.iter().map(|notice| notice["seq"].as_u64().unwrap()).collect();
    assert!(seqs.len() >= 100, "{}", seqs.len());
    assert!(seqs.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{seqs:?}");
}

#[tokio::test]
async fn threat_44_rooms_at_hand_take_no_more_than_they_may_and_are_read_again() {
    let turn_rooms = 2 << 20;
    let hall = Hall::changed(|setup| {
        setup.online.memory = OnlineMemory { turn_rooms, ..OnlineMemory::default() };
        setup.config.metrics = Some((core::net::Ipv4Addr::LOCALHOST, 0).into());
    })
    .await;
    // Each takes many times its bytes once it is read.
    let about: Vec<Value> = (0..1_500).map(|_| json!({ "a": 0 })).collect();
    let mut opened = Vec::new();
    for number in 0..8 {
        let (player, _) = hall.player(&format!("player {number}")).await;
        let input = json!({ "config": { "auto_start": false }, "metadata": { "about": about } });
        let room = hall.good("POST", "/rooms", &player, input).await;
        opened.push((player, room["room"]["id"].as_str().unwrap().to_owned()));
    }
    let metrics = hall.server.server.metrics_addr().unwrap();
    for _ in 0..2 {
        for (player, room) in &opened {
            let read = hall.good("GET", &format!("/rooms/{room}"), player, json!({})).await;
            assert_eq!(read["room"]["metadata"]["about"].as_array().unwrap().len(), 1_500);
            let held = crate::figures::figure_at(metrics, "parlor_held_bytes{what=\"turn_rooms\"}").await;
            assert!(held > 1e5 && held <= turn_rooms as f64, "{held} bytes");
        }
    }
}

#[test]
fn services_take_less_for_an_address_than_for_all_unless_they_are_told() {
    let memory = OnlineMemory::default();
    assert!(memory.unread_each < memory.unread_all);
    assert_eq!(OnlineConfig::new("x").memory, memory);
}
