//! Rooms that batch messages: the hub holds them back for a moment.

use parlor_client_core::{Event, Options, Wish};
use parlor_hub::Config;
use parlor_proto::Lane;
use parlor_proto::wire::envelope::Recipient;
use parlor_sim::{Link, PeerId, Sim};
use std::time::Duration;

const QUANTUM_MS: u64 = 8;

fn world(quantum_ms: u64, guests: usize) -> (Sim, Vec<PeerId>) {
    let config = Config { flush_quantum: Duration::from_millis(quantum_ms), ..Config::new([3; 32]) };
    let mut sim = Sim::with_hub(4, config);
    let mut options = Options::host("tanks");
    if let Wish::Host { max_players, .. } = &mut options.intent {
        *max_players = 16;
    }
    let link = Link::quic();
    let host = sim.host(options, link);
    let code = sim.code(host);
    let members = std::iter::once(host).chain((0..guests).map(|_| sim.join(code, link))).collect();
    sim.run_for(5_000);
    (sim, members)
}

fn say(sim: &mut Sim, peer: PeerId) {
    let sent = sim.act(peer, |room, now| room.send(Lane::Unreliable, Recipient::Others, "n", &1, false, now));
    sent.expect("an unreliable message is always taken");
}

/// Each guest sends one message, a millisecond after the one before.
fn say_in_turn(sim: &mut Sim, guests: &[PeerId]) {
    for guest in guests {
        say(sim, *guest);
        sim.run_for(1);
    }
}

fn messages(sim: &Sim, peer: PeerId) -> usize {
    sim.events(peer).iter().filter(|event| matches!(event, Event::Message(_))).count()
}

#[test]
fn what_comes_within_a_quantum_leaves_as_one_packet() {
    for (quantum_ms, most) in [(QUANTUM_MS, 2), (0, 5)] {
        let (mut sim, members) = world(quantum_ms, 5);
        let (host, guests) = (members[0], &members[1..]);
        // Not beside the measurements of the room, which are sent each second.
        let before = sim.traffic(host).down;
        let waited = sim.hub().stats();
        say_in_turn(&mut sim, guests);
        sim.run_for(19 + quantum_ms);
        let packets = sim.traffic(host).down - before;
        assert!((1..=most).contains(&packets), "{packets} packets for 5 messages at {quantum_ms} ms");
        assert!(quantum_ms > 0 || packets > 2, "without a quantum they come apart: {packets}");
        sim.run_for(100);
        assert_eq!(messages(&sim, host), 5);
        let stats = sim.hub().stats();
        let (held, us) = (stats.flush_waits - waited.flush_waits, stats.flush_wait_us - waited.flush_wait_us);
        assert_eq!(held, 5);
        // The first message waits for the whole quantum at most, each further one a millisecond less; a
        // quantum may have begun before.
        let most = if quantum_ms == 0 { 0 } else { (8 + 7 + 6 + 5 + 4) * 1_000 };
        assert!(us <= most && (us > 0) == (quantum_ms > 0), "{us} µs at a quantum of {quantum_ms} ms");
    }
}

#[test]
fn nobody_waits_longer_than_a_quantum_and_rooms_do_not_wait_for_each_other() {
    let (mut sim, members) = world(QUANTUM_MS, 1);
    let other = sim.host(Options::host("golf"), Link::quic());
    let lonely = {
        let code = sim.code(other);
        sim.enter(Options::join("golf", code), Link::quic())
    };
    sim.run_for(5_000);
    say(&mut sim, members[1]);
    sim.run_for(5);
    say(&mut sim, lonely);
    // 20 ms up, the quantum, 20 ms down, and a frame until the game polls.
    sim.run_for(40 + QUANTUM_MS + 17);
    assert_eq!((messages(&sim, members[0]), messages(&sim, other)), (1, 1));
}
