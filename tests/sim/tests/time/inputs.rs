//! Inputs on their way from players to the host.

use parlor_client_core::{Options, Protocol, RoomError};
use parlor_proto::{ApiMisuse, MemberId, limits};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use std::cell::RefCell;
use std::rc::Rc;

fn room(sim: &mut Sim, guests: usize, mut link: impl FnMut() -> Link) -> (PeerId, Vec<PeerId>) {
    let host = sim.host(Options::host("tanks"), link());
    let code = sim.code(host);
    let guests = (0..guests).map(|_| sim.join(code, link())).collect();
    sim.run_for(2_000);
    (host, guests)
}

#[test]
fn the_newest_input_wins_and_none_replaces_anothers() {
    for_seeds(SEEDS, |seed| {
        let (mut sim, mut rng) = (Sim::new(seed), Rng::new(seed));
        let mut links = rng.clone();
        let (host, guests) = room(&mut sim, 3, || Link::any(&mut links).jitter_ms(80));
        let mut newest = [0u64; 3];
        let mut seen = [0u64; 3];
        for number in 1..150 {
            // Several of one player between two frames, and of several players at once.
            for _ in 0..rng.below(3) {
                let guest = rng.index(3);
                newest[guest] = number;
                sim.act(guests[guest], |room, _| room.send_input(&(guest as u64, number)).unwrap());
            }
            sim.run_for(rng.below(25));
            let inputs = sim.act(host, |room, _| room.inputs::<(u64, u64)>().unwrap());
            for (member, (guest, number)) in inputs {
                let index = member.0 as usize - 1;
                assert_eq!(guest, index as u64, "an input of its own");
                assert!(number >= seen[index], "it went back from {} to {number}", seen[index]);
                seen[index] = number;
            }
        }
        // The last may be lost; one more for each arrives some day.
        for _ in 0..20 {
            for (index, guest) in guests.iter().enumerate() {
                sim.act(*guest, |room, _| room.send_input(&(index as u64, 999u64)).unwrap());
            }
            sim.run_for(100);
        }
        sim.run_for(1_000);
        for id in 1..=3u32 {
            let input: Option<(u64, u64)> = sim.act(host, |room, _| room.input(MemberId(id)).unwrap());
            assert_eq!(input, Some((u64::from(id) - 1, 999)));
        }
    });
}

#[test]
fn the_host_has_an_input_too() {
    let mut sim = Sim::new(1);
    let (host, _) = room(&mut sim, 1, Link::quic);
    sim.act(host, |room, _| {
        assert_eq!(room.input::<i32>(MemberId(0)).unwrap(), None);
        room.send_input(&5).unwrap();
        room.send_input(&6).unwrap();
        assert_eq!(room.input::<i32>(MemberId(0)).unwrap(), Some(6));
        assert_eq!(room.inputs::<i32>().unwrap(), [(MemberId(0), 6)]);
        assert!(matches!(room.input::<String>(MemberId(0)), Err(RoomError::Value(_))));
    });
}

#[test]
fn only_the_host_reads_inputs_of_others() {
    let mut sim = Sim::new(2);
    let (_, guests) = room(&mut sim, 1, Link::quic);
    sim.act(guests[0], |room, _| {
        let local = MemberId(1);
        assert_eq!(room.input::<i32>(local), Ok(None));
        for error in [room.input::<i32>(MemberId(0)).unwrap_err(), room.inputs::<i32>().unwrap_err()] {
            let not_host = ApiMisuse::NotHost { what: "read inputs", local };
            assert_eq!(error, RoomError::Misuse(not_host));
        }
    });
}

#[test]
fn an_input_has_a_largest_size() {
    let mut sim = Sim::new(3);
    let (host, guests) = room(&mut sim, 1, Link::quic);
    let text = |len: usize| "x".repeat(len);
    sim.act(guests[0], |room, _| {
        room.send_input(&text(limits::INPUT_BYTES_MAX - 3)).unwrap();
        assert!(matches!(room.send_input(&text(limits::INPUT_BYTES_MAX)), Err(RoomError::Value(_))));
    });
    sim.run_for(500);
    let got: Option<String> = sim.act(host, |room, _| room.input(MemberId(1)).unwrap());
    assert_eq!(got.unwrap().len(), limits::INPUT_BYTES_MAX - 3);
}

#[test]
fn who_has_left_has_no_input() {
    for_seeds(SEEDS, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guests) = room(&mut sim, 2, || Link::quic().jitter_ms(60));
        for _ in 0..10 {
            sim.act(guests[0], |room, _| room.send_input(&1).unwrap());
            sim.run_for(10);
        }
        sim.act(guests[0], |room, now| {
            room.send_input(&2).unwrap();
            room.leave(now);
        });
        sim.run_for(1_000);
        assert_eq!(sim.act(host, |room, _| room.inputs::<i32>().unwrap()), []);
        assert_eq!(sim.act(host, |room, _| room.input::<i32>(MemberId(1)).unwrap()), None);
    });
}

#[test]
fn a7_the_protocol_says_whether_inputs_are_repeated_until_they_are_used() {
    // A host that runs its steps a little late has each input in time, unless it is lost.
    let missed = |protocol: Protocol, lead: bool| {
        let mut sim = Sim::new(77);
        let delay = Options { simulation_delay_ticks: 8, ..Options::host("tanks") };
        let host = sim.host(delay, Link::quic());
        let code = sim.code(host);
        let guest = Options { protocol, lead, ..Options::join("tanks", code) };
        let guest = sim.enter(guest, Link::quic().latency_ms(10).loss(200));
        sim.play(guest, |room, _| room.send_input(&room.tick_number().unwrap().0).unwrap());
        sim.run_for(3_000);
        let missed = Rc::new(RefCell::new(0));
        let count = Rc::clone(&missed);
        sim.play(host, move |room, _| {
            let tick = room.tick_number().unwrap().0;
            *count.borrow_mut() += u32::from(room.input::<u32>(MemberId(1)).unwrap() != Some(tick));
        });
        sim.run_for(10_000);
        let missed = *missed.borrow();
        println!("{protocol:?}, lead {lead}: {missed} of 300");
        missed
    };
    assert!(missed(Protocol::Reliable, false) <= 2);
    assert!(missed(Protocol::Both, false) > 30, "of the newest alone some are lost");
    assert!(missed(Protocol::Both, true) <= 2, "with lead they are repeated");
    assert!(missed(Protocol::Unreliable, true) > 30);
}
