//! Saved entity state of recent steps, with which an authority rolls back and replays steps.
//!
//! A world's own history is what was published, and never changes: members have drawn it, and shots are
//! judged by it. The result of a replay is published with a later step. So replays start from these saves.

use crate::schema::ComponentId;
use crate::world::{World, WorldError};
use bytes::Bytes;
use parlor_proto::{EntityId, Tick};
use std::collections::VecDeque;

/// The components of all entities at the end of each recent step. Reuses the memory of forgotten steps.
#[derive(Clone, Debug, Default)]
pub struct Saves {
    /// Most steps that are kept.
    ticks: usize,
    /// Mask of components whose entities are left out.
    without: u64,
    /// By ascending tick.
    saved: VecDeque<Saved>,
    spare: Vec<Saved>,
}

/// The state of all entities at the end of a step.
#[derive(Clone, Debug, Default)]
struct Saved {
    tick: Tick,
    /// Each entity with the mask of its components, by ascending slot.
    entities: Vec<(EntityId, u64)>,
    /// Lanes of all components of all entities, concatenated.
    lanes: Vec<i32>,
    blobs: Vec<Bytes>,
}

impl Saves {
    /// Keeps at most `ticks` steps. Leaves out entities with a component in the mask `without`.
    pub fn new(ticks: usize, without: u64) -> Self {
        Saves { ticks, without, ..Saves::default() }
    }

    /// Saves the entities at the end of the step `tick`. Discards saves of this and later steps, which are
    /// run again.
    pub fn save(&mut self, world: &World, tick: Tick) {
        while self.saved.back().is_some_and(|newest| !tick.is_newer_than(newest.tick)) {
            self.spare.extend(self.saved.pop_back());
        }
        while self.saved.len() >= self.ticks.max(1) {
            self.spare.extend(self.saved.pop_front());
        }
        let mut save = self.spare.pop().unwrap_or_default();
        save.take(world, tick, self.without);
        self.saved.push_back(save);
    }

    /// Returns the oldest step that can be restored: since then no entity was spawned or despawned and no
    /// step was skipped.
    pub fn oldest(&self, world: &World) -> Option<Tick> {
        let newest = self.saved.back()?;
        let is_same = |save: &Saved| save.ids().eq(newest.ids());
        if !newest.ids().eq(entities(world, self.without).map(|(id, _)| id)) {
            return None;
        }
        let back = (0i32..).zip(self.saved.iter().rev());
        let back = back.take_while(|(back, save)| save.tick == newest.tick.offset(-back) && is_same(save));
        back.last().map(|(_, save)| save.tick)
    }

    /// Restores the components of all entities to the end of the step `tick`, which must not be older than
    /// [`oldest`](Self::oldest). Owners, zones and audiences stay unchanged. Returns whether it restored
    /// anything.
    ///
    /// # Errors
    /// [`WorldError`] if the world lacks space for the saved state; it is then partly restored.
    pub fn restore(&self, world: &mut World, tick: Tick) -> Result<bool, WorldError> {
        let is_known = self.oldest(world).is_some_and(|oldest| !oldest.is_newer_than(tick));
        let Some(save) = self.saved.iter().find(|save| is_known && save.tick == tick) else {
            return Ok(false);
        };
        save.give(world)?;
        Ok(true)
    }
}

impl Saved {
    fn ids(&self) -> impl Iterator<Item = EntityId> {
        self.entities.iter().map(|(entity, _)| *entity)
    }

    fn take(&mut self, world: &World, tick: Tick, without: u64) {
        self.tick = tick;
        self.entities.clear();
        self.lanes.clear();
        self.blobs.clear();
        self.entities.extend(entities(world, without));
        for (entity, mask) in &self.entities {
            for id in ComponentId::in_mask(*mask) {
                let row = world.read_row(*entity, id).ok().flatten();
                let (lanes, blobs) = row.expect("the entity is there, and has what its mask says");
                self.lanes.extend_from_slice(lanes);
                self.blobs.extend_from_slice(blobs);
            }
        }
    }

    fn give(&self, world: &mut World) -> Result<(), WorldError> {
        let schema = world.schema().clone();
        // Surplus components are removed first: together with the missing ones they may exceed the world's
        // limits.
        for (entity, mask) in &self.entities {
            for id in ComponentId::in_mask(world.mask(*entity)?) {
                if mask & id.bit() == 0 || schema.components()[id.index()].blobs() > 0 {
                    world.remove_row(*entity, id)?;
                }
            }
        }
        let (mut lanes, mut blobs) = (&self.lanes[..], &self.blobs[..]);
        for (entity, mask) in &self.entities {
            for id in ComponentId::in_mask(*mask) {
                let component = &schema.components()[id.index()];
                let (row_lanes, rest) = lanes.split_at(component.lanes());
                let (row_blobs, rest_blobs) = blobs.split_at(component.blobs());
                (lanes, blobs) = (rest, rest_blobs);
                world.write_row(*entity, id, row_lanes, row_blobs)?;
            }
        }
        Ok(())
    }
}

