//! Entities that a host writes and members see according to their view.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_client_core::{Event, Options, RoomCore, RoomError};
use parlor_proto::wire::action::ActionRefusal;
use parlor_proto::{ApiMisuse, EntityId, MemberId};
use parlor_sim::{Link, PeerId, Rng, SEEDS, Sim, for_seeds};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::replicated;
use parlor_sync::schema::{Component, Condition, Kind, Replicated, RowReader, RowWriter, Schema};
use parlor_sync::world::WorldError;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
struct Place {
    at: [f32; 2],
    heading: f32,
}
replicated!(Place as "place" => {
    at: Kind::vector2(-100.0, 100.0, 1.0 / 64.0),
    heading: Kind::angle(256),
});

#[derive(Clone, Debug, PartialEq)]
struct Badge {
    name: String,
}
replicated!(Badge as "badge" => { name: Kind::text(24) });

/// Only the owner of an entity gets it.
#[derive(Clone, Debug, PartialEq)]
struct Ammo {
    shells: u8,
}

impl Replicated for Ammo {
    const NAME: &'static str = "ammo";

    fn component() -> Component {
        Component::builder("ammo").field("shells", Kind::int(0, 20)).condition(Condition::OwnerOnly).build()
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        row.set(0, &self.shells);
    }

    fn read(row: &RowReader<'_>) -> Self {
        Ammo { shells: row.get(0) }
    }
}

fn options(options: Options) -> Options {
    let schema = Schema::builder().replicate::<Place>().replicate::<Badge>().replicate::<Ammo>();
    Options { schema: Some(Arc::new(schema.build().expect("it is in order"))), ..options }
}

fn room(sim: &mut Sim, guests: usize, mut link: impl FnMut() -> Link) -> (PeerId, Vec<PeerId>) {
    let host = sim.host(options(Options::host("tanks")), link());
    let code = sim.code(host);
    let mut join = |_| {
        let guest = sim.enter(options(Options::join("tanks", code)), link());
        sim.run_until(10_000, "a seat", |sim| sim.room(guest).is_connected());
        guest
    };
    (host, (0..guests).map(&mut join).collect())
}

/// Everything that a process sees of the entities.
type Seen = BTreeMap<EntityId, (Option<MemberId>, Option<Place>, Option<Badge>, Option<Ammo>)>;

fn seen(sim: &mut Sim, peer: PeerId) -> Seen {
    sim.act(peer, |room, now| {
        let world = room.world(now).expect("it is open");
        let entities = world.entities().into_iter();
        let parts = |it| -> Result<_, RoomError> {
            Ok((world.owner(it)?, world.component(it)?, world.component(it)?, world.component(it)?))
        };
        entities.map(|entity| (entity, parts(entity).expect("it was listed"))).collect()
    })
}

type Audiences = Rc<RefCell<BTreeMap<EntityId, Audience>>>;

/// The host changes something at random.
fn meddle(room: &mut RoomCore, now: parlor_proto::Instant, rng: &mut Rng, audiences: &Audiences) {
    let mut world = room.world(now).expect("it is open");
    let entities = world.entities();
    let owner = |rng: &mut Rng| (rng.below(2) == 0).then(|| MemberId(u32::try_from(rng.below(4)).unwrap()));
    if entities.len() < 4 || entities.len() < 30 && rng.per_mille(150) {
        let entity = world.spawn(owner(rng)).unwrap();
        audiences.borrow_mut().insert(entity, Audience::All);
        return world.insert(entity, &place(rng)).unwrap();
    }
    let entity = rng.pick(&entities);
    match rng.below(12) {
        0 => {
            audiences.borrow_mut().remove(&entity);
            world.despawn(entity).unwrap();
        }
        1 => world.transfer(entity, owner(rng)).unwrap(),
        2 => {
            let one = MemberId(u32::try_from(rng.below(4)).unwrap());
            let audience = rng.pick(&[Audience::All, Audience::members([one]), Audience::members([])]);
            audiences.borrow_mut().insert(entity, audience.clone());
            world.set_audience(entity, audience).unwrap();
        }
        3 => drop(world.remove::<Badge>(entity).unwrap()),
        4 => world.insert(entity, &Badge { name: "x".repeat(rng.index(20)) }).unwrap(),
        5 => world.insert(entity, &Ammo { shells: u8::try_from(rng.below(20)).unwrap() }).unwrap(),
        _ => world.insert(entity, &place(rng)).unwrap(),
    }
}

fn place(rng: &mut Rng) -> Place {
    let mut number = || rng.index(20_000) as f32 / 100.0 - 100.0;
    Place { at: [number(), number()], heading: number() / 33.0 }
}

