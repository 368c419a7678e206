//! Columns: one component of all entities, number by number, for who reads or writes many at once.

use crate::error::RoomError;
use crate::simulation::Past;
use crate::world::WorldAccess;
use bytes::Bytes;
use parlor_proto::{EntityId, MemberId};
use parlor_sync::schema::{Component, ComponentId, RowReader};
use parlor_sync::world::WorldError;

/// One component of all entities that have it. Reading into the same columns again allocates nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    /// The entities, by ascending slot.
    pub entities: Vec<EntityId>,
    /// The owner of each; `None` without one.
    pub owners: Vec<Option<MemberId>>,
    /// For each number of the component's fields, in their order: that of each entity.
    pub numbers: Vec<Vec<f64>>,
    /// For each text, bytes or value of the component's fields, in their order: that of each entity.
    pub blobs: Vec<Vec<Bytes>>,
}

impl Columns {
    /// Empties the columns, for rows of `component`.
    fn begin(&mut self, component: &Component) {
        self.entities.clear();
        self.owners.clear();
        self.numbers.resize(component.numbers(), Vec::new());
        self.blobs.resize(component.blobs(), Vec::new());
        self.numbers.iter_mut().for_each(Vec::clear);
        self.blobs.iter_mut().for_each(Vec::clear);
    }

    /// Appends the fields of a row.
    fn push(&mut self, row: &RowReader<'_>) {
        let (mut number, mut blob) = (0, 0);
        for field in 0..row.component().fields().len() {
            let field = row.field(field);
            for value in field.numbers() {
                self.numbers[number].push(*value);
                number += 1;
            }
            if let Some(bytes) = field.blob() {
                self.blobs[blob].push(bytes.clone());
                blob += 1;
            }
        }
    }
}

impl WorldAccess<'_> {
    /// Reads a component of all entities that have it: as [`row`](Self::row) reads one.
    ///
    /// # Errors
    /// [`RoomError::World`] if the schema has no such component.
    pub fn columns(
        &mut self,
        component: ComponentId,
        is_shown: bool,
        columns: &mut Columns,
    ) -> Result<(), RoomError> {
        let schema = std::sync::Arc::clone(self.schema());
        columns.begin(schema.get(component).ok_or(WorldError::NoSuchComponent { component })?);
        for entity in self.entities() {
            if self.row(entity, component, is_shown, |row| columns.push(row))?.is_some() {
                columns.entities.push(entity);
                columns.owners.push(self.owner(entity)?);
            }
        }
        Ok(())
    }
}

impl Past<'_> {
    /// Reads a component of all entities that had it: as [`row`](Self::row) reads one.
    ///
    /// # Errors
    /// [`RoomError::World`] if the schema has no such component.
    pub fn columns(&mut self, component: ComponentId, columns: &mut Columns) -> Result<(), RoomError> {
        let kind = self.schema().get(component).ok_or(WorldError::NoSuchComponent { component })?;
        columns.begin(kind);
        for entity in self.entities() {
            let Some(row) = self.row(entity, component)? else { continue };
            columns.push(&row);
            columns.entities.push(entity);
            columns.owners.push(self.owner(entity)?);
        }
        Ok(())
    }
}
