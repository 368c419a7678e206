//! Predicted actions: those of this member that the host has not decided, and what was applied in which step.

use super::Simulation;
use crate::error::RoomError;
use crate::event::Event;
use bytes::Bytes;
use parlor_proto::wire::action::{Action, ActionRefusal, Decision};
use parlor_proto::{EntityId, Epoch, Instant, MemberId, Tick};
use parlor_proto::{OrderedMap, OrderedSet};
use parlor_sync::inputs::{Acted, encode_with_actions};
use parlor_sync::limits::{
    ACTION_AGE_MAX, ACTION_REPEAT_TICKS, ACTIONS_PENDING_MAX, ACTIONS_PER_INPUT_MAX, INPUT_BEHIND_TICKS,
    REPLAY_TICKS_MAX, RESIMULATE_TICKS_MAX,
};
use parlor_sync::value::{Value, ValueError};
use std::collections::VecDeque;

const _: () = assert!(RESIMULATE_TICKS_MAX <= REPLAY_TICKS_MAX, "what a host runs again is remembered, too");

/// The predicted actions of a room as one process has them.
#[derive(Debug, Default)]
pub(crate) struct ActionLog {
    /// The number of this member's next action.
    next: u32,
    /// This member's actions that are not decided, by ascending number.
    pending: VecDeque<Pending>,
    /// What was applied in the last steps, in order.
    applied: VecDeque<Applied>,
    /// The host's decisions that were not told.
    decisions: OrderedMap<MemberId, Vec<Decision>>,
    /// The entities that the actions of the running step wrote.
    written: OrderedSet<EntityId>,
    /// Those of an earlier run of the step that are still to be applied again.
    again: VecDeque<Applied>,
    /// That which the game applies at the moment.
    outside: Option<(Applied, Origin)>,
    /// Actions refused: of this member, or at the host by it.
    refused: u64,
}

#[derive(Debug)]
struct Pending {
    acted: Acted,
    tick: Tick,
    /// The newest input that carries it.
    sent: Tick,
}

/// An action that was applied in a step.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    pub(crate) tick: Tick,
    pub(crate) from: MemberId,
    pub(crate) number: u32,
    pub(crate) entity: EntityId,
    pub(crate) name: String,
    pub(crate) value: Value,
}

/// Where an action comes from that is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This member made it in the running step.
    Made,
    /// From an earlier run of the step.
    Again,
    /// From another member, with the input of the step `row`: the host decides.
    Asked { row: Tick },
}

impl ActionLog {
    /// The number that the next action of this member `me` has. The error says whether too many are undecided, or
    /// too many were made in this step.
    pub(crate) fn number(&self, me: MemberId, tick: Tick) -> Result<u32, bool> {
        let in_step = self.applied.iter().rev().take_while(|applied| applied.tick == tick);
        if in_step.filter(|applied| applied.from == me).count() >= ACTIONS_PER_INPUT_MAX {
            return Err(false);
        }
        if self.pending.len() >= ACTIONS_PENDING_MAX { Err(true) } else { Ok(self.next) }
    }

    /// Counts an action of this member.
    pub(crate) fn count(&mut self, number: u32) {
        self.next = number.wrapping_add(1);
    }

    /// Notes an action that this member makes, and that the host must decide.
    pub(crate) fn make(&mut self, epoch: Epoch, tick: Tick, number: u32, action: Action) {
        let acted = Acted { epoch, number, age: 0, action };
        self.pending.push_back(Pending { acted, tick, sent: tick });
    }

    /// Forgets the last action that was [made](Self::make).
    pub(crate) fn unmake(&mut self) {
        self.pending.pop_back();
    }

