//! A game's access to the entities of its room.

use super::{Joined, RoomCore};
use crate::connection::say;
use crate::error::RoomError;
use crate::event::{ClosedReason, Event};
use crate::state::{Host, SharedState};
use parlor_proto::channel;
use parlor_proto::limits;
use parlor_proto::session::{Outgoing, SendError};
use parlor_proto::wire::action::{Action, AskedBy};
use parlor_proto::wire::control::{RefusedAction, ToHub};
use parlor_proto::{ApiMisuse, CloseReason, EntityId, Instant, MemberId};
use parlor_sync::audience::Audience;
use parlor_sync::keyed::StateError;
use parlor_sync::limits::AUDIENCE_MEMBERS_MAX;
use parlor_sync::schema::{ComponentId, Replicated};
use parlor_sync::value::{Value, to_value};
use parlor_sync::world::Diagnostics;
use serde::Serialize;

/// The entities of a room, for reading or, at the host, writing many of them at once.
///
/// All members read a component as it is ([`component`](Self::component)), or interpolated for display
/// ([`interpolated_component`](Self::interpolated_component)). The host writes, and reads its writes back at
/// once as quantized by the schema. So a simulation that uses what it reads has the same numbers at all
/// members.
#[derive(Debug)]
pub struct WorldAccess<'a> {
    joined: &'a mut Joined,
    closed: Option<&'a ClosedReason>,
    now: Instant,
}

/// For a game: the entities of the room.
impl RoomCore {
    /// The entities of the room as of `now`.
    ///
    /// # Errors
    /// [`RoomError`] if the room is not open yet. After its end the last known state can still be read.
    pub fn world(&mut self, now: Instant) -> Result<WorldAccess<'_>, RoomError> {
        let what = "look at its entities";
        let joined = self.joined.as_mut().ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))?;
        Ok(WorldAccess { joined, closed: self.closed.as_ref(), now })
    }

    /// Asks the host for an action on an entity of this player's own. The host's game gets
    /// [`Event::Action`](super::Event::Action), in the order of the requests.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if, as far as this process knows, the entity does not exist or has another
    /// owner. If the host finds out later, [`Event::ActionRefused`](super::Event::ActionRefused) is raised.
    /// [`RoomError`] if the room is not open, or name or payload exceed their bounds.
    pub fn act<T: Serialize + ?Sized>(
        &mut self,
        entity: EntityId,
        name: &str,
        payload: &T,
    ) -> Result<(), RoomError> {
        if name.is_empty() || name.len() > limits::LABEL_BYTES_MAX {
            let (len, max) = (name.len(), limits::LABEL_BYTES_MAX);
            let text = format!("the name of an action has {len} bytes; it may have 1 to {max}");
            return Err(ApiMisuse::Bounds(text).into());
        }
        let value = to_value(payload)?;
        let encoded = value.encode(limits::MESSAGE_BYTES_MAX)?;
        let is_away = self.reconnect.is_away();
        let (session, joined) = self.open_with_host("act")?;
        let me = joined.welcome.member;
        if let Some(why) = joined.shared.refusal(me, entity) {
            return Err(RoomError::Refused { entity, why });
        }
        if joined.is_host() {
            let event = Event::Action { from: me, entity, name: name.to_owned(), value };
            let told = self.inbox.tell_bounded(event, encoded.len());
            return told.map_err(|_| RoomError::Full);
        }
        let action = Action { entity, name: name.to_owned(), value: encoded };
        say(session, is_away, Outgoing::new(channel::ACTIONS, action.encode()))?;
        self.wants_driver = true;
        Ok(())
    }

    /// Passes an action to the game at the host, or sends the refusal to the member that asked.
    pub(super) fn read_action(&mut self, asked: AskedBy) -> Result<(), CloseReason> {
        let AskedBy { from, epoch, action: Action { entity, name, value } } = asked;
        if !self.is_meant(Some(epoch)) {
            return Ok(());
        }
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return Ok(()) };
        // The entity may have changed its owner while the action was in flight, so the hub's check is not
        // enough.
        if let Some(why) = joined.shared.refusal(from, entity) {
            let refused = RefusedAction { entity, name, why };
            let message = ToHub::RefuseAction { member: from, refused }.encode();
            // If the queue is too full for it, the member gets no answer.
            let _: Result<(), SendError> = session.send(Outgoing::new(channel::CONTROL, message));
            self.wants_driver = true;
            return Ok(());
        }
        let bytes = value.len();
        let Ok(value) = Value::decode(value) else {
            self.messages_unreadable += 1;
            return Ok(());
        };
        self.inbox.tell_bounded(Event::Action { from, entity, name, value }, bytes)
    }

    /// Takes the entities whose components changed since the last call, with one bit for each changed
    /// component: see [`component_id`](Self::component_id). For a new entity all bits are set. Empty at the
    /// host, which wrote the changes.
    pub fn take_changes(&mut self) -> Vec<(EntityId, u64)> {
        match self.joined.as_mut().map(|joined| &mut joined.shared) {
            Some(SharedState::Member(member)) => member.take_changes(),
            Some(SharedState::Host(_)) | None => Vec::new(),
        }
    }

    /// The number of a component in the schema, which is its bit in [`take_changes`](Self::take_changes).
    /// `None` before the room is open, or if the schema has no such component.
    pub fn component_id<C: Replicated>(&self) -> Option<ComponentId> {
        self.joined.as_ref()?.shared.world().schema().find(C::NAME)
    }

    /// Diagnostics of the world's stream. At the host: of the stream to its hub. At a member: what a receiver
    /// can know (packets, bytes, entries, visible entities, age of baselines, delay).
    pub fn world_diagnostics(&self, now: Instant) -> Option<Diagnostics> {
        let joined = self.joined.as_ref()?;
        let tick = joined.welcome.tick_rate.tick_at(joined.room_time(now));
        Some(joined.shared.world_diagnostics(tick))
    }
}

