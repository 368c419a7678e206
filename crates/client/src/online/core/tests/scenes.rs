//! The scenes of `testdata/turn-room.json`, which the TypeScript client plays, too.

use super::super::*;
use serde_json::Map;

const SCENES: &str = include_str!("../../../../../../testdata/turn-room.json");

/// Plays one scene.
struct Scene<'a> {
    core: Core,
    room: &'a Value,
    said: Value,
}

#[test]
fn the_scenes_are_played_as_they_are_written() {
    let all: Value = serde_json::from_str(SCENES).unwrap();
    let steps = |of: &Value| of.as_array().unwrap().clone();
    for scene in steps(&all["scenes"]) {
        let who = Who {
            app: "noughts".into(),
            environment: None,
            name: Some("ada".into()),
            device: "d".repeat(32),
        };
        let want = Want::Found { op: "turn.join_or_create", input: json!({}) };
        let mut played = Scene { core: Core::new(who, want), room: &all["room"], said: Value::Null };
        for step in steps(&all["start"]).iter().chain(&steps(&scene["steps"])) {
            played.step(step.as_object().unwrap(), &format!("{}: {step}", scene["name"]));
        }
    }
}

impl Scene<'_> {
    fn step(&mut self, step: &Map<String, Value>, place: &str) {
        let id = self.said["id"].clone();
        for (what, how) in step {
            match what.as_str() {
                "open" => self.core.handle_open(),
                "lost" => self.core.handle_lost("gone".into()),
                "answer" => {
                    let output = self.expanded(how);
                    self.core.handle_text(&json!({ "id": id, "output": output }).to_string());
                }
                "refuse" => {
                    let error = json!({ "code": how, "sentence": "no" });
                    self.core.handle_text(&json!({ "id": id, "error": error }).to_string());
                }
                "notice" => self.core.handle_text(&json!({ "event": noticed(how) }).to_string()),
                "raw" => self.core.handle_text(how.as_str().unwrap()),
                "move" => {
                    let mut input = how.clone();
                    input["room"] = "r1".into();
                    input["state_version"] = 1.into();
                    self.core.propose(input, 1);
                }
                "ask" => {
                    assert_eq!(how, "turn.resign");
                    let input = json!({ "room": "r1" });
                    self.core.request(Request { op: "turn.resign", input, again: true });
                }
                "told" => {
                    let told = core::iter::from_fn(|| self.core.poll_event());
                    let told: Vec<String> =
                        told.filter(|it| *it != Event::Changed).map(|it| words(&it)).collect();
                    assert_eq!(&json!(told), how, "{place}");
                }
                "says" => {
                    let text = self.core.poll_text().unwrap_or_else(|| panic!("{place}: nothing is said"));
                    self.said = serde_json::from_str(&text).unwrap();
                    assert_eq!(&self.said["op"], how, "{place}");
                    for (field, value) in step.get("input").and_then(Value::as_object).into_iter().flatten() {
                        assert_eq!(&self.said["input"][field], value, "{place}");
                    }
                    if let Some(token) = step.get("token") {
                        assert_eq!(&self.said["token"], token, "{place}");
                    }
                }
                // Parts of `says`.
                "input" | "token" => {}
                "quiet" => assert_eq!(self.core.poll_text(), None, "{place}"),
                // How a call of the game ends: events tell it here.
                "moved" => assert!(!self.core.has_pending_move(), "{place}"),
                "name" => assert_eq!(self.core.view().unwrap().name, how.as_str().unwrap(), "{place}"),
                other => panic!("there is no step {other}"),
            }
        }
    }

    /// An answer with the whole of its room and notices.
    fn expanded(&self, output: &Value) -> Value {
        let mut output = output.clone();
        if let Some(part) = output.get_mut("room") {
            let mut room = self.room.clone();
            room.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            *part = room;
        }
        if let Some(notices) = output.get_mut("notices") {
            *notices = notices.as_array().unwrap().iter().map(noticed).collect();
        }
        output
    }
}

fn noticed(short: &Value) -> Value {
    let notice = json!({ "room": "r1", "seq": short["seq"], "body": short["body"] });
    json!({ "seq": short["seq"], "kind": short["kind"], "at_ms": 0, "notice": notice })
}

/// An event as the scenes write it.
fn words(event: &Event) -> String {
    match event {
        Event::Connected { room, .. } => format!("connected {room}"),
        Event::Lost { .. } => "lost".into(),
        Event::GameStarted => "gameStarted".into(),
        Event::TurnStarted { player, turn, .. } => format!("turnStarted {player} {turn}"),
        Event::MoveMade { player, state_version, .. } => format!("moveMade {player} {state_version}"),
        Event::MoveRejected { player, error, .. } => format!("moveRejected {player} {}", error.code),
        Event::Message { player, kind, .. } => format!("message {player} {kind}"),
        Event::Closed(error) => format!("closed {}", error.code),
        other => format!("{other:?}"),
    }
}
