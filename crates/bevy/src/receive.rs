//! From the room into the app: applies the authority's decisions.

use crate::entities::{EntityMap, Networked, Owned, Owner, Replicate, is_own};
use crate::messages::{ActionReceived, ActionRefused};
use crate::registry::{Registry, Shared};
use crate::room::RoomResource;
use bevy_ecs::change_detection::DetectChangesMut;
use bevy_ecs::prelude::{Entity, Mut, World};
use bevy_ecs::world::EntityWorldMut;
use parlor::{EntityId, Event, MemberId, WorldReader};
use std::collections::BTreeSet;

/// Applies an event.
pub(crate) fn take(world: &mut World, event: &Event) {
    match event {
        Event::Spawned { entity } => spawned(world, *entity),
        Event::Despawned { entity } => despawned(world, *entity),
        Event::HostChanged { .. } if is_host(world) => inherit(world),
        Event::Action { from, entity, name, value } => {
            if let Some(here) = world.resource::<EntityMap>().get(*entity) {
                let (name, value) = (name.clone(), value.clone());
                world.write_message(ActionReceived { entity: here, from: *from, name, value });
            }
        }
        Event::ActionRefused { entity, name, why } => {
            let here = world.resource::<EntityMap>().get(*entity);
            let refused = ActionRefused { entity: here, id: *entity, name: name.clone(), why: why.clone() };
            world.write_message(refused);
        }
        _ => {}
    }
}

/// Spawns an entity that another process, or an action, put into the room. [`Networked`] is inserted last, so that an
/// observer of it finds the other components.
fn spawned(world: &mut World, id: EntityId) {
    if world.resource::<EntityMap>().get(id).is_some() {
        return;
    }
    let entity = world.spawn_empty().id();
    world.resource_mut::<EntityMap>().insert(id, entity);
    update(world, &[(id, u64::MAX)]);
    let is_host = is_host(world);
    let mut entity = world.entity_mut(entity);
    if is_host {
        entity.insert(Replicate);
    }
    entity.insert(Networked { id });
}

/// Despawns an entity that left the room.
fn despawned(world: &mut World, id: EntityId) {
    if let Some(gone) = world.resource_mut::<EntityMap>().remove(id) {
        // The game may have despawned it already.
        world.try_despawn(gone).unwrap_or_default();
    }
}

/// Takes in what actions wrote in the running step. At the authority they may have spawned and despawned, too.
pub(crate) fn acted(world: &mut World, ids: &[EntityId]) {
    let Some(room) = world.get_resource::<RoomResource>().filter(|_| !ids.is_empty()) else { return };
    let is_host = room.is_host();
    let mask = if is_host { u64::MAX } else { world.resource::<Registry>().predicted_mask() };
    if is_host {
        let there: BTreeSet<EntityId> = room.world().entities().into_iter().collect();
        for id in ids {
            if there.contains(id) {
                spawned(world, *id);
            } else {
                despawned(world, *id);
            }
        }
    }
    let changes: Vec<(EntityId, u64)> = ids.iter().map(|id| (*id, mask)).collect();
    update(world, &changes);
}

/// Takes over as authority of a room that another app opened. The entities of the room become this app's to
/// write, with the room's values, not with local changes of the game.
fn inherit(world: &mut World) {
    let inherited: Vec<(EntityId, Entity)> = world.resource::<EntityMap>().iter().collect();
    let all: Vec<(EntityId, u64)> = inherited.iter().map(|(id, _)| (*id, u64::MAX)).collect();
    update(world, &all);
    for (_, here) in inherited {
        if let Ok(mut entity) = world.get_entity_mut(here) {
            entity.insert(Replicate);
        }
    }
}

/// Applies all changes since the last call.
pub(crate) fn changes(world: &mut World) {
    let Some(room) = world.get_resource::<RoomResource>() else { return };
    let changes = room.world().take_changes();
    if !changes.is_empty() && !is_host(world) {
        update(world, &changes);
    }
}

fn is_host(world: &World) -> bool {
    world.get_resource::<RoomResource>().is_some_and(|room| room.is_host())
}

/// Updates the owner of each of these entities, and the components in its mask (one bit for each component
/// number).
fn update(world: &mut World, changes: &[(EntityId, u64)]) {
    world.resource_scope(|world, mut room: Mut<RoomResource>| {
        let me = room.local_id();
        world.resource_scope(|world, registry: Mut<Registry>| {
            // The received state is there from the opening of the room on.
            let _ = room.look(|access| {
                for (id, mask) in changes {
                    let here: Option<Entity> = world.resource::<EntityMap>().get(*id);
                    // The game may despawn any entity; the room still has it.
                    let Some(Ok(mut entity)) = here.map(|here| world.get_entity_mut(here)) else { continue };
                    registry.receive(&mut entity, access, *id, *mask, true);
                    let owner = access.owner(*id).ok().flatten();
                    set_owner(&mut entity, owner, me);
                }
            });
        });
    });
}

fn set_owner(entity: &mut EntityWorldMut<'_>, owner: Option<MemberId>, me: Option<MemberId>) {
    if entity.get::<Owner>() == Some(&Owner(owner)) {
        return;
    }
    entity.insert(Owner(owner));
    if is_own(owner, me) {
        entity.insert(Owned);
    } else {
        entity.remove::<Owned>();
    }
}

/// Sets the component `C` of an entity to the room's value, marked as changed or not.
pub(crate) fn receive<C: Shared>(
    entity: &mut EntityWorldMut<'_>,
    access: &WorldReader<'_>,
    id: EntityId,
    is_change: bool,
) {
    match access.component::<C>(id) {
        Ok(Some(component)) => match entity.get_mut::<C>() {
            Some(mut here) if is_change => *here = component,
            Some(mut here) => *here.bypass_change_detection() = component,
            None => drop(entity.insert(component)),
        },
        // Without an entity in the room there is no component either.
        Ok(None) | Err(_) => drop(entity.remove::<C>()),
    }
}
