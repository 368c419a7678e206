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
//! - The app that hosts a room is its **authority**: its entities that have [`Replicate`] are in the room, with all components
//!   that [`replicate`](ReplicateApp::replicate) registered. What [`NetTick`] systems spawn, change, remove and despawn is
//!   sent after each step, and numbers are rounded there as they travel: all apps simulate from the same ones.
//! - The apps that join have the same entities, with [`Networked`] and [`Owner`], as far as they may see them; what they
//!   change of them is theirs alone, until the authority says something else. What they want done they ask for:
//!   [`parlor::Room::act`] on [`RoomResource`] comes to the authority as an [`ActionReceived`], if the entity is theirs.
//! - [`Interpolated`] beside a component is the value to draw. It is never written into the component itself.
//! - [`InputApp::input`] says what a player wants in each step, and [`Input`] is that, beside what the player owns. What is
//!   [predicted](Replicating::predicted) is simulated by its owner at once, by the same systems, which are run again where the
//!   authority decided otherwise.
//! - [`RoomEvent`] is everything that the room tells. When the room is over, what came from it is despawned.
//!

mod drive;
mod entities;
mod inputs;
mod interpolated;
mod messages;
mod plugin;
mod prediction;
mod publish;
mod receive;
mod registry;
mod replicate;
mod room;
mod schedule;

pub use entities::{EntityMap, Networked, Owned, Owner, Replicate};
pub use inputs::{Input, InputApp, Wish};
pub use interpolated::Interpolated;
pub use messages::{ActionReceived, ActionRefused, ReplicationFailed, RoomEvent};
pub use plugin::ParlorPlugin;
pub use prediction::not_replaying;
pub use registry::{ReplicateError, Shared};
pub use replicate::{ReplicateApp, Replicating};
pub use room::{RoomCommandError, RoomCommands, RoomResource, in_room, is_authority};
pub use schedule::{NetTick, ParlorSet};

/// The program in the guide compiles as it stands there.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/bevy.md")]
struct Guide;
