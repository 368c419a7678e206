//! Lead: steps run ahead of the room's time, so that inputs reach the host in time.

use parlor_client_core::{Options, RoomCore};
use parlor_proto::{Instant, MemberId};
use parlor_sim::{Link, PeerId, SEEDS, Sim, for_seeds};
use parlor_sync::limits::MARGIN_WANTED;
use std::cell::RefCell;
use std::rc::Rc;

/// The inputs that the host used: the step, and the step number in the input of player 1.
type Used = Rc<RefCell<Vec<(u32, Option<u32>)>>>;

/// A guest with lead whose input for each step is the step's number, and a host that records what it uses.
fn play(sim: &mut Sim, host: Link, guest: Link) -> (PeerId, PeerId, Used) {
    let host = sim.host(Options::host("tanks"), host);
    let code = sim.code(host);
    let guest = sim.enter(Options { lead: true, ..Options::join("tanks", code) }, guest);
    sim.play(guest, |room, _| send_number(room));
    let used = Used::default();
    let noted = Rc::clone(&used);
    sim.play(host, move |room: &mut RoomCore, _: Instant| {
        let tick = room.tick_number().expect("it is open").0;
        let input = room.input::<u32>(MemberId(1)).expect("it is a number");
        noted.borrow_mut().push((tick, input));
    });
    (host, guest, used)
}

fn send_number(room: &mut RoomCore) {
    let tick = room.tick_number().expect("it is open").0;
    room.send_input(&tick).expect("it is small");
    assert_eq!(
        room.input::<u32>(room.local_id().expect("it is in")),
        Ok(Some(tick)),
        "its own is known at once"
    );
}

/// Steps that used another input than their own.
fn wrong(used: &Used) -> usize {
    used.borrow().iter().filter(|(tick, input)| *input != Some(*tick)).count()
}

#[test]
fn each_input_is_used_in_its_own_step() {
    for_seeds(SEEDS / 10, |seed| {
        for (host, guest) in [
            (Link::quic().latency_ms(0), Link::quic().latency_ms(0)),
            (Link::quic(), Link::quic()),
            (Link::quic().latency_ms(5), Link::quic().latency_ms(70)),
            (Link::quic().latency_ms(60), Link::websocket().latency_ms(20)),
            (Link::quic().latency_ms(5), Link::quic().latency_ms(30).jitter_ms(40)),
        ] {
            let mut sim = Sim::new(seed);
            let (host, guest, used) = play(&mut sim, host, guest);
            sim.run_for(6_000);
            used.borrow_mut().clear();
            sim.run_for(20_000);
            let steps = used.borrow().len();
            let diagnostics = sim.room(guest).diagnostics();
            let what = format!("{:?} and {:?}, {diagnostics:?}", sim.link(host), sim.link(guest));
            assert!((598..=602).contains(&steps), "{steps} steps with {what}");
            assert!(wrong(&used) <= 1, "{} of {steps} with {what}", wrong(&used));
            // Not much earlier than it must be.
            assert!(diagnostics.lead_ms >= 33.0 && diagnostics.lead_ms <= 230.0, "{what}");
            assert!(diagnostics.input_margin_ms.is_some_and(|ms| (-5..=105).contains(&ms)), "{what}");
            assert!((0.95..=1.05).contains(&diagnostics.dilation), "{what}");
        }
    });
}

#[test]
fn who_has_joined_soon_has_the_lead_that_is_needed_and_no_longer_one() {
    for_seeds(SEEDS / 10, |seed| {
        for rtt_ms in [0, 40, 80, 100, 150] {
            let mut sim = Sim::new(seed);
            let link = Link::quic().latency_ms(rtt_ms / 2);
            let (_, guest, used) = play(&mut sim, Link::quic().latency_ms(0), link);
            sim.run_until(2_000, "it is in", |sim| sim.room(guest).local_id().is_some());
            sim.run_for(2_000);
            used.borrow_mut().clear();
            // Half a round trip, the wanted margin, and up to a frame of waiting at both ends.
            let most_ms = rtt_ms as f64 / 2.0 + MARGIN_WANTED.as_secs_f64() * 1_000.0 + 2.0 * 1_000.0 / 60.0;
            let mut longest_ms: f64 = 0.0;
            for _ in 0..150 {
                sim.run_for(100);
                let lead_ms = sim.room(guest).diagnostics().lead_ms;
                longest_ms = longest_ms.max(lead_ms);
                assert!(lead_ms >= rtt_ms as f64 / 2.0, "{lead_ms} ms of lead, round trip {rtt_ms} ms");
            }
            assert!(longest_ms <= most_ms, "{longest_ms} ms of lead, round trip {rtt_ms} ms");
            assert_eq!(wrong(&used), 0, "round trip {rtt_ms} ms");
        }
    });
}

