//! Skaters, in Bevy: everybody skates on ice and picks up gems. A player's own skater is predicted, the others glide.
//!
//! `cargo run` hosts a room and shows its code; `cargo run -- CODE` joins it. `cargo test` plays it on a bad network.
//!
//! It is drawn in a terminal, so that it builds in a minute and plays anywhere. For a window docs/bevy.md of Parlor has what
//! replaces `terminal.rs`.

mod terminal;

use bevy_app::{App, Startup};
use bevy_ecs::prelude::*;
use parlor::schema::Kind;
use parlor::{Tick, replicated};
use parlor_bevy::{
    Input, InputApp, NetTick, Owner, ParlorPlugin, Replicate, ReplicateApp, RoomCommands, RoomResource,
    is_authority,
};
use serde::{Deserialize, Serialize};

/// The game's name: only players of the same game share a room.
const GAME: &str = env!("CARGO_PKG_NAME");
const FIELD: [f32; 2] = [60.0, 18.0];
/// A letter of a terminal is twice as high as wide.
const PUSH: [f32; 2] = [0.5, 0.25];
const REACH: [f32; 2] = [1.5, 1.0];
const GEMS: usize = 6;

/// What a player wants in a step: a push along each axis. As a resource, what the keys said since the last step.
#[derive(Clone, Copy, Default, Resource, Serialize, Deserialize)]
struct Push {
    x: i8,
    y: i8,
}

#[derive(Clone, Copy, Debug, PartialEq, Component)]
struct Skater {
    at: [f32; 2],
    speed: [f32; 2],
}
replicated!(Skater as "skater" => {
    at: Kind::vector2(0.0, 64.0, 1.0 / 64.0),
    speed: Kind::vector2(-2.0, 2.0, 1.0 / 256.0),
});

#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Score {
    gems: u16,
}
replicated!(Score as "score" => { gems: Kind::int(0, 10_000) });

#[derive(Component)]
struct Gem {
    at: [f32; 2],
}
replicated!(Gem as "gem" => { at: Kind::vector2(0.0, 64.0, 1.0 / 64.0) });

fn main() -> Result {
    terminal::run(game().add_systems(Startup, enter))
}

/// The game without what shows it.
fn game() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app(GAME)).init_resource::<Push>();
    app.replicate::<Skater>().predicted().interpolated();
    app.replicate::<Score>();
    app.replicate::<Gem>();
    app.input(|mut push: ResMut<Push>| std::mem::take(&mut *push))
        .add_systems(NetTick, (welcome.run_if(is_authority), skate, collect.run_if(is_authority)).chain());
    app
}

fn enter(mut commands: Commands) {
    if !commands.join_from_args(|room| room) {
        commands.host_room(|room| room.max_players(8));
    }
}

/// At the host: each player has a skater, and nobody else has one.
fn welcome(room: Res<RoomResource>, skaters: Query<(Entity, &Owner), With<Skater>>, mut commands: Commands) {
    for player in room.players() {
        if !skaters.iter().any(|(_, owner)| owner.0 == Some(player.id)) {
            let skater = Skater { at: FIELD.map(|size| size / 2.0), speed: [0.0; 2] };
            commands.spawn((Replicate, Owner(Some(player.id)), skater, Score::default()));
        }
    }
    for (skater, owner) in &skaters {
        if !room.players().iter().any(|player| owner.0 == Some(player.id)) {
            commands.entity(skater).despawn();
        }
    }
}

/// The same lines run at the host, for all skaters, and at a guest, for its own: that is prediction.
fn skate(mut skaters: Query<(&mut Skater, &Input<Push>)>) {
    for (mut skater, push) in &mut skaters {
        for (axis, push) in [push.x, push.y].into_iter().enumerate() {
            // A player may send any number, so it is clamped. An integer cannot be NaN.
            let speed = 0.92 * skater.speed[axis] + PUSH[axis] * f32::from(push.clamp(-1, 1));
            let speed = if speed.abs() < 0.05 { 0.0 } else { speed.clamp(-1.5, 1.5) };
            let at = skater.at[axis] + speed;
            skater.at[axis] = at.clamp(0.0, FIELD[axis]);
            // The boards throw a skater back.
            skater.speed[axis] = if at == skater.at[axis] { speed } else { -speed };
        }
    }
}

