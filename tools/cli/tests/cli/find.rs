//! Two terminals find each other through a server that is killed in the middle of the search.

use crate::support::{Machine, Running, port_of_its_own};

fn up(machine: &Machine, data: &str, port: &str) -> Running {
    let args = ["serve", "--port", port, "--log", "warn", "--data", data, "--listen", "127.0.0.1"];
    let running = machine.start(&args);
    running.says("Parlor ");
    running
}

#[test]
fn n5_two_terminals_find_each_other_through_a_server_that_is_killed_in_between() {
    let machine = Machine::new();
    let path = |name: &str| machine.path(name).to_str().expect("a plain path").to_owned();
    let data = path("data");
    let port = port_of_its_own().to_string();
    let mut server = up(&machine, &data, &port);
    let address = format!("127.0.0.1:{port}");
    let player = |name: &str| {
        let session = path(name);
        let args = [
            "play",
            "--find",
            "--server",
            &address,
            "--name",
            name,
            "--session",
            &session,
            "--max-players",
            "2",
            "--headless",
            "--updates",
            "40",
            "--seconds",
            "60",
            "--json",
        ];
        machine.start(&args)
    };
    let ada = player("ada");
    ada.complains("searching others");
    server.kill();
    let _server = up(&machine, &data, &port);
    ada.complains("searching others");
    let bob = player("bob");
    for report in [ada.report(), bob.report()] {
        let members = report["members"].as_object().map_or(0, |members| members.len());
        assert!(
            members == 2 || report.to_string().contains("bob") && report.to_string().contains("ada"),
            "{report}"
        );
    }
}

#[test]
fn n5_what_cannot_be_searched_is_said() {
    let machine = Machine::new();
    let session = machine.path("ada").to_str().expect("a plain path").to_owned();
    let (_server, at) = machine.serve(&[]);
    let output = machine.run(&["play", "--find", "--headless", "--server", &at, "--session", &session]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("keeps no accounts"), "{text}");
    let output = machine.run(&["play", "--find", "--join", "K7QM"]);
    assert!(!output.status.success(), "one either searches or joins");
}
