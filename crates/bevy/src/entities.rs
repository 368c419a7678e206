//! Maps entities of the app to entities of the room.

use crate::actions::Wanted;
use crate::publish::Gone;
use bevy_ecs::prelude::{Commands, Component, Entity, On, Query, Remove, ResMut, Resource, World};
use parlor::{EntityId, MemberId};
use std::collections::BTreeMap;

/// Replicates this entity with all its replicated components. Set it on the authority. The entity is spawned
/// in the room after the next step, and despawned there when this component or the entity is removed. On
/// other members it has no effect while the app is not the authority. After a host migration, the new
/// authority has it on all entities that came from the room.
///
/// ```
/// use bevy_ecs::prelude::*;
/// use parlor_bevy::{Owner, Replicate};
///
/// fn spawn(mut commands: Commands) {
///     commands.spawn((Replicate, Owner(None)));
/// }
/// ```
#[derive(Clone, Copy, Debug, Default, Component)]
#[require(Owner)]
pub struct Replicate;

/// The owner of an entity: the member that may act on it and always sees it. Default: no owner. On the
/// authority, changing it transfers the entity. Elsewhere it shows the authority's decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Component)]
pub struct Owner(pub Option<MemberId>);

/// Marks an entity that this member owns. The plugin inserts and removes it.
#[derive(Clone, Copy, Debug, Default, Component)]
pub struct Owned;

/// Marks an entity that is in the room. The plugin inserts and removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Component)]
pub struct Networked {
    /// Its id in the room, the same on all members.
    pub id: EntityId,
}

/// Maps entities of the app to entities of the room, while the app is in one.
#[derive(Debug, Default, Resource)]
pub struct EntityMap {
    entities: BTreeMap<EntityId, Entity>,
}

impl EntityMap {
    /// Returns the app's entity for `id` of the room.
    pub fn get(&self, id: EntityId) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// The number of entities that are both in the room and in this app.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntityId, Entity)> + '_ {
        self.entities.iter().map(|(id, entity)| (*id, *entity))
    }

    pub(crate) fn insert(&mut self, id: EntityId, entity: Entity) {
        self.entities.insert(id, entity);
    }

    pub(crate) fn remove(&mut self, id: EntityId) -> Option<Entity> {
        self.entities.remove(&id)
    }
}

/// Handles an entity that left the room on this side: the game despawned it, or removed [`Replicate`] or
/// [`Networked`].
pub(crate) fn forget(
    removed: On<Remove, Replicate>,
    networked: Query<&Networked>,
    mut gone: ResMut<Gone>,
    mut map: ResMut<EntityMap>,
    mut commands: Commands,
) {
    if let Ok(networked) = networked.get(removed.entity)
        && map.remove(networked.id).is_some()
    {
        gone.despawned.push(networked.id);
        commands.entity(removed.entity).try_remove::<(Networked, Owned)>();
    }
}

/// Whether an entity is this member's own.
pub(crate) fn is_own(owner: Option<MemberId>, me: Option<MemberId>) -> bool {
    owner.is_some() && owner == me
}

/// Cleans up when the room is over: despawns what came from it, keeps what this app replicated.
pub(crate) fn leave_entities(world: &mut World) {
    let map = std::mem::take(&mut *world.resource_mut::<EntityMap>());
    *world.resource_mut::<Gone>() = Gone::default();
    *world.resource_mut::<Wanted>() = Wanted::default();
    for entity in map.entities.into_values() {
        let Ok(mut entity) = world.get_entity_mut(entity) else { continue };
        if entity.contains::<Replicate>() {
            entity.remove::<(Networked, Owned)>();
        } else {
            entity.despawn();
        }
    }
}
