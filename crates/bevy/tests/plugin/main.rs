//! Two apps in a room on a server of this process: what one replicates, the other one has.

mod actions;
mod prediction;

use bevy_app::{App, PreUpdate, Update};
use bevy_ecs::prelude::*;
use parlor::schema::Kind;
use parlor::{MemberId, RoomError, replicated};
use parlor_bevy::{
    EntityMap, Interpolated, MutateCommands, NetTick, Networked, Owned, Owner, ParlorPlugin, ParlorSet,
    Replicate, ReplicateApp, ReplicateError, ReplicationFailed, RoomCommandError, RoomCommands, RoomResource,
    in_room, is_authority,
};
use parlor_testing::Hall;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Timeout: only a hang takes this long.
const PATIENCE: Duration = Duration::from_secs(60);
const STEP: f64 = 1.0 / 512.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Position {
    at: [f32; 2],
}

replicated!(Position as "position" => { at: Kind::vector2(-256.0, 256.0, STEP) });

#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Armour {
    plates: u8,
}

replicated!(Armour as "armour" => { plates: Kind::int(0, 100) });

/// Another type with the name of `Armour`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
struct Shield {
    plates: u8,
}

replicated!(Shield as "armour" => { plates: Kind::int(0, 100) });

/// Apps on a hall's server.
trait Apps {
    fn open(&self, host: &mut App, hz: u16);
    fn join(&self, host: &mut App, member: &mut App);

    /// A host in an open room with `hz` steps a second.
    fn host(&self, hz: u16) -> App {
        let mut host = app();
        self.open(&mut host, hz);
        host
    }

    /// A member in the host's room.
    fn member(&self, host: &mut App) -> App {
        let mut member = app();
        self.join(host, &mut member);
        member
    }
}

impl Apps for Hall {
    fn open(&self, host: &mut App, hz: u16) {
        let here = self.registry.clone();
        ask(host, |commands| commands.host_room(move |room| room.registry(here).tick_hz(hz)));
        until(&mut [host], |apps| {
            apps[0].world().get_resource::<RoomResource>().is_some_and(|room| room.is_connected())
        });
    }

    fn join(&self, host: &mut App, member: &mut App) {
        let code = host.world().resource::<RoomResource>().code().expect("it is open");
        let here = self.registry.clone();
        ask(member, |commands| commands.join_room(code.as_str(), move |room| room.registry(here)));
        until(&mut [host, member], |apps| me(apps[1]).is_some());
    }
}

fn app() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("tanks"));
    app.replicate::<Position>().interpolated();
    app.replicate::<Armour>();
    app
}

/// An app with interest: members see what is within 10 m of their own entities.
fn short_sighted() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("tanks"));
    app.replicate::<Position>().interest("at", 10.0, 12.0);
    app
}

fn ask(app: &mut App, wish: impl FnOnce(&mut Commands)) {
    wish(&mut app.world_mut().commands());
    app.world_mut().flush();
}

/// Runs frames of all apps until something holds.
#[track_caller]
fn until(apps: &mut [&mut App], mut holds: impl FnMut(&mut [&mut App]) -> bool) {
    let began = Instant::now();
    loop {
        apps.iter_mut().for_each(|app| app.update());
        if holds(apps) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "it does not come");
        std::thread::yield_now();
    }
}

fn me(app: &App) -> Option<MemberId> {
    app.world().get_resource::<RoomResource>().filter(|room| room.is_connected())?.local_id()
}

/// Returns the entity of `there` that is `entity` of `here`.
fn same(here: &App, entity: Entity, there: &App) -> Option<Entity> {
    let id = here.world().get::<Networked>(entity)?.id;
    there.world().resource::<EntityMap>().get(id)
}

fn get<C: Component + Copy>(app: &App, entity: Option<Entity>) -> Option<C> {
    app.world().get::<C>(entity?).copied()
}

