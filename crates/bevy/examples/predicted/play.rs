//! The game: one step function for host and member, the host's wind, and the member's counters.

#[path = "../common/mod.rs"]
mod common;

use bevy_app::{App, Update};
use bevy_ecs::prelude::*;
use common::{ask, open, until, with_server};
use parlor::schema::Kind;
use parlor::{Event, PredictionCounters, Registry, replicated};
use parlor_bevy::{
    Input, InputApp, NetTick, Networked, Owner, ParlorPlugin, Replicate, ReplicateApp, RoomCommands,
    RoomEvent, RoomResource, is_authority, not_replaying,
};
use serde::{Deserialize, Serialize};

/// The network in both directions, each with half of the round trip.
const NETWORK: &str = "latency=50ms,loss=5%,seed=7";
/// Steps during which the skater is steered.
const STEPS: u32 = 300;
/// Steps between two turns of the player: six turns a second.
const TURN_STEPS: u32 = 10;
/// Steps between two gusts of wind.
const GUST_STEPS: u32 = 60;

/// The skater's position in metres and velocity in metres a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Skater {
    at: [f32; 2],
    speed: [f32; 2],
}

replicated!(Skater as "skater" => {
    at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0),
    speed: Kind::vector2(-2.0, 2.0, 1.0 / 1024.0),
});

/// The direction of the last push, and how often it changed. The state that a step builds on must be in
/// predicted components: only those are rolled back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Course {
    x: i8,
    y: i8,
    turns: u16,
}

replicated!(Course as "course" => { x: Kind::int(-1, 1), y: Kind::int(-1, 1), turns: Kind::int(0, 10_000) });

/// The direction of a player's push: -1, 0 or 1 on each axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Push {
    x: i8,
    y: i8,
}

/// Counters of an app.
#[derive(Debug, Default, Resource)]
struct Seen {
    sampled: u32,
    steps: u32,
    steps_again: u32,
    /// Numbers of the turns that were heard.
    turns: Vec<u16>,
}

/// Shared by both apps.
fn skating() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("skating")).init_resource::<Seen>();
    app.replicate::<Skater>().predicted().interpolated();
    app.replicate::<Course>().predicted();
    app.input(sample)
        .add_systems(NetTick, (count, step, blow.run_if(is_authority).run_if(not_replaying)).chain())
        .add_systems(Update, welcome);
    app
}

/// Samples the player's input. This one has no keys: it skates in squares, and then lets the skater come to
/// rest.
fn sample(mut seen: ResMut<Seen>) -> Push {
    seen.sampled += 1;
    match (seen.sampled / TURN_STEPS) % 4 {
        _ if seen.sampled > STEPS => Push::default(),
        0 => Push { x: 1, y: 0 },
        1 => Push { x: 0, y: 1 },
        2 => Push { x: -1, y: 0 },
        _ => Push { x: 0, y: -1 },
    }
}

/// One fixed step, the same on the host and on the member that steers, and in each replay.
fn step(
    room: Res<RoomResource>,
    mut seen: ResMut<Seen>,
    mut skaters: Query<(&mut Skater, &mut Course, &Input<Push>)>,
) {
    for (mut skater, mut course, push) in &mut skaters {
        // It comes from another machine: it may contain anything.
        let (x, y) = (push.x.clamp(-1, 1), push.y.clamp(-1, 1));
        for (axis, push) in [x, y].into_iter().enumerate() {
            let speed = skater.speed[axis] * 0.95 + f32::from(push) * 0.01;
            let is_at_rest = push == 0 && speed.abs() < 0.02;
            skater.speed[axis] = if is_at_rest { 0.0 } else { speed };
            skater.at[axis] += skater.speed[axis];
        }
        if (course.x, course.y) != (x, y) {
            *course = Course { x, y, turns: course.turns + 1 };
            if room.once("turn", u64::from(course.turns)) {
                // A game would play a sound here.
                seen.turns.push(course.turns);
            }
        }
    }
}

