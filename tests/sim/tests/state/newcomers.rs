//! What a newcomer sees and does.

use parlor_client_core::Options;
use parlor_sim::{APP, Link, PeerId, Sim, for_seeds};
use parlor_sync::keyed::Audience;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// The interpolation delay of a guest one second after it joined, in ms, and its late inputs by then. The
/// host's game rests for `rest_ms` before, and then moves.
fn joins(seed: u64, rest_ms: u64, link: Link, stall_ms: u64) -> (f64, u64) {
    let mut sim = Sim::new(seed);
    let host = sim.host(Options::host(APP), link);
    let moves = Rc::new(Cell::new(true));
    let seen = Rc::clone(&moves);
    sim.play(host, move |room, _| {
        let tick = room.tick_number().expect("the room is open").0;
        if seen.get() {
            room.set("x", &tick, Audience::All).expect("the host writes");
        }
    });
    sim.run_for(3_000);
    moves.set(false);
    sim.run_for(rest_ms);
    let mut options = Options::join(APP, sim.code(host));
    options.lead = true;
    let guest = sim.enter(options, link);
    sim.play(guest, |room, _| {
        let _: Result<(), _> = room.send_input(&1u8);
    });
    let is_in =
        |sim: &Sim, guest: PeerId| sim.room(guest).is_connected() && sim.room(guest).player_count() > 1;
    sim.run_until(2_000, "it is in", |sim| is_in(sim, guest));
    if stall_ms > 0 {
        sim.stall_hub(Duration::from_millis(stall_ms));
    }
    moves.set(true);
    sim.run_for(1_000);
    let diagnostics = sim.room(guest).diagnostics();
    (diagnostics.buffer_delay_ms, diagnostics.inputs_late)
}

#[test]
fn a_second_after_joining_on_loopback_a_guest_is_drawn_close_behind() {
    for_seeds(3, |seed| {
        for rest_ms in [0, 150, 430, 900, 5_000] {
            let (behind_ms, late) = joins(seed, rest_ms, Link::quic(), 0);
            assert!(behind_ms <= 100.0, "seed {seed}, after {rest_ms} ms of rest: {behind_ms} ms behind");
            assert_eq!(late, 0, "seed {seed}, after {rest_ms} ms of rest");
        }
        // The first packets waited in a busy server.
        let (behind_ms, _) = joins(seed, 0, Link::quic(), 400);
        assert!(behind_ms <= 100.0, "seed {seed}, after a stall: {behind_ms} ms behind");
    });
}