    /// Whether this member has actions that are not decided.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Encodes the input of a step with the actions made in it, and as many earlier ones as are to be sent again
    /// and fit. `None` without actions.
    pub(crate) fn encode(&mut self, tick: Tick, input: &Bytes) -> Result<Option<Bytes>, ValueError> {
        let is_due = |pending: &&mut Pending| {
            pending.sent == tick || tick.since(pending.sent) >= ACTION_REPEAT_TICKS.cast_signed()
        };
        // Those of this step first: they must fit.
        let (mut new, mut old): (Vec<_>, Vec<_>) =
            self.pending.iter_mut().filter(is_due).partition(|pending| pending.tick == tick);
        let mut acts: Vec<Acted> = new.iter_mut().map(|pending| pending.acted.clone()).collect();
        let mut encoded = encode_with_actions(input, &acts)?;
        for pending in &mut old {
            let age = tick.since(pending.tick).unsigned_abs().min(ACTION_AGE_MAX);
            acts.push(Acted { age, ..pending.acted.clone() });
            match encode_with_actions(input, &acts) {
                Ok(larger) if acts.len() <= ACTIONS_PER_INPUT_MAX => (encoded, pending.sent) = (larger, tick),
                Ok(_) | Err(_) => drop(acts.pop()),
            }
        }
        Ok((!acts.is_empty()).then_some(encoded))
    }

    /// Notes that a step begins.
    pub(crate) fn begin_step(&mut self) {
        self.written.clear();
    }

    /// Notes which entities an action wrote.
    pub(crate) fn wrote(&mut self, entities: Vec<EntityId>) {
        self.written.extend(entities);
    }

    /// The entities that the actions of the running step wrote, in ascending order.
    pub(crate) fn written(&self) -> impl Iterator<Item = EntityId> {
        self.written.iter().copied()
    }

    /// Notes that an action was applied. Those of steps that are never run again are forgotten.
    pub(crate) fn applied(&mut self, applied: Applied) {
        let tick = applied.tick;
        // A late one belongs to an earlier step.
        let at = self.applied.partition_point(|other| !other.tick.is_newer_than(tick));
        self.applied.insert(at, applied);
        let newest = self.applied.back().map_or(tick, |newest| newest.tick);
        let is_old = |oldest: &Applied| newest.since(oldest.tick) > REPLAY_TICKS_MAX.cast_signed();
        while self.applied.front().is_some_and(is_old) {
            self.applied.pop_front();
        }
    }

    /// What was applied in a step, to apply it again.
    fn of_step(&self, tick: Tick) -> Vec<Applied> {
        self.applied.iter().filter(|applied| applied.tick == tick).cloned().collect()
    }

    /// Forgets an applied action: it was refused.
    pub(crate) fn unapply(&mut self, from: MemberId, number: u32) {
        self.applied.retain(|applied| (applied.from, applied.number) != (from, number));
    }

    /// Queues the host's decision for the game's events.
    pub(crate) fn decide(&mut self, member: MemberId, number: u32, refusal: Option<ActionRefusal>) {
        self.refused += u64::from(refusal.is_some());
        self.decisions.get_or_insert_with(member, Default::default).push(Decision { number, refusal });
    }

    /// Takes the decisions that were not told.
    pub(crate) fn take_decisions(&mut self) -> OrderedMap<MemberId, Vec<Decision>> {
        std::mem::take(&mut self.decisions)
    }

    /// Takes in the host's decision about an action of this member `me`. Returns the event of a refusal.
    pub(crate) fn decided(&mut self, me: MemberId, decision: Decision) -> Option<Event> {
        let Decision { number, refusal } = decision;
        let at = self.pending.iter().position(|pending| pending.acted.number == number)?;
        let Action { entity, name, .. } = self.pending.remove(at)?.acted.action;
        let why = refusal?;
        self.refused += 1;
        self.unapply(me, number);
        Some(Event::ActionRefused { entity, name, why })
    }

    /// Forgets everything, because another process decides from here on. Returns the events of the refusals.
    pub(crate) fn abandon(&mut self) -> Vec<Event> {
        self.applied.clear();
        self.again.clear();
        self.outside = None;
        self.decisions.clear();
        self.refused += self.pending.len() as u64;
        let refused = self.pending.drain(..).map(|pending| {
            let Action { entity, name, .. } = pending.acted.action;
            Event::ActionRefused { entity, name, why: ActionRefusal::HostChanged }
        });
        refused.collect()
    }

    /// Undecided actions of this member, and refused ones.
    pub(crate) fn counts(&self) -> (usize, u64) {
        (self.pending.len(), self.refused)
    }
}

/// A member's action that the host decides in this step.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) from: MemberId,
    /// The step of the input that brought it.
    pub(crate) row: Tick,
    /// Whether it came too long after its step.
    pub(crate) is_late: bool,
    pub(crate) acted: Acted,
}

