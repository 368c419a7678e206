//! Threats 21 to 23: more inputs than steps, clocks that jump, and inputs for other times give no advantage.

use crate::world::World;
use bytes::Bytes;
use parlor_client_core::Options;
use parlor_proto::session::Outgoing;
use parlor_proto::wire::handshake::Intent;
use parlor_proto::{MemberId, MemberId as Id, Tick, channel};
use parlor_sim::{Link, PeerId, Rng, Sim, hello};
use parlor_sync::inputs::OwnInputs;
use parlor_sync::value::Value;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

fn input(world: &World, peer: parlor_proto::ConnectionId, tick: u32) -> Outgoing {
    let key = world.peer(peer).member.expect("it is in").1.0;
    let mut payload = tick.to_le_bytes().to_vec();
    payload.push(1);
    Outgoing { key, ..Outgoing::new(channel::INPUT, Bytes::from(payload)) }
}

/// Even with a host that moves a player for each input, ignoring its tick.
#[test]
fn threat_21_ten_times_the_inputs_move_a_player_as_far_as_is_legal() {
    let mut world = World::new(1);
    let members = world.room(2);
    let (host, honest, cheat) = (members[0], members[1], members[2]);
    let hz = u64::from(parlor_proto::TickRate::DEFAULT.hz());
    let (seconds, mut moved) = (120, [0u64; 3]);
    let mut tick = 0;
    world.take_messages(host);
    for _ in 0..seconds * hz {
        // One after another and never two at once, so that none replaces another.
        for part in 0..10 {
            tick += 1;
            let message = input(&world, cheat, tick);
            world.say(cheat, message).expect("an input is taken");
            if part == 0 {
                let message = input(&world, honest, tick);
                world.say(honest, message).expect("an input is taken");
            }
            world.pass(Duration::from_nanos(1_000_000_000 / hz / 10 + 1));
            for message in world.take_messages(host) {
                if message.channel == channel::INPUT {
                    moved[message.key as usize] += 1;
                }
            }
        }
    }
    let legal = moved[1];
    assert_eq!(legal, seconds * hz, "an honest player loses no input");
    assert!(moved[2] * 100 <= legal * 101, "{} steps where {legal} are legal", moved[2]);
    assert!(moved[2] > legal / 2, "its own pace remains: {}", moved[2]);
    assert_eq!(world.peer(cheat).member.map(|(_, id)| id), Some(Id(2)));
}

#[test]
fn threat_21_a_host_steps_once_for_each_tick_whatever_comes() {
    let mut sim = Sim::new(2);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let code = sim.code(host);
    let (honest, cheat) = (sim.join(code, Link::quic()), sim.join(code, Link::quic()));
    let moved = std::rc::Rc::new(std::cell::RefCell::new([0i64; 3]));
    let in_play = std::rc::Rc::clone(&moved);
    sim.play(host, move |room, _| {
        for (player, step) in room.inputs::<i64>().expect("it is the host") {
            in_play.borrow_mut()[player.0 as usize] += step.clamp(-1, 1);
        }
    });
    sim.play(honest, |room, _| room.send_input(&1).expect("it is small"));
    sim.play(cheat, |room, _| {
        (0..10).for_each(|_| room.send_input(&1).expect("it is small"));
    });
    sim.run_for(30_000);
    let moved = *moved.borrow();
    assert!(moved[1] > 500, "{moved:?}");
    assert!(moved[2] * 100 <= moved[1] * 101, "{moved:?}");
    assert!(sim.room(host).player(MemberId(2)).is_some());
}

/// How far each player has moved, and the steps that the host has run.
#[derive(Clone, Default)]
struct Race(Rc<RefCell<([i64; 4], i64)>>);

/// A room with a host that moves players, an honest player with lead, and member 2, which is a session
/// without a game.
fn race(seed: u64) -> (Sim, Race, [PeerId; 3]) {
    let mut sim = Sim::new(seed);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let code = sim.code(host);
    let honest = Options { lead: true, ..Options::join("tanks", code) };
    let honest = sim.enter(honest, Link::quic());
    sim.run_for(1_000);
    let cheat = sim.intrude(hello(Intent::Join { code, secret: None }), Link::quic());
    sim.run_for(3_000);
    assert_eq!(sim.room(host).player_count(), 3);
    let race = Race::default();
    let in_play = race.clone();
    sim.play(host, move |room, _| {
        let (moved, steps) = &mut *in_play.0.borrow_mut();
        *steps += 1;
        for (player, step) in room.inputs::<i64>().expect("it is the host") {
            moved[player.0 as usize] += step.clamp(-1, 1);
        }
    });
    sim.play(honest, |room, _| room.send_input(&1).expect("it is small"));
    (sim, race, [host, honest, cheat])
}

