//! Predicted actions: defined once, and made by a command.

use crate::entities::Networked;
use crate::messages::ActionRefused;
use crate::receive;
use crate::registry::Registry;
use crate::room::RoomResource;
use crate::schedule::Publish;
use bevy_app::App;
use bevy_ecs::error::Result;
use bevy_ecs::prelude::{Entity, EntityCommands, EntityWorldMut, Resource, World};
use parlor::{Action, ApiMisuse, EntityId, RoomError, Step};
use std::fmt;
use thiserror::Error;

/// Defines the game's predicted actions.
pub trait ActionApp {
    /// Defines a predicted action, which [`act`](ActCommands::act) makes. All apps of a game define the same ones.
    /// Its owner runs its steps ahead of the room, as with a [predicted](crate::Replicating::predicted) component.
    ///
    /// # Panics
    /// If the app has no plugin, an action of this name is defined already, or the app was in a room. A
    /// misconfigured app must not start.
    fn action<A: Action>(&mut self) -> &mut Self;
}

impl ActionApp for App {
    fn action<A: Action>(&mut self) -> &mut Self {
        let Some(mut registry) = self.world_mut().get_resource_mut::<Registry>() else {
            panic!(
                "the action \"{}\" cannot be defined: add ParlorPlugin::app(\"…\") to the app first",
                A::NAME
            );
        };
        registry.define::<A>().unwrap_or_else(|wrong| panic!("{wrong}"));
        self
    }
}

/// Why an action was not made. Goes to Bevy's error handler.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ActError {
    /// The entity is not in the room.
    #[error("{0} cannot act: it is not in the room, or the app is in none")]
    NotInRoom(Entity),
    /// The room did not take it.
    #[error(transparent)]
    Room(#[from] RoomError),
}

/// Makes predicted actions.
pub trait ActCommands {
    /// Makes a predicted action with this entity, which this player must own. It is applied at the begin of the next
    /// step, before the systems of [`NetTick`](crate::NetTick): here at once, and at the authority in the same step,
    /// which decides. Systems see what it writes as changed components. Call it from any schedule, once for each
    /// action.
    ///
    /// An [`ActionRefused`] has the reason if the action is refused, here or by the authority; what it did is undone
    /// then. An [`ActError`] goes to Bevy's error handler.
    ///
    /// ```
    /// use bevy_app::App;
    /// use bevy_ecs::prelude::*;
    /// use parlor::schema::Kind;
    /// use parlor::{Acting, Action, ActionError};
    /// use parlor_bevy::{ActCommands, ActionApp, Owned, ParlorPlugin, ReplicateApp};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Component)]
    /// struct Tank {
    ///     shells: u8,
    /// }
    /// parlor::replicated!(Tank as "tank" => { shells: Kind::int(0, 20) });
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Shoot;
    ///
    /// impl Action for Shoot {
    ///     const NAME: &'static str = "shoot";
    ///
    ///     fn apply(&self, world: &mut Acting<'_>) -> Result<(), ActionError> {
    ///         let own = world.entity();
    ///         let mut tank: Tank = world.component(own)?.ok_or("no_tank")?;
    ///         tank.shells = tank.shells.checked_sub(1).ok_or("no_shells")?;
    ///         world.insert(own, &tank)?;
    ///         Ok(())
    ///     }
    /// }
    ///
    /// /// When the button was pressed.
    /// fn shoot(mut commands: Commands, own: Query<Entity, (With<Tank>, With<Owned>)>) {
    ///     for tank in &own {
    ///         commands.entity(tank).act(Shoot);
    ///     }
    /// }
    ///
    /// let mut app = App::new();
    /// app.add_plugins(ParlorPlugin::app("tanks"));
    /// app.replicate::<Tank>().predicted();
    /// app.action::<Shoot>();
    /// app.add_systems(bevy_app::Update, shoot);
    /// ```
    fn act<A: Action + Send + Sync>(&mut self, action: A) -> &mut Self;
}

impl ActCommands for EntityCommands<'_> {
    fn act<A: Action + Send + Sync>(&mut self, action: A) -> &mut Self {
        self.queue(move |mut entity: EntityWorldMut<'_>| -> Result<(), ActError> {
            let here = entity.id();
            let Some(&Networked { id }) = entity.get() else { return Err(ActError::NotInRoom(here)) };
            let make: Make = Box::new(move |step| step.act(id, &action));
            entity.resource_mut::<Wanted>().0.push(Want { here, id, name: A::NAME, make });
            Ok(())
        })
    }
}

type Make = Box<dyn FnOnce(&mut Step<'_>) -> Result<(), RoomError> + Send + Sync>;

/// The actions that the next new step makes, in the order of the calls.
#[derive(Debug, Default, Resource)]
pub(crate) struct Wanted(Vec<Want>);

struct Want {
    here: Entity,
    id: EntityId,
    name: &'static str,
    make: Make,
}

impl fmt::Debug for Want {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Want").field("name", &self.name).field("id", &self.id).finish_non_exhaustive()
    }
}

/// At the authority, before the steps of a frame: writes what systems changed since the last step to the room,
/// because actions read and write components there.
pub(crate) fn publish_before_actions(world: &mut World) {
    let has_actions = !world.resource::<Registry>().actions().is_empty();
    let room = world.get_resource::<RoomResource>().filter(|_| has_actions);
    if room.is_some_and(|room| room.is_host() && room.until_next_tick().is_zero()) {
        world.run_schedule(Publish);
    }
}

/// Makes the wanted actions, in a step that is not a replay.
pub(crate) fn act(world: &mut World) -> Result {
    if world.get_resource::<RoomResource>().is_none_or(RoomResource::is_replay) {
        return Ok(());
    }
    let (wanted, mut first) = (std::mem::take(&mut world.resource_mut::<Wanted>().0), Ok(()));
    for Want { here, id, name, make } in wanted {
        let mut room = world.resource_mut::<RoomResource>();
        match room.step().map_or(Ok(()), |mut step| make(&mut step)) {
            // The next poll reports that the room is over.
            Ok(()) | Err(RoomError::Misuse(ApiMisuse::Closed(_))) => {}
            Err(RoomError::Refused { why, .. }) => {
                let (entity, name) = (Some(here), name.to_owned());
                world.write_message(ActionRefused { entity, id, name, why });
            }
            // All are tried; the handler gets the first error.
            Err(error) => first = first.and(Err(ActError::from(error))),
        }
    }
    Ok(first?)
}

/// Takes what the actions of this step wrote from the room into the app.
pub(crate) fn show_acted(world: &mut World) {
    let Some(mut room) = world.get_resource_mut::<RoomResource>() else { return };
    let acted = room.step().map(|step| step.acted()).unwrap_or_default();
    receive::acted(world, &acted);
}
