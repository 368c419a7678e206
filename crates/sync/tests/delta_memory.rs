//! Threats 15 and 16: how much memory bodies from a peer can take, whatever they say.
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

/// The longest blob that a component has.
const BLOB_BYTES: usize = 16_384;

fn tables() -> Tables {
    let schema =
        Schema::bare().component(Component::builder("c").field("b", Kind::bytes(16_384)).build()).build();
    Tables::new(&schema.expect("a good schema"), TickRate::DEFAULT)
}

/// Bytes that were allocated in all while this body was read to its end or until it was refused, and bytes of state that
/// came of it.
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

/// A body of entries whose blobs are these.
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
    // Blobs that are all new, and cost next to nothing: each is another byte again and again.
    let bomb = body(&tables, (0..200u8).map(|byte| vec![byte; BLOB_BYTES]));
    let (allocated, output, ended) = read(&tables, &bomb);
    assert!(matches!(ended, Some(DeltaError::TooMuch { .. })), "{ended:?}");
    assert!(bomb.len() <= 100 * 1024, "{} bytes are no bomb", bomb.len());
    assert!(output <= 128 * 1024, "{output} bytes of state came of one body");
    assert!(allocated <= 1024 * 1024, "{allocated} bytes were allocated for {}", bomb.len());
    // A body that is cut off within the first blob, which says that it is long.
    let long =
        body(&tables, std::iter::once((0..BLOB_BYTES).map(|at| (at * at / 7).to_le_bytes()[0]).collect()));
    for len in [16, 64, 256, 1_024] {
        let (allocated, output, ended) = read(&tables, &long[..len]);
        assert!(ended.is_some() && output == 0, "{len} bytes of {} were taken for all", long.len());
        assert!(allocated <= 8 * len + 64 * 1024, "{allocated} bytes were allocated for {len}");
    }
    // Bytes from anywhere.
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
