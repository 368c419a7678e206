//! What only the host writes: keyed state, entities, and who may stay.

use super::room::Room;
use parlor_client_core::{RoomError, WorldAccess};
use parlor_proto::{EntityId, MemberId};
use parlor_sync::audience::Audience;
use parlor_sync::keyed::Hints;
use parlor_sync::schema::Replicated;
use serde::Serialize;
use std::ops::Deref;

impl Room {
    /// What the host writes between two steps, as at an event; `None` if this process is not the host, or the
    /// room is not open. It counts for the step that ran last, and is sent with it. Where steps are [run
    /// again](crate::RoomBuilder::resimulate) over it, a change of a component is lost. In a step,
    /// [`Step::host`](super::Step::host).
    ///
    /// ```no_run
    /// # use parlor::Event;
    /// # fn play(room: &mut parlor::Room) -> Result<(), parlor::RoomError> {
    /// while let Some(event) = room.poll() {
    ///     match (event, room.as_host()) {
    ///         // The host gives every player a tank.
    ///         (Event::PlayerJoined(player), Some(mut host)) => drop(host.spawn(Some(player.id))?),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn as_host(&mut self) -> Option<Host<'_>> {
        let is_host = self.with(|core, _| core.is_connected() && core.is_host());
        is_host.then_some(Host { room: self })
    }
}

/// What only the host writes, from [`Room::as_host`] or within a step from [`Step::host`](super::Step::host).
/// It reads all that the [`Room`] does. A guest has none, so it cannot write:
///
/// ```compile_fail,E0599
/// # let mut room = parlor::Room::join("tanks", "K7QM").open();
/// room.set("round", &3);
/// ```
#[derive(Debug)]
pub struct Host<'a> {
    room: &'a mut Room,
}

impl Deref for Host<'_> {
    type Target = Room;

    fn deref(&self) -> &Room {
        self.room
    }
}

/// Keyed state.
impl Host<'_> {
    /// Sets a key. All members receive it after the step. An unchanged value costs nothing.
    ///
    /// ```no_run
    /// # fn begin(host: &mut parlor::Host) -> Result<(), parlor::RoomError> {
    /// host.set("round", &3)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or key or value are out of their bounds: a key has at most 64
    /// bytes, a value 16 KiB, all of them 60 KiB.
    pub fn set<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), RoomError> {
        self.with(|core, _| core.set(key, value, Audience::All))
    }

    /// Sets a key that only these players see. It is never sent to others.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    pub fn set_for<T: Serialize + ?Sized>(
        &mut self,
        players: impl IntoIterator<Item = MemberId>,
        key: &str,
        value: &T,
    ) -> Result<(), RoomError> {
        let audience = Audience::members(players);
        self.with(|core, _| core.set(key, value, audience))
    }

    /// Removes a key. Returns whether it existed.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed.
    pub fn remove(&mut self, key: &str) -> Result<bool, RoomError> {
        self.with(|core, _| core.remove(key))
    }

    /// Declares how the values of all keys that begin with `prefix` move between updates: which parts are
    /// angles, and which snap. A host that took over by migration declares it again.
    ///
    /// ```no_run
    /// # fn begin(host: &mut parlor::Host) -> Result<(), Box<dyn std::error::Error>> {
    /// host.declare("tank/", parlor::Hints::none().angle("turret")?.snap("gear")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or there are too many declarations.
    pub fn declare(&mut self, prefix: &str, hints: Hints) -> Result<(), RoomError> {
        self.with(|core, _| core.declare(prefix, hints))
    }
}

