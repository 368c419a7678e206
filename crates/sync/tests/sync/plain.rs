//! Plain packets, for a receiver in the same process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, and its helpers are part of it")]

use bytes::Bytes;
use parlor_proto::{EntityId, Instant, MemberId, Tick, TickRate};
use parlor_sync::audience::{Audience, Viewer};
use parlor_sync::schema::{Component, ComponentId, Kind, Schema};
use parlor_sync::world::{
    Encodings, Outcome, PacketHead, Publisher, PublisherConfig, Replica, Sent, StreamError, World,
};
use proptest::prelude::*;
use std::sync::Arc;

const SPAN: i64 = 1_000;

fn schema() -> Arc<Schema> {
    let component =
        Component::builder("thing").field("x", Kind::int(0, SPAN)).field("name", Kind::text(60)).build();
    Arc::new(Schema::builder().component(component).build().unwrap())
}

/// A world, and its stream to one receiver, without loss.
struct Room {
    world: World,
    thing: ComponentId,
    entities: Vec<EntityId>,
    publisher: Publisher,
    encodings: Encodings,
    tick: u32,
}

impl Room {
    fn new(viewer: Viewer, config: PublisherConfig) -> Self {
        let schema = schema();
        let thing = schema.find("thing").unwrap();
        Room {
            world: World::new(schema, TickRate::DEFAULT),
            thing,
            entities: Vec::new(),
            publisher: Publisher::new(viewer, config),
            encodings: Encodings::new(),
            tick: 0,
        }
    }

    /// Spawns, changes, transfers and despawns entities.
    fn step(&mut self) {
        self.tick += 1;
        let tick = self.tick;
        if (tick + 2).is_multiple_of(3) {
            self.entities.push(self.world.spawn(None).unwrap());
        }
        if tick.is_multiple_of(11) {
            self.world.despawn(self.entities.remove(0)).unwrap();
        }
        for (number, entity) in (0u32..).zip(&self.entities) {
            if !(tick + number).is_multiple_of(4) {
                let name = format!("{number} at {}", tick / 5);
                let x = i32::try_from(tick * 7 % 900).unwrap();
                self.world.write_row(*entity, self.thing, &[x], &[name.into()]).unwrap();
            }
        }
        if let Some(entity) = self.entities.first() {
            self.world.set_owner(*entity, Some(MemberId(tick % 5))).unwrap();
            let audience =
                if tick.is_multiple_of(7) { Audience::All } else { Audience::members([MemberId(tick % 3)]) };
            self.world.set_audience(*entity, audience).unwrap();
        }
        self.world.commit(Tick(tick)).unwrap();
    }

    fn packets(&mut self) -> Vec<(Bytes, Sent)> {
        let now = Instant::from_millis(u64::from(self.tick) * 33);
        core::iter::from_fn(|| self.publisher.poll(&self.world, &mut self.encodings, now)).collect()
    }
}

fn is_plain(packet: &Bytes) -> bool {
    PacketHead::read(packet.clone()).unwrap().0.plain
}

#[test]
fn what_is_written_out_says_all_that_is_coded_and_a_stream_may_change_its_form() {
    let mut room = Room::new(Viewer::Everything, PublisherConfig::within_process());
    let mut replica = Replica::of_everything(schema(), TickRate::DEFAULT);
    for round in 0..120 {
        let wants_plain = round % 40 < 25;
        let config =
            if wants_plain { PublisherConfig::within_process() } else { PublisherConfig::new(1 << 20) };
        room.publisher.set_config(config);
        room.step();
        for (packet, sent) in room.packets() {
            assert_eq!(is_plain(&packet), wants_plain);
            assert!(matches!(replica.apply(packet), Ok(Outcome::Taken(_))));
            room.publisher.delivered(sent);
        }
        assert_eq!(replica.settled(), Some(Tick(room.tick)));
        assert_eq!(replica.world().hash(Viewer::Everything), room.world.hash(Viewer::Everything));
    }
}

#[test]
fn a_member_is_sent_nothing_written_out_and_takes_nothing() {
    let member = Viewer::Member(MemberId(1));
    let mut room = Room::new(member, PublisherConfig::within_process());
    room.step();
    assert!(room.packets().iter().all(|(packet, _)| !is_plain(packet)));
    let mut room = Room::new(Viewer::Everything, PublisherConfig::within_process());
    room.step();
    let (packet, _) = room.packets().remove(0);
    let refused = Replica::new(schema(), TickRate::DEFAULT).apply(packet);
    assert!(matches!(refused, Err(StreamError::Head(_))), "{refused:?}");
}

#[test]
fn a_lane_beyond_its_span_is_refused() {
    let mut room = Room::new(Viewer::Everything, PublisherConfig::within_process());
    room.step();
    let (packet, _) = room.packets().remove(0);
    let lane = 7i32.to_le_bytes();
    let at = packet.windows(4).position(|bytes| bytes == lane).expect("it is written out");
    for beyond in [-1, i32::try_from(SPAN).unwrap() + 1, i32::MAX, i32::MIN] {
        let mut bytes = packet.to_vec();
        bytes[at..at + 4].copy_from_slice(&beyond.to_le_bytes());
        let refused = Replica::of_everything(schema(), TickRate::DEFAULT).apply(bytes.into());
        assert!(matches!(refused, Err(StreamError::Row(_))), "{beyond}: {refused:?}");
    }
}

proptest! {
    /// A receiver accepts changed, truncated or extended bytes only if they are valid, and rejects the rest.
    #[test]
    fn changed_bytes_are_taken_or_refused(
        steps in 1usize..20, changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        cut in any::<Option<u16>>(), more in proptest::collection::vec(any::<u8>(), 0..3)
    ) {
        let mut room = Room::new(Viewer::Everything, PublisherConfig::within_process());
        let mut replica = Replica::of_everything(schema(), TickRate::DEFAULT);
        for _ in 1..steps {
            room.step();
            for (packet, sent) in room.packets() {
                replica.apply(packet).unwrap();
                room.publisher.delivered(sent);
            }
        }
        room.step();
        let (packet, _) = room.packets().remove(0);
        let mut bytes = packet.to_vec();
        let len = bytes.len();
        changes.iter().for_each(|(at, by)| bytes[usize::from(*at) % len] ^= by);
        bytes.truncate(cut.map_or(len, |cut| usize::from(cut) % (len + 1)));
        bytes.extend(&more);
        let is_same = bytes == packet;
        let outcome = replica.apply(bytes.into());
        prop_assert!(!is_same || outcome.is_ok());
        if changes.is_empty() && (cut.is_none() || more.is_empty()) && !is_same {
            prop_assert!(outcome.is_err(), "a packet has one end: {:?}", outcome);
        }
    }
}
