//! Games that bring their time to a room, instead of stepping by its clock.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Options, RoomCore};
use parlor_proto::{Instant, MemberId, Tick};
use parlor_sim::{Link, PeerId, Sim};
use parlor_sync::keyed::Audience;
use std::time::Duration;

const GUEST: MemberId = MemberId(1);
const FRAME_MS: u64 = 16;

/// Both send an input in each step, and the host publishes what it used.
fn step(room: &mut RoomCore) {
    let tick = room.tick_number().unwrap();
    room.send_input(&tick.0).unwrap();
    if room.is_host() {
        let used: Option<u32> = room.input(GUEST).unwrap();
        room.set("step", &(tick.0, used), Audience::All).unwrap();
    }
}

/// A room whose two games are driven by [`play`] alone.
fn room() -> (Sim, PeerId, PeerId) {
    let mut sim = Sim::new(11);
    let host = sim.host(Options::host("tanks"), Link::quic().latency_ms(5));
    let join = Options { lead: true, ..Options::join("tanks", sim.code(host)) };
    let guest = sim.enter(join, Link::quic().latency_ms(40).jitter_ms(10));
    [host, guest].iter().for_each(|peer| sim.stall(*peer, true));
    play(&mut sim, [(host, 100), (guest, 100)], 5_000);
    (sim, host, guest)
}

/// Runs frames in which each game brings so many percent of the time that passed. Returns the steps that each ran.
fn play(sim: &mut Sim, games: [(PeerId, u32); 2], ms: u64) -> [Vec<Tick>; 2] {
    let mut steps = [Vec::new(), Vec::new()];
    for _ in 0..ms / FRAME_MS {
        sim.run_for(FRAME_MS);
        for ((peer, percent), steps) in games.into_iter().zip(&mut steps) {
            sim.act(peer, |room, now| {
                while room.poll(now).is_some() {}
                room.advance(Duration::from_millis(FRAME_MS) * percent / 100, now);
                while room.tick(now) {
                    steps.push(room.tick_number().unwrap());
                    step(room);
                }
            });
        }
    }
    steps
}

fn dropped(sim: &Sim, peer: PeerId) -> u64 {
    sim.room(peer).diagnostics().ticks_dropped
}

/// The steps of the room in a span of time.
fn due(from: Instant, to: Instant) -> usize {
    usize::try_from(to.saturating_since(from).as_micros() * 30 / 1_000_000).unwrap()
}

#[test]
fn m5_steps_are_those_of_the_room_whoever_brings_the_time() {
    // The frame clocks of two machines are never quite the same.
    for percent in [[97, 98], [100, 100], [103, 101], [300, 100]] {
        let (mut sim, host, guest) = room();
        let before = sim.now();
        let [of_host, of_guest] = play(&mut sim, [(host, percent[0]), (guest, percent[1])], 20_000);
        let due = due(before, sim.now());
        for (peer, steps) in [(host, of_host), (guest, of_guest)] {
            assert!(steps.len().abs_diff(due) <= 3, "{percent:?}: {} steps of {due}", steps.len());
            assert!(steps.windows(2).all(|two| two[0].next() == two[1]), "{percent:?}: one is left out");
            let diagnostics = sim.room(peer).diagnostics();
            let behind = diagnostics.game_time_behind;
            assert!(behind < Duration::from_millis(30), "{percent:?}: {behind:?} behind");
            assert_eq!(diagnostics.ticks_dropped, 0, "{percent:?}");
            assert_eq!(diagnostics.inputs_late, 0, "{percent:?}: the lead has what it needs");
        }
        let (step, used) = sim.room(guest).get::<(u32, Option<u32>)>("step").unwrap().unwrap();
        assert_eq!(used, Some(step), "{percent:?}: the input of each step is there when the host runs it");
    }
}

#[test]
fn m5_time_that_is_slower_than_the_rooms_drops_steps_and_counts_them() {
    let (mut sim, host, guest) = room();
    let (before, dropped_before) = (sim.now(), dropped(&sim, guest));
    let [of_host, of_guest] = play(&mut sim, [(host, 100), (guest, 50)], 20_000);
    let due = due(before, sim.now());
    assert!(of_host.len().abs_diff(due) <= 2, "the host's own time is not slow: {} of {due}", of_host.len());
    let dropped = usize::try_from(dropped(&sim, guest) - dropped_before).unwrap();
    assert!((of_guest.len() + dropped).abs_diff(due) <= 10, "{} and {dropped} of {due}", of_guest.len());
    // Half of the time, and the twentieth of it that is made up for.
    assert!((due * 48 / 100..due * 58 / 100).contains(&of_guest.len()), "{} of {due}", of_guest.len());
    let room = sim.room(guest);
    assert!(room.diagnostics().game_time_behind <= Duration::from_millis(250));
    assert!(room.is_connected());
    // With the right time it is as before.
    play(&mut sim, [(host, 100), (guest, 100)], 10_000);
    assert!(sim.room(guest).diagnostics().game_time_behind < Duration::from_millis(30));
    let late = sim.room(host).diagnostics().inputs_late;
    play(&mut sim, [(host, 100), (guest, 100)], 5_000);
    assert_eq!(sim.room(host).diagnostics().inputs_late, late, "its inputs are in time again");
}

#[test]
fn m5_a_game_that_pauses_runs_no_step_and_goes_on_with_the_room() {
    for paused in [0, 1] {
        let (mut sim, host, guest) = room();
        let games = |percent: u32| {
            let of = |peer: usize| if peer == paused { percent } else { 100 };
            [(host, of(0)), (guest, of(1))]
        };
        let peer = [host, guest][paused];
        let (tick, dropped_before) = (sim.room(peer).tick_number().unwrap(), dropped(&sim, peer));
        let steps = play(&mut sim, games(0), 3_000);
        assert!(steps[paused].is_empty(), "{paused}: {:?}", steps[paused]);
        assert!(steps[1 - paused].len().abs_diff(90) <= 3, "{paused}: the other goes on");
        assert_eq!(sim.room(peer).tick_number(), Some(tick));
        assert_eq!(dropped(&sim, peer), dropped_before, "{paused}: nothing is dropped while it pauses");

        let steps = play(&mut sim, games(100), 1_000);
        let first = *steps[paused].first().unwrap();
        let left_out = u64::from(first.since(tick).unsigned_abs()) - 1;
        assert!((85..95).contains(&left_out), "{paused}: {left_out} steps are left out");
        assert_eq!(dropped(&sim, peer) - dropped_before, left_out, "{paused}");
        assert!(steps[paused].len().abs_diff(30) <= 3, "{paused}: {} steps of a second", steps[paused].len());
        play(&mut sim, games(100), 2_000);
        let (step, used) = sim.room(guest).get::<(u32, Option<u32>)>("step").unwrap().unwrap();
        assert_eq!(used, Some(step), "{paused}: both are in phase again");
    }
}

#[test]
fn m5_one_call_brings_eight_steps_at_most() {
    for peer in [0, 1] {
        let (mut sim, host, guest) = room();
        let peer = [host, guest][peer];
        let before = dropped(&sim, peer);
        sim.run_for(1_000);
        let steps = sim.act(peer, |room, now| {
            while room.poll(now).is_some() {}
            room.advance(Duration::from_millis(1_000), now);
            std::iter::repeat_with(|| room.tick(now)).take_while(|due| *due).count()
        });
        assert_eq!(steps, 8, "of a second");
        assert!((20..25).contains(&(dropped(&sim, peer) - before)));
    }
}
