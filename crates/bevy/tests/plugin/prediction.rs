//! Inputs, prediction and replays.

use super::*;
use parlor::PredictionCounters;
use parlor_bevy::{Input, InputApp, not_replaying};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Metres that a tank drives in a step. Not a multiple of its position's precision.
const DRIVEN: f32 = 0.0625 + 0.0004;

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Drive {
    to: i8,
}

/// This app's input, and counters of its steps.
#[derive(Debug, Default, Resource)]
struct Seat {
    wants: i8,
    sampled: u32,
    /// Samples with the input "drive on".
    onward: u32,
    /// Steps that were new, and replays.
    fresh: u32,
    again: u32,
    /// Steps in which `not_replaying` held.
    once: u32,
    /// The numbers of the new steps.
    steps: Vec<u32>,
    /// Shown effects by number, and how often a step requested one.
    shown: Vec<u32>,
    asked: u32,
    /// Steps that steered an own tank, and those in which it was seen to move.
    steered: u32,
    moved: u32,
}

/// An app with a player, or a spectator.
fn driving(has_player: bool) -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("tanks")).init_resource::<Seat>();
    app.replicate::<Position>().predicted().interpolated();
    app.replicate::<Armour>();
    if has_player {
        app.input(sample);
    } else {
        app.input_of_others::<Drive>();
    }
    app.add_systems(NetTick, (step, note, note_once.run_if(not_replaying)).chain());
    app
}

fn sample(mut seat: ResMut<Seat>) -> Drive {
    seat.sampled += 1;
    seat.onward += u32::from(seat.wants == 1);
    Drive { to: seat.wants }
}

fn step(mut tanks: Query<(&mut Position, &Input<Drive>)>) {
    for (mut position, drive) in &mut tanks {
        position.at[0] += DRIVEN * f32::from(drive.to.clamp(-1, 1));
    }
}

fn note(
    mut seat: ResMut<Seat>,
    mut room: ResMut<RoomResource>,
    own: Query<(Ref<Position>, &Input<Drive>), With<Owned>>,
) {
    let step = room.step().expect("it runs in a step").number().0;
    if room.is_replay() {
        seat.again += 1;
    } else {
        seat.fresh += 1;
        seat.steps.push(step);
    }
    for (position, drive) in &own {
        seat.steered += u32::from(drive.to != 0);
        seat.moved += u32::from(drive.to != 0 && position.is_changed());
    }
    seat.asked += 1;
    if room.once("engine", u64::from(step)) {
        seat.shown.push(step);
    }
}

fn note_once(mut seat: ResMut<Seat>) {
    seat.once += 1;
}

fn seat(app: &App) -> &Seat {
    app.world().resource::<Seat>()
}

fn wants(app: &mut App, to: i8) {
    app.world_mut().resource_mut::<Seat>().wants = to;
}

fn counters(app: &App) -> PredictionCounters {
    app.world().resource::<RoomResource>().diagnostics().prediction
}

/// The host, and a member that has a tank of its own.
fn seated(hall: &Hall) -> (App, App, Entity) {
    let (mut host, mut member) = (driving(true), driving(true));
    hall.open(&mut host, 60);
    hall.join(&mut host, &mut member);
    let tank = host.world_mut().spawn((Replicate, Owner(me(&member)), Position::default())).id();
    until(&mut [&mut host, &mut member], |apps| same(apps[0], tank, apps[1]).is_some());
    (host, member, tank)
}

/// Lets the tank come to rest, and checks that both have it at the same place and keep it there.
fn rest(host: &mut App, member: &mut App, tank: Entity) -> Position {
    wants(member, 0);
    let (from, mut since) = (seat(member).fresh, 0);
    until(&mut [host, member], |apps| {
        let there: Option<Position> = get(apps[0], Some(tank));
        let here = get(apps[1], same(apps[0], tank, apps[1]));
        let (is_same, fresh) = (there == here && there.is_some(), seat(apps[1]).fresh);
        since = if is_same && fresh > from + 30 { since } else { fresh };
        fresh > since + 20
    });
    get(host, Some(tank)).expect("both have it")
}

