//! From the app into the room: publishes the authority's changes after each step.

use crate::entities::{EntityMap, Networked, Owned, Owner, Replicate, is_own};
use crate::messages::ReplicationFailed;
use crate::registry::Shared;
use crate::room::RoomResource;
use bevy_ecs::change_detection::DetectChangesMut;
use bevy_ecs::prelude::{
    Added, Changed, Commands, Entity, MessageWriter, On, Or, Query, Remove, Res, ResMut, Resource, With,
    Without,
};
use parlor::EntityId;
use std::marker::PhantomData;

/// Entities that are not in the room yet.
type New = (With<Replicate>, Without<Networked>);
/// Entities whose `C` changed since the room got it.
type Due<C> = (With<Replicate>, Or<(Changed<C>, Added<Networked>)>);

/// Entities that the app removed since the last step.
#[derive(Debug, Default, Resource)]
pub(crate) struct Gone {
    pub(crate) despawned: Vec<EntityId>,
}

/// Entities that lost their `C` since the last step. Bevy keeps its own record for two frames only, and a
/// step may be further away.
#[derive(Debug, Resource)]
pub(crate) struct Removed<C> {
    entities: Vec<(Entity, EntityId)>,
    component: PhantomData<fn() -> C>,
}

impl<C> Default for Removed<C> {
    fn default() -> Self {
        Removed { entities: Vec::new(), component: PhantomData }
    }
}

/// Records that an entity lost its `C`.
pub(crate) fn note_removal<C: Shared>(
    removal: On<Remove, C>,
    networked: Query<&Networked, With<Replicate>>,
    mut removed: ResMut<Removed<C>>,
) {
    if let Ok(networked) = networked.get(removal.entity) {
        removed.entities.push((removal.entity, networked.id));
    }
}

/// Despawns in the room what the app removed.
pub(crate) fn despawn(mut room: ResMut<RoomResource>, mut gone: ResMut<Gone>) {
    let Some(mut host) = room.as_host() else { return };
    for id in gone.despawned.drain(..) {
        // The room does not have it: that is the wanted result.
        let _ = host.despawn(id);
    }
}

/// Puts new entities into the room.
pub(crate) fn spawn(
    mut room: ResMut<RoomResource>,
    mut map: ResMut<EntityMap>,
    new: Query<(Entity, &Owner), New>,
    mut failed: MessageWriter<ReplicationFailed>,
    mut commands: Commands,
) {
    let Some(mut host) = room.as_host() else { return };
    for (entity, owner) in &new {
        match host.spawn(owner.0) {
            Ok(id) => {
                map.insert(id, entity);
                commands.entity(entity).insert(Networked { id });
            }
            Err(error) => {
                // The cause affects the other new entities as well. All are retried after the next step.
                failed.write(ReplicationFailed { entity, component: None, error });
                return;
            }
        }
    }
}

/// Transfers entities whose [`Owner`] changed.
pub(crate) fn transfer(
    mut room: ResMut<RoomResource>,
    changed: Query<(Entity, &Networked, &Owner), Due<Owner>>,
    mut failed: MessageWriter<ReplicationFailed>,
    mut commands: Commands,
) {
    let Some(mut host) = room.as_host() else { return };
    for (entity, networked, owner) in &changed {
        if let Err(error) = host.transfer(networked.id, owner.0) {
            failed.write(ReplicationFailed { entity, component: None, error });
            continue;
        }
        if is_own(owner.0, host.local_id()) {
            commands.entity(entity).insert(Owned);
        } else {
            commands.entity(entity).remove::<Owned>();
        }
    }
}

/// Writes each changed `C` to the room, and reads back the quantized value. The app thereby simulates with
/// the same numbers as all others.
pub(crate) fn publish<C: Shared>(
    mut room: ResMut<RoomResource>,
    map: Res<EntityMap>,
    mut removed: ResMut<Removed<C>>,
    mut changed: Query<(Entity, &Networked, &mut C), Due<C>>,
    present: Query<(), With<C>>,
    mut failed: MessageWriter<ReplicationFailed>,
) {
    let mut fail = |entity, error| {
        failed.write(ReplicationFailed { entity, component: Some(C::NAME), error });
    };
    let Some(mut host) = room.as_host() else { return };
    // The set of this system runs only in an open room.
    let _ = host.edit(|world| {
        for (entity, id) in removed.entities.drain(..) {
            if map.get(id) == Some(entity)
                && !present.contains(entity)
                && let Err(error) = world.remove::<C>(id)
            {
                fail(entity, error);
            }
        }
        for (entity, Networked { id }, mut component) in &mut changed {
            let written = match world.insert(*id, &*component) {
                Ok(()) => world.component::<C>(*id),
                Err(error) => Err(error),
            };
            match written {
                // Not marked as changed: change detection has reported this change already.
                Ok(Some(quantized)) => *component.bypass_change_detection() = quantized,
                Ok(None) => {}
                Err(error) => fail(entity, error),
            }
        }
    });
}
