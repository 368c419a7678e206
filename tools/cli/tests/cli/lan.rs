//! A room on the local network, between two players of one household.

use crate::support::Machine;
use parlor_transport::lan::Network;
use serde_json::Value;

#[test]
#[cfg(unix)]
fn a_room_is_found_on_the_network_by_its_code_without_any_other_server() {
    if let Err(error) = Network::within_this_machine() {
        eprintln!("skipped: the loopback interface passes no multicast: {error}");
        return;
    }
    // Two machines, as far as the registry goes. Other tests may announce rooms on this network, so the code is nobody else's.
    let (hosts, guests) = (Machine::new(), Machine::new());
    let code = format!("LAN{}", std::process::id());
    let host = hosts.start(&["play", "--headless", "--lan", "--code", &code, "--name", "host", "--json"]);
    assert_eq!(host.complains("room "), code);
    let join = ["play", "--headless", "--lan", "--join", &code, "--updates", "30", "--json"];
    let guest = guests.start(&join).report();
    assert_eq!(
        (guest["code"].as_str(), guest["role"].as_str()),
        (Some(code.as_str()), Some("client")),
        "{guest}"
    );
    assert!(guest["updates_decoded"].as_u64() >= Some(30), "{guest}");

    let listed = guests.start(&["rooms", "--lan", "--app", "magpies", "--json"]).report();
    let is_it = |room: &&Value| room["code"] == code.as_str();
    let room =
        listed["rooms"].as_array().and_then(|rooms| rooms.iter().find(is_it)).expect("it is announced");
    assert_eq!((room["found"].as_str(), room["players_max"].as_u64()), (Some("lan"), Some(8)), "{listed}");
    assert!(room["invite"].as_str().is_some_and(|invite| invite.contains("fingerprint=")), "{listed}");

    // On the host's own machine it is listed once, as what it is there.
    let listed = hosts.start(&["rooms", "--lan", "--json"]).report();
    let rooms: Vec<&Value> = listed["rooms"].as_array().expect("a list").iter().filter(is_it).collect();
    assert_eq!(rooms.len(), 1, "{listed}");
    assert_eq!(rooms[0]["found"], "local");
    host.terminate();
    host.report();
}

#[test]
fn a_code_that_nobody_announces_says_what_to_do() {
    let machine = Machine::new();
    let listed = machine.start(&["rooms", "--json"]).report();
    assert_eq!(listed["rooms"].as_array().map(Vec::len), Some(0));
    let output = machine.run(&["play", "--headless", "--lan", "--join", "N0B0DY7HERE"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("N0B0DY7HERE") && said.contains("invite link"),
        "{said}"
    );
}
