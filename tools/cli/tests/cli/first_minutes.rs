//! Messages for a new user when something is missing.

use crate::support::Machine;

/// What a command says, on both outputs, and whether it succeeded.
fn says(machine: &Machine, args: &[&str]) -> (bool, String) {
    let output = machine.run(args);
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn a_command_of_another_name_is_led_to_the_one_that_is_meant() {
    let machine = Machine::new();
    for (typed, meant) in [("host", "'play'"), ("join", "'play'"), ("start", "'serve'"), ("list", "'rooms'")]
    {
        let (succeeded, text) = says(&machine, &[typed]);
        assert!(!succeeded && text.contains(meant) && !text.contains("bots"), "{typed}: {text}");
    }
}

#[test]
fn what_keeps_all_bots_out_is_said_once() {
    let machine = Machine::new();
    let (succeeded, text) =
        says(&machine, &["bots", "--join", "K7QM", "--server", "127.0.0.1:1", "--via", "websocket"]);
    assert!(!succeeded, "{text}");
    assert_eq!(text.matches("127.0.0.1:1").count(), 1, "{text}");
}

#[test]
fn a_new_key_is_for_players_and_for_operators() {
    let machine = Machine::new();
    let key = machine.path("key");
    let (succeeded, text) = says(&machine, &["token", "--new-key", key.to_str().expect("a plain path")]);
    assert!(succeeded && text.contains("--admission-key") && text.contains("--operator-key"), "{text}");
}

#[test]
fn an_operator_of_a_server_without_one_is_told_how_to_have_one() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    let (key, other) = (path("operator"), path("other"));
    for key in [&key, &other] {
        assert!(machine.run(&["token", "--new-key", key]).status.success());
    }
    let (_server, address) = machine.serve(&["--data", &path("data")]);
    let admin = |address: &str, key: &str| {
        says(&machine, &["admin", "--server", address, "--app", "tanks", "--key", key, "rooms"])
    };
    let (succeeded, text) = admin(&address, &key);
    assert!(!succeeded && text.contains("--operator-key FILE.pub") && !text.contains("sign in"), "{text}");
    let (_server, address) =
        machine.serve(&["--data", &path("more"), "--operator-key", &format!("{key}.pub")]);
    assert!(admin(&address, &key).0);
    let (succeeded, text) = admin(&address, &other);
    assert!(!succeeded && text.contains("another key") && !text.contains("sign in"), "{text}");
}

#[test]
fn games_are_read_from_their_folder_and_what_is_wrong_there_is_named() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    let (data, games) = (path("data"), path("games"));
    std::fs::create_dir(&games).expect("the folder is ours");
    let file = machine.path("games").join("draughts.json");
    std::fs::write(&file, r#"{ "rules": "chess" }"#).expect("the folder is ours");
    let (succeeded, text) = says(&machine, &["serve", "--port", "0", "--data", &data, "--games", &games]);
    assert!(!succeeded && text.contains("draughts.json: rules: "), "{text}");
    let (succeeded, text) = says(&machine, &["serve", "--port", "0", "--games", &games]);
    assert!(!succeeded && text.contains("--data FOLDER"), "{text}");

    std::fs::write(&file, r#"{ "rules": "draughts" }"#).expect("the folder is ours");
    let (_server, address) = machine.serve(&["--data", &data, "--games", &games]);
    let ada = machine.start(&["draughts", "--server", &address, "--name", "ada", "--session", &path("ada")]);
    ada.says("room ");
}
