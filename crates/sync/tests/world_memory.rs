//! The memory that a peer's bytes can use. A test binary of its own, because it counts the allocations of the
//! whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::TickRate;
use parlor_sync::delta::{EntryHead, EntryKind, Meta, Tables, Writer};
use parlor_sync::limits::{ENTITIES_MAX, PACKET_OUTPUT_BYTES_MAX};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{Outcome, Replica, StreamError};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::ops::Range;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes of a slot, used or not, for the world and the replica, and for each component.
const SLOT_BYTES: usize = 256;

/// A packet that begins an epoch.
fn packet(body: &[u8]) -> Bytes {
    // COMPLETE, number 1, floor and epoch here, tick 9.
    [&[4, 1, 0, 0, 0, 9, 0, 0, 0], body].concat().into()
}

fn schema(kind: &Kind, fields: usize) -> Arc<Schema> {
    let name = |field| format!("field {field}");
    let component = (0..fields)
        .fold(Component::builder("it"), |builder, field| builder.field(&name(field), kind.clone()))
        .build();
    Arc::new(Schema::bare().component(component).build().unwrap())
}

/// `count` components of one field each.
fn components(kind: &Kind, count: usize) -> Arc<Schema> {
    let component = |at| Component::builder(&format!("it {at}")).field("it", kind.clone()).build();
    let schema = (0..count).fold(Schema::bare(), |schema, at| schema.component(component(at)));
    Arc::new(schema.build().unwrap())
}

/// A body that spawns entities in these slots, each with the first component.
fn spawns(schema: &Schema, slots: Range<u16>, row: impl FnMut(u16) -> (Vec<i32>, Vec<Bytes>)) -> Vec<u8> {
    spawns_of(schema, 1, slots, row)
}

/// A body that spawns entities in these slots, each with these components, all equal.
fn spawns_of(
    schema: &Schema,
    mask: u64,
    slots: Range<u16>,
    mut row: impl FnMut(u16) -> (Vec<i32>, Vec<Bytes>),
) -> Vec<u8> {
    let tables = Tables::new(schema, TickRate::DEFAULT);
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(&tables, false);
    for slot in slots {
        let head = EntryHead {
            kind: EntryKind::Spawn,
            generation: 1,
            mask,
            mask_changed: true,
            changed: mask,
            meta: Some(Meta::default()),
            ..EntryHead::update(slot)
        };
        writer.head(&tables, &head);
        let (lanes, blobs) = row(slot);
        for id in (0u8..64).map(ComponentId).filter(|id| mask >> id.0 & 1 == 1) {
            writer.component(&tables, id, &[], &lanes, &blobs);
        }
    }
    writer.finish(&tables, &mut body);
    body
}

/// Applies a packet to a new replica. Returns the result, and the bytes allocated and not freed.
fn apply(schema: &Arc<Schema>, body: &[u8]) -> (Result<Outcome<()>, StreamError>, usize) {
    let mut replica = Replica::new(Arc::clone(schema), TickRate::DEFAULT);
    let packet = packet(body);
    let region = Region::new(ALLOCATOR);
    let outcome = replica.apply(packet);
    let change = region.change();
    let kept = change.bytes_allocated.saturating_sub(change.bytes_deallocated);
    let outcome = outcome.map(|outcome| match outcome {
        Outcome::Taken(_) => Outcome::Taken(()),
        Outcome::Old => Outcome::Old,
        Outcome::Waiting => Outcome::Waiting,
    });
    (outcome, kept)
}

#[test]
fn threat_15_16_a_packet_takes_little_memory_whatever_it_says() {
    // Texts that are almost equal take a few bytes each in the packet, and 16,000 in memory.
    let texts = schema(&Kind::text(16_000), 1);
    let text = |slot: u16| {
        let mut text = vec![b'a'; 16_000];
        text[usize::from(slot)] = b'b';
        (vec![], vec![text.into()])
    };
    let bomb = spawns(&texts, 0..200, text);
    let (outcome, kept) = apply(&texts, &bomb);
    println!("{} bytes of texts: {kept} bytes are kept", bomb.len());
    assert!(matches!(outcome, Err(StreamError::Delta(_))), "{outcome:?}");
    assert!(bomb.len() < 10_000 && kept < 1 << 20, "{kept} bytes of {}", bomb.len());
    let fitting = PACKET_OUTPUT_BYTES_MAX / 16_000;
    let (outcome, kept) = apply(&texts, &spawns(&texts, 0..u16::try_from(fitting).unwrap(), text));
    assert!(matches!(outcome, Ok(Outcome::Taken(()))), "{outcome:?}");
    assert!(kept > fitting * 16_000, "the texts are there: {kept}");

    // Equal numbers take next to nothing.
    let numbers = schema(&Kind::int(0, 1_000), 32);
    // So do empty texts, many components of one number each, and entities without components.
    let empty = schema(&Kind::text(10), 32);
    let flags = components(&Kind::Bool, 32);
    let nothing = components(&Kind::Bool, 1);
    let bombs = [
        ("numbers", &numbers, spawns(&numbers, 0..4_000, |_| (vec![0; 32], vec![]))),
        ("empty texts", &empty, spawns(&empty, 0..4_000, |_| (vec![], vec![Bytes::new(); 32]))),
        ("flags", &flags, spawns_of(&flags, u32::MAX.into(), 0..4_000, |_| (vec![0], vec![]))),
        ("entities", &nothing, spawns_of(&nothing, 0, 0..4_000, |_| (vec![], vec![]))),
    ];
    for (what, schema, bomb) in bombs {
        let (outcome, kept) = apply(schema, &bomb);
        println!("{} bytes of {what}: {kept} bytes are kept", bomb.len());
        assert!(matches!(outcome, Err(StreamError::Delta(_))), "{outcome:?}");
        assert!(bomb.len() < 40_000 && kept < 1 << 20, "{what}: {kept} bytes of {}", bomb.len());
    }

    // Naming the last slot creates all of them, once.
    let last = u16::try_from(ENTITIES_MAX - 1).unwrap();
    let (outcome, kept) = apply(&numbers, &spawns(&numbers, last..last + 1, |_| (vec![0; 32], vec![])));
    println!("the last slot: {kept} bytes are kept");
    assert!(matches!(outcome, Ok(Outcome::Taken(()))), "{outcome:?}");
    assert!(kept < ENTITIES_MAX * SLOT_BYTES, "{kept}");

    // Nothing is allocated for what is only announced.
    let (mut refused, mut most) = (0, 0);
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let (schema, good) = if seed % 2 == 0 {
            (
                &texts,
                spawns(&texts, 0..3, |slot| (vec![], vec![Bytes::from(vec![b'x'; usize::from(slot) * 9])])),
            )
        } else {
            (&numbers, spawns(&numbers, 0..40, |slot| (vec![i32::from(slot); 32], vec![])))
        };
        let mut body = good;
        for _ in 0..=rng.below(6) {
            let at = rng.index(body.len());
            body[at] = (rng.draw() & 0xff) as u8;
        }
        let (outcome, kept) = apply(schema, &body);
        refused += usize::from(outcome.is_err());
        most = most.max(kept);
        let bound = PACKET_OUTPUT_BYTES_MAX + 8 * body.len() + 64 * 1024 + ENTITIES_MAX * SLOT_BYTES;
        assert!(kept <= bound, "seed {seed}: {kept} bytes of {}", body.len());
    }
    println!("{refused} of 2,000 bodies were refused; at most {most} bytes were kept");
    assert!(refused > 200, "{refused} were refused");
}