/// At the host: a gem is for the first skater that comes near, and another one appears elsewhere.
fn collect(
    room: Res<RoomResource>,
    gems: Query<(Entity, &Gem)>,
    mut skaters: Query<(&Skater, &mut Score)>,
    mut commands: Commands,
) {
    for (entity, gem) in &gems {
        let is_near =
            |skater: &Skater| (0..2).all(|axis| (skater.at[axis] - gem.at[axis]).abs() < REACH[axis]);
        if let Some((_, mut score)) = skaters.iter_mut().find(|(skater, _)| is_near(skater)) {
            score.gems = (score.gems + 1).min(10_000);
            commands.entity(entity).despawn();
        }
    }
    if let (true, Some(Tick(number))) = (gems.iter().len() < GEMS, room.tick_number()) {
        // Multiples of these two fill the field evenly, in no order that a player sees.
        let [x, y] = [0.754_877, 0.569_840].map(|step| (f64::from(number) * step).fract() as f32);
        commands.spawn((Replicate, Gem { at: [x * FIELD[0], y * FIELD[1]] }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor::MemberId;
    use parlor_bevy::Owned;
    use std::time::{Duration, Instant};

    /// Only a fault takes this long.
    const PATIENCE: Duration = Duration::from_secs(30);

    /// The skaters of an app with their scores, by their owners.
    fn seen(app: &mut App) -> Vec<(Option<MemberId>, Skater, Score)> {
        let world = app.world_mut();
        let mut skaters = world.query::<(&Owner, &Skater, &Score)>();
        let mut seen: Vec<_> =
            skaters.iter(world).map(|(owner, skater, score)| (owner.0, *skater, *score)).collect();
        seen.sort_by_key(|(owner, ..)| *owner);
        seen
    }

    /// Pushes the app's own skater to a gem.
    fn steer(app: &mut App) {
        let world = app.world_mut();
        let gem = world.query::<&Gem>().iter(world).next().map(|gem| gem.at);
        let own = world.query_filtered::<&Skater, With<Owned>>().iter(world).next().copied();
        let (Some(gem), Some(Skater { at, speed })) = (gem, own) else { return };
        // It glides on for some ten steps.
        let [x, y] = [0, 1].map(|axis| gem[axis] - at[axis] - 10.0 * speed[axis]);
        *world.resource_mut() = Push { x: x.signum() as i8, y: y.signum() as i8 };
    }

    #[test]
    fn both_see_the_same_over_a_bad_network() -> Result {
        let (began, mut host, mut guest) = (Instant::now(), game(), game());
        host.world_mut().commands().host_room(|room| room);
        let code = loop {
            assert!(began.elapsed() < PATIENCE, "the room does not open");
            host.update();
            if let Some(code) = host.world().get_resource::<RoomResource>().and_then(|room| room.code()) {
                break code.to_string();
            }
            std::thread::yield_now();
        };
        let bad = "latency=75ms,loss=5%,seed=7".parse()?;
        guest.world_mut().commands().join_room(&code, move |room| room.impairment(bad));
        let is_rich = |app: &mut App| seen(app).get(1).is_some_and(|(.., score)| score.gems > 0);
        while !is_rich(&mut guest) || seen(&mut host) != seen(&mut guest) {
            assert!(began.elapsed() < PATIENCE, "{:?} at the host, {:?}", seen(&mut host), seen(&mut guest));
            host.update();
            guest.update();
            if !is_rich(&mut host) {
                steer(&mut guest);
            }
            std::thread::yield_now();
        }
        let confirmed = guest.world().resource::<RoomResource>().diagnostics().prediction.confirmed;
        assert!(confirmed > 0, "nothing was predicted: the test shows nothing");
        Ok(())
    }
}
