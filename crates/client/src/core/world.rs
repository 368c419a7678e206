//! What a game does with the entities of its room.

use super::comeback::say;
use super::error::RoomError;
use super::event::{ClosedReason, Event};
use super::room::{Joined, RoomCore};
use super::shared::{Host, Shared};
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

/// The entities of a room, to read many of them, or on the host to write many, at one go.
///
/// Everybody reads: a component as it is ([`component`](Self::component)), or smoothed for the eye
/// ([`interpolated_component`](Self::interpolated_component)). The host writes, and reads back at once what it wrote, as
/// quantized by the schema: whoever simulates from what it reads simulates from the same numbers as everybody else.
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
    /// [`RoomError`] if the room is not open yet. After its end the last that was known can still be read.
    pub fn world(&mut self, now: Instant) -> Result<WorldAccess<'_>, RoomError> {
        let what = "look at its entities";
        let joined = self.joined.as_mut().ok_or(RoomError::Misuse(ApiMisuse::NotOpen { what }))?;
        Ok(WorldAccess { joined, closed: self.closed.as_ref(), now })
    }

    /// Asks the host to let something happen to an entity of this player's own. The host's game is told with
    /// [`Event::Action`](super::Event::Action), in the order of asking.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if there is no such entity or it is not this player's own, as far as this process knows; if it
    /// turns out later, [`Event::ActionRefused`](super::Event::ActionRefused) says so. [`RoomError`] if the room is not open,
    /// or name or payload are out of their bounds.
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

    /// At the host: gives an action to the game, or tells whoever asked for it why not.
    pub(super) fn read_action(&mut self, asked: AskedBy) -> Result<(), CloseReason> {
        let AskedBy { from, epoch, action: Action { entity, name, value } } = asked;
        if !self.is_meant(Some(epoch)) {
            return Ok(());
        }
        let Some((session, joined)) = self.session.as_mut().zip(self.joined.as_mut()) else { return Ok(()) };
        // The entity may have been given away while the action was under way, so the hub's word is not enough.
        if let Some(why) = joined.shared.refusal(from, entity) {
            let refused = RefusedAction { entity, name, why };
            let message = ToHub::RefuseAction { member: from, refused }.encode();
            // If so much waits that it cannot be said, the one that asked hears nothing, as of any other lost cause.
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

    /// Entities whose components changed since the last call, with one bit for each component that did: see
    /// [`component_id`](Self::component_id). Of a new entity that is all of them. On the host there are none: it wrote them.
    pub fn take_changes(&mut self) -> Vec<(EntityId, u64)> {
        match self.joined.as_mut().map(|joined| &mut joined.shared) {
            Some(Shared::Member(member)) => member.take_changes(),
            Some(Shared::Host(_)) | None => Vec::new(),
        }
    }

    /// The number of a component in the schema, which is its bit in what [`take_changes`](Self::take_changes) gives; none
    /// before the room is open, or if the schema has no such component.
    #[must_use]
    pub fn component_id<C: Replicated>(&self) -> Option<ComponentId> {
        self.joined.as_ref()?.shared.world().schema().find(C::NAME)
    }

    /// What was counted and measured of the world's stream: at the host of what it sends its hub; at a member of what came, as
    /// far as a receiver can tell (packets, bytes, entries, how many entities it sees, how old the rows are that others build
    /// on, how far behind it is).
    #[must_use]
    pub fn world_diagnostics(&self, now: Instant) -> Option<Diagnostics> {
        let joined = self.joined.as_ref()?;
        let tick = joined.welcome.tick_rate.tick_at(joined.room_time(now));
        Some(joined.shared.world_diagnostics(tick))
    }
}

/// For everybody.
impl WorldAccess<'_> {
    /// All entities that this process sees, by ascending slot.
    #[must_use]
    pub fn entities(&self) -> Vec<EntityId> {
        self.joined.shared.entities().collect()
    }

    /// Whether this process sees such an entity.
    #[must_use]
    pub fn contains(&self, entity: EntityId) -> bool {
        self.joined.shared.owner(entity).is_ok()
    }

    /// Who owns an entity; `None` if nobody does.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity.
    pub fn owner(&self, entity: EntityId) -> Result<Option<MemberId>, RoomError> {
        Ok(self.joined.shared.owner(entity)?)
    }

    /// A component of an entity as the host wrote it last, as quantized; one that this process predicts, as it predicts it.
    /// `None` if the entity has none, or this process does not get it.
    ///
    /// # Errors
    /// [`RoomError::World`] if there is no such entity, or the schema has no such component.
    pub fn component<C: Replicated>(&self, entity: EntityId) -> Result<Option<C>, RoomError> {
        Ok(self.joined.shared.component(entity)?)
    }

    /// A component of an entity as it shall be drawn: a little behind, so that it moves evenly. An entity of one's own, and
    /// on the host every one, is as it is; what is predicted, between the two newest steps, and what was predicted wrongly goes
    /// over to what is right.
    ///
    /// # Errors
    /// As [`component`](Self::component).
    pub fn interpolated_component<C: Replicated>(
        &mut self,
        entity: EntityId,
    ) -> Result<Option<C>, RoomError> {
        let frame = self.joined.frame(self.now);
        Ok(match &mut self.joined.shared {
            Shared::Host(_) => self.joined.shared.component(entity)?,
            Shared::Member(member) => member.interpolated_component(entity, frame)?,
        })
    }
}

