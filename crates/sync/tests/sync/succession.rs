//! A world passes from a lost authority to a member that had seen little of it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{
    Applied, Audience, Encodings, EntityId, IdsUsed, Outcome, Publisher, PublisherConfig, Replica, Viewer,
    World,
};
use std::sync::Arc;

const AT: ComponentId = ComponentId(0);

fn schema() -> Arc<Schema> {
    let place = Component::builder("place").field("at", Kind::int(0, 1_000)).build();
    Arc::new(Schema::bare().component(place).build().unwrap())
}

fn config() -> PublisherConfig {
    PublisherConfig::new(10_000_000)
}

/// Sends everything pending. Returns the bytes sent, and the applied packets.
fn pass(publisher: &mut Publisher, world: &World, replica: &mut Replica) -> (usize, Vec<Applied>) {
    let (mut encodings, mut bytes, mut all) = (Encodings::new(), 0, Vec::new());
    while let Some((packet, sent)) = publisher.poll(world, &mut encodings, Instant::ZERO) {
        bytes += packet.len();
        let Outcome::Taken(applied) = replica.apply(packet).unwrap() else { panic!("it is not taken") };
        publisher.delivered(sent);
        all.push(applied);
    }
    (bytes, all)
}

/// A hub with 200 entities, every tenth of which only one member sees, and the ids used by its authority.
fn hub() -> (Replica, IdsUsed, Vec<EntityId>) {
    let mut host = World::new(schema(), TickRate::DEFAULT);
    let mut entities = Vec::new();
    for number in 0..200 {
        let entity = host.spawn(None).unwrap();
        host.write_row(entity, AT, &[number], &[]).unwrap();
        if number % 10 == 0 {
            host.set_audience(entity, Audience::members([MemberId(7)])).unwrap();
        }
        entities.push(entity);
    }
    let mut hub = Replica::of_everything(schema(), TickRate::DEFAULT);
    let mut up = Publisher::new(Viewer::Everything, config());
    host.commit(Tick(100)).unwrap();
    pass(&mut up, &host, &mut hub);
    // The last one and one in between were despawned: a receiver of the hub gets nothing about their slots.
    for gone in [199, 50] {
        host.despawn(entities.remove(gone)).unwrap();
    }
    host.commit(Tick(101)).unwrap();
    pass(&mut up, &host, &mut hub);
    let used = hub.hand_over();
    (hub, used, entities)
}

fn successor(hub: &Replica, used: IdsUsed) -> World {
    let mut heir = Replica::of_everything(schema(), TickRate::DEFAULT);
    pass(&mut Publisher::new(Viewer::Everything, config()), hub.world(), &mut heir);
    assert_eq!(heir.settled(), Some(Tick(101)));
    heir.into_successor(used)
}

#[test]
fn a_successor_has_everything_and_sends_what_it_changes_alone() {
    let (mut hub, used, entities) = hub();
    let mut members = Replica::new(schema(), TickRate::DEFAULT);
    let mut view = Publisher::new(Viewer::Member(MemberId(1)), config());
    pass(&mut view, hub.world(), &mut members);
    let mut world = successor(&hub, used);
    assert_eq!(world.hash(Viewer::Everything), hub.world().hash(Viewer::Everything));
    assert_eq!(world.audience(entities[10]).unwrap(), &Audience::members([MemberId(7)]));
    let mut up = Publisher::of_successor(&world, config()).numbered_from(1 << 24);
    world.write_row(entities[3], AT, &[999], &[]).unwrap();
    world.commit(Tick(102)).unwrap();
    let (bytes, _) = pass(&mut up, &world, &mut hub);
    assert!(bytes < 40, "{bytes} bytes for one entity");
    assert_eq!(hub.settled(), Some(Tick(102)));
    let (_, seen) = pass(&mut view, hub.world(), &mut members);
    let changed: Vec<_> = seen.iter().flat_map(|applied| &applied.changed).collect();
    assert_eq!(changed, [&(entities[3], AT.bit())]);
    assert!(seen.iter().all(|applied| applied.spawned.is_empty() && applied.despawned.is_empty()));
    assert_eq!(members.world().hash(Viewer::Member(MemberId(1))), view.hash(hub.world()));
}

#[test]
fn a_successor_gives_no_id_again() {
    let (mut hub, used, entities) = hub();
    let mut world = successor(&hub, used);
    let mut up = Publisher::of_successor(&world, config());
    let mut tick = 101;
    let mut given: Vec<EntityId> = Vec::new();
    // Slots with possible late updates are not used for a while, so the first entities are elsewhere.
    for _ in 0..400 {
        tick += 1;
        let entity = world.spawn(None).unwrap();
        assert!(
            entity.slot != 50 && entity.slot != 199 || tick > 101 + 100,
            "{entity} has a slot that was just left"
        );
        given.push(entity);
        world.commit(Tick(tick)).unwrap();
        pass(&mut up, &world, &mut hub);
    }
    let old = [EntityId { slot: 50, generation: 1 }, EntityId { slot: 199, generation: 1 }];
    assert!(given.iter().all(|entity| !old.contains(entity) && !entities.contains(entity)));
    assert!(given.iter().any(|entity| entity.slot == 50) && given.iter().any(|entity| entity.slot == 199));
}

#[test]
fn what_the_old_authority_sent_before_its_end_is_not_taken_in_any_more() {
    let mut host = World::new(schema(), TickRate::DEFAULT);
    let entity = host.spawn(None).unwrap();
    host.write_row(entity, AT, &[1], &[]).unwrap();
    host.commit(Tick(1)).unwrap();
    let (mut up, mut encodings) = (Publisher::new(Viewer::Everything, config()), Encodings::new());
    let mut hub = Replica::of_everything(schema(), TickRate::DEFAULT);
    pass(&mut up, &host, &mut hub);
    host.write_row(entity, AT, &[2], &[]).unwrap();
    host.commit(Tick(2)).unwrap();
    let (late, _) = up.poll(&host, &mut encodings, Instant::ZERO).unwrap();
    hub.hand_over();
    assert_eq!(hub.apply(late).unwrap(), Outcome::Waiting);
    assert_eq!(hub.world().read_row(entity, AT).unwrap().unwrap().0, [1]);
}

#[test]
fn an_empty_world_is_handed_over_too() {
    let mut hub = Replica::of_everything(schema(), TickRate::DEFAULT);
    let used = hub.hand_over();
    assert_eq!((used, hub.settled()), (IdsUsed::default(), None));
    let mut world = Replica::of_everything(schema(), TickRate::DEFAULT).into_successor(used);
    let mut up = Publisher::of_successor(&world, config());
    let entity = world.spawn(None).unwrap();
    world.commit(Tick(9)).unwrap();
    pass(&mut up, &world, &mut hub);
    assert!(hub.world().contains(entity));
    assert_eq!(hub.settled(), Some(Tick(9)));
}
