//! Actions: what members ask for with entities of their own, and what they predict of them.

use super::{Joined, RoomCore};
use crate::action::{Acting, Action as Defined, Made};
use crate::error::RoomError;
use crate::event::Event;
use crate::simulation::{Applied, Asked};
use parlor_proto::session::Outgoing;
use parlor_proto::wire::action::{Action, ActionRefusal, AskedBy, Decision, RefusedAction};
use parlor_proto::wire::control::ToHub;
use parlor_proto::{ApiMisuse, CloseReason, EntityId, Instant, channel, limits};
use parlor_sync::limits::{ACTIONS_PENDING_MAX, ACTIONS_PER_INPUT_MAX};
use parlor_sync::value::{Value, to_value};
use serde::Serialize;

/// For a game: actions that the host's game is asked for.
impl RoomCore {
    /// Asks the host for an action on an entity of this player's own. The host's game gets
    /// [`Event::Action`](crate::Event::Action), in the order of the requests.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if, as far as this process knows, the entity does not exist or has another
    /// owner. If the host finds out later, [`Event::ActionRefused`](crate::Event::ActionRefused) is raised.
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
        let (_, joined) = self.open_with_host("act")?;
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
        self.connection.say(Outgoing::new(channel::ACTIONS, action.encode()))?;
        self.wants_driver = true;
        Ok(())
    }
}

/// For a game: predicted actions.
impl RoomCore {
    /// Makes a predicted action on an entity of this player's own, in a step: it is applied at once, again in
    /// replays of this step, and at the host in the same step, which decides. The host's own is decided at once. If
    /// the host refuses it, [`Event::ActionRefused`] is raised and the prediction is undone. Does nothing in a
    /// [replayed](Self::is_replay) step: what was made in it is applied again.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if the action is refused already here; nothing changed then. [`RoomError`] if it is not
    /// [defined](crate::Options::actions), does not fit the input of its step, or too many were made.
    pub fn act_predicted<A: Defined>(
        &mut self,
        entity: EntityId,
        action: &A,
        now: Instant,
    ) -> Result<(), RoomError> {
        let value = to_value(action)?;
        let encoded = value.encode(limits::INPUT_BYTES_MAX)?;
        let (_, joined) = self.open_with_host("act")?;
        let (step, from, is_host) = (joined.simulation.step(), joined.welcome.member, joined.is_host());
        if step.is_replay {
            return Ok(());
        }
        if !self.options.actions.has(A::NAME) {
            let text =
                format!("the action \"{}\" is not defined: name its type by RoomBuilder::action", A::NAME);
            return Err(ApiMisuse::Bounds(text).into());
        }
        let (_, joined) = self.open_with_host("act")?;
        let number = joined.simulation.action_number().map_err(too_many)?;
        if !is_host {
            let action = Action { entity, name: A::NAME.to_owned(), value: encoded };
            joined.simulation.make_action((joined.welcome.epoch, number), action, joined.shared.drawn())?;
        }
        let made = Made { from, number, entity, is_first: true };
        let applied = self.apply_action(A::NAME, &value, made, now);
        let (_, joined) = self.open_with_host("act")?;
        if let Err(why) = applied {
            if !is_host {
                joined.simulation.unmake_action(joined.shared.drawn());
            }
            return Err(RoomError::Refused { entity, why });
        }
        let name = A::NAME.to_owned();
        joined.simulation.action_applied(Applied { tick: step.tick, from, number, entity, name, value });
        if is_host { Ok(()) } else { self.post_inputs() }
    }

    /// Applies an action to the world, or undoes it and returns why.
    fn apply_action(
        &mut self,
        name: &str,
        value: &Value,
        made: Made,
        now: Instant,
    ) -> Result<(), ActionRefusal> {
        let Some(Joined { shared, simulation, welcome, players, .. }) = &mut self.joined else {
            return Err(ActionRefusal::NoSuchEntity);
        };
        let acting =
            Acting::new((shared, simulation), (welcome, players), made, self.options.rewind_max, now);
        self.options.actions.apply(name, value, acting)
    }

