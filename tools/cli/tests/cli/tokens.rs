//! A server that admits by token, from the key to the room.

use crate::support::Machine;

fn said(output: &std::process::Output) -> (bool, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.success(), String::from_utf8_lossy(&text).trim().to_owned())
}

#[test]
#[cfg(unix)]
fn a_player_and_bots_come_in_by_tokens_and_nobody_without() {
    let machine = Machine::new();
    let (key, public) = (machine.path("key"), machine.path("key.pub"));
    let (key, public) = (key.to_str().expect("a plain path"), public.to_str().expect("a plain path"));
    let (made, text) = said(&machine.run(&["token", "--new-key", key]));
    assert!(made && text.contains(public), "{text}");
    let (_server, address) = machine.serve(&["--admission-key", public]);
    let token = |what: &[&str]| {
        let (made, text) = said(
            &machine.run(&[&["token", "--key", key, "--app", "magpies", "--user", "ada"], what].concat()),
        );
        assert!(made, "{text}");
        text
    };
    let refused = |args: &[&str]| {
        let (succeeded, text) = said(&machine.run(&[args, &["--server", &address, "--headless"]].concat()));
        assert!(!succeeded && text.contains("did not accept the token"), "{text}");
    };

    refused(&["play"]);
    let open = token(&["--create"]);
    let host = machine.start(&["play", "--headless", "--server", &address, "--token", &open]);
    let code = host.complains("room ");
    refused(&["play", "--token", &open]);
    refused(&["play", "--join", &code]);
    let bots: [String; 2] = [(); 2].map(|()| token(&["--room", &code]));
    let args = ["bots", "--join", &code, "--count", "2", "--server", &address, "--headless", "--json"];
    let with_tokens = ["--updates", "10", "--token", &bots[0], "--token", &bots[1]];
    let report = machine.start(&[&args[..], &with_tokens[..]].concat()).report();
    assert_eq!(report["bots"].as_array().map(Vec::len), Some(2), "{report}");
    refused(&["play", "--join", &code, "--token", &bots[0]]);
}

#[test]
fn what_is_wrong_with_keys_and_tokens_is_said() {
    let machine = Machine::new();
    let key = machine.path("key");
    let key = key.to_str().expect("a plain path");
    assert!(said(&machine.run(&["token", "--new-key", key])).0);
    let public = format!("{key}.pub");
    let token = ["token", "--app", "magpies", "--user", "ada", "--key"];
    for (args, word) in [
        (vec!["token", "--new-key", key], "cannot be written"),
        (vec!["token", "--key", key], "--app"),
        ([&token[..], &[key]].concat(), "--create"),
        ([&token[..], &[key, "--room", "K7"]].concat(), "4 to 12 letters"),
        ([&token[..], &[&public, "--create"]].concat(), "no private Ed25519 key"),
        ([&token[..], &["/no/such/file", "--create"]].concat(), "/no/such/file"),
        (vec!["serve", "--port", "0", "--admission-key", key], "no public Ed25519 key"),
        (vec!["serve", "--port", "0", "--admission", "required"], "--admission-key"),
        (vec!["bots", "--join", "K7QM", "--count", "2", "--token", "x"], "1 tokens are given for 2 bots"),
    ] {
        let (succeeded, text) = said(&machine.run(&args));
        assert!(!succeeded && text.contains(word) && !text.contains("panicked"), "{args:?}: {text}");
    }
}