#[test]
fn what_is_lost_comes_again_in_time() {
    for_seeds(SEEDS / 5, |seed| {
        let mut sim = Sim::new(seed);
        let link = Link::quic().latency_ms(40).jitter_ms(20).loss(50);
        let (host, guest, used) = play(&mut sim, Link::quic().latency_ms(0), link);
        sim.run_for(10_000);
        let before = sim.room(host).diagnostics();
        used.borrow_mut().clear();
        sim.run_for(60_000);
        let after = sim.room(host).diagnostics();
        // Two in a row are lost four times in a minute, which the lead does not cover. An earlier missing one
        // may arrive now.
        let late = after.inputs_late - before.inputs_late;
        assert_eq!(after.inputs_missing - before.inputs_missing, wrong(&used) as u64);
        assert!(
            late <= wrong(&used) as u64 + 1 && wrong(&used) <= 9,
            "{} of 1,800, {late} late",
            wrong(&used)
        );
        let lead_ms = sim.room(guest).diagnostics().lead_ms;
        assert!(lead_ms <= 230.0, "{lead_ms} ms of lead");
        let counters = sim.room(host).input_counters(MemberId(1)).expect("it sends");
        assert_eq!((counters.ancient, counters.far_ahead, counters.unreadable), (0, 0, 0));
        // What was missing came in the end.
        assert!(counters.missing <= counters.late + 1, "{counters:?}");
    });
}

#[test]
fn who_sends_no_inputs_is_a_spectator() {
    let mut sim = Sim::new(1);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let code = sim.code(host);
    let guest = sim.enter(Options { lead: true, ..Options::join("tanks", code) }, Link::quic());
    sim.play(host, |room, _| assert_eq!(room.inputs::<u32>(), Ok(Vec::new())));
    sim.run_for(5_000);
    assert_eq!(sim.room(host).input_counters(MemberId(1)), None);
    assert_eq!(sim.room(host).diagnostics().inputs_missing, 0);
    assert_eq!(sim.room(guest).diagnostics().input_margin_ms, None);
}

#[test]
fn a_game_that_stalls_goes_on_with_its_inputs_in_time() {
    for_seeds(SEEDS / 10, |seed| {
        let mut sim = Sim::new(seed);
        let (host, guest, used) = play(&mut sim, Link::quic(), Link::quic().latency_ms(50));
        sim.run_for(6_000);
        for (peer, ms) in [(guest, 700), (host, 700), (guest, 6_000)] {
            sim.stall(peer, true);
            sim.run_for(ms);
            sim.stall(peer, false);
            sim.run_for(1_000);
            used.borrow_mut().clear();
            sim.run_for(5_000);
            assert!(wrong(&used) <= 1, "{} after a stall of {ms} ms of {peer}", wrong(&used));
        }
    });
}

#[test]
fn without_lead_the_newest_input_counts() {
    let mut sim = Sim::new(1);
    let host = sim.host(Options::host("tanks"), Link::quic());
    let code = sim.code(host);
    let guest = sim.join(code, Link::quic());
    sim.play(guest, |room, _| send_number(room));
    let used = Used::default();
    let noted = Rc::clone(&used);
    sim.play(host, move |room, _| {
        let tick = room.tick_number().expect("it is open").0;
        noted.borrow_mut().push((tick, room.input(MemberId(1)).expect("it is a number")));
    });
    sim.run_for(3_000);
    let diagnostics = sim.room(guest).diagnostics();
    assert_eq!((diagnostics.lead_ms, diagnostics.dilation), (0.0, 1.0));
    let used = used.borrow();
    let behind = used.iter().skip(30).map(|(tick, input)| tick - input.expect("it sends"));
    assert!(behind.clone().all(|behind| (1..=3).contains(&behind)), "{:?}", behind.collect::<Vec<_>>());
}
