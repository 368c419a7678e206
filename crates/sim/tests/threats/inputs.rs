//! Threat 21: more inputs than steps gain nothing.

use crate::world::World;
use bytes::Bytes;
use parlor::MemberId;
use parlor::core::Options;
use parlor_proto::session::Outgoing;
use parlor_proto::{MemberId as Id, channel};
use parlor_sim::{Link, Sim};
use std::time::Duration;

fn input(world: &World, peer: parlor_proto::ConnectionId, tick: u32) -> Outgoing {
    let key = world.peer(peer).member.expect("it is in").1.0;
    let mut payload = tick.to_le_bytes().to_vec();
    payload.push(1);
    Outgoing { key, ..Outgoing::new(channel::INPUT, Bytes::from(payload)) }
}

/// Even under a host that moves a player for each input that comes, without a look at the tick.
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
        // One after another and never two at once, so that none takes the place of another.
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
