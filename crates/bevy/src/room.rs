//! Being in a room: how a system gets into one, and how it finds out.

use crate::entities::leave_entities;
use crate::registry::Registry;
use bevy_ecs::prelude::{Commands, Res, Resource, World};
use parlor::schema::SchemaError;
use parlor::{Room, RoomBuilder};
use std::ops::{Deref, DerefMut};
use thiserror::Error;

/// The room that this app is in, from [`RoomCommands::host_room`] or [`RoomCommands::join_room`] on until it is over.
/// It is a [`parlor::Room`]: send messages with it, read players, keyed state and diagnostics.
///
/// The plugin calls `poll` and `tick`: what they give comes as messages and as runs of [`NetTick`](crate::NetTick). A
/// game that called them itself would take what belongs to the plugin.
#[derive(Debug, Resource)]
pub struct RoomResource(pub(crate) Room);

impl Deref for RoomResource {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.0
    }
}

impl DerefMut for RoomResource {
    fn deref_mut(&mut self) -> &mut Room {
        &mut self.0
    }
}

/// Why a command for a room was not carried out. Bevy's error handler gets it.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RoomCommandError {
    /// The app has no plugin.
    #[error("the app is not prepared for rooms: add ParlorPlugin::app(\"…\") to it first")]
    NoPlugin,
    /// The app is in a room.
    #[error("the app is in a room already: call leave_room() first")]
    InRoom,
    /// What is replicated makes no schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
}

/// What systems ask for with their `Commands`.
pub trait RoomCommands {
    /// Opens a room with this app as its host. `set` says more about it than the game's name.
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
    /// It is opened when the commands are applied; what comes of it is told by [`RoomEvent`](crate::RoomEvent). A
    /// [`RoomCommandError`] goes to Bevy's error handler.
    fn host_room(&mut self, set: impl FnOnce(RoomBuilder) -> RoomBuilder + Send + 'static);

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
    fn join_room(&mut self, invite: &str, set: impl FnOnce(RoomBuilder) -> RoomBuilder + Send + 'static);

    /// Leaves the room, if the app is in one. What came from it is despawned; what this app replicated stays.
    fn leave_room(&mut self);
}

impl RoomCommands for Commands<'_, '_> {
    fn host_room(&mut self, set: impl FnOnce(RoomBuilder) -> RoomBuilder + Send + 'static) {
        self.queue(move |world: &mut World| begin(world, Room::host, set));
    }

    fn join_room(&mut self, invite: &str, set: impl FnOnce(RoomBuilder) -> RoomBuilder + Send + 'static) {
        let invite = invite.to_owned();
        self.queue(move |world: &mut World| begin(world, |app| Room::guest(app, &invite), set));
    }

    fn leave_room(&mut self) {
        self.queue(|world: &mut World| {
            if let Some(RoomResource(room)) = world.remove_resource() {
                room.leave();
                leave_entities(world);
            }
        });
    }
}

fn begin(
    world: &mut World,
    builder: impl FnOnce(&str) -> RoomBuilder,
    set: impl FnOnce(RoomBuilder) -> RoomBuilder,
) -> Result<(), RoomCommandError> {
    if world.contains_resource::<RoomResource>() {
        return Err(RoomCommandError::InRoom);
    }
    let mut registry = world.get_resource_mut::<Registry>().ok_or(RoomCommandError::NoPlugin)?;
    let schema = registry.schema()?;
    let room = registry.say_predicted(set(builder(registry.app())).schema(schema)).open();
    world.insert_resource(RoomResource(room));
    Ok(())
}

/// A run condition: the app is in an open room and decides in it.
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
#[must_use]
pub fn is_authority(room: Option<Res<RoomResource>>) -> bool {
    room.is_some_and(|room| room.is_connected() && room.is_host())
}

/// A run condition: the app is in an open room.
#[must_use]
pub fn in_room(room: Option<Res<RoomResource>>) -> bool {
    room.is_some_and(|room| room.is_connected())
}
