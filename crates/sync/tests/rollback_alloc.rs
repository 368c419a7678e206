//! A rollback session allocates nothing for a step, a rollback or a message, once warm. A test binary of its
//! own, because it counts the allocations of the whole process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_proto::Tick;
use parlor_sync::rollback::{Config, From, Request, Rollback, States};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Does the session's requests, with a state on the heap.
fn run(session: &mut Rollback, states: &mut States<Vec<u8>>, state: &mut Vec<u8>) {
    while let Some(request) = session.poll_request() {
        match request {
            Request::Save { tick } => {
                states.save(tick, state);
                session.saved(tick, u64::from(state[0]));
            }
            Request::Load { tick } => state.clone_from(states.load(tick).unwrap()),
            Request::Advance { inputs, .. } => {
                let sum = inputs
                    .iter()
                    .flat_map(|input| input.bytes())
                    .fold(1u8, |sum, byte| sum.wrapping_add(*byte));
                state.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(5).wrapping_add(sum));
            }
        }
    }
}

#[test]
fn once_warm_nothing_is_allocated() {
    let configs = [Config::sync_test(4, Tick(0), 8), Config::new(2, 0, Tick(0)), Config::new(2, 1, Tick(0))];
    let mut ends =
        configs.map(|config| (Rollback::new(config).unwrap(), States::new(&config), vec![0u8; 4_096]));
    // Messages take 5 ticks; their buffers are allocated before.
    let mut wire: Vec<Vec<(From, Vec<u8>)>> = (0..6).map(|_| Vec::with_capacity(8)).collect();
    let mut allocations = 0;
    let mut out = Vec::with_capacity(2_048);
    for tick in 0u32..600 {
        let due = std::mem::take(&mut wire[tick as usize % 6]);
        for (from, bytes) in due {
            let (bytes, to) = (Bytes::from(bytes), if from == From::Player(0) { 2 } else { 1 });
            // The bytes of a received packet are shared already; a buffer of its own would become shared
            // here.
            let _shared = bytes.clone();
            let region = Region::new(ALLOCATOR);
            ends[to].0.handle_message(from, bytes).unwrap();
            allocations += if tick > 300 { region.change().allocations } else { 0 };
        }
        for (index, (session, states, state)) in ends.iter_mut().enumerate() {
            let region = Region::new(ALLOCATOR);
            let players = if index == 0 {
                0..4
            } else {
                u8::try_from(index - 1).unwrap()..u8::try_from(index).unwrap()
            };
            for player in players {
                session.add_input(player, &[u8::try_from(tick / 7 % 200).unwrap(), player]).unwrap();
            }
            while session.step(Tick(tick)) {
                run(session, states, state);
            }
            assert_eq!(session.poll_event(), None);
            allocations += if tick > 300 { region.change().allocations } else { 0 };
            loop {
                let region = Region::new(ALLOCATOR);
                if session.poll_message(&mut out).is_none() {
                    break;
                }
                allocations += if tick > 300 { region.change().allocations } else { 0 };
                if let Some(player) = session.config().arbiter.filter(|_| index > 0) {
                    let from = From::Player(if index == 1 { player } else { 1 });
                    wire[(tick as usize + 5) % 6].push((from, out.clone()));
                }
            }
        }
    }
    for (session, ..) in &ends {
        let diagnostics = session.diagnostics();
        assert!(diagnostics.steps > 590 && diagnostics.rollbacks > 50, "{diagnostics:?}");
    }
    assert_eq!(allocations, 0, "a step, a rollback or a message allocates");
}
