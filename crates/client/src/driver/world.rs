//! The entities of a room, as a game holds it.

use super::room::Room;
use parlor_client_core::{RoomError, StateUpdate, WorldAccess};
use parlor_proto::{EntityId, MemberId};
use parlor_sync::schema::{ComponentId, Replicated};
use parlor_sync::world::Diagnostics;
use serde::Serialize;

/// Entities with components, which the host writes and everybody sees. What they are made of says the schema
/// that [`RoomBuilder::schema`](super::RoomBuilder::schema) is given, the same one for host and guests.
///
/// ```no_run
/// use parlor::schema::{Kind, Schema};
/// use parlor::{Event, Room, replicated};
///
/// #[derive(Clone, Debug)]
/// struct Tank {
///     at: [f32; 2],
///     heading: f32,
/// }
/// replicated!(Tank as "tank" => {
///     at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0),
///     heading: Kind::angle(1024),
/// });
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = Schema::builder().replicate::<Tank>().build()?;
/// let mut room = Room::host("tanks").schema(schema).open();
/// loop {
///     while let Some(event) = room.poll() {
///         match event {
///             // The host gives every player a tank.
///             Event::PlayerJoined(player) => {
///                 if let Some(mut host) = room.as_host() {
///                     let tank = host.spawn(Some(player.id))?;
///                     host.insert(tank, &Tank { at: [0.0, 0.0], heading: 0.0 })?;
///                 }
///             }
///             Event::Spawned { entity } => println!("{entity} came into sight"),
///             Event::Closed(why) => return Err(why.into()),
///             _ => {}
///         }
///     }
///     while let Some(mut step) = room.step() {
///         let Some(mut host) = step.host() else { continue };
///         for tank in host.world().entities() {
///             // As everybody has it: quantized by the schema.
///             let Some(mut moved) = host.world().component::<Tank>(tank)? else { continue };
///             moved.at[0] += 0.1;
///             host.insert(tank, &moved)?;
///         }
///     }
///     for tank in room.world().entities() {
///         // Draw what this gives.
///         let _ = room.world().interpolated::<Tank>(tank)?;
///     }
///     std::thread::sleep(room.until_next_tick());
/// }
/// # }
/// ```
impl Room {
    /// Reads many entities at one go: nothing that the connection does comes in between. Changes are
    /// [`Step::edit`](super::Step::edit) and [`Host::edit`](super::Host::edit).
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn sum(room: &mut parlor::Room) -> Result<f32, parlor::RoomError> {
    /// room.look(|world| {
    ///     let tanks = world.entities().into_iter();
    ///     tanks.filter_map(|tank| world.component::<Tank>(tank).ok().flatten()).map(|tank| tank.at[0]).sum()
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open yet.
    pub fn look<T>(&mut self, then: impl FnOnce(&mut WorldReader<'_>) -> T) -> Result<T, RoomError> {
        self.with(|core, now| core.world(now).map(|world| then(&mut WorldReader(world))))
    }

    /// The entities of the room, to read. The [`Host`](super::Host) writes them.
    pub fn world(&self) -> WorldView<'_> {
        WorldView { room: self }
    }

    /// Asks the host to let something happen to an entity of this player's own; its game is told with
    /// [`Event::Action`](crate::Event::Action).
    ///
    /// ```no_run
    /// # fn fire(room: &mut parlor::Room, tank: parlor::EntityId) -> Result<(), parlor::RoomError> {
    /// room.act(tank, "fire", &0.5)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError::Refused`] if there is no such entity or it is not this player's own, as far as this
    /// process knows; if that turns out later, [`Event::ActionRefused`](crate::Event::ActionRefused) says so.
    /// [`RoomError`] if the room is not open, or name or payload are out of their bounds.
    pub fn act<T: Serialize + ?Sized>(
        &self,
        entity: EntityId,
        name: &str,
        payload: &T,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.act(entity, name, payload))
    }

    pub(super) fn access<T>(&self, then: impl FnOnce(&mut WorldAccess<'_>) -> T) -> Result<T, RoomError> {
        self.with(|core, now| core.world(now).map(|mut world| then(&mut world)))
    }
}

/// The entities of a room, from [`Room::world`].
#[derive(Clone, Copy, Debug)]
pub struct WorldView<'a> {
    room: &'a Room,
}

impl WorldView<'_> {
    /// All entities that this process sees, in the order of their ids.
    pub fn entities(&self) -> Vec<EntityId> {
        self.room.access(|world| world.entities()).unwrap_or_default()
    }

    /// Who owns an entity; `None` if nobody does.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        self.room.access(|world| world.owner(entity))?
    }

    /// A component of an entity as the host wrote it last, as quantized; `None` if the entity has none, or
    /// this process does not get it.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.room.access(|world| world.component(entity))?
    }

    /// A component of an entity as it shall be drawn now: a little behind, so that it moves evenly. An entity
    /// of one's own, and on the host every one, is as it is.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.room.access(|world| world.interpolated_component(entity))?
    }

    /// Entities whose components changed since the last call, with one bit for each component that did, which
    /// [`component_id`](Self::component_id) tells; none of them if only the owner changed. Of a new entity it
    /// is all of them. On the host there are none: it wrote them.
    pub fn take_changes(&self) -> Vec<(EntityId, u64)> {
        self.room.with(|core, _| core.take_changes())
    }

    /// Metadata of the newest update of the world that reads return: sequence, tick, source, jitter and delay, as
    /// [`Event::State`](crate::Event::State) has them for keyed state. `None` before the first update, and on the host.
    pub fn update(&self) -> Option<StateUpdate> {
        self.room.with(|core, _| core.world_update())
    }

    /// The number of a component in the schema; none before the room is open, or if the schema has no such
    /// component.
    pub fn component_id<C: Replicated>(&self) -> Option<ComponentId> {
        self.room.with(|core, _| core.component_id::<C>())
    }

    /// What was counted and measured of the world's stream: at the host of what it sends its hub; at a guest
    /// of what came, as far as a receiver can tell.
    pub fn diagnostics(&self) -> Option<Diagnostics> {
        self.room.with(|core, now| core.world_diagnostics(now))
    }
}

/// Entities for reading: what [`Room::look`] gives.
#[derive(Debug)]
pub struct WorldReader<'a>(WorldAccess<'a>);

impl<'a> From<WorldAccess<'a>> for WorldReader<'a> {
    fn from(world: WorldAccess<'a>) -> Self {
        WorldReader(world)
    }
}

impl WorldReader<'_> {
    /// All entities that this process sees, in the order of their ids.
    pub fn entities(&self) -> Vec<EntityId> {
        self.0.entities()
    }

    /// Whether this process sees such an entity.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.0.contains(entity)
    }

    /// Who owns an entity: see [`WorldView::owner`].
    ///
    /// # Errors
    /// [`RoomError`] if there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        self.0.owner(entity)
    }

    /// A component of an entity: see [`WorldView::component`].
    ///
    /// # Errors
    /// [`RoomError`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.0.component(entity)
    }

    /// A component of an entity as it shall be drawn now: see [`WorldView::interpolated`].
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated<C: Replicated>(&mut self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.0.interpolated_component(entity)
    }
}
