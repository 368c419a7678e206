//! How a member draws and leads, by a game's own options.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]
#![allow(clippy::cast_possible_truncation, reason = "a place is drawn as f32")]

use parlor_client_core::{Event, Options, RoomCore, StateSource};
use parlor_proto::{Instant, MemberId};
use parlor_sim::{Link, PeerId, Sim};
use parlor_sync::interpolation::RenderDelay;
use parlor_sync::keyed::Audience;
use parlor_sync::lead::LeadTuning;
use parlor_sync::replicated;
use parlor_sync::schema::{Kind, Schema};
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
struct Mover {
    x: f32,
}
replicated!(Mover as "mover" => { x: Kind::float(0.0, 10_000.0, 1.0 / 64.0) });

#[derive(Clone, Debug, PartialEq)]
struct Door {
    open: f32,
}
replicated!(Door as "door" => { open: Kind::float(0.0, 10_000.0, 1.0 / 64.0) });

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Mover>().replicate::<Door>().build().unwrap();
    Options { schema: Some(Arc::new(schema)), ..options }
}

/// Mover and door are where the step's number says.
fn step(room: &mut RoomCore, now: Instant) {
    let x = room.tick_number().unwrap().0 as f32;
    let mut world = room.world(now).unwrap();
    let entity = match world.entities().first() {
        Some(entity) => *entity,
        None => world.spawn(None).unwrap(),
    };
    world.insert(entity, &Mover { x }).unwrap();
    world.insert(entity, &Door { open: x }).unwrap();
}

fn room(guest: impl FnOnce(&mut Options), link: Link) -> (Sim, PeerId, PeerId) {
    let mut sim = Sim::new(3);
    let host = sim.host(options(Options::host("tanks")), Link::quic().latency_ms(0));
    sim.play(host, step);
    let mut join = options(Options::join("tanks", sim.code(host)));
    guest(&mut join);
    let guest = sim.enter(join, link);
    sim.run_for(5_000);
    (sim, host, guest)
}

fn drawn(sim: &mut Sim, guest: PeerId) -> (f32, f32) {
    sim.act(guest, |room, now| {
        let mut world = room.world(now).unwrap();
        let entity = world.entities()[0];
        let mover = world.interpolated_component::<Mover>(entity).unwrap().unwrap();
        (mover.x, world.interpolated_component::<Door>(entity).unwrap().unwrap().open)
    })
}

#[test]
fn m2_a_game_draws_a_component_by_its_own_function_and_the_others_as_the_schema_says() {
    // In the first half of a step the door stays, in the second it is there.
    let late = |older: &Door, newer: &Door, t: f64| if t < 0.5 { older.clone() } else { newer.clone() };
    let (mut sim, _, guest) = room(|options| options.drawing.interpolate_by::<Door>(late), Link::quic());
    let (mut between, mut both) = (0, [0, 0]);
    for _ in 0..200 {
        sim.run_for(7);
        let (x, open) = drawn(&mut sim, guest);
        between += u32::from(x.fract() != 0.0);
        assert_eq!(open.fract(), 0.0, "it is one of the two versions");
        both[usize::from(open > x)] += 1;
        assert!((open - x).abs() <= 1.0, "{open} and {x}");
    }
    assert!(between > 100 && both.iter().all(|count| *count > 40), "{between} {both:?}");
}

#[test]
fn m2_what_has_no_function_of_the_game_snaps_where_the_game_says_so() {
    let linear =
        |older: &Door, newer: &Door, t: f64| Door { open: older.open + (newer.open - older.open) * t as f32 };
    let guest = |options: &mut Options| {
        options.drawing.snaps = true;
        options.drawing.interpolate_by::<Door>(linear);
    };
    let (mut sim, _, guest) = room(guest, Link::quic());
    let mut between = 0;
    for _ in 0..200 {
        sim.run_for(7);
        let (x, open) = drawn(&mut sim, guest);
        assert_eq!(x.fract(), 0.0, "the mover snaps");
        between += u32::from(open.fract() != 0.0);
    }
    assert!(between > 100, "the door moves: {between}");
}

#[test]
fn m6_the_margin_and_the_bounds_of_dilation_are_the_games() {
    let run = |lead_tuning: LeadTuning| {
        let (mut sim, host, guest) = room(
            |options| (options.lead, options.lead_tuning) = (true, lead_tuning),
            Link::quic().latency_ms(20),
        );
        sim.play(guest, |room, _| room.send_input(&1u8).unwrap());
        sim.play(host, |room, now| {
            room.input::<u8>(MemberId(1)).unwrap();
            step(room, now);
        });
        sim.run_for(5_000);
        let settled = sim.room(guest).diagnostics();
        sim.relink(guest, Link::quic().latency_ms(120));
        let mut dilation = 1.0f64;
        for _ in 0..400 {
            sim.run_for(10);
            dilation = dilation.max(sim.room(guest).diagnostics().dilation);
        }
        (settled.lead_ms, dilation)
    };
    let usual = LeadTuning::default();
    let (lead_ms, dilation) = run(usual);
    let (longer_ms, _) = run(LeadTuning { margin: Duration::from_millis(150), ..usual });
    assert!(longer_ms - lead_ms > 90.0, "{lead_ms} ms and {longer_ms} ms");
    assert!(dilation > 1.03 && dilation <= 1.050_001, "{dilation}");
    let (_, gentle) = run(LeadTuning { dilation_per_mille: 10, ..usual });
    assert!(gentle > 1.005 && gentle <= 1.010_001, "{gentle}");
}

