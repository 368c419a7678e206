//! The game: the shared components, the host's rules, and what the member sees.

#[path = "../common/mod.rs"]
mod common;

use bevy_app::{App, Update};
use bevy_ecs::prelude::*;
use common::{ask, open, until, with_server};
use parlor::schema::Kind;
use parlor::{Event, MemberId, Registry, replicated};
use parlor_bevy::{
    ActionReceived, Interpolated, NetTick, Networked, Owned, Owner, ParlorPlugin, Replicate, ReplicateApp,
    RoomCommands, RoomEvent, RoomResource, is_authority,
};

/// Tanks besides the member's own.
const TANKS: u8 = 3;

/// Where a tank is, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Position {
    at: [f32; 2],
}

replicated!(Position as "position" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });

/// How often a tank honked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Horn {
    honks: u16,
}

replicated!(Horn as "horn" => { honks: Kind::int(0, 1_000) });

/// Shared by both apps: the same components in the same order.
fn tanks() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("tanks"));
    app.replicate::<Position>().interpolated();
    app.replicate::<Horn>();
    app.add_systems(NetTick, (drive, honk).run_if(is_authority)).add_systems(Update, welcome);
    app
}

/// The host's rule for each step: all tanks drive in circles.
fn drive(room: Res<RoomResource>, mut tanks: Query<&mut Position>) {
    let Some(tick) = room.tick_number() else { return };
    for (number, mut position) in (1u8..).zip(&mut tanks) {
        let angle = tick.0 as f32 * 0.02;
        let radius = 10.0 * f32::from(number);
        position.at = [radius * angle.cos(), radius * angle.sin()];
    }
}

/// The host's rule for an action: everybody hears a honk.
fn honk(mut wishes: MessageReader<ActionReceived>, mut horns: Query<&mut Horn>) {
    for wish in wishes.read().filter(|wish| wish.name == "honk") {
        // It comes from another machine: it may contain anything.
        if let (Ok(mut horn), Ok(times)) = (horns.get_mut(wish.entity), wish.read::<u16>()) {
            horn.honks += times.min(3);
        }
    }
}

/// The host spawns a tank for each new member.
fn welcome(room: Option<Res<RoomResource>>, mut events: MessageReader<RoomEvent>, mut commands: Commands) {
    if !is_authority(room) {
        return;
    }
    for RoomEvent(event) in events.read() {
        match event {
            Event::PlayerJoined(player) if player.is_me => {
                for _ in 0..TANKS {
                    commands.spawn((Replicate, Position::default()));
                }
            }
            Event::PlayerJoined(player) => {
                commands.spawn((Replicate, Owner(Some(player.id)), Position::default(), Horn::default()));
            }
            _ => {}
        }
    }
}

/// Plays the game. `say` gets a line for each event on the member's side.
///
/// # Errors
/// If the server does not start, or an expected event does not happen.
pub(crate) fn play(say: &mut dyn FnMut(String)) -> Result {
    with_server(|registry| meet(registry, say))
}

fn meet(registry: &Registry, say: &mut dyn FnMut(String)) -> Result {
    let (mut host, mut member) = (tanks(), tanks());
    let code = open(&mut host, registry)?;
    say(format!("ada hosts room {code}"));
    let here = registry.clone();
    ask(&mut member, |commands| {
        commands.join_room(code.as_str(), |room| room.registry(here).name("bob"));
    });
    let me = until(&mut [&mut host, &mut member], "bob gets a tank", |apps| owner_here(apps[1]))?;
    say(format!("bob is member {me} and has a tank"));
    until(&mut [&mut host, &mut member], "bob sees all tanks drive", |apps| {
        let shown = positions(apps[1]);
        let all_drive = shown.len() > usize::from(TANKS) && shown.iter().all(|shown| shown.at != [0.0, 0.0]);
        all_drive.then_some(())
    })?;
    for Position { at: [x, y] } in positions(&mut member) {
        say(format!("bob sees a tank at {x:.2}, {y:.2}"));
    }
    member.world_mut().run_system_cached::<(), _, _>(press_horn)?;
    until(&mut [&mut host, &mut member], "bob hears his horn", |apps| {
        let world = apps[1].world_mut();
        let mut horns = world.query::<&Horn>();
        horns.iter(world).any(|horn| horn.honks == 2).then_some(())
    })?;
    say("bob hears his horn".into());
    ask(&mut member, |commands| commands.leave_room());
    until(&mut [&mut host, &mut member], "bob's tanks go with the room", |apps| {
        let world = apps[1].world_mut();
        let mut left = world.query::<&Networked>();
        (left.iter(world).count() == 0).then_some(())
    })?;
    say("bob has left".into());
    ask(&mut host, |commands| commands.leave_room());
    Ok(())
}

fn owner_here(app: &mut App) -> Option<MemberId> {
    let world = app.world_mut();
    let mut own = world.query_filtered::<&Owner, With<Owned>>();
    own.iter(world).next()?.0
}

fn positions(app: &mut App) -> Vec<Position> {
    let world = app.world_mut();
    let mut shown = world.query::<&Interpolated<Position>>();
    shown.iter(world).map(|shown| shown.0).collect()
}

/// Requests an action on the member's own entity.
fn press_horn(room: Res<RoomResource>, own: Query<&Networked, With<Owned>>) -> Result {
    for tank in &own {
        room.act(tank.id, "honk", &2)?;
    }
    Ok(())
}
