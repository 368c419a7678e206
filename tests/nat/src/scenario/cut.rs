//! Unplugged cables during play: for 3 s, without notice, and for 40 s, which is longer than a seat is kept.

use super::rebind::gaps;
use crate::fault::{Outcome, Seen, ensure};
use crate::log::Log;
use crate::member::{Hub, Member, Workshop, heard_all, heard_all_but, marks, undisturbed, updates};
use crate::net::{Cable, Home, Machine, Nat, Public, Switch};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(40);

/// A room with one member that is cut off for long.
struct Cut {
    home: Home,
    _machines: [Machine; 2],
    host: Member,
    guest: Member,
}

pub(super) fn run(workshop: &Workshop) -> Seen {
    let internet = Switch::internet("cut")?;
    let hub = workshop.hub(&internet)?;
    let mut of_guest = Cut::of_guest(workshop, &hub, &internet)?;
    let mut of_host = Cut::of_host(workshop, &hub, &internet)?;
    let away = of_guest.guest.until("its place", Log::member)?;
    of_guest.home.cable.cut()?;
    of_host.home.cable.cut()?;
    let began = Instant::now();
    let mut seen = short(workshop, &hub, &internet)?;
    of_guest.is_told(away)?;
    of_host.goes_on()?;
    thread::sleep(LONG.saturating_sub(began.elapsed()));
    of_guest.home.cable.mend()?;
    of_host.home.cable.mend()?;
    seen.push(of_guest.comes_back(away)?);
    seen.push(of_host.host_comes_back()?);
    Ok(seen)
}

/// Cuts the cable of a guest's home, then that of the host's machine, whose room goes on with the guest.
fn short(workshop: &Workshop, hub: &Hub, internet: &Switch) -> Seen {
    let (here, there) =
        (internet.home("a", Nat::Cone, Public(10))?, internet.home("b", Nat::Symmetric, Public(20))?);
    let (of_host, of_guest, of_other) = (here.machine(10)?, there.machine(10)?, internet.public(Public(30))?);
    let (mut host, code) = workshop.host(hub, &of_host, "--via quic")?;
    let mut guest = workshop.guest(hub, &of_guest, &code, "--via quic")?;
    let mut other = workshop.guest(hub, &of_other, &code, "--via quic")?;
    let mut all = [&mut host, &mut guest, &mut other];
    let since = marks(&mut all);
    let steps = all[1].log().count("/steps");

    let cut_ms = cut_for_short(&there.cable)?;
    updates(all[1], 60)?;
    let gap = gaps(&mut all, &since, 0);
    // QUIC's probe timeout doubles during the silence, so recovery takes up to as long as the cut.
    let allowed = cut_ms * 4.0 / 3.0 + gap[2];
    ensure(gap[1] >= cut_ms / 2.0, || format!("the cable was not cut: {:.0} ms without an update", gap[1]))?;
    ensure(gap[1] <= allowed, || {
        format!("{:.0} ms without an update, and {allowed:.0} ms may pass", gap[1])
    })?;
    let steps = all[1].log().count("/steps") - steps;
    ensure(steps >= 60, || format!("a guest that was cut off ran {steps} steps"))?;
    let first = format!("guest cut off for {cut_ms:.0} ms: {:.0} ms without an update", gap[1]);

    let heir = all[1].until("its place", Log::member)?;
    let before = marks(&mut all);
    let cut_ms = cut_for_short(&of_host.cable)?;
    for member in [0, 2] {
        happens(all[member], "host_changed", |line| line["host"] == heir)?;
        updates(all[member], 60)?;
    }
    let waited = gaps(&mut all, &before, 0)[2];
    ensure(waited < cut_ms / 2.0, || {
        format!("the room waited for its host: {waited:.0} ms without an update")
    })?;
    let numbers = heard_all(&mut all)?;
    undisturbed(&mut all, &since)?;
    Ok(vec![
        first,
        format!(
            "then the host for {cut_ms:.0} ms: player {heir} went on, {waited:.0} ms without an update at most; nobody was told \
             of a loss, and all {numbers} numbers came"
        ),
    ])
}

