//! An overloaded machine: the hub and the host's process run late, but neither counts as dead.

use parlor_client_core::Options;
use parlor_hub::Config;
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use parlor_sync::limits::DELAY_SPAN;
use std::time::Duration;

const SILENCE: Duration = Duration::from_millis(250);

/// A room of four with host migration, whose host writes in each step; it has been open for a few seconds.
fn room(seed: u64) -> (Sim, Vec<PeerId>) {
    let mut drawn = [7; 32];
    drawn[..8].copy_from_slice(&seed.to_le_bytes());
    let config = Config { record: true, grace: Duration::from_secs(30), ..Config::new(drawn) };
    let mut sim = Sim::with_hub(seed, config);
    let options = Options { host_timeout: Some(SILENCE), ..Options::host(APP) };
    let host = sim.host(options, Link::quic());
    let code = sim.code(host);
    let mut peers = vec![host];
    peers.extend((1..4).map(|_| sim.join(code, Link::quic())));
    sim.play(host, |room, _| {
        let tick = room.tick_number().expect("the room is open").0;
        let _: Result<(), _> = room.set("tick", &tick, Audience::All);
    });
    sim.run_for(5_000);
    (sim, peers)
}

fn migrations(sim: &Sim, peer: PeerId) -> u32 {
    sim.room(peer).info().epoch.0
}

/// The hub's loop is not run for four fifths of the time.
fn starve_for(sim: &mut Sim, ms: u64) {
    for _ in 0..ms / 150 {
        sim.stall_hub(Duration::from_millis(120));
        sim.run_for(150);
    }
}

/// Ten seconds in which the host is heard for 300 ms after each 600 ms, over a starved hub or not.
fn ten_seconds(seed: u64, is_starved: bool) -> u32 {
    let (mut sim, peers) = room(seed);
    starve_for(&mut sim, if is_starved { 900 } else { 0 });
    for turn in 0..22 {
        sim.silence(peers[0], turn % 2 == 0);
        let ms = if turn % 2 == 0 { 600 } else { 300 };
        if is_starved {
            starve_for(&mut sim, ms);
        } else {
            sim.run_for(ms);
        }
    }
    migrations(&sim, peers[3])
}

#[test]
fn threat_25_a_hub_that_is_late_replaces_no_host_that_lives() {
    for_seeds(2, |seed| {
        assert!(ten_seconds(seed, false) > 0, "seed {seed}: a hub that is on time takes that for silence");
        assert_eq!(ten_seconds(seed, true), 0, "seed {seed}");
    });
}

#[test]
fn threat_25_over_a_hub_that_is_late_a_dead_host_is_replaced_in_time() {
    for_seeds(2, |seed| {
        let (mut sim, peers) = room(seed);
        starve_for(&mut sim, 3_000);
        sim.crash(peers[0]);
        let died = sim.now();
        while migrations(&sim, peers[3]) == 0 {
            starve_for(&mut sim, 150);
            let silent = sim.now().saturating_since(died);
            // The last delay, and a check that just missed it, come on top.
            let most = SILENCE + DELAY_SPAN * 2 + Duration::from_millis(2 * 150);
            assert!(silent <= most, "seed {seed}: {silent:?}");
        }
        sim.run_for(2_000);
        assert!(sim.room(peers[1]).is_host(), "seed {seed}: the lowest follows");
    });
}

#[test]
fn threat_25_a_hub_that_stood_still_hears_everybody_before_it_judges() {
    for_seeds(2, |seed| {
        let (mut sim, peers) = room(seed);
        sim.silence(peers[0], true);
        sim.stall_hub(Duration::from_secs(5));
        // No packet of the host waits for the hub, but all packets of the others do.
        sim.run_for(5_100);
        sim.silence(peers[0], false);
        sim.run_for(3_000);
        assert_eq!(migrations(&sim, peers[3]), 0, "seed {seed}");
    });
}