/// Only the host knows the wind. It blows while a player pushes.
fn blow(seen: Res<Seen>, mut skaters: Query<(&mut Skater, &Course)>) {
    for (mut skater, course) in &mut skaters {
        if seen.steps.is_multiple_of(GUST_STEPS) && (course.x, course.y) != (0, 0) {
            skater.speed[0] += 0.25;
        }
    }
}

fn count(room: Res<RoomResource>, mut seen: ResMut<Seen>) {
    if room.is_replay() {
        seen.steps_again += 1;
    } else {
        seen.steps += 1;
    }
}

/// The host spawns a skater for each new member.
fn welcome(room: Option<Res<RoomResource>>, mut events: MessageReader<RoomEvent>, mut commands: Commands) {
    if !is_authority(room) {
        return;
    }
    for RoomEvent(event) in events.read() {
        if let Event::PlayerJoined(player) = event
            && !player.is_me
        {
            commands.spawn((Replicate, Owner(Some(player.id)), Skater::default(), Course::default()));
        }
    }
}

/// Plays the game. `say` gets a line for each result on the member's side.
///
/// # Errors
/// If the server does not start, or an expected event does not happen.
pub(crate) fn play(say: &mut dyn FnMut(String)) -> Result {
    with_server(|registry| skate(registry, say))
}

fn skate(registry: &Registry, say: &mut dyn FnMut(String)) -> Result {
    let (mut host, mut member) = (skating(), skating());
    let code = open(&mut host, registry)?;
    let here = registry.clone();
    let network = NETWORK.parse()?;
    ask(&mut member, |commands| {
        commands.join_room(code.as_str(), move |room| room.registry(here).name("bob").impairment(network));
    });
    until(&mut [&mut host, &mut member], "bob gets a skater", |apps| skater(apps[1]))?;
    say(format!("bob is in room {code} over {NETWORK}"));
    let (skater, course) = until(&mut [&mut host, &mut member], "the skater comes to rest", |apps| {
        let is_steered = apps[1].world().resource::<Seen>().sampled <= STEPS;
        let [there, here] = [skater(apps[0])?, skater(apps[1])?];
        let (skater, course) = here;
        let is_at_rest = skater.speed == [0.0; 2] && (course.x, course.y) == (0, 0);
        (!is_steered && is_at_rest && there == here).then_some(here)
    })?;
    tell(&member, course, say)?;
    let [x, y] = skater.at;
    say(format!("ada and bob agree: the skater is at {x:.3}, {y:.3}"));
    ask(&mut member, |commands| commands.leave_room());
    ask(&mut host, |commands| commands.leave_room());
    Ok(())
}

/// Reports the member's results.
fn tell(member: &App, course: Course, say: &mut dyn FnMut(String)) -> Result {
    let room = member.world().get_resource::<RoomResource>().ok_or("bob is still in the room")?;
    let diagnostics = room.diagnostics();
    let PredictionCounters { confirmed, corrections, replayed_steps, .. } = diagnostics.prediction;
    let Seen { sampled, steps, steps_again, turns } = member.world().resource::<Seen>();
    let rtt_ms = diagnostics.rtt.unwrap_or_default().as_millis();
    say(format!("round trip {rtt_ms} ms, bob's steps are {:.0} ms ahead of the room", diagnostics.lead_ms));
    say(format!("{sampled} inputs in {steps} steps, {steps_again} steps were run again"));
    say(format!("{confirmed} confirmed, {corrections} corrections, which took {replayed_steps} steps"));
    say(format!("{} turns were heard, the last one is number {}", turns.len(), course.turns));
    Ok(())
}

/// The only skater.
fn skater(app: &mut App) -> Option<(Skater, Course)> {
    let world = app.world_mut();
    let mut skaters = world.query_filtered::<(&Skater, &Course), With<Networked>>();
    skaters.iter(world).next().map(|(skater, course)| (*skater, *course))
}
