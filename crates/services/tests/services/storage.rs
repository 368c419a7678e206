//! Objects over the services: whose they are, who reads and writes them, and what is refused.

use crate::hall::Hall;
use parlor_services::store::Role;
use serde_json::{Value, json};

fn object(name: &str, more: Value) -> Value {
    let mut object = json!({ "collection": "loadouts", "name": name, "value": { "tank": "T-9" } });
    if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
    object
}

#[tokio::test]
async fn t4_a_player_shares_an_object_and_the_game_has_its_own() {
    let hall = Hall::open().await;
    let ((ada, ada_id), (bob, _)) = (hall.player("ada").await, hall.player("bob").await);
    let server = hall.operator(Role::Server);
    let both =
        json!({ "objects": [object("heavy", json!({ "readers": "everyone" })), object("light", json!({}))] });
    let written = hall.good("POST", "/storage", &ada, both).await;
    assert_eq!(written["versions"], json!([1, 2]));
    let of_game = object("season", json!({ "readers": "everyone", "value": { "map": "mill" } }));
    hall.good("POST", "/storage", &server, json!({ "objects": [of_game] })).await;
    let hall = hall.again(true).await;
    let wanted = json!({ "objects": [
        { "collection": "loadouts", "name": "heavy", "owner": ada_id },
        { "collection": "loadouts", "name": "light", "owner": ada_id },
        { "collection": "loadouts", "name": "season", "owner": "" },
    ] });
    let read = hall.good("POST", "/storage/read", &bob, wanted).await;
    let found: Vec<(&Value, &Value)> =
        read["objects"].as_array().unwrap().iter().map(|it| (&it["name"], &it["value"])).collect();
    let (tank, map) = (json!({ "tank": "T-9" }), json!({ "map": "mill" }));
    assert_eq!(found, [(&json!("heavy"), &tank), (&json!("season"), &map)], "what is private is left out");
    let list = hall.good("GET", "/storage?collection=loadouts", &ada, json!({})).await;
    assert_eq!(list["objects"].as_array().unwrap().len(), 2);
    let stale = json!({ "objects": [object("heavy", json!({ "version": 9 }))] });
    let (status, answer) = hall.call("POST", "/storage", Some(&ada), stale).await;
    assert_eq!(
        (status, &answer["error"]["code"], &answer["error"]["path"]),
        (409, &json!("stale"), &json!("objects[0].version"))
    );
    let export = hall.good("GET", "/account/export?after=objects", &ada, json!({})).await;
    assert_eq!(export["entries"].as_array().unwrap().len(), 2);
    let gone = json!({ "objects": [{ "collection": "loadouts", "name": "light", "version": 2 }] });
    hall.good("POST", "/storage/remove", &ada, gone).await;
    hall.good("POST", "/account/delete", &ada, json!({ "account": ada_id })).await;
    let list = hall.good("GET", &format!("/storage?owner={ada_id}"), &server, json!({})).await;
    assert_eq!(list["objects"], json!([]));
}

#[tokio::test]
async fn threat_32_t4_what_may_not_be_written_is_named_and_changes_nothing() {
    let hall = Hall::open().await;
    let ((ada, _), (_, bob_id)) = (hall.player("ada").await, hall.player("bob").await);
    let one = |more: Value| json!({ "objects": [object("a", more)] });
    let huge = json!({ "value": { "x": "y".repeat(41_000) } });
    for (input, status, code, path) in [
        (one(json!({ "owner": bob_id })), 403, "not_yours", "objects[0].name"),
        (one(json!({ "owner": "" })), 403, "not_yours", "objects[0].name"),
        (one(json!({ "writers": "owner" })), 400, "bad_input", "objects[0].writers"),
        (one(json!({ "readers": "server" })), 400, "bad_input", "objects[0].readers"),
        (one(json!({ "readers": "nobody" })), 400, "bad_input", "objects[0].readers"),
        (one(json!({ "name": "a b" })), 400, "bad_input", "objects[0].name"),
        (one(json!({ "value": 7 })), 400, "bad_input", "objects[0].value"),
        (one(huge), 413, "too_large", "objects[0].value"),
        (json!({ "objects": [] }), 400, "bad_input", "objects"),
        (
            json!({ "objects": [object("a", json!({})), object("a", json!({}))] }),
            400,
            "bad_input",
            "objects[1].name",
        ),
    ] {
        let (found, answer) = hall.call("POST", "/storage", Some(&ada), input).await;
        let error = &answer["error"];
        assert_eq!((found, &error["code"], &error["path"]), (status, &json!(code), &json!(path)), "{answer}");
    }
    assert_eq!(hall.good("GET", "/storage", &ada, json!({})).await["objects"], json!([]));
    let mut refused = String::new();
    for _ in 0..60 {
        let (status, answer) = hall.call("POST", "/storage", Some(&ada), one(json!({}))).await;
        if status != 200 {
            refused = answer["error"]["code"].as_str().unwrap().to_owned();
            break;
        }
    }
    assert_eq!(refused, "too_often");
}
