//! Lag compensation: hits count where the shooter aimed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]
#![allow(clippy::cast_possible_truncation, reason = "what is drawn from small ranges fits")]

use parlor_client_core::{Options, RoomCore, RoomError};
use parlor_proto::{ApiMisuse, Instant, MemberId, Tick};
use parlor_sim::{Link, PeerId, Rng, Sim};
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A target nearer to a shot than this is hit, in metres.
const RADIUS_M: f32 = 1.0;
const TARGETS: u16 = 4;
const HZ: f64 = 30.0;

#[derive(Clone, Debug, PartialEq)]
struct Target {
    at: [f32; 2],
}
replicated!(Target as "target" => { at: Kind::vector2(-64.0, 64.0, 1.0 / 1_024.0) });

/// Targets drive around at 5 to 10 m/s, each on its own route.
fn place(target: u16, s: f64) -> Target {
    let (pace, size) = (0.6 + 0.2 * f64::from(target), 9.0);
    let at =
        [(pace * s).sin() + 0.2 * (2.0 * pace * s).sin(), (pace * s).cos() - 0.1 * (3.0 * pace * s).cos()];
    Target { at: at.map(|part| (part * size) as f32) }
}

/// A player's input of a step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Shot {
    number: u32,
    target: u16,
    aim: [f32; 2],
}

fn is_hit(target: &Target, aim: [f32; 2]) -> bool {
    (target.at[0] - aim[0]).hypot(target.at[1] - aim[1]) <= RADIUS_M
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Target>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), lead: true, ..options }
}

/// What was seen and what was judged, by the number of the shot.
#[derive(Debug, Default)]
struct Shots {
    seen: BTreeMap<u32, bool>,
    judged: BTreeMap<u32, Judged>,
}

#[derive(Clone, Copy, Debug)]
struct Judged {
    is_hit: bool,
    /// Whether it would have hit the present state.
    is_present_hit: bool,
    is_beyond: bool,
    back: Duration,
}

impl Shots {
    /// The number of judged shots within the maximum rewind, and the part whose judgement equals what was
    /// seen.
    fn agreeing(&self, judgement: impl Fn(&Judged) -> bool) -> (usize, f64) {
        let within: Vec<_> = self.judged.iter().filter(|(_, judged)| !judged.is_beyond).collect();
        let agree = within.iter().filter(|(number, judged)| self.seen[number] == judgement(judged)).count();
        (within.len(), agree as f64 / within.len().max(1) as f64)
    }
}

/// One step at the host: targets move, and shots are judged.
fn judge(room: &mut RoomCore, now: Instant, shooter: MemberId, shots: &RefCell<Shots>) {
    let s = f64::from(room.tick_number().unwrap().0) / HZ;
    let mut world = room.world(now).unwrap();
    for target in 0..TARGETS {
        let entity = world.entities().get(usize::from(target)).copied();
        let entity = entity.unwrap_or_else(|| world.spawn(None).unwrap());
        world.insert(entity, &place(target, s)).unwrap();
    }
    if room.player(shooter).is_none() {
        return;
    }
    let Some(shot) = room.input::<Shot>(shooter).unwrap() else { return };
    let present = room.world(now).unwrap().entities()[usize::from(shot.target)];
    let present = room.world(now).unwrap().component::<Target>(present).unwrap().unwrap();
    let judged = room.rewind(shooter, |past| {
        let entity = past.entities()[usize::from(shot.target)];
        let target = past.component::<Target>(entity).unwrap().unwrap();
        Judged {
            is_hit: is_hit(&target, shot.aim),
            is_present_hit: is_hit(&present, shot.aim),
            is_beyond: past.is_beyond(),
            back: past.back(),
        }
    });
    // An input that is reused because the next one is missing is not another shot.
    shots.borrow_mut().judged.entry(shot.number).or_insert(judged.unwrap());
}

/// One step at the shooter: it aims at what it draws, sometimes slightly beside.
fn shoot(room: &mut RoomCore, now: Instant, rng: &mut Rng, shots: &RefCell<Shots>) {
    let number = room.tick_number().unwrap().0;
    let target = rng.below(u64::from(TARGETS)) as u16;
    let mut world = room.world(now).unwrap();
    let Some(entity) = world.entities().get(usize::from(target)).copied() else { return };
    let drawn = world.interpolated_component::<Target>(entity).unwrap().unwrap();
    let (beside, angle) = (rng.below(2_000) as f32 / 1_000.0 * RADIUS_M, rng.below(6_283) as f32 / 1_000.0);
    let aim = [drawn.at[0] + beside * angle.cos(), drawn.at[1] + beside * angle.sin()];
    shots.borrow_mut().seen.insert(number, is_hit(&drawn, aim));
    room.send_input(&Shot { number, target, aim }).unwrap();
}

