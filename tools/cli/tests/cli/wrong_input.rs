//! Errors for wrong input: one line that says what happened and what to do.

use crate::support::Machine;

#[track_caller]
fn refused(args: &[&str], words: &[&str]) {
    let machine = Machine::new();
    std::fs::write(machine.path("bad"), "1.0 sideways\n").expect("the folder is ours");
    let bad = machine.path("bad");
    let args: Vec<&str> = args
        .iter()
        .map(|arg| if *arg == "BAD" { bad.to_str().expect("a plain path") } else { arg })
        .collect();
    let output = machine.run(&args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} succeeded");
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
    assert!(!text.contains("panicked"), "{text}");
}

#[test]
fn codes_and_invites() {
    refused(&["play", "--headless", "--join", "K7"], &["4 to 12 letters"]);
    refused(&["play", "--headless", "--join", "K7-M"], &["only letters and digits"]);
    refused(&["play", "--headless", "--join", "parlor://K7QM"], &["is not an invite"]);
    refused(&["play", "--headless", "--join", "K7QM"], &["no room K7QM", "parlor serve", "PARLOR_SERVER"]);
    refused(&["play", "--headless", "--code", "K7", "--seconds", "1"], &["4 to 12 letters"]);
}

#[test]
fn servers() {
    refused(&["play", "--headless", "--join", "K7QM", "--server", "a b"], &["is not a server address"]);
    refused(
        &["play", "--headless", "--join", "K7QM", "--server", "127.0.0.1:1", "--via", "websocket"],
        &["refused"],
    );
    refused(
        &["play", "--headless", "--join", "K7QM", "--server", "no.such.host.invalid"],
        &["no.such.host.invalid"],
    );
    refused(&["play", "--headless", "--join", "K7QM", "--ca", "/no/such/file"], &["/no/such/file"]);
}

#[test]
fn settings() {
    refused(&["play", "--headless", "--max-players", "1"], &["2..=16"]);
    refused(&["play", "--headless", "--script", "BAD"], &["line 1", "sideways"]);
    refused(&["serve", "--certificate", "x.pem"], &["--key"]);
    refused(&["serve", "--certificate", "x.pem", "--key", "y.pem", "--port", "0"], &["x.pem"]);
    refused(&["serve", "--config", "BAD"], &["is refused"]);
    refused(&["serve", "--log", "parlor==x", "--port", "0"], &["log filter"]);
    refused(&["play", "--impair", "latency=100"], &["latency may not be 100", "such as 100ms"]);
    refused(&["bots", "--join", "K7QM", "--impair", "lag=1s"], &["no \"lag\"", "latency, jitter"]);
    refused(&["serve", "--impair", "loss=200%"], &["loss may not be 200%", "0% to 100%"]);
    refused(&["impair", "--listen", "127.0.0.1:0", "--to", "127.0.0.1", "none"], &["HOST:PORT"]);
    refused(&["impair", "--listen", "127.0.0.1:0", "--to", "127.0.0.1:1", "5%"], &["NAME=VALUE"]);
    refused(&["impair", "--listen", "192.0.2.1:9", "--to", "127.0.0.1:1", "none"], &["192.0.2.1:9"]);
    refused(&["replay", "BAD"], &["no room log"]);
    refused(&["dump", "BAD"], &["no room log"]);
    refused(&["dump", "/no/such/file"], &["/no/such/file cannot be read"]);
    refused(&["dump", "BAD", "--entity", "3.x"], &["SLOT.GENERATION", "3.x"]);
    refused(&["dump", "BAD", "--from", "3", "--to", "2"], &["--from 3 is not before --to 2"]);
    refused(&["bots"], &["--join"]);
    // Every program takes a room in the same two ways, and one room.
    for program in ["play", "bots", "match", "draughts"] {
        refused(&[program, "K7QM", "--join", "K7QN"], &["--join", "cannot be used with"]);
    }
    refused(&["play", "K7QM", "--headless"], &["no room K7QM"]);
    refused(&["bots", "K7QM"], &["no room K7QM"]);
}

#[test]
fn full_rooms_and_wrong_secrets() {
    let machine = Machine::new();
    let host = machine.start(&["play", "--headless", "--max-players", "2", "--secret", "sesame"]);
    let code = host.complains("room ");
    let join = |secret: &str| {
        machine.run(&["play", "--join", &code, "--headless", "--secret", secret, "--updates", "1"])
    };
    let wrong = join("simsim");
    assert!(
        String::from_utf8_lossy(&wrong.stderr).contains("no room with this code, or its secret is another")
    );
    let seated = machine.start(&["play", "--join", &code, "--headless", "--secret", "sesame"]);
    seated.complains("room ");
    let full = join("sesame");
    assert!(String::from_utf8_lossy(&full.stderr).contains("all 2 seats"), "{full:?}");
}
