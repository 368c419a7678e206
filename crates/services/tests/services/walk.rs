//! Invalid input for every operation of the document, with every kind of invalid caller. Each error has a
//! code, in the one shape and with the document's status (`Hall` checks that), and the store is unchanged.

use crate::hall::Hall;
use parlor_services::store::Role;
use rusqlite::Connection;
use serde_json::{Value, json};

/// All that a store has, as text.
fn stored(hall: &Hall) -> String {
    let store = Connection::open(hall.server.folder.path().join("parlor.db")).unwrap();
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name";
    let names: Vec<String> =
        store.prepare(names).unwrap().query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut all = String::new();
    for name in names {
        let mut rows = store.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns = rows.column_count();
        let mut rows = rows.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let values = (0..columns).map(|at| row.get_ref_unwrap(at));
            all.push_str(&format!("{name} {:?}\n", values.collect::<Vec<_>>()));
        }
    }
    all
}

/// What a field of this schema cannot be.
fn wrong_for(schema: &Value) -> Option<Value> {
    let text = schema.to_string();
    let may_be = |kind: &str| text.contains(&format!("\"{kind}\""));
    if schema.is_boolean()
        || schema.get("type").is_none() && schema.get("$ref").is_none() && schema.get("anyOf").is_none()
    {
        // Anything.
        return None;
    }
    Some(if may_be("object") || may_be("$ref") { json!(7) } else { json!({ "no": "such" }) })
}

/// An operation's path, with a room that there is.
fn at(path: &str, room: &str) -> String {
    path.replace("{room}", room)
        .replace("{proposal}", "1")
        .replace("{code}", "K7QMAB")
        .replace("{member}", "1")
        .replace("{board}", "laps")
        .replace("{statistic}", "kills")
        .replace("{achievement}", "killer")
        .replace("{ladder}", "duel")
        .replace("{lobby}", "l0")
        .replace("{ticket}", "t0")
}

struct Walk<'a> {
    hall: &'a Hall,
    room: String,
    tried: usize,
}

impl Walk<'_> {
    async fn refused(
        &mut self,
        (method, path): (&str, &str),
        token: Option<&str>,
        body: &str,
        code: &str,
    ) -> Value {
        self.tried += 1;
        let path = at(path, &self.room);
        let answer = self.hall.ask(method, &path, token, body).await;
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], code, "{method} {path} {body:.100}: {error}");
        assert!(error["sentence"].as_str().is_some_and(|said| said.len() > 10), "{error}");
        error
    }

    /// Each field wrong, one missing, one too many.
    async fn fields(&mut self, at: (&str, &str), token: Option<&str>, schema: &Value) {
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let Some(wrong) = wrong_for(field) else { continue };
            // What else is an object is read as any JSON, and judged when all else is there.
            let is_judged_late = !["config", "criteria"].contains(&name.as_str()) && wrong.is_number();
            if is_judged_late {
                continue;
            }
            let body = json!({ name: wrong }).to_string();
            // The configuration has a reader of its own.
            let code = if name == "config" { "bad_config" } else { "bad_input" };
            let error = self.refused(at, token, &body, code).await;
            let path = error["path"].as_str().unwrap_or_default();
            assert!(path.starts_with(name.as_str()), "{at:?}: {name} is not named by {error}");
        }
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if !required.is_empty() {
            let error = self.refused(at, token, "{}", "bad_input").await;
            assert!(required.contains(&error["path"]), "{at:?}: {required:?} are required, and {error}");
        }
        let error = self.refused(at, token, r#"{"no_such_field":1}"#, "bad_input").await;
        assert_eq!(error["path"], "no_such_field", "{at:?}: {error}");
    }

    /// What is no JSON object, or none that is read.
    async fn texts(&mut self, at: (&str, &str), token: Option<&str>) {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(40), "]".repeat(40));
        let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(70_000));
        for (body, code) in [
            ("{", "bad_json"),
            ("[]", "bad_input"),
            ("7", "bad_input"),
            (r#"{"a":1,"a":2}"#, "bad_json"),
            (r#"{"a":{"b":1,"b":2}}"#, "bad_json"),
            ("{\"a\":\"\u{0}\"}", "bad_json"),
            ("{} {}", "bad_json"),
            (&deep, "bad_json"),
            (&huge, "too_large"),
        ] {
            self.refused(at, token, body, code).await;
        }
    }
}

#[tokio::test]
async fn threat_17_whatever_is_wrong_with_an_input_is_named_and_changes_nothing() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "turn_based": true } })).await;
    let tokens =
        [("player", ada), ("server", hall.operator(Role::Server)), ("admin", hall.operator(Role::Admin))];
    let room = opened["room"]["id"].as_str().unwrap().to_owned();
    let mut walk = Walk { hall: &hall, room, tried: 0 };
    let before = stored(&hall);
    for operation in hall.document.described() {
        let place = (&operation.method[..], &operation.path[..]);
        let roles = operation.roles();
        let token = tokens.iter().find(|(role, _)| roles.contains(role)).map(|(_, token)| &token[..]);
        assert!(token.is_some() || roles.is_empty(), "{}", operation.name);
        if let Some(schema) = operation.body() {
            walk.fields(place, token, schema).await;
            walk.texts(place, token).await;
        }
    }
    assert!(walk.tried > 300, "{} inputs were tried", walk.tried);
    assert_eq!(stored(&hall), before, "what was refused has changed nothing");
}

#[tokio::test]
async fn threat_32_whoever_may_not_is_refused_by_every_operation_and_changes_nothing() {
    let hall = Hall::open().await;
    let (ada, _) = hall.player("ada").await;
    let opened = hall.good("POST", "/rooms", &ada, json!({ "config": { "turn_based": true } })).await;
    let staging = json!({ "app": "tanks", "environment": "staging", "device": "a device of another realm" });
    let (_, other) = hall.call("POST", "/auth/device", None, staging).await;
    let other = other["access_token"].as_str().unwrap().to_owned();
    let (server, admin) = (hall.operator(Role::Server), hall.operator(Role::Admin));
    let room = opened["room"]["id"].as_str().unwrap().to_owned();
    let mut walk = Walk { hall: &hall, room, tried: 0 };
    let before = stored(&hall);
    let (head, signature) = ada.rsplit_once('.').unwrap();
    let tampered = format!("{head}.{}", signature.chars().rev().collect::<String>());
    for operation in hall.document.described() {
        let (place, roles) = ((&operation.method[..], &operation.path[..]), operation.roles());
        for bad in [&tampered, head, "x", ""] {
            walk.refused(place, Some(bad), "{}", "bad_token").await;
        }
        if roles.is_empty() {
            continue;
        }
        walk.refused(place, None, "{}", "signed_out").await;
        for (role, token) in [("player", &ada), ("server", &server), ("admin", &admin)] {
            if !roles.contains(&role) {
                walk.refused(place, Some(token), "{}", "forbidden").await;
            }
        }
        // A room of one realm is not there for another, whatever is asked of it.
        if operation.path.contains("{room}") && roles.contains(&"player") {
            let body = match operation.name.as_str() {
                "turn.kick" => r#"{"player":"p1"}"#,
                "turn.propose" | "turn.say" => r#"{"type":"put"}"#,
                "turn.validate" => r#"{"accept":true}"#,
                _ => "{}",
            };
            walk.refused(place, Some(&other), body, "no_such_room").await;
        }
    }
    assert!(walk.tried > 200, "{} were turned away", walk.tried);
    assert_eq!(stored(&hall), before, "who was turned away has changed nothing");
}
