//! Predicted actions.

use super::*;
use parlor::{Acting, Action, ActionError, ActionRefusal};
use parlor_bevy::{ActCommands, ActError, ActionApp, ActionRefused};
use serde::{Deserialize, Serialize};

/// Costs a plate and leaves a wreck, which the host spawns. The host alone knows that the gun jams.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Fire {
    jams: bool,
}

impl Action for Fire {
    const NAME: &'static str = "fire";

    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
        let own = world.entity();
        let mut armour: Armour = world.component(own)?.ok_or("no_armour")?;
        armour.plates = armour.plates.checked_sub(1).ok_or("no_plates")?;
        world.insert(own, &armour)?;
        if self.jams && world.is_host() {
            return Err("jammed".into());
        }
        if let Some(wreck) = world.spawn(None)? {
            world.insert(wreck, &Position { at: [7.0, f32::from(armour.plates)] })?;
        }
        Ok(())
    }
}

/// Takes the own entity out of the room.
#[derive(Serialize, Deserialize)]
struct Leave;

impl Action for Leave {
    const NAME: &'static str = "leave";

    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
        let own = world.entity();
        Ok(world.despawn(own)?)
    }
}

/// What the app saw.
#[derive(Debug, Default, Resource)]
struct Seen {
    refused: Vec<ActionRefused>,
    /// The plates that a step found changed, in order.
    changed: Vec<u8>,
}

fn note_refusals(mut refused: MessageReader<ActionRefused>, mut seen: ResMut<Seen>) {
    seen.refused.extend(refused.read().cloned());
}

fn note_changes(tanks: Query<&Armour, Changed<Armour>>, mut seen: ResMut<Seen>) {
    seen.changed.extend(tanks.iter().map(|armour| armour.plates));
}

fn acting() -> App {
    let mut app = App::new();
    app.add_plugins(ParlorPlugin::app("tanks")).init_resource::<Seen>();
    app.replicate::<Position>();
    app.replicate::<Armour>().predicted();
    app.action::<Fire>().action::<Leave>();
    app.add_systems(Update, note_refusals).add_systems(NetTick, note_changes);
    app
}

fn act<A: Action + Send + Sync>(app: &mut App, entity: Entity, action: A) {
    ask(app, |commands| {
        commands.entity(entity).act(action);
    });
}

fn plates(app: &App, entity: Option<Entity>) -> Option<u8> {
    get::<Armour>(app, entity).map(|armour| armour.plates)
}

fn pending(app: &App) -> usize {
    app.world().resource::<RoomResource>().diagnostics().actions_pending
}

/// The wrecks that an app has.
fn wrecks(app: &mut App) -> Vec<Position> {
    let mut query = app.world_mut().query_filtered::<&Position, With<Networked>>();
    query.iter(app.world()).copied().collect()
}

/// The host, a member, and the member's tank on both.
fn with_tank(hall: &Hall) -> (App, App, Entity, Entity) {
    let (mut host, mut member) = (acting(), acting());
    hall.open(&mut host, 30);
    hall.join(&mut host, &mut member);
    let tank = host.world_mut().spawn((Replicate, Owner(me(&member)), Armour { plates: 3 })).id();
    until(&mut [&mut host, &mut member], |apps| plates(apps[1], same(apps[0], tank, apps[1])) == Some(3));
    let there = same(&host, tank, &member).expect("it is there");
    (host, member, tank, there)
}

#[test]
fn m3_an_action_shows_at_once_and_is_decided_by_the_authority() {
    let hall = Hall::start();
    let (mut host, mut member, tank, there) = with_tank(&hall);
    act(&mut member, there, Fire::default());
    // The host draws no frame meanwhile.
    until(&mut [&mut member], |apps| plates(apps[0], Some(there)) == Some(2));
    assert_eq!((plates(&host, Some(tank)), pending(&member)), (Some(3), 1));
    let wreck = Position { at: [7.0, 2.0] };
    until(&mut [&mut host, &mut member], |apps| {
        let [host, member] = apps else { unreachable!() };
        plates(host, Some(tank)) == Some(2)
            && plates(member, Some(there)) == Some(2)
            && pending(member) == 0
            && wrecks(host) == [wreck]
            && wrecks(member) == [wreck]
    });
    // What actions write is a change for the systems of the step.
    let seen = |app: &App| app.world().resource::<Seen>().changed.clone();
    for app in [&host, &member] {
        assert!(seen(app).ends_with(&[2]) && seen(app).contains(&3), "{:?}", seen(app));
        assert!(app.world().resource::<Seen>().refused.is_empty());
    }
}