/// For all members.
impl WorldAccess<'_> {
    /// All entities that this process sees, by ascending slot.
    pub fn entities(&self) -> Vec<EntityId> {
        self.joined.shared.entities().collect()
    }

    /// Whether this process sees the entity.
    pub fn contains(&self, entity: EntityId) -> bool {
        self.joined.shared.owner(entity).is_ok()
    }

    /// The owner of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        Ok(self.joined.shared.owner(entity)?)
    }

    /// A component of an entity as the host last wrote it, quantized; a predicted component as predicted.
    /// `None` if the entity does not have it, or it is hidden from this process.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        Ok(self.joined.shared.component(entity)?)
    }

    /// A component of an entity, interpolated for display: a little in the past, so that it moves evenly. A
    /// player's own entities, and all entities at the host, are not delayed. A predicted component lies
    /// between the two newest steps; corrections are smoothed.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated_component<C: Replicated>(
        &mut self,
        entity: EntityId,
    ) -> Result<Option<C>, RoomError> {
        let frame = self.joined.frame(self.now);
        Ok(match &mut self.joined.shared {
            SharedState::Host(_) => self.joined.shared.component(entity)?,
            SharedState::Member(member) => member.interpolated_component(entity, frame)?,
        })
    }
}

/// For the host, and for members that predict.
impl WorldAccess<'_> {
    /// Spawns an entity without components, visible to all members. Its owner may [act](RoomCore::act) on it.
    /// If the schema says so, it is also a center of its owner's interest.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or the number of entities is at its limit.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, RoomError> {
        Ok(self.host("spawn an entity")?.spawn(owner)?)
    }

    /// Despawns an entity. All members that saw it get [`Event::Despawned`](super::Event::Despawned).
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        Ok(self.host("despawn an entity")?.entity(entity)?.despawn(entity)?)
    }

    /// Sets a component of an entity. Numbers outside the range of their field are clamped. A guest may also
    /// set components that it [predicts](super::Options::predicted) on its own entities: its reads return
    /// them until the host's state corrects them.
    ///
    /// # Errors
    /// [`RoomError`] if this process may not write it, the entity or the component type does not exist, a
    /// number is NaN or infinite, a text is too long, or the world is too large. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        if self.closed.is_none()
            && let Some(predicted) = self.joined.shared.insert_predicted(entity, component)
        {
            return Ok(predicted?);
        }
        self.host("change an entity")?.entity(entity)?.insert(entity, component)?;
        Ok(())
    }

    /// Removes a component of an entity. Returns whether it existed. Permissions are those of
    /// [`insert`](Self::insert).
    ///
    /// # Errors
    /// [`RoomError`] if this process may not write it, or the entity or the component type does not exist.
    pub fn remove<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        if self.closed.is_none()
            && let Some(was_there) = self.joined.shared.remove_predicted::<C>(entity)
        {
            return Ok(was_there);
        }
        Ok(self.host("change an entity")?.entity(entity)?.remove::<C>(entity)?)
    }

    /// Sets the owner of an entity; `None` for no owner.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), RoomError> {
        Ok(self.host("give an entity away")?.entity(entity)?.set_owner(entity, owner)?)
    }

    /// Sets the audience of an entity; it must name the owner if the owner is to see it. Hidden entities are
    /// never sent to a player.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the audience names more
    /// than 256 members.
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), RoomError> {
        let host = self.host("set who sees an entity")?;
        if audience.named() > AUDIENCE_MEMBERS_MAX {
            return Err(StateError::AudienceTooLarge { members: audience.named() }.into());
        }
        Ok(host.entity(entity)?.set_audience(entity, audience)?)
    }

    /// Puts an entity into an interest zone: only owners of an entity in the zone see it. Default: 0, which
    /// is everywhere.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn set_zone(&mut self, entity: EntityId, zone: u32) -> Result<(), RoomError> {
        Ok(self.host("move an entity")?.entity(entity)?.set_zone(entity, zone)?)
    }

    fn host(&mut self, what: &'static str) -> Result<&mut Host, RoomError> {
        if let Some(closed) = self.closed {
            return Err(ApiMisuse::Closed(closed.as_close_reason()).into());
        }
        let not_host = self.joined.not_host(what);
        self.joined.shared.host_mut().ok_or(RoomError::Misuse(not_host))
    }
}
