//! The room's clock at its members.

use parlor_client_core::Options;
use parlor_sim::{Link, PeerId, SEEDS, Sim, for_seeds};
use std::time::Duration;

/// A host without latency, whose clock is therefore the room's, and a guest behind a link that has just
/// joined.
fn joined(sim: &mut Sim, link: Link) -> [PeerId; 2] {
    let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(0));
    let code = sim.code(host);
    sim.run_for(1_000);
    let guest = sim.enter(Options::join("tanks", code), link);
    sim.run_until(5_000, "a seat", |sim| sim.room(guest).is_connected());
    [host, guest]
}

fn times(sim: &mut Sim, peers: [PeerId; 2]) -> [Duration; 2] {
    peers.map(|peer| sim.act_quietly(peer, |room, now| room.server_time(now).expect("it is open")))
}

/// A clock is moved with each frame, by a twentieth of the time since the frame before.
const FRAME: Duration = Duration::from_millis(17);

/// The largest error from a second after joining on, for `ms`.
fn watch(sim: &mut Sim, peers: [PeerId; 2], ms: u64) -> Duration {
    sim.run_for(1_000);
    let (mut worst, mut before) = (Duration::ZERO, times(sim, peers));
    for _ in 0..ms / 20 {
        sim.run_for(20);
        let [room, guest] = times(sim, peers);
        worst = worst.max(room.abs_diff(guest));
        let [passed, on] = [room - before[0], guest.checked_sub(before[1]).expect("it never runs backwards")];
        assert!(on.abs_diff(passed) <= (passed + FRAME) / 20, "{on:?} in {passed:?}");
        before = [room, guest];
    }
    let diagnostics = sim.room(peers[1]).diagnostics();
    assert_eq!(diagnostics.clock_jumps, 0, "it is slewed");
    assert!(diagnostics.time_synchronized);
    worst
}

#[test]
fn a_second_after_joining_it_is_within_two_ms_on_a_clean_link() {
    for_seeds(SEEDS / 5, |seed| {
        for link in [Link::quic().latency_ms(1), Link::quic(), Link::quic().latency_ms(75), Link::websocket()]
        {
            let mut sim = Sim::new(seed);
            let peers = joined(&mut sim, link);
            let worst = watch(&mut sim, peers, 5_000);
            assert!(worst <= Duration::from_millis(2), "{worst:?}");
        }
    });
}

#[test]
fn a_second_after_joining_it_is_within_ten_ms_at_100_ms_that_waver_by_20_with_5_percent_lost() {
    for_seeds(SEEDS / 5, |seed| {
        let mut sim = Sim::new(seed);
        // 40 to 60 ms each way.
        let peers = joined(&mut sim, Link::quic().latency_ms(40).jitter_ms(20).loss(50));
        let worst = watch(&mut sim, peers, 60_000);
        assert!(worst <= Duration::from_millis(10), "{worst:?}");
        let variance = sim.room(peers[1]).diagnostics().time_variance;
        assert!(variance <= Duration::from_millis(10), "{variance:?}");
    });
}

#[test]
fn t9_latency_is_known_both_ways() {
    for_seeds(SEEDS / 10, |seed| {
        let mut sim = Sim::new(seed);
        let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(1));
        let code = sim.code(host);
        let guest = Options { lead: true, ..Options::join("tanks", code) };
        let guest = sim.enter(guest, Link::quic().latency_ms(60).jitter_ms(20));
        sim.play(guest, |room, _| room.send_input(&1).expect("it is small"));
        sim.play(host, |room, _| drop(room.inputs::<i32>().expect("it is the host")));
        sim.run_for(8_000);
        let diagnostics = sim.room(guest).diagnostics();
        // To the hub and on. The waits for frames and packets are included, except for the host's frame.
        for latency in [diagnostics.latency_down, diagnostics.latency_up] {
            let latency = latency.expect("much went both ways");
            let [best, mean, worst] = [latency.best, latency.mean, latency.worst].map(|it| it.as_millis());
            assert!(best <= mean && mean <= worst, "{latency:?}");
            assert!((40..=110).contains(&best) && (55..=125).contains(&mean) && worst <= 180, "{latency:?}");
        }
        assert_eq!(sim.room(host).diagnostics().latency_down, None);
    });
}