    /// Applies the actions of the step that begins: those of an earlier run of it, and at the host those that came
    /// for it since.
    pub(super) fn run_actions(&mut self, now: Instant) {
        let Some(joined) = &self.joined else { return };
        let (step, is_host, me) = (joined.simulation.step(), joined.is_host(), joined.welcome.member);
        let again = if step.is_replay { joined.simulation.actions_of(step.tick) } else { Vec::new() };
        for Applied { from, number, entity, name, value, .. } in again {
            let made = Made { from, number, entity, is_first: false };
            let applied = self.apply_action(&name, &value, made, now);
            // A prediction that no longer holds is the host's to refuse.
            if let (Err(why), true, Some(joined)) = (applied, is_host && from != me, &mut self.joined) {
                joined.simulation.refuse_applied(from, number, why);
            }
        }
        if is_host {
            self.decide_actions(now);
        }
    }

    /// Decides the members' actions that are due, at the host, and tells the members.
    fn decide_actions(&mut self, now: Instant) {
        while let Some(asked) = self.joined.as_mut().and_then(|joined| joined.simulation.next_action()) {
            let Asked { from, row, is_late, acted } = asked;
            let Action { entity, name, value } = acted.action;
            let is_current = self.joined.as_ref().is_some_and(|joined| joined.welcome.epoch == acted.epoch);
            if !is_current {
                // Its owner was told that another process became the host.
                continue;
            }
            let made = Made { from, number: acted.number, entity, is_first: true };
            let decided = match Value::decode(value) {
                _ if is_late => Err(ActionRefusal::Late),
                Ok(value) => self.apply_action(&name, &value, made, now).map(|()| value),
                Err(_) => Err(ActionRefusal::Unreadable),
            };
            let Some(joined) = &mut self.joined else { return };
            let tick = joined.simulation.step().tick;
            let number = acted.number;
            let refusal = match decided {
                Ok(value) => {
                    joined.simulation.action_applied(Applied { tick, from, number, entity, name, value });
                    None
                }
                Err(why) => Some(why),
            };
            joined.simulation.decide_action((from, row), number, refusal);
        }
        let Some(joined) = &mut self.joined else { return };
        for (member, decisions) in joined.simulation.take_decisions() {
            self.connection.tell_hub(&ToHub::DecideActions { member, decisions });
            self.wants_driver = true;
        }
    }

    /// Takes in the host's decisions about this member's actions.
    pub(super) fn read_decisions(&mut self, decisions: Vec<Decision>) -> Result<(), CloseReason> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        for decision in decisions {
            if let Some(refused) = joined.simulation.action_decided(decision) {
                self.inbox.tell_bounded(refused, limits::LABEL_BYTES_MAX)?;
            }
        }
        Ok(())
    }
}

fn too_many(pending: bool) -> RoomError {
    let text = if pending {
        format!("{ACTIONS_PENDING_MAX} actions wait for the host's decision: act less often")
    } else {
        format!("{ACTIONS_PER_INPUT_MAX} actions may be made in one step")
    };
    ApiMisuse::Bounds(text).into()
}

/// Actions that arrive.
impl RoomCore {
    /// Passes an action to the game at the host, or sends the refusal to the member that asked.
    pub(super) fn read_action(&mut self, asked: AskedBy) -> Result<(), CloseReason> {
        let AskedBy { from, epoch, action: Action { entity, name, value } } = asked;
        if !self.is_meant(Some(epoch)) {
            return Ok(());
        }
        let Some(joined) = &self.joined else { return Ok(()) };
        // The entity may have changed its owner while the action was in flight, so the hub's check is not
        // enough.
        if let Some(why) = joined.shared.refusal(from, entity) {
            let refused = RefusedAction { entity, name, why };
            self.tell_hub(&ToHub::RefuseAction { member: from, refused });
            return Ok(());
        }
        let bytes = value.len();
        let Ok(value) = Value::decode(value) else {
            self.messages_unreadable += 1;
            return Ok(());
        };
        self.inbox.tell_bounded(Event::Action { from, entity, name, value }, bytes)
    }
}
