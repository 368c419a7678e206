//! What systems are told, as Bevy messages.
//!
//! Bevy forgets messages after two frames. These are kept until a step was run after them, so that systems in
//! [`NetTick`](crate::NetTick) miss none, however rarely it runs.

use bevy_ecs::prelude::{Entity, Message, Messages, World};
use parlor::{ActionRefusal, EntityId, Event, MemberId, RoomError, Value, ValueError, from_value};
use serde::de::DeserializeOwned;

/// Something happened in the room. All events come, those included that became something else as well: entities that
/// were spawned and despawned, and actions.
#[derive(Clone, Debug, Message)]
pub struct RoomEvent(pub Event);

/// A member wants something done with an entity of its own; the authority is told. See [`parlor::Room::act`].
#[derive(Clone, Debug, Message)]
pub struct ActionReceived {
    /// With which entity.
    pub entity: Entity,
    /// Who wants it. The hub vouches for this, and that the entity is theirs.
    pub from: MemberId,
    /// What kind of action, in the game's own words.
    pub name: String,
    /// The rest of it. It comes from another machine: treat it as a wish.
    pub value: Value,
}

impl ActionReceived {
    /// The rest of it, as the game's own type.
    ///
    /// # Errors
    /// [`ValueError`] with the path of the field that is not as the type wants it.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        from_value(&self.value)
    }
}

/// An action of this member was refused.
#[derive(Clone, Debug, Message)]
pub struct ActionRefused {
    /// The entity, if this app has it.
    pub entity: Option<Entity>,
    /// The entity, as the room names it.
    pub id: EntityId,
    /// What kind of action.
    pub name: String,
    /// Why.
    pub why: ActionRefusal,
}

/// Something that the authority wanted to replicate was not taken: a component with a number that is none, one entity
/// too many. The room keeps what it had; a component is tried again when it changes again.
#[derive(Clone, Debug, Message)]
pub struct ReplicationFailed {
    /// The entity.
    pub entity: Entity,
    /// The component; `None` if it is the entity itself.
    pub component: Option<&'static str>,
    /// Why.
    pub error: RoomError,
}

/// Makes a world ready for the messages.
pub(crate) fn init(world: &mut World) {
    world.init_resource::<Messages<RoomEvent>>();
    world.init_resource::<Messages<ActionReceived>>();
    world.init_resource::<Messages<ActionRefused>>();
    world.init_resource::<Messages<ReplicationFailed>>();
}

/// Forgets what was told before the last call.
pub(crate) fn forget_old(world: &mut World) {
    world.resource_mut::<Messages<RoomEvent>>().update();
    world.resource_mut::<Messages<ActionReceived>>().update();
    world.resource_mut::<Messages<ActionRefused>>().update();
    world.resource_mut::<Messages<ReplicationFailed>>().update();
}
