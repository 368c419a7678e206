//! Addresses and ports that change during play: a gateway that maps to another port, a gateway with another
//! address, and a machine that moves to another network.

use crate::fault::{Outcome, Seen, ensure};
use crate::member::{Member, PORT, RTT_MS, Workshop, heard_all, marks, undisturbed, updates};
use crate::net::{Home, Machine, Nat, Public, Switch};
use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

/// How often everything changes.
const ROUNDS: u8 = 6;
/// Time between two changes; each of four things changes every fourth time.
const STEP: Duration = Duration::from_millis(500);

/// Gaps attributed to the machine: a stall makes one or two, while a fault in Parlor's handling of moves
/// makes one at each change.
const HICCUPS: usize = 2;

/// The machines and homes that change.
struct Places {
    /// The host's home: its address changes.
    host: Home,
    /// A guest's home: its address changes.
    cone: Home,
    /// A guest's home: its port mappings change.
    symmetric: Home,
    /// A guest's machine: its address changes.
    public: Machine,
}

pub(super) fn threat_06_addresses_that_change_every_two_seconds_drop_nobody(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("rebind")?;
    let hub = workshop.hub(&internet)?;
    let places = Places {
        host: internet.home("a", Nat::Cone, Public(10))?,
        cone: internet.home("b", Nat::Cone, Public(20))?,
        symmetric: internet.home("c", Nat::Symmetric, Public(30))?,
        public: internet.public(Public(40))?,
    };
    let (of_host, of_cone, of_symmetric) =
        (places.host.machine(10)?, places.cone.machine(10)?, places.symmetric.machine(10)?);
    let (mut host, code) = workshop.host(&hub, &of_host, "--via quic")?;
    let mut guests = [
        workshop.guest(&hub, &of_cone, &code, "--via quic")?,
        workshop.guest(&hub, &of_symmetric, &code, "--via quic")?,
        workshop.guest(&hub, &places.public, &code, "--via quic")?,
    ];
    // A second room of the same server with undisturbed members measures what the machine adds to every gap.
    let (still_host, still_guest) = (internet.public(Public(50))?, internet.public(Public(51))?);
    let (mut still_host, still_code) = workshop.host(&hub, &still_host, "--via quic")?;
    let mut still = workshop.guest(&hub, &still_guest, &still_code, "--via quic")?;

    let [a, b, c] = &mut guests;
    let mut all = [&mut host, a, b, c, &mut still_host, &mut still];
    let since = marks(&mut all);
    let ports = change_everything(&places)?;
    for guest in [1, 2, 3, 5] {
        updates(all[guest], 60)?;
    }
    let numbers = heard_all(&mut all[..4])?;
    undisturbed(&mut all, &since)?;
    let (resumed, gaps) = (hub.count("resumed")?, gaps(&mut all, &since, HICCUPS));
    ensure(resumed == 0, || format!("{resumed} sessions went on over another connection"))?;
    let (allowed, longest) = (3.0 * RTT_MS + gaps[5], gaps[1].max(gaps[2]).max(gaps[3]));
    ensure(longest <= allowed, || {
        format!(
            "{longest:.0} ms and more passed without an update {} times, and {allowed:.0} ms may",
            HICCUPS + 1
        )
    })?;
    Ok(vec![
        format!(
            "{ROUNDS} times four addresses or ports in 2 s, {ports} ports at the symmetric NAT: 0 drops, 0 resumed"
        ),
        format!(
            "all {numbers} numbers came; {longest:.0} ms without an update but for {HICCUPS} times, {:.0} ms where nothing changed",
            gaps[5]
        ),
    ])
}

/// Returns the number of different ports that the symmetric NAT used.
fn change_everything(places: &Places) -> Outcome<usize> {
    let mut ports = BTreeSet::from([places.symmetric.outside_port(PORT)?]);
    for round in 1..=ROUNDS {
        places.cone.change_address(Public(20 + round))?;
        thread::sleep(STEP);
        places.symmetric.forget_ports()?;
        thread::sleep(STEP);
        ports.insert(places.symmetric.outside_port(PORT)?);
        places.public.change_address(Public(39 + round), Public(40 + round))?;
        thread::sleep(STEP);
        places.host.change_address(Public(10 + round))?;
        thread::sleep(STEP);
    }
    // Two of them may coincide by chance.
    ensure(ports.len() > usize::from(ROUNDS) - 1, || format!("the NAT gave the ports {ports:?} alone"))?;
    Ok(ports.len())
}

/// Each member's longest time without an update since the given line of its log, in milliseconds, ignoring
/// the `hiccups` longest.
pub(super) fn gaps(members: &mut [&mut Member], since: &[usize], hiccups: usize) -> Vec<f64> {
    let longest =
        |member: &mut Member, since| member.log().gaps_ms(since).get(hiccups).copied().unwrap_or(0.0);
    members.iter_mut().zip(since).map(|(member, since)| longest(member, *since)).collect()
}
