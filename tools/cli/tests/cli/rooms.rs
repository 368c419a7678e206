//! Rooms as users open them: the binary, real sockets, several processes.

use crate::support::Machine;
use serde_json::Value;
use std::collections::BTreeMap;

fn hashes(report: &Value) -> BTreeMap<u64, String> {
    let marks = report["state_hashes"].as_object().expect("a report has hashes");
    marks
        .iter()
        .map(|(sequence, hash)| {
            (sequence.parse().expect("a number"), hash.as_str().expect("a hash").to_owned())
        })
        .collect()
}

/// Every sequence that two members decoded has the same hash, and there is one that all of them did.
fn assert_agreement(reports: &[&Value]) {
    let all: Vec<_> = reports.iter().map(|report| hashes(report)).collect();
    let common: Vec<u64> = all[0]
        .keys()
        .copied()
        .filter(|sequence| all.iter().all(|marks| marks.contains_key(sequence)))
        .collect();
    assert!(!common.is_empty(), "no sequence was decoded by all: {all:?}");
    for marks in &all {
        for (sequence, hash) in marks {
            for other in all.iter().filter_map(|other| other.get(sequence)) {
                assert_eq!(hash, other, "at {sequence}");
            }
        }
    }
}

#[test]
#[cfg(unix)]
fn a_host_and_bots_over_quic_and_websocket_decode_the_same_state() {
    let machine = Machine::new();
    let (_server, address) = machine.serve(&[]);
    let on = |args: &[&str]| {
        let mut args = args.to_vec();
        args.extend(["--server", &address, "--headless", "--json", "--hash-at", "150"]);
        machine.start(&args)
    };
    let host = on(&["play", "--name", "host"]);
    let code = host.complains("room ");
    let bots = ["quic", "websocket"]
        .map(|via| on(&["bots", "--join", &code, "--count", "2", "--via", via, "--updates", "300"]));
    let bots = bots.map(crate::support::Running::report);
    host.terminate();
    let host = host.report();

    let members: Vec<&Value> =
        bots.iter().flat_map(|report| report["bots"].as_array().expect("a list")).collect();
    for (member, link) in members.iter().zip(["quic", "quic", "websocket", "websocket"]) {
        assert!(member["updates_decoded"].as_u64() >= Some(300), "{member}");
        assert_eq!((member["link"].as_str(), member["code"].as_str()), (Some(link), Some(code.as_str())));
        assert!(member["messages_sent"].as_u64() > Some(0) && member["rtt_ms"].is_number(), "{member}");
    }
    assert_eq!(host["role"], "host");
    assert_eq!(host["members_seen"].as_object().map(serde_json::Map::len), Some(5));
    let everybody: Vec<&Value> = std::iter::once(&host).chain(members).collect();
    assert_agreement(&everybody);
}

#[test]
#[cfg(unix)]
fn play_in_one_terminal_and_join_in_another() {
    let machine = Machine::new();
    let host = machine.start(&["play", "--headless", "--json"]);
    let code = host.complains("room ");
    let guest =
        machine.start(&["play", "--join", &code.to_lowercase(), "--headless", "--json", "--updates", "120"]);
    let guest = guest.report();
    assert_eq!(
        (guest["join_path"].as_str(), guest["transport_path"].as_str()),
        (Some("local"), Some("local_room"))
    );
    let connectivity = &guest["connectivity"];
    assert_eq!((guest["scope"].as_str(), connectivity["mode"].as_str()), (Some("local"), Some("auto")));
    assert!(connectivity["relay"].is_string() && connectivity["relay"] == connectivity["coordinator"]);
    assert_eq!(guest["members_seen"].as_object().map(serde_json::Map::len), Some(2));
    host.terminate();
    assert_agreement(&[&host.report(), &guest]);
    // The room went with its host, and its entry with the room.
    let late = machine.run(&["play", "--join", &code, "--headless"]);
    let text = String::from_utf8_lossy(&late.stderr).into_owned();
    assert!(!late.status.success() && text.contains(&code) && text.contains("PARLOR_SERVER"), "{text}");
}

#[test]
fn a_script_moves_a_member() {
    let machine = Machine::new();
    std::fs::write(machine.path("square"), "0.0 right\n0.5 down\nloop 1.0\n").expect("the folder is ours");
    let script = machine.path("square");
    let args = [
        "play",
        "--headless",
        "--json",
        "--updates",
        "40",
        "--script",
        script.to_str().expect("a plain path"),
    ];
    let report = machine.start(&args).report();
    assert!(report["steps"].as_u64() >= Some(40), "{report}");
}

#[test]
#[cfg(unix)]
fn a_room_survives_its_hosts() {
    let machine = Machine::new();
    let (_server, address) = machine.serve(&[]);
    let on = |args: &[&str]| machine.start(&[args, &["--headless", "--json", "--server", &address]].concat());
    let mut host = on(&["play", "--name", "host"]);
    let code = host.complains("room ");
    let bots = on(&["bots", "--join", &code, "--count", "3"]);
    bots.complains("room ");
    // It was in the room with the first host, and stays.
    let guest = on(&["play", "--join", &code, "--name", "guest"]);
    guest.complains("room ");
    host.kill();
    let next = bots.complains("host ");
    assert!(next.starts_with("bot "), "{next} came later than the first of the bots");
    // The next one plays as well as the first, for those who were there and for those who come.
    let late = on(&["play", "--join", &code, "--updates", "60"]).report();
    assert_eq!((late["role"].as_str(), &late["closed"]), (Some("client"), &Value::Null), "{late}");
    assert!(late["updates_decoded"].as_u64() >= Some(60), "{late}");
    bots.terminate();
    let bots = bots.report();
    let roles = bots["bots"].as_array().expect("a list").iter().map(|bot| bot["role"].as_str());
    assert_eq!(roles.filter(|role| *role == Some("host")).count(), 1, "{bots}");
    // Nobody ends the room who is not the last.
    assert_eq!(guest.complains("host "), "guest");
    guest.terminate();
    let guest = guest.report();
    assert_eq!((guest["role"].as_str(), &guest["closed"]), (Some("host"), &Value::Null), "{guest}");
}

#[test]
fn a_killed_host_takes_its_own_server_along_and_its_guests_are_told() {
    let machine = Machine::new();
    let mut host = machine.start(&["play", "--headless"]);
    let code = host.complains("room ");
    let guest = machine.start(&["play", "--join", &code, "--headless", "--json"]);
    guest.complains("room ");
    host.kill();
    assert_eq!(guest.report()["closed"]["reason"], "host_gone");
}

#[test]
fn a_room_log_replays() {
    let machine = Machine::new();
    let logs = machine.path("logs");
    let logs_text = logs.to_str().expect("a plain path");
    let (server, address) = machine.serve(&["--room-log", logs_text]);
    let args = ["play", "--headless", "--json", "--updates", "30", "--server", &address];
    machine.start(&args).report();
    #[cfg(unix)]
    {
        server.terminate();
        assert!(server.succeeds());
    }
    let log =
        std::fs::read_dir(logs).expect("it was made").next().expect("one room").expect("readable").path();
    let replay = || {
        let output = machine.run(&["replay", "--json", log.to_str().expect("a plain path")]);
        serde_json::from_slice::<Value>(&output.stdout).expect("a report")
    };
    let (first, second) = (replay(), replay());
    assert_eq!(first, second);
    assert_eq!((first["ended"].as_bool(), &first["torn"]), (Some(true), &Value::Null), "{first}");
    // The last ones are not reliable, and the goodbye does not wait for them.
    assert!(first["state_updates"].as_u64() >= Some(25), "{first}");
}