#[test]
fn m3_what_the_authority_refuses_is_undone_and_says_why() {
    let hall = Hall::start();
    let (mut host, mut member, tank, there) = with_tank(&hall);
    act(&mut member, there, Fire { jams: true });
    until(&mut [&mut member], |apps| plates(apps[0], Some(there)) == Some(2));
    let refused = |app: &App| app.world().resource::<Seen>().refused.clone();
    until(&mut [&mut host, &mut member], |apps| {
        plates(apps[1], Some(there)) == Some(3) && !refused(apps[1]).is_empty()
    });
    let why = ActionRefusal::ByGame { reason: "jammed".into() };
    let told = refused(&member);
    let [ActionRefused { entity, name, why: told, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((*entity, name.as_str(), told), (Some(there), "fire", &why));
    assert_eq!(plates(&host, Some(tank)), Some(3));
    assert!(wrecks(&mut host).is_empty(), "its wreck is undone, too");

    // A local refusal arrives as the same event.
    let others = host.world_mut().spawn((Replicate, Armour { plates: 9 })).id();
    until(&mut [&mut host, &mut member], |apps| same(apps[0], others, apps[1]).is_some());
    let others = same(&host, others, &member).expect("it is there");
    act(&mut member, others, Fire::default());
    until(&mut [&mut member], |apps| refused(apps[0]).len() == 2);
    let last = refused(&member).pop().expect("there are two");
    assert_eq!((last.entity, last.why), (Some(others), ActionRefusal::NotOwner));
    assert_eq!(plates(&member, Some(others)), Some(9));
}

#[test]
fn m3_the_authority_acts_itself_and_keeps_what_its_systems_changed() {
    let hall = Hall::start();
    let (mut host, mut member, ..) = with_tank(&hall);
    let own = (Replicate, Owner(me(&host)), Armour { plates: 5 }, Position::default());
    let own = host.world_mut().spawn(own).id();
    until(&mut [&mut host, &mut member], |apps| same(apps[0], own, apps[1]).is_some());
    act(&mut host, own, Fire::default());
    // No step has sent these.
    host.world_mut().get_mut::<Position>(own).expect("it has one").at = [1.0, 1.0];
    host.world_mut().get_mut::<Armour>(own).expect("it has one").plates = 50;
    until(&mut [&mut host, &mut member], |apps| {
        let there = same(apps[0], own, apps[1]);
        plates(apps[0], Some(own)) == Some(49) && plates(apps[1], there) == Some(49)
    });
    assert_eq!(get(&host, Some(own)), Some(Position { at: [1.0, 1.0] }));
    assert_eq!(get(&member, same(&host, own, &member)), Some(Position { at: [1.0, 1.0] }));

    let there = same(&host, own, &member).expect("it is there");
    act(&mut host, own, Leave);
    until(&mut [&mut host, &mut member], |apps| {
        let is_gone = |app: &App, entity| app.world().get_entity(entity).is_err();
        is_gone(apps[0], own) && is_gone(apps[1], there)
    });
}

#[test]
fn m3_what_cannot_act_and_what_is_defined_wrongly_is_said() {
    let said =
        |build: fn()| *catch_unwind(build).expect_err("it is wrong").downcast::<String>().expect("a text");
    let alone = said(|| {
        App::new().action::<Fire>();
    });
    assert!(alone.contains("\"fire\"") && alone.contains("add ParlorPlugin"), "{alone}");
    let twice = said(|| {
        acting().action::<Fire>();
    });
    assert!(twice.contains("\"fire\" is defined twice"), "{twice}");
    let late = said(|| {
        let hall = Hall::start();
        hall.host(30).action::<Fire>();
    });
    assert!(late.contains("the app was in a room"), "{late}");

    let mut app = acting();
    app.set_error_handler(|error, _| panic!("{error}"));
    let entity = app.world_mut().spawn(Armour { plates: 1 }).id();
    let panicked = catch_unwind(AssertUnwindSafe(|| act(&mut app, entity, Fire::default())));
    let text = *panicked.expect_err("it is in no room").downcast::<String>().expect("a text");
    assert!(text.contains(&ActError::NotInRoom(entity).to_string()), "{text}");
}