#[test]
fn everybody_comes_to_see_what_it_may_see_exactly_as_the_host_has_it() {
    for_seeds(SEEDS / 2, |seed| {
        let (mut sim, mut links) = (Sim::new(seed), Rng::new(seed ^ 3));
        let (host, guests) = room(&mut sim, 3, || Link::any(&mut links).jitter_ms(30));
        let (audiences, is_busy) = (Audiences::default(), Rc::new(RefCell::new(true)));
        let (told, busy) = (Rc::clone(&audiences), Rc::clone(&is_busy));
        let mut rng = Rng::new(seed);
        sim.play(host, move |room, now| {
            for _ in 0..if *busy.borrow() { rng.below(5) } else { 0 } {
                meddle(room, now, &mut rng, &told);
            }
        });
        sim.run_for(4_000);
        *is_busy.borrow_mut() = false;
        // After the random changes, every kind of component exists.
        let last = sim.act(host, |room, now| {
            let mut world = room.world(now).unwrap();
            let entity = world.spawn(Some(MemberId(1))).unwrap();
            world.insert(entity, &Badge { name: "last".to_owned() }).unwrap();
            world.insert(entity, &Ammo { shells: 1 }).unwrap();
            entity
        });
        audiences.borrow_mut().insert(last, Audience::All);
        sim.run_for(3_000);
        let all = seen(&mut sim, host);
        assert!(all.len() >= 3 && all.contains_key(&last));
        for (guest, me) in guests.iter().zip([1, 2, 3].map(MemberId)) {
            let mut expected = all.clone();
            expected.retain(|entity, _| audiences.borrow()[entity].admits(Viewer::Member(me)));
            for (owner, _, _, ammo) in expected.values_mut() {
                ammo.take_if(|_| *owner != Some(me));
            }
            assert_eq!(seen(&mut sim, *guest), expected, "player {me}");
            assert_tells_what_it_shows(&mut sim, *guest);
        }
    });
}

/// Checks that a member's events agree with what it sees in the end.
fn assert_tells_what_it_shows(sim: &mut Sim, guest: PeerId) {
    let mut told = BTreeSet::new();
    for event in sim.take_events(guest) {
        match event {
            Event::Spawned { entity } => assert!(told.insert(entity), "{entity} came twice"),
            Event::Despawned { entity } => assert!(told.remove(&entity), "{entity} went and was not there"),
            _ => {}
        }
    }
    assert_eq!(told, seen(sim, guest).into_keys().collect());
}

#[test]
fn what_is_written_is_read_back_as_quantized_and_is_the_same_everywhere() {
    let mut sim = Sim::new(1);
    let (host, guests) = room(&mut sim, 1, Link::quic);
    let written = Place { at: [1.0 / 3.0, 1e9], heading: 7.0 };
    let (entity, quantized) = sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        let entity = world.spawn(None).unwrap();
        world.insert(entity, &written).unwrap();
        (entity, world.component::<Place>(entity).unwrap().unwrap())
    });
    assert_eq!(quantized.at, [21.0 / 64.0, 100.0], "the nearest step, and the end of the range");
    sim.run_for(500);
    let read = |sim: &mut Sim, peer| sim.act(peer, |room, now| room.world(now).unwrap().component(entity));
    assert_eq!(read(&mut sim, guests[0]), Ok(Some(quantized.clone())));
    // A simulation that writes back what it reads causes no change.
    sim.act(host, |room, now| room.world(now).unwrap().insert(entity, &quantized).unwrap());
    let before = sim.room(host).diagnostics().updates_published;
    sim.run_for(500);
    assert_eq!(sim.room(host).diagnostics().updates_published, before);
}

#[test]
fn threat_18_what_is_no_number_is_refused_by_name_and_changes_nothing() {
    let mut sim = Sim::new(2);
    let (host, _) = room(&mut sim, 0, Link::quic);
    sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        let entity = world.spawn(None).unwrap();
        let good = Place { at: [1.0, 2.0], heading: 0.0 };
        world.insert(entity, &good).unwrap();
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let error = world.insert(entity, &Place { at: [0.0, bad], ..good.clone() }).unwrap_err();
            assert!(
                matches!(&error, RoomError::World(it) if matches!(**it, WorldError::Row(_))),
                "{error:?}"
            );
            assert!(error.to_string().contains("place") && error.to_string().contains("at"), "{error}");
        }
        assert_eq!(world.component::<Place>(entity), Ok(Some(good)));
    });
}