fn cut_for_short(cable: &Cable) -> Outcome<f64> {
    let began = Instant::now();
    cable.cut()?;
    thread::sleep(SHORT);
    cable.mend()?;
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

impl Cut {
    fn of_guest(workshop: &Workshop, hub: &Hub, internet: &Switch) -> Outcome<Cut> {
        let home = internet.home("c", Nat::Cone, Public(40))?;
        let (public, inside) = (internet.public(Public(41))?, home.machine(10)?);
        let (host, code) = workshop.host(hub, &public, "--via quic")?;
        let guest = workshop.guest(hub, &inside, &code, "--via quic")?;
        Ok(Cut { home, _machines: [public, inside], host, guest })
    }

    fn of_host(workshop: &Workshop, hub: &Hub, internet: &Switch) -> Outcome<Cut> {
        let home = internet.home("d", Nat::Cone, Public(50))?;
        let (public, inside) = (internet.public(Public(51))?, home.machine(10)?);
        let (host, code) = workshop.host(hub, &inside, "--via quic")?;
        let guest = workshop.guest(hub, &public, &code, "--via quic")?;
        Ok(Cut { home, _machines: [public, inside], host, guest })
    }

    /// Cuts a guest off. It reports the loss of the server; the host sees the guest as lost, then its seat as
    /// given up.
    fn is_told(&mut self, away: u64) -> Outcome<()> {
        let detail = happens(&mut self.guest, "connection_lost", |_| true)?;
        ensure(detail["detail"] == "nothing was heard from the server", || format!("it is told {detail}"))?;
        self.guest.until("the reason of the silence", |log| {
            (log.status()?["last_reason_code"] == "control_heartbeat_timeout").then_some(())
        })?;
        happens(&mut self.host, "player_lost", |line| line["player"] == away)?;
        let left = happens(&mut self.host, "player_left", |line| line["player"] == away)?;
        ensure(left["reason"] == "timed_out", || format!("the host is told {left}"))
    }

    /// Cuts a host off. Its guest takes the host role, and sees the host as lost, then its seat as given up.
    fn goes_on(&mut self) -> Outcome<()> {
        let heir = self.guest.until("its place", Log::member)?;
        happens(&mut self.host, "connection_lost", |_| true)?;
        happens(&mut self.guest, "host_changed", |line| line["host"] == heir)?;
        happens(&mut self.guest, "player_lost", |line| line["player"] == 0)?;
        let left = happens(&mut self.guest, "player_left", |line| line["player"] == 0)?;
        ensure(left["reason"] == "timed_out", || format!("the next host is told {left}"))
    }

    /// Checks that the guest rejoins as the same player.
    fn comes_back(&mut self, away: u64) -> Outcome<String> {
        let back = happens(&mut self.guest, "reconnected", |_| true)?;
        ensure(back["state_resynced"] == true, || format!("it is told {back}"))?;
        joined_again(&mut self.guest, away)?;
        let me = self.guest.until("its place", Log::member)?;
        ensure(me == away, || format!("it is back as player {me} instead of {away}"))?;
        joined_again(&mut self.host, away)?;
        updates(&mut self.guest, 60)?;
        let numbers = self.heard_since_the_return()?;
        Ok(format!(
            "guest cut off for 40 s: timed out after 30 s, back as player {me} again, {numbers} numbers"
        ))
    }

    /// Checks that the host finds its room with another host, and rejoins as the same player.
    fn host_comes_back(&mut self) -> Outcome<String> {
        let back = happens(&mut self.host, "reconnected", |_| true)?;
        ensure(back["state_resynced"] == true, || format!("it is told {back}"))?;
        joined_again(&mut self.host, 0)?;
        let me = self.host.until("its place", Log::member)?;
        ensure(me == 0, || format!("it is back as player {me} instead of 0"))?;
        joined_again(&mut self.guest, 0)?;
        updates(&mut self.host, 60)?;
        let numbers = self.heard_since_the_return()?;
        Ok(format!("host cut off for 40 s: its guest went on, it is back as player {me}, {numbers} numbers"))
    }
}

impl Cut {
    /// Checks that nothing is lost from here on. What was sent while one of both was away is.
    fn heard_since_the_return(&mut self) -> Outcome<u64> {
        let mut both = [&mut self.host, &mut self.guest];
        let lost = both.each_mut().map(|member| member.log().unheard());
        heard_all_but(&mut both, &lost)
    }
}

/// Waits until a member has seen a player join for the second time.
fn joined_again(member: &mut Member, player: u64) -> Outcome<()> {
    member.until("a player's return", |log| {
        let joins = log.all("player_joined").filter(|line| line["player"] == player).count();
        (joins >= 2).then_some(())
    })
}

fn happens(member: &mut Member, event: &str, is_it: impl Fn(&Value) -> bool) -> Outcome<Value> {
    member.until(event, |log| log.all(event).find(|line| is_it(line)).cloned())
}
