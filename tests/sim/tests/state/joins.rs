//! What joining costs, however long a room has run.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Event, Options};
use parlor_proto::TickRate;
use parlor_sim::{Link, PeerId, Sim};
use parlor_sync::keyed::Audience;
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    at: [f32; 2],
}
replicated!(Place as "place" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 64.0) });

const ENTITIES: usize = 40;

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Place>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), ..options }
}

/// Packets and bytes that a newcomer gets within a second, in a room that has run for so many frames. The world is
/// the same at the end, whatever happened before.
fn cost(frames: u64) -> (u64, u64) {
    let mut sim = Sim::new(11);
    let host = sim.host(options(Options::host("tanks")), Link::quic().latency_ms(0));
    sim.play(host, |room, now| {
        let tick = room.tick_number().unwrap().0;
        room.set("score", &(tick % 60 / 30), Audience::All).unwrap();
        let mut world = room.world(now).unwrap();
        let there = world.entities();
        for _ in there.len()..ENTITIES {
            world.spawn(None).unwrap();
        }
        for (index, entity) in (0u16..).zip(there) {
            // A cycle of 60 steps.
            let x = f32::from(index) + (tick % 60) as f32 / 60.0;
            world.insert(entity, &Place { at: [x, -x] }).unwrap();
        }
    });
    sim.run_for(2_000);
    sim.run_for(frames * 1_000 / u64::from(TickRate::DEFAULT.hz()));
    // The same phase of the cycle.
    sim.run_until(5_000, "the begin of a cycle", |sim| {
        sim.room(host).tick_number().is_some_and(|tick| tick.0.is_multiple_of(60))
    });
    let guest = sim.enter(options(Options::join("tanks", sim.code(host))), Link::quic());
    sim.run_until(5_000, "the whole world", |sim| seen(sim, guest) == ENTITIES);
    sim.run_for(1_000);
    let traffic = sim.traffic(guest);
    (traffic.down, traffic.down_bytes)
}

fn seen(sim: &Sim, peer: PeerId) -> usize {
    sim.events(peer).iter().filter(|event| matches!(event, Event::Spawned { .. })).count()
}

#[test]
fn m8_joining_at_frame_0_600_6000_and_36000_costs_the_same() {
    let costs = [0, 600, 6_000, 36_000].map(cost);
    println!("packets and bytes: {costs:?}");
    let (packets, bytes) = costs[0];
    assert!(packets > 20 && bytes > 1_000, "{costs:?}");
    for (more_packets, more_bytes) in costs {
        // Ticks and times grow by digits, not by what happened.
        assert!(more_packets.abs_diff(packets) <= 2, "{costs:?}");
        assert!(more_bytes.abs_diff(bytes) * 50 <= bytes, "{costs:?}");
    }
}