/// Entities.
impl Host<'_> {
    /// Adds an entity without components; everybody sees it. Its owner may [act](Room::act) on it.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or there are as many entities as there can be.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, RoomError> {
        self.edit(|world| world.spawn(owner))?
    }

    /// Takes an entity away.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        self.edit(|world| world.despawn(entity))?
    }

    /// Sets a component of an entity. Everybody who sees it has it after the step. Numbers beyond the range
    /// of their field are moved to its end.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, there is no such entity, the schema has no such component, a
    /// number is NaN or infinite, a text is too long, or the world is too large. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        self.edit(|world| world.insert(entity, component))?
    }

    /// Changes a component of an entity in place, where [`insert`](Self::insert) could set it. Returns whether the entity has it.
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { shells: u8 }
    /// # parlor::replicated!(Tank as "tank" => { shells: Kind::int(0, 20) });
    /// # fn reload(host: &mut parlor::Host, tank: parlor::EntityId) -> Result<(), parlor::RoomError> {
    /// host.modify(tank, |tank: &mut Tank| tank.shells = 20)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn modify<C: Replicated>(
        &mut self,
        entity: EntityId,
        change: impl FnOnce(&mut C),
    ) -> Result<bool, RoomError> {
        self.edit(|world| world.modify(entity, change))?
    }

    /// Takes a component from an entity. Returns whether it had one.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, there is no such entity, or the schema has no such component.
    pub fn remove_component<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        self.edit(|world| world.remove::<C>(entity))?
    }

    /// Gives an entity to another player, or to nobody.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or there is no such entity.
    pub fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), RoomError> {
        self.edit(|world| world.transfer(entity, owner))?
    }

    /// Sets which players may see an entity; its owner does only if it is among them. It never reaches the
    /// wire of another.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, there is no such entity, or the audience names more than 256.
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), RoomError> {
        self.edit(|world| world.set_audience(entity, audience))?
    }

    /// Decides who sees which entity, beside audiences and interest: `filter` gets the world, a player and an entity, and
    /// a player that it denies an entity is sent nothing of it, not even when it joins. Call it in every step: each pair
    /// is asked about once in `every` calls (1 to 600), and at once when the entity is new or changes its owner or
    /// audience. An owner is in scope of what is its own. See [`WorldAccess::scope`].
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { team: i64 }
    /// # parlor::replicated!(Tank as "tank" => { team: Kind::int(0, 3) });
    /// # fn hide(step: &mut parlor::HostStep, teams: &std::collections::BTreeMap<parlor::MemberId, i64>) -> Result<(), parlor::RoomError> {
    /// // A player sees the tanks of its own team; each pair is looked at once in four steps.
    /// step.scope(4, |world, player, entity| {
    ///     let tank = world.component::<Tank>(entity).ok().flatten();
    ///     tank.is_some_and(|tank| teams.get(&player) == Some(&tank.team))
    /// })
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or `every` is out of its bounds.
    pub fn scope(
        &mut self,
        every: u32,
        filter: impl FnMut(&WorldAccess<'_>, MemberId, EntityId) -> bool,
    ) -> Result<(), RoomError> {
        self.edit(|world| world.scope(every, filter))?
    }

    /// Ends the [filter](Self::scope): audiences and interest decide alone.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed.
    pub fn end_scope(&mut self) -> Result<(), RoomError> {
        self.edit(|world| world.end_scope())?
    }

    /// Puts an entity into a part of the world whose number the game chooses: only who owns an entity there
    /// sees it. 0, the default, is everywhere.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or there is no such entity.
    pub fn set_zone(&mut self, entity: EntityId, zone: u32) -> Result<(), RoomError> {
        self.edit(|world| world.set_zone(entity, zone))?
    }

    /// Reads and changes many entities at one go: nothing that the connection does comes in between.
    ///
    /// ```no_run
    /// # use parlor::schema::Kind;
    /// # struct Tank { at: [f32; 2] }
    /// # parlor::replicated!(Tank as "tank" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
    /// # fn push(host: &mut parlor::Host) -> Result<(), parlor::RoomError> {
    /// host.edit(|world| {
    ///     for entity in world.entities() {
    ///         let Some(mut tank) = world.component::<Tank>(entity)? else { continue };
    ///         tank.at[0] += 0.1;
    ///         world.insert(entity, &tank)?;
    ///     }
    ///     Ok(())
    /// })?
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open.
    pub fn edit<T>(&mut self, then: impl FnOnce(&mut WorldAccess<'_>) -> T) -> Result<T, RoomError> {
        self.access(then)
    }
}

/// Players.
impl Host<'_> {
    /// Removes a player. The player receives the reason. One that is gone already does not return; otherwise nothing
    /// changes, so that it may be removed twice.
    ///
    /// # Errors
    /// [`RoomError`] if the room is closed, or it is the host itself.
    pub fn kick(&mut self, player: MemberId, reason: &str) -> Result<(), RoomError> {
        self.with(|core, _| core.kick(player, reason))?;
        self.shared.wake();
        Ok(())
    }

    /// Hands the host's part over to a player, or with `None` to the connected one with the lowest id, in a room
    /// with [migration](crate::HostBuilder::host_migration). This process stays as a player. The step that runs, or
    /// the next one, is its last as the host: all that it wrote up to then is in the room.
    /// [`Event::HostMigration`](crate::Event::HostMigration) and [`HostChanged`](crate::Event::HostChanged) follow,
    /// or [`HandOverRefused`](crate::Event::HandOverRefused), after which this process goes on as the host. At most
    /// once a second.
    ///
    /// ```no_run
    /// # fn play(room: &mut parlor::Room, next: parlor::MemberId) -> Result<(), parlor::RoomError> {
    /// // The player of this phone puts it away.
    /// if let Some(mut host) = room.as_host() {
    ///     host.hand_over(next)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`RoomError::NotHandedOver`] with the reason; nothing changed then. [`RoomError`] if the room is closed, the
    /// player is this one, or the server is too old.
    pub fn hand_over(&mut self, to: impl Into<Option<MemberId>>) -> Result<(), RoomError> {
        let to = to.into();
        self.with(|core, now| core.hand_over(to, now))?;
        self.shared.wake();
        Ok(())
    }
}
