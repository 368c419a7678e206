//! A prediction allocates nothing for a step, once warm.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::prediction::{Frame, Predictor, Smoothing};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use parlor_sync::world::{Applied, World};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Place {
    at: [f32; 2],
}
replicated!(Place as "place" => { at: Kind::vector2(-100.0, 100.0, 1.0 / 64.0) });

#[test]
fn steps_corrections_and_frames_allocate_nothing_once_warm() {
    let me = MemberId(1);
    let schema = Arc::new(Schema::builder().replicate::<Place>().build().unwrap());
    let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
    let entity = world.spawn(Some(me)).unwrap();
    let mask = schema.find("place").unwrap().bit();
    let mut predictor = Predictor::new(schema, me, mask, Smoothing::default());
    let applied = Applied { changed: vec![(entity, mask)], ..Applied::default() };
    let mut allocated = 0;
    for tick in 1..400u32 {
        // Every twentieth tick the authority's state differs.
        world.insert(entity, &Place { at: [(tick / 20) as f32, 0.0] }).unwrap();
        world.commit(Tick(tick)).unwrap();
        let region = Region::new(ALLOCATOR);
        predictor.observe(&world, &applied, false);
        let frame = Frame { phase: 0.5, now: Instant::from_millis(u64::from(tick) * 33) };
        let rerun = predictor.reconcile(&world, Some(Tick(tick)), Tick(tick + 3), frame);
        let again = rerun.map_or(0..0, |rerun| rerun.first.0..rerun.last.0 + 1);
        for tick in again.chain([tick + 4]) {
            predictor.begin_step(Tick(tick));
            let place = predictor.get::<Place>(entity).flatten().unwrap();
            predictor.insert(entity, &place).unwrap().unwrap();
            predictor.end_step();
        }
        predictor.show::<Place>(entity, frame).flatten().unwrap();
        if tick > 100 {
            allocated += region.change().allocations;
        }
    }
    assert!(predictor.counters().corrections > 15, "{:?}", predictor.counters());
    assert_eq!(allocated, 0);
}