#[test]
fn what_is_registered_wrongly_is_said() {
    let mut app = App::new();
    assert_eq!(app.try_replicate::<Armour>().err(), Some(ReplicateError::NoPlugin("armour")));
    app.add_plugins(ParlorPlugin::app("tanks"));
    app.replicate::<Armour>();
    assert_eq!(app.try_replicate::<Armour>().err(), Some(ReplicateError::Duplicate("armour")));
    assert_eq!(app.try_replicate::<Shield>().err(), Some(ReplicateError::Duplicate("armour")));
    let hall = Hall::start();
    hall.open(&mut app, 30);
    assert_eq!(app.try_replicate::<Position>().err(), Some(ReplicateError::Started("position")));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        app.replicate::<Position>().interpolated();
    }));
    let text = panicked.unwrap_err().downcast::<String>().unwrap();
    assert_eq!(*text, ReplicateError::Started("position").to_string());
}

#[test]
fn entities_and_components_come_change_and_go() {
    let hall = Hall::start();
    let mut host = hall.host(60);
    let tank = host.world_mut().spawn((Replicate, Position { at: [1.0, 2.0] }, Armour { plates: 7 })).id();
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| {
        let there = same(apps[0], tank, apps[1]);
        get(apps[1], there) == Some(Position { at: [1.0, 2.0] })
            && get(apps[1], there) == Some(Armour { plates: 7 })
    });
    host.world_mut().get_mut::<Armour>(tank).unwrap().plates = 6;
    until(&mut [&mut host, &mut member], |apps| {
        get(apps[1], same(apps[0], tank, apps[1])) == Some(Armour { plates: 6 })
    });
    host.world_mut().entity_mut(tank).remove::<Armour>();
    until(&mut [&mut host, &mut member], |apps| {
        let there = same(apps[0], tank, apps[1]);
        there.is_some() && get::<Armour>(apps[1], there).is_none()
    });
    let there = same(&host, tank, &member);
    assert_eq!(get(&member, there), Some(Position { at: [1.0, 2.0] }), "the others stay");
    host.world_mut().despawn(tank);
    until(&mut [&mut host, &mut member], |apps| apps[1].world().get_entity(there.unwrap()).is_err());
    assert!(member.world().resource::<EntityMap>().is_empty());
}

#[test]
fn nothing_is_missed_when_steps_are_rarer_than_frames() {
    let hall = Hall::start();
    // A frame here is far shorter than a step.
    let mut host = hall.host(5);
    let [gone, stripped] =
        [1, 2].map(|plates| host.world_mut().spawn((Replicate, Position::default(), Armour { plates })).id());
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| apps[1].world().resource::<EntityMap>().len() == 2);
    let there = [gone, stripped].map(|entity| same(&host, entity, &member).unwrap());
    host.world_mut().despawn(gone);
    host.world_mut().entity_mut(stripped).remove::<Armour>();
    until(&mut [&mut host, &mut member], |apps| {
        apps[1].world().get_entity(there[0]).is_err() && get::<Armour>(apps[1], Some(there[1])).is_none()
    });
    // A component that is inserted again before the next step was never removed.
    host.world_mut().entity_mut(stripped).remove::<Position>();
    host.world_mut().entity_mut(stripped).insert(Position { at: [3.0, 3.0] });
    until(&mut [&mut host, &mut member], |apps| {
        get(apps[1], Some(there[1])) == Some(Position { at: [3.0, 3.0] })
    });
}

#[test]
fn the_host_goes_on_from_the_numbers_that_are_sent() {
    let hall = Hall::start();
    let mut host = hall.host(60);
    let tank = host.world_mut().spawn((Replicate, Position { at: [0.1, -0.3] })).id();
    until(&mut [&mut host], |apps| apps[0].world().get::<Networked>(tank).is_some());
    let Position { at } = get(&host, Some(tank)).unwrap();
    for (rounded, meant) in at.into_iter().zip([0.1f32, -0.3]) {
        let steps = (f64::from(rounded) + 256.0) / STEP;
        assert_eq!(steps, steps.round(), "{rounded} is a whole number of steps");
        assert!(rounded != meant && (rounded - meant).abs() < 0.001, "{rounded} is near {meant}");
    }
}

