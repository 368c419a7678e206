//! Replaces one stream of a world by another stream of the same world.
//!
//! A member may get the world of its authority from the hub and from the authority itself. Each stream fills
//! a replica of its own. Rows have the authority's ticks in both, so the history of one is valid for the
//! other. The differences between them are reported as if by a packet.

use super::store::{World, cutoff};
use super::{Applied, EntityId, Replica};
use crate::schema::ComponentId;
use parlor_proto::Tick;

impl Replica {
    /// Replaces `older`, a replica of the same authority's world for the same reader by another stream. Takes
    /// over its history of entities that are in both, and its counters. Returns the differences as if one
    /// packet had brought them; this one is [`settled`](Self::settled), so followers of `older` miss nothing
    /// else. If another authority has continued from less than `older` has, `is_past` is false, and its
    /// history is not taken over.
    pub fn take_place_of(&mut self, older: &Replica, is_past: bool) -> Applied {
        let mut applied =
            Applied { tick: Tick(self.world().newest_tick()), settled: true, ..Applied::default() };
        self.counters_mut().add(&older.counters());
        let world = self.world_to_switch();
        world.lineage = world.lineage.max(older.world().lineage) + 1;
        for entity in older.world().entities() {
            if !world.contains(entity) {
                applied.despawned.push(entity);
            }
        }
        let entities: Vec<EntityId> = world.entities().collect();
        for entity in entities {
            if !older.world().contains(entity) {
                applied.spawned.push(entity);
                applied.changed.push((entity, world.slot(entity.slot).mask));
                continue;
            }
            if let Some(mask) = world.difference(older.world(), entity.slot) {
                applied.changed.push((entity, mask));
            }
            if is_past {
                world.remember(older.world(), entity.slot);
            }
        }
        applied
    }
}

impl World {
    /// The components of a slot's entity that differ from another world, one bit each; 0 if only the owner
    /// does. `None` if nothing differs.
    fn difference(&self, other: &World, slot: u16) -> Option<u64> {
        let (here, there) = (self.slot(slot), other.slot(slot));
        let both = here.mask & there.mask;
        let differs = |id: &ComponentId| {
            self.columns[id.index()].present(slot) != other.columns[id.index()].present(slot)
        };
        let changed = ComponentId::in_mask(both).filter(differs).fold(0, |mask, id| mask | id.bit());
        let changed = changed | (here.mask ^ there.mask);
        (changed != 0 || here.owner != there.owner).then_some(changed)
    }

    /// Takes over another world's history of a slot's entity from before this one's.
    fn remember(&mut self, other: &World, slot: u16) {
        let cutoff = cutoff(self.newest_tick());
        for index in 0..self.columns.len() {
            let (Some(until), Some(first)) =
                (self.columns[index].oldest(slot), other.columns[index].oldest(slot))
            else {
                continue;
            };
            let mut label = first;
            while label < until {
                if let Some(form) = other.columns[index].at(slot, label) {
                    self.columns[index].insert(slot, label, form, cutoff);
                }
                let next = other.columns[index].around(slot, label).map(|[_, (next, _)]| next);
                let Some(next) = next.filter(|next| *next > label) else { break };
                label = next;
            }
        }
        let metas = &other.metas[usize::from(slot)];
        metas.before(&self.metas[usize::from(slot)]).for_each(|meta| self.adopt_meta(slot, meta.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Component, Kind, Schema};
    use crate::world::{Encodings, Outcome, Publisher, PublisherConfig, Viewer};
    use parlor_proto::{Instant, MemberId, TickRate};
    use std::sync::Arc;

    fn schema() -> Arc<Schema> {
        let component = Component::builder("x").field("x", Kind::int(0, 1_000)).build();
        Arc::new(Schema::builder().component(component).build().unwrap())
    }

    /// A stream to one reader, without loss.
    struct Stream {
        publisher: Publisher,
        replica: Replica,
    }

    impl Stream {
        fn new(schema: &Arc<Schema>) -> Self {
            Stream {
                publisher: Publisher::new(Viewer::Member(MemberId(1)), PublisherConfig::new(1_000_000)),
                replica: Replica::new(Arc::clone(schema), TickRate::DEFAULT),
            }
        }

        fn carry(&mut self, world: &World, now: Instant) {
            while let Some((packet, sent)) = self.publisher.poll(world, &mut Encodings::new(), now) {
                assert!(matches!(self.replica.apply(packet).unwrap(), Outcome::Taken(_)));
                self.publisher.delivered(sent);
            }
        }
    }

    #[test]
    fn what_differs_is_told_once_and_the_past_is_remembered() {
        let schema = schema();
        let x = schema.find("x").unwrap();
        let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
        let (stays, goes) = (world.spawn(None).unwrap(), world.spawn(None).unwrap());
        let rests = world.spawn(None).unwrap();
        for entity in [stays, goes, rests] {
            world.write_row(entity, x, &[7], &[]).unwrap();
        }
        let (mut older, mut newer) = (Stream::new(&schema), Stream::new(&schema));
        for tick in 1..=30u32 {
            world.write_row(stays, x, &[tick.cast_signed()], &[]).unwrap();
            world.commit(Tick(tick)).unwrap();
            older.carry(&world, Instant::from_millis(u64::from(tick) * 33));
        }
        world.despawn(goes).unwrap();
        let comes = world.spawn(None).unwrap();
        world.write_row(comes, x, &[1], &[]).unwrap();
        for tick in 31..=33u32 {
            world.write_row(stays, x, &[tick.cast_signed()], &[]).unwrap();
            world.commit(Tick(tick)).unwrap();
            newer.carry(&world, Instant::from_millis(u64::from(tick) * 33));
        }
        assert_eq!(newer.replica.world().around(stays, x, Tick(20)), None, "nothing of that came here");
        let applied = newer.replica.take_place_of(&older.replica, true);
        assert_eq!((applied.tick, applied.settled, applied.transfer), (Tick(33), true, false));
        assert_eq!((&applied.spawned, &applied.despawned), (&vec![comes], &vec![goes]));
        assert_eq!(applied.changed, [(stays, x.bit()), (comes, x.bit())]);
        for tick in 1..33u32 {
            let [(at, (lanes, _)), _] = newer.replica.world().around(stays, x, Tick(tick)).unwrap();
            assert!(at.0 <= tick && lanes[0] == at.0.cast_signed(), "{tick}");
            assert!(newer.replica.world().was_there(stays, x, Tick(tick), Tick(tick)), "{tick}");
        }
        assert_eq!(
            newer.replica.world().hash(Viewer::Member(MemberId(1))),
            world.hash(Viewer::Member(MemberId(1)))
        );
        // The stream continues normally.
        world.write_row(stays, x, &[99], &[]).unwrap();
        world.commit(Tick(40)).unwrap();
        newer.carry(&world, Instant::from_millis(2_000));
        assert_eq!(newer.replica.world().read_row(stays, x).unwrap().unwrap().0, [99]);
        assert_eq!(newer.replica.settled(), Some(Tick(40)));
    }
}
