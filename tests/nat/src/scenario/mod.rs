//! The scenarios, each on a network of its own.

mod cut;
mod direct;
mod doctor;
mod forged;
mod lan;
mod mesh;
mod nats;
mod rebind;
mod relay;

use crate::fault::{Fault, Outcome, Seen};
use crate::member::Workshop;
use crate::space::{succeed, sweep};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

struct Scenario {
    name: &'static str,
    shows: &'static str,
    run: fn(&Workshop) -> Seen,
}

const SCENARIOS: [Scenario; 9] = [
    Scenario { name: "nats", shows: "the homes' NATs are what they are taken for", run: nats::run },
    Scenario {
        name: "relay",
        shows: "members behind any NAT play together through the server",
        run: relay::run,
    },
    Scenario {
        name: "rebind",
        shows: "addresses and ports change every 2 s, and nobody is dropped",
        run: rebind::threat_06_addresses_that_change_every_two_seconds_drop_nobody,
    },
    Scenario {
        name: "forged",
        shows: "packets under a false address lead no session there",
        run: forged::threat_05_forged_rebinds_lead_no_session_elsewhere,
    },
    Scenario { name: "cut", shows: "cables that are cut for 3 s and for 40 s", run: cut::run },
    Scenario {
        name: "lan",
        shows: "a room nearby is found and joined without a server",
        run: lan::t1_a_second_host_finds_and_joins_a_room_nearby,
    },
    Scenario { name: "direct", shows: "who goes past the relay, and who does not", run: direct::run },
    Scenario {
        name: "doctor",
        shows: "which port of a server is blocked, and what opens it",
        run: doctor::run,
    },
    Scenario {
        name: "mesh",
        shows: "four homes: a path for each pair that can have one, and the relay for the others",
        run: mesh::t7_four_homes_have_a_mesh,
    },
];

/// Runs the named scenarios, or all, concurrently. Returns whether all passed.
pub(crate) fn run(binary: &Path, names: &[String]) -> Outcome<bool> {
    if !binary.exists() {
        return Err(Fault::new(format!(
            "there is no {}: `cargo build --bin parlor` makes it",
            binary.display()
        )));
    }
    if let Some(unknown) = names.iter().find(|name| SCENARIOS.iter().all(|known| known.name != name.as_str()))
    {
        let known = SCENARIOS.map(|scenario| scenario.name).join(", ");
        return Err(Fault::new(format!("there is no scenario {unknown}: {known}")));
    }
    require()?;
    sweep();
    let is_wanted = |scenario: &&Scenario| names.is_empty() || names.iter().any(|name| name == scenario.name);
    let results: Vec<bool> = thread::scope(|scope| {
        let running: Vec<_> = SCENARIOS
            .iter()
            .filter(is_wanted)
            .map(|scenario| scope.spawn(|| announced(scenario, binary)))
            .collect();
        // A scenario that panics has failed; its networks are already removed.
        running.into_iter().map(|scenario| scenario.join().unwrap_or(false)).collect()
    });
    Ok(results.into_iter().all(|passed| passed))
}

/// Checks the prerequisites; the error says how to install them.
fn require() -> Outcome<()> {
    for (program, args, package) in [
        ("ip", "netns list", "iproute2"),
        ("nft", "list tables", "nftables"),
        ("conntrack", "-C", "conntrack"),
    ] {
        succeed(Command::new(program).args(args.split(' '))).map_err(|fault| {
            Fault::new(format!("{fault}; this needs root, and on Debian `apt-get install {package}`"))
        })?;
    }
    Ok(())
}

/// Runs one scenario and prints its observations together.
fn announced(scenario: &Scenario, binary: &Path) -> bool {
    let began = Instant::now();
    let seen = Workshop::new(binary, scenario.name).and_then(|workshop| (scenario.run)(&workshop));
    let (name, shows, took) = (scenario.name, scenario.shows, began.elapsed().as_secs_f64());
    match &seen {
        Ok(lines) => {
            let lines: String = lines.iter().map(|line| format!("\n      {line}")).collect();
            println!("    {name}: {shows} ({took:.0} s){lines}");
        }
        Err(fault) => println!("    {name}: FAILED after {took:.0} s: {fault}"),
    }
    seen.is_ok()
}
