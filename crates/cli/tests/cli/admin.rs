//! An operator looks after a server's turn rooms.

use crate::support::{Machine, Running};
use serde_json::Value;
use std::fs;

struct Desk {
    machine: Machine,
    address: String,
    key: String,
    _server: Running,
}

impl Desk {
    fn open() -> Self {
        let machine = Machine::new();
        let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
        let (key, data) = (path("operator"), path("data"));
        assert!(machine.run(&["token", "--new-key", &key]).status.success());
        let public = format!("{key}.pub");
        let (_server, address) = machine.serve(&["--data", &data, "--operator-key", &public]);
        Desk { machine, address, key, _server }
    }

    /// What a command says, and whether it succeeded.
    fn says(&self, task: &[&str]) -> (bool, String) {
        let whose = ["admin", "--server", &self.address, "--key", &self.key, "--app", "draughts"];
        let output = self.machine.run(&[&whose[..], task].concat());
        let text = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
    }

    fn done(&self, task: &[&str]) -> String {
        let (succeeded, text) = self.says(task);
        assert!(succeeded, "{task:?}: {text}");
        text
    }

    fn json(&self, task: &[&str]) -> Value {
        serde_json::from_str(&self.done(&[task, &["--json"]].concat())).expect("one line of JSON")
    }

    fn player(&self, name: &str) -> Running {
        let session = self.machine.path(name);
        let session = session.to_str().expect("a plain path");
        self.machine.start(&["draughts", "--server", &self.address, "--name", name, "--session", session])
    }
}

#[test]
fn an_operator_lists_rooms_bans_ends_and_backs_up() {
    let desk = Desk::open();
    assert_eq!(desk.done(&["rooms"]), "");
    let ada = desk.player("ada");
    ada.says("waiting for somebody");
    let bob = desk.player("bob");
    bob.says("the game ");

    let listed = desk.done(&["rooms"]);
    assert!(
        listed.lines().count() == 1 && listed.contains("draughts") && listed.contains("2 of 2"),
        "{listed}"
    );
    let room = listed.split("  ").next().expect("its id comes first").to_owned();
    let shown = desk.done(&["room", &room]);
    assert!(shown.contains("ada") && shown.contains("bob"), "{shown}");
    let seats = desk.json(&["room", &room]);
    let players = seats["players"].as_array().expect("there are some");
    let account = |name: &str| {
        let player = players.iter().find(|player| player["name"] == name).expect("it sits there");
        player["id"].as_str().expect("it is a text").to_owned()
    };

    // Whoever is banned is out at once, and may come back when that is lifted.
    let bob_is = account("bob");
    desk.done(&["ban", &bob_is, "--reason", "he cheats", "--hours", "2"]);
    assert!(bob.complains("parlor: ").contains("he cheats"));
    let bans = desk.done(&["bans"]);
    assert!(bans.contains(&bob_is) && bans.contains("by operator: he cheats"), "{bans}");
    desk.done(&["lift", &bob_is]);
    assert_eq!(desk.done(&["bans"]), "");
    let bob = desk.player("bob");
    bob.says("the game goes on: ");

    desk.done(&["end", &room, "--reason", "closing time"]);
    assert!(ada.says("game over: ").starts_with("nobody wins"));
    assert!(bob.says("game over: ").starts_with("nobody wins"));

    assert!(desk.done(&["status"]).contains("store_commits: "));
    let file = desk.json(&["backup"])["file"].as_str().expect("it is named").to_owned();
    assert!(fs::metadata(file).expect("it is there").len() > 0);
}

#[test]
fn what_is_wrong_is_said() {
    let desk = Desk::open();
    let other = desk.machine.path("other");
    let other = other.to_str().expect("a plain path");
    assert!(desk.machine.run(&["token", "--new-key", other]).status.success());
    for (task, word) in [
        (vec!["room", "../x"], "is no id"),
        (vec!["room", "r00"], "no_such_room"),
        (vec!["ban", "nobody", "--reason", "x"], "not_found"),
        (vec!["ban", "nobody"], "--reason"),
        (vec!["rooms", "--key", other], "bad_token"),
        (vec!["rooms", "--key", "/no/such/file"], "/no/such/file"),
        (vec!["rooms", "--server", "127.0.0.1:1"], "127.0.0.1:1"),
        (vec![], "Usage"),
    ] {
        let (succeeded, text) = desk.says(&task);
        assert!(!succeeded && text.contains(word), "{task:?}: {text}");
    }
    let output = desk.machine.run(&["admin", "rooms", "--server", &desk.address]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--key FILE"), "{output:?}");
}
