//! No allocations for entities, only for packets, once warm. A test binary of its own, because it counts the
//! allocations of the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{
    Encodings, EntityId, Publisher, PublisherConfig, Replica, Sent, Viewer, Views, World,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const ENTITIES: i32 = 600;
const MEMBERS: u32 = 4;
const PLACE: ComponentId = ComponentId(2);

fn step(world: &mut World, entities: &[EntityId], tick: u32) {
    for (entity, number) in entities.iter().zip(0i32..) {
        let x = 1_000 + number + i32::try_from(tick).unwrap() * (1 + number % 5);
        world.write_row(*entity, PLACE, &[x, 2 * number, 7], &[]).unwrap();
    }
    world.commit(Tick(tick)).unwrap();
}

#[test]
fn once_warm_only_packets_are_allocated() {
    let place = Component::builder("place").field("at", Kind::vector3(0.0, 1_000.0, 1.0 / 64.0)).build();
    let schema = Arc::new(Schema::builder().component(place).build().unwrap());
    let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
    let entities: Vec<EntityId> = (0..ENTITIES).map(|_| world.spawn(None).unwrap()).collect();
    let mut up = Publisher::new(Viewer::Everything, PublisherConfig::new(10_000_000));
    let mut encodings = Encodings::new();
    let mut hub = Replica::of_everything(Arc::clone(&schema), TickRate::DEFAULT);
    let mut views = Views::new(&schema);
    (0..MEMBERS).for_each(|id| views.add(MemberId(id), PublisherConfig::new(10_000_000)));

    let mut acks: Vec<(u32, MemberId, Sent)> = Vec::new();
    let (mut packets, mut allocations, mut upward) = (0, 0, 0);
    for tick in 1..400 {
        let now = Instant::from_millis(u64::from(tick) * 33);
        let is_warm = tick > 300;
        acks.retain(|(due, member, sent)| {
            if *due <= tick {
                views.fate(*member, *sent, true);
            }
            *due > tick
        });
        let region = Region::new(ALLOCATOR);
        step(&mut world, &entities, tick);
        while let Some((bytes, sent)) = up.poll(&world, &mut encodings, now) {
            hub.apply(bytes).unwrap();
            up.delivered(sent);
            upward += u64::from(is_warm);
        }
        views.flush(hub.world(), now, |member, _, sent| {
            // Members acknowledge some ticks apart, so that no two of them share everything.
            acks.push((tick + 1 + member.0, member, sent));
            packets += u64::from(is_warm);
        });
        if is_warm {
            let change = region.change();
            allocations += change.allocations + change.reallocations;
        }
    }
    println!("{allocations} allocations for {upward} packets up and {packets} down");
    assert!(packets >= 99 * u64::from(MEMBERS), "all entities move at every tick");
    let per_packet = 10;
    assert!(
        (allocations as u64) < per_packet * (packets + upward),
        "{allocations} allocations for {packets} + {upward} packets of {ENTITIES} entities"
    );
}