/// For the host, and for members that predict.
impl WorldAccess<'_> {
    /// Adds an entity without components, for everybody to see. Its owner may [act](RoomCore::act) on it, and what is near
    /// it is what its owner sees, if the schema says so.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there are as many entities as there can be.
    pub fn spawn(&mut self, owner: Option<MemberId>) -> Result<EntityId, RoomError> {
        Ok(self.host("spawn an entity")?.spawn(owner)?)
    }

    /// Takes an entity away. Everybody who saw it is told with [`Event::Despawned`](super::Event::Despawned).
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn despawn(&mut self, entity: EntityId) -> Result<(), RoomError> {
        Ok(self.host("despawn an entity")?.entity(entity)?.despawn(entity)?)
    }

    /// Sets a component of an entity. Numbers beyond the range of their field are moved to its end. Besides the host a member
    /// may, if it [predicts](super::Options::predicted) the component and owns the entity: then its reads give that, until the
    /// host's word proves it wrong.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, the schema has no such component, a number is
    /// NaN or infinite, a text is too long, or the world is too large. Nothing changed then.
    pub fn insert<C: Replicated>(&mut self, entity: EntityId, component: &C) -> Result<(), RoomError> {
        if self.closed.is_none()
            && let Some(predicted) = self.joined.shared.insert_predicted(entity, component)
        {
            return Ok(predicted?);
        }
        self.host("change an entity")?.entity(entity)?.insert(entity, component)?;
        Ok(())
    }

    /// Takes a component from an entity; says whether it had one. Who may is as with [`insert`](Self::insert).
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the schema has no such component.
    pub fn remove<C: Replicated>(&mut self, entity: EntityId) -> Result<bool, RoomError> {
        if self.closed.is_none()
            && let Some(was_there) = self.joined.shared.remove_predicted::<C>(entity)
        {
            return Ok(was_there);
        }
        Ok(self.host("change an entity")?.entity(entity)?.remove::<C>(entity)?)
    }

    /// Gives an entity to another player, or to nobody.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn transfer(&mut self, entity: EntityId, owner: Option<MemberId>) -> Result<(), RoomError> {
        Ok(self.host("give an entity away")?.entity(entity)?.set_owner(entity, owner)?)
    }

    /// Sets who may see an entity; its owner does only if it is among them. What a player may not see never reaches its wire.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, there is no such entity, or the audience names more than 256.
    pub fn set_audience(&mut self, entity: EntityId, audience: Audience) -> Result<(), RoomError> {
        let host = self.host("set who sees an entity")?;
        if audience.named() > AUDIENCE_MEMBERS_MAX {
            return Err(StateError::AudienceTooLarge { members: audience.named() }.into());
        }
        Ok(host.entity(entity)?.set_audience(entity, audience)?)
    }

    /// Puts an entity into a part of the world whose number the game chooses: only who owns an entity there sees it. 0, as
    /// at first, is everywhere.
    ///
    /// # Errors
    /// [`RoomError`] if this process is not the host, or there is no such entity.
    pub fn set_room(&mut self, entity: EntityId, room: u32) -> Result<(), RoomError> {
        Ok(self.host("move an entity")?.entity(entity)?.set_room(entity, room)?)
    }

    fn host(&mut self, what: &'static str) -> Result<&mut Host, RoomError> {
        if let Some(closed) = self.closed {
            return Err(ApiMisuse::Closed(closed.as_close_reason()).into());
        }
        let not_host = self.joined.not_host(what);
        self.joined.shared.host_mut().ok_or(RoomError::Misuse(not_host))
    }
}
