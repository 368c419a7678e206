//! A run is a function of its seed.

use parlor_client_core::Options;
use parlor_proto::Lane;
use parlor_proto::wire::envelope::Recipient;
use parlor_sim::{Link, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::keyed::Audience;

fn run(seed: u64) -> (u64, String) {
    let mut sim = Sim::new(seed);
    let mut rng = Rng::new(seed);
    let host = sim.host(Options::host("tanks"), Link::any(&mut rng));
    let code = sim.code(host);
    let guests = [(); 3].map(|()| sim.join(code, Link::any(&mut rng)));
    sim.play(host, |room, _| {
        let tick = room.tick_number().expect("steps have numbers").0;
        room.set("tick", &tick, Audience::All).expect("the host may");
    });
    for step in 0..20 {
        let guest = guests[rng.index(3)];
        let lane = rng.pick(&[Lane::ReliableOrdered, Lane::Unreliable]);
        sim.act(guest, |room, now| {
            room.send(lane, Recipient::Others, "step", &step, true, now).expect("an open room sends")
        });
        sim.run_for(rng.below(100));
    }
    sim.crash(guests[0]);
    sim.run_for(1_000);
    (sim.trace_hash(), sim.transcript())
}

#[test]
fn one_seed_gives_one_run() {
    for_seeds(SEEDS / 5, |seed| assert_eq!(run(seed), run(seed)));
}

#[test]
fn another_seed_gives_another_run() {
    assert_ne!(run(1).0, run(2).0);
}
