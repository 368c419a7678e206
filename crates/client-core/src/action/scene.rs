//! The predicted actions of an open room: made by this member, applied again in replays, decided by the host.

use super::{Acting, Made};
use crate::defined::Actions;
use crate::error::RoomError;
use crate::players::Players;
use crate::simulation::{Applied, Asked, Origin, Simulation};
use crate::state::SharedState;
use parlor_proto::OrderedMap;
use parlor_proto::wire::action::{Action, ActionRefusal, Decision};
use parlor_proto::wire::handshake::Welcome;
use parlor_proto::{ApiMisuse, EntityId, Instant, MemberId, limits};
use parlor_sync::limits::{ACTIONS_PENDING_MAX, ACTIONS_PER_INPUT_MAX};
use parlor_sync::value::Value;
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

/// What became of an action that this member made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Making {
    /// Nothing is to be done: the step is a replay, or this process is the host.
    Done,
    /// The step's input must be sent with it.
    Send,
    /// The game must apply it first.
    Outside,
}

impl Scene<'_> {
    /// Makes an action of this member in the current step, unless the step is a replay.
    ///
    /// # Errors
    /// [`RoomError`] as of [`RoomCore::act_predicted`](crate::RoomCore::act_predicted); nothing changed then.
    pub(crate) fn make(&mut self, entity: EntityId, name: &str, value: Value) -> Result<Making, RoomError> {
        let encoded = value.encode(limits::INPUT_BYTES_MAX)?;
        let (step, from, is_host) = (self.simulation.step(), self.welcome.member, self.is_host());
        if step.is_replay {
            return Ok(Making::Done);
        }
        if !self.actions.has(name) {
            let text = format!("the action \"{name}\" is not defined: name its type by RoomBuilder::action");
            return Err(ApiMisuse::Bounds(text).into());
        }
        let number = self.simulation.action_number().map_err(too_many)?;
        let name = name.to_owned();
        if !is_host {
            let action = Action { entity, name: name.clone(), value: encoded };
            self.simulation.make_action((self.welcome.epoch, number), action, self.shared.drawn())?;
        }
        let applied = Applied { tick: step.tick, from, number, entity, name, value };
        match self.apply(&applied, Origin::Made) {
            None => {
                self.simulation.leave_outside(applied, Origin::Made);
                Ok(Making::Outside)
            }
            Some(result) => self.made(applied, result),
        }
    }

    /// Ends the making of an action of this member.
    fn made(&mut self, applied: Applied, result: Result<(), ActionRefusal>) -> Result<Making, RoomError> {
        let is_host = self.is_host();
        if let Err(why) = result {
            if !is_host {
                self.simulation.unmake_action(self.shared.drawn());
            }
            return Err(RoomError::Refused { entity: applied.entity, why });
        }
        self.simulation.action_applied(applied);
        Ok(if is_host { Making::Done } else { Making::Send })
    }

    /// Applies the actions of the step that begins: those of an earlier run of it, and at the host those that came
    /// for it since. Stops at one that the game must apply. Returns the host's decisions, for its members.
    pub(crate) fn run_step(&mut self) -> OrderedMap<MemberId, Vec<Decision>> {
        self.simulation.begin_again();
        self.proceed()
    }

    /// Ends the action that the game applied, or refused, and goes on. Returns what became of it if this member made
    /// it, and the host's decisions.
    pub(crate) fn end_outside(
        &mut self,
        result: Result<(), ActionRefusal>,
    ) -> (Result<Making, RoomError>, OrderedMap<MemberId, Vec<Decision>>) {
        match self.simulation.take_outside() {
            None => (Ok(Making::Done), OrderedMap::new()),
            Some((applied, Origin::Made)) => (self.made(applied, result), OrderedMap::new()),
            Some((applied, origin)) => {
                self.settle(applied, origin, result);
                (Ok(Making::Done), self.proceed())
            }
        }
    }

    /// Applies what is left of the step's actions, until the game must apply one.
    fn proceed(&mut self) -> OrderedMap<MemberId, Vec<Decision>> {
        while self.simulation.outside().is_none() {
            if let Some(applied) = self.simulation.next_again() {
                self.run(applied, Origin::Again);
            } else if !self.decide_next() {
                break;
            }
        }
        self.simulation.take_decisions()
    }

    fn run(&mut self, applied: Applied, origin: Origin) {
        match self.apply(&applied, origin) {
            None => self.simulation.leave_outside(applied, origin),
            Some(result) => self.settle(applied, origin, result),
        }
    }

    /// Notes what became of an action that was not made here in this run of the step.
    fn settle(&mut self, applied: Applied, origin: Origin, result: Result<(), ActionRefusal>) {
        let (from, number) = (applied.from, applied.number);
        match (origin, result) {
            (Origin::Asked { row }, result) => {
                let decided = result.map(|()| self.simulation.action_applied(applied));
                self.simulation.decide_action((from, row), number, decided.err());
            }
            // A prediction that no longer holds is the host's to refuse.
            (_, Err(why)) if self.is_host() && from != self.welcome.member => {
                self.simulation.refuse_applied(from, number, why);
            }
            _ => {}
        }
    }

    /// Decides the next member's action that is due, at the host. Returns whether there was one.
    fn decide_next(&mut self) -> bool {
        if !self.is_host() {
            return false;
        }
        let Some(Asked { from, row, is_late, acted }) = self.simulation.next_action() else { return false };
        let (number, Action { entity, name, value }) = (acted.number, acted.action);
        if acted.epoch != self.welcome.epoch {
            // Its owner was told that another process became the host.
            return true;
        }
        let refused = match Value::decode(value) {
            _ if is_late => ActionRefusal::Late,
            Err(_) => ActionRefusal::Unreadable,
            Ok(value) => {
                let tick = self.simulation.step().tick;
                self.run(Applied { tick, from, number, entity, name, value }, Origin::Asked { row });
                return true;
            }
        };
        self.simulation.decide_action((from, row), number, Some(refused));
        true
    }

    fn is_host(&self) -> bool {
        self.shared.host().is_some()
    }

    /// Applies an action to the world, or undoes it and returns why. `None` if the game must apply it.
    fn apply(&mut self, applied: &Applied, origin: Origin) -> Option<Result<(), ActionRefusal>> {
        let Scene { actions, shared, simulation, welcome, players, rewind_max, now } = self;
        let (welcome, players, rewind_max, now) = (*welcome, *players, *rewind_max, *now);
        let (undo, despawns, written) = (Vec::new(), Vec::new(), Vec::new());
        let Applied { from, number, entity, name, value, .. } = applied;
        let (from, number, entity) = (*from, *number, *entity);
        let made = Made { from, number, entity, is_first: origin != Origin::Again };
        let acting =
            Acting { shared, simulation, welcome, players, rewind_max, now, made, undo, despawns, written };
        let written = actions.apply(name, value, acting)?;
        Some(written.map(|written| self.simulation.action_wrote(written)))
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
