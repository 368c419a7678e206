//! A mesh of four homes: each pair that can have a path has one, and the relay carries the others.

use crate::counts::Counts;
use crate::fault::{Outcome, Seen, ensure};
use crate::member::{Member, Workshop, heard_all, updates};
use crate::net::{Nat, Public, Switch};

/// A player that is reached over a path.
const DIRECT: &str = "direct_udp";
/// Updates to observe while the mesh stands.
const UPDATES: u64 = 150;

pub(super) fn t7_four_homes_have_a_mesh(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("mesh")?;
    let hub = workshop.hub(&internet)?;
    let plan = [("a", Nat::Cone, 10), ("b", Nat::Cone, 20), ("c", Nat::Cone, 30), ("d", Nat::Symmetric, 40)];
    let mut homes = Vec::new();
    for (name, nat, at) in plan {
        let home = internet.home(name, nat, Public(at))?;
        let machine = home.machine(10)?;
        homes.push((home, machine));
    }
    let mesh = "--via quic --path mesh";
    let (host, code) = workshop.host(&hub, &homes[0].1, mesh)?;
    let mut members = vec![host];
    for (_, machine) in &homes[1..] {
        members.push(workshop.guest(&hub, machine, &code, mesh)?);
    }
    let ids = members.iter_mut().map(|member| member.until("its place", |log| log.member()));
    let ids: Vec<u64> = ids.collect::<Outcome<_>>()?;
    // The last home's NAT has another port for each peer: nobody finds it.
    for (at, member) in members.iter_mut().enumerate() {
        let others: Vec<(u64, bool)> =
            (0..ids.len()).filter(|it| *it != at).map(|it| (ids[it], at < 3 && it < 3)).collect();
        for (id, has_path) in others {
            let pointer = format!("/ways/{id}");
            let what = format!("player {id} {}", if has_path { "over a path" } else { "by the relay" });
            member.until(&what, |log| {
                let way = log.status()?.pointer(&pointer)?.as_str()?;
                ((way == DIRECT) == has_path).then_some(())
            })?;
        }
    }
    // The attempts at the last home are over.
    updates(&mut members[3], UPDATES)?;
    let before = Counts::of(&internet)?;
    updates(&mut members[3], UPDATES)?;
    let after = Counts::of(&internet)?;
    let mut told = Vec::new();
    for (one, other) in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)] {
        let (at, to) = (homes[one].0.public(), homes[other].0.public());
        let packets = after.between(at, to) - before.between(at, to);
        // Each sends ten numbers a second to all others.
        ensure((packets > 20) == (other < 3), || {
            format!("{packets} packets between the homes {one} and {other}")
        })?;
        told.push(format!("{}-{} {packets}", plan[one].0, plan[other].0));
    }
    let mut all: Vec<&mut Member> = members.iter_mut().collect();
    let numbers = heard_all(&mut all)?;
    Ok(vec![format!(
        "packets between homes for {UPDATES} updates: {}; d is behind a symmetric NAT; {numbers} numbers heard, none lost or twice",
        told.join(", ")
    )])
}
