//! Who goes past the relay: members behind NATs through which a hole can be punched, and nobody who does not want it.

use super::Seen;
use crate::counts::Counts;
use crate::fault::{Outcome, ensure};
use crate::member::{HUB, Hub, Member, TALK_HZ, Workshop, heard_all, updates};
use crate::net::{Home, Nat, Public, Switch};
use std::time::Instant;

/// Updates by which is told which way they go.
const UPDATES: u64 = 150;
/// Packets of both ends together to where the hub sees the other one, for an attempt that comes to nothing.
const TRIED_MAX: u64 = 6;
/// Signs of life that a hub gives a member in a second to which it has nothing else to say, and their bytes with all headers, at most:
/// in a room whose host is missed after 250 ms a member asks every 50 ms. It also says its numbers to whoever might just have
/// come, and each is acknowledged.
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

/// Where what a host and its guest say may go.
struct Ways<'a> {
    internet: &'a Switch,
    hub: &'a Hub,
    host: &'a Home,
    guest: &'a Home,
}

impl Ways<'_> {
    /// Waits until both say that they go direct; then the relay has next to nothing to do.
    fn go_direct(&self, host: &mut Member, guest: &mut Member) -> Outcome<String> {
        guest
            .until("a direct path", |log| (log.status()?["transport_path"] == "direct_udp").then_some(()))?;
        // What was under way by the relay is over.
        updates(guest, 30)?;
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

    /// Everything goes by the relay, and the host's home says nothing to the guest's that comes in.
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
            // Nobody was told where it is, so nobody tried.
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
