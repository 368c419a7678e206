//! An operator looks after a server's rooms and backups.

use crate::support::{Machine, Running};
use serde_json::Value;
use std::fs;

struct Desk {
    machine: Machine,
    address: String,
    key: String,
    server: Running,
}

impl Desk {
    fn open() -> Self {
        let machine = Machine::new();
        let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
        let (key, data) = (path("operator"), path("data"));
        assert!(machine.run(&["token", "--new-key", &key]).status.success());
        let public = format!("{key}.pub");
        let (server, address) = machine.serve(&["--data", &data, "--operator-key", &public]);
        Desk { machine, address, key, server }
    }

    /// Stops the server, does something, and starts it again on any port.
    fn while_stopped(mut self, task: impl FnOnce(&Self)) -> Self {
        self.server.terminate();
        assert!(self.server.ends_well());
        task(&self);
        let data = self.path("data");
        let (server, address) =
            self.machine.serve(&["--data", &data, "--operator-key", &self.path("operator.pub")]);
        (self.server, self.address) = (server, address);
        self
    }

    fn path(&self, name: &str) -> String {
        self.machine.path(name).to_str().expect("a plain path").to_owned()
    }

    /// What a command says, and whether it succeeded.
    fn says(&self, task: &[&str]) -> (bool, String) {
        let app = if task.contains(&"--app") { &[][..] } else { &["--app", "draughts"] };
        let whose = [&["admin", "--server", &self.address, "--key", &self.key], app].concat();
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
        (vec!["room", "ZZZZ"], "no_such_room"),
        (vec!["end", "ZZZZ"], "no_such_room"),
        (vec!["kick", "ZZZZ", "1"], "no_such_room"),
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
    // Without a store there are no operations.
    let (_bare, address) = desk.machine.serve(&[]);
    let (succeeded, text) = desk.says(&["rooms", "--server", &address]);
    assert!(!succeeded && text.contains("--data FOLDER"), "{text}");
}

#[test]
fn x16_an_operator_sees_live_rooms_removes_members_and_ends_them() {
    let desk = Desk::open();
    let play = |more: &[&str]| {
        let play = ["play", "--server", &desk.address, "--headless", "--seconds", "300", "--json"];
        desk.machine.start(&[&play[..], more].concat())
    };
    let task = |task: &[&str]| desk.done(&[task, &["--app", "magpies"]].concat());
    let host = play(&["--code", "NEST", "--name", "ada"]);
    let shown = || task(&["room", "NEST"]);
    while !desk.says(&["room", "NEST", "--app", "magpies"]).0 {}
    let guest = play(&["--join", "NEST", "--name", "bob"]);
    while !shown().contains("bob") {}
    assert!(
        shown().contains("member 0  ada  quic") && shown().contains("member 1  bob  quic"),
        "{}",
        shown()
    );
    assert_eq!(task(&["rooms"]), "NEST  live  magpies  player_hosted  2 of 8");
    assert_eq!(desk.done(&["rooms"]), "", "it is another game's");
    task(&["kick", "NEST", "1", "--reason", "he cheats"]);
    assert!(guest.report()["closed"].to_string().contains("he cheats"));
    assert!(!shown().contains("bob"));
    task(&["end", "nest", "--reason", "closing time"]);
    assert!(host.report()["closed"].to_string().contains("closing time"));
    assert_eq!(task(&["rooms"]), "");
}

#[test]
fn a_backup_that_is_restored_is_what_the_server_goes_on_with() {
    let desk = Desk::open();
    let mut ada = desk.player("ada");
    ada.says("waiting for somebody");
    let mut bob = desk.player("bob");
    bob.says("the game ");
    let listed = desk.done(&["rooms"]);
    let room = listed.split("  ").next().expect("its id comes first").to_owned();
    let version = |desk: &Desk| desk.json(&["room", &room])["version"].as_u64().expect("a number");
    let at_backup = version(&desk);
    let backup = desk.json(&["backup"])["file"].as_str().expect("it is named").to_owned();
    // The game goes on, and is backed up once more.
    let first = desk.json(&["room", &room])["current_player"].clone();
    let players = desk.json(&["room", &room])["players"].clone();
    let is_ada = players.as_array().expect("some").iter().any(|it| it["id"] == first && it["name"] == "ada");
    let (mover, line) = if is_ada { (&mut ada, "11-15") } else { (&mut bob, "11-15") };
    mover.types(line);
    while version(&desk) == at_backup {}
    let later = desk.json(&["backup"])["file"].as_str().expect("it is named").to_owned();
    assert!(version(&desk) > at_backup);
    for player in [&mut ada, &mut bob] {
        player.kill();
    }
    let data = desk.path("data");
    let (succeeded, text) = desk.says(&["restore", "--data", &data, &backup]);
    assert!(!succeeded && text.contains("in use by another server"), "{text}");

    let restore = |backup: &str, desk: &Desk| {
        let said = desk.done(&["restore", "--data", &data, backup]);
        let kept = said.rsplit(" is kept as ").next().expect("it says where").split(": delete").next();
        assert!(fs::metadata(kept.expect("a name")).expect("it is there").len() > 0, "{said}");
    };
    let desk = desk.while_stopped(|desk| restore(&backup, desk));
    assert_eq!(version(&desk), at_backup, "what came after the backup is gone");
    let desk = desk.while_stopped(|desk| restore(&later, desk));
    assert!(version(&desk) > at_backup);
    let (succeeded, text) = desk.says(&["restore", "--data", &data, "/no/such/backup"]);
    assert!(!succeeded && text.contains("/no/such/backup"), "{text}");
}
