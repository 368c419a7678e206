//! A slow member and all others learn that it is slow.

use parlor_client_core::{Event, Options};
use parlor_proto::wire::envelope::Recipient;
use parlor_proto::{Lane, MemberId};
use parlor_sim::{Link, PeerId, Sim};
use parlor_sync::keyed::Audience;

fn slow_events(sim: &Sim, peer: PeerId) -> Vec<(MemberId, bool)> {
    let slow = |event: &Event| match event {
        Event::Slow { id, slow } => Some((*id, *slow)),
        _ => None,
    };
    sim.events(peer).iter().filter_map(slow).collect()
}

#[test]
fn who_does_not_keep_up_is_told_so_and_so_is_the_host() {
    for link in [Link::quic(), Link::websocket()] {
        let mut sim = Sim::new(1);
        let host = sim.host(Options::host("tanks"), link);
        let code = sim.code(host);
        let (slow, other) = (sim.join(code, link), sim.join(code, link));
        sim.play(host, |room, _| {
            let tick = room.tick_number().expect("steps have numbers").0;
            room.set("tick", &tick, Audience::All).expect("the host may");
        });
        sim.run_for(3_000);
        assert!([host, slow, other].iter().all(|peer| slow_events(&sim, *peer).is_empty()));
        sim.block(slow, true);
        sim.run_for(3_000);
        let it = MemberId(1);
        assert_eq!(slow_events(&sim, host), [(it, true)]);
        assert_eq!(slow_events(&sim, other), [(it, true)]);
        assert!(sim.room(host).player(it).expect("it is there").slow);
        sim.block(slow, false);
        sim.run_for(3_000);
        for peer in [host, slow, other] {
            assert_eq!(slow_events(&sim, peer), [(it, true), (it, false)], "{link:?}");
        }
        assert!(!sim.room(slow).player(it).expect("it is there").slow);
        sim.play(host, |_, _| ());
        sim.run_for(1_000);
        assert_eq!(sim.room(slow).state_hash(), sim.room(host).state_hash(), "it has the newest state");
    }
}

#[test]
fn who_sends_too_much_is_told_so() {
    let mut sim = Sim::new(2);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let guest = sim.join(sim.code(host), Link::quic());
    let text = "x".repeat(20_000);
    for _ in 0..100 {
        sim.act(guest, |room, now| {
            room.send(Lane::Unreliable, Recipient::Others, "n", &text, false, now).expect("it is taken")
        });
        sim.run_for(10);
    }
    sim.run_for(1_000);
    let throttled =
        |sim: &Sim, peer| sim.events(peer).iter().filter(|event| **event == Event::Throttled).count();
    assert_eq!((throttled(&sim, guest), throttled(&sim, host)), (1, 0));
    assert!(sim.room(guest).is_connected());
}
