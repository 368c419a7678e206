//! Saves over the services: slots, conflicts that show the other save, versions before, and what is refused.

use crate::hall::Hall;
use data_encoding::BASE64;
use parlor_social::limits::SAVE_BYTES_MAX;
use rusqlite::Connection;
use serde_json::{Value, json};

fn save(body: &[u8], more: Value) -> Value {
    let mut input = json!({ "bytes": BASE64.encode(body), "device": "phone" });
    if let (Some(input), Value::Object(more)) = (input.as_object_mut(), more) {
        input.extend(more);
    }
    input
}

/// Rows of saves in the store.
fn count(hall: &Hall) -> i64 {
    let store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    store.query_row("SELECT COUNT(*) FROM saves", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn t4_a_player_saves_and_chooses_between_two_devices() {
    let hall = Hall::open().await;
    let (ada, id) = hall.player("ada").await;
    let titled = json!({ "title": "Castle, day 12" });
    let first = hall.good("POST", "/saves/slot-1", &ada, save(b"{}", titled.clone())).await;
    assert_eq!((&first["save"]["version"], &first["again"]), (&json!(1), &json!(false)));
    let again = hall.good("POST", "/saves/slot-1", &ada, save(b"{}", titled)).await;
    assert_eq!(
        (&again["save"], &again["again"]),
        (&first["save"], &json!(true)),
        "a repeated request changes nothing"
    );
    let second = save(b"phone", json!({ "version": 1 }));
    hall.good("POST", "/saves/slot-1", &ada, second).await;

    let (status, answer) =
        hall.call("POST", "/saves/slot-1", Some(&ada), save(b"laptop", json!({ "version": 1 }))).await;
    let error = &answer["error"];
    assert_eq!((status, &error["code"], &error["path"]), (409, &json!("stale"), &json!("version")));
    assert_eq!(
        (&error["current"]["version"], &error["current"]["device"]),
        (&json!(2), &json!("phone")),
        "{answer}"
    );
    let (_, answer) =
        hall.call("POST", "/saves/slot-1", Some(&ada), save(b"x", json!({ "replace": false }))).await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["current"]["size"]), (&json!("taken"), &json!(5)));
    let (_, answer) =
        hall.call("POST", "/saves/slot-2", Some(&ada), save(b"x", json!({ "version": 9 }))).await;
    assert_eq!((&answer["error"]["code"], &answer["error"]["current"]), (&json!("stale"), &Value::Null));

    // The player takes the laptop's; the phone's stays among the versions before, and can be brought back.
    hall.good("POST", "/saves/slot-1", &ada, save(b"laptop", json!({ "version": 2 }))).await;
    let before = hall.good("GET", "/saves/slot-1/before", &ada, json!({})).await;
    let versions: Vec<&Value> = before["saves"].as_array().unwrap().iter().map(|it| &it["version"]).collect();
    assert_eq!(versions, [&json!(2), &json!(1)]);
    let phone = hall.good("GET", "/saves/slot-1?version=2", &ada, json!({})).await;
    assert_eq!(BASE64.decode(phone["bytes"].as_str().unwrap().as_bytes()).unwrap(), b"phone");
    let now = hall.good("GET", "/saves/slot-1", &ada, json!({})).await;
    assert_eq!(BASE64.decode(now["bytes"].as_str().unwrap().as_bytes()).unwrap(), b"laptop");

    // Nobody else reads it, and it outlives the server.
    let (bob, _) = hall.player("bob").await;
    assert_eq!(hall.bad("GET", "/saves/slot-1", &bob, json!({})).await, "no_such_save");
    let hall = hall.again(true).await;
    let list = hall.good("GET", "/saves", &ada, json!({})).await;
    assert_eq!((&list["saves"][0]["slot"], &list["saves"][0]["version"]), (&json!("slot-1"), &json!(3)));
    let removed = hall.good("POST", "/saves/slot-1/remove", &ada, json!({ "version": 3 })).await;
    assert!(removed["save"]["replaced_ms"].is_u64(), "{removed}");
    assert_eq!(hall.bad("POST", "/saves/slot-1/remove", &ada, json!({})).await, "no_such_save");
    assert_eq!(hall.good("GET", "/saves", &ada, json!({})).await["saves"], json!([]));

    // A player may have all of it, and then nothing is left.
    let export = hall.good("GET", "/account/export?after=saves", &ada, json!({})).await;
    assert_eq!((&export["kind"], export["entries"].as_array().unwrap().len()), (&json!("saves"), 3));
    hall.good("POST", "/account/delete", &ada, json!({ "account": id })).await;
    assert_eq!(count(&hall), 0);
}

#[tokio::test]
async fn threat_43_t4_what_cannot_be_saved_is_named_and_leaves_nothing() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    for (path, input, status, code, field) in [
        ("/saves/a%20b", save(b"", json!({})), 400, "bad_input", "slot"),
        ("/saves/a", json!({ "bytes": "!" }), 400, "bad_input", "bytes"),
        ("/saves/a", json!({ "bytes": "QQ" }), 400, "bad_input", "bytes"),
        ("/saves/a", json!({}), 400, "bad_input", "bytes"),
        ("/saves/a", save(b"", json!({ "title": "x".repeat(300) })), 400, "bad_input", "title"),
        ("/saves/a", save(b"", json!({ "device": "\u{0}" })), 400, "bad_input", "device"),
        ("/saves/a", save(b"", json!({ "replace": false, "version": 3 })), 400, "bad_input", "version"),
        ("/saves/a", save(&vec![0; SAVE_BYTES_MAX + 1], json!({})), 413, "too_large", "bytes"),
    ] {
        // Each from a player of its own, because writes have a budget.
        let (player, _) = hall.player("bob").await;
        let (found, answer) = hall.call("POST", path, Some(&player), input).await;
        let error = &answer["error"];
        assert_eq!(
            (found, &error["code"], &error["path"]),
            (status, &json!(code), &json!(field)),
            "{answer}"
        );
        assert!(!error["sentence"].as_str().unwrap().is_empty());
    }
    assert_eq!(count(&hall), 0);
    // A player that writes without end must wait.
    let mut refused = String::new();
    for number in 0..40 {
        let (status, answer) = hall.call("POST", "/saves/a", Some(&ada), save(&[number], json!({}))).await;
        if status != 200 {
            assert!(answer["error"]["retry_after_ms"].is_u64(), "{answer}");
            refused = answer["error"]["code"].as_str().unwrap().to_owned();
            break;
        }
    }
    assert_eq!(refused, "too_often");
}