/// A room in which a guest shoots once a step over `link`.
fn range(seed: u64, link: Link, host: Options) -> (Sim, PeerId, PeerId, Rc<RefCell<Shots>>) {
    let mut sim = Sim::new(seed);
    let shots = Rc::new(RefCell::new(Shots::default()));
    let host = sim.host(options(host), Link::quic().latency_ms(0));
    let shooter = MemberId(1);
    let (own, mut rng) = (Rc::clone(&shots), Rng::new(seed));
    sim.play(host, move |room, now| judge(room, now, shooter, &own));
    let code = sim.code(host);
    let guest = sim.enter(options(Options::join("tanks", code)), link);
    let own = Rc::clone(&shots);
    sim.play(guest, move |room, now| shoot(room, now, &mut rng, &own));
    (sim, host, guest, shots)
}

#[test]
fn t12_hits_agree_with_what_the_shooter_saw() {
    let mut seed = 100;
    for rtt_ms in [0, 40, 80, 150] {
        for (jitter_ms, loss) in [(0, 0), (10, 20), (20, 50), (40, 50)] {
            seed += 1;
            let link = Link::quic().latency_ms(rtt_ms / 2).jitter_ms(jitter_ms).loss(loss);
            let (mut sim, host, _, shots) = range(seed, link, Options::host("tanks"));
            sim.run_for(60_000);
            let shots = shots.borrow();
            let (within, agree) = shots.agreeing(|judged| judged.is_hit);
            let (_, at_present) = shots.agreeing(|judged| judged.is_present_hit);
            let back: Duration = shots.judged.values().map(|judged| judged.back).sum();
            let what = format!(
                "seed {seed}: {rtt_ms} ms, jitter {jitter_ms} ms, loss {loss}/1000: {within} of {} shots within, {:.2}% agree ({:.2}% without looking back), {:.0} ms back on average",
                shots.judged.len(),
                agree * 100.0,
                at_present * 100.0,
                back.as_secs_f64() * 1_000.0 / shots.judged.len() as f64,
            );
            assert!(within == 0 || agree >= 0.99, "{what}");
            assert!(within < 100 || at_present < 0.95, "the present would do as well: {what}");
            // With high latency and much jitter, about half exceed the maximum rewind.
            assert!(within >= if rtt_ms <= 40 && jitter_ms <= 20 { 1_000 } else { 0 }, "{what}");
            let counted = sim.room(host).diagnostics();
            assert!(counted.rewinds >= shots.judged.len() as u64, "{what}");
            assert!(counted.rewinds_beyond >= (shots.judged.len() - within) as u64, "{what}");
        }
    }
}

#[test]
fn a_game_can_look_back_less_far_and_what_is_beyond_is_counted() {
    let longest = Duration::from_millis(50);
    let host = Options { rewind_max: longest, ..Options::host("tanks") };
    let (mut sim, host, _, shots) = range(1, Link::quic().latency_ms(60), host);
    sim.run_for(10_000);
    let shots = shots.borrow();
    let late: Vec<_> = shots.judged.values().skip(100).collect();
    assert!(late.len() > 100, "{} shots", late.len());
    assert!(late.iter().all(|judged| judged.is_beyond && judged.back == longest), "{late:?}");
    let counted = sim.room(host).diagnostics();
    assert!(counted.rewinds_beyond >= late.len() as u64 && counted.rewinds >= counted.rewinds_beyond);
}

#[test]
fn threat_23_no_game_looks_back_farther_than_the_bound_whatever_a_member_says_it_saw() {
    let host = Options { rewind_max: Duration::from_secs(9), ..Options::host("tanks") };
    let (mut sim, _, _, shots) = range(2, Link::quic().latency_ms(300), host);
    sim.run_for(10_000);
    let shots = shots.borrow();
    let last = shots.judged.values().next_back().unwrap();
    assert!(last.is_beyond && last.back == Duration::from_millis(250), "{last:?}");
}

