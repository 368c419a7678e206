//! One sender and one receiver of a world: the cost of idle, the effect of a budget, and a hostile peer.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::limits::WORLD_LANES_MAX;
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{
    Audience, Encodings, EntityId, Outcome, Publisher, PublisherConfig, Replica, Sent, StreamError, Viewer,
    Views, World, WorldError,
};
use std::sync::Arc;

const PLACE: ComponentId = ComponentId(2);
const NOTE: ComponentId = ComponentId(3);
const MEMBER: Viewer = Viewer::Member(MemberId(1));

fn schema() -> Arc<Schema> {
    let place = Component::builder("place").field("at", Kind::vector3(0.0, 1_000.0, 1.0 / 64.0)).build();
    let note = Component::builder("note").field("text", Kind::text(16_000)).build();
    Arc::new(Schema::builder().component(place).component(note).build().unwrap())
}

fn world() -> World {
    World::new(schema(), TickRate::DEFAULT)
}

fn replica() -> Replica {
    Replica::new(schema(), TickRate::DEFAULT)
}

fn at(tick: u32) -> Instant {
    Instant::from_millis(u64::from(tick) * 33)
}

fn put(world: &mut World, entity: EntityId, x: i32) {
    world.write_row(entity, PLACE, &[x, 5, 6], &[]).unwrap();
}

/// All packets that a publisher has to send at once.
fn all(publisher: &mut Publisher, world: &World, now: Instant) -> Vec<(Bytes, Sent)> {
    let mut encodings = Encodings::new();
    core::iter::from_fn(|| publisher.poll(world, &mut encodings, now)).collect()
}

#[test]
fn an_idle_world_sends_nothing() {
    let mut world = world();
    let entities: Vec<EntityId> = (0..50).map(|_| world.spawn(None).unwrap()).collect();
    entities.iter().zip(0..).for_each(|(entity, x)| put(&mut world, *entity, x));
    world.commit(Tick(1)).unwrap();
    let mut publisher = Publisher::new(MEMBER, PublisherConfig::default());
    let mut replica = replica();
    for (bytes, sent) in all(&mut publisher, &world, at(1)) {
        replica.apply(bytes).unwrap();
        publisher.delivered(sent);
    }
    assert_eq!(replica.settled(), Some(Tick(1)));
    for tick in 2..500 {
        // Setting the present value is not a change.
        entities.iter().zip(0..).for_each(|(entity, x)| put(&mut world, *entity, x));
        assert!(!world.commit(Tick(tick)).unwrap());
        assert!(!publisher.is_due(&world));
        assert_eq!(all(&mut publisher, &world, at(tick)), []);
    }
    // After all that time the first change still builds on the receiver's row.
    put(&mut world, entities[7], 8);
    world.commit(Tick(500)).unwrap();
    let packets = all(&mut publisher, &world, at(500));
    assert!(packets.len() == 1 && packets[0].0.len() < 20, "{packets:?}");
    assert!(matches!(replica.apply(packets[0].0.clone()), Ok(Outcome::Taken(applied)) if applied.settled));
    assert_eq!(replica.world().hash(MEMBER), world.hash(MEMBER));
}

#[test]
fn what_does_not_fit_the_budget_is_sent_in_turn() {
    let mut world = world();
    let entities: Vec<EntityId> = (0..300).map(|_| world.spawn(None).unwrap()).collect();
    // About a fifth of what all of them would need.
    let mut publisher = Publisher::new(MEMBER, PublisherConfig::new(6_000));
    let mut encodings = Encodings::new();
    let mut replica = replica();
    let mut rng = Rng::new(3);
    let mut stalest = 0;
    let mut under_way: Vec<(u32, Sent)> = Vec::new();
    for tick in 1..400 {
        entities
            .iter()
            .for_each(|entity| put(&mut world, *entity, i32::try_from(rng.below(60_000)).unwrap()));
        world.commit(Tick(tick)).unwrap();
        under_way.retain(|(due, sent)| {
            if *due <= tick {
                publisher.delivered(*sent);
            }
            *due > tick
        });
        while let Some((bytes, sent)) = publisher.poll(&world, &mut encodings, at(tick)) {
            replica.apply(bytes).unwrap();
            under_way.push((tick + 3, sent));
        }
        let figures = publisher.diagnostics(&world);
        if tick > 200 {
            stalest = stalest.max(figures.staleness_ticks_max);
        }
        assert!(figures.in_flight_bytes <= 6_000 * 7 / 20 + 940, "{figures:?}");
    }
    let figures = publisher.diagnostics(&world);
    let budget = 6_000.0 * 400.0 * 0.033;
    assert!(figures.bytes as f64 <= budget + 3_000.0 && figures.bytes as f64 > budget * 0.7, "{figures:?}");
    assert!(figures.pending > 100 && figures.held_back > 0, "{figures:?}");
    assert!(stalest < 60, "an entity waited {stalest} ticks");
    assert_eq!(replica.world().len(), 300);
}

