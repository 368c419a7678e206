//! Effects and corrections where steps are run again: what games that roll back rely on.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Options, RoomCore};
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sim::{Link, PeerId, Sim, for_seeds};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Target {
    health: i32,
    x: i32,
}
replicated!(Target as "target" => { health: Kind::int(0, 1_000), x: Kind::int(-100_000, 100_000) });

const GUEST: MemberId = MemberId(1);
/// Effects that the guest raises.
const EFFECTS: u32 = 543;

/// What one process showed and had.
#[derive(Debug, Default)]
struct Seen {
    effects: BTreeMap<u32, u32>,
    replays: u32,
    /// The health at the end of the first run of each step, and of the last one.
    first: BTreeMap<i32, i32>,
    last: BTreeMap<i32, i32>,
}

type Shared = Rc<RefCell<Seen>>;

fn target(room: &mut RoomCore, now: Instant) -> Option<(EntityId, Target)> {
    let world = room.world(now).unwrap();
    let entity = *world.entities().first()?;
    Some((entity, world.component(entity).unwrap()?))
}

/// One step, the same at host and guest: an input above zero is a shot, numbered from 1 on. It is shown once and
/// costs health; what is left depends on the step of the shot.
fn step(room: &mut RoomCore, now: Instant, seen: &Shared) {
    let is_replay = room.is_replay();
    let tick = room.tick_number().unwrap().0.cast_signed();
    if room.is_host() && room.player(GUEST).is_some() && target(room, now).is_none() {
        let mut world = room.world(now).unwrap();
        let entity = world.spawn(Some(GUEST)).unwrap();
        world.insert(entity, &Target { health: 1_000, x: 0 }).unwrap();
    }
    let shot = room.input::<u32>(GUEST).unwrap().unwrap_or_default();
    let mut seen = seen.borrow_mut();
    seen.replays += u32::from(is_replay);
    let Some((entity, mut target)) = target(room, now) else { return };
    if shot > 0 {
        // An input that is missing repeats the one before it, which has the same number.
        if room.once("shot", shot.into()) {
            *seen.effects.entry(shot).or_default() += 1;
        }
        target.health = (target.health - 1).max(0);
        target.x += shot.cast_signed() % 7 * (1 + tick % 5);
    }
    room.world(now).unwrap().insert(entity, &target).unwrap();
    seen.first.entry(tick).or_insert(target.health);
    seen.last.insert(tick, target.health);
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Target>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), predicted: vec!["target".to_owned()], ..options }
}

struct Game {
    sim: Sim,
    host: (PeerId, Shared),
    guest: (PeerId, Shared),
}

/// A guest that shoots `shots` times, in every second step.
fn game(seed: u64, resimulate_ticks: u32, link: Link, shots: u32) -> Game {
    let mut sim = Sim::new(seed);
    let host = Options { resimulate_ticks, ..Options::host("tanks") };
    let host = (sim.host(options(host), Link::quic().latency_ms(0)), Shared::default());
    let seen = Rc::clone(&host.1);
    sim.play(host.0, move |room, now| step(room, now, &seen));
    let code = sim.code(host.0);
    let guest = (sim.enter(options(Options::join("tanks", code)), link), Shared::default());
    sim.run_until(20_000, "a seat", |sim| sim.room(guest.0).is_connected());
    sim.run_for(1_000);
    let (seen, mut shot) = (Rc::clone(&guest.1), 0);
    sim.play(guest.0, move |room, now| {
        if !room.is_replay() {
            let tick = room.tick_number().unwrap().0;
            let fires = tick.is_multiple_of(2) && shot < shots && target(room, now).is_some();
            shot += u32::from(fires);
            room.send_input(&if fires { shot } else { 0 }).unwrap();
        }
        step(room, now, &seen);
    });
    sim.run_for(u64::from(shots) * 70 + 5_000);
    Game { sim, host, guest }
}

#[test]
fn m15_543_effects_raised_are_543_shown_despite_rollbacks() {
    for_seeds(2, |seed| {
        let link = Link::quic().latency_ms(60).jitter_ms(10).loss(50).outage_ms(250, 2_500);
        let Game { sim, host, guest } = game(seed, 16, link, EFFECTS);
        let wanted: BTreeMap<u32, u32> = (1..=EFFECTS).map(|shot| (shot, 1)).collect();
        let (host_seen, guest_seen) = (host.1.borrow(), guest.1.borrow());
        assert_eq!(guest_seen.effects, wanted, "where they were raised");
        assert_eq!(host_seen.effects, wanted, "where they were decided");
        assert!(host_seen.replays > 0 && guest_seen.replays > 0, "seed {seed}: no step was run again");
        assert_eq!(sim.room(guest.0).diagnostics().effects_forgotten, 0);
    });
}

#[test]
fn m15_a_late_input_corrects_health_that_was_published() {
    for_seeds(3, |seed| {
        let link = Link::quic().latency_ms(60).outage_ms(250, 2_500);
        let run = |resimulate_ticks| {
            let mut game = game(seed, resimulate_ticks, link, 200);
            let end = |sim: &mut Sim, peer| sim.act(peer, |room, now| target(room, now).unwrap().1);
            let (at_host, at_guest) = (end(&mut game.sim, game.host.0), end(&mut game.sim, game.guest.0));
            assert_eq!(at_host, at_guest);
            let counted = game.sim.room(game.host.0).diagnostics();
            let seen = game.host.1.borrow();
            let corrected = seen.first.iter().filter(|(tick, health)| seen.last[*tick] != **health).count();
            (at_host.health, corrected, counted)
        };
        let (health, corrected, counted) = run(24);
        assert!(counted.inputs_late > 0 && counted.resimulations > 0, "{counted:?}");
        assert!(corrected > 0, "health of {corrected} steps was published and corrected");
        assert_eq!(health, 800, "each of 200 shots counts once, in its own step");
        assert_ne!(run(0).0, 800, "it would have come to this anyway");
    });
}
