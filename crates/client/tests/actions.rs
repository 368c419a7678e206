//! Predicted actions, time of the game's own, presets and other options of steps, over real sockets.

mod support;
#[path = "support/until.rs"]
mod until;

use parlor::schema::{Kind, Schema};
use parlor::{
    Acting, Action, ActionError, ActionRefusal, EntityId, Event, Host, Lane, Preset, Recipient, Room,
    RoomBuilder, RoomError, replicated,
};
use parlor_testing::Hall;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use support::Patience;
use until::until;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tank {
    shells: u8,
    armour: u8,
}
replicated!(Tank as "tank" => { shells: Kind::int(0, 20), armour: Kind::int(0, 100) });

/// Costs a shell. The host alone knows that the gun jams.
#[derive(Serialize, Deserialize)]
struct Shoot {
    jams: bool,
}

impl Action for Shoot {
    const NAME: &'static str = "shoot";

    fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
        let entity = world.entity();
        let mut tank: Tank = world.component(entity)?.ok_or("no_tank")?;
        tank.shells = tank.shells.checked_sub(1).ok_or("no_shells")?;
        world.insert(entity, &tank)?;
        if self.jams && world.is_host() { Err("jammed".into()) } else { Ok(()) }
    }
}

fn built<K: parlor::kind::Hosted>(hall: &Hall, builder: RoomBuilder<K>) -> RoomBuilder<K> {
    let schema = Schema::builder().replicate::<Tank>().build().expect("it is a schema");
    builder.registry(hall.registry.clone()).schema(schema).predict::<Tank>().action::<Shoot>()
}

fn open(mut room: Room) -> Room {
    until(&mut room, |event| matches!(event, Event::PlayerJoined(player) if player.is_me).then_some(()));
    room
}

fn pair(hall: &Hall) -> (Room, Room) {
    let host = open(built(hall, Room::host("tanks")).preset(Preset::Action).open());
    let code = host.code().expect("it is open").to_string();
    let guest = open(built(hall, Room::join("tanks", &code)).preset(Preset::Action).open());
    (host, guest)
}

fn tank(room: &Room) -> Option<(EntityId, Tank)> {
    let entity = *room.world().entities().first()?;
    Some((entity, room.world().component(entity).expect("it is there")?))
}

/// Polls and steps both until something holds at the guest. Returns the guest's events.
#[track_caller]
fn play(
    (host, guest): (&mut Room, &mut Room),
    mut step: impl FnMut(&mut parlor::Step<'_>),
    is_done: impl Fn(&Room, &Room, &[Event]) -> bool,
) -> Vec<Event> {
    let (patience, mut events) = (Patience::new(), Vec::new());
    loop {
        while host.poll().is_some() {}
        while host.step().is_some() {}
        while let Some(event) = guest.poll() {
            assert!(!matches!(event, Event::Closed(_)), "{event:?}");
            events.push(event);
        }
        while let Some(mut current) = guest.step() {
            step(&mut current);
        }
        if is_done(host, guest, &events) {
            return events;
        }
        patience.look_again(|| format!("{:?} and {:?}, {events:?}", tank(host), tank(guest)));
    }
}

fn give_tank(host: &mut Room, guest: &mut Room, shells: u8) {
    let owner = guest.local_id();
    let mut writer: Host<'_> = host.as_host().expect("it is the host");
    let tank = writer.spawn(owner).expect("there is room");
    writer.insert(tank, &Tank { shells, armour: 100 }).expect("it fits");
    // The lead is measured once an action was decided.
    play((host, guest), |_| (), |_, guest, _| self::tank(guest).is_some());
}

#[test]
fn m3_an_action_shows_at_once_is_decided_by_the_host_and_refused_by_name() {
    let hall = Hall::start();
    let (mut host, mut guest) = pair(&hall);
    give_tank(&mut host, &mut guest, 3);

    // One that the host accepts.
    let mut made = false;
    let shoot = |step: &mut parlor::Step<'_>| {
        if !std::mem::replace(&mut made, true) {
            let (own, before) = tank(step).expect("it has one");
            step.act(own, &Shoot { jams: false }).expect("it has shells");
            assert_eq!(step.acted(), [own]);
            assert_eq!(tank(step).expect("it is there").1.shells, before.shells - 1, "it shows at once");
        }
    };
    let is_decided = |host: &Room, guest: &Room, _: &[Event]| {
        let same = |room: &Room| tank(room).is_some_and(|(_, tank)| tank.shells == 2);
        same(host) && same(guest) && guest.diagnostics().actions_pending == 0
    };
    let events = play((&mut host, &mut guest), shoot, is_decided);
    assert!(!events.iter().any(|event| matches!(event, Event::ActionRefused { .. })));

    // One that the host refuses: it is undone, and its owner hears why.
    let mut made = false;
    let jam = |step: &mut parlor::Step<'_>| {
        if !std::mem::replace(&mut made, true) {
            let (own, _) = tank(step).expect("it has one");
            step.act(own, &Shoot { jams: true }).expect("it does not know");
            assert_eq!(tank(step).expect("it is there").1.shells, 1, "it shows at once");
        }
    };
    let is_refused = |_: &Room, guest: &Room, events: &[Event]| {
        let back = tank(guest).is_some_and(|(_, tank)| tank.shells == 2);
        back && events.iter().any(|event| matches!(event, Event::ActionRefused { .. }))
    };
    let events = play((&mut host, &mut guest), jam, is_refused);
    let refused = events.iter().find_map(|event| match event {
        Event::ActionRefused { name, why, .. } => Some((name.as_str(), why.clone())),
        _ => None,
    });
    assert_eq!(refused, Some(("shoot", ActionRefusal::ByGame { reason: "jammed".to_owned() })));
}

