//! Threat 15: the memory of a world's histories, whatever a stream contains and a game writes.
//!
//! The allocator counts for the whole process, so this file has one test.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_proto::{Tick, TickRate};
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Past, Tables, Writer};
use parlor_sync::limits::{HISTORY_TICKS, REPLICA_WORLDS_MAX, WORLD_HISTORY_BYTES_MAX};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{EntityId, Replica, StreamError, World, WorldError};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::ops::Range;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const IT: ComponentId = ComponentId(0);
const TEXTS: usize = 32;
/// Entities whose rows fit one packet.
const IN_PACKET: u16 = 120;

/// Bytes allocated in a region and not freed.
fn kept(region: &Region<System>) -> usize {
    let change = region.change();
    change.bytes_allocated.saturating_sub(change.bytes_deallocated)
}

/// One component with many texts.
fn schema() -> Arc<Schema> {
    let component = Component::builder("it");
    let component =
        (0..TEXTS).fold(component, |it, field| it.field(&format!("text {field}"), Kind::text(16_000)));
    Arc::new(Schema::bare().component(component.build()).build().unwrap())
}

/// A body that spawns entities without texts in these slots, or updates each without a change.
fn body(tables: &Tables, slots: Range<u16>, kind: EntryKind) -> Vec<u8> {
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(tables, false);
    let row = vec![Bytes::new(); TEXTS];
    for slot in slots {
        let mut head = EntryHead { kind, changed: 1, ..EntryHead::update(slot) };
        let mut past = Vec::new();
        if kind == EntryKind::Spawn {
            (head.generation, head.mask, head.mask_changed) = (1, 1, true);
            head.meta = Some(Meta::default());
        } else {
            (head.history, head.ages) = (1, [1, 0, 0]);
            past.push(Past { age: 1, lanes: &[], blobs: &row });
        }
        writer.head(tables, &head);
        writer.component(tables, IT, &past, &[], &row);
    }
    writer.finish(tables, &mut body);
    body
}

/// A packet; the first one begins an epoch.
fn packet(number: u16, tick: u32, body: &[u8]) -> Bytes {
    let [low, high] = number.to_le_bytes();
    let head: &[u8] = if number == 1 { &[4, low, high, 0, 0] } else { &[0, low, high, 0] };
    [head, &tick.to_le_bytes(), body].concat().into()
}

/// Unchanged rows, again and again: a few bits each, and a kibibyte each at the receiver.
fn a_stream_is_refused_before_it_takes_too_much() {
    let schema = schema();
    let tables = Tables::new(&schema, TickRate::DEFAULT);
    let slots: Vec<Range<u16>> = (0..16).map(|at| at * IN_PACKET..(at + 1) * IN_PACKET).collect();
    let bodies = |kind| slots.iter().map(|slots| body(&tables, slots.clone(), kind)).collect::<Vec<_>>();
    let (spawns, updates) = (bodies(EntryKind::Spawn), bodies(EntryKind::Update));
    let region = Region::new(ALLOCATOR);
    let mut replica = Replica::new(Arc::clone(&schema), TickRate::DEFAULT);
    let (mut sent, mut number, mut most) = (0, 0, 0);
    let refused = 'stream: loop {
        let tick = 1_000 + u32::from(number) / 16;
        for body in if number == 0 { &spawns } else { &updates } {
            number += 1;
            let packet = packet(number, tick, body);
            sent += packet.len();
            let outcome = replica.apply(packet);
            most = most.max(kept(&region));
            if let Err(why) = outcome {
                break 'stream why;
            }
        }
        assert!(tick < 1_000 + 2 * HISTORY_TICKS, "{sent} bytes were taken in, and {most} are kept");
    };
    assert_eq!(refused, StreamError::TooLarge);
    let bound = REPLICA_WORLDS_MAX * WORLD_HISTORY_BYTES_MAX;
    assert!(most <= bound + (20 << 20), "{most} bytes");
    assert!(most > bound / 2 && sent < 1 << 20, "{most} bytes of {sent}");
}

/// A game that changes too much gets an error, and can continue after a quiet time.
fn a_game_is_told_before_its_readers_refuse() {
    let region = Region::new(ALLOCATOR);
    let mut world = World::new(schema(), TickRate::DEFAULT);
    let entities: Vec<EntityId> = (0..900).map(|_| world.spawn(None).unwrap()).collect();
    let write = |world: &mut World, entity: EntityId, tick: u32| {
        let mut texts = vec![Bytes::new(); TEXTS];
        texts[0] = tick.to_string().into();
        world.write_row(entity, IT, &[], &texts)
    };
    let mut tick = 0;
    let refused = 'game: loop {
        tick += 1;
        for entity in &entities {
            if let Err(why) = write(&mut world, *entity, tick) {
                break 'game why;
            }
        }
        world.commit(Tick(tick)).unwrap();
        assert!(tick < 2 * HISTORY_TICKS, "{} bytes are kept", kept(&region));
    };
    assert_eq!(refused, WorldError::TooMuchHistory);
    assert!(kept(&region) < REPLICA_WORLDS_MAX * WORLD_HISTORY_BYTES_MAX, "{} bytes", kept(&region));
    let end = tick + 2 + HISTORY_TICKS;
    (tick..=end).for_each(|tick| assert!(world.commit(Tick(tick)).is_ok()));
    assert_eq!(write(&mut world, entities[0], end + 1), Ok(true));
    assert!(kept(&region) < WORLD_HISTORY_BYTES_MAX, "{} bytes", kept(&region));
}

/// All texts that a world may have, each changing at every tick.
fn a_world_of_changing_texts_is_not_hurt() {
    let mut world = World::new(schema(), TickRate::DEFAULT);
    let entities: Vec<EntityId> = (0..16).map(|_| world.spawn(None).unwrap()).collect();
    for tick in 1..3 * HISTORY_TICKS {
        for entity in &entities {
            let mut texts = vec![Bytes::new(); TEXTS];
            texts[0] = format!("{tick:016000}").into();
            world.write_row(*entity, IT, &[], &texts).unwrap();
        }
        world.commit(Tick(tick)).unwrap();
    }
}

#[test]
fn threat_15_histories_take_so_much_and_no_more() {
    a_stream_is_refused_before_it_takes_too_much();
    a_game_is_told_before_its_readers_refuse();
    a_world_of_changing_texts_is_not_hurt();
}
