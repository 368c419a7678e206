//! A hub's replica rolls back to a complete tick. It then equals the authority's state, whatever was lost,
//! late and written since. A successor's packets are valid from there.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_impair::Rng;
use parlor_proto::{Instant, MemberId, Tick, TickRate};
use parlor_sync::limits::RETREAT_TICKS_MAX;
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{
    Audience, Encodings, EntityId, Publisher, PublisherConfig, Replica, Sent, Viewer, World,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const PLACE: ComponentId = ComponentId(2);
const NOTE: ComponentId = ComponentId(3);

type Was = (EntityId, Option<MemberId>, Audience, Option<Vec<i32>>, Option<Bytes>);

/// The readable state of a world.
fn all_of(world: &World) -> Vec<Was> {
    let row = |entity, id| world.read_row(entity, id).unwrap();
    let read = |entity| {
        let place = row(entity, PLACE).map(|(lanes, _)| lanes.to_vec());
        let note = row(entity, NOTE).map(|(_, blobs)| blobs[0].clone());
        let audience = world.audience(entity).unwrap().clone();
        (entity, world.owner(entity).unwrap(), audience, place, note)
    };
    world.entities().map(read).collect()
}

/// An authority, its hub, and the packets in flight between them.
struct Room {
    rng: Rng,
    now: u32,
    world: World,
    publisher: Publisher,
    encodings: Encodings,
    hub: Replica,
    /// By the tick of the arrival or of the loss report.
    under_way: Vec<(u32, Sent, Option<Bytes>)>,
    /// The state of the world at each commit.
    history: BTreeMap<u32, Vec<Was>>,
    loss: u64,
}

impl Room {
    fn new(seed: u64) -> Self {
        let place = Component::builder("place").field("at", Kind::vector3(0.0, 1_000.0, 1.0 / 64.0)).build();
        let note = Component::builder("note").field("text", Kind::text(2_000)).build();
        let schema = Arc::new(Schema::builder().component(place).component(note).build().unwrap());
        let mut rng = Rng::new(seed);
        Room {
            loss: rng.pick(&[0, 5, 20, 50]),
            now: 1,
            world: World::new(Arc::clone(&schema), TickRate::DEFAULT),
            publisher: Publisher::new(Viewer::Everything, PublisherConfig::new(400_000)),
            encodings: Encodings::new(),
            hub: Replica::of_everything(schema, TickRate::DEFAULT),
            under_way: Vec::new(),
            history: BTreeMap::new(),
            rng,
        }
    }

    fn write(&mut self) {
        let below = |rng: &mut Rng, bound| i32::try_from(rng.below(bound)).unwrap();
        for _ in 0..self.rng.below(6) {
            let entities: Vec<EntityId> = self.world.entities().collect();
            let at = usize::try_from(self.rng.below(entities.len().max(1) as u64)).unwrap();
            let Some(entity) = entities.get(at).copied().filter(|_| self.rng.below(8) > 0) else {
                let owner = (self.rng.below(2) == 0).then_some(MemberId(3));
                if entities.len() < 40 {
                    self.world.spawn(owner).unwrap();
                }
                continue;
            };
            match self.rng.below(10) {
                0 => self.world.despawn(entity).unwrap(),
                1 => drop(self.world.remove_row(entity, PLACE).unwrap()),
                2 => self.world.set_owner(entity, Some(MemberId(1))).unwrap(),
                3 => self.world.set_audience(entity, Audience::members([MemberId(2)])).unwrap(),
                4 | 5 => {
                    let text = vec![b'a' + u8::try_from(self.now % 26).unwrap(); 900];
                    self.world.write_row(entity, NOTE, &[], &[text.into()]).unwrap();
                }
                _ => {
                    let lanes = [below(&mut self.rng, 60_000), 5, below(&mut self.rng, 60_000)];
                    self.world.write_row(entity, PLACE, &lanes, &[]).unwrap();
                }
            }
        }
    }

    fn tick(&mut self) {
        self.now += 1;
        self.write();
        self.world.commit(Tick(self.now)).unwrap();
        self.history.insert(self.now, all_of(&self.world));
        self.arrive();
        let at = Instant::from_millis(u64::from(self.now) * 33);
        while let Some((bytes, sent)) = self.publisher.poll(&self.world, &mut self.encodings, at) {
            let is_lost = self.rng.below(100) < self.loss;
            let after = if is_lost { 10 } else { u32::try_from(self.rng.below(4)).unwrap() };
            self.under_way.push((self.now.saturating_add(after), sent, (!is_lost).then_some(bytes)));
        }
    }

    fn arrive(&mut self) {
        let (due, rest) =
            core::mem::take(&mut self.under_way).into_iter().partition(|(at, ..)| *at <= self.now);
        self.under_way = rest;
        let due: Vec<(u32, Sent, Option<Bytes>)> = due;
        for (_, sent, bytes) in due {
            match bytes {
                Some(bytes) => {
                    self.hub.apply(bytes).unwrap();
                    self.publisher.delivered(sent);
                }
                None => self.publisher.lost(sent),
            }
        }
    }

    /// The authority's state at the newest tick with a change.
    fn had(&self, tick: Tick) -> &Vec<Was> {
        self.history.range(..=tick.0).next_back().unwrap().1
    }
}

#[test]
fn a_replica_that_went_back_is_what_the_authority_was() {
    let seeds = std::env::var("PARLOR_SEEDS").map_or(300, |text| text.parse().expect("a number"));
    let (mut back, mut by) = (0, 0);
    for seed in 0..seeds {
        let mut room = Room::new(seed);
        for _ in 0..20 + room.rng.below(150) {
            room.tick();
        }
        let Some(newest) = room.hub.world().tick() else { continue };
        let Some(whole) = room.hub.whole() else {
            assert!(room.loss > 0, "seed {seed}: without loss something is whole");
            continue;
        };
        let ago = newest.since(whole);
        assert!((0..=i32::try_from(RETREAT_TICKS_MAX).unwrap()).contains(&ago), "seed {seed}: {ago}");
        if ago > 0 {
            room.hub.go_back(whole);
            assert_eq!(room.hub.world().tick(), Some(newest.next()), "seed {seed}");
            (back, by) = (back + 1, by + ago);
        }
        assert_eq!(
            &all_of(room.hub.world()),
            room.had(whole),
            "seed {seed}, back from {newest:?} to {whole:?}"
        );
        let used = room.hub.hand_over();
        assert_eq!(room.hub.whole(), room.hub.world().tick(), "seed {seed}: it is the truth");
        // A successor continues from there.
        room.world = room.hub.clone().into_successor(used);
        room.publisher = Publisher::of_successor(&room.world, PublisherConfig::new(400_000));
        (room.loss, room.now) = (0, room.now + 2);
        room.under_way.clear();
        for _ in 0..20 {
            room.tick();
        }
        room.now += 100;
        room.arrive();
        assert_eq!(all_of(room.hub.world()), all_of(&room.world), "seed {seed}: after the succession");
    }
    assert!(
        seeds < 100 || back > seeds / 5 && by > 2 * i32::try_from(back).unwrap(),
        "{back} went back by {by} ticks"
    );
}

/// A hostile authority counts its ticks as it likes.
#[test]
fn threat_25_no_number_of_a_tick_is_too_large() {
    let mut room = Room::new(1);
    (room.loss, room.now) = (0, u32::MAX - 4);
    for _ in 0..4 {
        room.tick();
    }
    room.arrive();
    let whole = room.hub.whole().expect("nothing is lost");
    assert_eq!(whole, Tick(u32::MAX));
    room.hub.go_back(whole);
    assert_eq!(all_of(room.hub.world()), room.history[&u32::MAX]);
}