#[test]
fn m3_what_is_refused_here_changes_nothing_and_sends_nothing() {
    let hall = Hall::start();
    let (mut host, mut guest) = pair(&hall);
    give_tank(&mut host, &mut guest, 0);
    let (patience, mut refused) = (Patience::new(), None);
    while refused.is_none() {
        while host.poll().is_some() {}
        while host.step().is_some() {}
        while guest.poll().is_some() {}
        if let Some(mut step) = guest.step() {
            let (own, _) = tank(&step).expect("it has one");
            refused = Some(step.act(own, &Shoot { jams: false }));
        }
        patience.look_again(|| "no step is due".to_owned());
    }
    match refused.expect("a step was run") {
        Err(RoomError::Refused { why: ActionRefusal::ByGame { reason }, .. }) => {
            assert_eq!(reason, "no_shells")
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(guest.diagnostics().actions_pending, 0);
}

#[test]
fn m3_actions_without_a_definition_or_defined_twice_are_named() {
    let hall = Hall::start();
    let schema = Schema::builder().replicate::<Tank>().build().expect("it is a schema");
    let host = Room::host("tanks").registry(hall.registry.clone()).schema(schema);
    let twice = host.clone().action::<Shoot>().action::<Shoot>().check().expect_err("it is defined twice");
    assert!(twice.to_string().contains("\"shoot\" is defined twice"), "{twice}");
    let mut host = open(host.open());
    let me = host.local_id();
    let tank = host.as_host().expect("it is the host").spawn(me).expect("there is room");
    let patience = Patience::new();
    let undefined = loop {
        while host.poll().is_some() {}
        if let Some(mut step) = host.step() {
            break step.act(tank, &Shoot { jams: false }).expect_err("it is not defined");
        }
        patience.look_again(|| "no step is due".to_owned());
    };
    assert!(undefined.to_string().contains("\"shoot\" is not defined"), "{undefined}");
}

#[test]
fn m1_a_preset_sets_what_belongs_together_and_single_settings_change_it() {
    let hall = Hall::start();
    let (host, guest) = pair(&hall);
    for room in [&host, &guest] {
        assert_eq!(room.tick_hz(), Some(60));
    }
    let slow = Room::host("tanks").registry(hall.registry.clone()).preset(Preset::Calm).tick_hz(5);
    assert_eq!(open(slow.open()).tick_hz(), Some(5));
}

#[test]
fn m4_a_component_is_changed_with_a_new_state_or_in_place() {
    struct Unknown {
        flag: bool,
    }
    replicated!(Unknown as "unknown" => { flag: Kind::Bool });
    let hall = Hall::start();
    let (mut host, mut guest) = pair(&hall);
    give_tank(&mut host, &mut guest, 3);
    let (entity, _) = tank(&host).expect("it has one");
    let mut writer = host.as_host().expect("it is the host");
    writer.insert(entity, &Tank { shells: 5, armour: 50 }).expect("it fits");
    assert!(writer.modify(entity, |tank: &mut Tank| tank.armour -= 20).expect("it fits"));
    let bare = writer.spawn(None).expect("there is room");
    assert!(!writer.modify(bare, |tank: &mut Tank| tank.armour = 0).expect("it is left as it is"));
    let wrong = writer.modify(entity, |_: &mut Unknown| ()).expect_err("the schema does not have it");
    assert!(wrong.to_string().contains("unknown"), "{wrong}");
    let wanted = Tank { shells: 5, armour: 30 };
    play(
        (&mut host, &mut guest),
        |_| (),
        |_, guest, _| guest.world().component::<Tank>(entity).ok().flatten() == Some(wanted),
    );
}

#[test]
fn m2_a_caller_may_reuse_its_buffer() {
    let hall = Hall::start();
    let (mut host, mut guest) = pair(&hall);
    let (mut message, mut bytes) = (vec![0u8; 8], vec![0u8; 8]);
    for round in 0..20u8 {
        message.fill(round);
        guest.send(Recipient::Authority, "round", &message).expect("it is small");
        guest.send_with(Lane::ReliableOrdered, Recipient::Authority, "copy", &bytes).expect("it is small");
        bytes.fill(round + 1);
        message.clear();
        message.resize(8, 0xff);
    }
    let (patience, mut rounds, mut copies) = (Patience::new(), Vec::new(), Vec::new());
    while copies.len() < 20 {
        while guest.poll().is_some() {}
        while let Some(event) = host.poll() {
            let Event::Message(message) = event else { continue };
            let heard: Vec<u8> = message.read().expect("it is a list");
            assert!(heard.iter().all(|byte| *byte == heard[0]), "{heard:?}");
            if message.kind == "round" { rounds.push(heard[0]) } else { copies.push(heard[0]) }
        }
        patience.look_again(|| format!("{rounds:?} {copies:?}"));
    }
    assert_eq!((rounds, copies), ((0..20).collect(), (0..20).collect()));
}

#[test]
fn a10_and_a11_the_hosts_reads_are_the_authoritative_ones_and_updates_say_what_they_are() {
    let hall = Hall::start();
    let (mut host, mut guest) = pair(&hall);
    give_tank(&mut host, &mut guest, 3);
    let me = guest.local_id().expect("it is in");
    let patience = Patience::new();
    loop {
        while host.poll().is_some() {}
        while let Some(mut step) = host.step() {
            let number = step.number().0;
            step.set_predicted("round", &0).expect("it does nothing");
            let mut host = step.host().expect("it is the host");
            host.set("round", &number).expect("it fits");
            host.input::<u32>(me);
        }
        while guest.poll().is_some() {}
        while let Some(mut step) = guest.step() {
            let number = step.number().0;
            step.sample_input(|| number).expect("the room is open");
        }
        let (state, update) = (host.state(), guest.world().update());
        let round: Option<u32> = state.get("round").expect("it is a number");
        assert_eq!(state.predicted::<u32>("round").expect("it is a number"), round);
        assert_eq!(state.interpolated::<u32>("round").expect("it is a number"), round);
        assert_eq!(host.rollback().get::<u32>("round").expect("it is a number"), round);
        assert_eq!(host.world().update(), None);
        let acks = host.input_ack(me).zip(guest.input_ack(me));
        if let (Some(update), Some((at_host, at_guest))) = (update, acks) {
            assert!(!at_guest.is_newer_than(at_host), "{at_guest:?} and {at_host:?}");
            assert_eq!(u64::from(update.server_tick.0), update.sequence);
            assert!((update.tick_interval_ms - 1_000.0 / 60.0).abs() < 0.01, "{update:?}");
            break;
        }
        patience.look_again(|| format!("{:?}", guest.diagnostics()));
    }
}

#[test]
fn m5_a_game_that_brings_its_time_steps_by_it_alone() {
    const HZ: u16 = 60;
    let hall = Hall::start();
    let mut room = open(built(&hall, Room::host("tanks")).tick_hz(HZ).open());
    let clock = |room: &Room| room.server_time().expect("it is open");
    room.advance(Duration::ZERO);
    while room.step().is_some() {}
    let (patience, paused_until) = (Patience::new(), clock(&room) + Duration::from_millis(300));
    while clock(&room) < paused_until {
        while room.poll().is_some() {}
        room.advance(Duration::ZERO);
        assert!(room.step().is_none(), "the room's clock brings no step");
        patience.look_again(|| "the room's clock stands still".to_owned());
    }

    // It gives time faster than it passes: steps are neither earlier than the room's nor more than the time brings.
    let (frame, interval) = (Duration::from_millis(3), Duration::from_secs(1) / u32::from(HZ));
    let (patience, mut given, mut steps) = (Patience::new(), Duration::ZERO, 0u32);
    while steps < 20 {
        while room.poll().is_some() {}
        room.advance(frame);
        given += frame;
        while let Some(step) = room.step() {
            steps += 1;
            let due = clock(&step).as_micros() * u128::from(HZ) / 1_000_000;
            assert!(u128::from(step.number().0) <= due, "step {} of {due} is early", step.number().0);
        }
        assert!(interval * steps <= given * 21 / 20 + interval, "{steps} steps in {given:?}");
        patience.look_again(|| format!("{steps} steps"));
    }
    assert!(room.diagnostics().game_time_behind <= Duration::from_millis(250));
}