#[test]
fn a_receiver_knows_how_old_its_baselines_are_and_how_far_behind_it_is() {
    let mut world = world();
    let (mut publisher, mut replica) = (Publisher::new(MEMBER, PublisherConfig::default()), replica());
    let figures = replica.diagnostics(Tick(7));
    assert_eq!((figures.newest_age_ticks, figures.settled_age_ticks), (None, None));
    assert_eq!(figures.baseline_age_ticks_mean, None);
    let entity = world.spawn(None).unwrap();
    let mut lost = Vec::new();
    for tick in 1..=10 {
        put(&mut world, entity, tick as i32);
        world.commit(Tick(tick)).unwrap();
        for (bytes, sent) in all(&mut publisher, &world, at(tick)) {
            // The packets of ticks 5 to 7 are lost, which is known only at tick 9.
            if (5..8).contains(&tick) {
                lost.push(sent);
                continue;
            }
            replica.apply(bytes).unwrap();
            if tick < 9 {
                publisher.delivered(sent);
            }
        }
        if tick == 9 {
            lost.drain(..).for_each(|sent| publisher.lost(sent));
        }
    }
    let figures = replica.diagnostics(Tick(12));
    // Each builds on the row of the tick before it, that of tick 8 on tick 4, and that of tick 10 on tick 8.
    let ages = [1, 1, 1, 4, 1, 2];
    assert_eq!(replica.counters().updates, ages.len() as u64);
    assert_eq!(
        figures.baseline_age_ticks_mean,
        Some(f64::from(ages.iter().sum::<u32>()) / ages.len() as f64)
    );
    assert_eq!(figures.baseline_age_ticks_max, 4);
    assert_eq!((figures.newest_age_ticks, figures.settled_age_ticks), (Some(2), Some(2)));
    assert_eq!((figures.packets, figures.visible), (7, 1));
    // It stays as of tick 10 while a later packet is missing that no newer one covers.
    let other = world.spawn(None).unwrap();
    put(&mut world, other, 100);
    world.commit(Tick(20)).unwrap();
    assert_eq!(all(&mut publisher, &world, at(20)).len(), 1);
    put(&mut world, entity, 101);
    world.commit(Tick(21)).unwrap();
    all(&mut publisher, &world, at(21))
        .into_iter()
        .for_each(|(bytes, _)| drop(replica.apply(bytes).unwrap()));
    let figures = replica.diagnostics(Tick(25));
    assert_eq!(replica.settled(), None);
    assert_eq!((figures.newest_age_ticks, figures.settled_age_ticks), (Some(4), Some(15)));
    assert_eq!(replica.was_settled(), Some(Tick(10)));
}

#[test]
fn one_large_entity_at_a_time_and_others_pass_it() {
    let mut world = world();
    let large: Vec<EntityId> = (0..3).map(|_| world.spawn(None).unwrap()).collect();
    for (entity, seed) in large.iter().zip(0..) {
        let mut rng = Rng::new(seed);
        let text: String = (0..9_000).map(|_| rng.pick(&['a', 'b', 'c', 'd', 'x', 'y', 'z'])).collect();
        world.write_row(*entity, NOTE, &[], &[text.into()]).unwrap();
    }
    let small = world.spawn(None).unwrap();
    put(&mut world, small, 1);
    world.commit(Tick(1)).unwrap();
    let config = PublisherConfig { in_flight_bytes_max: 1_000_000, ..PublisherConfig::new(1_000_000) };
    let mut publisher = Publisher::new(MEMBER, config);
    let mut replica = replica();
    for round in 0..3 {
        let packets = all(&mut publisher, &world, at(1));
        assert_eq!(packets.iter().filter(|(bytes, _)| bytes.len() > 940).count(), 1, "in round {round}");
        for (bytes, sent) in packets {
            replica.apply(bytes).unwrap();
            publisher.delivered(sent);
        }
        assert!(replica.world().contains(small));
        assert_eq!(replica.settled().is_some(), round == 2);
    }
    assert_eq!(replica.world().hash(MEMBER), world.hash(MEMBER));
}

