//! Lag compensation: the world as a member saw it when it acted.

use crate::error::RoomError;
use crate::info::Diagnostics;
use crate::state::check_of_game;
use parlor_proto::{EntityId, Instant, MemberId};
use parlor_sync::interpolation::Sample;
use parlor_sync::schema::{ComponentId, Replicated, RowReader, Schema};
use parlor_sync::world::{World, WorldError};
use std::time::Duration;

/// Rewinds, and those cut to the maximum.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rewinds {
    all: u64,
    beyond: u64,
}

impl Rewinds {
    /// The world as `viewer` saw it at `moment`, but not before `oldest`. Without a moment: the world at
    /// `present`. All in room time.
    pub(crate) fn past<'a>(
        &mut self,
        world: &'a World,
        viewer: MemberId,
        moment: Option<Instant>,
        (oldest, present): (Instant, Instant),
    ) -> Past<'a> {
        let is_beyond = moment.is_some_and(|moment| moment < oldest);
        self.all += 1;
        self.beyond += u64::from(is_beyond);
        let moment = moment.map(|moment| moment.max(oldest)).filter(|moment| *moment < present);
        Past { world, viewer, present, moment, is_beyond, sample: Sample::default() }
    }

    pub(crate) fn diagnose(&self, diagnostics: &mut Diagnostics) {
        (diagnostics.rewinds, diagnostics.rewinds_beyond) = (self.all, self.beyond);
    }
}

/// The world as a member saw it, for [`RoomCore::rewind`](crate::RoomCore::rewind).
///
/// Every component is what the member drew, interpolated from the same two versions by the same code. The
/// member's own entities are as at present: their player acts on them at once and does not see them late.
/// Despawned entities are missing; entities that spawned since appear with their first state.
#[derive(Debug)]
pub struct Past<'a> {
    world: &'a World,
    viewer: MemberId,
    present: Instant,
    /// `None` is the present.
    moment: Option<Instant>,
    is_beyond: bool,
    sample: Sample,
}

impl<'a> Past<'a> {
    /// All entities, by ascending slot.
    pub fn entities(&self) -> Vec<EntityId> {
        self.world.entities().filter(|entity| check_of_game(self.world, *entity).is_ok()).collect()
    }

    /// A component of an entity as the member saw it; `None` if the entity did not have it then.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&mut self, entity: EntityId) -> Result<Option<C>, RoomError> {
        let schema = self.world.schema();
        let id = schema.find(C::NAME).ok_or(WorldError::NotRegistered { name: C::NAME })?;
        Ok(self.row(entity, id)?.map(|row| C::read(&row)))
    }

    /// As [`component`](Self::component), without a Rust type.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn row(
        &mut self,
        entity: EntityId,
        component: ComponentId,
    ) -> Result<Option<RowReader<'_>>, RoomError> {
        check_of_game(self.world, entity)?;
        let kind = self.world.schema().get(component).ok_or(WorldError::NoSuchComponent { component })?;
        let is_own = self.world.owner(entity)? == Some(self.viewer);
        let Some(moment) = self.moment.filter(|_| !is_own) else {
            return Ok(self.world.row(entity, component)?);
        };
        let is_there = self.sample.take_moment(self.world, entity, component, moment, Duration::ZERO);
        Ok(is_there.then(|| self.sample.row(kind)))
    }

    /// The schema of the room.
    pub(crate) fn schema(&self) -> &'a Schema {
        self.world.schema()
    }

    /// The owner of an entity, as at present; `None` if it has none.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        check_of_game(self.world, entity)?;
        Ok(self.world.owner(entity)?)
    }

    /// How far this lies before the begin of the host's step; zero is the present.
    pub fn back(&self) -> Duration {
        self.moment.map_or(Duration::ZERO, |moment| self.present.saturating_since(moment))
    }

    /// Whether the member's view was older than the maximum rewind. This view is then the oldest allowed one.
    pub fn is_beyond(&self) -> bool {
        self.is_beyond
    }
}
