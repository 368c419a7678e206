//! Commands on a bad network.

use crate::support::Machine;
use serde_json::Value;

/// What a report says of the round trip, in milliseconds.
fn rtt_ms(member: &Value) -> f64 {
    member["rtt_ms"].as_f64().unwrap_or_else(|| panic!("there is a round trip in {member}"))
}

#[test]
#[cfg(unix)]
fn bots_and_servers_can_be_put_on_a_bad_network() {
    let machine = Machine::new();
    let (server, address) = machine.serve(&["--impair", "latency=10ms,seed=3"]);
    assert_eq!(server.says("  network  "), "impaired on purpose, each way: latency=10ms,seed=3");
    let on = |args: &[&str]| {
        let mut args = args.to_vec();
        args.extend(["--server", &address, "--headless", "--json"]);
        machine.start(&args)
    };
    let host = on(&["play"]);
    let code = host.complains("room ");
    for via in ["quic", "websocket"] {
        let bad = "latency=30ms,jitter=5ms,loss=2%,duplicate=1%,seed=3";
        let bots =
            on(&["bots", "--join", &code, "--count", "2", "--via", via, "--impair", bad, "--updates", "60"]);
        for bot in bots.report()["bots"].as_array().expect("a list") {
            assert!(bot["updates_decoded"].as_u64() >= Some(60) && rtt_ms(bot) >= 80.0, "{bot}");
        }
    }
    host.terminate();
    assert!(rtt_ms(&host.report()) >= 20.0, "the server alone is impaired for the host");
}

#[test]
#[cfg(unix)]
fn the_proxy_impairs_a_game_that_knows_nothing_of_it() {
    let machine = Machine::new();
    let (server, to) = machine.serve(&[]);
    let fingerprint = server.says("           PARLOR_SERVER=");
    let fingerprint = fingerprint.rsplit('#').next().expect("it is known by its fingerprint");
    let proxy =
        machine.start(&["impair", "--listen", "127.0.0.1:0", "--to", &to, "latency=25ms,loss=1%,seed=4"]);
    let said = proxy.says("UDP to ");
    assert!(
        said.ends_with(&format!("goes to {to}, impaired each way: latency=25ms,loss=1%,seed=4")),
        "{said}"
    );
    let listen = said.split(' ').next().expect("it begins with the address");
    let host = machine.start(&[
        "play",
        "--headless",
        "--json",
        "--updates",
        "30",
        "--via",
        "quic",
        "--server",
        &format!("{listen}#{fingerprint}"),
    ]);
    assert!(rtt_ms(&host.report()) >= 50.0);
    proxy.terminate();
    let counts = proxy.says("clients 1; datagrams there ");
    let there: u64 = counts.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
    assert!(there >= 30, "{counts}");
    assert!(counts.ends_with("; 0 refused"), "{counts}");
    assert!(proxy.succeeds());

    let json =
        machine.run(&["impair", "--listen", "127.0.0.1:0", "--to", &to, "none", "--seconds", "0", "--json"]);
    let report: Value = serde_json::from_slice(&json.stdout).expect("one object");
    assert_eq!((report["command"].as_str(), report["impairment"].as_str()), (Some("impair"), Some("none")));
    assert_eq!((report["clients"].as_u64(), report["there"]["arriving"].as_u64()), (Some(0), Some(0)));
}