#[test]
fn what_is_hidden_leaves_no_trace_on_the_wire() {
    // Two worlds that differ only in what is hidden from the member have the same packets.
    let packets = |hidden: &[i32]| {
        let mut world = world();
        let seen = world.spawn(Some(MemberId(1))).unwrap();
        let unseen = world.spawn(Some(MemberId(2))).unwrap();
        world.set_audience(unseen, Audience::members([MemberId(2)])).unwrap();
        let mut views = Views::new(&schema());
        views.add(MemberId(1), PublisherConfig::default());
        let mut out = Vec::new();
        for (x, tick) in hidden.iter().zip(1u32..) {
            put(&mut world, seen, i32::try_from(tick).unwrap() * 3);
            put(&mut world, unseen, *x);
            world.commit(Tick(tick)).unwrap();
            let mut sents = Vec::new();
            views.flush(&world, at(tick), |member, bytes, sent| {
                out.push(bytes);
                sents.push((member, sent));
            });
            sents.into_iter().for_each(|(member, sent)| views.fate(member, sent, true));
        }
        out
    };
    assert_eq!(packets(&[1, 2, 3, 4]), packets(&[9, 900, 9, 40_000]));
}

#[test]
fn calls_that_cannot_be_are_refused_by_name() {
    let mut world = world();
    let entity = world.spawn(None).unwrap();
    let gone = world.spawn(None).unwrap();
    world.despawn(gone).unwrap();
    assert_eq!(world.despawn(gone), Err(WorldError::NoSuchEntity { entity: gone }));
    assert!(world.write_row(entity, ComponentId(9), &[], &[]).is_err());
    assert!(matches!(world.write_row(entity, PLACE, &[1, 2, 70_000_000], &[]), Err(WorldError::Row(_))));
    assert!(matches!(world.write_row(entity, NOTE, &[], &[vec![0xff].into()]), Err(WorldError::Row(_))));
    world.commit(Tick(5)).unwrap();
    let refused = world.commit(Tick(5));
    assert_eq!(refused, Err(WorldError::TickNotNewer { tick: Tick(5), newest: Tick(5) }));
    let text = || Bytes::from(vec![b'x'; 15_000]);
    let mut written = 0;
    let full = loop {
        let entity = world.spawn(None).unwrap();
        match world.write_row(entity, NOTE, &[], &[text()]) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((full, written), (WorldError::TooManyBytes, 256 * 1024 / 15_000));
}

#[test]
fn rows_of_entities_that_went_count_as_long_as_readers_remember_them() {
    let component =
        (0..32).fold(Component::builder("wide"), |it, field| it.field(&format!("{field}"), Kind::Bool));
    let schema = Arc::new(Schema::bare().component(component.build()).build().unwrap());
    let mut world = World::new(schema, TickRate::DEFAULT);
    let wide = |world: &mut World| {
        let entity = world.spawn(None).unwrap();
        world.write_row(entity, ComponentId(0), &[1; 32], &[]).map(|_| entity)
    };
    let entities: Vec<EntityId> = (0..WORLD_LANES_MAX / 32).map(|_| wide(&mut world).unwrap()).collect();
    assert_eq!(wide(&mut world), Err(WorldError::TooManyLanes));
    world.commit(Tick(1)).unwrap();
    entities[1..].iter().for_each(|entity| world.despawn(*entity).unwrap());
    for tick in [2, 129] {
        world.commit(Tick(tick)).unwrap();
        assert_eq!(wide(&mut world), Err(WorldError::TooManyLanes), "at tick {tick}");
    }
    world.commit(Tick(130)).unwrap();
    assert!(wide(&mut world).is_ok());
}

#[test]
fn keys_that_come_and_go_do_not_fill_a_reader() {
    // Six times the capacity of a world, within the ticks that a reader remembers.
    let mut world = world();
    let config = PublisherConfig { in_flight_bytes_max: 10_000_000, ..PublisherConfig::new(10_000_000) };
    let (mut publisher, mut replica) = (Publisher::new(MEMBER, config), replica());
    let mut before: Option<EntityId> = None;
    for tick in 1..100 {
        before.into_iter().for_each(|entity| world.despawn(entity).unwrap());
        let entity = world.spawn(None).unwrap();
        world.write_row(entity, NOTE, &[], &[vec![b'x'; 15_000].into()]).unwrap();
        world.commit(Tick(tick)).unwrap();
        for (bytes, sent) in all(&mut publisher, &world, at(tick)) {
            replica.apply(bytes).unwrap();
            publisher.delivered(sent);
        }
        assert_eq!(replica.world().hash(MEMBER), world.hash(MEMBER));
        before = Some(entity);
    }
}

/// Packets of a world with much history: entities that move, spawn and despawn.
fn recorded() -> Vec<Bytes> {
    let mut world = world();
    let mut publisher =
        Publisher::new(MEMBER, PublisherConfig { packet_bytes: 120, ..PublisherConfig::default() });
    let mut rng = Rng::new(11);
    let mut out = Vec::new();
    let mut entities: Vec<EntityId> = Vec::new();
    for tick in 1..40 {
        if entities.len() < 12 {
            let entity = world.spawn(None).unwrap();
            world.write_row(entity, NOTE, &[], &[Bytes::from(format!("entity {tick}"))]).unwrap();
            entities.push(entity);
        } else {
            let at = rng.index(entities.len());
            world.despawn(entities.swap_remove(at)).unwrap();
        }
        for entity in &entities {
            put(&mut world, *entity, i32::try_from(tick * 20 + rng.below(5)).unwrap());
        }
        world.commit(Tick(u32::try_from(tick).unwrap())).unwrap();
        for (bytes, sent) in all(&mut publisher, &world, at(u32::try_from(tick).unwrap())) {
            out.push(bytes);
            publisher.delivered(sent);
        }
    }
    out
}

#[test]
fn what_a_hostile_sender_says_is_taken_or_refused() {
    let packets = recorded();
    let (mut refused, mut taken) = (0, 0);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut replica = replica();
        for packet in &packets {
            if rng.below(20) == 0 {
                continue;
            }
            let mut bytes = packet.to_vec();
            if rng.below(6) == 0 {
                let at = rng.index(bytes.len());
                bytes[at] = (rng.draw() & 0xff) as u8;
            }
            if rng.below(40) == 0 {
                bytes.truncate(rng.index(bytes.len()));
            }
            match replica.apply(bytes.into()) {
                Ok(_) => taken += 1,
                // A session would end here; that later packets do no harm either is more than required.
                Err(_) => refused += 1,
            }
        }
        assert!(replica.world().len() <= 16_384);
    }
    assert!(refused > 1_000 && taken > 1_000, "{refused} were refused and {taken} taken");
}