#[test]
fn only_the_host_writes_and_nobody_touches_what_carries_keys() {
    let mut sim = Sim::new(3);
    let (host, guests) = room(&mut sim, 1, Link::quic);
    let entity = sim.act(host, |room, now| {
        room.set("key", &1, Audience::All).unwrap();
        room.world(now).unwrap().spawn(None).unwrap()
    });
    sim.run_for(500);
    for peer in [host, guests[0]] {
        assert_eq!(seen(&mut sim, peer).into_keys().collect::<Vec<_>>(), [entity]);
    }
    sim.act(guests[0], |room, now| {
        let mut world = room.world(now).unwrap();
        let errors = [world.spawn(None).unwrap_err(), world.despawn(entity).unwrap_err()];
        for error in errors {
            assert!(matches!(error, RoomError::Misuse(ApiMisuse::NotHost { .. })), "{error}");
        }
    });
    sim.act(host, |room, now| {
        // The key is the entity before this one.
        let forged = EntityId { slot: entity.slot - 1, generation: entity.generation };
        let mut world = room.world(now).unwrap();
        assert!(!world.contains(forged) && world.despawn(forged).is_err());
        assert!(world.transfer(forged, Some(MemberId(1))).is_err());
    });
    assert_eq!(sim.room(host).get::<i32>("key"), Ok(Some(1)));
}

fn actions(sim: &mut Sim, peer: PeerId) -> Vec<Event> {
    let events = sim.take_events(peer).into_iter();
    events.filter(|it| matches!(it, Event::Action { .. } | Event::ActionRefused { .. })).collect()
}

