//! Threats 15 and 16: the memory that a peer's bodies can use, whatever they contain.
//!
//! The allocator counts for the whole process, so this file has one test.

use bytes::Bytes;
use parlor_proto::TickRate;
use parlor_sync::delta::{DeltaError, EntryHead, Reader, Tables, Writer};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Maximum length of a component's blob.
const BLOB_BYTES: usize = 16_384;

fn tables() -> Tables {
    let schema =
        Schema::bare().component(Component::builder("c").field("b", Kind::bytes(16_384)).build()).build();
    Tables::new(&schema.expect("a good schema"), TickRate::DEFAULT)
}

/// Reads this body to its end or first error. Returns the bytes allocated meanwhile, and the bytes of the
/// resulting state.
fn read(tables: &Tables, body: &[u8]) -> (usize, usize, Option<DeltaError>) {
    let region = Region::new(ALLOCATOR);
    let (mut reader, mut output, mut blobs) = (Reader::new(tables, body, true), 0, [Bytes::new()]);
    let ended = loop {
        match reader.head() {
            Ok(None) => break None,
            Ok(Some(head)) if head.changed == 0 => {}
            Ok(Some(_)) => match reader.component(ComponentId(0), &[], &mut [], &mut blobs) {
                Ok(()) => output += blobs[0].len(),
                Err(why) => break Some(why),
            },
            Err(why) => break Some(why),
        }
    };
    (region.change().bytes_allocated, output, ended)
}

/// A body of entries with these blobs.
fn body(tables: &Tables, blobs: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let (mut writer, mut body) = (Writer::new(), Vec::new());
    writer.begin(tables, true);
    for (slot, blob) in (0..).zip(blobs) {
        writer.head(tables, &EntryHead { changed: 1, ..EntryHead::update(slot) });
        writer.component(tables, ComponentId(0), &[], &[], &[Bytes::from(blob)]);
    }
    writer.finish(tables, &mut body);
    body
}

#[test]
fn threat_15_and_16_memory_is_bounded_by_what_came() {
    let tables = tables();
    // Blobs that are all new and cost next to nothing: each repeats another byte.
    let bomb = body(&tables, (0..200u8).map(|byte| vec![byte; BLOB_BYTES]));
    let (allocated, output, ended) = read(&tables, &bomb);
    assert!(matches!(ended, Some(DeltaError::TooMuch { .. })), "{ended:?}");
    assert!(bomb.len() <= 100 * 1024, "{} bytes are no bomb", bomb.len());
    assert!(output <= 128 * 1024, "{output} bytes of state came of one body");
    assert!(allocated <= 1024 * 1024, "{allocated} bytes were allocated for {}", bomb.len());
    // A body that is cut off within its first blob, which claims to be long.
    let long =
        body(&tables, std::iter::once((0..BLOB_BYTES).map(|at| (at * at / 7).to_le_bytes()[0]).collect()));
    for len in [16, 64, 256, 1_024] {
        let (allocated, output, ended) = read(&tables, &long[..len]);
        assert!(ended.is_some() && output == 0, "{len} bytes of {} were taken for all", long.len());
        assert!(allocated <= 8 * len + 64 * 1024, "{allocated} bytes were allocated for {len}");
    }
    // Random bytes.
    let mut noise = 1u64;
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..200)
            .map(|_| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                noise.to_be_bytes()[0]
            })
            .collect();
        let (allocated, output, ended) = read(&tables, &bytes);
        let most = 8 * bytes.len() + 64 * 1024 + 4 * output;
        assert!(allocated <= most, "{allocated} bytes were allocated for {}: {ended:?}", bytes.len());
    }
}
