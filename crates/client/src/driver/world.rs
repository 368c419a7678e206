//! The entities of a room, as a game holds it.

use super::room::Room;
use crate::core::{RoomError, WorldAccess};
use parlor_proto::{EntityId, MemberId};
use parlor_sync::audience::Audience;
use parlor_sync::schema::{ComponentId, Replicated};
use parlor_sync::world::Diagnostics;
use serde::Serialize;

/// Entities with components, which the host writes and everybody sees. What they are made of says the schema that
/// [`RoomBuilder::schema`](super::RoomBuilder::schema) is given, the same one for host and guests.
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
///             Event::PlayerJoined(player) if room.is_host() => {
///                 let tank = room.spawn(Some(player.id))?;
///                 room.insert(tank, &Tank { at: [0.0, 0.0], heading: 0.0 })?;
///             }
///             Event::Spawned { entity } => println!("{entity} came into sight"),
///             Event::Closed(why) => return Err(why.into()),
///             _ => {}
///         }
///     }
///     while room.tick() {
///         if room.is_host() {
///             for tank in room.entities() {
///                 // As everybody has it: quantized by the schema.
///                 let Some(mut moved) = room.component::<Tank>(tank)? else { continue };
///                 moved.at[0] += 0.1;
///                 room.insert(tank, &moved)?;
///             }
///         }
///     }
///     for tank in room.entities() {
///         // Draw what this gives.
///         let _ = room.interpolated_component::<Tank>(tank)?;
///     }
///     std::thread::sleep(room.until_next_tick());
/// }
/// # }
/// ```
impl Room {
    /// Looks at many entities, or on the host changes many, at one go: nothing that the connection does comes in between. Do
    /// not call the room itself from within.
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn sum(room: &mut parlor::Room) -> Result<f32, parlor::RoomError> {
    /// room.world(|world| {
    ///     let tanks = world.entities().into_iter();
    ///     tanks.filter_map(|tank| world.component::<Tank>(tank).ok().flatten()).map(|tank| tank.at[0]).sum()
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open yet.
    pub fn world<T>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> T) -> Result<T, RoomError> {
        self.look(then)
    }

    /// All entities that this process sees, in the order of their ids.
    #[must_use]
    pub fn entities(&self) -> Vec<EntityId> {
        self.look(|world| world.entities()).unwrap_or_default()
    }

    /// Who owns an entity; `None` if nobody does.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, or there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        self.look(|world| world.owner(entity))?
    }

    /// A component of an entity as the host wrote it last, as quantized; `None` if the entity has none, or this process does
    /// not get it.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open, there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.look(|world| world.component(entity))?
    }

    /// A component of an entity as it shall be drawn now: a little behind, so that it moves evenly. An entity of one's own,
    /// and on the host every one, is as it is.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated_component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        self.look(|world| world.interpolated_component(entity))?
    }

    /// Adds an entity without components, for the host; everybody sees it. Its owner may [act](Self::act) on it.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there are as many entities as there can be.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, RoomError> {
        self.look(|world| world.spawn(owner))?
    }

    /// Takes an entity away, for the host.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        self.look(|world| world.despawn(entity))?
    }

    /// Sets a component of an entity, for the host. Everybody who sees it has it after the step. Numbers beyond the range of
    /// their field are moved to its end. A guest may set what it [predicts](crate::RoomBuilder::predict) of its own entities.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, the schema has no such component, a number is
    /// NaN or infinite, a text is too long, or the world is too large. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        self.look(|world| world.insert(entity, component))?
    }

    /// Takes a component from an entity, for the host; says whether it had one.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the schema has no such component.
    pub fn remove_component<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        self.look(|world| world.remove::<C>(entity))?
    }

    /// Gives an entity to another player, or to nobody, for the host.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), RoomError> {
        self.look(|world| world.transfer(entity, owner))?
    }

    /// Sets which players may see an entity, for the host; its owner does only if it is among them. It never reaches the wire of
    /// another.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the audience names more than 256.
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), RoomError> {
        self.look(|world| world.set_audience(entity, audience))?
    }

    /// Puts an entity into a part of the world whose number the game chooses, for the host: only who owns an entity there sees
    /// it. 0, as at first, is everywhere.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn set_room(&mut self, entity: EntityId, room: u32) -> Result<(), RoomError> {
        self.look(|world| world.set_room(entity, room))?
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
    /// [`RoomError::Refused`] if there is no such entity or it is not this player's own, as far as this process knows; if that
    /// turns out later, [`Event::ActionRefused`](crate::Event::ActionRefused) says so. [`RoomError`] if the room is not open,
    /// or name or payload are out of their bounds.
    pub fn act<T: Serialize + ?Sized>(
        &mut self,
        entity: EntityId,
        name: &str,
        payload: &T,
    ) -> Result<(), RoomError> {
        self.with(|core, _| core.act(entity, name, payload))
    }

    /// Entities whose components changed since the last call, with one bit for each component that did, which
    /// [`component_id`](Self::component_id) tells; none of them if only the owner changed. Of a new entity it is all of them.
    /// On the host there are none: it wrote them.
    pub fn take_changes(&mut self) -> Vec<(EntityId, u64)> {
        self.with(|core, _| core.take_changes())
    }

    /// The number of a component in the schema; none before the room is open, or if the schema has no such component.
    #[must_use]
    pub fn component_id<C: Replicated>(&self) -> Option<ComponentId> {
        self.with(|core, _| core.component_id::<C>())
    }

    /// What was counted and measured of the world's stream: at the host of what it sends its hub; at a guest of what came, as far
    /// as a receiver can tell.
    #[must_use]
    pub fn world_diagnostics(&self) -> Option<Diagnostics> {
        self.with(|core, now| core.world_diagnostics(now))
    }

    fn look<T>(&self, then: impl FnOnce(&mut WorldAccess<'_>) -> T) -> Result<T, RoomError> {
        self.with(|core, now| core.world(now).map(|mut world| then(&mut world)))
    }
}