#[test]
fn one_step_function_drives_on_the_host_and_ahead_of_it() {
    let hall = Hall::start();
    let (mut host, mut member, tank) = seated(&hall);
    wants(&mut member, 1);
    let mut ahead = 0;
    until(&mut [&mut host, &mut member], |apps| {
        let there: Option<Position> = get(apps[0], Some(tank));
        let here: Option<Position> = get(apps[1], same(apps[0], tank, apps[1]));
        let (there, here) = (there.unwrap(), here.unwrap());
        let steps = (f64::from(here.at[0]) + 256.0) / STEP;
        assert_eq!(steps, steps.round(), "what is predicted is what can be sent");
        ahead += u32::from(here.at[0] > there.at[0]);
        ahead > 30 && counters(apps[1]).confirmed > 60 && seat(apps[1]).steered > 60
    });
    let Seat { steered, moved, .. } = seat(&member);
    assert!(steered == moved, "an input is seen in its step: {moved} of {steered}");
    let position = rest(&mut host, &mut member, tank);
    assert!(position.at[0] > 1.0, "it has driven: {position:?}");
}

#[test]
fn what_the_host_decides_otherwise_is_taken_and_steps_are_run_again() {
    let hall = Hall::start();
    let (mut host, mut member, tank) = seated(&hall);
    wants(&mut member, 1);
    let mut pushes = 0;
    until(&mut [&mut host, &mut member], |apps| {
        let corrections = counters(apps[1]).corrections;
        if corrections >= pushes {
            pushes += 1;
            // Only the host knows this change.
            apps[0].world_mut().get_mut::<Position>(tank).unwrap().at[1] += 1.0;
        }
        // On a slow machine a member may be corrected in its newest step: then there is nothing to run again.
        corrections >= 5 && seat(apps[1]).again >= 5
    });
    let position = rest(&mut host, &mut member, tank);
    assert!(position.at[1] >= 5.0, "the pushes count: {position:?}");
    let Seat { sampled, fresh, again, once, steps, shown, asked, .. } = seat(&member);
    assert_eq!(sampled, fresh, "an input is sampled for a step, and not when that is run again");
    assert_eq!(once, fresh);
    assert_eq!(*asked, fresh + again);
    let numbers: BTreeSet<&u32> = shown.iter().collect();
    assert_eq!(numbers.len(), shown.len(), "each effect is shown once");
    // More than these only if the steps jumped when the lead was set: skipped ones are run with the rest.
    assert!(steps.iter().all(|step| numbers.contains(step)), "and each is shown");
    let Seat { fresh, again, .. } = seat(&host);
    assert!(*again == 0 && *fresh > 0, "the host's word is not run again");
}

/// Few steps a second: even on a slow machine no input is later than the replay limit.
#[test]
fn an_input_that_comes_late_counts_in_its_step_because_the_host_runs_its_systems_again() {
    let hall = Hall::start();
    let (mut host, mut member) = (driving(true), driving(true));
    let here = hall.registry.clone();
    let room = |room: parlor::HostBuilder| room.registry(here).tick_hz(15).resimulate(32);
    ask(&mut host, |commands| commands.host_room(room));
    until(&mut [&mut host], |apps| me(apps[0]).is_some());
    hall.join(&mut host, &mut member);
    let tank = host.world_mut().spawn((Replicate, Owner(me(&member)), Position::default())).id();
    until(&mut [&mut host, &mut member], |apps| same(apps[0], tank, apps[1]).is_some());
    rest(&mut host, &mut member, tank);
    let resimulations = |app: &App| {
        let counted = app.world().resource::<RoomResource>().diagnostics();
        assert_eq!(counted.resimulations_short, 0, "all of them are within reach");
        counted.resimulations
    };
    let began = Instant::now();
    while resimulations(&host) < 3 {
        assert!(began.elapsed() < PATIENCE, "no input comes late");
        // The member hangs and then catches up: it drives only in steps that the host has run already.
        let fresh = seat(&host).fresh;
        until(&mut [&mut host], |apps| seat(apps[0]).fresh >= fresh + 2);
        wants(&mut member, 1);
        member.update();
        wants(&mut member, 0);
        let fresh = seat(&host).fresh;
        until(&mut [&mut host, &mut member], |apps| seat(apps[0]).fresh >= fresh + 4);
    }
    let position = rest(&mut host, &mut member, tank);
    let onward = seat(&member).onward;
    assert!(onward >= 3, "{onward} inputs drive on");
    // As far as if each input had come in time: the quantized distance of a step, once for each of them.
    assert_eq!(position.at, [0.0625 * f32::from(u16::try_from(onward).unwrap()), 0.0]);
    let Seat { fresh, again, once, .. } = seat(&host);
    assert!(*again >= 3, "{again} steps were run again");
    assert_eq!(once, fresh, "what must be done once was");
}