#[test]
fn a_number_that_is_none_is_refused_and_nothing_else() {
    #[derive(Resource, Default)]
    struct Failures(Vec<(Option<&'static str>, RoomError)>);
    fn note(mut failed: MessageReader<ReplicationFailed>, mut failures: ResMut<Failures>) {
        failures.0.extend(failed.read().map(|failed| (failed.component, failed.error.clone())));
    }
    let hall = Hall::start();
    let mut host = hall.host(60);
    host.init_resource::<Failures>().add_systems(Update, note);
    let bad =
        host.world_mut().spawn((Replicate, Position { at: [f32::NAN, 0.0] }, Armour { plates: 9 })).id();
    let good = host.world_mut().spawn((Replicate, Position { at: [1.0, 1.0] })).id();
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| {
        get(apps[1], same(apps[0], good, apps[1])) == Some(Position { at: [1.0, 1.0] })
            && get(apps[1], same(apps[0], bad, apps[1])) == Some(Armour { plates: 9 })
    });
    let failures = &host.world().resource::<Failures>().0;
    let [(Some("position"), error)] = &failures[..] else { panic!("{failures:?}") };
    assert!(error.to_string().contains("position"), "{error}");
    assert_eq!(get::<Position>(&member, same(&host, bad, &member)), None);
}

#[test]
fn an_entity_changes_hands() {
    let hall = Hall::start();
    let mut host = hall.host(60);
    let tank = host.world_mut().spawn((Replicate, Position::default())).id();
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| same(apps[0], tank, apps[1]).is_some());
    let there = same(&host, tank, &member).unwrap();
    let id = host.world().get::<Networked>(tank).unwrap().id;
    let act = |member: &mut App| {
        let refused = member.world_mut().resource_mut::<RoomResource>().act(id, "fire", &()).err();
        assert!(refused.iter().all(|error| matches!(error, RoomError::Refused { .. })), "{refused:?}");
        refused.is_none()
    };
    assert!(!act(&mut member), "it is nobody's");
    for owner in [me(&member), me(&host), None] {
        host.world_mut().get_mut::<Owner>(tank).unwrap().0 = owner;
        until(&mut [&mut host, &mut member], |apps| get(apps[1], Some(there)) == Some(Owner(owner)));
        assert_eq!(member.world().get::<Owned>(there).is_some(), owner == me(&member));
        assert_eq!(host.world().get::<Owned>(tank).is_some(), owner.is_some() && owner == me(&host));
        assert_eq!(act(&mut member), owner == me(&member));
    }
}

#[test]
fn a_member_has_what_is_near_its_own() {
    let hall = Hall::start();
    let (mut host, mut member) = (short_sighted(), short_sighted());
    hall.open(&mut host, 60);
    hall.join(&mut host, &mut member);
    let own = host.world_mut().spawn((Replicate, Owner(me(&member)), Position::default())).id();
    let [near, far] =
        [5.0, 100.0].map(|x| host.world_mut().spawn((Replicate, Position { at: [x, 0.0] })).id());
    let sees = |apps: &[&mut App], entity| same(apps[0], entity, apps[1]).is_some();
    until(&mut [&mut host, &mut member], |apps| {
        assert!(!sees(apps, far), "it never was near");
        sees(apps, own) && sees(apps, near)
    });
    let there = same(&host, near, &member).unwrap();
    host.world_mut().get_mut::<Position>(near).unwrap().at = [50.0, 0.0];
    host.world_mut().get_mut::<Position>(far).unwrap().at = [9.0, 0.0];
    until(&mut [&mut host, &mut member], |apps| sees(apps, far) && !sees(apps, near));
    assert!(member.world().get_entity(there).is_err(), "what is out of sight is despawned");
    assert_eq!(get(&member, same(&host, far, &member)), Some(Position { at: [9.0, 0.0] }));
}