#[test]
fn m6_the_bounds_of_the_render_delay_are_the_games() {
    let run = |shortest, longest| {
        let [shortest, longest] = [shortest, longest].map(Duration::from_millis);
        let link = Link::quic().jitter_ms(60);
        let (mut sim, _, guest) =
            room(|options| options.drawing.delay = RenderDelay { shortest, longest }, link);
        for _ in 0..300 {
            sim.run_for(16);
            drawn(&mut sim, guest);
        }
        sim.room(guest).diagnostics().buffer_delay_ms
    };
    let usual_ms = run(0, 500);
    assert!((70.0..180.0).contains(&usual_ms), "{usual_ms}");
    let (long_ms, short_ms) = (run(300, 500), run(0, 50));
    assert!((295.0..305.0).contains(&long_ms), "{long_ms}");
    assert!((45.0..55.0).contains(&short_ms), "{short_ms}");
}

#[test]
fn m6_what_is_out_of_range_is_named_with_its_range() {
    let wrong = |change: &dyn Fn(&mut Options)| {
        let mut options = options(Options::join("tanks", "K7QM".parse().unwrap()));
        options.check().unwrap();
        change(&mut options);
        options.check().unwrap_err()
    };
    let of_lead = |tuning: LeadTuning| wrong(&|options| options.lead_tuning = tuning);
    let usual = LeadTuning::default();
    assert!(of_lead(LeadTuning { margin: Duration::from_secs(1), ..usual }).contains("0 to 250 ms"));
    assert!(
        of_lead(LeadTuning { gain_per_mille: 201, ..usual })
            .contains("gain_per_mille is 201; it may be 5 to 200")
    );
    assert!(of_lead(LeadTuning { dilation_per_mille: 0, ..usual }).contains("dilation_per_mille is 0"));
    let [one, two] = [1, 2].map(Duration::from_millis);
    let reversed = RenderDelay { shortest: two, longest: one };
    assert!(wrong(&|options| options.drawing.delay = reversed).contains("zero to 500 ms"));
}

#[test]
fn m5_a_call_runs_eight_steps_at_most_and_the_backlog_is_dropped() {
    let (mut sim, host, guest) = room(|_| (), Link::quic());
    for peer in [host, guest] {
        let before = sim.room(peer).diagnostics().ticks_dropped;
        sim.stall(peer, true);
        sim.run_for(2_000);
        let steps = sim.act(peer, |room, now| {
            while room.poll(now).is_some() {}
            std::iter::repeat_with(|| room.tick(now)).take_while(|due| *due).count()
        });
        sim.stall(peer, false);
        assert_eq!(steps, 8, "of two seconds");
        let dropped = sim.room(peer).diagnostics().ticks_dropped - before;
        assert!((50..55).contains(&dropped), "{dropped}");
    }
}

#[test]
fn a11_a_transfer_snaps_and_is_never_smeared_in_keys_and_entities() {
    let mut sim = Sim::new(5);
    let host_timeout = Some(Duration::from_millis(250));
    let host = sim.host(options(Options { host_timeout, ..Options::host("tanks") }), Link::quic());
    // The second host is far from where the first one was.
    let run = |room: &mut RoomCore, now: Instant| {
        if !room.is_host() {
            return;
        }
        let tick = room.tick_number().unwrap().0 as f32;
        let x = if room.local_id() == Some(MemberId(0)) { tick } else { 5_000.0 + tick };
        room.set("x", &x, Audience::All).unwrap();
        let mut world = room.world(now).unwrap();
        let entity = world.entities().first().copied().unwrap_or_else(|| world.spawn(None).unwrap());
        world.insert(entity, &Mover { x }).unwrap();
        world.insert(entity, &Door { open: x }).unwrap();
    };
    sim.play(host, run);
    let code = sim.code(host);
    let guests = [(); 2].map(|()| {
        let guest = sim.enter(options(Options::join("tanks", code)), Link::quic().jitter_ms(30));
        sim.play(guest, run);
        sim.run_for(1_500);
        guest
    });
    sim.run_for(2_000);
    guests.iter().for_each(|guest| drop(sim.take_events(*guest)));
    sim.crash(host);
    let (mut before, mut after) = (0, 0);
    for _ in 0..400 {
        sim.run_for(10);
        for guest in guests.into_iter().filter(|guest| !sim.room(*guest).is_host()).collect::<Vec<_>>() {
            let (x, _) = drawn(&mut sim, guest);
            let key = sim.act(guest, |room, now| room.interpolated::<f32>("x", now).unwrap().unwrap());
            for drawn in [x, key] {
                assert!(!(1_000.0..5_000.0).contains(&drawn), "{drawn} is between two hosts");
                (before, after) = (before + u32::from(drawn < 1_000.0), after + u32::from(drawn >= 5_000.0));
            }
        }
    }
    assert!(before > 50 && after > 200, "{before} and {after}");
    let told: Vec<StateSource> = guests
        .into_iter()
        .filter(|guest| !sim.room(*guest).is_host())
        .flat_map(|guest| sim.events(guest).iter())
        .filter_map(|event| if let Event::State(update) = event { Some(update.source) } else { None })
        .collect();
    assert!(told.contains(&StateSource::Transfer), "{told:?}");
}
