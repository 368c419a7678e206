//! The predicted actions of an open room: made by this member, applied again in replays, decided by the host.

use super::{Acting, Action as Defined, Made};
use crate::defined::Actions;
use crate::error::RoomError;
use crate::players::Players;
use crate::simulation::{Applied, Asked, Simulation};
use crate::state::SharedState;
use parlor_proto::wire::action::{Action, ActionRefusal, Decision};
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId, limits};
use parlor_sync::limits::{ACTIONS_PENDING_MAX, ACTIONS_PER_INPUT_MAX};
use parlor_sync::value::{Value, to_value};
use std::collections::BTreeMap;
use std::time::Duration;

/// An open room at a moment, as far as predicted actions concern it.
pub(crate) struct Scene<'a> {
    pub(crate) actions: &'a Actions,
    pub(crate) shared: &'a mut SharedState,
    pub(crate) simulation: &'a mut Simulation,
    pub(crate) welcome: &'a Welcome,
    pub(crate) players: &'a Players,
    pub(crate) rewind_max: Duration,
    pub(crate) now: Instant,
}

impl Scene<'_> {
    /// Makes an action of this member in the current step, unless the step is a replay. Returns whether the step's
    /// input must be sent with it.
    ///
    /// # Errors
    /// [`RoomError`] as of [`RoomCore::act_predicted`](crate::RoomCore::act_predicted); nothing changed then.
    pub(crate) fn make<A: Defined>(&mut self, entity: EntityId, action: &A) -> Result<bool, RoomError> {
        let value = to_value(action)?;
        let encoded = value.encode(limits::INPUT_BYTES_MAX)?;
        let (step, from, is_host) = (self.simulation.step(), self.welcome.member, self.is_host());
        if step.is_replay {
            return Ok(false);
        }
        if !self.actions.has(A::NAME) {
            let text =
                format!("the action \"{}\" is not defined: name its type by RoomBuilder::action", A::NAME);
            return Err(ApiMisuse::Bounds(text).into());
        }
        let number = self.simulation.action_number().map_err(too_many)?;
        let name = A::NAME.to_owned();
        if !is_host {
            let action = Action { entity, name: name.clone(), value: encoded };
            self.simulation.make_action((self.welcome.epoch, number), action, self.shared.drawn())?;
        }
        let made = Made { from, number, entity, is_first: true };
        if let Err(why) = self.apply(&name, &value, made) {
            if !is_host {
                self.simulation.unmake_action(self.shared.drawn());
            }
            return Err(RoomError::Refused { entity, why });
        }
        self.simulation.action_applied(Applied { tick: step.tick, from, number, entity, name, value });
        Ok(!is_host)
    }

    /// Applies the actions of the step that begins: those of an earlier run of it, and at the host those that came
    /// for it since. Returns the host's decisions, for its members.
    pub(crate) fn run_step(&mut self) -> BTreeMap<MemberId, Vec<Decision>> {
        let (step, is_host, me) = (self.simulation.step(), self.is_host(), self.welcome.member);
        let again = if step.is_replay { self.simulation.actions_of(step.tick) } else { Vec::new() };
        for Applied { from, number, entity, name, value, .. } in again {
            let applied = self.apply(&name, &value, Made { from, number, entity, is_first: false });
            // A prediction that no longer holds is the host's to refuse.
            if let Err(why) = applied
                && is_host
                && from != me
            {
                self.simulation.refuse_applied(from, number, why);
            }
        }
        if is_host {
            self.decide();
        }
        self.simulation.take_decisions()
    }

    /// Decides the members' actions that are due, at the host.
    fn decide(&mut self) {
        while let Some(Asked { from, row, is_late, acted }) = self.simulation.next_action() {
            let (number, Action { entity, name, value }) = (acted.number, acted.action);
            if acted.epoch != self.welcome.epoch {
                // Its owner was told that another process became the host.
                continue;
            }
            let decided = match Value::decode(value) {
                _ if is_late => Err(ActionRefusal::Late),
                Ok(value) => {
                    let made = Made { from, number, entity, is_first: true };
                    self.apply(&name, &value, made).map(|()| value)
                }
                Err(_) => Err(ActionRefusal::Unreadable),
            };
            let tick = self.simulation.step().tick;
            let decided = decided.map(|value| {
                self.simulation.action_applied(Applied { tick, from, number, entity, name, value });
            });
            self.simulation.decide_action((from, row), number, decided.err());
        }
    }

    fn is_host(&self) -> bool {
        self.shared.host().is_some()
    }

    /// Applies an action to the world, or undoes it and returns why.
    fn apply(&mut self, name: &str, value: &Value, made: Made) -> Result<(), ActionRefusal> {
        let Scene { actions, shared, simulation, welcome, players, rewind_max, now } = self;
        let (welcome, players, rewind_max, now) = (*welcome, *players, *rewind_max, *now);
        let (undo, despawns, written) = (Vec::new(), Vec::new(), Vec::new());
        let acting =
            Acting { shared, simulation, welcome, players, rewind_max, now, made, undo, despawns, written };
        let written = actions.apply(name, value, acting)?;
        self.simulation.action_wrote(written);
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