#[test]
fn what_is_drawn_never_becomes_what_is_simulated() {
    let hall = Hall::start();
    let mut host = hall.host(60);
    fn drive(mut tanks: Query<&mut Position>) {
        for mut position in &mut tanks {
            // Whole metres, so that every value in between is interpolated.
            position.at[0] = (position.at[0] + 1.0) % 200.0;
        }
    }
    host.add_systems(NetTick, drive);
    let mut member = hall.member(&mut host);
    let own = host.world_mut().spawn((Replicate, Owner(me(&member)), Position::default())).id();
    let other = host.world_mut().spawn((Replicate, Position::default())).id();
    let mut between = 0;
    until(&mut [&mut host, &mut member], |apps| {
        let [own, other] = [own, other].map(|entity| same(apps[0], entity, apps[1]));
        let is_whole = |position: Position| position.at[0].fract() == 0.0;
        for entity in [own, other] {
            assert!(get(apps[1], entity).is_none_or(is_whole), "it is simulated as it was sent");
        }
        let shown = |entity| get::<Interpolated<Position>>(apps[1], entity).map(|shown| shown.0);
        assert!(shown(own).is_none_or(is_whole), "one's own is not smoothed");
        between += u32::from(shown(other).is_some_and(|position| !is_whole(position)));
        between > 100
    });
    let shown = get::<Interpolated<Position>>(&host, Some(other));
    assert_eq!(shown.map(|shown| shown.0), get(&host, Some(other)), "the host draws what is");
}

#[test]
fn a_room_that_is_over_leaves_the_hosts_entities_for_the_next_one() {
    let hall = Hall::start();
    let mut host = hall.host(60);
    let tank = host.world_mut().spawn((Replicate, Position { at: [5.0, 5.0] })).id();
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| same(apps[0], tank, apps[1]).is_some());
    let there = same(&host, tank, &member).unwrap();
    ask(&mut host, |commands| commands.leave_room());
    until(&mut [&mut host, &mut member], |apps| !apps[1].world().contains_resource::<RoomResource>());
    assert!(member.world().get_entity(there).is_err(), "what came from the room goes with it");
    assert_eq!(get(&host, Some(tank)), Some(Position { at: [5.0, 5.0] }));
    assert!(host.world().get::<Networked>(tank).is_none());
    hall.open(&mut host, 60);
    let mut member = hall.member(&mut host);
    until(&mut [&mut host, &mut member], |apps| {
        get(apps[1], same(apps[0], tank, apps[1])) == Some(Position { at: [5.0, 5.0] })
    });
}

#[test]
fn conditions_and_commands_know_where_the_app_is() {
    let hall = Hall::start();
    let mut host = hall.host(30);
    let mut member = hall.member(&mut host);
    let mut alone = app();
    let ask_both = |app: &mut App| {
        let world = app.world_mut();
        let is_in = world.run_system_cached(in_room).unwrap();
        (is_in, world.run_system_cached(is_authority).unwrap())
    };
    assert_eq!(ask_both(&mut host), (true, true));
    assert_eq!(ask_both(&mut member), (true, false));
    assert_eq!(ask_both(&mut alone), (false, false));
    // Opening a second room is a command's error, which goes to the app's handler.
    let open = || ask(&mut host, |commands| commands.host_room(|room| room));
    let panicked = catch_unwind(AssertUnwindSafe(open));
    let text = panicked.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains(&RoomCommandError::InRoom.to_string()), "{text}");
}

