//! A game's access to the entities of its room.

use crate::error::{RoomError, not_host};
use crate::event::ClosedReason;
use crate::players::Players;
use crate::simulation::Simulation;
use crate::state::{Host, SharedState};
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId};
use parlor_sync::audience::Audience;
use parlor_sync::keyed::StateError;
use parlor_sync::limits::AUDIENCE_MEMBERS_MAX;
use parlor_sync::schema::{ComponentId, Replicated, RowReader, RowWriter, Schema};
use std::sync::Arc;

const WRITES: &str = "change an entity";

/// The entities of a room, for reading or, at the host, writing many of them at once.
///
/// All members read a component as it is ([`component`](Self::component)), or interpolated for display
/// ([`interpolated_component`](Self::interpolated_component)). The host writes, and reads its writes back at
/// once as quantized by the schema. So a simulation that uses what it reads has the same numbers at all
/// members.
#[derive(Debug)]
pub struct WorldAccess<'a> {
    shared: &'a mut SharedState,
    simulation: &'a Simulation,
    welcome: &'a Welcome,
    players: &'a Players,
    closed: Option<&'a ClosedReason>,
    now: Instant,
}

impl<'a> WorldAccess<'a> {
    pub(crate) fn new(
        shared: &'a mut SharedState,
        simulation: &'a Simulation,
        (welcome, players): (&'a Welcome, &'a Players),
        closed: Option<&'a ClosedReason>,
        now: Instant,
    ) -> Self {
        WorldAccess { shared, simulation, welcome, players, closed, now }
    }
}

/// For all members.
impl WorldAccess<'_> {
    /// All entities that this process sees, by ascending slot.
    pub fn entities(&self) -> Vec<EntityId> {
        self.shared.entities().collect()
    }

    /// Whether this process sees the entity.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.shared.owner(entity).is_ok()
    }

    /// The owner of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        Ok(self.shared.owner(entity)?)
    }

    /// A component of an entity as the host last wrote it, quantized; a predicted component as predicted.
    /// `None` if the entity does not have it, or it is hidden from this process.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        Ok(self.shared.component(entity)?)
    }

    /// A component of an entity, interpolated for display: a little in the past, so that it moves evenly. A
    /// player's own entities, and all entities at the host, are not delayed. A predicted component lies
    /// between the two newest steps; corrections are smoothed.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated_component<C: Replicated>(
        &mut self,
        entity: EntityId,
    ) -> Result<Option<C>, RoomError> {
        let frame = self.simulation.frame(self.now);
        Ok(match self.shared {
            SharedState::Host(_) => self.shared.component(entity)?,
            SharedState::Member(member) => member.interpolated_component(entity, frame)?,
        })
    }
}

/// For all members, without Rust types: for languages whose components are descriptions.
impl WorldAccess<'_> {
    /// The schema of the room. The number of a component is its index in it.
    pub fn schema(&self) -> &Arc<Schema> {
        self.shared.world().schema()
    }

    /// What `read` makes of a component: as [`component`](Self::component), or if `is_shown` as
    /// [`interpolated_component`](Self::interpolated_component).
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn row<R>(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        is_shown: bool,
        read: impl FnOnce(&RowReader<'_>) -> R,
    ) -> Result<Option<R>, RoomError> {
        let frame = self.simulation.frame(self.now);
        Ok(match self.shared {
            SharedState::Member(member) if is_shown => {
                member.interpolated_row((entity, component), frame, read)?
            }
            _ => self.shared.row(entity, component)?.map(|row| read(&row)),
        })
    }

    /// Sets fields of a component: as [`insert`](Self::insert). `write` need not set all; others keep their values,
    /// and are 0 or empty in a component that the entity did not have.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn write_row(
        &mut self,
        entity: EntityId,
        component: ComponentId,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> Result<(), RoomError> {
        if self.shared.host().is_none() && self.closed.is_none() {
            let predicted = self.shared.write_predicted(entity, component, write);
            return Ok(predicted.ok_or_else(|| not_host(self.welcome, WRITES))??);
        }
        self.host(WRITES)?.entity(entity)?.write_with(entity, component, write)?;
        Ok(())
    }

    /// Removes a component: as [`remove`](Self::remove).
    ///
    /// # Errors
    /// As [`remove`](Self::remove).
    pub fn remove_row(&mut self, entity: EntityId, component: ComponentId) -> Result<bool, RoomError> {
        if self.closed.is_none()
            && let Some(was_there) = self.shared.remove_predicted(entity, component)
        {
            return Ok(was_there);
        }
        Ok(self.host(WRITES)?.entity(entity)?.remove_row(entity, component)?)
    }
}

