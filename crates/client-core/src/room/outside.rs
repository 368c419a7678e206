//! Predicted actions that the game applies itself, because this process cannot call its code.

use super::RoomCore;
use crate::action::{FAILED, Making, by_game};
use crate::error::RoomError;
use crate::simulation::{Applied, Origin};
use parlor_proto::OrderedMap;
use parlor_proto::wire::action::{ActionRefusal, Decision};
use parlor_proto::wire::control::ToHub;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId, Tick};
use parlor_sync::value::Value;

/// A predicted action that the game must apply now: see [`RoomCore::action_to_apply`].
#[derive(Clone, Debug, PartialEq)]
pub struct ActionToApply {
    /// The member that made it.
    pub from: MemberId,
    /// The member's number of it.
    pub number: u32,
    /// The running step.
    pub tick: Tick,
    /// The member's own entity that it is made with.
    pub entity: EntityId,
    /// Its name.
    pub name: String,
    /// Its content, as the member sent it.
    pub value: Value,
    /// Whether it is applied for the first time in this process. Only then does the host spawn what it spawns.
    pub is_first: bool,
}

/// For a game whose actions this process cannot call.
impl RoomCore {
    /// Makes a predicted action that was defined by
    /// [`Actions::define_outside`](crate::Actions::define_outside), as [`act_predicted`](Self::act_predicted) does.
    /// Returns whether the game must apply it now: [`action_to_apply`](Self::action_to_apply) is it.
    ///
    /// # Errors
    /// As of [`act_predicted`](Self::act_predicted), and while another action is applied.
    pub fn act_outside(
        &mut self,
        entity: EntityId,
        name: &str,
        value: Value,
        now: Instant,
    ) -> Result<bool, RoomError> {
        self.open_as_player("act")?;
        let (_, joined) = self.open_with_host("act")?;
        if joined.simulation.outside().is_some() {
            let text = "an action is applied at the moment: it makes no other one";
            return Err(ApiMisuse::Bounds(text.into()).into());
        }
        let Some(joined) = &mut self.joined else { return Ok(false) };
        match joined.scene(&self.options, now).make(entity, name, value)? {
            Making::Outside => Ok(true),
            Making::Send => self.post_inputs().map(|()| false),
            Making::Done => Ok(false),
        }
    }

    /// The action that the game must apply before it goes on with the step. After each [`tick`](Self::tick), and when
    /// [`act_outside`](Self::act_outside) says so, call this and [`action_applied`](Self::action_applied) until it is
    /// `None`. An action that is left is refused by the next `tick`.
    pub fn action_to_apply(&self) -> Option<ActionToApply> {
        let (applied, origin) = self.joined.as_ref()?.simulation.outside()?.clone();
        let Applied { tick, from, number, entity, name, value } = applied;
        let is_first = origin != Origin::Again;
        Some(ActionToApply { from, number, tick, entity, name, value, is_first })
    }

    /// Ends the action that the game applied, or refused after it undid what it had written.
    ///
    /// # Errors
    /// [`RoomError::Refused`] if this member made the action in this step, and it is refused.
    pub fn action_applied(
        &mut self,
        result: Result<(), ActionFailed>,
        now: Instant,
    ) -> Result<(), RoomError> {
        let Some(joined) = &mut self.joined else { return Ok(()) };
        let result = result.map_err(|failed| match failed {
            ActionFailed::ByGame(reason) => by_game(&reason),
            ActionFailed::Unreadable => ActionRefusal::Unreadable,
        });
        let (made, decisions) = joined.scene(&self.options, now).end_outside(result);
        self.tell_decisions(decisions);
        match made? {
            Making::Send => self.post_inputs(),
            Making::Done | Making::Outside => Ok(()),
        }
    }

    /// Refuses the actions that the game did not apply before it went on.
    pub(super) fn give_up_actions(&mut self, now: Instant) {
        while self.joined.as_ref().is_some_and(|joined| joined.simulation.outside().is_some()) {
            // Whoever made it went on without the answer.
            let _: Result<(), RoomError> = self.action_applied(Err(ActionFailed::ByGame(FAILED.into())), now);
        }
    }

    pub(super) fn tell_decisions(&mut self, decisions: OrderedMap<MemberId, Vec<Decision>>) {
        for (member, decisions) in decisions {
            self.tell_hub(&ToHub::DecideActions { member, decisions });
        }
    }
}

/// Why the game did not apply an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionFailed {
    /// It refuses it, for a reason with a name.
    ByGame(String),
    /// It cannot read its content.
    Unreadable,
}