#[test]
fn what_is_predicted_is_taken_from_the_room_before_each_step() {
    let hall = Hall::start();
    let (mut host, mut member, tank) = seated(&hall);
    let before = rest(&mut host, &mut member, tank);
    let there = same(&host, tank, &member).unwrap();
    member.world_mut().get_mut::<Position>(there).unwrap().at = [-100.0, -100.0];
    let fresh = seat(&member).fresh;
    until(&mut [&mut host, &mut member], |apps| seat(apps[1]).fresh > fresh);
    assert_eq!(get(&member, Some(there)), Some(before), "what came in between two steps is lost");
    member.world_mut().entity_mut(there).remove::<Position>();
    let fresh = seat(&member).fresh;
    until(&mut [&mut host, &mut member], |apps| seat(apps[1]).fresh > fresh);
    assert_eq!(get(&member, Some(there)), Some(before));
}

#[test]
fn inputs_are_on_what_has_an_owner_and_nobody_elses_are_known() {
    let hall = Hall::start();
    let (mut host, mut member, tank) = seated(&hall);
    let mut looker = driving(false);
    hall.join(&mut host, &mut looker);
    let owner = Owner(me(&looker));
    let looked_at = host.world_mut().spawn((Replicate, owner, Position::default())).id();
    let nobodys = host.world_mut().spawn((Replicate, Position::default())).id();
    wants(&mut member, 1);
    let input = |app: &App, entity| get::<Input<Drive>>(app, entity).map(|input| input.to);
    let mut steps = 0;
    until(&mut [&mut host, &mut member, &mut looker], |apps| {
        let [host, member, looker] = apps else { unreachable!() };
        let all_there = [tank, looked_at, nobodys].iter().all(|entity| same(host, *entity, looker).is_some());
        steps = if all_there && input(host, Some(tank)) == Some(1) { steps } else { seat(host).fresh };
        assert_eq!(input(member, same(host, looked_at, member)), None, "it is not the member's");
        assert_eq!(input(looker, same(host, tank, looker)), None, "it is not the looker's");
        assert!(input(looker, same(host, looked_at, looker)).is_none_or(|drive| drive == 0));
        assert_eq!(input(host, Some(nobodys)), None, "it is nobody's");
        seat(host).fresh > steps + 30
    });
    assert_eq!(input(&host, Some(looked_at)), Some(0), "nothing came of its owner");
    assert_eq!(input(&looker, same(&host, looked_at, &looker)), Some(0));
    assert_eq!(input(&member, same(&host, tank, &member)), Some(1));
    assert_eq!(seat(&looker).sampled, 0);
    let world = host.world_mut().resource_mut::<RoomResource>();
    assert!(world.input_counters(owner.0.unwrap()).is_none(), "who only looks on sends none");
    host.world_mut().get_mut::<Owner>(tank).unwrap().0 = None;
    until(&mut [&mut host, &mut member, &mut looker], |apps| {
        let there = same(apps[0], tank, apps[1]);
        input(apps[0], Some(tank)).is_none() && there.is_some() && input(apps[1], there).is_none()
    });
}

#[test]
fn an_input_is_named_once_and_after_the_plugin() {
    let said = |build: fn()| *catch_unwind(build).unwrap_err().downcast::<String>().unwrap();
    let twice = said(|| {
        driving(true).input(sample);
    });
    assert!(twice.contains("Drive already"), "{twice}");
    let alone = catch_unwind(|| {
        App::new().input_of_others::<Drive>();
    });
    let text = *alone.unwrap_err().downcast::<&str>().unwrap();
    assert!(text.contains("add ParlorPlugin"), "{text}");
}
