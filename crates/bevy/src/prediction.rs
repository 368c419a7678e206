//! Steps that are run ahead, and again when they turned out otherwise.

use crate::entities::{Networked, Owned};
use crate::messages::ReplicationFailed;
use crate::registry::{Registry, Shared};
use crate::room::RoomResource;
use bevy_ecs::change_detection::DetectChangesMut;
use bevy_ecs::prelude::{Entity, MessageWriter, Mut, Query, QueryState, Res, ResMut, With, World};
use parlor::EntityId;

/// A run condition: the step that runs was not run before. For what must not be done twice: counting, spawning, asking for
/// an action. It holds outside of steps too.
///
/// What is to be seen or heard once asks [`parlor::Room::once`] instead: a step that is run again may bring what it did not
/// bring at first, and that is to be shown then.
///
/// ```
/// use bevy_app::App;
/// use bevy_ecs::prelude::*;
/// use parlor_bevy::{NetTick, ParlorPlugin, RoomResource, not_replaying};
///
/// fn count() {}
///
/// fn shoot(mut room: ResMut<RoomResource>) {
///     let Some(step) = room.step() else { return };
///     if step.once("shot", step.number().0.into()) {
///         println!("bang");
///     }
/// }
///
/// App::new()
///     .add_plugins(ParlorPlugin::app("tanks"))
///     .add_systems(NetTick, (shoot, count.run_if(not_replaying)));
/// ```
pub fn not_replaying(room: Option<Res<RoomResource>>) -> bool {
    room.is_none_or(|room| !room.is_replay())
}

/// An entity and its name in the room.
type Named = (Entity, &'static Networked);

/// Before a step: on a member its own entities become what the room predicts, which went back if the prediction was wrong; on an
/// authority that runs a step again all entities become what they were before it.
pub(crate) fn set_back(
    world: &mut World,
    own: &mut QueryState<Named, With<Owned>>,
    all: &mut QueryState<Named>,
) {
    let Some(room) = world.get_resource::<RoomResource>() else { return };
    let (is_host, is_replay) = (room.is_host(), room.is_replay());
    let mask = if is_host { u64::MAX } else { world.resource::<Registry>().predicted_mask() };
    if mask == 0 || is_host && !is_replay {
        return;
    }
    let pair = |(entity, networked): (Entity, &Networked)| (entity, networked.id);
    let entities: Vec<(Entity, EntityId)> =
        if is_host { all.iter(world).map(pair).collect() } else { own.iter(world).map(pair).collect() };
    world.resource_scope(|world, mut room: Mut<RoomResource>| {
        world.resource_scope(|world, registry: Mut<Registry>| {
            // A step runs in an open room only.
            let _ = room.look(|access| {
                for (here, id) in entities {
                    let Ok(mut entity) = world.get_entity_mut(here) else { continue };
                    // A step that is not run again goes on from what the one before it left: nothing of that is a change.
                    registry.receive(&mut entity, access, id, mask, is_replay);
                }
            });
        });
    });
}

/// After a step on a member: gives the `C` of its own entities to the room, as what is predicted, and takes back what the
/// room made of it, so that this app simulates on with the same numbers as the authority.
pub(crate) fn predict<C: Shared>(
    mut room: ResMut<RoomResource>,
    mut own: Query<(Entity, &Networked, Option<&mut C>), With<Owned>>,
    mut failed: MessageWriter<ReplicationFailed>,
) {
    let Some(mut step) = room.step() else { return };
    // A step runs in an open room only.
    let _ = step.edit(|access| {
        for (entity, Networked { id }, component) in &mut own {
            let written = match component {
                Some(mut component) => access.insert(*id, &*component).and_then(|()| {
                    if let Some(quantized) = access.component::<C>(*id)? {
                        // Not a change: whoever looks for those has been shown this one.
                        *component.bypass_change_detection() = quantized;
                    }
                    Ok(())
                }),
                None => access.remove::<C>(*id).map(drop),
            };
            if let Err(error) = written {
                failed.write(ReplicationFailed { entity, component: Some(C::NAME), error });
            }
        }
    });
}
