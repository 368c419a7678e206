//! Access to the history of entities, for playout.

use super::EntityId;
use super::store::{Row, World};
use crate::schema::ComponentId;
use parlor_proto::Tick;

impl World {
    /// The tick of a component's newest committed or received version; `None` if the entity lacks the
    /// component.
    pub fn label(&self, entity: EntityId, component: ComponentId) -> Option<Tick> {
        let column = self.columns.get(component.index()).filter(|_| self.has(entity, component))?;
        column.newest(entity.slot).map(Tick)
    }

    /// The tick since which an entity has its present state, as committed or received. `None` if it does not
    /// exist, or was never committed.
    pub fn row_label(&self, entity: EntityId) -> Option<Tick> {
        let slot = self.slots.get(usize::from(entity.slot)).filter(|_| self.contains(entity))?;
        slot.published.then_some(Tick(slot.label))
    }

    /// Returns the versions of a component at `at` and after it, each with its first tick; `None` unless both
    /// are known. The component may have been removed in between: see [`was_there`](Self::was_there).
    pub fn around(&self, entity: EntityId, component: ComponentId, at: Tick) -> Option<[(Tick, Row<'_>); 2]> {
        let column = self.columns.get(component.index()).filter(|_| self.contains(entity))?;
        let around = column.around(entity.slot, at.0)?;
        Some(around.map(|(label, form)| (Tick(label), (form.lanes, form.blobs))))
    }

    /// Returns the oldest and newest known version of a component, each with its first tick. The component
    /// may have been removed since.
    pub fn ends(
        &self,
        entity: EntityId,
        component: ComponentId,
    ) -> Option<((Tick, Row<'_>), (Tick, Row<'_>))> {
        let column = self.columns.get(component.index()).filter(|_| self.contains(entity))?;
        let version =
            |label: u32| column.at(entity.slot, label).map(|form| (Tick(label), (form.lanes, form.blobs)));
        version(column.oldest(entity.slot)?).zip(version(column.newest(entity.slot)?))
    }

    /// Whether an entity had a component at all ticks from `from` to `to`, both included.
    pub fn was_there(&self, entity: EntityId, component: ComponentId, from: Tick, to: Tick) -> bool {
        let is_known = component.index() < self.columns.len() && self.contains(entity);
        is_known && self.had_components(entity.slot, component.bit(), from.0, to.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Component, Kind, Schema};
    use parlor_proto::TickRate;
    use std::sync::Arc;

    #[test]
    fn when_a_component_was_there_is_remembered() {
        let component = Component::builder("x").field("x", Kind::int(0, 1_000)).build();
        let schema = Arc::new(Schema::builder().component(component).build().unwrap());
        let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
        let (id, entity) = (schema.find("x").unwrap(), world.spawn(None).unwrap());
        world.commit(Tick(5)).unwrap();
        for tick in [10u32, 12] {
            world.write_row(entity, id, &[tick.cast_signed()], &[]).unwrap();
            world.commit(Tick(tick)).unwrap();
        }
        world.remove_row(entity, id).unwrap();
        world.commit(Tick(14)).unwrap();
        world.write_row(entity, id, &[16], &[]).unwrap();
        world.commit(Tick(16)).unwrap();
        let was_there = |from, to| world.was_there(entity, id, Tick(from), Tick(to));
        let at = [(4, false), (9, false), (10, true), (11, true), (13, true), (14, false), (15, false)];
        for (tick, expected) in at.into_iter().chain([(16, true), (1_000, true)]) {
            assert_eq!(was_there(tick, tick), expected, "at {tick}");
        }
        assert!(was_there(10, 13) && !was_there(10, 14) && !was_there(13, 16), "all the time or not at all");
        world.despawn(entity).unwrap();
        assert!(!world.was_there(entity, id, Tick(12), Tick(12)), "it is gone");
    }

    #[test]
    fn a_moment_lies_between_what_it_was_and_what_it_became() {
        let component = Component::builder("x").field("x", Kind::int(0, 1_000)).build();
        let schema = Arc::new(Schema::builder().component(component).build().unwrap());
        let mut world = World::new(Arc::clone(&schema), TickRate::DEFAULT);
        let (id, entity) = (schema.find("x").unwrap(), world.spawn(None).unwrap());
        assert_eq!(world.label(entity, id), None);
        for tick in [10u32, 12, 15] {
            world.write_row(entity, id, &[tick.cast_signed()], &[]).unwrap();
            world.commit(Tick(tick)).unwrap();
        }
        assert_eq!(world.label(entity, id), Some(Tick(15)));
        let around = |at| {
            let around = world.around(entity, id, Tick(at))?;
            Some(around.map(|(tick, (lanes, _))| (tick.0, lanes[0])))
        };
        assert_eq!([9, 10, 11].map(around), [None, Some([(10, 10), (12, 12)]), Some([(10, 10), (12, 12)])]);
        assert_eq!([12, 14, 15].map(around), [Some([(12, 12), (15, 15)]), Some([(12, 12), (15, 15)]), None]);
    }
}