/// Predicted actions.
impl Simulation {
    /// The number of this member's next action in the current step. The error says whether too many are undecided,
    /// or too many were made in this step.
    pub(crate) fn action_number(&self) -> Result<u32, bool> {
        self.actions.number(self.me, self.step().tick)
    }

    /// Makes an action in the current step, and puts it into the step's input.
    pub(crate) fn make_action(
        &mut self,
        (epoch, number): (Epoch, u32),
        action: Action,
        drawn: Option<Instant>,
    ) -> Result<(), RoomError> {
        self.actions.make(epoch, self.step().tick, number, action);
        self.record_input(drawn, None).inspect_err(|_| self.actions.unmake())
    }

    /// Takes the last action back.
    pub(crate) fn unmake_action(&mut self, drawn: Option<Instant>) {
        self.actions.unmake();
        let recorded = self.record_input(drawn, None);
        recorded.expect("an input with fewer actions is not larger");
    }

    /// Whether the step that ends has actions to send again, and no input that carries them.
    pub(crate) fn must_repeat_actions(&self) -> bool {
        let (step, newest) = (self.step(), self.inputs.own_at(self.ticker.tick()));
        let is_recorded = newest.is_some_and(|input| input.tick == step.tick);
        self.actions.is_pending() && !step.is_replay && !is_recorded
    }

    pub(crate) fn action_wrote(&mut self, entities: Vec<EntityId>) {
        self.actions.wrote(entities);
    }

    /// The entities that the actions of the running step wrote.
    pub(crate) fn acted(&self) -> impl Iterator<Item = EntityId> {
        self.actions.written()
    }

    pub(crate) fn action_applied(&mut self, applied: Applied) {
        if applied.from == self.me {
            self.actions.count(applied.number);
        }
        self.actions.applied(applied);
    }

    /// Takes up what was applied in the current step, to apply it again.
    pub(crate) fn begin_again(&mut self) {
        let step = self.step();
        self.actions.again =
            if step.is_replay { self.actions.of_step(step.tick).into() } else { VecDeque::new() };
    }

    /// The next action to apply again.
    pub(crate) fn next_again(&mut self) -> Option<Applied> {
        self.actions.again.pop_front()
    }

    /// Leaves an action to the game.
    pub(crate) fn leave_outside(&mut self, applied: Applied, origin: Origin) {
        self.actions.outside = Some((applied, origin));
    }

    /// The action that the game applies at the moment.
    pub(crate) fn outside(&self) -> Option<&(Applied, Origin)> {
        self.actions.outside.as_ref()
    }

    /// Takes the action that the game applied, or refused.
    pub(crate) fn take_outside(&mut self) -> Option<(Applied, Origin)> {
        self.actions.outside.take()
    }

    /// Takes a member's next action for the current step or an earlier one, at the host.
    pub(crate) fn next_action(&mut self) -> Option<Asked> {
        let (from, row, acted) = self.inputs.next_action(self.step().tick)?;
        let made = row.offset(-acted.age.cast_signed());
        let late = INPUT_BEHIND_TICKS.max(u32::from(self.rate.hz())).cast_signed();
        Some(Asked { from, row, is_late: self.ticker.tick().since(made) > late, acted })
    }

    /// Notes what the host decided about an action that came with the input of the step `row`.
    pub(crate) fn decide_action(
        &mut self,
        (member, row): (MemberId, Tick),
        number: u32,
        refusal: Option<ActionRefusal>,
    ) {
        self.inputs.used(member, row);
        self.actions.decide(member, number, refusal);
    }

    /// Refuses an action that was applied before: in this run of its step it is not possible.
    pub(crate) fn refuse_applied(&mut self, member: MemberId, number: u32, why: ActionRefusal) {
        self.actions.unapply(member, number);
        self.actions.decide(member, number, Some(why));
    }

    pub(crate) fn take_decisions(&mut self) -> OrderedMap<MemberId, Vec<Decision>> {
        self.actions.take_decisions()
    }

    /// Takes in the host's decision about an action of this member. Returns the event of a refusal.
    pub(crate) fn action_decided(&mut self, decision: Decision) -> Option<Event> {
        self.actions.decided(self.me, decision)
    }

    /// Forgets all actions, because another process decides from here on. Returns the events of the refusals.
    pub(crate) fn abandon_actions(&mut self) -> Vec<Event> {
        self.actions.abandon()
    }
}
