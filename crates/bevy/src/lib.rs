//! Parlor for Bevy: the entities and components of a Bevy world are a room's world.
//!
//! ```
//! use bevy_app::App;
//! use bevy_ecs::prelude::*;
//! use parlor::schema::Kind;
//! use parlor_bevy::{NetTick, Owner, ParlorPlugin, Replicate, ReplicateApp, RoomCommands, is_authority};
//!
//! #[derive(Component, Default)]
//! struct Position {
//!     at: [f32; 2],
//! }
//!
//! parlor::replicated!(Position as "position" => { at: Kind::vector2(-256.0, 256.0, 1.0 / 512.0) });
//!
//! let mut app = App::new();
//! app.add_plugins(ParlorPlugin::app("tanks"));
//! app.replicate::<Position>().interpolated();
//! app.add_systems(bevy_app::Startup, open).add_systems(NetTick, drive.run_if(is_authority));
//!
//! fn open(mut commands: Commands) {
//!     commands.host_room(|room| room.max_players(4).tick_hz(30)); // or commands.join_room("K7QM", |room| room)
//!     commands.spawn((Replicate, Owner(None), Position::default()));
//! }
//!
//! fn drive(mut positions: Query<&mut Position>) {
//!     for mut position in &mut positions {
//!         position.at[0] += 0.1;
//!     }
//! }
//! ```
//!
//! - The app that hosts a room is its **authority**. Its entities that have [`Replicate`] are in the room,
//!   with all components that [`replicate`](ReplicateApp::replicate) registered. Changes that [`NetTick`]
//!   systems make are sent after each step. Numbers are rounded there to their wire precision, so all apps
//!   simulate from the same ones.
//! - The apps that join have the same entities, with [`Networked`] and [`Owner`], as far as they may see
//!   them. Their own changes stay local until the authority's next update. They request changes with
//!   [`parlor::Room::act`] on [`RoomResource`]: the authority gets an [`ActionReceived`], if the entity is
//!   theirs.
//! - [`Interpolated`] beside a component is the value to draw. It is never written into the component itself.
//! - [`InputApp::input`] samples the player's input for each step. [`Input`] holds it on the entities that
//!   the player owns. A [predicted](Replicating::predicted) component is simulated by its owner at once, by
//!   the same systems. They are run again where the authority decided otherwise.
//! - [`ActionApp::action`] defines a predicted action, and [`ActCommands::act`] makes it: it shows at once, and the
//!   authority decides it in the same step.
//! - [`RoomEvent`] carries all events of the room. When the room is over, the entities that came from it are
//!   despawned.

mod actions;
mod drive;
mod entities;
mod inputs;
mod interpolated;
mod messages;
mod mutate;
mod plugin;
mod prediction;
mod publish;
mod receive;
mod registry;
mod replicate;
mod room;
mod schedule;

pub use actions::{ActCommands, ActError, ActionApp};
pub use entities::{EntityMap, Networked, Owned, Owner, Replicate};
pub use inputs::{Input, InputApp, Wish};
pub use interpolated::Interpolated;
pub use messages::{ActionReceived, ActionRefused, ReplicationFailed, RoomEvent};
pub use mutate::MutateCommands;
pub use plugin::ParlorPlugin;
pub use prediction::not_replaying;
pub use registry::{ReplicateError, Shared};
pub use replicate::{ReplicateApp, Replicating};
pub use room::{RoomCommandError, RoomCommands, RoomResource, in_room, is_authority};
pub use schedule::{NetTick, ParlorSet};

/// Compiles the program in the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/bevy.md")]
struct Guide;