#[test]
fn own_entities_and_the_hosts_own_view_are_the_present() {
    let (mut sim, host, guest, _) = range(3, Link::quic().latency_ms(40), Options::host("tanks"));
    sim.run_for(3_000);
    let (me, shooter) = (MemberId(0), MemberId(1));
    sim.act(host, |room, now| {
        let world = room.world(now).unwrap();
        let entity = world.entities()[0];
        let present = world.component::<Target>(entity).unwrap().unwrap();
        let seen = |room: &mut RoomCore, by| {
            let seen =
                room.rewind(by, |past| (past.component::<Target>(entity).unwrap().unwrap(), past.back()));
            seen.unwrap()
        };
        let (by_guest, back) = seen(room, shooter);
        assert!(back > Duration::from_millis(50) && by_guest != present, "{by_guest:?} {back:?} ago");
        assert_eq!(seen(room, me), (present.clone(), Duration::ZERO));
        room.world(now).unwrap().transfer(entity, Some(shooter)).unwrap();
        assert_eq!(seen(room, shooter).0, present, "its own");
    });
    sim.act(host, |room, _| {
        let nobody = room.rewind(MemberId(9), |_| ()).unwrap_err();
        assert_eq!(nobody, RoomError::Misuse(ApiMisuse::NoSuchPlayer(MemberId(9))));
    });
    sim.act(guest, |room, _| {
        let error = room.rewind(me, |_| ()).unwrap_err();
        let not_host = ApiMisuse::NotHost { what: "look back", local: shooter };
        assert_eq!(error, RoomError::Misuse(not_host));
    });
}

/// An entity that each step moves by its player's input, differently in each step.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Walker {
    x: i32,
}
replicated!(Walker as "walker" => { x: Kind::int(-1_000_000, 1_000_000) });

impl Walker {
    fn step(self, tick: Tick, want: i32) -> Walker {
        Walker { x: self.x + want * (1 + (tick.0 % 7).cast_signed()) }
    }
}

fn walking(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Walker>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), ..options }
}

/// One step at the host: the walker follows its input. It spawns with the first input.
fn obey(room: &mut RoomCore, now: Instant) {
    let tick = room.tick_number().unwrap();
    if room.player(MemberId(1)).is_none() {
        return;
    }
    let Some(want) = room.input::<i32>(MemberId(1)).unwrap() else { return };
    let mut world = room.world(now).unwrap();
    let walker = world.entities().first().copied().unwrap_or_else(|| world.spawn(None).unwrap());
    let before = world.component::<Walker>(walker).unwrap().unwrap_or(Walker { x: 0 });
    world.insert(walker, &before.step(tick, want)).unwrap();
}

/// The guest's input of each step, and the walker's position at the host after each.
fn walk(seed: u64, host: Options, link: Link) -> (Sim, PeerId, PeerId, BTreeMap<u32, i32>) {
    let mut sim = Sim::new(seed);
    let host = sim.host(walking(host), Link::quic().latency_ms(0));
    sim.play(host, obey);
    let code = sim.code(host);
    let guest = sim.enter(walking(Options::join("tanks", code)), link);
    sim.run_for(1_000);
    let wants = Rc::new(RefCell::new(BTreeMap::new()));
    let (own, mut rng) = (Rc::clone(&wants), Rng::new(seed));
    sim.play(guest, move |room, _| {
        let tick = room.tick_number().unwrap().0;
        // Rest at first, so that the walker does not move in the step in which it spawns.
        let mut wants = own.borrow_mut();
        let want = if wants.len() < 30 || wants.len() > 400 { 0 } else { rng.below(2_001) as i32 - 1_000 };
        wants.insert(tick, want);
        room.send_input(&want).unwrap();
    });
    sim.run_for(16_000);
    let wants = wants.borrow().clone();
    (sim, host, guest, wants)
}

/// The walker's position if every input counts in its step.
fn intended(wants: &BTreeMap<u32, i32>) -> i32 {
    wants.iter().fold(Walker { x: 0 }, |walker, (tick, want)| walker.step(Tick(*tick), *want)).x
}

fn x(sim: &mut Sim, peer: PeerId) -> i32 {
    sim.act(peer, |room, now| {
        let world = room.world(now).unwrap();
        world.component::<Walker>(world.entities()[0]).unwrap().unwrap().x
    })
}

