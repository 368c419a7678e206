//! Direct paths: members behind NATs that allow hole punching bypass the relay, unless a member does not want
//! it.

use crate::counts::Counts;
use crate::fault::{Outcome, Seen, ensure};
use crate::member::{HUB, Hub, Member, TALK_HZ, Workshop, heard_all, marks, updates};
use crate::net::{Home, Nat, Public, Switch};
use crate::program::PATIENCE;
use std::time::Instant;

/// A member's report of a direct path.
const DIRECT: &str = "direct_udp";
/// Updates to observe when checking a route.
const UPDATES: u64 = 150;
/// Packets of both ends to each other's public address in a failed attempt, at most.
const TRIED_MAX: u64 = 6;
/// Upper bounds of a hub's keepalives to an otherwise idle member, per second and in bytes with all headers.
/// In a room with a host timeout of 250 ms a member asks every 50 ms. It also sends its numbers to possible
/// newcomers through the hub, and each is acknowledged.
const SIGNS_HZ_MAX: u64 = 20 + TALK_HZ;
const SIGN_BYTES_MAX: u64 = 100;

pub(super) fn run(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("direct")?;
    let hub = workshop.hub(&internet)?;
    let of_host = internet.home("a", Nat::Cone, Public(10))?;
    let machine = of_host.machine(10)?;
    let cone = internet.home("b", Nat::Cone, Public(20))?;
    let symmetric = internet.home("c", Nat::Symmetric, Public(30))?;
    let private = internet.home("d", Nat::Cone, Public(40))?;
    let mut seen = Vec::new();
    for (home, path, direct) in
        [(&cone, "auto", true), (&symmetric, "auto", false), (&private, "relay", false)]
    {
        let (mut host, code) = workshop.host(&hub, &machine, "--via quic --path auto")?;
        let inside = home.machine(10)?;
        let mut guest = workshop.guest(&hub, &inside, &code, &format!("--via quic --path {path}"))?;
        let ways = Ways { internet: &internet, hub: &hub, host: &of_host, guest: home };
        seen.push(if direct {
            ways.go_direct(&mut host, &mut guest)?
        } else {
            ways.stay(&mut host, &mut guest, path)?
        });
    }
    Ok(seen)
}

/// Possible routes between a host and its guest.
struct Ways<'a> {
    internet: &'a Switch,
    hub: &'a Hub,
    host: &'a Home,
    guest: &'a Home,
}

impl Ways<'_> {
    /// Waits until both report a direct path. Then the relay has next to no traffic as long as they do. A
    /// machine that stalls for a second ends a path; then this waits for the next one.
    fn go_direct(&self, host: &mut Member, guest: &mut Member) -> Outcome<String> {
        let began = Instant::now();
        loop {
            for member in [&mut *host, &mut *guest] {
                member.until("a direct path", |log| {
                    (log.status()?["transport_path"] == DIRECT).then_some(())
                })?;
            }
            let since = marks(&mut [host, guest]);
            // Messages in flight through the relay have arrived by then.
            updates(guest, 30)?;
            let seen = self.shows_direct(host, guest);
            for member in [&mut *host, &mut *guest] {
                let line = member.log().len();
                member.until("how it stands", |log| log.since(line, "status").next().map(|_| ()))?;
            }
            if host.log().keeps_path(since[0], DIRECT) && guest.log().keeps_path(since[1], DIRECT) {
                return seen;
            }
            ensure(began.elapsed() < PATIENCE, || "no path stays direct".to_owned())?;
        }
    }

    /// Checks the traffic on each route while both are direct.
    fn shows_direct(&self, host: &mut Member, guest: &mut Member) -> Outcome<String> {
        let (before, relayed) = (Counts::of(self.internet)?, self.hub.count("messages_relayed")?);
        let began = Instant::now();
        updates(guest, UPDATES)?;
        let took = began.elapsed();
        let (after, relayed) = (Counts::of(self.internet)?, self.hub.count("messages_relayed")? - relayed);
        let by_relay = after.sent(HUB, self.guest.public()) - before.sent(HUB, self.guest.public());
        let direct = after.sent(self.host.public(), self.guest.public())
            - before.sent(self.host.public(), self.guest.public());
        ensure(relayed == 0, || format!("{relayed} messages went by the relay beside the direct path"))?;
        ensure(direct.packets >= UPDATES / 2, || format!("{} packets went direct", direct.packets))?;
        let signs = u64::try_from(took.as_millis()).unwrap_or(u64::MAX) * SIGNS_HZ_MAX / 1_000;
        ensure(by_relay.packets <= signs && by_relay.bytes <= signs * SIGN_BYTES_MAX, || {
            format!("{by_relay:?} by the relay in {took:?}: it has more to say than signs of life")
        })?;
        let numbers = heard_all(&mut [host, guest])?;
        Ok(format!(
            "between cones: {} packets ({} bytes) direct and {} ({}) by the relay for {UPDATES} updates in {:.1} s, 0 messages relayed, {numbers} numbers heard",
            direct.packets,
            direct.bytes,
            by_relay.packets,
            by_relay.bytes,
            took.as_secs_f64()
        ))
    }

    /// Checks that all traffic uses the relay, and that no packet from the host's home enters the guest's.
    fn stay(&self, host: &mut Member, guest: &mut Member, path: &str) -> Outcome<String> {
        let before = Counts::of(self.internet)?;
        updates(guest, UPDATES)?;
        let after = Counts::of(self.internet)?;
        let by_relay = after.sent(HUB, self.guest.public()) - before.sent(HUB, self.guest.public());
        let status = guest.until("how it stands", |log| log.status().cloned())?;
        ensure(status["transport_path"] == "relay_room", || format!("it stands {status}"))?;
        ensure(by_relay.packets >= UPDATES / 2, || {
            format!("{} packets went by the relay", by_relay.packets)
        })?;
        let between = after.between(self.host.public(), self.guest.public());
        if path == "relay" {
            // No address was disclosed, so no end tried.
            ensure(between == 0, || format!("{between} packets went between the homes"))?;
        } else {
            ensure((1..=TRIED_MAX).contains(&between), || {
                format!("{between} packets went between the homes for an attempt")
            })?;
        }
        let numbers = heard_all(&mut [host, guest])?;
        Ok(format!(
            "--path {path} to the {}: {} packets by the relay, {between} tried between the homes, {numbers} numbers heard",
            if path == "relay" { "private home" } else { "symmetric NAT" },
            by_relay.packets
        ))
    }
}