#[test]
fn a_member_writes_what_came_once_it_is_the_authority() {
    fn drive(mut tanks: Query<&mut Armour>) {
        for mut tank in &mut tanks {
            tank.plates = (tank.plates + 1) % 100;
        }
    }
    let hall = Hall::start();
    let mut host = short_sighted();
    host.replicate::<Armour>();
    let here = hall.registry.clone();
    ask(&mut host, |commands| {
        commands.host_room(move |room| room.registry(here).tick_hz(60).host_migration())
    });
    until(&mut [&mut host], |apps| me(apps[0]).is_some());
    let [mut heir, mut other] = [(); 2].map(|()| {
        let mut app = short_sighted();
        app.replicate::<Armour>();
        app.add_systems(NetTick, drive.run_if(is_authority));
        hall.join(&mut host, &mut app);
        app
    });
    let (heirs, others) = (me(&heir), me(&other));
    // Only its owner sees the second one: it is too far away.
    let near = (Replicate, Owner(heirs), Position { at: [1.0, 2.0] }, Armour { plates: 7 });
    let near = host.world_mut().spawn(near).id();
    let far = (Replicate, Owner(others), Position { at: [200.0, 2.0] }, Armour { plates: 9 });
    let far = host.world_mut().spawn(far).id();
    until(&mut [&mut host, &mut heir, &mut other], |apps| {
        same(apps[0], near, apps[1]).is_some() && same(apps[0], far, apps[2]).is_some()
    });
    assert_eq!(same(&host, far, &heir), None);
    let ids = [near, far].map(|entity| host.world().get::<Networked>(entity).unwrap().id);
    // A member's changes stay local, until it becomes the authority.
    let mine = same(&host, near, &heir).unwrap();
    heir.world_mut().get_mut::<Position>(mine).unwrap().at = [3.0, 3.0];
    ask(&mut host, |commands| commands.leave_room());
    until(&mut [&mut host, &mut heir, &mut other], |apps| {
        apps[1].world().resource::<RoomResource>().is_host()
    });
    let here = |app: &App, id| app.world().resource::<EntityMap>().get(id);
    // It has the whole world, and writes it: the owner of the far entity sees it move on.
    until(&mut [&mut heir, &mut other], |apps| {
        let tank = get::<Armour>(apps[1], here(apps[1], ids[1]));
        here(apps[0], ids[1]).is_some() && tank.is_some_and(|tank| tank.plates > 12)
    });
    assert_eq!(get(&heir, here(&heir, ids[0])), Some(Position { at: [1.0, 2.0] }), "as the room has it");
    let gone = here(&heir, ids[1]).unwrap();
    heir.world_mut().despawn(gone);
    until(&mut [&mut heir, &mut other], |apps| here(apps[1], ids[1]).is_none());
}

/// What the log says, as text.
#[derive(Clone, Default)]
struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no writer panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn m5_steps_run_by_the_time_that_a_system_of_the_app_brings() {
    #[derive(Default, Resource)]
    struct Clock {
        passes: Duration,
        steps: u32,
    }
    fn bring(room: Option<ResMut<RoomResource>>, clock: Res<Clock>) {
        room.into_iter().for_each(|mut room| room.advance(clock.passes));
    }
    let hall = Hall::start();
    let mut host = app();
    host.init_resource::<Clock>()
        .add_systems(PreUpdate, bring.before(ParlorSet::Drive))
        .add_systems(NetTick, |mut clock: ResMut<Clock>| clock.steps += 1);
    hall.open(&mut host, 60);
    let steps = |app: &App| app.world().resource::<Clock>().steps;
    let room_time = |app: &App| app.world().resource::<RoomResource>().server_time().expect("it is open");
    // The steps that were due when the app began to bring its time.
    host.update();
    let (paused, from) = (steps(&host), room_time(&host));
    until(&mut [&mut host], |apps| room_time(apps[0]) > from + Duration::from_millis(300));
    assert_eq!(steps(&host), paused, "no time passes in the app");
    host.world_mut().resource_mut::<Clock>().passes = Duration::from_millis(5);
    until(&mut [&mut host], |apps| steps(apps[0]) > paused + 10);
}

#[test]
fn m4_a_mutation_by_command_is_replicated_and_an_unregistered_component_warns_once() {
    /// Not registered.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Component)]
    struct Fuel {
        litres: u8,
    }
    replicated!(Fuel as "fuel" => { litres: Kind::int(0, 100) });

    let hall = Hall::start();
    let mut host = hall.host(30);
    let tank =
        host.world_mut().spawn((Replicate, Owner(None), Armour { plates: 1 }, Fuel { litres: 1 })).id();
    let mut member = hall.member(&mut host);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        for _ in 0..3 {
            let mut commands = host.world_mut().commands();
            let mut tank = commands.entity(tank);
            tank.mutate(|armour: &mut Armour| armour.plates += 2)
                .mutate(|fuel: &mut Fuel| *fuel = Fuel { litres: 9 });
            host.world_mut().flush();
        }
    });
    assert_eq!(host.world().get::<Fuel>(tank), Some(&Fuel { litres: 9 }), "it changes here");
    let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(said.matches("\"fuel\" was changed and is not replicated").count(), 1, "{said}");
    assert!(!said.contains("armour"), "{said}");
    until(&mut [&mut host, &mut member], |apps| {
        get(apps[1], same(apps[0], tank, apps[1])) == Some(Armour { plates: 7 })
    });
}
