//! Prediction: steps that run ahead, and run again after a correction.

use crate::entities::{Networked, Owned};
use crate::messages::ReplicationFailed;
use crate::registry::{Registry, Shared};
use crate::room::RoomResource;
use bevy_ecs::change_detection::DetectChangesMut;
use bevy_ecs::prelude::{Entity, MessageWriter, Mut, Query, QueryState, Res, ResMut, With, World};
use parlor::EntityId;

/// A run condition: the running step is not a replay. Use it for what must happen once: counting, spawning,
/// requesting an action. It is also true outside of steps.
///
/// For effects that are seen or heard use [`parlor::Room::once`] instead. A replay may produce an effect that
/// the first run did not, and that effect must be shown.
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

/// An entity and its id in the room.
type Named = (Entity, &'static Networked);

/// Restores state before a step. A member sets its own entities to the room's prediction, which was rolled
/// back if it was wrong. An authority that replays a step sets all entities to their state before that step.
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
            // A step runs only in an open room.
            let _ = room.look(|access| {
                for (here, id) in entities {
                    let Ok(mut entity) = world.get_entity_mut(here) else { continue };
                    // A step that is not a replay continues from the step before it: nothing is marked as
                    // changed.
                    registry.receive(&mut entity, access, id, mask, is_replay);
                }
            });
        });
    });
}

/// After a step on a member: writes the predicted `C` of its own entities to the room, and reads back the
/// quantized value. The app thereby simulates with the same numbers as the authority.
pub(crate) fn predict<C: Shared>(
    mut room: ResMut<RoomResource>,
    mut own: Query<(Entity, &Networked, Option<&mut C>), With<Owned>>,
    mut failed: MessageWriter<ReplicationFailed>,
) {
    let Some(mut step) = room.step() else { return };
    // A step runs only in an open room.
    let _ = step.edit(|access| {
        for (entity, Networked { id }, component) in &mut own {
            let written = match component {
                Some(mut component) => access.insert(*id, &*component).and_then(|()| {
                    if let Some(quantized) = access.component::<C>(*id)? {
                        // Not marked as changed: change detection has reported this change already.
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