fn say_input(sim: &mut Sim, cheat: PeerId, tick: Tick, number: i64) {
    let mut inputs = OwnInputs::new();
    inputs.record(tick, None, Value::from(number).encode(99).expect("it is small"));
    let message = inputs.message(0).expect("there is one");
    let message = Outgoing { key: 2, ..Outgoing::new(channel::INPUT, message) };
    sim.say(cheat, |session, _| session.send(message).expect("it is taken"));
}

#[test]
fn threat_21_inputs_for_ten_steps_in_each_move_a_player_as_far_as_is_legal() {
    let (mut sim, race, [host, _, cheat]) = race(3);
    for _ in 0..30 * 30 {
        let due = sim.room(host).tick_number().expect("it is open");
        // The way takes about two steps, so these are for past, present and future steps.
        for part in 0..10 {
            say_input(&mut sim, cheat, due.offset(part - 2), 1);
            sim.run_for(3);
        }
        sim.run_for(3);
    }
    let (moved, steps) = *race.0.borrow();
    assert!(moved[2] * 100 <= steps * 101, "{moved:?} in {steps} steps");
    assert!(
        moved[1] * 100 >= steps * 99,
        "the honest one is where it wants to be: {moved:?} in {steps} steps"
    );
    assert!(sim.room(host).player(MemberId(2)).is_some());
}

#[test]
fn threat_22_a_member_whose_clock_leaps_by_a_day_disturbs_nobody() {
    const DAY: Duration = Duration::from_secs(86_400);
    for seed in 0..4 {
        let (mut sim, race, [host, honest, _]) = race(seed);
        let code = sim.code(host);
        let leaper = sim.enter(Options { lead: true, ..Options::join("tanks", code) }, Link::quic());
        // Back is where its clock ends, so that nothing is before its origin.
        sim.leap(leaper, DAY * 2);
        sim.play(leaper, |room, _| drop(room.send_input(&1)));
        sim.run_for(2_000);
        let mut rng = Rng::new(seed);
        let (before, dropped) = (race.0.borrow().1, sim.room(host).diagnostics().ticks_dropped);
        let honest_late = sim.room(host).input_counters(MemberId(1)).expect("it sends").missing;
        for _ in 0..20 {
            sim.leap(leaper, rng.pick(&[DAY, DAY * 2, DAY * 3, DAY * 2 + Duration::from_millis(300)]));
            sim.run_for(500);
        }
        let steps = race.0.borrow().1 - before;
        assert!((299..=301).contains(&steps), "the host ran {steps} steps in ten seconds");
        assert_eq!(sim.room(host).diagnostics().ticks_dropped, dropped);
        let counters = sim.room(host).input_counters(MemberId(1)).expect("it sends");
        assert_eq!(counters.missing, honest_late, "the honest one is in time");
        let off = sim.act(honest, |room, now| room.server_time(now)).expect("it is open");
        let room_time = sim.act(host, |room, now| room.server_time(now)).expect("it is open");
        assert!(off.abs_diff(room_time) < Duration::from_millis(2), "{off:?} at {room_time:?}");
        assert!(sim.room(honest).is_connected() && sim.room(host).is_connected());
    }
}

#[test]
fn threat_23_inputs_of_other_times_are_ignored_and_counted() {
    let (mut sim, race, [host, _, cheat]) = race(5);
    let mut rng = Rng::new(5);
    let mut said = 0;
    for _ in 0..30 * 10 {
        let due = sim.room(host).tick_number().expect("it is open");
        let far = rng.pick(&[-1_000, 1_000, i32::MIN, i32::MAX, -80, 80]);
        say_input(&mut sim, cheat, due.offset(far), 1);
        said += 1;
        sim.run_for(33);
    }
    sim.run_for(500);
    let (moved, _) = *race.0.borrow();
    assert_eq!(moved[2], 0, "none of it counts");
    let counters = sim.room(host).input_counters(MemberId(2)).expect("it sent");
    assert_eq!((counters.taken, counters.ancient + counters.far_ahead), (0, said));
    assert_eq!(sim.room(host).diagnostics().inputs_refused, said);
    assert!(sim.room(host).player(MemberId(2)).is_some());
}