#[test]
fn a_baseline_that_is_gone_is_an_error_by_name() {
    let packets = recorded();
    let mut first = replica();
    first.apply(packets[0].clone()).unwrap();
    // The second packet has the rows that the last one builds on.
    let refused = packets[1..].iter().rev().find_map(|packet| first.clone().apply(packet.clone()).err());
    let refused = refused.expect("later packets build on what did not come");
    assert!(matches!(refused, StreamError::BaselineGone { .. }), "{refused}");
    assert!(refused.to_string().contains("which is not here"));
}

#[test]
fn a_receiver_that_acknowledges_the_future_is_counted() {
    let mut world = world();
    let entity = world.spawn(None).unwrap();
    put(&mut world, entity, 1);
    world.commit(Tick(1)).unwrap();
    let mut publisher = Publisher::new(MEMBER, PublisherConfig::default());
    publisher.delivered(Sent(0));
    let packets = all(&mut publisher, &world, at(1));
    publisher.delivered(Sent(7));
    publisher.lost(Sent(u64::MAX));
    publisher.delivered(packets[0].1);
    publisher.lost(packets[0].1);
    let figures = publisher.diagnostics(&world);
    assert_eq!((figures.unknown, figures.delivered, figures.lost), (4, 1, 0));
    // Acknowledged rows stay acknowledged.
    put(&mut world, entity, 2);
    world.commit(Tick(2)).unwrap();
    all(&mut publisher, &world, at(2));
    let figures = publisher.diagnostics(&world);
    assert_eq!((figures.spawns, figures.entries), (1, 2));
}
