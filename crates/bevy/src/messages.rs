//! Room events as Bevy messages.
//!
//! Bevy drops messages after two frames. These are kept until a step was run after them, so that systems in
//! [`NetTick`](crate::NetTick) miss none, however rarely it runs.

use bevy_ecs::prelude::{Entity, Message, Messages, World};
use parlor::{ActionRefusal, EntityId, Event, MemberId, RoomError, Value, ValueError, from_value};
use serde::de::DeserializeOwned;

/// Something happened in the room. All events are sent, including those that also have a form of their own:
/// spawned and despawned entities, and actions.
#[derive(Clone, Debug, Message)]
pub struct RoomEvent(pub Event);

/// A member requests an action on an entity of its own. Sent on the authority. See [`parlor::Room::act`].
#[derive(Clone, Debug, Message)]
pub struct ActionReceived {
    /// The entity.
    pub entity: Entity,
    /// The member. The hub guarantees the sender and that it owns the entity.
    pub from: MemberId,
    /// The kind of action, defined by the game.
    pub name: String,
    /// The parameters. They come from another machine: validate them.
    pub value: Value,
}

impl ActionReceived {
    /// Deserializes the parameters into the game's own type.
    ///
    /// # Errors
    /// [`ValueError`] with the path of the field that does not match the type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ValueError> {
        from_value(&self.value)
    }
}

/// An action of this member was refused.
#[derive(Clone, Debug, Message)]
pub struct ActionRefused {
    /// The entity, if this app has it.
    pub entity: Option<Entity>,
    /// The entity's id in the room.
    pub id: EntityId,
    /// The kind of action.
    pub name: String,
    /// The reason.
    pub why: ActionRefusal,
}

/// The room rejected a replicated value (a NaN, too many entities). The room keeps the previous one. A
/// component is retried at its next change.
#[derive(Clone, Debug, Message)]
pub struct ReplicationFailed {
    /// The entity.
    pub entity: Entity,
    /// The component; `None` if it is the entity itself.
    pub component: Option<&'static str>,
    /// The reason.
    pub error: RoomError,
}

/// Registers the messages in a world.
pub(crate) fn init(world: &mut World) {
    world.init_resource::<Messages<RoomEvent>>();
    world.init_resource::<Messages<ActionReceived>>();
    world.init_resource::<Messages<ActionRefused>>();
    world.init_resource::<Messages<ReplicationFailed>>();
}

/// Drops the messages that were sent before the last call.
pub(crate) fn forget_old(world: &mut World) {
    world.resource_mut::<Messages<RoomEvent>>().update();
    world.resource_mut::<Messages<ActionReceived>>().update();
    world.resource_mut::<Messages<ActionRefused>>().update();
    world.resource_mut::<Messages<ReplicationFailed>>().update();
}
