//! How guests join, and their messages when joining fails or the room ends.

use crate::support::Machine;
use parlor_transport::discovery::Registry;

/// What the registry of a machine says of a code is not all: the room may be at the configured server.
fn joins_at_the_configured_server(entered_for: &str) {
    let machine = Machine::new();
    let (_other, other) = machine.serve(&[]);
    let (_server, server) = machine.serve(&[]);
    let host =
        machine.start(&["play", "--headless", "--code", "K7QM", "--server", &server, "--seconds", "100"]);
    assert_eq!(host.complains("room "), "K7QM");
    let registry = Registry::at(machine.path("registry"));
    let port = |address: &str| address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    let entry = registry.server(port(&other)).expect("it runs on this machine");
    let code = "K7QM".parse().expect("a code");
    let _entry = registry.enter_room(code, entered_for, entry.port, entry.fingerprint).expect("ours");
    let mut guest = machine.command(&["play", "--headless", "--join", "K7QM", "--updates", "1", "--json"]);
    let output = guest.env("PARLOR_SERVER", &server).output().expect("the binary was built");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_str(&said).expect("a report");
    assert_eq!(
        (report["join_path"].as_str(), report["link_state"].as_str()),
        (Some("internet_fallback"), Some("connected"))
    );
}

#[test]
fn a_room_of_another_game_on_this_machine_does_not_shadow_the_servers() {
    joins_at_the_configured_server("chess");
}

#[test]
fn a_server_of_this_machine_that_has_no_such_room_is_passed_by() {
    joins_at_the_configured_server("magpies");
}

#[test]
fn the_page_of_a_room_leads_into_it() {
    let machine = Machine::new();
    let (_server, address) = machine.serve(&[]);
    let host = machine.start(&["play", "--headless", "--server", &address, "--seconds", "100"]);
    let page = format!("http://{address}/join/{}", host.complains("room "));
    let guest = machine.start(&["play", "--headless", "--join", &page, "--updates", "1", "--json"]);
    assert!(guest.report()["updates_decoded"].as_u64() >= Some(1));
}

#[test]
fn who_does_not_get_in_fails_with_one_sentence_and_with_json_with_a_report_too() {
    let machine = Machine::new();
    let (_server, address) = machine.serve(&[]);
    let join = |args: &[&str]| {
        let all = [args, &["--join", "K7QMQ", "--server", &address, "--headless"]].concat();
        let output = machine.run(&all);
        assert!(!output.status.success(), "{all:?}");
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
    };
    let why = parlor_proto::wire::handshake::Refusal::NoSuchRoom.to_string();
    for args in [&["play"][..], &["bots", "--count", "3"]] {
        let [said, complained] = join(args);
        assert_eq!((said.as_str(), complained), ("", format!("parlor: {why}\n")));
    }
    let [said, complained] = join(&["play", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&said).expect("a report");
    assert_eq!(
        (report["link_state"].as_str(), report["last_reason_code"].as_str(), complained.as_str()),
        (Some("lost"), Some("room_expired"), format!("parlor: {why}\n").as_str())
    );
}

#[test]
#[cfg(unix)]
fn guests_of_a_host_that_quits_read_that_the_host_left() {
    let machine = Machine::new();
    let host = machine.start(&["play", "--headless", "--seconds", "100"]);
    let code = host.complains("room ");
    let guest = machine.start(&["play", "--headless", "--join", &code, "--json"]);
    assert_eq!(guest.complains("room "), code);
    host.terminate();
    let report = guest.report();
    assert_eq!(report["closed"]["reason"], "host_left", "{report}");
    assert_eq!(report["last_reason_code"], "peer_left");
}

#[test]
fn x3_a_spectator_watches_a_room_later_than_its_players() {
    let machine = Machine::new();
    let host = machine.start(&[
        "play",
        "--headless",
        "--seconds",
        "100",
        "--name",
        "ada",
        "--spectator-delay",
        "1s",
    ]);
    let code = host.complains("room ");
    let watcher = machine.start(&["play", &code, "--watch", "--headless", "--updates", "5", "--json"]);
    let report = watcher.report();
    assert_eq!(report["role"], "spectator", "{report}");
    assert!(
        report["members_seen"]["0"] == "ada" && report["updates_decoded"].as_u64() >= Some(5),
        "{report}"
    );
    let wrong = |args: &[&str], text: &str| {
        let said = machine.run(args);
        let complained = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(!said.status.success() && complained.contains(text), "{complained}");
    };
    wrong(&["play", "--watch", "--headless"], "--watch needs the code or link of a room");
    wrong(&["play", "--headless", "--spectator-delay", "5ms"], "it may be 0, or 1000 to 300000 ms");
    wrong(&["play", &code, "--headless", "--spectator-delay", "5s"], "cannot be used with");
}
