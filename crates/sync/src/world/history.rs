//! What entities were at the last ticks, for whoever plays them out.

use super::EntityId;
use super::store::{Row, World};
use crate::schema::ComponentId;
use parlor_proto::Tick;

impl World {
    /// The tick of the newest version of a component that was committed or came; `None` if the entity has no such component.
    #[must_use]
    pub fn label(&self, entity: EntityId, component: ComponentId) -> Option<Tick> {
        let column = self.columns.get(component.index()).filter(|_| self.has(entity, component))?;
        column.ring(entity.slot)?.newest().map(Tick)
    }

    /// What a component was at `at` and what it became next, each with the tick from which on it was that; `None` unless both
    /// are remembered: then what is read at present is all there is.
    #[must_use]
    pub fn around(&self, entity: EntityId, component: ComponentId, at: Tick) -> Option<[(Tick, Row<'_>); 2]> {
        let column = self.columns.get(component.index()).filter(|_| self.has(entity, component))?;
        let around = column.ring(entity.slot)?.around(at.0)?;
        Some(around.map(|(label, form)| (Tick(label), (form.lanes, form.blobs))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Component, Kind, Schema};
    use parlor_proto::TickRate;
    use std::sync::Arc;

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