/// Returns the entities without these components, by ascending slot, each with its component mask.
fn entities(world: &World, without: u64) -> impl Iterator<Item = (EntityId, u64)> {
    let with_masks = world.entities().filter_map(|entity| Some((entity, world.mask(entity).ok()?)));
    with_masks.filter(move |(_, mask)| mask & without == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Component, Kind, Schema};
    use parlor_proto::TickRate;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn world() -> (World, [ComponentId; 2]) {
        let x = Component::builder("x").field("x", Kind::int(0, 1_000)).build();
        let name = Component::builder("name").field("name", Kind::text(8)).build();
        let schema = Arc::new(Schema::builder().component(x).component(name).build().unwrap());
        let ids = ["x", "name"].map(|name| schema.find(name).unwrap());
        (World::new(schema, TickRate::DEFAULT), ids)
    }

    fn tick(number: usize) -> Tick {
        Tick(u32::try_from(number).unwrap())
    }

    type Rows = BTreeMap<(EntityId, ComponentId), (Vec<i32>, Vec<Bytes>)>;

    fn rows(world: &World, ids: [ComponentId; 2]) -> Rows {
        let pairs = world.entities().flat_map(|entity| ids.map(|id| (entity, id)));
        let rows = pairs.filter_map(|(entity, id)| {
            let (lanes, blobs) = world.read_row(entity, id).unwrap()?;
            Some(((entity, id), (lanes.to_vec(), blobs.to_vec())))
        });
        rows.collect()
    }

    proptest! {
        /// Steps change entities arbitrarily; restoring any step restores its exact state.
        #[test]
        fn everything_is_as_it_was(
            steps in proptest::collection::vec(proptest::collection::vec((0usize..4, 0u8..6, 0i32..1_000), 0..4), 1..20),
            keep in 1usize..8,
        ) {
            let (mut world, ids) = world();
            let (mut saves, mut model) = (Saves::new(keep, 0), Vec::new());
            for step in &steps {
                for (which, what, number) in step {
                    let entities: Vec<EntityId> = world.entities().collect();
                    let Some(entity) = entities.get(*which).copied() else {
                        world.spawn(None).unwrap();
                        continue;
                    };
                    match what {
                        0 if *number < 50 => world.despawn(entity).unwrap(),
                        0..3 => _ = world.write_row(entity, ids[0], &[*number], &[]).unwrap(),
                        3 => {
                            let text = Bytes::from(number.to_string());
                            world.write_row(entity, ids[1], &[], &[text]).unwrap();
                        }
                        _ => _ = world.remove_row(entity, ids[usize::from(what % 2)]).unwrap(),
                    }
                }
                saves.save(&world, tick(model.len()));
                model.push(rows(&world, ids));
            }
            let newest = model.len() - 1;
            let Some(oldest) = saves.oldest(&world) else { panic!("nothing changed since the newest") };
            prop_assert!(newest - (oldest.0 as usize) < keep);
            for (number, expected) in (0u32..).zip(&model).collect::<Vec<_>>().into_iter().rev() {
                let is_restored = saves.restore(&mut world, Tick(number)).unwrap();
                prop_assert_eq!(is_restored, number >= oldest.0);
                if is_restored {
                    prop_assert_eq!(&rows(&world, ids), expected);
                }
            }
        }
    }

    #[test]
    fn no_entity_comes_back_or_is_lost_by_going_back() {
        let (mut world, ids) = world();
        let mut saves = Saves::new(8, ids[1].bit());
        let entity = world.spawn(None).unwrap();
        for tick in 1..=3 {
            world.write_row(entity, ids[0], &[tick], &[]).unwrap();
            saves.save(&world, Tick(tick.cast_unsigned()));
        }
        assert_eq!(saves.oldest(&world), Some(Tick(1)));
        // An entity that is left out may come and go freely.
        let hidden = world.spawn(None).unwrap();
        world.write_row(hidden, ids[1], &[], &[Bytes::from("k")]).unwrap();
        saves.save(&world, Tick(4));
        assert_eq!(saves.oldest(&world), Some(Tick(1)));
        let other = world.spawn(None).unwrap();
        assert_eq!(saves.oldest(&world), None, "it came since");
        assert!(!saves.restore(&mut world, Tick(4)).unwrap());
        saves.save(&world, Tick(5));
        assert_eq!(saves.oldest(&world), Some(Tick(5)));
        world.despawn(other).unwrap();
        saves.save(&world, Tick(6));
        assert_eq!(saves.oldest(&world), Some(Tick(6)), "it was there between");
        saves.save(&world, Tick(8));
        assert_eq!(saves.oldest(&world), Some(Tick(8)), "a step was left out");
    }

    #[test]
    fn steps_that_are_run_again_take_the_place_of_what_they_were() {
        let (mut world, ids) = world();
        let (mut saves, entity) = (Saves::new(8, 0), world.spawn(None).unwrap());
        let run = |world: &mut World, saves: &mut Saves, tick: u32, x: i32| {
            world.write_row(entity, ids[0], &[x], &[]).unwrap();
            saves.save(world, Tick(tick));
        };
        (1..=4).for_each(|tick| run(&mut world, &mut saves, tick, 10));
        assert!(saves.restore(&mut world, Tick(2)).unwrap());
        (3..=4).for_each(|tick| run(&mut world, &mut saves, tick, 20));
        assert!(saves.restore(&mut world, Tick(3)).unwrap());
        assert_eq!(world.read_row(entity, ids[0]).unwrap().unwrap().0, [20]);
    }
}
