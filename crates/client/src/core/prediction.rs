//! Prediction: a member's own entities run ahead of what the host has told.

use super::info::Diagnostics;
use super::options::Options;
use super::room::{Joined, RoomCore};
use super::shared::{Member, Shared};
use parlor_proto::{EntityId, Instant, MemberId, Tick};
use parlor_sync::prediction::{Frame, Predictor, Rerun};
use parlor_sync::schema::{Replicated, Schema};
use parlor_sync::world::WorldError;
use std::sync::Arc;

/// For a game: steps that are run more than once.
impl RoomCore {
    /// Whether a one-shot effect is to be shown, such as a sound or a flash: the first time that it is asked for under this
    /// number in 256 ticks, however often the step that brings it is [run again](Self::is_replay). The number tells effects of
    /// one name apart and is the same when their step is run again: the step's own, or that of a shot.
    ///
    /// An effect that a step brings only when it is run again is to be shown then: better late than never. Before the room is
    /// open nothing is to be shown.
    pub fn once(&mut self, effect: &str, number: u64) -> bool {
        let Some(joined) = &mut self.joined else { return false };
        joined.once.is_first(effect, number, joined.ticker.tick())
    }
}

impl Options {
    /// The components that a member predicts, one bit each.
    pub(super) fn predicted_mask(&self, schema: &Schema) -> u64 {
        self.predicted.iter().filter_map(|name| schema.find(name)).fold(0, |mask, id| mask | id.bit())
    }

    /// Whether the schema has all components that are to be predicted.
    pub(super) fn check_predicted(&self) -> Result<(), String> {
        let has = |name: &str| self.schema.as_ref().is_some_and(|schema| schema.find(name).is_some());
        match self.predicted.iter().find(|name| !has(name)) {
            Some(name) => Err(format!(
                "the component \"{name}\" is to be predicted and is not in the schema: give the room a schema that has it"
            )),
            None => Ok(()),
        }
    }
}

impl Joined {
    /// The moment between two steps that is drawn `now`.
    pub(super) fn frame(&self, now: Instant) -> Frame {
        let rate = self.welcome.tick_rate;
        let since = self.simulation_time(now).saturating_since(rate.begins(self.ticker.tick()));
        Frame { phase: since.as_secs_f64() / rate.interval().as_secs_f64(), now }
    }

    /// Compares what was predicted with what came; what was wrong goes back, and the steps since then wait to be run again.
    pub(super) fn reconcile(&mut self, now: Instant) {
        let (frame, newest) = (self.frame(now), self.ticker.tick());
        let Shared::Member(member) = &mut self.shared else { return };
        if self.replay.is_waiting() {
            if member.is_rerunning() {
                return;
            }
            // A break between two hosts: nothing that was predicted counts.
            self.replay.cancel();
        }
        if let Some(Rerun { first, last }) = member.reconcile(newest, frame) {
            self.replay.queue(first, last);
        }
    }

    /// The game is given a step.
    pub(super) fn enter_step(&mut self) {
        let tick = self.step().tick;
        if let Shared::Member(member) = &mut self.shared
            && let Some(predictor) = &mut member.predictor
        {
            predictor.begin_step(tick);
        }
    }

    /// The game is done with the step that it was given last.
    pub(super) fn leave_step(&mut self) {
        if let Shared::Member(member) = &mut self.shared
            && let Some(predictor) = &mut member.predictor
        {
            predictor.end_step();
        }
    }

    pub(super) fn diagnose_prediction(&self, diagnostics: &mut Diagnostics) {
        diagnostics.steps_replayed = self.replay.replayed();
        diagnostics.effects_forgotten = self.once.forgotten();
        if let Shared::Member(member) = &self.shared
            && let Some(predictor) = &member.predictor
        {
            diagnostics.prediction = predictor.counters();
        }
    }
}

impl Member {
    fn is_rerunning(&self) -> bool {
        self.predictor.as_ref().is_some_and(|predictor| predictor.is_rerunning())
    }

    fn reconcile(&mut self, newest: Tick, frame: Frame) -> Option<Rerun> {
        let settled = self.settled();
        let Member { predictor, replica, .. } = self;
        predictor.as_mut()?.reconcile(replica.world(), settled, newest, frame)
    }

    /// A component of an own entity as predicted; the inner `None` if it has none, the outer one if it is not predicted.
    pub(super) fn predicted<C: Replicated>(&self, entity: EntityId) -> Option<Option<C>> {
        self.predictor.as_ref()?.get(entity)
    }
}

impl Shared {
    /// Has a member predict what its game wants it to.
    pub(super) fn predict(&mut self, options: &Options, me: MemberId) {
        let Shared::Member(member) = self else { return };
        let schema = member.replica.world().schema();
        let mask = options.predicted_mask(schema);
        if mask != 0 {
            let predictor = Predictor::new(Arc::clone(schema), me, mask, options.smoothing);
            member.predictor = Some(Box::new(predictor));
        }
    }

    /// What a member predicts.
    pub(super) fn predictor_mut(&mut self) -> Option<&mut Predictor> {
        match self {
            Shared::Host(_) => None,
            Shared::Member(member) => member.predictor.as_deref_mut(),
        }
    }

    /// Sets a component that this process predicts; `None` if it is not predicted.
    pub(super) fn insert_predicted<C: Replicated>(
        &mut self,
        entity: EntityId,
        component: &C,
    ) -> Option<Result<(), WorldError>> {
        let written = self.predictor_mut()?.insert(entity, component)?;
        Some(written.map(drop))
    }

    /// Takes a component away that this process predicts, and says whether it was there; `None` if it is not predicted.
    pub(super) fn remove_predicted<C: Replicated>(&mut self, entity: EntityId) -> Option<bool> {
        let id = self.world().schema().find(C::NAME)?;
        self.predictor_mut()?.remove(entity, id)
    }
}
