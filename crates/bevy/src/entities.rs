//! Which entity of the app is which entity of the room.

use crate::publish::Gone;
use bevy_ecs::prelude::{Commands, Component, Entity, On, Query, Remove, ResMut, Resource, World};
use parlor::{EntityId, MemberId};
use std::collections::BTreeMap;

/// On the authority: this entity shall be in the room, with all components that are replicated. It is spawned there after
/// the next step, and despawned when this component goes, alone or with the whole entity. Elsewhere it means nothing, as long as
/// the app is not the authority: one that becomes it by host migration finds it on all entities that came from the room.
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

/// Whose an entity is: who may act on it, who always sees it. Nobody's without one. On the authority, changing it hands the
/// entity over; elsewhere it says what the authority decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Component)]
pub struct Owner(pub Option<MemberId>);

/// This entity is this member's own. The plugin inserts and removes it.
#[derive(Clone, Copy, Debug, Default, Component)]
pub struct Owned;

/// This entity is in the room. The plugin inserts and removes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Component)]
pub struct Networked {
    /// Its name in the room, the same for everybody.
    pub id: EntityId,
}

/// Which entity of the app is which entity of the room, while the app is in one.
#[derive(Debug, Default, Resource)]
pub struct EntityMap {
    entities: BTreeMap<EntityId, Entity>,
}

impl EntityMap {
    /// The entity of the app that is `id` in the room.
    pub fn get(&self, id: EntityId) -> Option<Entity> {
        self.entities.get(&id).copied()
    }

    /// How many entities are in the room and here.
    pub fn len(&self) -> usize {
        self.entities.len()
    }

    /// Whether there is none.
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

/// An entity left the room on this side: the game despawned it, or took [`Replicate`] or [`Networked`] from it.
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

/// The room is over: what came from it goes, what this app put into it stays.
pub(crate) fn leave_entities(world: &mut World) {
    let map = std::mem::take(&mut *world.resource_mut::<EntityMap>());
    *world.resource_mut::<Gone>() = Gone::default();
    for entity in map.entities.into_values() {
        let Ok(mut entity) = world.get_entity_mut(entity) else { continue };
        if entity.contains::<Replicate>() {
            entity.remove::<(Networked, Owned)>();
        } else {
            entity.despawn();
        }
    }
}