#[test]
fn steps_are_run_again_for_inputs_that_came_late() {
    for seed in 1..=4 {
        // Inputs are not reordered: otherwise the older one would be discarded.
        let link = Link::quic().latency_ms(50).jitter_ms(seed * 4);
        let host = |resimulate_ticks| Options { resimulate_ticks, ..Options::host("tanks") };
        let (mut sim, at_host, at_guest, wants) = walk(seed, host(12), link);
        assert_eq!(x(&mut sim, at_host), intended(&wants), "seed {seed}");
        assert_eq!(x(&mut sim, at_guest), intended(&wants), "seed {seed}");
        let counted = sim.room(at_host).diagnostics();
        assert!(counted.resimulations > 100 && counted.inputs_late > 100, "seed {seed}: {counted:?}");
        let (mut sim, at_host, _, wants) = walk(seed, host(0), link);
        assert_ne!(x(&mut sim, at_host), intended(&wants), "seed {seed}: it would have come to this anyway");
        assert_eq!(sim.room(at_host).diagnostics().resimulations, 0);
    }
}

#[test]
fn a_host_that_runs_behind_is_in_time_for_inputs() {
    let link = Link::quic().latency_ms(40).jitter_ms(20);
    let host = |simulation_delay_ticks| Options { simulation_delay_ticks, ..Options::host("tanks") };
    let (mut sim, at_host, _, wants) = walk(7, host(5), link);
    assert_eq!(x(&mut sim, at_host), intended(&wants));
    let counted = sim.room(at_host).diagnostics();
    assert_eq!((counted.inputs_late, counted.resimulations), (0, 0), "{counted:?}");
    let behind = sim.act(at_host, |room, now| {
        let due = Duration::from_secs(1).mul_f64(f64::from(room.tick_number().unwrap().0) / HZ);
        room.server_time(now).unwrap() - due
    });
    let ticks = behind.as_secs_f64() * HZ;
    assert!((5.0..6.6).contains(&ticks), "{ticks} ticks behind");
    let (sim, at_host, ..) = walk(7, host(0), link);
    assert!(sim.room(at_host).diagnostics().inputs_late > 100, "it would have been in time anyway");
}

/// An input that is up to 64 steps late is taken.
#[test]
fn threat_23_a_late_input_has_no_more_steps_run_again_than_the_bound() {
    let mut sim = Sim::new(9);
    let host = Options { resimulate_ticks: 1_000, ..Options::host("tanks") };
    let host = sim.host(walking(host), Link::quic().latency_ms(0));
    let in_a_row = Rc::new(Cell::new((0, 0)));
    let own = Rc::clone(&in_a_row);
    sim.play(host, move |room, now| {
        let (now_in_a_row, longest) = own.get();
        let run = if room.is_replay() { now_in_a_row + 1 } else { 0 };
        own.set((run, run.max(longest)));
        obey(room, now);
    });
    let code = sim.code(host);
    let guest = sim.enter(walking(Options::join("tanks", code)), Link::quic().latency_ms(1_400));
    sim.run_until(20_000, "a seat", |sim| sim.room(guest).is_connected());
    sim.play(guest, |room, _| room.send_input(&room.tick_number().unwrap().0).unwrap());
    sim.run_for(8_000);
    let counted = sim.room(host).diagnostics();
    assert!(counted.inputs_late > 100 && counted.resimulations > 20, "{counted:?}");
    assert!(counted.resimulations_short > 20, "{counted:?}");
    assert_eq!(in_a_row.get().1, 32, "steps run again in a row");
}

/// Rolling back neither spawns nor despawns entities: steps before a spawn are not run again.
#[test]
fn entities_that_came_stay_and_come_once() {
    let mut sim = Sim::new(8);
    let host = Options { resimulate_ticks: 16, ..Options::host("tanks") };
    let host = sim.host(walking(host), Link::quic().latency_ms(0));
    let came = Rc::new(RefCell::new(0));
    let count = Rc::clone(&came);
    sim.play(host, move |room, now| {
        obey(room, now);
        let tick = room.tick_number().unwrap();
        let mut world = room.world(now).unwrap();
        if !world.entities().is_empty() && tick.0 % 5 == 0 {
            world.spawn(None).unwrap();
            *count.borrow_mut() += 1;
        }
    });
    let code = sim.code(host);
    let guest = sim.enter(walking(Options::join("tanks", code)), Link::quic().latency_ms(100));
    sim.run_for(1_000);
    sim.play(guest, |room, _| room.send_input(&1).unwrap());
    sim.run_for(5_000);
    let entities = sim.act(host, |room, now| room.world(now).unwrap().entities().len());
    assert_eq!(entities, *came.borrow() + 1);
    let counted = sim.room(host).diagnostics();
    assert!(counted.resimulations > 20 && counted.resimulations_short > 20, "{counted:?}");
}
