//! Rooms: commands to enter one, and the resource that holds it.

use crate::entities::leave_entities;
use crate::registry::Registry;
use bevy_ecs::prelude::{Commands, Res, Resource, World};
use parlor::schema::SchemaError;
use parlor::{HostBuilder, JoinBuilder, Room, RoomBuilder, Step, kind};
use std::ops::{Deref, DerefMut};
use thiserror::Error;

/// The room that this app is in: a [`parlor::Room`], from [`RoomCommands::host_room`] or
/// [`RoomCommands::join_room`] on until it is over. Use it to send messages and to read players, keyed state
/// and diagnostics.
///
/// The plugin polls it and runs its steps. The results are messages and runs of [`NetTick`](crate::NetTick),
/// in which [`step`](Self::step) returns the running step. A game must not poll the room itself: it would
/// take events that belong to the plugin.
#[derive(Debug, Resource)]
pub struct RoomResource {
    room: Room,
    /// Whether the running step is a replay.
    is_replay: bool,
}

impl RoomResource {
    /// Returns the running step in [`NetTick`](crate::NetTick), and `None` outside of it.
    pub fn step(&mut self) -> Option<Step<'_>> {
        self.room.current_step()
    }

    /// Whether the running step is a replay: see [`Step::is_replay`].
    pub fn is_replay(&self) -> bool {
        self.is_replay
    }

    /// Begins the next step, if one is due.
    pub(crate) fn begin_step(&mut self) -> bool {
        let step = self.room.step();
        let is_replay = step.as_ref().map(Step::is_replay);
        self.is_replay = is_replay.unwrap_or_default();
        is_replay.is_some()
    }
}

impl Deref for RoomResource {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl DerefMut for RoomResource {
    fn deref_mut(&mut self) -> &mut Room {
        &mut self.room
    }
}

/// Why a room command failed. Goes to Bevy's error handler.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RoomCommandError {
    /// The app has no plugin.
    #[error("the app is not prepared for rooms: add ParlorPlugin::app(\"…\") to it first")]
    NoPlugin,
    /// The app is in a room already.
    #[error("the app is in a room already: call leave_room() first")]
    InRoom,
    /// The replicated components do not form a valid schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// Room commands for systems.
pub trait RoomCommands {
    /// Opens a room with this app as its host. `set` configures it further.
    ///
    /// ```
    /// use bevy_ecs::prelude::*;
    /// use parlor_bevy::RoomCommands;
    ///
    /// fn open(mut commands: Commands) {
    ///     commands.host_room(|room| room.max_players(4).tick_hz(30).name("ada"));
    /// }
    /// ```
    ///
    /// The room is opened when the commands are applied. [`RoomEvent`](crate::RoomEvent) reports the result.
    /// A [`RoomCommandError`] goes to Bevy's error handler.
    fn host_room(&mut self, set: impl FnOnce(HostBuilder) -> HostBuilder + Send + 'static);

    /// Joins a room by its code or an invite link.
    ///
    /// ```
    /// use bevy_ecs::prelude::*;
    /// use parlor_bevy::RoomCommands;
    ///
    /// fn join(mut commands: Commands) {
    ///     commands.join_room("K7QM", |room| room.name("bob"));
    /// }
    /// ```
    fn join_room(&mut self, invite: &str, set: impl FnOnce(JoinBuilder) -> JoinBuilder + Send + 'static);

    /// Joins the room that the program's arguments name, as [`Room::from_args`] takes it. Returns whether they name
    /// one.
    ///
    /// ```no_run
    /// use bevy_ecs::prelude::*;
    /// use parlor_bevy::RoomCommands;
    ///
    /// fn enter(mut commands: Commands) {
    ///     if !commands.join_from_args(|room| room.name("bob")) {
    ///         commands.host_room(|room| room.name("ada"));
    ///     }
    /// }
    /// ```
    fn join_from_args(&mut self, set: impl FnOnce(JoinBuilder) -> JoinBuilder + Send + 'static) -> bool;

    /// Leaves the room, if the app is in one. What came from it is despawned; what this app replicated stays.
    fn leave_room(&mut self);
}

impl RoomCommands for Commands<'_, '_> {
    fn host_room(&mut self, set: impl FnOnce(HostBuilder) -> HostBuilder + Send + 'static) {
        self.queue(move |world: &mut World| begin(world, Room::host, set));
    }

    fn join_room(&mut self, invite: &str, set: impl FnOnce(JoinBuilder) -> JoinBuilder + Send + 'static) {
        let invite = invite.to_owned();
        self.queue(move |world: &mut World| begin(world, |app| Room::join(app, &invite), set));
    }

    fn join_from_args(&mut self, set: impl FnOnce(JoinBuilder) -> JoinBuilder + Send + 'static) -> bool {
        // Only the world knows the app; whether a room is named does not depend on it.
        let is_named = Room::from_args("").is_some();
        if is_named {
            let join = |app: &str| Room::from_args(app).expect("a program's arguments stay as they are");
            self.queue(move |world: &mut World| begin(world, join, set));
        }
        is_named
    }

    fn leave_room(&mut self) {
        self.queue(|world: &mut World| {
            if let Some(RoomResource { room, .. }) = world.remove_resource() {
                room.leave();
                leave_entities(world);
            }
        });
    }
}

fn begin<K: kind::Hosted>(
    world: &mut World,
    builder: impl FnOnce(&str) -> RoomBuilder<K>,
    set: impl FnOnce(RoomBuilder<K>) -> RoomBuilder<K>,
) -> Result<(), RoomCommandError> {
    if world.contains_resource::<RoomResource>() {
        return Err(RoomCommandError::InRoom);
    }
    let mut registry = world.get_resource_mut::<Registry>().ok_or(RoomCommandError::NoPlugin)?;
    let schema = registry.schema()?;
    let room = registry.say_predicted(set(builder(registry.app())).schema(schema)).open();
    world.insert_resource(RoomResource { room, is_replay: false });
    Ok(())
}

/// A run condition: the app is in an open room and is its authority.
///
/// ```
/// use bevy_app::App;
/// use bevy_ecs::prelude::*;
/// use parlor_bevy::{NetTick, ParlorPlugin, is_authority};
///
/// fn move_monsters() {}
///
/// App::new()
///     .add_plugins(ParlorPlugin::app("tanks"))
///     .add_systems(NetTick, move_monsters.run_if(is_authority));
/// ```
pub fn is_authority(room: Option<Res<RoomResource>>) -> bool {
    room.is_some_and(|room| room.is_connected() && room.is_host())
}

/// A run condition: the app is in an open room.
pub fn in_room(room: Option<Res<RoomResource>>) -> bool {
    room.is_some_and(|room| room.is_connected())
}