/// For the host, and for members that predict.
impl WorldAccess<'_> {
    /// Spawns an entity without components, visible to all members. Its owner may [act](crate::RoomCore::act) on it.
    /// If the schema says so, it is also a center of its owner's interest.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or the number of entities is at its limit.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, RoomError> {
        Ok(self.host("spawn an entity")?.spawn(owner)?)
    }

    /// Despawns an entity. All members that saw it get [`Event::Despawned`](crate::Event::Despawned).
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        Ok(self.host("despawn an entity")?.despawn(entity)?)
    }

    /// Sets a component of an entity. Numbers outside the range of their field are clamped. A guest may also
    /// set components that it [predicts](crate::Options::predicted) on its own entities: its reads return
    /// them until the host's state corrects them.
    ///
    /// # Errors
    /// [`RoomError`] if this process may not write it, the entity or the component type does not exist, a
    /// number is NaN or infinite, a text is too long, or the world is too large. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        self.write_row(entity, self.shared.component_id::<C>()?, |row| component.write(row))
    }

    /// Changes a component of an entity in place. Returns whether the entity has it. Permissions are those of
    /// [`insert`](Self::insert).
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn modify<C: Replicated>(
        &mut self,
        entity: EntityId,
        change: impl FnOnce(&mut C),
    ) -> Result<bool, RoomError> {
        let Some(mut component) = self.component::<C>(entity)? else { return Ok(false) };
        change(&mut component);
        self.insert(entity, &component)?;
        Ok(true)
    }

    /// Removes a component of an entity. Returns whether it existed. Permissions are those of
    /// [`insert`](Self::insert).
    ///
    /// # Errors
    /// [`RoomError`] if this process may not write it, or the entity or the component type does not exist.
    pub fn remove<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        self.remove_row(entity, self.shared.component_id::<C>()?)
    }

    /// Sets the owner of an entity; `None` for no owner.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), RoomError> {
        Ok(self.host("give an entity away")?.transfer(entity, owner)?)
    }

    /// Sets the audience of an entity; it must name the owner if the owner is to see it. Hidden entities are
    /// never sent to a player.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the audience names more
    /// than 256 members.
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), RoomError> {
        let host = self.host("set who sees an entity")?;
        if audience.named() > AUDIENCE_MEMBERS_MAX {
            return Err(StateError::AudienceTooLarge { members: audience.named() }.into());
        }
        Ok(host.set_audience(entity, audience)?)
    }

    /// Puts an entity into an interest zone: only owners of an entity in the zone see it. Default: 0, which
    /// is everywhere.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn set_zone(&mut self, entity: EntityId, zone: u32) -> Result<(), RoomError> {
        Ok(self.host("move an entity")?.entity(entity)?.set_zone(entity, zone)?)
    }

    pub(crate) fn welcome(&self) -> &Welcome {
        self.welcome
    }

    pub(crate) fn players(&self) -> &Players {
        self.players
    }

    pub(crate) fn host(&mut self, what: &'static str) -> Result<&mut Host, RoomError> {
        if let Some(closed) = self.closed {
            return Err(ApiMisuse::Closed(closed.as_close_reason()).into());
        }
        self.shared.host_mut().ok_or_else(|| not_host(self.welcome, what).into())
    }
}