#[test]
fn an_action_on_an_own_entity_reaches_the_host_and_one_on_anothers_is_refused() {
    for link in [Link::quic().jitter_ms(30).loss(50), Link::websocket()] {
        let mut sim = Sim::new(4);
        let (host, guests) = room(&mut sim, 2, || link);
        let entities = sim.act(host, |room, now| {
            let mut world = room.world(now).unwrap();
            [1, 2].map(|owner| world.spawn(Some(MemberId(owner))).unwrap())
        });
        sim.run_for(1_000);
        let refused = |why| Err(RoomError::Refused { entity: entities[1], why });
        sim.act(guests[0], |room, _| {
            for shot in 0..10 {
                room.act(entities[0], "fire", &shot).unwrap();
            }
            assert_eq!(room.act(entities[1], "fire", &0), refused(ActionRefusal::NotOwner));
            let unknown = EntityId { slot: 77, generation: 1 };
            let why = ActionRefusal::NoSuchEntity;
            assert_eq!(room.act(unknown, "fire", &0), Err(RoomError::Refused { entity: unknown, why }));
            assert!(room.act(entities[0], "", &0).is_err(), "a name has at least one byte");
        });
        sim.run_for(2_000);
        let came: Vec<i64> = actions(&mut sim, host)
            .into_iter()
            .map(|event| match event {
                Event::Action {
                    from: MemberId(1),
                    entity,
                    name,
                    value: parlor_sync::value::Value::Int(shot),
                } => {
                    assert_eq!((entity, name.as_str()), (entities[0], "fire"));
                    shot
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(came, (0..10).collect::<Vec<_>>());
        assert_eq!(actions(&mut sim, guests[0]), []);
    }
}

#[test]
fn an_action_that_crosses_a_transfer_is_refused_to_whoever_asked() {
    for_seeds(SEEDS / 5, |seed| {
        let mut sim = Sim::new(seed);
        let mut rng = Rng::new(seed);
        // The transfer is on its way to the hub or the guest while the guest still acts.
        let latency_ms = 20 + rng.below(100);
        let (host, guests) = room(&mut sim, 2, || Link::quic().latency_ms(latency_ms));
        let tank = sim.act(host, |room, now| room.world(now).unwrap().spawn(Some(MemberId(1))).unwrap());
        sim.run_for(1_000);
        sim.act(host, |room, now| room.world(now).unwrap().transfer(tank, Some(MemberId(2))).unwrap());
        sim.run_for(rng.below(latency_ms));
        sim.act(guests[0], |room, _| room.act(tank, "fire", &1).unwrap());
        sim.run_for(2_000);
        assert_eq!(actions(&mut sim, host), []);
        let refused =
            Event::ActionRefused { entity: tank, name: "fire".into(), why: ActionRefusal::NotOwner };
        assert_eq!(actions(&mut sim, guests[0]), [refused]);
        // The new owner may.
        sim.act(guests[1], |room, _| room.act(tank, "fire", &2).unwrap());
        sim.run_for(1_000);
        assert_eq!(actions(&mut sim, host).len(), 1);
    });
}

#[test]
fn m7_interpolated_components_move_evenly_and_own_ones_are_as_they_are() {
    for_seeds(SEEDS / 5, |seed| {
        let mut sim = Sim::new(seed);
        let link = Link::quic().latency_ms(50).jitter_ms(15);
        let (host, guests) = room(&mut sim, 2, || link);
        let tank = sim.act(host, |room, now| room.world(now).unwrap().spawn(Some(MemberId(2))).unwrap());
        // A step moves it by a quarter.
        sim.play(host, move |room, now| {
            let mut world = room.world(now).unwrap();
            let x = world.component::<Place>(tank).unwrap().map_or(-90.0, |place| place.at[0]);
            world.insert(tank, &Place { at: [x + 0.25, 0.0], heading: 0.0 }).unwrap();
        });
        sim.run_for(5_000);
        let (other, owner) = (guests[0], guests[1]);
        [other, owner].into_iter().for_each(|peer| sim.stall(peer, true));
        let mut last: Option<f32> = None;
        let mut moved = Vec::new();
        for _ in 0..300 {
            sim.run_for(10);
            let mut look = |peer| {
                sim.act(peer, |room, now| {
                    while room.poll(now).is_some() {}
                    let mut world = room.world(now).unwrap();
                    let newest = world.component::<Place>(tank).unwrap().unwrap().at[0];
                    (newest, world.interpolated_component::<Place>(tank).unwrap().unwrap().at[0])
                })
            };
            let (newest, shown) = look(owner);
            assert_eq!(newest, shown, "its own is not played out");
            let (newest, shown) = look(other);
            // When the next update is late, it extrapolates for a step or so.
            let is_near = shown - newest < 2.0 * 0.25 && newest - shown < 15.0 * 0.25;
            assert!(is_near, "{shown} is far from {newest}");
            moved.extend(last.map(|last| shown - last));
            last = Some(shown);
        }
        // 10 ms are 0.3 steps.
        assert!(moved.iter().all(|step| (0.0..1.5 * 0.25).contains(step)), "{moved:?}");
        let even = moved.iter().filter(|step| (0.27 * 0.25..0.33 * 0.25).contains(*step)).count();
        assert!(even >= moved.len() * 85 / 100, "{even} of {} steps are even: {moved:?}", moved.len());
    });
}

#[test]
fn changes_are_told_once_with_the_components_that_changed() {
    let mut sim = Sim::new(6);
    let (host, guests) = room(&mut sim, 1, Link::quic);
    let tank = sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        let tank = world.spawn(None).unwrap();
        world.insert(tank, &Badge { name: "ada".into() }).unwrap();
        world.insert(tank, &Place { at: [0.0, 0.0], heading: 0.0 }).unwrap();
        tank
    });
    sim.run_for(500);
    let bits = |room: &RoomCore| {
        (room.component_id::<Place>().unwrap().bit(), room.component_id::<Badge>().unwrap().bit())
    };
    let (place, badge) = bits(sim.room(guests[0]));
    let changes = |sim: &mut Sim| sim.act(guests[0], |room, _| room.take_changes());
    assert_eq!(changes(&mut sim), [(tank, place | badge)]);
    assert_eq!(changes(&mut sim), []);
    sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        world.insert(tank, &Place { at: [1.0, 0.0], heading: 0.0 }).unwrap();
        world.insert(tank, &Badge { name: "ada".into() }).unwrap();
    });
    sim.run_for(500);
    assert_eq!(changes(&mut sim), [(tank, place)]);
    sim.act(host, |room, now| room.world(now).unwrap().transfer(tank, Some(MemberId(1))).unwrap());
    sim.run_for(500);
    assert_eq!(changes(&mut sim), [(tank, 0)], "its owner alone changed");
}

#[test]
fn a_guest_without_a_schema_reads_by_that_of_the_room() {
    let mut sim = Sim::new(7);
    let (host, _) = room(&mut sim, 0, Link::quic);
    let code = sim.code(host);
    let guest = sim.enter(Options::join("tanks", code), Link::quic());
    let tank = sim.act(host, |room, now| {
        let mut world = room.world(now).unwrap();
        let tank = world.spawn(None).unwrap();
        world.insert(tank, &Badge { name: "ada".into() }).unwrap();
        tank
    });
    sim.run_for(1_000);
    let badge = sim.act(guest, |room, now| room.world(now).unwrap().component::<Badge>(tank));
    assert_eq!(badge, Ok(Some(Badge { name: "ada".into() })));
}
